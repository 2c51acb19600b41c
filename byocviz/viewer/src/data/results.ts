/**
 * `byocviz/recording/results.py` as TypeScript, and its reading: fields that were left out get
 * their defaults, what is of another type is left out, a figure that is not known is null.
 */
import * as l from "./lenient";
import type { Raw } from "./lenient";

export interface EngineInfo {
  function: string;
  op_ids: number[];
  seconds: number | null;
  cached: boolean;
  bytes: number | null;
  facts: Record<string, string>;
  code: string;
  layers: string;
}

export interface ModuleNode { kind: string; name: string; detail: string; parent: number }

export interface BuildInfo {
  runtime: string;
  title: string;
  stands_in_for: string;
  why: string;
  cannot_run: string;
  codegen: string;
  target: string;
  step: string;
  engines: EngineInfo[];
  lower_seconds: number | null;
  tvm_seconds: number | null;
  tree: ModuleNode[];
  made: string;
  machine: Record<string, string>;
}

export interface Difference {
  name: string;
  kind: string;
  max_abs: number | null;
  max_rel: number | null;
  exceeds: boolean;
  note: string;
}

export interface Check {
  atol: number | null;
  rtol: number | null;
  inputs: string;
  differences: Difference[];
  first: string;
}

export interface Part { name: string; median: number | null }

export interface Variant {
  name: string;
  kind: string;
  setting: string;
  seconds: number[];
  first: number | null;
  median: number | null;
  p10: number | null;
  p90: number | null;
  cannot: string;
  subgraphs: number | null;
  boundary_bytes: number | null;
  coverage_ops: number | null;
  parts: Part[];
  note: string;
}

export interface Latency {
  variants: Variant[];
  repeat: number;
  warmup: number;
  made: string;
  machine: Record<string, string>;
  note: string;
}

/** Left, top, right, bottom, in pixels of the photo. */
export type Box = [number, number, number, number];

export interface Found { label: string; score: number | null; box: Box; index: number }

export interface Detected {
  variant: string;
  kind: string;
  found: Found[];
  max_score: number | null;
  max_box: number | null;
  note: string;
}

export interface Photo {
  name: string;
  width: number;
  height: number;
  /** A data URL of a PNG or JPEG, or empty. */
  image: string;
  detected: Detected[];
}

export interface Results {
  build: BuildInfo | null;
  check: Check | null;
  latency: Latency | null;
  photos: Photo[];
}

export function results(raw: unknown): Results {
  const r = l.dict(raw);
  const part = <T>(value: unknown, read: (r: Raw) => T): T | null =>
    typeof value === "object" && value !== null && !Array.isArray(value) ? read(value as Raw) : null;
  return {
    build: part(r.build, build),
    check: part(r.check, check),
    latency: part(r.latency, latency),
    photos: l.list(r.photos).map((one) => photo(l.dict(one))).filter((one) => one !== null),
  };
}

export function holds(r: Results): boolean {
  return r.build !== null || r.check !== null || r.latency !== null || r.photos.length > 0;
}

/** A figure that cannot be below zero: null where it is not known, or not such a figure. */
function size(value: unknown, fallback: number | null = null): number | null {
  const found = l.figure(value, value === undefined ? fallback : null);
  return found !== null && found >= 0 ? found : null;
}

function build(r: Raw): BuildInfo {
  return {
    runtime: l.text(r.runtime), title: l.text(r.title) || l.text(r.runtime),
    stands_in_for: l.text(r.stands_in_for), why: l.text(r.why), cannot_run: l.text(r.cannot_run), codegen: l.text(r.codegen, "python"),
    target: l.text(r.target), step: l.text(r.step),
    engines: l.list(r.engines).map((one) => engine(l.dict(one))),
    lower_seconds: size(r.lower_seconds, 0), tvm_seconds: size(r.tvm_seconds, 0),
    tree: l.list(r.tree).map((one, i) => module(l.dict(one), i)),
    made: l.text(r.made), machine: l.words(r.machine),
  };
}

function engine(r: Raw): EngineInfo {
  return {
    function: l.text(r.function), op_ids: l.indices(r.op_ids), seconds: size(r.seconds, 0),
    cached: l.flag(r.cached, false), bytes: size(r.bytes), facts: l.words(r.facts),
    code: l.text(r.code), layers: l.text(r.layers),
  };
}

function module(r: Raw, at: number): ModuleNode {
  const parent = l.index(r.parent);
  return {
    kind: l.text(r.kind), name: l.text(r.name), detail: l.text(r.detail),
    // An importer comes before what it imports; anything else would be a loop.
    parent: parent >= 0 && parent < at ? parent : -1,
  };
}

function check(r: Raw): Check {
  return {
    atol: size(r.atol), rtol: size(r.rtol), inputs: l.text(r.inputs), first: l.text(r.first),
    differences: l.list(r.differences).map((one): Difference => {
      const d = l.dict(one);
      return {
        name: l.text(d.name), kind: l.text(d.kind, "output"), max_abs: size(d.max_abs),
        max_rel: size(d.max_rel), exceeds: l.flag(d.exceeds, false), note: l.text(d.note),
      };
    }),
  };
}

function latency(r: Raw): Latency {
  return {
    variants: l.list(r.variants).map((one) => variant(l.dict(one))),
    repeat: l.count(r.repeat), warmup: l.count(r.warmup), made: l.text(r.made),
    machine: l.words(r.machine), note: l.text(r.note),
  };
}

function variant(r: Raw): Variant {
  return {
    name: l.text(r.name), kind: l.text(r.kind), setting: l.text(r.setting),
    seconds: l.list(r.seconds).filter((one): one is number => typeof one === "number" && Number.isFinite(one) && one >= 0),
    first: size(r.first), median: size(r.median), p10: size(r.p10), p90: size(r.p90),
    cannot: l.text(r.cannot), subgraphs: size(r.subgraphs), boundary_bytes: size(r.boundary_bytes),
    coverage_ops: size(r.coverage_ops),
    parts: l.list(r.parts).map((one) => ({ name: l.text(l.dict(one).name), median: size(l.dict(one).median) })),
    note: l.text(r.note),
  };
}

function photo(r: Raw): Photo | null {
  const [width, height] = [l.count(r.width), l.count(r.height)];
  if (width < 1 || height < 1) return null;
  return {
    name: l.text(r.name), width, height, image: picture(r.image),
    detected: l.list(r.detected).map((one): Detected => {
      const d = l.dict(one);
      return {
        variant: l.text(d.variant), kind: l.text(d.kind), note: l.text(d.note),
        found: l.list(d.found).map((f) => found(l.list(f))).filter((f) => f !== null),
        max_score: size(d.max_score), max_box: size(d.max_box),
      };
    }),
  };
}

function found(row: unknown[]): Found | null {
  const box = l.list(row[2]).map((one) => l.figure(one, null));
  if (box.length !== 4 || box.some((one) => one === null)) return null;
  return { label: l.text(row[0]), score: l.figure(row[1], null), box: box as Box, index: l.index(row[3]) };
}

/** Only what is a PNG or JPEG within the page itself may become a picture. */
export function picture(value: unknown): string {
  return typeof value === "string" && /^data:image\/(?:png|jpeg);base64,[A-Za-z0-9+/]+={0,2}$/.test(value) ? value : "";
}
