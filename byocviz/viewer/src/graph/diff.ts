/** What happened to each operator between two steps, by id. */
import type { Place, Recording, Step } from "../schema";

export type Change =
  | "added" | "gone" | "composite" | "offloaded" | "region" | "returned" | "outlined" | "moved";

export interface StepDiff {
  changes: Map<number, Change>;
  counts: Map<Change, number>;
}

/** What is drawn and said of each change; the glyph tells it where colour does not. */
export const CHANGES: Record<Change, { glyph: string; label: string; help: string }> = {
  added: { glyph: "+", label: "added", help: "made by this step" },
  gone: { glyph: "−", label: "gone", help: "replaced, folded or removed by the next step" },
  composite: { glyph: "▣", label: "into a composite", help: "matched by a rule" },
  offloaded: { glyph: "→", label: "to the backend", help: "annotated for the backend" },
  region: { glyph: "⊕", label: "merged", help: "now in a region with others" },
  returned: { glyph: "↩", label: "back to TVM", help: "no longer on the backend" },
  outlined: { glyph: "⇱", label: "outlined", help: "now in a function of its own" },
  moved: { glyph: "↷", label: "moved", help: "in another function" },
};

const ORDER: Change[] = ["returned", "gone", "added", "offloaded", "region", "composite", "outlined", "moved"];

export function compareSteps(recording: Recording, a: number, b: number): StepDiff {
  const before = recording.steps[a];
  const after = recording.steps[b];
  const changes = new Map<number, Change>();
  if (before && after && !before.error && !after.error && a !== b) {
    const same = sameSubgraphs(before, after);
    for (const [id, p] of after.places) {
      const was = before.places.get(id);
      const change = was ? moved(was, p, same) : "added";
      if (change) changes.set(id, change);
    }
    for (const id of before.places.keys()) if (!after.places.has(id)) changes.set(id, "gone");
  }
  const counts = new Map<Change, number>();
  for (const kind of ORDER) {
    let n = 0;
    for (const one of changes.values()) if (one === kind) n++;
    if (n) counts.set(kind, n);
  }
  return { changes, counts };
}

function moved(was: Place, is: Place, same: Map<number, number>): Change | null {
  if (was.on !== "tvm" && is.on === "tvm") return "returned";
  if (was.subgraph < 0 && is.subgraph >= 0) return "offloaded";
  if (was.subgraph >= 0 && is.subgraph < 0) return "returned";
  if (was.subgraph >= 0 && same.get(was.subgraph) !== is.subgraph) return "region";
  if (was.composite !== is.composite) return is.composite ? "composite" : "moved";
  if (was.on !== is.on) return "offloaded";
  if (was.graph !== is.graph) return is.subgraph >= 0 ? "outlined" : "moved";
  return null;
}

/** A subgraph is the same while it holds the same operators. */
function sameSubgraphs(before: Step, after: Step): Map<number, number> {
  const sign = (ids: number[]) => ids.slice().sort((x, y) => x - y).join();
  const there = new Map(after.subgraphs.map((s, i) => [sign(s.op_ids), i]));
  const same = new Map<number, number>();
  before.subgraphs.forEach((s, i) => {
    const found = there.get(sign(s.op_ids));
    if (found !== undefined) same.set(i, found);
  });
  return same;
}

/** The change that a node shows for what it holds, and for how many of them. */
export function changeOf(ops: number[], diff: StepDiff): { change: Change; count: number } | null {
  if (ops.length === 1) {
    const change = diff.changes.get(ops[0]);
    return change ? { change, count: 1 } : null;
  }
  const found = new Map<Change, number>();
  for (const id of ops) {
    const change = diff.changes.get(id);
    if (change) found.set(change, (found.get(change) ?? 0) + 1);
  }
  for (const kind of ORDER) {
    const n = found.get(kind);
    if (n) return { change: kind, count: n };
  }
  return null;
}
