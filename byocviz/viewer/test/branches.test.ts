import assert from "node:assert/strict";
import { test } from "node:test";
import { besideTip, type Taken } from "../src/draw/nodes";
import { bothBranches } from "../src/graph/branches";
import { model, opsOf, random, stepOf, type Made } from "./made";

/** relu, then an "if" with an operator in either branch; merged, both stand before it. */
const apart: Made = {
  nodes: [
    ["param", "x"], ["op", "a", [0]], ["if", "if"], ["branch", "then", [], -1, "", "", -1, 2], ["op", "b", [1], 3],
    ["branch", "else", [], -1, "", "", -1, 2], ["op", "c", [2], 5], ["output", "result"],
  ],
  edges: [[0, 1], [1, 4], [1, 6], [0, 2], [4, 2, 1], [6, 2, 2], [2, 7]],
};
const merged: Made = {
  nodes: [["param", "x"], ["region", "r", [], -1, "", "", 0], ["op", "a", [0], 1], ["op", "b", [1], 1], ["op", "c", [2], 1], ["if", "if"], ["output", "result"]],
  edges: [[0, 2], [2, 3], [2, 4], [0, 5], [3, 5, 1], [4, 5, 2], [5, 6]],
};

function held(step: Made, ...ids: number[]): boolean {
  const sub = { name: "s", backend: "b", function: "s", op_ids: ids };
  const made = model({ steps: [stepOf("annotate", apart), stepOf("merge", step, { subgraphs: [sub] })], ops: opsOf(apart) });
  return bothBranches(made, 1, made.steps[1].subgraphs[0]);
}

test("a subgraph with both branches of an if is known by the step before", () => {
  assert.equal(held(merged, 0, 1, 2), true);
  assert.equal(held(merged, 1, 2), true);
  for (const ids of [[0, 1], [0, 2], [1], [0], [], [99]]) assert.equal(held(merged, ...ids), false, String(ids));
  // The "if" itself is in the subgraph, and decides.
  assert.equal(held(apart, 0, 1, 2), false);
});

test("labels at a diamond lie clear of each other, wherever their lines come from", () => {
  const next = random(3);
  for (let k = 0; k < 500; k++) {
    const taken: Taken[] = [];
    for (const width of [52, 25, 22]) besideTip([next() * 64, next() * 40, (next() - 0.5) * 2 * Math.PI], width, taken);
    assert.equal(taken.length, 3);
    for (const [i, a] of taken.entries()) {
      for (const b of taken.slice(i + 1)) assert.ok(a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1]);
    }
  }
});
