/** What the latency chart shows, worked out from its variants. Pure functions. */
import type { Latency, Part, Variant } from "./results";

/** Above this ratio of the slowest to the fastest, short bars can no longer be told apart. */
export const WIDE = 20;

export interface Axis {
  log: boolean;
  low: number;
  high: number;
  ticks: number[];
  /** Where a time stands, 0 to 1. */
  at: (seconds: number) => number;
}

/** Medians that can be drawn. */
export function medians(variants: Variant[]): number[] {
  return variants.filter((v) => !v.cannot).map((v) => v.median).filter((m): m is number => m !== null && m > 0);
}

export function isWide(variants: Variant[]): boolean {
  const all = medians(variants);
  return all.length > 1 && Math.max(...all) > WIDE * Math.min(...all);
}

/** An axis on which every bar and whisker lies; null where nothing was timed. */
export function axis(variants: Variant[], log: boolean): Axis | null {
  const timed = variants.filter((v) => !v.cannot && v.median !== null && v.median > 0);
  const all = timed.flatMap((v) => [v.median, v.p10, v.p90]).filter((t): t is number => t !== null && t > 0);
  if (!all.length) return null;
  const most = Math.max(...all);
  if (!log) {
    const step = niceStep(most / 5);
    const high = Math.ceil((most * 1.0001) / step) * step;
    const ticks = Array.from({ length: Math.round(high / step) + 1 }, (_, i) => i * step);
    return { log, low: 0, high, ticks, at: (t) => share(t / high) };
  }
  // Half a decade of room, so that the shortest bar still has a length.
  const from = Math.floor(Math.log10(Math.min(...all)) * 2 - 0.3) / 2;
  const to = Math.max(from + 1, Math.ceil(Math.log10(most * 1.02) * 10) / 10);
  const ticks: number[] = [];
  const every = to - from > 8 ? Math.ceil((to - from) / 8) : 1;
  for (let d = Math.floor(from); d <= to; d += every) {
    for (const k of to - from <= 3 ? [1, 2, 5] : [1]) {
      const tick = Number(`${k}e${d}`);
      if (Math.log10(tick) >= from - 1e-9 && Math.log10(tick) <= to + 1e-9) ticks.push(tick);
    }
  }
  return { log, low: 10 ** from, high: 10 ** to, ticks, at: (t) => (t > 0 ? share((Math.log10(t) - from) / (to - from)) : 0) };
}

function share(value: number): number {
  return Math.max(0, Math.min(1, value));
}

/** 1, 2 or 5 times a power of ten, the first that is not less. */
export function niceStep(value: number): number {
  const power = Math.floor(Math.log10(value));
  const lead = value / 10 ** power;
  // Read as a decimal, so that it is one.
  return Number(`${lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10}e${power}`);
}

export interface Group { setting: string; variants: Variant[] }

/** By setting, in the order of the first of each; what belongs to none comes first. */
export function groups(variants: Variant[]): Group[] {
  const by = new Map<string, Variant[]>();
  for (const v of variants) {
    const list = by.get(v.setting);
    if (list) list.push(v);
    else by.set(v.setting, [v]);
  }
  return [...by].map(([setting, of]) => ({ setting, variants: of })).sort((a, b) => Number(a.setting !== "") - Number(b.setting !== ""));
}

/** What a variant is compared to: TVM alone, of its own setting where there is one. */
export function baseline(variant: Variant, all: Variant[]): Variant | null {
  const alone = all.filter((v) => v.kind === "tvm" && !v.cannot && v.median !== null && v.median > 0);
  return alone.find((v) => v.setting === variant.setting) ?? alone[0] ?? null;
}

/** How many times as fast as TVM alone; null where that cannot be said, or for itself. */
export function speedup(variant: Variant, all: Variant[]): number | null {
  const base = baseline(variant, all);
  if (!base || base === variant || variant.cannot || variant.kind === "part" || !variant.median) return null;
  return base.median! / variant.median;
}

/** As in recording/results.py: a 90th percentile above so many times the 10th is said beside the median. */
export const NOISY = 1.5;

export function noisy(v: Variant): boolean {
  return !!v.p10 && !!v.p90 && v.p90 > NOISY * v.p10;
}

/** A ratio to TVM alone in words, and which of the two is the faster one: "" where the runs do not tell. */
export interface Verdict { ratio: number; text: string; faster: "yes" | "no" | "" }

export function verdict(variant: Variant, all: Variant[]): Verdict | null {
  const ratio = speedup(variant, all);
  if (ratio === null) return null;
  const base = baseline(variant, all)!;
  const same = Math.max(ratio, 1 / ratio).toFixed(1) === "1.0";
  const within = (v: Variant, other: Variant) => other.p10 !== null && other.p90 !== null && v.median! >= other.p10 && v.median! <= other.p90;
  const unsure = same || (within(variant, base) && within(base, variant));
  return { ratio, text: same ? "same" : times(ratio), faster: unsure ? "" : ratio > 1 ? "yes" : "no" };
}

export function times(ratio: number): string {
  return `${ratio >= 100 ? ratio.toFixed(0) : ratio >= 10 ? ratio.toFixed(1) : ratio.toFixed(2)}×`;
}

/** `most` is the time of the slowest subgraph. */
export interface Split { subgraphs: Part[]; between: number; inside: number; most: number }

/** Time in the subgraphs and on TVM between them; null where nothing is known of it. */
export function split(variant: Variant): Split | null {
  const subgraphs = variant.parts.filter((p) => p.name !== "TVM");
  const sum = (parts: Part[]) => parts.reduce((total, p) => total + (p.median ?? 0), 0);
  const inside = sum(subgraphs);
  const between = sum(variant.parts.filter((p) => p.name === "TVM"));
  if (inside + between <= 0) return null;
  return { subgraphs, between, inside, most: Math.max(...subgraphs.map((p) => p.median ?? 0), Number.MIN_VALUE) };
}

const COLUMNS = [
  "setting", "variant", "kind", "median_s", "p10_s", "p90_s", "first_s", "runs", "times_as_fast_as_tvm",
  "subgraphs", "boundary_bytes", "coverage_ops", "in_subgraphs_s", "tvm_between_s", "cannot", "note",
];

/** The same figures as RFC 4180 has them, in seconds and bytes. */
export function csv(latency: Latency): string {
  const rows = latency.variants.map((v) => {
    const parts = split(v);
    return [
      v.setting, v.name, v.kind, v.median, v.p10, v.p90, v.first, v.seconds.length, speedup(v, latency.variants),
      v.subgraphs, v.boundary_bytes, v.coverage_ops, parts?.inside ?? null, parts?.between ?? null, v.cannot, v.note,
    ];
  });
  return [COLUMNS, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

function cell(value: string | number | null): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  // A spreadsheet takes what starts so for a formula.
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
