/** Small things that several views use. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { clip, thousands } from "../data/format";
import { uncover } from "./graph";
import { Icon } from "./icons";
import { lookFor } from "./topbar";
import * as s from "./state";

/** A long name, cut in the middle; a click shows all of it (to a limit). */
export function Name({ text, limit = 46, mono = true }: { text: string; limit?: number; mono?: boolean }) {
  const [all, setAll] = useState(false);
  if (text.length <= limit) return <span class={mono ? "mono" : ""}>{text}</span>;
  return (
    <button class={`name ${mono ? "mono" : ""}`} title={all ? "Shorten" : `${thousands(text.length)} characters: show more`} aria-expanded={all} onClick={() => setAll(!all)}>
      {all ? clip(text, 6000) : clip(text, limit)}
    </button>
  );
}

export function OpLink({ id, text }: { id: number; text?: string }) {
  return (
    <button class="op-link" onClick={() => { s.tab.value = "graph"; uncover(id); }}
      onPointerEnter={() => (s.hovered.value = { ops: [id], side: "after" })} onPointerLeave={() => (s.hovered.value = null)}>
      {text ?? s.model.value.opTitle(id)}<small>#{id}</small>
    </button>
  );
}

export function SubLink({ index, step }: { index: number; step: number }) {
  const sub = s.model.value.steps[step]?.subgraphs[index];
  return (
    <button class="op-link" disabled={!sub} onClick={() => { s.tab.value = "graph"; s.go(step); s.choose({ kind: "sub", index, step }); }}
      onPointerEnter={() => (s.hovered.value = sub ? { ops: sub.op_ids, side: "after" } : null)} onPointerLeave={() => (s.hovered.value = null)}>
      S{index + 1}
    </button>
  );
}

export function On({ on }: { on: string }) {
  const at = s.model.value.backends.indexOf(on);
  return <span class={`on ${on === "tvm" ? "p-tvm" : `p-b${Math.max(0, at) % 4}`}`}><i />{on === "tvm" ? "TVM" : clip(on, 24)}</span>;
}

export function Code({ text, label }: { text: string; label: string }) {
  return (
    <div class="code">
      <pre tabIndex={0} aria-label={label}>{text.slice(0, 20_000)}</pre>
      <button class="ghost" aria-label={`Copy: ${label}`} title="Copy" onClick={() => void s.copy(text, "Copied the call")}><Icon name="copy" /></button>
    </div>
  );
}

export function Facts({ rows }: { rows: [string, ComponentChildren][] }) {
  return <dl class="facts">{rows.map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}</dl>;
}

/** A list that shows its first few, and the rest on demand. */
export function More<T>({ items, first = 6, children }: { items: T[]; first?: number; children: (one: T, i: number) => ComponentChildren }) {
  const [n, setN] = useState(first);
  return (
    <>
      {items.slice(0, n).map(children)}
      {items.length > n && <button class="ghost small more" onClick={() => setN(n + 60)}>{Math.min(60, items.length - n)} more of {items.length}</button>}
    </>
  );
}

export function OpCounts({ ops }: { ops: Record<string, number> }) {
  const rows = Object.entries(ops).sort((a, b) => b[1] - a[1]);
  const most = rows[0]?.[1] ?? 1;
  return (
    <div class="counts">
      <More items={rows} first={7}>
        {([name, n]) => (
          <button key={name} class="count-row" title="Find them" onClick={() => lookFor(`op:${name.replace(/^relax\.|^relay\./, "")}`)}>
            <span class="mono">{clip(name.replace(/^relax\.|^relay\./, ""), 34)}</span><i style={{ width: `${(n / most) * 100}%` }} /><b>{thousands(n)}</b>
          </button>
        )}
      </More>
    </div>
  );
}
