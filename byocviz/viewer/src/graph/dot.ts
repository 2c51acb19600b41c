/** The visible graph as DOT for Graphviz: sizes and clusters only, names are numbers. */
import type { Item } from "./tree";
import type { View } from "./view";

export interface Size { w: number; h: number }

export type Direction = "TB" | "LR";

/**
 * Node i is `n<i>` in the order of `view.nodes`, box j is `cluster_<j>` in the order of
 * `view.boxes`. The text is also the key under which a layout is kept.
 */
export function toDot(view: View, size: (item: Item) => Size, direction: Direction): string {
  const number = new Map(view.nodes.map((one, i) => [one, i]));
  const boxNumber = new Map(view.boxes.map((one, i) => [one, i]));
  const many = view.nodes.length > 260;
  const lines: string[] = [
    "digraph{",
    `graph[rankdir=${direction},nodesep=0.22,ranksep=${direction === "TB" ? 0.34 : 0.5},` +
      `margin=0,splines=${many ? "polyline" : "spline"},nslimit=${many ? 1 : 4},mclimit=${many ? 0.3 : 1},` +
      "remincross=false,searchsize=20]",
    "node[shape=box,fixedsize=true,label=\"\"]",
    "edge[arrowhead=none]",
  ];
  const inBox = new Map<Item | null, string[]>();
  const boxOf = (item: Item): Item | null => enclosing(item, view, boxNumber);
  view.nodes.forEach((item, i) => {
    const s = size(item);
    const line = `n${i}[width=${inch(s.w)},height=${inch(s.h)}]`;
    add(inBox, boxOf(item), line);
  });
  const children = new Map<Item | null, Item[]>();
  for (const box of view.boxes) add(children, boxOf(box), box);
  const emit = (box: Item | null): void => {
    lines.push(...(inBox.get(box) ?? []));
    for (const child of children.get(box) ?? []) {
      lines.push(`subgraph cluster_${boxNumber.get(child)}{`, "graph[margin=11,label=\" \",fontsize=13,labeljust=l]");
      const before = lines.length;
      emit(child);
      if (lines.length === before) lines.push(`e${boxNumber.get(child)}[width=0.6,height=0.2]`);
      lines.push("}");
    }
  };
  emit(null);
  for (const e of view.edges) {
    const a = number.get(e.src);
    const b = number.get(e.dst);
    if (a !== undefined && b !== undefined) lines.push(`n${a}->n${b}`);
  }
  lines.push("}");
  return lines.join("\n");
}

/** The open box round an item, across functions opened in place. */
export function enclosing(item: Item, view: View, boxes: { has(item: Item): boolean }): Item | null {
  for (let at = item.parent; at; at = at.parent) if (boxes.has(at)) return at;
  for (const [call, inside] of view.instances) if (inside === item.instance) return call;
  return null;
}

function inch(points: number): string {
  return (points / 72).toFixed(3);
}

function add<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const found = map.get(key);
  if (found) found.push(value);
  else map.set(key, [value]);
}
