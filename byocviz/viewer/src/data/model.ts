/** The recording with the indices that the views ask for, worked out once and when needed. */
import type { FunctionView, Graph, Operator, Place, Recording, Step, Subgraph } from "../schema";
import { buildInstance, type Instance, type TreeOptions } from "../graph/tree";
import { buildView, type View, type ViewSource } from "../graph/view";
import type { Choices } from "../graph/fold";
import { compareSteps, type StepDiff } from "../graph/diff";
import { clip, shortOp } from "./format";

export const NO_OPERATOR: Operator = {
  id: -1, name: "?", function: "", kind: "operator", var: "", source: "", callee: "", attrs: {},
  arg_types: [], out_types: [], macs: 0, param_count: 0, param_bytes: 0, created_by: "",
  replaced_by: [], fate: "", fate_by: "",
};

export class Model {
  /** Backends in the order of their colours. */
  readonly backends: string[];
  private instances = new Map<string, Instance>();
  private diffs = new Map<string, StepDiff>();
  private before: Map<number, number[]> | null = null;
  private drawn = new Map<number, FunctionView[]>();
  private functions: Map<string, FunctionView>[];
  private openings = new Map<string, string>();

  constructor(readonly recording: Recording, readonly messages: string[]) {
    const names = new Set<string>();
    if (recording.backend.name) names.add(recording.backend.name);
    for (const step of recording.steps) for (const s of step.subgraphs) if (s.backend) names.add(s.backend);
    this.backends = [...names];
    this.functions = recording.steps.map((s) => new Map(s.functions.map((f) => [f.name, f])));
  }

  get steps(): Step[] {
    return this.recording.steps;
  }

  op(id: number): Operator {
    return this.recording.ops.get(id) ?? NO_OPERATOR;
  }

  fn(step: number, name: string): FunctionView | undefined {
    return this.functions[step]?.get(name);
  }

  graph(step: number, name: string): Graph | null {
    return this.fn(step, name)?.graph ?? null;
  }

  /** Functions that can be drawn by themselves: the entry first. */
  drawable(step: number): FunctionView[] {
    const known = this.drawn.get(step);
    if (known) return known;
    const found = this.steps[step]?.functions.filter((f) => hasGraph(f)) ?? [];
    this.drawn.set(step, found);
    const entry = this.recording.entry;
    return found.sort((a, b) => Number(b.name === entry) - Number(a.name === entry));
  }

  entry(step: number): string {
    return hasGraph(this.fn(step, this.recording.entry)) ? this.recording.entry : this.drawable(step)[0]?.name ?? "";
  }

  /**
   * The function to begin with: the entry, unless all that the step changed, or every operator, is
   * in others; then the one with most of it. Subgraphs are seen in their caller.
   */
  opening(step: number, from: number | null): string {
    const key = `${step}|${from}`;
    const known = this.openings.get(key) ?? this.mostOf(step, from);
    this.openings.set(key, known);
    return known;
  }

  private mostOf(step: number, from: number | null): string {
    const entry = this.entry(step);
    const changes = from === null ? null : this.diff(from, step).changes;
    const changed = new Map<string, number>();
    const held = new Map<string, number>();
    const own = new Set(this.drawable(step).filter((f) => f.kind !== "subgraph").map((f) => f.name));
    for (const [id, place] of this.steps[step]?.places ?? []) {
      if (!own.has(place.graph) || this.op(id).kind !== "operator") continue;
      held.set(place.graph, (held.get(place.graph) ?? 0) + 1);
      if (changes?.has(id)) changed.set(place.graph, (changed.get(place.graph) ?? 0) + 1);
    }
    const counts = changed.size ? changed : held;
    if (counts.has(entry)) return entry;
    return [...counts].reduce((best, one) => (one[1] > best[1] ? one : best), [entry, 0])[0];
  }

  source(step: number, plumbing: boolean): ViewSource {
    const options: TreeOptions = {
      plumbing,
      nameOf: (id) => this.op(id).name,
      drawn: (fn) => hasGraph(this.fn(step, fn)),
    };
    return {
      ...options,
      graphOf: (fn) => this.graph(step, fn),
      siteOf: (fn, subgraph) => Math.max(0, this.fn(step, fn)?.sites.indexOf(subgraph) ?? 0),
    };
  }

  view(step: number, fn: string, choices: Choices, plumbing = false, budget?: number): View | null {
    const graph = this.graph(step, fn);
    if (!graph) return null;
    const source = this.source(step, plumbing);
    const key = `${step}|${plumbing}|${fn}`;
    let root = this.instances.get(key);
    if (!root) {
      root = buildInstance(graph, fn, "", 0, source);
      for (const item of root.items) {
        // An outlined subgraph stands for its operators.
        if (item.kind === "call" && item.subgraph >= 0) {
          const inside = this.steps[step].subgraphs[item.subgraph]?.op_ids;
          if (inside?.length) item.ops = [...new Set([...inside, ...item.ops])];
        }
      }
      this.instances.set(key, root);
    }
    return buildView(root, choices, source, budget);
  }

  diff(a: number, b: number): StepDiff {
    const key = `${a}|${b}`;
    let found = this.diffs.get(key);
    if (!found) this.diffs.set(key, (found = compareSteps(this.recording, a, b)));
    return found;
  }

  place(step: number, op: number): Place | undefined {
    return this.steps[step]?.places.get(op);
  }

  subgraphOf(step: number, op: number): Subgraph | undefined {
    const p = this.place(step, op);
    return p && p.subgraph >= 0 ? this.steps[step].subgraphs[p.subgraph] : undefined;
  }

  /** Ids of the same operator at another step: itself, what replaced it, or what it replaced. */
  counterparts(op: number, step: number): number[] {
    const places = this.steps[step]?.places;
    if (!places) return [];
    if (places.has(op)) return [op];
    if (!this.before) {
      this.before = new Map();
      for (const one of this.recording.ops.values()) {
        for (const to of one.replaced_by) {
          const list = this.before.get(to);
          if (list) list.push(one.id);
          else this.before.set(to, [one.id]);
        }
      }
    }
    const seen = new Set([op]);
    const found: number[] = [];
    for (const next of [(id: number) => this.op(id).replaced_by, (id: number) => this.before!.get(id) ?? []]) {
      const todo = [op];
      while (todo.length && seen.size < 5000) {
        for (const to of next(todo.pop()!)) {
          if (seen.has(to)) continue;
          seen.add(to);
          if (places.has(to)) found.push(to);
          else todo.push(to);
        }
      }
    }
    return found;
  }

  /** What a subgraph is called here: its own names can have thousands of characters. */
  subgraphTitle(step: number, index: number): string {
    const s = this.steps[step]?.subgraphs[index];
    if (!s) return `Subgraph ${index}`;
    return `S${index + 1}`;
  }

  opTitle(id: number): string {
    const op = this.op(id);
    return clip(op.callee && op.name.includes("call") ? `${shortOp(op.name)} ${op.callee}` : shortOp(op.name), 42);
  }
}

/** Whether a function is drawn by itself, without reading its graph. */
function hasGraph(f: FunctionView | undefined): boolean {
  if (!f) return false;
  const field = Object.getOwnPropertyDescriptor(f, "graph");
  return field?.get !== undefined || field?.value != null;
}
