/**
 * `byocviz/recording/schema.py` as TypeScript. msgspec leaves out fields that have their default,
 * so a decoded recording goes through `data/decode.ts`, which puts them back and drops what does
 * not fit; everything after it may rely on these types.
 */

import type { Results } from "./data/results";

export const SCHEMA = 1;

export interface Operator {
  id: number;
  name: string;
  function: string;
  kind: string;
  var: string;
  source: string;
  callee: string;
  attrs: Record<string, string>;
  arg_types: string[];
  out_types: string[];
  macs: number | null;
  param_count: number;
  param_bytes: number;
  created_by: string;
  replaced_by: number[];
  fate: string;
  fate_by: string;
}

export type NodeKind =
  | "param" | "const" | "op" | "call" | "tuple" | "get" | "if" | "branch" | "function"
  | "composite" | "region" | "shape" | "prim" | "cast" | "output" | "other";

export interface GNode {
  kind: string;
  label: string;
  ops: number[];
  parent: number;
  type: string;
  callee: string;
  subgraph: number;
  owner: number;
}

export interface GEdge { src: number; dst: number; slot: number; out: number }

export interface Graph { nodes: GNode[]; edges: GEdge[] }

export interface FunctionView {
  name: string;
  kind: string;
  text: string;
  graph: Graph | null;
  sites: number[];
}

export interface Place {
  function: string;
  graph: string;
  node: number;
  on: string;
  composite: string;
  subgraph: number;
}

export interface Tensor { name: string; type: string; bytes: number | null; op: number }

export interface Profile {
  ops: Record<string, number>;
  total: number;
  macs: number | null;
  param_count: number;
  param_bytes: number;
  bytes_in: number | null;
  bytes_out: number | null;
  offloaded_ops: number;
  offloaded_macs: number | null;
  subgraphs: number;
}

export interface Subgraph {
  name: string;
  backend: string;
  function: string;
  caller: string;
  op_ids: number[];
  ops: Record<string, number>;
  composites: Record<string, number>;
  macs: number | null;
  param_count: number;
  param_bytes: number;
  bytes_in: number | null;
  bytes_out: number | null;
  inputs: Tensor[];
  outputs: Tensor[];
}

export interface Reason {
  code: string;
  text: string;
  mend: string;
  rule: string;
  evidence: Record<string, string>;
}

export interface Separation { a: number; b: number; code: string; text: string; path: number[] }

export interface Rewrite {
  name: string;
  text: string;
  count: number;
  before: number;
  after: number;
  call: string;
  origin: string;
  assumes: string;
  seconds: number;
  enabled: boolean;
  left: Record<string, number>;
}

export interface StepError { type: string; message: string; mend: string; trace: string }

export interface Step {
  name: string;
  call: string;
  origin: string;
  note: string;
  functions: FunctionView[];
  places: Map<number, Place>;
  subgraphs: Subgraph[];
  profile: Profile;
  reasons: Map<number, Reason>;
  separations: Separation[];
  rewrites: Rewrite[];
  tvm_seconds: number;
  capture_seconds: number;
  changed: boolean;
  error: StepError | null;
  max_difference: number | null;
  verify_error: string;
}

export interface Rule {
  name: string;
  ops: string[];
  enabled: boolean;
  check: boolean;
  matches: number;
}

export interface Blocker {
  op: string;
  count: number;
  subgraphs: number;
  subgraphs_now: number;
  coverage_ops: number;
  coverage_ops_now: number;
  coverage_macs: number | null;
  coverage_macs_now: number | null;
  boundary_bytes: number | null;
  boundary_bytes_now: number | null;
  error: string;
}

export interface Recording {
  title: string;
  created: string;
  made_with: Record<string, string>;
  ir: string;
  entry: string;
  backend: { name: string; rules: Rule[] };
  weights: { tensors: number; elements: number; bytes: number; digest: string };
  ops: Map<number, Operator>;
  steps: Step[];
  texts: Record<string, string>;
  what_if: Blocker[] | null;
  results: Results;
  /** Plain data of the person's own. */
  extra: Record<string, unknown>;
}

export interface Options { step?: string; title?: string; theme?: string }
