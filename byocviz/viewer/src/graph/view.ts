/** What is visible of a function: nodes, open boxes, and edges between what can be seen. */
import { canOpen, openItems, type Choices } from "./fold";
import { buildInstance, type Instance, type Item, type TreeOptions } from "./tree";
import type { Graph } from "../schema";

export interface VEdge {
  src: Item;
  dst: Item;
  /** How many values flow this way, and the first of them. */
  count: number;
  from: Item;
  out: number;
  slot: number;
  /** Where the reader is what is drawn, not something folded in it. */
  exact: boolean;
}

export interface View {
  nodes: Item[];
  boxes: Item[];
  edges: VEdge[];
  open: Set<Item>;
  instances: Map<Item, Instance>;
  /** The visible item that holds an operator. */
  seat: Map<number, Item>;
  root: Instance;
  hidden: number;
}

export interface ViewSource extends TreeOptions {
  graphOf: (fn: string) => Graph | null;
  siteOf: (fn: string, subgraph: number) => number;
}

const DEEPEST = 12;

export function buildView(root: Instance, choices: Choices, source: ViewSource, budget?: number): View {
  const instances = new Map<Item, Instance>();
  const open = new Set<Item>();
  const nodes: Item[] = [];
  const boxes: Item[] = [];
  const seat = new Map<number, Item>();
  const all: Instance[] = [];

  const enter = (instance: Instance, depth: number): void => {
    all.push(instance);
    const opened = openItems(instance.top, choices, budget);
    const walk = (items: Item[]): void => {
      for (const item of items) {
        if (opened.has(item) && item.children.length) {
          open.add(item);
          boxes.push(item);
          walk(item.children);
          continue;
        }
        const graph = item.inner && choices.get(item.key) === true && depth < DEEPEST
          ? source.graphOf(item.inner) : null;
        if (graph && graph.nodes.length) {
          const inside = buildInstance(
            graph, item.inner, `${item.key}/`, source.siteOf(item.inner, item.subgraph), source,
          );
          open.add(item);
          boxes.push(item);
          instances.set(item, inside);
          enter(inside, depth + 1);
          for (const id of item.ops) if (!seat.has(id)) seat.set(id, item);
          continue;
        }
        nodes.push(item);
        for (const id of item.ops) if (!seat.has(id)) seat.set(id, item);
      }
    };
    walk(instance.top);
  };
  enter(root, 0);

  // Parameters and results of a function opened in place are its caller's values.
  const dropped = new Set<Item>();
  for (const inside of instances.values()) {
    if (inside.items.some((one) => one.ops.length > 0)) {
      inside.params.forEach((one) => dropped.add(one));
      if (inside.output) dropped.add(inside.output);
    }
  }
  const shown = (item: Item): Item => {
    let top = item;
    for (let at: Item | null = item; at; at = at.parent) if (!open.has(at)) top = at;
    return top;
  };
  const sources = (item: Item, out: number, depth = 0): { item: Item; out: number }[] => {
    const inside = instances.get(item);
    if (!inside || depth > DEEPEST) return [{ item, out }];
    const results = inside.results.length > 1
      ? inside.results.filter((one) => one.slot === out) : inside.results;
    return results.flatMap((one) => sources(one.item, one.out, depth + 1));
  };
  const readers = (item: Item, slot: number, depth = 0): { item: Item; slot: number }[] => {
    const inside = instances.get(item);
    if (!inside || depth > DEEPEST) return [{ item, slot }];
    const param = inside.params[slot];
    if (!param) return [];
    return inside.edges
      .filter((e) => e.src === param)
      .flatMap((e) => readers(e.dst, e.slot, depth + 1));
  };
  const merged = new Map<Item, Map<Item, VEdge>>();
  const edges: VEdge[] = [];
  for (const instance of all) {
    for (const e of instance.edges) {
      if (dropped.has(e.src) || dropped.has(e.dst)) continue;
      for (const from of sources(e.src, e.out)) {
        if (dropped.has(from.item)) continue;
        for (const to of readers(e.dst, e.slot)) {
          if (dropped.has(to.item)) continue;
          const src = shown(from.item);
          const dst = shown(to.item);
          if (src === dst) continue;
          let row = merged.get(src);
          if (!row) merged.set(src, (row = new Map()));
          const known = row.get(dst);
          if (known) {
            known.count++;
            continue;
          }
          const edge: VEdge = {
            src, dst, count: 1, from: from.item, out: from.out, slot: to.slot, exact: dst === to.item,
          };
          row.set(dst, edge);
          edges.push(edge);
        }
      }
    }
  }
  const visible = nodes.filter((one) => !dropped.has(one));
  return {
    nodes: visible, boxes, edges, open, instances, seat, root,
    hidden: visible.reduce((sum, one) => sum + (one.children.length ? one.ops.length : 0), 0),
  };
}

/** Items within n steps of some, along edges either way. */
export function neighbours(view: View, start: Iterable<Item>, hops: number): Set<Item> {
  const next = new Map<Item, Item[]>();
  for (const e of view.edges) {
    (next.get(e.src) ?? next.set(e.src, []).get(e.src)!).push(e.dst);
    (next.get(e.dst) ?? next.set(e.dst, []).get(e.dst)!).push(e.src);
  }
  const seen = new Set(start);
  let front = [...seen];
  for (let i = 0; i < hops; i++) {
    const reached: Item[] = [];
    for (const item of front) {
      for (const to of next.get(item) ?? []) {
        if (!seen.has(to)) {
          seen.add(to);
          reached.push(to);
        }
      }
    }
    front = reached;
  }
  return seen;
}

/** Boxes to open, from the outside in, so that an operator becomes visible. */
export function wayTo(root: Instance, op: number): Item[] | null {
  const search = (items: Item[], way: Item[]): Item[] | null => {
    for (const item of items) {
      if (!item.ops.includes(op)) continue;
      if (!item.children.length) return way;
      return search(item.children, [...way, item]) ?? way;
    }
    return null;
  };
  return search(root.top, []);
}

export { canOpen };
