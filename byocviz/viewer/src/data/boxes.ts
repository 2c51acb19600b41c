/** Where boxes and their labels lie on a photo, and in which colours. Pure functions. */
import type { Box, Found, Photo } from "./results";

/** Okabe and Ito's, with the ink that is legible on each. They lie on photos, the same in the dark. */
export const COLOURS: [fill: string, ink: string][] = [
  ["#ffb000", "#1d1400"], ["#56b4e9", "#03202f"], ["#22d3a0", "#00251a"], ["#f0e442", "#272400"],
  ["#ff8ac4", "#33001b"], ["#ff8c5a", "#2d0d00"], ["#b9a3ff", "#170046"], ["#ffffff", "#111111"],
];

/** The same class has the same colour in every photo, and those of one photo differ while they can. */
export function classColours(photos: Photo[]): Map<string, number> {
  const out = new Map<string, number>();
  for (const p of photos) {
    for (const d of p.detected) {
      for (const f of d.found) {
        const key = classKey(f);
        if (!out.has(key)) out.set(key, out.size % COLOURS.length);
      }
    }
  }
  return out;
}

export function classKey(found: Found): string {
  return found.index >= 0 ? `#${found.index}` : found.label;
}

export interface Placed {
  /** Shares of the photo, 0 to 1, cut at its edges. */
  box: Box;
  /** Where the label's left (or right) and top lie. */
  tag: { x: number; y: number; right: boolean };
}

/** A label's height in pixels, and about how wide it is. */
export const LINE = 24;

export function labelWidth(text: string): number {
  return 18 + 7.6 * Math.min(text.length, 40);
}

/**
 * One a box. Its label stands on its top edge, within it where the photo ends, else at the first
 * place further down its side where no other label lies. `frame` is the photo's size as drawn.
 */
export function place(found: Found[], photo: { width: number; height: number }, frame: { width: number; height: number }, texts: string[]): Placed[] {
  const taken: { from: number; to: number; y: number }[] = [];
  const line = Math.min(0.5, LINE / frame.height);
  return found.map((one, i) => {
    const cut = (v: number, size: number) => Math.max(0, Math.min(1, v / size));
    const [l, t, r, b] = [cut(one.box[0], photo.width), cut(one.box[1], photo.height), cut(one.box[2], photo.width), cut(one.box[3], photo.height)];
    const box: Box = [Math.min(l, r), Math.min(t, b), Math.max(l, r), Math.max(t, b)];
    const wide = Math.min(0.7, labelWidth(texts[i] ?? "") / frame.width);
    const right = box[0] + wide > 1;
    const from = right ? Math.max(0, box[2] - wide) : box[0];
    const free = (y: number) => !taken.some((o) => o.from < from + wide && from < o.to && Math.abs(o.y - y) < line);
    const tries = [box[1] - line, box[1], box[3] - line];
    for (let k = 1; k < 10; k++) tries.push(box[1] + k * line);
    const fits = tries.filter((y) => y >= -1e-9 && y <= 1 - line + 1e-9);
    const y = Math.max(0, Math.min(1 - line, fits.find(free) ?? fits[0] ?? 0));
    taken.push({ from, to: from + wide, y });
    return { box, tag: { x: right ? box[2] : box[0], y, right } };
  });
}
