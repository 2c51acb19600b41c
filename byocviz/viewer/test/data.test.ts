import assert from "node:assert/strict";
import { test } from "node:test";
import { decode } from "../src/data/decode";
import { bytes, clip, commonScope, figure, percent, seconds, shape, thousands } from "../src/data/format";
import { parseQuery, search } from "../src/data/search";
import { diffLines, hunks, pairs, segments } from "../src/data/textdiff";
import { parseLayout } from "../src/layout/parse";
import { changeOf } from "../src/graph/diff";
import { chain, model, opsOf, random, single, stepOf } from "./made";

function apply(lines: ReturnType<typeof diffLines>): [string, string] {
  return [
    lines.filter((l) => l.kind !== "add").map((l) => l.text).join("\n"),
    lines.filter((l) => l.kind !== "del").map((l) => l.text).join("\n"),
  ];
}

test("a line diff gives back both texts, whatever they are", () => {
  const next = random(17);
  for (let k = 0; k < 300; k++) {
    const text = () => Array.from({ length: 1 + Math.floor(next() * 40) }, () => "abcdefgh"[Math.floor(next() * 8)]).join("\n");
    const [a, b] = [text(), text()];
    assert.deepEqual(apply(diffLines(a, b)), [a, b]);
  }
});

test("a line diff of one change is that change", () => {
  const a = Array.from({ length: 400 }, (_, i) => `line ${i}`);
  const b = a.slice();
  b[200] = "other";
  const lines = diffLines(a.join("\n"), b.join("\n"));
  assert.deepEqual(lines.filter((l) => l.kind !== "same").map((l) => [l.kind, l.text]), [["del", "line 200"], ["add", "other"]]);
});

test("long and wholly different texts are compared in time", () => {
  const a = Array.from({ length: 20_000 }, (_, i) => `a${i % 700}`).join("\n");
  const b = Array.from({ length: 20_000 }, (_, i) => `b${i % 600}`).join("\n");
  assert.deepEqual(apply(diffLines(a, b)), [a, b]);
});

test("empty texts", () => {
  assert.deepEqual(diffLines("", ""), []);
  assert.deepEqual(diffLines("", "x").map((l) => l.kind), ["add"]);
});

test("hunks hold every line once", () => {
  const a = Array.from({ length: 100 }, (_, i) => `${i}`).join("\n");
  const lines = diffLines(a, a.replace("\n50\n", "\nfifty\n"));
  assert.deepEqual(hunks(lines).flatMap((h) => h.lines), lines);
  assert.ok(hunks(lines).some((h) => h.kind === "skip"));
});

test("what was taken out stands beside what was put in", () => {
  const rows = pairs(diffLines("a\nb\nc", "a\nx\ny\nc"));
  assert.deepEqual(rows.map((r) => [r.left?.text, r.right?.text]), [["a", "a"], ["b", "x"], [undefined, "y"], ["c", "c"]]);
  assert.deepEqual(segments("let a = 1;", "let b = 1;", "left")!.filter((p) => p.changed), [{ text: "a", changed: true }]);
  assert.equal(segments("let bc = 1;", "let a = 1;", "right")!.map((p) => p.text).join(""), "let bc = 1;");
  assert.equal(segments("abc", "xyz", "left"), null);
});

test("queries: words, filters, quotes, exclusion", () => {
  assert.deepEqual(parseQuery('Conv op:ADD -on:tvm source:"a b" x:y'), {
    words: ["conv", "x:y"],
    filters: [
      { key: "op", value: "add", not: false }, { key: "on", value: "tvm", not: true }, { key: "source", value: "a b", not: false },
    ],
  });
});

test("search finds by operator, place, region, reason, dtype, change and id", () => {
  const made = chain(["relax.nn.conv2d", "relax.add", "relax.exp"]);
  const before = stepOf("import", made);
  const after = stepOf("merge", made, {
    places: { 0: ["f", "main", 1, "trt", "trt.conv", 0], 1: ["main", "main", 2], 2: ["main", "main", 3] },
    subgraphs: [{ name: "f", backend: "trt", function: "f", op_ids: [0] }],
    reasons: { 1: { code: "no-rule", text: "no rule names it" } },
  });
  const ops = opsOf(made) as Record<number, Record<string, unknown>>;
  ops[2].out_types = ["int64[1, 3]"];
  ops[2].source = "block/exp";
  const m = model({ ops, steps: [before, after] });
  const find = (q: string) => search(m, 1, q, m.diff(0, 1));
  assert.deepEqual(find("op:conv2d"), [0]);
  assert.deepEqual(find("on:tvm"), [1, 2]);
  assert.deepEqual(find("-on:tvm"), [0]);
  assert.deepEqual(find("region:s1"), [0]);
  assert.deepEqual(find("region:s2"), []);
  assert.deepEqual(find("reason:"), [1]);
  assert.deepEqual(find("reason:no-rule op:add"), [1]);
  assert.deepEqual(find("dtype:int64"), [2]);
  assert.deepEqual(find("shape:1x3"), [2]);
  assert.deepEqual(find("changed:"), [0]);
  assert.deepEqual(find("source:block"), [2]);
  assert.deepEqual(find("id:1"), [1]);
  assert.deepEqual(find("exp"), [2]);
  assert.deepEqual(find("   "), []);
});

test("what is gone is found where changes are asked for, and only there", () => {
  const made = chain(["relax.nn.conv2d", "relax.add", "relax.exp"]);
  const after = stepOf("prepare", made, { places: { 0: ["main", "main", 1], 2: ["main", "main", 3] } });
  const m = model({ ops: opsOf(made), steps: [stepOf("import", made), after] });
  const find = (q: string) => search(m, 1, q, m.diff(0, 1), 0);
  assert.deepEqual(find("changed:gone"), [1]);
  assert.deepEqual(find("changed:"), [1]);
  assert.deepEqual(find("changed:gone op:exp"), []);
  assert.deepEqual(find("-changed:gone"), [0, 2]);
  assert.deepEqual(find("op:add"), []);
});

test("a drawing begins with the function that holds what a step changed", () => {
  const graph = { nodes: [["op", "lv", [0]]], edges: [] };
  const functions = ["main", "loop", "other", "region"].map((name, i) => ({ name, kind: ["entry", "function", "function", "subgraph"][i], graph }));
  const at = (...where: string[]) => Object.fromEntries(where.map((name, id) => [id, [name, name, 0, id === 1 && name === "loop" ? "t" : "tvm"]]));
  const ops = Object.fromEntries([0, 1, 2].map((id) => [id, { id, name: "relax.add" }]));
  const of = (...places: string[][]) => model({
    ops, entry: "main", steps: places.map((one, i) => ({ name: `s${i}`, functions, places: at(...one) })),
  });
  // The entry holds nothing: the function with most of what changed, else with most operators.
  assert.equal(of(["other", "other", "loop"]).opening(0, null), "other");
  assert.equal(of(["other", "other", "loop"], ["other", "loop", "loop"]).opening(1, 0), "loop");
  // It holds some: it stays. What stands in subgraphs is seen in their caller.
  assert.equal(of(["main", "other", "other"]).opening(0, null), "main");
  assert.equal(of(["region", "region", "region"]).opening(0, null), "main");
});

test("changes between steps, by operator", () => {
  const made = chain(["a", "b"]);
  const raw = {
    ops: { ...opsOf(made), 9: { id: 9, name: "c" } },
    steps: [
      stepOf("merge", made, {
        places: { 0: ["f", "main", 1, "t", "t.a", 0], 1: ["f", "main", 2, "t", "t.b", 0] },
        subgraphs: [{ name: "f", op_ids: [0, 1] }],
      }),
      stepOf("prune", made, { places: { 0: ["main", "main", 1], 9: ["main", "main", 2] }, subgraphs: [] }),
    ],
  };
  const diff = model(raw).diff(0, 1);
  assert.deepEqual([...diff.changes].sort((x, y) => x[0] - y[0]), [[0, "returned"], [1, "gone"], [9, "added"]]);
  assert.deepEqual(changeOf([0, 9], diff), { change: "returned", count: 1 });
});

test("counterparts follow what replaced an operator, both ways, round cycles", () => {
  const made = chain(["a", "b"]);
  const raw = {
    ops: { 0: { id: 0, name: "a", replaced_by: [5], fate: "replaced" }, 1: { id: 1, name: "b" }, 5: { id: 5, name: "m", replaced_by: [6, 0], fate: "replaced" }, 6: { id: 6, name: "c" } },
    steps: [stepOf("import", made), stepOf("prepare", made, { places: { 1: ["main", "main", 2], 6: ["main", "main", 1] } })],
  };
  const m = model(raw);
  assert.deepEqual(m.counterparts(0, 1), [6]);
  assert.deepEqual(m.counterparts(6, 0), [0]);
  assert.deepEqual(m.counterparts(1, 0), [1]);
});

test("foreign data is decoded without throwing, and says what it left out", () => {
  for (const raw of [null, 3, "x", [], {}, { steps: 7 }, { steps: [null, 3, { functions: [{ graph: 5 }] }], ops: { x: 1 } }]) {
    const { recording, messages } = decode(raw);
    assert.ok(Array.isArray(recording.steps));
    if (!recording.steps.length) assert.ok(messages.length);
  }
});

test("dangling edges, boxes inside themselves and unknown kinds", () => {
  const m = single({
    nodes: [["box", "odd", [0]], ["composite", "a", [], 2], ["composite", "b", [], 1], ["op", "x", [1], 99]],
    edges: [[0, 77], [3, 0], [-1, 2]],
  });
  assert.equal(m.messages.length, 2);
  const view = m.view(0, "main", new Map())!;
  assert.ok(view.nodes.some((n) => n.kind === "other"));
  assert.equal(view.edges.length, 1);
});

test("cyclic edges are drawn", () => {
  const made = chain(Array.from({ length: 30 }, (_, i) => `op${i % 4}`));
  made.edges.push([25, 2]);
  const view = single(made).view(0, "main", new Map())!;
  assert.ok(view.nodes.length > 0);
});

test("a newer schema is shown with a message", () => {
  const { messages } = decode({ schema: 99, steps: [{ name: "import" }] });
  assert.match(messages.join(), /schema 99/);
});

test("the compact form is the same recording", () => {
  const made = chain(["relax.add", "relax.exp"]);
  const plain = { ops: opsOf(made), steps: [stepOf("import", made)] };
  const strings = [...new Set(["main", "tvm", "", ...made.nodes.flatMap((n) => [n[0], n[1]])])];
  const at = (s: string) => strings.indexOf(s);
  const compact = {
    recording: { ops: opsOf(made), steps: [{ name: "import", functions: [{ name: "main", kind: "entry" }] }] },
    drawings: [[
      { 0: [at("main"), at("main"), 1, at("tvm"), at(""), -1], 1: [at("main"), at("main"), 2, at("tvm"), at(""), -1] },
      [[made.nodes.map((n) => [at(n[0]), at(n[1]), n[2] ?? [], -1, at(""), at(""), -1, -1]), made.edges]],
    ]],
    strings,
  };
  assert.deepEqual(decode(compact).recording, decode(plain).recording);
});

test("Graphviz' JSON becomes coordinates with y downwards", () => {
  const layout = parseLayout(JSON.stringify({
    bb: "0,0,100,200",
    objects: [
      { _gvid: 0, name: "cluster_0", bb: "10,20,60,90" },
      { _gvid: 1, name: "n0", pos: "50,150", width: "1", height: "0.5" },
      { _gvid: 2, name: "n1", pos: "50,50", width: "1", height: "0.5" },
    ],
    edges: [{ tail: 1, head: 2, pos: "50,132 50,110 50,90 50,68" }],
  }));
  assert.deepEqual(layout.nodes[0], [50, 50, 72, 36]);
  assert.deepEqual(layout.boxes[0], [10, 110, 50, 70]);
  assert.equal(layout.edges[0].path, "M50 68C50 90 50 110 50 132");
  assert.deepEqual(layout.edges[0].tip, [50, 132, Math.PI / 2]);
});

test("figures as people write them", () => {
  assert.equal(figure(749_503_856), "750 M");
  assert.equal(figure(9216), "9,216");
  assert.equal(figure(null), "?");
  for (const n of [0, 7, 999, 1000, 1234567, -1234.5, 0.25]) assert.equal(thousands(n), n.toLocaleString("en-US"));
  assert.equal(thousands(1e21), "1e+21");
  assert.equal(bytes(1_080_000), "1.03 MiB");
  assert.equal(bytes(0), "0 B");
  assert.equal(bytes(1024 * 100), "100 KiB");
  assert.equal(percent(301 / 302), "99.7 %");
  assert.equal(percent(1), "100 %");
  assert.equal(percent(0.99999), "> 99.9 %");
  assert.equal(seconds(0.128), "128 ms");
  assert.equal(shape("float32[1, 3, 300, 300]"), "1×3×300×300");
  assert.equal(shape("float32[]"), "scalar");
  assert.equal(clip("abcdefghij", 5).length, 5);
  assert.equal(commonScope(["a/b/c", "a/b/d"]), "b");
  assert.equal(commonScope(["a"]), "");
});
