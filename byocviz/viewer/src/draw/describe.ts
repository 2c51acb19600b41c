/** What is written on a node, and how large it is. Pure but for measuring text. */
import type { Model } from "../data/model";
import type { Item } from "../graph/tree";
import type { Size } from "../graph/dot";
import { textWidth } from "./measure";
import { printable } from "./svg";
import { clip, commonScope, figure, plural, shape, shortOp } from "../data/format";

export interface Description {
  title: string;
  sub: string;
  /** `tvm`, a backend's name, or "" for what runs nowhere (parameters, results). */
  on: string;
  /** Several places at once: a group with operators here and there. */
  mixed: boolean;
  /** Share on a backend, for mixed groups. */
  share: number;
  subgraph: number;
  /** Whether any of it is in a region, not just matched by a rule. */
  inRegion: boolean;
  chip: string;
  composite: string;
  /** Operators inside that stay on TVM for a known reason. */
  reasons: number;
  macs: number | null;
  fold: "" | "closed" | "open";
}

export function describe(model: Model, step: number, item: Item): Description {
  const where = placeOf(model, step, item);
  const base: Description = {
    title: "", sub: "", ...where, composite: "", reasons: 0, macs: 0,
    fold: item.children.length || item.inner ? "closed" : "",
  };
  const here = model.steps[step];
  for (const id of item.ops) {
    if (here.reasons.has(id)) base.reasons++;
    const m = model.op(id).macs;
    base.macs = base.macs === null || m === null ? null : base.macs + m;
  }
  base.composite = item.wraps.find((w) => w.kind === "composite")?.label ?? (item.kind === "composite" ? item.g!.label : "");
  const label = item.g?.label ?? "";
  switch (item.kind) {
    case "op": {
      const op = model.op(item.ops[0] ?? -1);
      base.title = op.id < 0 ? label || "?" : /call_(tir|dps_packed|pure_packed)/.test(op.name) && op.callee ? op.callee : shortOp(op.name);
      base.sub = op.id < 0 ? item.g?.type ?? "" : op.out_types.length > 1 ? `${op.out_types.length} results` : shape(op.out_types[0] ?? "");
      break;
    }
    case "call": {
      if (item.subgraph >= 0) {
        const s = here.subgraphs[item.subgraph];
        base.title = `${base.chip} · ${s?.backend ?? ""}`;
        base.sub = `${plural(s?.op_ids.length ?? item.ops.length, "operator")}${s?.macs ? ` · ${figure(s.macs)} MACs` : ""}`;
        base.chip = "";
      } else {
        base.title = clip(item.callee || model.op(item.ops[0] ?? -1).name || label, 30);
        base.sub = item.inner ? "call of a function" : "call";
      }
      break;
    }
    case "param": base.title = clip(label, 26); base.sub = shape(item.g?.type ?? ""); break;
    case "output": base.title = clip(label || "result", 26); break;
    case "if": base.title = "if"; break;
    case "branch": base.title = label || "branch"; base.sub = plural(item.ops.length, "operator"); break;
    case "function": base.title = clip(label || "function", 26); base.sub = plural(item.ops.length, "operator"); break;
    case "region": base.title = `${base.chip} · ${base.on}`; base.sub = `${plural(item.ops.length, "operator")}${base.macs ? ` · ${figure(base.macs)} MACs` : ""}`; base.chip = ""; break;
    case "composite": base.title = ruleName(label); base.sub = kinds(model, item.ops); break;
    case "chain": base.title = names(model, item.ops, " → ", 3); base.sub = lastShape(model, item.ops); break;
    case "block": base.title = scope(model, item) || names(model, item.ops, " · ", 3); base.sub = plural(item.ops.length, "operator"); break;
    case "run": base.title = `${item.times} × ${runName(model, item)}`; base.sub = plural(item.ops.length, "operator"); break;
    case "chunk": base.title = scope(model, item) || plural(item.ops.length, "operator"); base.sub = kinds(model, item.ops); break;
    default: base.title = clip(label || item.kind, 22); base.sub = item.g?.type ? shape(item.g.type) : item.kind === "plumbing" ? item.g?.kind ?? "" : "";
  }
  // A name can have a million characters; what is measured and drawn of it has not.
  base.title = printable(clip(base.title, 120));
  base.sub = printable(clip(base.sub, 120));
  return base;
}

/** A rule's name without its backend: `tensorrt.nn.conv2d` is `nn.conv2d`. */
export function ruleName(name: string): string {
  const dot = name.indexOf(".");
  return clip(dot > 0 ? name.slice(dot + 1) : name, 30);
}

function placeOf(model: Model, step: number, item: Item): Pick<Description, "on" | "mixed" | "share" | "subgraph" | "chip" | "inRegion"> {
  const here = model.steps[step];
  let subgraph = item.subgraph;
  if (item.subgraph >= 0 && (item.kind === "call" || item.kind === "region")) {
    return { on: here.subgraphs[subgraph]?.backend ?? "", mixed: false, share: 1, subgraph, inRegion: true, chip: `S${subgraph + 1}` };
  }
  let on = "";
  let off = 0;
  let many = false;
  let first = true;
  let inRegion = false;
  for (const id of item.ops) {
    const p = here.places.get(id);
    if (!p) continue;
    if (p.subgraph >= 0) inRegion = true;
    if (p.on !== "tvm") {
      off++;
      on = p.on;
    }
    if (first) subgraph = p.subgraph;
    else if (p.subgraph !== subgraph) many = true;
    first = false;
  }
  if (!item.ops.length) return { on: "", mixed: false, share: 0, subgraph: -1, inRegion: false, chip: "" };
  const mixed = off > 0 && off < item.ops.length;
  if (many) subgraph = -1;
  return {
    on: off ? on : "tvm", mixed, share: off / item.ops.length, subgraph, inRegion,
    chip: subgraph >= 0 ? `S${subgraph + 1}` : "",
  };
}

function names(model: Model, ops: number[], joiner: string, most: number): string {
  const all = ops.map((id) => shortOp(model.op(id).name).replace(/^nn\./, ""));
  const shown = all.slice(0, most).map((n) => clip(n, 16)).join(joiner);
  return all.length > most ? `${shown} +${all.length - most}` : shown;
}

function kinds(model: Model, ops: number[]): string {
  const found = new Map<string, number>();
  for (const id of ops) {
    const name = shortOp(model.op(id).name).replace(/^nn\./, "");
    found.set(name, (found.get(name) ?? 0) + 1);
  }
  const top = [...found].sort((a, b) => b[1] - a[1]).slice(0, 3);
  return clip(top.map(([name, n]) => (n > 1 ? `${n} ${name}` : name)).join(", "), 34);
}

function lastShape(model: Model, ops: number[]): string {
  return shape(model.op(ops[ops.length - 1] ?? -1).out_types[0] ?? "");
}

function scope(model: Model, item: Item): string {
  return clip(commonScope(item.ops.slice(0, 60).map((id) => model.op(id).source)), 28);
}

function runName(model: Model, item: Item): string {
  const first = item.children[0];
  if (!first) return "block";
  if (first.kind === "block" || first.kind === "chain" || first.kind === "chunk") {
    return clip(names(model, first.ops, " · ", 2), 26);
  }
  return clip(describeShort(model, first), 24);
}

function describeShort(model: Model, item: Item): string {
  return item.kind === "composite" ? ruleName(item.g!.label) : names(model, item.ops, " · ", 2);
}

/** Room for the text; the same description always has the same size. */
export function sizeOf(item: Item, d: Description): Size {
  if (item.kind === "if") return { w: 64, h: 40 };
  const right = (d.chip ? textWidth(d.chip, 10.5, 600) + 18 : 0) + (d.fold ? 18 : 0);
  const text = Math.max(textWidth(d.title, 13, 600) + right, textWidth(d.sub, 11, 400));
  const w = Math.min(280, Math.max(item.kind === "op" ? 92 : 76, Math.ceil(text + 30)));
  const plain = item.kind === "param" || item.kind === "output" || item.kind === "const" || item.kind === "plumbing";
  return { w, h: d.sub ? (plain ? 38 : 44) : 30 };
}
