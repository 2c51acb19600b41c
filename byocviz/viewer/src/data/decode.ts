/**
 * From the page's script elements to a `Recording`. Two forms are read: a recording as
 * `msgspec.json.encode` writes it, and the compact one of `render/html.py` (names as numbers into
 * one table, because TVM names a merged function after every operator in it).
 */
import type {
  Blocker, FunctionView, GEdge, GNode, Graph, Operator, Place, Profile, Reason, Recording, Rewrite,
  Separation, Step, StepError, Subgraph, Tensor,
} from "../schema";
import { SCHEMA } from "../schema";
import { fromBase64, gunzip } from "./base64";
import * as l from "./lenient";
import type { Raw } from "./lenient";
import { results } from "./results";

/** Operators times steps up to which all is read before the first drawing. */
const AT_ONCE = 2000;

export interface Decoded { recording: Recording; messages: string[] }

export async function unpack(base64: string): Promise<unknown> {
  return JSON.parse(await gunzip(fromBase64(base64)).text());
}

/** Reads anything; what does not fit is left out and said in `messages`. */
export function decode(raw: unknown): Decoded {
  const messages: string[] = [];
  const outer = l.dict(raw);
  const compact = "drawings" in outer && "recording" in outer;
  const root = compact ? l.dict(outer.recording) : outer;
  if (raw === null || typeof raw !== "object" || Array.isArray(raw)) {
    messages.push("The data in this page is not a recording.");
  }
  const schema = l.count(outer.schema ?? root.schema, SCHEMA);
  if (schema > SCHEMA) {
    messages.push(
      `This recording has schema ${schema}; this viewer knows schema ${SCHEMA} and shows what it ` +
        "understands. Upgrade: pip install --upgrade byocviz",
    );
  }
  const strings = compact ? l.texts(outer.strings) : null;
  const drawings = compact ? l.list(outer.drawings) : [];
  const steps = l.list(root.steps).map((one, i) => {
    const drawn = l.list(drawings[i]);
    return step(l.dict(one), strings, l.dict(drawn[0]), l.list(drawn[1]), messages);
  });
  const rows = Object.keys(l.dict(root.ops)).length * steps.length;
  if (steps.length === 0) messages.push("This recording holds no steps: there is nothing to draw.");
  const ops = new Map<number, Operator>();
  for (const [key, one] of Object.entries(l.dict(root.ops))) {
    const id = Number(key);
    if (Number.isInteger(id)) ops.set(id, operator(id, l.dict(one)));
  }
  const backend = l.dict(root.backend);
  const weights = l.dict(root.weights);
  const decoded: Decoded = {
    messages,
    recording: {
      title: l.text(root.title) || "Untitled recording",
      created: l.text(root.created),
      made_with: l.words(root.made_with),
      ir: l.text(root.ir, "relax"),
      entry: l.text(root.entry, "main"),
      backend: {
        name: l.text(backend.name),
        rules: l.list(backend.rules).map((one) => {
          const r = l.dict(one);
          return {
            name: l.text(r.name), ops: l.texts(r.ops), enabled: l.flag(r.enabled, true),
            check: l.flag(r.check, false), matches: l.count(r.matches),
          };
        }),
      },
      weights: {
        tensors: l.count(weights.tensors), elements: l.count(weights.elements),
        bytes: l.count(weights.bytes), digest: l.text(weights.digest),
      },
      ops,
      steps,
      texts: l.documents(root.texts),
      what_if: Array.isArray(root.what_if) ? root.what_if.map((b) => blocker(l.dict(b))) : null,
      results: results(root.results),
      extra: l.dict(root.extra),
    },
  };
  if (rows < AT_ONCE) for (const read of readings(decoded.recording)) read();
  return decoded;
}

function operator(id: number, r: Raw): Operator {
  return {
    id,
    name: l.text(r.name, "?"),
    function: l.text(r.function),
    kind: l.text(r.kind, "operator"),
    var: l.text(r.var),
    source: l.text(r.source),
    callee: l.text(r.callee),
    attrs: l.words(r.attrs),
    arg_types: l.texts(r.arg_types),
    out_types: l.texts(r.out_types),
    macs: l.figure(r.macs),
    param_count: l.count(r.param_count),
    param_bytes: l.count(r.param_bytes),
    created_by: l.text(r.created_by),
    replaced_by: l.indices(r.replaced_by),
    fate: l.text(r.fate),
    fate_by: l.text(r.fate_by),
  };
}

function step(r: Raw, strings: string[] | null, places: Raw, graphs: unknown[], messages: string[]): Step {
  const say = strings ? (v: unknown) => strings[l.index(v)] ?? "" : (v: unknown) => l.text(v);
  const functions = l.list(r.functions).map((one, i): FunctionView => {
    const f = l.dict(one);
    const drawn = strings ? graphs[i] : f.graph;
    const view: FunctionView = {
      name: l.text(f.name, `function ${i}`),
      kind: l.text(f.kind, "function"),
      text: l.text(f.text),
      graph: null,
      sites: l.indices(f.sites),
    };
    return drawn == null ? view : later<FunctionView, "graph">(view, "graph", () => graph(drawn, say, view.name, messages));
  });
  const standing = (): Map<number, Place> => {
    const found = new Map<number, Place>();
    for (const [key, one] of Object.entries(strings ? places : l.dict(r.places))) {
      const p = l.list(one);
      const id = Number(key);
      if (!Number.isInteger(id)) continue;
      found.set(id, {
        function: say(p[0]), graph: say(p[1]), node: l.index(p[2]),
        on: p.length > 3 ? say(p[3]) || "tvm" : "tvm",
        composite: p.length > 4 ? say(p[4]) : "",
        subgraph: l.index(p[5]),
      });
    }
    return found;
  };
  const reasons = new Map<number, Reason>();
  for (const [key, one] of Object.entries(l.dict(r.reasons))) {
    const w = l.dict(one);
    reasons.set(Number(key), {
      code: l.text(w.code, "?"), text: l.text(w.text), mend: l.text(w.mend), rule: l.text(w.rule),
      evidence: l.words(w.evidence),
    });
  }
  const error = r.error == null ? null : stepError(l.dict(r.error));
  const made: Step = {
    name: l.text(r.name, "?"),
    call: l.text(r.call),
    origin: l.text(r.origin, "tvm"),
    note: l.text(r.note),
    functions,
    places: new Map(),
    subgraphs: l.list(r.subgraphs).map((one) => subgraph(l.dict(one))),
    profile: profile(l.dict(r.profile)),
    reasons,
    separations: l.list(r.separations).map((one): Separation => {
      const s = l.dict(one);
      return {
        a: l.index(s.a), b: l.index(s.b), code: l.text(s.code), text: l.text(s.text),
        path: l.indices(s.path),
      };
    }),
    rewrites: l.list(r.rewrites).map((one) => rewrite(l.dict(one))),
    tvm_seconds: l.count(r.tvm_seconds),
    capture_seconds: l.count(r.capture_seconds),
    changed: l.flag(r.changed, true),
    error,
    max_difference: l.figure(r.max_difference, null),
    verify_error: l.text(r.verify_error),
  };
  return later(made, "places", standing);
}

/** A field that is read from the data when it is first asked for: most steps are not seen at once. */
function later<T extends object, K extends keyof T>(target: T, key: K, read: () => NonNullable<T[K]>): T {
  return Object.defineProperty(target, key, {
    configurable: true,
    enumerable: true,
    get() {
      const value = read();
      Object.defineProperty(target, key, { value, enumerable: true, writable: true });
      return value;
    },
  });
}

/** What was left for later, piece by piece: reading it finds whatever is wrong with it. */
export function readings(recording: Recording): (() => void)[] {
  return recording.steps.flatMap((one) => [
    () => void one.places.size,
    ...one.functions.filter((f) => f.kind === "entry").map((f) => () => void f.graph?.nodes.length),
    () => one.functions.forEach((f) => void f.graph?.nodes.length),
  ]);
}

function stepError(e: Raw): StepError {
  return {
    type: l.text(e.type, "Error"), message: l.text(e.message), mend: l.text(e.mend),
    trace: l.text(e.trace),
  };
}

function graph(raw: unknown, say: (v: unknown) => string, name: string, messages: string[]): Graph {
  const pair = Array.isArray(raw) ? raw : [l.dict(raw).nodes, l.dict(raw).edges];
  const nodes = l.list(pair[0]).map((one): GNode => {
    const n = l.list(one);
    return {
      kind: say(n[0]) || "other",
      label: say(n[1]),
      ops: l.indices(n[2]),
      parent: l.index(n[3]),
      type: n.length > 4 ? say(n[4]) : "",
      callee: n.length > 5 ? say(n[5]) : "",
      subgraph: l.index(n[6]),
      owner: l.index(n[7]),
    };
  });
  const edges: GEdge[] = [];
  let dangling = 0;
  for (const one of l.list(pair[1])) {
    const e = l.list(one);
    const src = l.index(e[0]);
    const dst = l.index(e[1]);
    if (src < 0 || dst < 0 || src >= nodes.length || dst >= nodes.length) dangling++;
    else edges.push({ src, dst, slot: l.count(e[2]), out: l.count(e[3]) });
  }
  let broken = 0;
  for (let i = 0; i < nodes.length; i++) {
    if (!parentsEnd(nodes, i)) {
      nodes[i].parent = -1;
      broken++;
    }
  }
  const where = name.length > 60 ? `${name.slice(0, 60)}…` : name;
  if (dangling) messages.push(`${dangling} edge(s) of ${where} lead nowhere and are left out.`);
  if (broken) messages.push(`${broken} box(es) of ${where} lie inside themselves and are taken out.`);
  return { nodes, edges };
}

/** Whether a node's chain of boxes ends at the top (a parent out of range counts as none). */
function parentsEnd(nodes: GNode[], start: number): boolean {
  let at = nodes[start].parent;
  if (at === -1) return true;
  if (at < 0 || at >= nodes.length) {
    nodes[start].parent = -1;
    return true;
  }
  for (let depth = 0; at >= 0 && at < nodes.length; depth++) {
    if (at === start || depth > 200) return false;
    at = nodes[at].parent;
  }
  return true;
}

function profile(r: Raw): Profile {
  return {
    ops: l.counts(r.ops), total: l.count(r.total), macs: l.figure(r.macs),
    param_count: l.count(r.param_count), param_bytes: l.count(r.param_bytes),
    bytes_in: l.figure(r.bytes_in), bytes_out: l.figure(r.bytes_out),
    offloaded_ops: l.count(r.offloaded_ops), offloaded_macs: l.figure(r.offloaded_macs),
    subgraphs: l.count(r.subgraphs),
  };
}

function tensor(raw: unknown): Tensor {
  const t = l.list(raw);
  return { name: l.text(t[0]), type: l.text(t[1]), bytes: l.figure(t[2], null), op: l.index(t[3]) };
}

function subgraph(r: Raw): Subgraph {
  return {
    name: l.text(r.name), backend: l.text(r.backend), function: l.text(r.function),
    caller: l.text(r.caller), op_ids: l.indices(r.op_ids), ops: l.counts(r.ops),
    composites: l.counts(r.composites), macs: l.figure(r.macs), param_count: l.count(r.param_count),
    param_bytes: l.count(r.param_bytes), bytes_in: l.figure(r.bytes_in),
    bytes_out: l.figure(r.bytes_out), inputs: l.list(r.inputs).map(tensor),
    outputs: l.list(r.outputs).map(tensor),
  };
}

function rewrite(r: Raw): Rewrite {
  return {
    name: l.text(r.name), text: l.text(r.text), count: l.count(r.count), before: l.count(r.before),
    after: l.count(r.after), call: l.text(r.call), origin: l.text(r.origin, "byocviz"),
    assumes: l.text(r.assumes), seconds: l.count(r.seconds), enabled: l.flag(r.enabled, true),
    left: l.counts(r.left),
  };
}

function blocker(r: Raw): Blocker {
  return {
    op: l.text(r.op), count: l.count(r.count), subgraphs: l.count(r.subgraphs),
    subgraphs_now: l.count(r.subgraphs_now), coverage_ops: l.count(r.coverage_ops),
    coverage_ops_now: l.count(r.coverage_ops_now), coverage_macs: l.figure(r.coverage_macs, null),
    coverage_macs_now: l.figure(r.coverage_macs_now, null),
    boundary_bytes: l.figure(r.boundary_bytes, null),
    boundary_bytes_now: l.figure(r.boundary_bytes_now, null), error: l.text(r.error),
  };
}
