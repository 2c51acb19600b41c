/** From what is chosen to what is drawn, kept by step so that going there again costs nothing. */
import { Layouter } from "../layout/client";
import type { Layout } from "../layout/parse";
import type { Item } from "../graph/tree";
import type { View, VEdge } from "../graph/view";
import { toDot } from "../graph/dot";
import { changeOf } from "../graph/diff";
import { describe, sizeOf, type Description } from "../draw/describe";
import type { Mark, Scene } from "../draw/scene";
import { bytes, plural, shape } from "../data/format";
import { sleep } from "../draw/frames";
import * as s from "./state";
import type { Side } from "./state";

export const layouter = new Layouter();

export interface Prepared {
  id: string;
  step: number;
  fn: string;
  view: View;
  words: Map<Item, Description>;
  dot: string;
}

const kept = new Map<string, Prepared>();
let keptFor: unknown;

/** The view of a function at a step, with its words and its DOT. Null where it is not drawn. */
export function prepare(step: number, fn: string): Prepared | null {
  const model = s.model.peek();
  const choices = s.choices.peek();
  if (keptFor !== choices) {
    kept.clear();
    keptFor = choices;
  }
  const id = `${step}|${s.plumbing.peek()}|${s.direction.peek()}|${fn}`;
  const known = kept.get(id);
  if (known) return known;
  const view = model.view(step, fn, choices, s.plumbing.peek());
  if (!view) return null;
  const words = new Map<Item, Description>();
  for (const item of [...view.nodes, ...view.boxes]) words.set(item, describe(model, step, item));
  const dot = toDot(view, (item) => sizeOf(item, words.get(item)!), s.direction.peek());
  const made: Prepared = { id, step, fn, view, words, dot };
  kept.set(id, made);
  if (kept.size > 40) kept.delete(kept.keys().next().value!);
  return made;
}

export function toScene(p: Prepared, layout: Layout, side: Side): Scene {
  const model = s.model.peek();
  const marks = new Map<Item, Mark>();
  const diff = s.diff.peek();
  if (s.left.peek() !== null) {
    for (const item of [...p.view.nodes, ...p.view.boxes]) {
      const found = changeOf(item.ops, diff);
      if (!found) continue;
      // A thing is gone only where it still was, and has moved only where it now is.
      if ((found.change === "gone") !== (side === "before")) continue;
      marks.set(item, { ...found, of: item.ops.length });
    }
  }
  return {
    id: p.id, view: p.view, layout, words: p.words, marks, colourBy: s.colourBy.peek(),
    backends: model.backends, edgeType: (e) => edgeText(e),
  };
}

export function edgeText(e: VEdge): string {
  const model = s.model.peek();
  const op = e.from.kind === "op" || e.from.kind === "call" ? model.op(e.from.ops[0] ?? -1) : null;
  const type = op?.out_types[e.out] ?? e.from.g?.type ?? "";
  const size = tensorBytes(type);
  const what = type ? `${shape(type)}  ${type.split("[")[0]}${size === null ? "" : `  ${bytes(size)}`}` : "a value";
  return e.count > 1 ? `${what}\nand ${plural(e.count - 1, "more value")}` : what;
}

const WIDTH: Record<string, number> = { bool: 1, int4: 0.5, uint4: 0.5, bfloat16: 2 };

export function tensorBytes(type: string): number | null {
  const at = type.indexOf("[");
  if (at < 1 || at > 40 || type.length > 400) return null;
  const name = type.slice(0, at);
  const inside = type.slice(at + 1).split("]")[0];
  if (!/^[\d,\s]*$/.test(inside)) return null;
  const bits = /\d+/.exec(name);
  const each = WIDTH[name] ?? (bits ? Number(bits[0]) / 8 : null);
  if (each === null) return null;
  return inside.split(",").reduce((n, d) => (d.trim() ? n * Number(d) : n), 1) * each;
}

let ahead = 0;

/** Lays out the other steps, the nearest first, while nothing else is to be done. */
export async function workAhead(idle: () => Promise<void>): Promise<void> {
  const mine = ++ahead;
  const model = s.model.peek();
  const here = s.step.peek();
  const order = model.steps.map((_, i) => i).sort((a, b) => Math.abs(a - here - 0.4) - Math.abs(b - here - 0.4));
  const choices = s.choices.peek();
  await sleep(60);
  for (const step of order) {
    const fn = model.entry(step);
    if (!fn) continue;
    do {
      await sleep(layouter.busy ? 30 : 12);
      await idle();
      if (mine !== ahead || s.choices.peek() !== choices) return;
    } while (layouter.busy);
    const p = prepare(step, fn);
    if (!p || layouter.peek(p.dot) || p.view.nodes.length > 600) continue;
    try {
      await layouter.layout(p.dot, false);
    } catch {
      return; // something is wanted now
    }
  }
}
