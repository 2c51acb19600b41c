/** Sortable tables over the recording, linked to the drawing. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { bytes, clip, figure, percent, seconds, shortOp } from "../data/format";
import { Icon } from "./icons";
import { Name, OpLink, SubLink } from "./pieces";
import { headline } from "./rail";
import { lookFor } from "./topbar";
import * as s from "./state";

export interface Column<T> {
  name: string;
  /** What it is sorted by; null (unknown) always comes last. */
  value: (row: T) => string | number | null;
  show?: (row: T) => ComponentChildren;
  number?: boolean;
}

const PAGE = 200;

export function sortRows<T>(rows: T[], column: Column<T>, down: boolean): T[] {
  return rows
    .map((row, i) => ({ row, i, v: column.value(row) }))
    .sort((a, b) => {
      if (a.v === null || b.v === null) return Number(a.v === null) - Number(b.v === null) || a.i - b.i;
      const order = typeof a.v === "number" && typeof b.v === "number" ? a.v - b.v : String(a.v).localeCompare(String(b.v), "en", { numeric: true });
      return (down ? -order : order) || a.i - b.i;
    })
    .map((one) => one.row);
}

export function Table<T>({ id, title, rows, columns, now, faint, note }: {
  id: string; title: string; rows: T[]; columns: Column<T>[]; now?: (row: T) => boolean; faint?: (row: T) => boolean; note?: string;
}) {
  const [sort, setSort] = useState<{ at: number; down: boolean } | null>(null);
  const [most, setMost] = useState(PAGE);
  const shown = sort ? sortRows(rows, columns[sort.at], sort.down) : rows;
  return (
    <section class="table-card" id={`table-${id}`}>
      <header><h2>{title}</h2><span class="quiet">{rows.length}</span>{note && <p class="quiet">{note}</p>}
        <button class="ghost small" onClick={() => void s.copy(toTsv(shown, columns), "Copied the table")}><Icon name="copy" /> copy</button>
      </header>
      {rows.length === 0 ? <p class="quiet pad">Nothing here.</p> : (
        <div class="table-wrap" tabIndex={0} role="region" aria-label={title}>
          <table>
            <thead><tr>
              {columns.map((c, i) => (
                <th scope="col" class={c.number ? "num" : ""} aria-sort={sort?.at === i ? (sort.down ? "descending" : "ascending") : "none"}>
                  <button onClick={() => setSort(sort?.at === i ? (sort.down === !!c.number ? { at: i, down: !sort.down } : null) : { at: i, down: !!c.number })}>
                    {c.name}<span class="arrow">{sort?.at === i ? (sort.down ? "▼" : "▲") : ""}</span>
                  </button>
                </th>
              ))}
            </tr></thead>
            <tbody>
              {shown.slice(0, most).map((row) => (
                <tr class={now?.(row) ? "now" : faint?.(row) ? "faint" : ""}>
                  {columns.map((c) => <td class={c.number ? "num" : ""}>{c.show ? c.show(row) : c.value(row) ?? "?"}</td>)}
                </tr>
              ))}
            </tbody>
          </table>
          {shown.length > most && <button class="ghost more" onClick={() => setMost(most + 1000)}>{Math.min(1000, shown.length - most)} more of {shown.length}</button>}
        </div>
      )}
    </section>
  );
}

function toTsv<T>(rows: T[], columns: Column<T>[]): string {
  const cell = (v: string | number | null) => String(v ?? "").replace(/[\t\r\n]+/g, " ");
  return [columns.map((c) => c.name).join("\t"), ...rows.map((row) => columns.map((c) => cell(c.value(row))).join("\t"))].join("\n");
}

const sum = (a: number | null, b: number | null) => (a === null || b === null ? null : a + b);

export function Tables() {
  const model = s.model.value;
  const at = s.step.value;
  const step = model.steps[at];
  const r = model.recording;
  if (!step) return <main class="tables"><p class="quiet pad">This recording holds no steps.</p></main>;
  const kinds = Object.entries(step.profile.ops).map(([name, total]) => ({ name, total, off: 0, macs: 0 as number | null, reasons: new Set<string>() }));
  const byName = new Map(kinds.map((k) => [k.name, k]));
  for (const [id, place] of step.places) {
    const op = model.op(id);
    const row = byName.get(op.name);
    if (!row) continue;
    if (place.on !== "tvm") row.off++;
    row.macs = sum(row.macs, op.macs);
    const reason = step.reasons.get(id);
    if (reason) row.reasons.add(reason.code);
  }
  const grouped = new Map<string, { code: string; op: string; text: string; mend: string; ids: number[] }>();
  for (const [id, reason] of step.reasons) {
    const name = model.op(id).name;
    const key = `${reason.code}|${name}|${reason.text}`;
    const row = grouped.get(key);
    if (row) row.ids.push(id);
    else grouped.set(key, { code: reason.code, op: name, text: reason.text, mend: reason.mend, ids: [id] });
  }
  const rewrites = model.steps.flatMap((one) => one.rewrites.map((w) => ({ ...w, step: one.name })));
  return (
    <main class="tables" data-scrolls aria-label="Tables">
      <Table id="steps" title="Steps" rows={model.steps.map((one, i) => ({ one, i }))} now={(row) => row.i === at} columns={[
        { name: "step", value: (x) => x.i, show: (x) => <button class="op-link" onClick={() => s.go(x.i)}>{x.i + 1} {x.one.name}</button> },
        { name: "what it did", value: (x) => headline(x.one, x.i) },
        { name: "operators", number: true, value: (x) => x.one.profile.total },
        { name: "subgraphs", number: true, value: (x) => x.one.profile.subgraphs },
        { name: "on backend", number: true, value: (x) => x.one.profile.offloaded_ops },
        { name: "coverage", number: true, value: (x) => (x.one.profile.total ? x.one.profile.offloaded_ops / x.one.profile.total : 0), show: (x) => <Bar share={x.one.profile.total ? x.one.profile.offloaded_ops / x.one.profile.total : 0} /> },
        { name: "of MACs", number: true, value: (x) => macShare(x.one.profile.offloaded_macs, x.one.profile.macs), show: (x) => <Bar share={macShare(x.one.profile.offloaded_macs, x.one.profile.macs)} /> },
        { name: "boundary", number: true, value: (x) => sum(x.one.profile.bytes_in, x.one.profile.bytes_out), show: (x) => bytes(sum(x.one.profile.bytes_in, x.one.profile.bytes_out)) },
        { name: "in TVM", number: true, value: (x) => x.one.tvm_seconds, show: (x) => seconds(x.one.tvm_seconds) },
        { name: "max. difference", number: true, value: (x) => x.one.max_difference, show: (x) => (x.one.max_difference === null ? "–" : x.one.max_difference.toExponential(1)) },
      ]} />
      <div class="side-by-side">
        <Table id="subgraphs" title={`Subgraphs at ${step.name}`} rows={step.subgraphs.map((sub, i) => ({ sub, i }))} columns={[
          { name: "subgraph", value: (x) => x.i, show: (x) => <SubLink index={x.i} step={at} /> },
          { name: "backend", value: (x) => x.sub.backend },
          { name: "operators", number: true, value: (x) => x.sub.op_ids.length },
          { name: "MACs", number: true, value: (x) => x.sub.macs, show: (x) => figure(x.sub.macs) },
          { name: "parameters", number: true, value: (x) => x.sub.param_bytes, show: (x) => bytes(x.sub.param_bytes) },
          { name: "in", number: true, value: (x) => x.sub.bytes_in, show: (x) => bytes(x.sub.bytes_in) },
          { name: "out", number: true, value: (x) => x.sub.bytes_out, show: (x) => bytes(x.sub.bytes_out) },
          { name: "name", value: (x) => x.sub.name, show: (x) => <Name text={x.sub.name} limit={28} /> },
        ]} />
        <Table id="kinds" title={`Operators by kind at ${step.name}`} rows={kinds} columns={[
          { name: "operator", value: (x) => shortOp(x.name), show: (x) => <button class="op-link mono" onClick={() => lookFor(`op:${shortOp(x.name)}`)}>{clip(shortOp(x.name), 34)}</button> },
          { name: "count", number: true, value: (x) => x.total },
          { name: "on backend", number: true, value: (x) => x.off, show: (x) => <Bar share={x.total ? x.off / x.total : 0} text={String(x.off)} /> },
          { name: "MACs", number: true, value: (x) => x.macs, show: (x) => figure(x.macs) },
          { name: "reasons", value: (x) => [...x.reasons].join(", "), show: (x) => [...x.reasons].join(", ") || "–" },
        ]} />
      </div>
      <Table id="reasons" title={`Why operators stay on TVM at ${step.name}`} rows={[...grouped.values()].sort((a, b) => b.ids.length - a.ids.length)} columns={[
        { name: "operators", number: true, value: (x) => x.ids.length, show: (x) => (x.ids.length === 1 ? <OpLink id={x.ids[0]} text="1" /> : <button class="op-link" onClick={() => lookFor(`reason:${x.code} op:${shortOp(x.op)}`)}>{x.ids.length}</button>) },
        { name: "operator", value: (x) => shortOp(x.op), show: (x) => <span class="mono">{clip(shortOp(x.op), 40)}</span> },
        { name: "cause", value: (x) => x.code, show: (x) => <code>{x.code}</code> },
        { name: "why", value: (x) => x.text, show: (x) => clip(x.text, 400) },
        { name: "mend", value: (x) => x.mend, show: (x) => clip(x.mend, 400) },
      ]} />
      <Table id="blockers" title="Blockers: what one more rule would change" note={r.what_if === null ? "Not worked out: call recording.blockers() before saving." : undefined} rows={r.what_if ?? []} columns={[
        { name: "operator", value: (x) => shortOp(x.op), show: (x) => <span class="mono">{clip(shortOp(x.op), 40)}</span> },
        { name: "on TVM now", number: true, value: (x) => x.count },
        { name: "subgraphs", number: true, value: (x) => x.subgraphs, show: (x) => (x.error ? <span title={x.error.slice(0, 500)}>failed</span> : `${x.subgraphs_now} → ${x.subgraphs}`) },
        { name: "fewer", number: true, value: (x) => x.subgraphs_now - x.subgraphs },
        { name: "coverage", number: true, value: (x) => x.coverage_ops, show: (x) => `${percent(x.coverage_ops_now)} → ${percent(x.coverage_ops)}` },
        { name: "of MACs", number: true, value: (x) => x.coverage_macs, show: (x) => `${percent(x.coverage_macs_now)} → ${percent(x.coverage_macs)}` },
        { name: "boundary", number: true, value: (x) => x.boundary_bytes, show: (x) => `${bytes(x.boundary_bytes_now)} → ${bytes(x.boundary_bytes)}` },
      ]} />
      <Table id="rewrites" title="Rewrites of the prepare step" rows={rewrites} columns={[
        { name: "rewrite", value: (x) => x.name, show: (x) => <b>{clip(x.name, 40)}</b> },
        { name: "what it does", value: (x) => x.text, show: (x) => <>{clip(x.text, 300)}{x.assumes && <em class="quiet"> Assumes: {clip(x.assumes, 200)}</em>}</> },
        { name: "places", number: true, value: (x) => x.count, show: (x) => (x.enabled ? x.count : "off") },
        { name: "operators", number: true, value: (x) => x.after - x.before, show: (x) => (x.before === x.after ? "–" : `${x.before} → ${x.after}`) },
        { name: "origin", value: (x) => x.origin },
        { name: "time", number: true, value: (x) => x.seconds, show: (x) => seconds(x.seconds) },
        { name: "call", value: (x) => x.call, show: (x) => (x.call ? <button class="ghost small" aria-label={`Copy the call of ${x.name.slice(0, 60)}`} onClick={() => void s.copy(x.call, "Copied the call")}><Icon name="copy" /> copy</button> : "–") },
      ]} />
      <Table id="rules" title="Rules of the backend" rows={[...r.backend.rules].sort((a, b) => Number(!a.matches) - Number(!b.matches))} faint={(x) => !x.matches} columns={[
        { name: "rule", value: (x) => x.name, show: (x) => <Name text={x.name} limit={44} /> },
        { name: "matches", number: true, value: (x) => x.matches },
        { name: "on", value: (x) => (x.enabled ? "on" : "off") },
        { name: "check", value: (x) => (x.check ? "can refuse" : "–") },
        { name: "operators", value: (x) => x.ops.map(shortOp).join(", "), show: (x) => <span class="mono">{clip(x.ops.map(shortOp).join(", "), 80)}</span> },
      ]} />
    </main>
  );
}

function macShare(part: number | null, whole: number | null): number | null {
  return part === null || !whole ? null : part / whole;
}

function Bar({ share, text }: { share: number | null; text?: string }) {
  return <span class="cell-bar"><span class="bar"><i style={{ width: `${(share ?? 0) * 100}%` }} /></span><span class={text === undefined ? "" : "count"}>{text ?? percent(share)}</span></span>;
}
