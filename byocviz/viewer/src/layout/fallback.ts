/** A plain layered layout, for when Graphviz cannot run or takes too long. */
import type { Layout } from "./parse";

const GAP = 22;

/** Reads the DOT that `graph/dot.ts` writes. Boxes are the hulls of what they hold. O(n + e). */
export function plainLayout(dot: string): Layout {
  const sizes: [number, number][] = [];
  const ends: [number, number][] = [];
  const boxOf: number[] = [];
  const parentBox: number[] = [];
  const stack: number[] = [];
  for (const line of dot.split("\n")) {
    let m: RegExpExecArray | null;
    if ((m = /^n(\d+)\[width=([\d.]+),height=([\d.]+)\]/.exec(line))) {
      sizes[+m[1]] = [+m[2] * 72, +m[3] * 72];
      boxOf[+m[1]] = stack.at(-1) ?? -1;
    } else if ((m = /^n(\d+)->n(\d+)/.exec(line))) {
      ends.push([+m[1], +m[2]]);
    } else if ((m = /^subgraph cluster_(\d+)/.exec(line))) {
      parentBox[+m[1]] = stack.at(-1) ?? -1;
      stack.push(+m[1]);
    } else if (line === "}") {
      stack.pop();
    }
  }
  const rank = ranks(sizes.length, ends);
  const rows: number[][] = [];
  rank.forEach((r, i) => (rows[r] ??= []).push(i));
  const nodes: Layout["nodes"] = [];
  let y = 0;
  let width = 0;
  const rowWidth = (row: number[]) => row.reduce((sum, i) => sum + sizes[i][0] + GAP, -GAP);
  for (const row of rows) width = Math.max(width, row ? rowWidth(row) : 0);
  for (const row of rows) {
    if (!row) continue;
    const height = Math.max(...row.map((i) => sizes[i][1]));
    let x = (width - rowWidth(row)) / 2;
    for (const i of row) {
      nodes[i] = [x + sizes[i][0] / 2, y + height / 2, sizes[i][0], sizes[i][1]];
      x += sizes[i][0] + GAP;
    }
    y += height + GAP * 1.5;
  }
  const hulls: Layout["boxes"] = parentBox.map(() => null);
  nodes.forEach((at, i) => {
    if (!at) return;
    for (let b = boxOf[i], pad = 10; b >= 0; b = parentBox[b], pad += 10) {
      const x0 = at[0] - at[2] / 2 - pad;
      const y0 = at[1] - at[3] / 2 - pad - 10;
      const x1 = at[0] + at[2] / 2 + pad;
      const y1 = at[1] + at[3] / 2 + pad;
      const h = hulls[b];
      hulls[b] = h
        ? [Math.min(h[0], x0), Math.min(h[1], y0), Math.max(h[0] + h[2], x1) - Math.min(h[0], x0), Math.max(h[1] + h[3], y1) - Math.min(h[1], y0)]
        : [x0, y0, x1 - x0, y1 - y0];
    }
  });
  const edges = ends.flatMap(([src, dst]) => {
    const a = nodes[src];
    const b = nodes[dst];
    if (!a || !b) return [];
    const y0 = a[1] + a[3] / 2;
    const y1 = b[1] - b[3] / 2;
    const mid = (y0 + y1) / 2;
    return [{ src, dst, path: `M${a[0]} ${y0}C${a[0]} ${mid} ${b[0]} ${mid} ${b[0]} ${y1}`, tip: [b[0], y1, Math.PI / 2] as [number, number, number] }];
  });
  return { width, height: Math.max(0, y - GAP), nodes, boxes: hulls, edges, milliseconds: 0 };
}

/** Longest path from a source; a node on a cycle comes right after what was already placed. */
function ranks(n: number, ends: [number, number][]): number[] {
  const next: number[][] = Array.from({ length: n }, () => []);
  const degree = new Array<number>(n).fill(0);
  for (const [a, b] of ends) {
    next[a].push(b);
    degree[b]++;
  }
  const rank = new Array<number>(n).fill(0);
  const ready = degree.flatMap((d, i) => (d === 0 ? [i] : []));
  for (let k = 0; k < ready.length; k++) {
    for (const j of next[ready[k]]) {
      rank[j] = Math.max(rank[j], rank[ready[k]] + 1);
      if (--degree[j] === 0) ready.push(j);
    }
  }
  return rank;
}
