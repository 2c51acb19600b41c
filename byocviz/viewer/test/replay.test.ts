import assert from "node:assert/strict";
import { test } from "node:test";
import { results } from "../src/data/results";
import { blocks, spans } from "../src/replay/note";
import { building, paceOf, partsOf } from "../src/replay/pace";
import { bodyOf, firstLine, machine, recordedOn, stopsOf } from "../src/replay/stops";
import { chain, model, opsOf, random, stepOf } from "./made";

const drawn = chain(["relax.add", "relax.exp"]);
const names = ["import", "prepare", "merge", "prune"];

function recording(more: Record<string, unknown> = {}) {
  return model({ steps: names.map((name, i) => stepOf(name, drawn, { changed: i !== 3 })), ops: opsOf(drawn), ...more });
}

test("without stops each change is one, then each result", () => {
  const plain = stopsOf(recording());
  assert.deepEqual(plain.map((one) => names[one.step]), ["import", "prepare", "merge"]);
  const full = stopsOf(recording({ results: { latency: {}, check: {}, photos: [{ name: "p", width: 3, height: 4 }] } }));
  assert.deepEqual(full.slice(3).map((one) => one.card), ["check", "latency", "detections"]);
  assert.ok(full.slice(3).every((one) => one.tab === "results" && one.step === 3));
  assert.deepEqual(stopsOf(model({})), []);
});

test("what a stop names and the recording lacks is left out, and the rest of it stays", () => {
  const stops = [
    { step: "merge", select: { op: 1 }, zoom: [1, 2, 3, 4], layout: "single", from: "import", seconds: 3, note: "n", title: "t" },
    { step: "merg", select: { op: 99 }, zoom: [1, 2, -3, 4], layout: "round", from: "merge", seconds: 0, card: "latency", tab: "results" },
    { step: 3, select: { subgraph: 0 }, zoom: "fit", seconds: 1e9, tab: "ir" },
    null, "text", [], 5,
  ];
  const [first, second, third, ...rest] = stopsOf(recording({ extra: { stops } }));
  assert.deepEqual({ ...first }, { step: 2, title: "t", note: "n", op: 1, sub: null, fn: "", zoom: [1, 2, 3, 4], layout: "single", tab: "graph", left: 0, card: "", seconds: 3 });
  assert.deepEqual([second.step, second.op, second.zoom, second.layout, second.left, second.seconds, second.card, second.tab], [2, null, null, "split", null, null, "", "graph"]);
  assert.deepEqual([third.step, third.sub, third.zoom, third.seconds, third.tab], [2, null, "fit", null, "ir"]);
  assert.equal(rest.length, 4);
  assert.equal(stopsOf(recording({ extra: { stops: "no" } })).length, 3);
  assert.equal(stopsOf(recording({ extra: { stops: Array(5000).fill({}) } })).length, 1000);
});

test("a note's first line is its title, and is not said twice", () => {
  assert.equal(firstLine("\n\n## The *model* as `it` came\nmore"), "The model as it came");
  assert.equal(firstLine("- one [link](http://x)"), "one link");
  assert.equal(firstLine("```\ncode"), "code");
  assert.equal(firstLine(" \n "), "");
  assert.ok(firstLine("word ".repeat(100)).length <= 112);
  assert.equal(bodyOf("# A **b**\n\nrest", "A b"), "rest");
  assert.equal(bodyOf("A\nrest", "another"), "A\nrest");
});

function words(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(words).join("");
  const node = value as { type?: string; props?: { children?: unknown } } | null;
  return node?.props ? `<${node.type}>${words(node.props.children ?? "")}</>` : "";
}

test("emphasis, code, lists, quotes; everything else is text", () => {
  assert.equal(words(spans("a **b** *c* _d_ `e*f*`")), "a <strong>b</> <em>c</> <em>d</> <code>e*f*</>");
  assert.equal(words(spans("snake_case_name and 2 * 3 * 4")), "snake_case_name and 2 * 3 * 4");
  assert.equal(words(spans("[text](javascript:x)")), "text<span> (javascript:x)</>");
  assert.equal(words(spans("\\*not\\* <b>bold</b>")), "*not* <b>bold</b>");
  assert.deepEqual(blocks("a\nb\n\n- x\n  - y\n1. z\n\n> q\n# h\n```\n- c\n```").map((one) => one.kind), ["p", "list", "list", "quote", "h", "code"]);
});

test("no text is lost or takes long, whatever it is", () => {
  const next = random(7);
  const marks = ["*", "_", "`", "[", "](", ")", "**", "#", "- ", "> ", "\n", " ", "a", "1. ", "~~~", "\\", "<b>", "\u202e"];
  for (let round = 0; round < 60; round++) {
    const text = Array.from({ length: 300 }, () => marks[Math.floor(next() * marks.length)]).join("");
    const shown = JSON.stringify(blocks(text)).replace(/[^a]/g, "").length;
    assert.ok(shown >= text.replace(/^\s{0,3}(```+|~~~+)\s*\w*\s*$/gm, "").replace(/[^a]/g, "").length, text);
    for (const line of text.split("\n")) assert.ok(!/\u202e/.test(words(spans(line))));
  }
  const begun = Date.now();
  for (const one of ["*", "_", "`", "[", "# ", "- ", "> ", "**a", "[a](", "_a ", " ", "#", "\\"]) {
    const long = one.repeat(20_000 / one.length);
    for (const b of blocks(`# ${long}x`)) if ("text" in b) spans(b.text);
    spans(`${long}x`);
    firstLine(long);
  }
  // Quadratic in the length it would take minutes.
  assert.ok(Date.now() - begun < 20_000);
});

test("what took moments or minutes is played in seconds, and the pace is said", () => {
  assert.deepEqual(paceOf(2), { factor: 1, text: "in the time that it took" });
  assert.deepEqual(paceOf(0), { factor: 1, text: "in the time that it took" });
  for (let power = -7; power < 6; power += 0.37) {
    const recorded = 10 ** power;
    const { factor, text } = paceOf(recorded);
    const played = recorded / factor;
    assert.ok(played >= 0.79 && played <= 4.01, `${recorded} is played in ${played}`);
    assert.match(text, factor === 1 ? /in the time/ : factor > 1 ? /times faster/ : /times slower/);
  }
});

test("engines are built in turn, each for its own time", () => {
  const build = results({ build: { runtime: "x", lower_seconds: 1, tvm_seconds: 2, engines: [{ function: "a", seconds: 0.5 }, { function: "b", seconds: null }, { function: "c", seconds: 3 }] } }).build!;
  const parts = partsOf(build);
  assert.deepEqual(parts.map((one) => one.seconds), [1, 0.5, 0, 3, 2]);
  const at = (now: number) => building(parts, now)?.at ?? null;
  assert.deepEqual([0, 0.99, 1, 1.49, 1.5, 4.49, 4.5, 6.49, 6.5].map(at), [0, 0, 1, 1, 3, 3, 4, 4, null]);
});

test("where and when it was recorded is said as far as it is known", () => {
  const facts = { processor: "Intel(R) Xeon(R) Processor  @ 2.1GHz", cores: "2", platform: "linux x86_64" };
  assert.equal(recordedOn("2026-11-30T20:46:19+00:00", facts), "recorded 2026-11-30 on Intel Xeon Processor, 2 cores");
  assert.equal(machine({ gpu: "NVIDIA H200 (driver 570)", cores: "1" }), "NVIDIA H200 (driver 570), 1 core");
  assert.equal(recordedOn("", {}), "recorded at an unknown time, where is not known");
  assert.equal(recordedOn("x", { platform: "linux" }), "recorded at an unknown time on linux");
});
