/** Graphviz' JSON as plain coordinates, in points, y downwards. */

export interface Layout {
  width: number;
  height: number;
  /** x, y of the centre and w, h of node i. */
  nodes: ([number, number, number, number] | null)[];
  /** x, y of the left top and w, h of box j. */
  boxes: ([number, number, number, number] | null)[];
  /** SVG paths of the edges, and their ends, in the order of the input. */
  edges: { src: number; dst: number; path: string; tip: [number, number, number] }[];
  milliseconds: number;
}

interface GvObject {
  _gvid: number; name: string; pos?: string; width?: string; height?: string; bb?: string;
}

interface GvOutput {
  bb?: string;
  objects?: GvObject[];
  edges?: { tail: number; head: number; pos?: string }[];
}

export function parseLayout(json: string, milliseconds = 0): Layout {
  const data = JSON.parse(json) as GvOutput;
  const [, , width, top] = numbers(data.bb ?? "0,0,0,0");
  const layout: Layout = { width, height: top, nodes: [], boxes: [], edges: [], milliseconds };
  const nodeOf = new Map<number, number>();
  for (const one of data.objects ?? []) {
    if (one.name.startsWith("cluster_")) {
      const j = Number(one.name.slice(8));
      const [x0, y0, x1, y1] = numbers(one.bb ?? "");
      layout.boxes[j] = Number.isFinite(y1) ? [x0, top - y1, x1 - x0, y1 - y0] : null;
    } else if (/^n\d+$/.test(one.name) && one.pos) {
      const i = Number(one.name.slice(1));
      const [x, y] = numbers(one.pos);
      layout.nodes[i] = [x, top - y, Number(one.width) * 72, Number(one.height) * 72];
      nodeOf.set(one._gvid, i);
    }
  }
  for (const e of data.edges ?? []) {
    const src = nodeOf.get(e.tail);
    const dst = nodeOf.get(e.head);
    if (src === undefined || dst === undefined || !e.pos) continue;
    layout.edges.push({ src, dst, ...spline(e.pos, top) });
  }
  return layout;
}

function numbers(text: string): number[] {
  return text.split(",").map(Number);
}

/** `e,x,y` or `s,x,y` give an arrow's tip; the rest are the points of a Bézier spline. */
function spline(pos: string, top: number): { path: string; tip: [number, number, number] } {
  const points = pos
    .split(" ")
    .filter((part) => part && !/^[es],/.test(part))
    .map((part) => {
      const [x, y] = numbers(part);
      return [round(x), round(top - y)] as const;
    });
  if (!points.length) return { path: "", tip: [0, 0, 0] };
  let path = `M${points[0][0]} ${points[0][1]}`;
  for (let i = 1; i + 2 < points.length; i += 3) {
    path += `C${points[i].join(" ")} ${points[i + 1].join(" ")} ${points[i + 2].join(" ")}`;
  }
  const [x, y] = points[points.length - 1];
  // The last control point can coincide with the end; the one before gives the direction.
  let k = points.length - 2;
  while (k > 0 && points[k][0] === x && points[k][1] === y) k--;
  const [px, py] = points[Math.max(0, k)];
  return { path, tip: [x, y, Math.atan2(y - py, x - px)] };
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
