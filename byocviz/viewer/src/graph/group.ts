/**
 * Groups among siblings: runs of equal blocks, then chains, then plain chunks where that is not
 * enough. Blocks and chunks are intervals of a topological order and chains have one way in and
 * out, so folding a group never makes a cycle.
 */
import { findRuns, type Run } from "./runs";
import type { BaseEdge, Instance, Item, ItemKind } from "./tree";
import { span } from "./tree";

const SMALL = 12;
/** Operators that begin a layer. */
const LAYER = /conv|matmul|dense|linear|attention|layer_norm|rms_norm/;
/** Children that a group can have before they are put into chunks. */
export const MANY = 60;
const MOST = 240;

/** Which siblings feed which, each once. */
export interface Wires { next: Map<Item, Set<Item>>; before: Map<Item, Set<Item>> }

export function groupSiblings(
  siblings: Item[], edges: BaseEdge[], nameOf: (id: number) => string, instance: Instance,
): Item[] {
  if (siblings.length < SMALL) return siblings;
  const wires: Wires = { next: new Map(), before: new Map() };
  const add = (map: Map<Item, Set<Item>>, a: Item, b: Item) => {
    const found = map.get(a);
    if (found) found.add(b);
    else map.set(a, new Set([b]));
  };
  for (const e of edges) {
    add(wires.next, e.src, e.dst);
    add(wires.before, e.dst, e.src);
  }
  return grouped(topological(siblings, wires), wires, nameOf, instance);
}

function grouped(
  order: Item[], wires: Wires, nameOf: (id: number) => string, instance: Instance,
): Item[] {
  const groupable = (one: Item) => one.ops.length > 0 && one.kind !== "if" && one.kind !== "branch" && one.kind !== "region";
  const signs = signatures(order, nameOf);
  const begins = order.map((one) => one.ops.length > 0 && LAYER.test(nameOf(one.ops[0])));
  const out: Item[] = [];
  let rest: Item[] = [];
  const flush = () => {
    out.push(...chunks(chains(rest, wires, instance), instance));
    rest = [];
  };
  let at = 0;
  for (const found of findRuns(signs, (i) => groupable(order[i]))) {
    const run = sameInside(shifted(found, begins), order, wires);
    if (!run) continue;
    while (at < run.start) rest.push(order[at++]);
    flush();
    const blocks: Item[] = [];
    for (let k = 0; k < run.times; k++) {
      const inside = order.slice(at, at + run.period);
      blocks.push(run.period === 1 ? inside[0] : group("block", within(inside, wires, nameOf, instance), instance));
      at += run.period;
    }
    const whole = group("run", chunks(blocks, instance), instance);
    whole.times = run.times;
    out.push(whole);
  }
  while (at < order.length) rest.push(order[at++]);
  flush();
  return chunks(out, instance);
}

/** A long block can hold runs itself. */
function within(inside: Item[], wires: Wires, nameOf: (id: number) => string, instance: Instance): Item[] {
  return inside.length >= 24 ? grouped(inside, wires, nameOf, instance) : chains(inside, wires, instance);
}

function group(kind: ItemKind, inside: Item[], instance: Instance): Item {
  // A group that holds nothing but one other group would be a box round a box.
  const children = inside.length === 1 && inside[0].node < 0 ? inside[0].children : inside;
  const ops = children.flatMap((child) => child.ops);
  const item: Item = {
    key: `${instance.prefix}g${kind}${span(ops)}`,
    kind, node: -1, g: null, ops, children, parent: null, wraps: [], consts: 0, times: 1,
    callee: "", subgraph: -1, inner: "", depth: 0, instance,
  };
  for (const child of children) child.parent = item;
  return item;
}

/** Kahn's order, the earliest in the program first; what lies on a cycle comes at the end. */
export function topological(siblings: Item[], wires: Wires): Item[] {
  const position = new Map(siblings.map((one, i) => [one, i]));
  let sorted = true;
  const degree = new Array<number>(siblings.length).fill(0);
  const next: number[][] = siblings.map((one, a) => {
    const out: number[] = [];
    for (const to of wires.next.get(one) ?? []) {
      const b = position.get(to);
      if (b === undefined || a === b) continue;
      if (a > b) sorted = false;
      out.push(b);
      degree[b]++;
    }
    return out;
  });
  if (sorted) return siblings.slice();
  const ready: number[] = [];
  const add = (i: number) => {
    let k = ready.length;
    while (k > 0 && ready[k - 1] < i) k--;
    ready.splice(k, 0, i);
  };
  degree.forEach((d, i) => d === 0 && add(i));
  const order: Item[] = [];
  const done = new Set<number>();
  while (ready.length) {
    const i = ready.pop()!;
    done.add(i);
    order.push(siblings[i]);
    for (const j of next[i]) if (--degree[j] === 0) add(j);
  }
  siblings.forEach((one, i) => !done.has(i) && order.push(one));
  return order;
}

/** Equal numbers for siblings that do the same. */
function signatures(order: Item[], nameOf: (id: number) => string): number[] {
  const table = new Map<string, number>();
  return order.map((one) => {
    const sign = one.ops.length > 24 ? `${one.kind}${one.ops.length}` : one.ops.map(nameOf).join();
    let number = table.get(sign);
    if (number === undefined) table.set(sign, (number = table.size));
    return number;
  });
}

/** Lets blocks begin where a layer does, if the run is as long then. */
function shifted(run: Run, begins: boolean[]): Run {
  for (let by = 0; by <= Math.min(run.slack, run.period - 1); by++) {
    if (begins[run.start + by]) return { ...run, start: run.start + by, slack: run.slack - by };
  }
  return run;
}

/** The longest stretch of a run whose blocks are wired alike; null where no two are. */
function sameInside(run: Run, order: Item[], wires: Wires): Run | null {
  if (run.period === 1) return run;
  const signs: string[] = [];
  for (let k = 0; k < run.times; k++) {
    const block = order.slice(run.start + k * run.period, run.start + (k + 1) * run.period);
    const position = new Map(block.map((one, i) => [one, i]));
    const inside: string[] = [];
    block.forEach((one, a) => {
      for (const to of wires.next.get(one) ?? []) {
        const b = position.get(to);
        if (b !== undefined) inside.push(`${a}>${b}`);
      }
    });
    signs.push(inside.sort().join());
  }
  let best = { from: 0, times: 1 };
  for (let from = 0; from < run.times; ) {
    let to = from + 1;
    while (to < run.times && signs[to] === signs[from]) to++;
    if (to - from > best.times) best = { from, times: to - from };
    from = to;
  }
  return best.times < 2 ? null : { ...run, start: run.start + best.from * run.period, times: best.times };
}

/** Joins siblings of which each feeds only the next and is fed only by the one before; wires
 * from outside count too. */
function chains(order: Item[], wires: Wires, instance: Instance): Item[] {
  if (order.length < 6) return order;
  const here = new Set(order);
  const plain = (one: Item) => (one.kind === "op" || one.kind === "composite") && here.has(one);
  const used = new Set<Item>();
  const out: Item[] = [];
  for (const one of order) {
    if (used.has(one)) continue;
    if (!plain(one)) {
      out.push(one);
      continue;
    }
    const chain = [one];
    let at = one;
    for (;;) {
      const to = wires.next.get(at);
      if (!to || to.size !== 1) break;
      const follower = [...to][0];
      if (!plain(follower) || used.has(follower) || wires.before.get(follower)!.size !== 1) break;
      if (chain.length >= 8) break;
      chain.push(follower);
      used.add(follower);
      at = follower;
    }
    out.push(chain.length >= 2 ? group("chain", chain, instance) : one);
  }
  return out;
}

/** At most MANY children: more are put into intervals, and those into intervals again. */
function chunks(order: Item[], instance: Instance): Item[] {
  let level = order;
  while (level.length > MOST) {
    const size = Math.max(2, Math.ceil(level.length / MANY));
    const next: Item[] = [];
    for (let i = 0; i < level.length; ) {
      const part: Item[] = [];
      while (part.length < size && i < level.length && movable(level[i])) part.push(level[i++]);
      if (part.length > 1) next.push(group("chunk", part, instance));
      else next.push(...part);
      if (i < level.length && !movable(level[i])) next.push(level[i++]);
    }
    if (next.length >= level.length) break;
    level = next;
  }
  return level;
}

function movable(one: Item): boolean {
  return one.kind !== "param" && one.kind !== "output" && one.kind !== "branch" && one.kind !== "if" && one.ops.length > 0;
}
