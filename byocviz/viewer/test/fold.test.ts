import assert from "node:assert/strict";
import { test } from "node:test";
import { BUDGET, openItems } from "../src/graph/fold";
import { findRuns } from "../src/graph/runs";
import type { Item } from "../src/graph/tree";
import { neighbours, wayTo, type View } from "../src/graph/view";
import { toDot } from "../src/graph/dot";
import { plainLayout } from "../src/layout/fallback";
import { chain, model, opsOf, random, single, stepOf, type Made } from "./made";

const none = new Map<string, boolean>();

function acyclic(view: View): boolean {
  const degree = new Map<Item, number>();
  for (const e of view.edges) degree.set(e.dst, (degree.get(e.dst) ?? 0) + 1);
  const ready = view.nodes.filter((one) => !degree.get(one));
  let seen = 0;
  while (ready.length) {
    const at = ready.pop()!;
    seen++;
    for (const e of view.edges) {
      if (e.src !== at) continue;
      degree.set(e.dst, degree.get(e.dst)! - 1);
      if (degree.get(e.dst) === 0) ready.push(e.dst);
    }
  }
  return seen === view.nodes.length;
}

function everyOnce(view: View, ops: number): void {
  const counts = new Map<number, number>();
  for (const node of view.nodes) for (const id of node.ops) counts.set(id, (counts.get(id) ?? 0) + 1);
  assert.equal(counts.size, ops);
  for (const [id, n] of counts) assert.equal(n, 1, `operator ${id} is in ${n} visible nodes`);
}

/** A module whose operators read one or two earlier results. */
function randomModule(size: number, seed: number, kinds = 4): Made {
  const next = random(seed);
  const made = chain([]);
  made.nodes = [["param", "x"]];
  made.edges = [];
  made.names = {};
  for (let id = 0; id < size; id++) {
    made.nodes.push(["op", `lv${id}`, [id]]);
    made.names[id] = `relax.op${Math.floor(next() * kinds)}`;
    const reads = next() < 0.3 ? 2 : 1;
    for (let k = 0; k < reads; k++) {
      const back = 1 + Math.floor(next() ** 3 * Math.min(id + 1, 30));
      made.edges.push([Math.max(0, id + 1 - back), id + 1, k]);
    }
  }
  made.nodes.push(["output", "result"]);
  made.edges.push([size, size + 1]);
  return made;
}

test("a small function is drawn whole", () => {
  const m = single(chain(["a", "b", "c"]));
  const view = m.view(0, "main", none)!;
  assert.deepEqual(view.nodes.map((n) => n.kind), ["param", "op", "op", "op", "output"]);
  assert.equal(view.edges.length, 4);
});

test("folding never makes a cycle, hides no operator and keeps to its budget", () => {
  for (let seed = 1; seed <= 30; seed++) {
    const size = 20 + seed * 37;
    const view = single(randomModule(size, seed)).view(0, "main", none)!;
    assert.ok(acyclic(view), `seed ${seed}`);
    everyOnce(view, size);
    const least = view.root.top.length;
    assert.ok(least <= 240 && view.nodes.length <= Math.max(BUDGET, least), `${view.nodes.length} nodes of ${size} operators`);
  }
});

test("any choice of what is open leaves each operator in one node and no cycle", () => {
  for (let seed = 1; seed <= 12; seed++) {
    const m = single(randomModule(300, seed, 3));
    const root = m.view(0, "main", none)!.root;
    const next = random(seed * 99);
    const choices = new Map<string, boolean>();
    const walk = (item: Item) => {
      if (item.children.length) choices.set(item.key, next() < 0.6);
      item.children.forEach(walk);
    };
    root.top.forEach(walk);
    const view = m.view(0, "main", choices)!;
    everyOnce(view, 300);
    assert.ok(acyclic(view), `seed ${seed}`);
  }
});

test("open all shows every operator by itself", () => {
  const m = single(randomModule(400, 7));
  const view = m.view(0, "main", none, false, 1e9)!;
  assert.equal(view.nodes.filter((n) => n.kind === "op").length, 400);
});

test("repeated blocks become a run of as many", () => {
  const names: string[] = ["start"];
  for (let i = 0; i < 12; i++) names.push("relax.nn.conv2d", "relax.add", "relax.nn.relu");
  names.push("end", "end2", "end3");
  const root = single(chain(names)).view(0, "main", none)!.root;
  const run = root.top.find((one) => one.kind === "run")!;
  assert.equal(run.times, 12);
  assert.equal(run.ops.length, 36);
  assert.ok(run.children.every((block) => block.ops.length === 3));
});

test("blocks that are wired differently are not taken for repeats", () => {
  const made = chain(Array.from({ length: 8 }, () => ["a", "b", "c"]).flat());
  // In one block "c" reads "a" as well.
  made.edges.push([13, 15, 1]);
  const root = single(made).view(0, "main", none)!.root;
  const run = root.top.find((one) => one.kind === "run")!;
  assert.ok(run.times < 8, `${run.times}`);
});

test("runs do not overlap and come in order", () => {
  const next = random(3);
  for (let k = 0; k < 50; k++) {
    const signs = Array.from({ length: 200 }, () => Math.floor(next() * 3));
    let end = 0;
    for (const run of findRuns(signs, () => true)) {
      assert.ok(run.start >= end);
      end = run.start + run.period * run.times;
      for (let i = run.start; i + run.period < end; i++) assert.equal(signs[i], signs[i + run.period]);
    }
    assert.ok(end <= 200);
  }
});

test("ten thousand operators come down to a few hundred nodes", () => {
  const view = single(randomModule(10_000, 5, 6)).view(0, "main", none)!;
  assert.ok(view.nodes.length < 400, `${view.nodes.length}`);
  everyOnce(view, 10_000);
});

test("constants and tuples are passed through", () => {
  const view = single({
    nodes: [["param", "x"], ["const", "w"], ["op", "a", [0]], ["get", "g"], ["tuple", "t"], ["output", "r"]],
    edges: [[0, 2, 0], [1, 2, 1], [2, 3, 0, 1], [3, 4, 0], [0, 4, 1], [4, 5]],
  }).view(0, "main", none)!;
  assert.deepEqual(view.nodes.map((n) => n.kind), ["param", "op", "output"]);
  assert.equal(view.nodes[1].consts, 1);
  assert.deepEqual(view.edges.map((e) => [e.src.kind, e.dst.kind]).sort(), [["op", "output"], ["param", "op"], ["param", "output"]]);
});

test("a composite of one operator is drawn as that operator", () => {
  const view = single({
    nodes: [["param", "x"], ["composite", "t.add"], ["op", "a", [0], 1], ["output", "r"]],
    edges: [[0, 2], [2, 3]],
  }).view(0, "main", none)!;
  assert.equal(view.boxes.length, 0);
  assert.equal(view.nodes[1].wraps[0].label, "t.add");
});

test("an outlined subgraph opens in place with the caller's values", () => {
  const raw = {
    ops: { 0: { id: 0, name: "relax.add" }, 1: { id: 1, name: "relax.exp" } },
    steps: [{
      name: "partition",
      subgraphs: [{ name: "f", backend: "t", function: "f", op_ids: [0, 1] }],
      places: { 0: ["f", "f", 1], 1: ["f", "f", 2] },
      functions: [
        { name: "main", graph: { nodes: [["param", "x"], ["call", "lv", [], -1, "", "f", 0], ["get", "g"], ["output", "r"]], edges: [[0, 1, 0], [1, 2, 0, 1], [2, 3]] } },
        { name: "f", sites: [0], graph: { nodes: [["param", "p"], ["op", "a", [0]], ["op", "b", [1]], ["output", "r"]], edges: [[0, 1], [1, 2], [1, 3, 0], [2, 3, 1]] } },
      ],
    }],
  };
  const m = model(raw);
  const closed = m.view(0, "main", none)!;
  const call = closed.nodes.find((n) => n.kind === "call")!;
  assert.deepEqual(call.ops, [0, 1]);
  const open = m.view(0, "main", new Map([[call.key, true]]))!;
  assert.deepEqual(open.nodes.map((n) => n.kind), ["param", "op", "op", "output"]);
  // The caller takes the second result, which is operator 1's.
  assert.deepEqual(open.edges.map((e) => `${e.src.ops[0] ?? e.src.kind}>${e.dst.ops[0] ?? e.dst.kind}`).sort(), ["0>1", "1>output", "param>0"]);
});

test("a function that calls itself opens only as far as it is asked", () => {
  const m = model({
    ops: { 0: { id: 0, name: "f", kind: "call" } },
    steps: [{ name: "import", places: { 0: ["f", "f", 1] }, functions: [{ name: "f", graph: { nodes: [["param", "x"], ["call", "r", [0], -1, "", "f"], ["output", "o"]], edges: [[0, 1], [1, 2]] } }] }],
    entry: "f",
  });
  const call = m.view(0, "f", none)!.nodes[1];
  const once = m.view(0, "f", new Map([[call.key, true]]))!;
  assert.equal(once.boxes.length, 1);
});

test("the way to an operator names the boxes that hide it", () => {
  const m = single(randomModule(900, 11));
  const view = m.view(0, "main", none)!;
  const hidden = [...view.seat].find(([, item]) => item.children.length)![0];
  const choices = new Map(wayTo(view.root, hidden)!.map((item) => [item.key, true]));
  const opened = m.view(0, "main", choices)!;
  assert.equal(opened.seat.get(hidden)!.kind, "op");
});

test("neighbours are reached along edges either way", () => {
  const view = single(chain(["a", "b", "c", "d", "e"])).view(0, "main", none)!;
  assert.equal(neighbours(view, [view.nodes[3]], 1).size, 3);
  assert.equal(neighbours(view, [view.nodes[3]], 2).size, 5);
});

test("keys are the same at two steps for the same operators", () => {
  const made = randomModule(500, 21);
  const m = model({ ops: opsOf(made), steps: [stepOf("import", made), stepOf("prepare", made)] });
  const keys = (step: number) => m.view(step, "main", none)!.nodes.map((n) => n.key);
  assert.deepEqual(keys(0), keys(1));
});

test("a closed choice wins over the budget", () => {
  const m = single(chain(Array.from({ length: 8 }, () => ["a", "b", "c"]).flat()));
  const root = m.view(0, "main", none)!.root;
  const run = root.top.find((one) => one.kind === "run")!;
  assert.ok(openItems(root.top, none).has(run));
  assert.ok(!openItems(root.top, new Map([[run.key, false]])).has(run));
});

test("the plain layout places every node of the DOT, cycles or not", () => {
  const made = randomModule(60, 9);
  made.edges.push([50, 3], [20, 20]);
  const view = single(made).view(0, "main", none)!;
  const layout = plainLayout(toDot(view, () => ({ w: 100, h: 40 }), "TB"));
  assert.equal(layout.nodes.filter(Boolean).length, view.nodes.length);
  assert.equal(layout.boxes.filter(Boolean).length, view.boxes.length);
  assert.ok(layout.width > 0 && layout.height > 0);
});
