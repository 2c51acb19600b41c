import assert from "node:assert/strict";
import { test } from "node:test";
import { LINE, classColours, labelWidth, place } from "../src/data/boxes";
import { decode } from "../src/data/decode";
import { WIDE, axis, baseline, csv, groups, isWide, medians, niceStep, noisy, speedup, split, verdict } from "../src/data/latency";
import { holds, picture, results, type Latency, type Variant } from "../src/data/results";
import { random } from "./made";

function variant(more: Record<string, unknown> = {}): Variant {
  return results({ latency: { variants: [{ name: "v", kind: "byoc", median: 0.1, ...more }] } }).latency!.variants[0];
}

test("fields that were left out have the schema's defaults", () => {
  const r = results({ build: { runtime: "onnxruntime" }, check: {}, latency: {}, photos: [{ name: "p", width: 3, height: 4 }] });
  assert.equal(r.build!.title, "onnxruntime");
  assert.equal(r.build!.codegen, "python");
  assert.deepEqual([r.build!.lower_seconds, r.build!.tvm_seconds, r.build!.engines], [0, 0, []]);
  assert.deepEqual(r.check!.differences, []);
  assert.deepEqual(r.latency!.variants, []);
  assert.deepEqual(r.photos[0].detected, []);
  const v = variant();
  assert.deepEqual([v.p10, v.first, v.subgraphs, v.boundary_bytes, v.coverage_ops, v.cannot, v.setting], [null, null, null, null, null, "", ""]);
});

test("what is absent, null or of another type holds nothing", () => {
  for (const raw of [undefined, null, 3, "x", [], {}, { build: null, check: 3, latency: [], photos: {} }, { photos: [null, 3, { width: 0, height: 5 }] }]) {
    assert.equal(holds(results(raw)), false);
  }
  assert.equal(holds(results({ check: {} })), true);
  const { recording } = decode({ steps: [{ name: "import" }], results: { latency: {} }, extra: { a: 1 } });
  assert.equal(holds(recording.results), true);
  assert.deepEqual(recording.extra, { a: 1 });
});

test("figures below zero, unknown or infinite are not known", () => {
  for (const median of [-1, null, "1", Number.NaN, Number.POSITIVE_INFINITY, {}]) assert.equal(variant({ median }).median, null);
  assert.equal(variant({ median: 0 }).median, 0);
  assert.deepEqual(variant({ seconds: [1, -1, null, "2", 3] }).seconds, [1, 3]);
});

test("only a PNG or JPEG in the page itself is a picture", () => {
  for (const good of ["data:image/png;base64,AAAA", "data:image/jpeg;base64,AA/+A==", `data:image/jpeg;base64,${"A".repeat(3_000_000)}`]) assert.equal(picture(good), good);
  for (const bad of ["", null, 3, "https://x/y.png", "data:image/svg+xml;base64,AAAA", "data:image/webp;base64,AAAA", "data:image/png;base64,A\nA", "data:image/png;base64,A\"A", "data:image/png,AAAA", " data:image/png;base64,AAAA", "data:image/png;base64,AAAA\n", "data:image/png;base64,===="]) {
    assert.equal(picture(bad), "", String(bad));
  }
});

test("a module's parent comes before it, or it is a root", () => {
  const { tree } = results({ build: { tree: [{ kind: "a", parent: 0 }, { kind: "b", parent: 0 }, { kind: "c", parent: 7 }, { kind: "d", parent: -5 }, { kind: "e", parent: "x" }] } }).build!;
  assert.deepEqual(tree.map((n) => n.parent), [-1, 0, -1, -1, -1]);
});

test("an axis holds every bar and whisker, in order, its ticks within it", () => {
  const next = random(5);
  for (let k = 0; k < 400; k++) {
    const log = next() < 0.5;
    const variants = Array.from({ length: 1 + Math.floor(next() * 9) }, () => {
      const median = 10 ** (next() * 12 - 9);
      return variant({ median, p10: median * (0.5 + next() / 2), p90: median * (1 + next() * 3) });
    });
    const on = axis(variants, log)!;
    assert.ok(on.ticks.length >= 2 && on.ticks.length <= 20, `${on.ticks.length} ticks`);
    for (const t of on.ticks) assert.ok(t >= on.low * 0.999 && t <= on.high * 1.001);
    for (let i = 1; i < on.ticks.length; i++) assert.ok(on.ticks[i] > on.ticks[i - 1]);
    const all = variants.flatMap((v) => [v.p10!, v.median!, v.p90!]).sort((a, b) => a - b);
    for (let i = 0; i < all.length; i++) {
      assert.ok(on.at(all[i]) > 0 && on.at(all[i]) <= 1);
      if (i) assert.ok(on.at(all[i]) >= on.at(all[i - 1]));
    }
    assert.ok(Math.abs(on.at(on.high) - 1) < 1e-9);
  }
});

test("no axis where nothing was timed", () => {
  for (const v of [variant({ median: null }), variant({ median: 0 }), variant({ cannot: "no" })]) assert.equal(axis([v], false), null);
  assert.equal(axis([], true), null);
});

test("the logarithm is offered above the ratio, not at it, and what cannot run does not count", () => {
  const of = (a: number, b: number, more = {}) => [variant({ median: a }), variant({ median: b, ...more })];
  assert.equal(isWide(of(1, WIDE)), false);
  assert.equal(isWide(of(1, WIDE * 1.01)), true);
  assert.equal(isWide(of(1, WIDE * 2, { cannot: "x" })), false);
  assert.deepEqual(medians(of(1, 2, { cannot: "x" })), [1]);
});

test("steps are 1, 2 or 5 times a power of ten and not less", () => {
  const next = random(2);
  for (let k = 0; k < 300; k++) {
    const value = 10 ** (next() * 20 - 10);
    const step = niceStep(value);
    assert.ok(step >= value * 0.999999 && step <= value * 10);
    assert.match(step.toExponential(), /^[125]e/);
  }
});

test("groups keep the order, what has no setting first", () => {
  const made = ["b", "", "a", "b"].map((setting, i) => variant({ setting, name: String(i) }));
  assert.deepEqual(groups(made).map((g) => [g.setting, g.variants.map((v) => v.name)]), [["", ["1"]], ["b", ["0", "3"]], ["a", ["2"]]]);
});

test("speed is told against TVM alone of the same setting, else the first", () => {
  const alone = variant({ kind: "tvm", median: 1 });
  const other = variant({ kind: "tvm", median: 4, setting: "s" });
  const mine = variant({ median: 0.5, setting: "s" });
  const all = [alone, other, mine];
  assert.equal(baseline(mine, all), other);
  assert.equal(speedup(mine, all), 8);
  assert.equal(speedup(variant({ median: 0.5, setting: "x" }), all), 2);
  assert.equal(speedup(alone, all), null);
  assert.equal(speedup(variant({ median: 0.5 }), []), null);
  assert.equal(speedup(variant({ median: 0.5, cannot: "x" }), all), null);
  assert.equal(speedup(variant({ median: 0 }), all), null);
  assert.equal(speedup(variant({ kind: "part" }), all), null);
});

test("time in the subgraphs and between them", () => {
  const parts = split(variant({ parts: [{ name: "a", median: 0.1 }, { name: "TVM", median: 0.3 }, { name: "b", median: null }, { name: "c", median: 0.2 }] }))!;
  assert.deepEqual([parts.inside.toFixed(3), parts.between, parts.most, parts.subgraphs.length], ["0.300", 0.3, 0.2, 3]);
  assert.equal(split(variant()), null);
  assert.equal(split(variant({ parts: [{ name: "a", median: null }] })), null);
});

test("CSV keeps every cell, whatever is in it", () => {
  const names = ['a "quoted", name', "two\nlines", "=SUM(A1)", "+1", "@x", "", "名前"];
  const latency = results({ latency: { variants: names.map((name) => ({ name, kind: "tvm", median: 0.25, note: name })) } }).latency as Latency;
  const read = parseCsv(csv(latency));
  assert.equal(read.length, names.length + 1);
  assert.ok(read.every((row) => row.length === read[0].length));
  read.slice(1).forEach((row, i) => {
    assert.equal(row[1].replace(/^'/, ""), names[i]);
    assert.equal(Number(row[3]), 0.25);
    assert.ok(!/^[=+@-]/.test(row[1]));
  });
});

function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  for (const m of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    row.push(m[1] === undefined ? m[2] : m[1].replaceAll('""', '"'));
    if (m[3] !== ",") {
      rows.push(row);
      row = [];
    }
  }
  return rows;
}

test("boxes and their labels stay on the photo; labels only meet where there is no room", () => {
  const next = random(11);
  for (let k = 0; k < 300; k++) {
    const photo = { width: 1 + next() * 900, height: 1 + next() * 900 };
    const frame = { width: 150 + next() * 900, height: 100 + next() * 600 };
    const found = Array.from({ length: 1 + Math.floor(next() * 3) }, (_, i) => ({
      label: "thing", score: 0.5, index: i,
      box: [0, 1, 2, 3].map((j) => (next() * 1.4 - 0.2) * (j % 2 ? photo.height : photo.width)) as [number, number, number, number],
    }));
    const texts = found.map(() => "thing 0.500");
    const placed = place(found, photo, frame, texts);
    const line = LINE / frame.height;
    for (const { box, tag } of placed) {
      assert.ok(box.every((v) => v >= 0 && v <= 1) && box[0] <= box[2] && box[1] <= box[3]);
      assert.ok(tag.y >= 0 && tag.y <= 1 - Math.min(0.5, line) + 1e-9 && tag.x >= 0 && tag.x <= 1);
    }
    if (frame.height < 10 * LINE) continue;
    const wide = Math.min(0.7, labelWidth(texts[0]) / frame.width);
    const spans = placed.map(({ tag }) => ({ from: tag.right ? Math.max(0, tag.x - wide) : tag.x, y: tag.y }));
    for (let i = 0; i < spans.length; i++) {
      for (let j = i + 1; j < spans.length; j++) {
        const apart = Math.abs(spans[i].from - spans[j].from) >= wide - 1e-9 || Math.abs(spans[i].y - spans[j].y) >= line - 1e-9;
        // Only a box at the photo's foot leaves a label no place of its own.
        if (!apart) assert.ok(placed[j].box[1] > 1 - 4 * line, `labels ${i} and ${j} of ${k} lie on each other`);
      }
    }
  }
});

test("a class has one colour in all photos, and eight classes have eight", () => {
  const found = Array.from({ length: 8 }, (_, i) => ["x", 0.5, [0, 0, 1, 1], i]);
  const { photos } = results({ photos: [{ width: 9, height: 9, detected: [{ found }] }, { width: 9, height: 9, detected: [{ found: found.slice().reverse() }] }] });
  const colours = classColours(photos);
  assert.equal(new Set(colours.values()).size, 8);
});

test("a ratio within the noise of the runs is no verdict", () => {
  const next = random(11);
  const spread = (median: number, by: number) => ({ median, p10: median / by, p90: median * by });
  for (let k = 0; k < 300; k++) {
    const alone = variant({ kind: "tvm", ...spread(10 ** (next() * 4 - 3), 1 + next() * 2) });
    const v = variant(spread(alone.median! * 10 ** (next() * 2 - 1), 1 + next() * 2));
    const said = verdict(v, [alone, v])!;
    assert.equal(said.ratio, speedup(v, [alone, v]));
    const apart = v.p10! > alone.p90! || v.p90! < alone.p10!;
    if (apart && said.text !== "same") assert.equal(said.faster, v.median! < alone.median! ? "yes" : "no");
    if (said.faster) assert.equal(said.faster === "yes", said.ratio > 1);
    assert.equal(noisy(v), v.p90! / v.p10! > 1.5);
  }
  const alone = variant({ kind: "tvm", ...spread(1, 3) });
  const near = variant(spread(0.97, 3));
  assert.deepEqual([verdict(near, [alone, near])!.text, verdict(near, [alone, near])!.faster], ["same", ""]);
  const within = variant(spread(0.6, 3));
  assert.equal(verdict(within, [alone, within])!.faster, "");
  assert.equal(verdict(alone, [alone, near]), null);
});
