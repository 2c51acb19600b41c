/** How wide a text is, from the widths of its characters, each measured once. */

const FONT = "system-ui, sans-serif";
/** The size at which characters are measured: large enough that rounding does not matter. */
const SIZE = 64;

let context: CanvasRenderingContext2D | null | undefined;
const widths = new Map<number, Map<string, number>>();

/**
 * Without kerning: that shortens a text by a pixel or two, and measuring whole texts takes as long
 * as laying out the first drawing.
 */
export function textWidth(text: string, size: number, weight: number): number {
  let known = widths.get(weight);
  if (!known) widths.set(weight, (known = new Map()));
  let sum = 0;
  for (const char of text) {
    let width = known.get(char);
    if (width === undefined) known.set(char, (width = measure(char, weight)));
    sum += width;
  }
  return sum * size;
}

/** As a share of the font's size. */
function measure(char: string, weight: number): number {
  if (context === undefined) context = document.createElement("canvas").getContext("2d");
  if (!context) return 0.58;
  context.font = `${weight} ${SIZE}px ${FONT}`;
  return context.measureText(char).width / SIZE;
}
