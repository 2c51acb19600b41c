/**
 * A drawn function as a tree of items: boxes of the recording (composites, regions, branches) and
 * groups found here (runs of equal blocks, chains), each of which can be folded to one node.
 * Constants and tuple plumbing are left out; edges pass through them.
 */
import type { GNode, Graph } from "../schema";
import { groupSiblings } from "./group";

export type ItemKind =
  | "op" | "param" | "output" | "call" | "if" | "const" | "plumbing" | "other"
  | "composite" | "region" | "branch" | "function" | "run" | "block" | "chain" | "chunk";

export interface Item {
  /** The same for the same operators at every step, so that layouts can be compared and moved. */
  key: string;
  kind: ItemKind;
  node: number;
  g: GNode | null;
  /** Ids of operators that it stands for, its own or those of everything inside. */
  ops: number[];
  children: Item[];
  parent: Item | null;
  /** Boxes drawn as part of this node because it is all they hold. */
  wraps: GNode[];
  /** A constant count, and the calls' callee, for the label. */
  consts: number;
  /** How often it is repeated (runs), of how many items. */
  times: number;
  callee: string;
  subgraph: number;
  /** The function that can open inside this node. */
  inner: string;
  depth: number;
  instance: Instance;
}

/** One drawing of a function: the entry, or one opened inside its caller. */
export interface Instance {
  fn: string;
  prefix: string;
  site: number;
  items: Item[];
  top: Item[];
  edges: BaseEdge[];
  params: Item[];
  /** What flows into the output node, by slot. */
  results: { item: Item; slot: number; out: number }[];
  output: Item | null;
}

export interface BaseEdge { src: Item; dst: Item; slot: number; out: number }

export interface TreeOptions {
  plumbing: boolean;
  /** An operator's TVM name, by id. */
  nameOf: (id: number) => string;
  /** Whether a function has a graph of its own. */
  drawn: (fn: string) => boolean;
}

const PLUMBING = new Set(["const", "get", "tuple", "shape", "prim", "cast"]);
const BOXES = new Set(["composite", "region", "branch", "function"]);

export function buildInstance(
  graph: Graph, fn: string, prefix: string, site: number, options: TreeOptions,
): Instance {
  const instance: Instance = {
    fn, prefix, site, items: [], top: [], edges: [], params: [], results: [], output: null,
  };
  const items: (Item | null)[] = graph.nodes.map((g, i) => makeItem(g, i, instance, options));
  linkParents(graph, items, instance);
  const flows = resolveEdges(graph, items, instance);
  instance.items = items.filter((one): one is Item => one !== null);
  collapseWraps(instance);
  const kept = new Set(instance.items);
  instance.edges = flows.filter((e) => kept.has(e.src) && kept.has(e.dst));
  finish(instance, options);
  return instance;
}

function makeItem(g: GNode, i: number, instance: Instance, options: TreeOptions): Item | null {
  if (PLUMBING.has(g.kind) && g.ops.length === 0 && !options.plumbing) return null;
  const own = g.ops.length > 1 ? [g.ops[Math.max(0, instance.site)] ?? g.ops[0]] : g.ops.slice();
  const kind: ItemKind = BOXES.has(g.kind)
    ? (g.kind as ItemKind)
    : g.kind === "op" || g.kind === "param" || g.kind === "output" || g.kind === "call" || g.kind === "if"
      ? g.kind
      : g.kind === "const" ? "const" : PLUMBING.has(g.kind) ? "plumbing" : "other";
  const inner = (g.kind === "call" || g.kind === "op") && g.callee && options.drawn(g.callee) ? g.callee : "";
  return {
    key: own.length ? `${instance.prefix}o${own[0]}` : `${instance.prefix}n${g.kind}:${g.label}:${i}`,
    kind, node: i, g, ops: own, children: [], parent: null, wraps: [], consts: 0, times: 1,
    callee: g.callee, subgraph: g.subgraph, inner, depth: 0, instance,
  };
}

function linkParents(graph: Graph, items: (Item | null)[], instance: Instance): void {
  graph.nodes.forEach((g, i) => {
    const item = items[i];
    if (!item) return;
    const box = g.parent >= 0 ? items[g.parent] : null;
    if (box && box !== item && BOXES.has(box.kind)) {
      item.parent = box;
      box.children.push(item);
    } else {
      instance.top.push(item);
    }
  });
}

/** Edges between items: constants become a count on their reader, tuples are passed through. */
function resolveEdges(graph: Graph, items: (Item | null)[], instance: Instance): BaseEdge[] {
  const into: { src: number; slot: number; out: number }[][] = graph.nodes.map(() => []);
  for (const e of graph.edges) into[e.dst].push(e);
  const memo = new Map<number, { item: Item; out: number }[]>();
  const sources = (node: number, out: number, depth: number): { item: Item; out: number }[] => {
    const item = items[node];
    if (item) return [{ item, out }];
    const known = memo.get(node);
    if (known) return known;
    const found: { item: Item; out: number }[] = [];
    if (depth > 64) return found;
    memo.set(node, found);
    // A tuple's element: the edge into "get" already says which result it takes.
    for (const e of into[node]) found.push(...sources(e.src, e.out, depth + 1));
    return found;
  };
  const edges: BaseEdge[] = [];
  graph.nodes.forEach((g, i) => {
    const dst = items[i];
    if (!dst) return;
    for (const e of into[i]) {
      if (!items[e.src] && graph.nodes[e.src].kind === "const") dst.consts++;
      for (const from of sources(e.src, e.out, 0)) {
        if (from.item === dst) continue;
        edges.push({ src: from.item, dst, slot: e.slot, out: from.out });
        if (g.kind === "output") {
          instance.results.push({ item: from.item, slot: instance.results.length, out: from.out });
        }
      }
    }
    if (g.kind === "param") instance.params.push(dst);
    if (g.kind === "output") instance.output = dst;
  });
  return edges;
}

/** A composite or region of one operator is drawn as that operator with a mark. */
function collapseWraps(instance: Instance): void {
  const gone = new Set<Item>();
  const shrink = (item: Item): Item => {
    item.children = item.children.map(shrink);
    for (const child of item.children) child.parent = item;
    if ((item.kind === "composite" || item.kind === "region") && item.children.length === 1) {
      const only = item.children[0];
      if (only.kind === "op" || only.kind === "call" || (item.kind === "region" && only.kind === "composite")) {
        only.wraps = [item.g!, ...only.wraps];
        if (item.subgraph >= 0) only.subgraph = item.subgraph;
        only.parent = item.parent;
        gone.add(item);
        return only;
      }
    }
    return item;
  };
  instance.top = instance.top.map(shrink);
  for (const one of instance.top) one.parent = null;
  instance.items = instance.items.filter((one) => !gone.has(one));
}

/** Orders siblings, groups them, and sums up what each box holds. */
function finish(instance: Instance, options: TreeOptions): void {
  const below = new Map<Item | null, BaseEdge[]>();
  const chainOf = (item: Item): Item[] => {
    const chain: Item[] = [];
    for (let at: Item | null = item; at; at = at.parent) chain.push(at);
    return chain.reverse();
  };
  // Each edge, lifted to the two siblings under the box that holds both ends.
  for (const e of instance.edges) {
    if (e.src.parent === e.dst.parent) {
      push(below, e.src.parent, e);
      continue;
    }
    const a = chainOf(e.src);
    const b = chainOf(e.dst);
    let i = 0;
    while (i < a.length - 1 && i < b.length - 1 && a[i] === b[i]) i++;
    if (a[i] !== b[i]) push(below, i ? a[i - 1] : null, { ...e, src: a[i], dst: b[i] });
  }
  const walk = (siblings: Item[], box: Item | null): Item[] => {
    for (const one of siblings) {
      if (one.children.length) {
        one.children = walk(one.children, one);
        const inside = one.children.flatMap((child) => child.ops);
        if (BOXES.has(one.kind)) {
          one.ops = inside;
          if (inside.length) one.key = `${instance.prefix}b${one.kind}${span(inside)}`;
        }
      }
    }
    const grouped = groupSiblings(siblings, below.get(box) ?? [], options.nameOf, instance);
    for (const one of grouped) one.parent = box;
    return grouped;
  };
  instance.top = walk(instance.top, null);
  const depth = (item: Item, d: number): void => {
    item.depth = d;
    for (const child of item.children) depth(child, d + 1);
  };
  for (const one of instance.top) depth(one, 0);
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const found = map.get(key);
  if (found) found.push(value);
  else map.set(key, [value]);
}

/** A name for a set of operators that holds as long as the set does. */
export function span(ops: number[]): string {
  let low = Infinity;
  let high = -Infinity;
  let sum = 0;
  for (const id of ops) {
    if (id < low) low = id;
    if (id > high) high = id;
    sum = (sum * 31 + id) % 1_000_003;
  }
  return `${low}-${high}.${ops.length}.${sum}`;
}
