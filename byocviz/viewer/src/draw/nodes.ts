/** The SVG of one node and of one box. Coordinates are the node's own, its centre at 0, 0. */
import { CHANGES } from "../graph/diff";
import type { Item } from "../graph/tree";
import type { VEdge } from "../graph/view";
import type { Layout } from "../layout/parse";
import { clip, plural } from "../data/format";
import { el, label, printable } from "./svg";
import type { Description } from "./describe";
import { ruleName } from "./describe";
import { textWidth } from "./measure";
import type { Mark, Scene } from "./scene";
import { paintClass } from "./scene";

export function drawNode(item: Item, d: Description, mark: Mark | undefined, w: number, h: number, scene: Scene): SVGGElement {
  const g = el("g", { class: `node k-${item.kind} ${paintClass(item, d, scene)}${d.reasons && d.on === "tvm" ? " has-reason" : ""}` });
  const x = -w / 2;
  const y = -h / 2;
  const stacked = item.kind === "run" || item.kind === "block" || item.kind === "chunk";
  if (stacked) {
    if (item.kind === "run") el("rect", { class: "back", x: x + 6, y: y + 6, width: w, height: h, rx: 9 }, g);
    el("rect", { class: "back", x: x + 3, y: y + 3, width: w, height: h, rx: 9 }, g);
  }
  if (item.kind === "if") {
    el("path", { class: "body", d: `M${x} 0L0 ${y}L${-x} 0L0 ${-y}Z` }, g);
  } else {
    const rx = item.kind === "param" || item.kind === "output" ? h / 2 : item.kind === "call" && item.subgraph >= 0 ? 4 : 9;
    el("rect", { class: "body", x, y, width: w, height: h, rx }, g);
    // A composite has a second outline; an outlined subgraph has bars at its sides.
    if (d.composite) el("rect", { class: "inner", x: x + 2.5, y: y + 2.5, width: w - 5, height: h - 5, rx: Math.max(2, rx - 2.5) }, g);
    if (item.kind === "call") el("path", { class: "bars", d: `M${x + 6} ${y}V${-y}M${-x - 6} ${y}V${-y}` }, g);
    if (d.mixed) el("rect", { class: "share", x: x + 8, y: -y - 6, width: Math.max(2, (w - 16) * d.share), height: 3, rx: 1.5 }, g);
  }
  const centred = item.kind === "if" || item.kind === "param" || item.kind === "output";
  const tx = centred ? 0 : x + 13;
  const anchor = centred ? "middle" : "start";
  const right = (d.chip ? textWidth(d.chip, 10.5, 600) + 18 : 0) + (d.fold ? 18 : 0);
  const room = w - 26 - right;
  label(fit(d.title, room, 13, 600), { class: "title", x: tx, y: d.sub ? -2 : 4.5, "text-anchor": anchor }, g);
  if (d.sub) label(fit(d.sub, w - 26, 11, 400), { class: "sub", x: tx, y: 14, "text-anchor": anchor }, g);
  let edge = -x - 10;
  if (d.fold) {
    const toggle = el("g", { class: "toggle", transform: `translate(${edge - 6} ${d.sub ? -6.5 : 0})` }, g);
    el("circle", { r: 9, class: "hit" }, toggle);
    el("path", { d: "M-4 0H4M0 -4V4" }, toggle);
    edge -= 18;
  }
  if (d.chip) {
    const cw = textWidth(d.chip, 10.5, 600) + 12;
    el("rect", { class: "chip", x: edge - cw, y: (d.sub ? -6.5 : 0) - 8, width: cw, height: 16, rx: 8 }, g);
    label(d.chip, { class: "chip-text", x: edge - cw / 2, y: (d.sub ? -6.5 : 0) + 3.7, "text-anchor": "middle" }, g);
  }
  if (d.reasons && d.on === "tvm" && !centred) {
    const badge = el("g", { class: "why", transform: `translate(${-x - 2} ${-y - 2})` }, g);
    el("path", { d: "M0 -9L8.5 6H-8.5Z" }, badge);
    label("!", { y: 4, "text-anchor": "middle" }, badge);
  }
  if (mark) drawMark(mark, x, y, g);
  return g;
}

function drawMark(mark: Mark, x: number, y: number, g: Element): void {
  g.classList.add(`c-${mark.change}`);
  const badge = el("g", { class: "mark", transform: `translate(${x + 1} ${y + 1})` }, g);
  el("circle", { r: 9 }, badge);
  label(CHANGES[mark.change].glyph, { y: 4.2, "text-anchor": "middle" }, badge);
}

/** What a pointer over it is told. */
export function hint(item: Item, d: Description, mark: Mark | undefined): string {
  const lines = [d.title + (d.sub ? `  ${d.sub}` : "")];
  if (d.composite) lines.push(`composite ${clip(d.composite, 60)}`);
  if (d.on) lines.push(d.mixed ? `${Math.round(d.share * 100)} % on ${d.on}` : `runs on ${d.on === "tvm" ? "TVM" : d.on}${d.subgraph >= 0 ? ` in S${d.subgraph + 1}` : ""}`);
  if (mark) lines.push(`${CHANGES[mark.change].label}${mark.of > 1 ? `: ${mark.count} of ${mark.of}` : ""}`);
  if (item.consts) lines.push(plural(item.consts, "constant"));
  if (d.fold) lines.push("double-click to open");
  return lines.join("\n");
}

/** Shortened until it fits; the whole text is in the hint and the inspector. */
function fit(text: string, room: number, size: number, weight: number): string {
  if (text.length < 6 || textWidth(text, size, weight) <= room) return text;
  let limit = Math.max(3, Math.floor((text.length * room) / textWidth(text, size, weight)));
  while (limit > 3 && textWidth(clip(text, limit), size, weight) > room) limit--;
  return clip(text, limit);
}

/**
 * A box's frame, and its head, which lies above the edges so that it can be clicked. The `lead` is
 * what is written in the head, and has `room` to its right.
 */
export function drawBox(
  item: Item, d: Description, mark: Mark | undefined, w: number, h: number, scene: Scene,
): { g: SVGGElement; top: SVGGElement; lead: SVGGElement; room: number } {
  const g = el("g", { class: `box k-${item.kind} ${paintClass(item, d, scene)}` });
  el("rect", { class: "frame", x: 0, y: 0, width: w, height: h, rx: item.kind === "region" ? 14 : 11 }, g);
  const text = boxTitle(item, d);
  const long = textWidth(text, 12.5, 600) > w - 34 && (item.kind === "region" || item.kind === "call");
  const size = item.kind === "region" || item.kind === "call" ? 12.5 : 11.5;
  const shown = fit(long ? d.title : text, w - 34, size, 600);
  const top = el("g", { class: `boxtop k-${item.kind} ${paintClass(item, d, scene)}` });
  const head = el("g", { class: "head" }, top);
  el("rect", { class: "hit", x: 4, y: 3, width: Math.max(20, w - 8), height: 18, rx: 6 }, head);
  const lead = el("g", {}, head);
  el("path", { class: "minus", d: "M9 12H17" }, lead);
  label(shown, { class: "box-title", x: 22, y: 16 }, lead);
  if (mark && item.kind !== "run" && item.kind !== "block" && item.kind !== "chunk" && item.kind !== "chain") {
    drawMark(mark, 0, 0, top);
  }
  const title = el("title", {}, head);
  title.textContent = printable(`${text}\nclick to fold`);
  return { g, top, lead, room: w - 34 - textWidth(shown, size, 600) };
}

function boxTitle(item: Item, d: Description): string {
  switch (item.kind) {
    case "region":
    case "call": return `${d.title}  ·  ${d.sub}`;
    case "composite": return ruleName(item.g?.label ?? d.composite) + (item.wraps.length ? `  ·  ${d.chip}` : "");
    case "chain": return "chain";
    default: return d.title;
  }
}

/** Left, top, right and bottom of a label. */
export type Taken = [number, number, number, number];

/**
 * A spline with its tip; what it feeds of an "if" is written beside it, clear of the labels that
 * are there already.
 */
export function drawEdge(e: VEdge, line: Layout["edges"][number], crosses: boolean, taken: Taken[]): SVGGElement {
  const g = el("g", { class: `edge${e.count > 1 ? " many" : ""}${crosses ? " cross" : ""}` });
  el("path", { class: "line", d: line.path, "stroke-width": e.count > 1 ? 1.9 : undefined }, g);
  const [x, y, angle] = line.tip;
  const turn = ((angle * 180) / Math.PI).toFixed(1);
  el("path", { class: "tip", d: "M0 0L-6.5 -3.2L-6.5 3.2Z", transform: `translate(${x} ${y}) rotate(${turn})` }, g);
  if (e.dst.kind === "if" && e.exact) {
    const text = ["condition", "then", "else"][e.slot] ?? "";
    const at = besideTip(line.tip, textWidth(text, 10.5, 600), taken);
    label(text, { class: "edge-label", x: at[0], y: at[1] }, g);
  }
  return g;
}

const LINE = 12;

/** Where a label of a width begins: on the side of the line to which it does not bend. */
export function besideTip([x, y, angle]: [number, number, number], width: number, taken: Taken[]): [number, number] {
  const [dx, dy] = [Math.cos(angle), Math.sin(angle)];
  const flat = Math.abs(dx) > Math.abs(dy);
  // A flat line comes from above and leaves room below it; a steep one beside it, where it does not come from.
  const left = flat ? dx > 0 : dx < -0.2;
  const from = left ? x - 7 - width : x + 7;
  const step = flat || dy < 0 ? LINE : -LINE;
  let base = flat || dy < 0 ? y + LINE + 2 : y - 7;
  const meets = ([l, t, r, b]: Taken) => from < r + 3 && from + width > l - 3 && base - LINE < b && base > t;
  while (taken.some(meets)) base += step;
  taken.push([from, base - LINE, from + width, base]);
  return [from, base];
}
