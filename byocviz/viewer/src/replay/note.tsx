/**
 * The part of Markdown that notes need, as nodes: nothing in a note ever becomes HTML. Paragraphs,
 * headings, lists, quotes, fenced code; strong, emphasis, code and links, which are text only.
 */
import type { ComponentChildren } from "preact";
import { printable } from "../draw/svg";

const LINES = 400;

export type Block =
  | { kind: "p" | "h"; text: string }
  | { kind: "quote"; text: string }
  | { kind: "code"; text: string }
  | { kind: "list"; ordered: boolean; items: { text: string; level: number }[] };

export function blocks(note: string): Block[] {
  const found: Block[] = [];
  const lines = note.split(/\r\n?|\n/);
  const cut = lines.length > LINES;
  let last: Block | null = null;
  for (let i = 0; i < Math.min(lines.length, LINES); i++) {
    const line = lines[i];
    const fence = /^\s{0,3}(```+|~~~+)\s*[\w+-]{0,40}\s*$/.exec(line);
    if (fence) {
      const code: string[] = [];
      while (++i < Math.min(lines.length, LINES) && !isFence(lines[i], fence[1])) code.push(lines[i]);
      found.push({ kind: "code", text: code.join("\n") });
      last = null;
      continue;
    }
    const item = /^(\s*)(?:[-*+]|(\d{1,4})[.)])\s+(.*)$/.exec(line);
    const heading = /^\s{0,3}#{1,6}\s+(.*)$/.exec(line);
    const quote = /^\s{0,3}>\s?(.*)$/.exec(line);
    if (!line.trim()) {
      last = null;
    } else if (heading) {
      found.push({ kind: "h", text: heading[1].trim() });
      last = null;
    } else if (item) {
      const entry = { text: item[3], level: Math.min(3, Math.floor(item[1].replaceAll("\t", "    ").length / 2)) };
      const ordered = item[2] !== undefined;
      if (last?.kind === "list" && (last.ordered === ordered || entry.level > 0)) last.items.push(entry);
      else found.push((last = { kind: "list", ordered, items: [entry] }));
    } else if (quote) {
      if (last?.kind === "quote") last.text += ` ${quote[1]}`;
      else found.push((last = { kind: "quote", text: quote[1] }));
    } else if (last?.kind === "list") {
      last.items[last.items.length - 1].text += ` ${line.trim()}`;
    } else if (last?.kind === "p" || last?.kind === "quote") {
      last.text += ` ${line.trim()}`;
    } else {
      found.push((last = { kind: "p", text: line.trim() }));
    }
  }
  if (cut) found.push({ kind: "p", text: "…" });
  return found;
}

function isFence(line: string, opened: string): boolean {
  const plain = line.trim();
  return plain.startsWith(opened) && plain.replaceAll(opened[0], "") === "";
}

const SPAN = /`([^`]{1,2000})`|\*\*([^*]{1,2000})\*\*|__([^_]{1,2000})__|\*([^*\s][^*]{0,2000})\*|(?<![\p{L}\p{N}])_([^_\s][^_]{0,2000})_(?![\p{L}\p{N}])|!?\[([^\]]{0,500})\]\(([^)]{0,2000})\)|\\([\\`*_[\]#>~-])/gu;

/** One line's text with its emphasis. */
export function spans(text: string): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  let from = 0;
  for (const m of text.matchAll(SPAN)) {
    if (m.index > from) out.push(printable(text.slice(from, m.index)));
    from = m.index + m[0].length;
    if (m[1] !== undefined) out.push(<code>{printable(m[1])}</code>);
    else if (m[2] ?? m[3]) out.push(<strong>{printable((m[2] ?? m[3])!)}</strong>);
    else if (m[4] ?? m[5]) out.push(<em>{printable((m[4] ?? m[5])!)}</em>);
    else if (m[6] !== undefined) out.push(printable(m[6]), <span class="quiet"> ({printable(m[7])})</span>);
    else if (m[8]) out.push(m[8]);
  }
  if (from < text.length) out.push(printable(text.slice(from)));
  return out;
}

export function Note({ text }: { text: string }) {
  return (
    <div class="note-text">
      {blocks(text).map((one, i) => {
        if (one.kind === "code") return <pre key={i}>{one.text.split("\n").map(printable).join("\n")}</pre>;
        if (one.kind === "h") return <h3 key={i}>{spans(one.text)}</h3>;
        if (one.kind === "quote") return <blockquote key={i}>{spans(one.text)}</blockquote>;
        if (one.kind !== "list") return <p key={i}>{spans(one.text)}</p>;
        const items = one.items.map((item, k) => <li key={k} style={item.level ? { marginInlineStart: `${item.level * 1.2}em` } : undefined}>{spans(item.text)}</li>);
        return one.ordered ? <ol key={i}>{items}</ol> : <ul key={i}>{items}</ul>;
      })}
    </div>
  );
}
