/** What a pane draws: a view with its coordinates, words and marks. */
import type { Change } from "../graph/diff";
import type { Item } from "../graph/tree";
import type { View } from "../graph/view";
import type { Layout } from "../layout/parse";
import type { Description } from "./describe";

export interface Mark { change: Change; count: number; of: number }

export type ColourBy = "place" | "region" | "macs" | "kind";

export interface Scene {
  id: string;
  view: View;
  layout: Layout;
  words: Map<Item, Description>;
  marks: Map<Item, Mark>;
  colourBy: ColourBy;
  backends: string[];
  edgeType: (edge: View["edges"][number]) => string;
}

/** Classes that give a node its colours (viewer.css). */
export function paintClass(item: Item, d: Description, scene: Scene): string {
  if (item.kind === "param" || item.kind === "output") return "p-io";
  if (item.kind === "if" || item.kind === "branch") return "p-flow";
  if (d.on === "") return "p-none";
  switch (scene.colourBy) {
    case "region":
      return d.on === "tvm" ? "p-tvm" : d.subgraph >= 0 ? `p-r${d.subgraph % 6}` : "p-mixed";
    case "macs":
      return d.macs === null ? "p-m0" : `p-m${heat(d.macs)}`;
    case "kind":
      return `p-k${kindOf(d.title)}`;
    default:
      if (d.mixed) return "p-mixed";
      // Matched by a rule of the backend, but not yet in a region of it.
      return d.on === "tvm" ? "p-tvm" : `p-b${Math.max(0, scene.backends.indexOf(d.on)) % 4}${d.inRegion ? "" : " matched"}`;
  }
}

function heat(macs: number): number {
  return macs <= 0 ? 0 : macs < 1e5 ? 1 : macs < 1e6 ? 2 : macs < 1e7 ? 3 : 4;
}

/** Families of operators, told apart in the "kind" colouring. */
function kindOf(title: string): number {
  if (/conv|dense|matmul|linear|attention/.test(title)) return 1;
  if (/relu|clip|sigmoid|tanh|gelu|silu|softmax|exp|erf/.test(title)) return 2;
  if (/reshape|permute|transpose|squeeze|expand|concat|split|slice|flatten|broadcast|stack|pad/.test(title)) return 3;
  if (/pool|mean|sum|max|min|norm/.test(title)) return 4;
  return 0;
}
