/** What became of the branches of an "if". Pure functions over the record. */
import type { Graph, Subgraph } from "../schema";
import type { Model } from "../data/model";

/**
 * Whether a subgraph holds operators of both branches of one "if". TVM moves them before it when it
 * merges their regions, so the last step before that draws them in branches is asked.
 */
export function bothBranches(model: Model, step: number, sub: Subgraph): boolean {
  for (let at = step; at >= 0; at--) {
    // Box of the branch by graph and "if": an operator lies in one of each that is round it.
    const seen = new Map<string, number>();
    for (const id of sub.op_ids) {
      const place = model.place(at, id);
      const graph = place ? model.graph(at, place.graph) : null;
      if (!place || !graph) continue;
      for (const [box, owner] of branchesRound(graph, place.node)) {
        const key = `${place.graph}|${owner}`;
        const other = seen.get(key);
        // At the step itself the "if" would be inside the subgraph, and decide.
        if (other !== undefined && other !== box) return at < step;
        seen.set(key, box);
      }
    }
    if (seen.size) return false;
  }
  return false;
}

/** The branch boxes round a node with their "if" nodes, from the inside out. */
function branchesRound(graph: Graph, node: number): [number, number][] {
  const found: [number, number][] = [];
  for (let at = graph.nodes[node]?.parent ?? -1, left = graph.nodes.length; at >= 0 && left > 0; at = graph.nodes[at]?.parent ?? -1, left--) {
    const box = graph.nodes[at];
    if (box?.kind === "branch" && box.owner >= 0) found.push([at, box.owner]);
  }
  return found;
}
