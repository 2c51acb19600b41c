/** Line icons, 20 by 20. */
const PATHS: Record<string, string> = {
  left: "M12.5 4.5L7 10l5.5 5.5",
  right: "M7.5 4.5L13 10l-5.5 5.5",
  search: "M9 4a5 5 0 1 0 0 10A5 5 0 0 0 9 4zM12.7 12.7L16.5 16.5",
  plus: "M10 4.5v11M4.5 10h11",
  minus: "M4.5 10h11",
  fit: "M4 7.5V4h3.5M12.5 4H16v3.5M16 12.5V16h-3.5M7.5 16H4v-3.5",
  split: "M3.5 4.5h13v11h-13zM10 4.5v11",
  stacked: "M3.5 4.5h13v11h-13zM3.5 10h13",
  single: "M3.5 4.5h13v11h-13z",
  moon: "M15.5 12.2A6.3 6.3 0 0 1 7.8 4.5a6.3 6.3 0 1 0 7.7 7.7z",
  sun: "M10 6.5a3.5 3.5 0 1 0 0 7a3.5 3.5 0 0 0 0-7zM10 2v1.8M10 16.2V18M2 10h1.8M16.2 10H18M4.3 4.3l1.3 1.3M14.4 14.4l1.3 1.3M4.3 15.7l1.3-1.3M14.4 5.6l1.3-1.3",
  help: "M7.6 7.4a2.4 2.4 0 1 1 3.4 2.2c-.7.4-1 .9-1 1.7M10 14.2v.1M10 2.5a7.5 7.5 0 1 0 0 15a7.5 7.5 0 0 0 0-15z",
  download: "M10 3.5v9M6.2 9L10 12.8L13.8 9M4 16h12",
  outline: "M4 5h2M8.5 5H16M4 10h2M8.5 10H16M4 15h2M8.5 15H16",
  copy: "M7 7h9v9H7zM13 7V4H4v9h3",
  type: "M2.5 15.5L7 4.5L11.5 15.5M4.1 11.8H9.9M12.5 15.5L15 9.5L17.5 15.5M13.3 13.5H16.7",
  full: "M4 8V4h4M12 4h4v4M16 12v4h-4M8 16H4v-4M4 4l4.5 4.5M16 16l-4.5-4.5",
  close: "M5 5l10 10M15 5L5 15",
  unfold: "M10 3v5M7.5 5.5L10 3l2.5 2.5M10 17v-5M7.5 14.5L10 17l2.5-2.5M4 10h12",
  fold: "M10 3v5M7.5 5.5L10 8l2.5-2.5M10 17v-5M7.5 14.5L10 12l2.5 2.5M4 10h12",
  link: "M8.5 11.5l3-3M9 6.5l1.8-1.8a3.2 3.2 0 0 1 4.5 4.5L13.5 11M11 13.5l-1.8 1.8a3.2 3.2 0 0 1-4.5-4.5L6.5 9",
  warn: "M10 3.5L17.5 16h-15zM10 8.5v3.5M10 14v.1",
  arrow: "M4 10h12M11.5 5.5L16 10l-4.5 4.5",
  play: "M6.5 4.5v11l9-5.5z",
  turn: "M5 4v8h10M12 9l3 3l-3 3",
};

export function Icon({ name }: { name: keyof typeof PATHS | string }) {
  return (
    <svg class="icon" viewBox="0 0 20 20" aria-hidden="true">
      <path d={PATHS[name] ?? ""} />
    </svg>
  );
}
