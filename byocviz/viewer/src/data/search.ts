/** Search with plain words and filters: `op:conv2d on:tvm region:S1 reason:no-rule dtype: changed:`. */
import type { Model } from "./model";
import type { Place } from "../schema";
import { CHANGES, type StepDiff } from "../graph/diff";
import { shortOp } from "./format";

export interface Query { words: string[]; filters: { key: string; value: string; not: boolean }[] }

export const FILTERS = ["op", "on", "region", "reason", "rule", "dtype", "shape", "changed", "fn", "source", "id"];

export function parseQuery(text: string): Query {
  const query: Query = { words: [], filters: [] };
  for (const part of text.trim().toLowerCase().match(/(?:[^\s"]+|"[^"]*")+/g) ?? []) {
    const plain = part.replaceAll('"', "");
    const m = /^(-?)([a-z]+):(.*)$/.exec(plain);
    if (m && FILTERS.includes(m[2])) query.filters.push({ key: m[2], value: m[3], not: m[1] === "-" });
    else if (plain) query.words.push(plain);
  }
  return query;
}

/**
 * Ids of the operators at a step that fit every word and filter, in order. Those that are gone since
 * `from` count too where it is asked what changed.
 */
export function search(model: Model, step: number, text: string, diff: StepDiff, from: number | null = null): number[] {
  const query = parseQuery(text);
  if (!query.words.length && !query.filters.length) return [];
  const here = model.steps[step];
  if (!here) return [];
  const found: number[] = [];
  const standing: Iterable<[number, Place]>[] = [here.places];
  if (from !== null && query.filters.some((f) => f.key === "changed" && !f.not)) {
    standing.push([...model.steps[from].places].filter(([id]) => diff.changes.get(id) === "gone"));
  }
  for (const [id, place] of standing.flatMap((one) => [...one])) {
    const op = model.op(id);
    const reason = here.reasons.get(id);
    const fits = (key: string, value: string): boolean => {
      switch (key) {
        case "op": return has(shortOp(op.name), value) || has(op.callee, value);
        case "on": return value === "" ? place.on !== "tvm" : has(place.on, value);
        case "region":
          return place.subgraph >= 0 && (value === "" || `s${place.subgraph + 1}` === value ||
            (!/^s?\d+$/.test(value) && has(here.subgraphs[place.subgraph]?.name ?? "", value)));
        case "reason": return !!reason && (value === "" || has(reason.code, value) || has(reason.text, value));
        case "rule": return value === "" ? place.composite !== "" : has(place.composite, value);
        case "dtype": return op.out_types.some((t) => has(t.split("[")[0], value)) || (value !== "" && op.arg_types.some((t) => has(t.split("[")[0], value)));
        case "shape": return op.out_types.some((t) => has(t.replace(/[,\s]+/g, "x"), value.replace(/[,×]+/g, "x")));
        case "changed": {
          const change = diff.changes.get(id);
          return !!change && (value === "" || has(change, value) || has(CHANGES[change].label, value));
        }
        case "fn": return has(place.function, value);
        case "source": return has(op.source, value);
        case "id": return String(id) === value;
        default: return false;
      }
    };
    if (!query.filters.every((f) => fits(f.key, f.value) !== f.not)) continue;
    const hay = query.words.length
      ? `${op.name} ${op.callee} ${op.var} ${op.source} ${place.composite} ${reason?.code ?? ""} ${op.out_types[0] ?? ""}`.toLowerCase()
      : "";
    if (query.words.every((w) => hay.includes(w))) found.push(id);
  }
  return found.sort((a, b) => a - b);
}

function has(text: string, part: string): boolean {
  return text.toLowerCase().includes(part);
}
