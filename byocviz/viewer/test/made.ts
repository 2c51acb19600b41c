/** Recordings for tests, as the page gets them. */
import { decode } from "../src/data/decode";
import { Model } from "../src/data/model";

type NodeRow = [kind: string, label: string, ops?: number[], parent?: number, type?: string, callee?: string, subgraph?: number, owner?: number];
type EdgeRow = [src: number, dst: number, slot?: number, out?: number];

export interface Made { nodes: NodeRow[]; edges: EdgeRow[]; names?: Record<number, string> }

/** A recording of one step and one function. */
export function single(made: Made, extra: Record<string, unknown> = {}): Model {
  return model({ steps: [stepOf("import", made)], ops: opsOf(made) , ...extra });
}

export function stepOf(name: string, made: Made, extra: Record<string, unknown> = {}): Record<string, unknown> {
  const places: Record<number, unknown> = {};
  made.nodes.forEach(([, , ops], i) => ops?.forEach((id) => (places[id] = ["main", "main", i])));
  return { name, functions: [{ name: "main", kind: "entry", graph: { nodes: made.nodes, edges: made.edges } }], places, ...extra };
}

export function opsOf(made: Made): Record<number, unknown> {
  const ops: Record<number, unknown> = {};
  for (const [, , ids] of made.nodes) for (const id of ids ?? []) ops[id] = { id, name: made.names?.[id] ?? "relax.add" };
  return ops;
}

export function model(raw: unknown): Model {
  const { recording, messages } = decode(raw);
  return new Model(recording, messages);
}

/** A parameter, then a chain of operators by name, then the result. */
export function chain(names: string[]): Made {
  const nodes: NodeRow[] = [["param", "x"]];
  const edges: EdgeRow[] = [];
  const table: Record<number, string> = {};
  names.forEach((name, id) => {
    nodes.push(["op", `lv${id}`, [id]]);
    edges.push([id, id + 1]);
    table[id] = name;
  });
  nodes.push(["output", "result"]);
  edges.push([names.length, names.length + 1]);
  return { nodes, edges, names: table };
}

/** A repeatable stream of numbers from 0 to 1. */
export function random(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 2 ** 32;
  };
}
