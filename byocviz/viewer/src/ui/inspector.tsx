/** Everything about what is chosen; about the step where nothing is. */
import type { ComponentChildren } from "preact";
import { bothBranches } from "../graph/branches";
import { CHANGES } from "../graph/diff";
import { bytes, clip, figure, percent, plural, shortOp, thousands } from "../data/format";
import type { Profile, Subgraph } from "../schema";
import { Icon } from "./icons";
import { Code, Facts, More, Name, On, OpCounts, OpLink, SubLink } from "./pieces";
import { openItem, panes, setOpen, showFunction } from "./graph";
import { tensorBytes } from "./scenes";
import { lookFor } from "./topbar";
import * as s from "./state";

export function Inspector() {
  if (!s.inspector.value) return null;
  const sel = s.selection.value;
  return (
    <aside class="inspector" aria-label="Inspector" data-scrolls>
      {sel?.kind === "op" ? <OpCard id={sel.id} /> : sel?.kind === "sub" ? <SubCard index={sel.index} step={sel.step} /> : sel?.kind === "group" ? <GroupCard sel={sel} /> : <StepCard />}
    </aside>
  );
}

function Head({ over, title, children }: { over: string; title: ComponentChildren; children?: ComponentChildren }) {
  return (
    <header class="card-head">
      <div><p class="over">{over}</p><h2>{title}</h2>{children}</div>
      {s.selection.value && <button class="ghost" aria-label="Close" title="Nothing chosen (Esc)" onClick={() => s.choose(null)}><Icon name="close" /></button>}
    </header>
  );
}

function Part({ title, open = true, children }: { title: string; open?: boolean; children: ComponentChildren }) {
  return <details class="part" open={open}><summary>{title}</summary>{children}</details>;
}

function OpCard({ id }: { id: number }) {
  const model = s.model.value;
  const op = model.op(id);
  const at = s.step.value;
  const here = model.steps[at];
  const place = model.place(at, id);
  const reason = here?.reasons.get(id) ?? latestReason(id);
  const change = s.diff.value.changes.get(id);
  const outBytes = op.out_types.map(tensorBytes);
  const moved = place ? [] : model.counterparts(id, at);
  const attrs = Object.entries(op.attrs);
  return (
    <>
      <Head over={`${op.kind === "call" ? "call" : "operator"} #${id}`} title={<Name text={op.callee && /call_/.test(op.name) ? op.callee : shortOp(op.name)} limit={56} mono={false} />}>
        <div class="chips">
          {place ? <On on={place.on} /> : <span class="on p-none"><i />not at this step</span>}
          {place && place.subgraph >= 0 && <SubLink index={place.subgraph} step={at} />}
          {change && <span class={`change c-${change}`}><b class="glyph">{CHANGES[change].glyph}</b>{CHANGES[change].label}</span>}
        </div>
      </Head>
      {reason && (
        <section class="why-card">
          <h3><Icon name="warn" /> Why it stays on TVM <code>{reason.code}</code></h3>
          <p>{clip(reason.text, 1200)}</p>
          {reason.rule && <p class="quiet">Nearest rule: <Name text={reason.rule} /></p>}
          {reason.mend && <p class="mend"><strong>Mend</strong> {clip(reason.mend, 1200)} <button class="ghost small" onClick={() => void s.copy(reason.mend)}><Icon name="copy" /> copy</button></p>}
          {Object.keys(reason.evidence).length > 0 && <Facts rows={Object.entries(reason.evidence).slice(0, 12).map(([k, v]) => [k, <Name text={v} />])} />}
        </section>
      )}
      {!place && (
        <p class="quiet pad">
          {op.fate ? `It was ${op.fate === "replaced" ? "replaced" : op.fate === "folded" ? "folded into a constant" : op.fate === "dead" ? "removed as dead code" : op.fate}${op.fate_by ? ` by ${op.fate_by}` : ""}. ` : "It does not stand in this step's module. "}
          {moved.length > 0 && <>In its place: {moved.slice(0, 6).map((one) => <OpLink key={one} id={one} />)}</>}
        </p>
      )}
      <Part title="Operator">
        <Facts rows={[
          ["name", <Name text={op.name} />],
          ...(op.callee ? [["calls", <Name text={op.callee} />] as [string, ComponentChildren]] : []),
          ["variable", <Name text={op.var || "–"} />],
          ...(op.source ? [["in the model", <Name text={op.source} limit={60} />] as [string, ComponentChildren]] : []),
          ["function", <Name text={place?.function ?? op.function} limit={30} />],
          ...(place?.composite ? [["composite", <Name text={place.composite} />] as [string, ComponentChildren]] : []),
          ...(op.created_by ? [["made by", op.created_by] as [string, ComponentChildren]] : []),
          ["MACs", figure(op.macs)],
          ["parameters", op.param_count ? `${figure(op.param_count)} · ${bytes(op.param_bytes)}` : "none"],
          ["result", outBytes.some((b) => b === null) ? "?" : bytes(outBytes.reduce<number>((a, b) => a + (b ?? 0), 0))],
        ]} />
      </Part>
      <Part title="Shapes">
        <ul class="tensors">
          {op.arg_types.slice(0, 40).map((t, i) => <li><span class="io">in {i}</span><Name text={t} limit={40} /></li>)}
          {op.out_types.slice(0, 40).map((t, i) => <li><span class="io out">out {i}</span><Name text={t} limit={40} /></li>)}
        </ul>
      </Part>
      {attrs.length > 0 && <Part title={`Attributes (${attrs.length})`}><Facts rows={attrs.slice(0, 60).map(([k, v]) => [clip(k, 40), <Name text={v} limit={34} />])} /></Part>}
      <Part title="Way through the steps"><Way id={id} /></Part>
    </>
  );
}

/** A reason is found once, at the last step; it holds before it too. */
function latestReason(id: number) {
  const model = s.model.value;
  const place = model.place(s.step.value, id);
  if (!place || place.on !== "tvm") return undefined;
  for (let i = model.steps.length - 1; i > s.step.value; i--) {
    const r = model.steps[i].reasons.get(id);
    if (r) return r;
  }
  return undefined;
}

function Way({ id }: { id: number }) {
  const model = s.model.value;
  return (
    <ol class="way">
      {model.steps.map((step, i) => {
        const place = model.place(i, id);
        const others = place ? [] : model.counterparts(id, i);
        const change = i > 0 ? model.diff(i - 1, i).changes.get(id) : undefined;
        return (
          <li class={`${i === s.step.value ? "now" : ""} ${place ? "" : "absent"}`}>
            <button onClick={() => s.go(i)}>
              <span class={`dot ${place ? (place.on === "tvm" ? "p-tvm" : `p-b${Math.max(0, model.backends.indexOf(place.on)) % 4}`) : "p-none"}`} />
              <b>{step.name}</b>
              <span>
                {step.error ? "failed" : place
                  ? [place.on === "tvm" ? "TVM" : place.on, place.composite && `in ${place.composite}`, place.subgraph >= 0 && `S${place.subgraph + 1}`].filter(Boolean).map((x) => clip(String(x), 36)).join(" · ")
                  : others.length ? `as ${others.slice(0, 3).map((o) => `${shortOp(model.op(o).name)} #${o}`).join(", ")}${others.length > 3 ? " …" : ""}` : change === "gone" ? `gone (${model.op(id).fate || "removed"})` : "–"}
              </span>
              {change && <b class={`glyph c-${change}`} title={CHANGES[change].label}>{CHANGES[change].glyph}</b>}
            </button>
          </li>
        );
      })}
    </ol>
  );
}

function ProfileFacts({ p }: { p: Profile | Subgraph }) {
  return (
    <Facts rows={[
      ["MACs", figure(p.macs)],
      ["parameters", `${figure(p.param_count)} · ${bytes(p.param_bytes)}`],
      ["bytes in", bytes(p.bytes_in)],
      ["bytes out", bytes(p.bytes_out)],
    ]} />
  );
}

function SubCard({ index, step }: { index: number; step: number }) {
  const model = s.model.value;
  const here = model.steps[step];
  const sub = here?.subgraphs[index];
  if (!sub) return <Head over="subgraph" title="Not at this step" />;
  const apart = here.separations.filter((one) => one.a === index || one.b === index);
  const own = model.graph(step, sub.function);
  return (
    <>
      <Head over={`subgraph of ${here.name}`} title={<>S{index + 1}<span class="light"> on {clip(sub.backend, 24)}</span></>}>
        <p class="big-facts">
          <span><b>{thousands(sub.op_ids.length)}</b> operators</span>
          <span><b>{figure(sub.macs)}</b> MACs</span>
          {here.profile.total > 0 && <span><b>{percent(sub.op_ids.length / here.profile.total)}</b> of all</span>}
        </p>
        <div class="chips">
          {own && <button class="small" onClick={() => { s.tab.value = "graph"; s.go(step); showFunction("after", sub.function); }}>Open in its own view</button>}
          {own && <button class="small" onClick={() => openInPlace(index)}>Open in place</button>}
          <button class="small" onClick={() => lookFor(`region:s${index + 1}`)}>Find its operators</button>
        </div>
      </Head>
      {bothBranches(model, step, sub) && (
        <section class="why-card">
          <p><Icon name="warn" /> It holds operators of both branches of an <code>if</code>: as one subgraph, both are always computed.</p>
        </section>
      )}
      <Part title="Profile"><ProfileFacts p={sub} /></Part>
      <Part title="Operators"><OpCounts ops={sub.ops} /></Part>
      <Part title={`Boundary (${sub.inputs.length} in, ${sub.outputs.length} out)`}>
        <ul class="tensors">
          <More items={[...sub.inputs.map((t) => ({ t, out: false })), ...sub.outputs.map((t) => ({ t, out: true }))]} first={12}>
            {({ t, out }) => (
              <li>
                <span class={`io ${out ? "out" : ""}`}>{out ? "out" : "in"}</span>
                <span><Name text={t.name} limit={24} /> <span class="quiet">{clip(t.type, 44)}</span></span>
                <b>{bytes(t.bytes)}</b>
                {t.op >= 0 && <OpLink id={t.op} />}
              </li>
            )}
          </More>
        </ul>
      </Part>
      <Part title={`Kept apart (${apart.length})`} open={apart.length > 0}>
        {apart.length === 0 && <p class="quiet pad">Nothing was found that keeps it from a neighbour.</p>}
        <More items={apart} first={5}>
          {(one) => (
            <div class="sep">
              <p><SubLink index={one.a} step={step} /> <code>{one.code}</code> <SubLink index={one.b} step={step} /></p>
              <p>{clip(one.text, 500)}</p>
              {one.path.length > 0 && <p class="path">{one.path.slice(0, 8).map((id) => <OpLink key={id} id={id} />)}{one.path.length > 8 && ` and ${one.path.length - 8} more`}</p>}
            </div>
          )}
        </More>
      </Part>
      <Part title="Names" open={false}><Facts rows={[["name", <Name text={sub.name} />], ["function", <Name text={sub.function} />], ["called by", <Name text={sub.caller} />]]} /></Part>
    </>
  );
}

function openInPlace(index: number): void {
  for (const pane of [panes.after, panes.before]) {
    const item = pane?.scene?.view.nodes.find((one) => one.subgraph === index && one.inner);
    if (item) return openItem(item);
  }
  s.tell("It is not drawn as one node here");
}

function GroupCard({ sel }: { sel: Extract<s.Selection, { kind: "group" }> }) {
  const model = s.model.value;
  const ops: Record<string, number> = {};
  let macs: number | null = 0;
  let parameters = 0;
  for (const id of sel.ops) {
    const op = model.op(id);
    ops[op.name] = (ops[op.name] ?? 0) + 1;
    macs = macs === null || op.macs === null ? null : macs + op.macs;
    parameters += op.param_bytes;
  }
  const on: Record<string, number> = {};
  for (const id of sel.ops) {
    const p = model.place(s.step.value, id);
    if (p) on[p.on] = (on[p.on] ?? 0) + 1;
  }
  return (
    <>
      <Head over="group" title={clip(sel.title, 48)}>
        <p class="big-facts"><span><b>{thousands(sel.ops.length)}</b> operators</span><span><b>{figure(macs)}</b> MACs</span></p>
        <div class="chips">
          {Object.entries(on).map(([name, n]) => <span key={name}><On on={name} /> {n}</span>)}
          <button class="small" onClick={() => setOpen([sel.key], !(s.choices.value.get(sel.key) ?? [...(panes.after?.scene?.view.open ?? [])].some((one) => one.key === sel.key)))}>Open or fold</button>
        </div>
      </Head>
      <Part title="Operators by kind"><OpCounts ops={ops} /></Part>
      <Part title="Profile"><Facts rows={[["MACs", figure(macs)], ["parameters", bytes(parameters)]]} /></Part>
      <Part title="Operators"><ul class="oplist"><More items={sel.ops} first={12}>{(id) => <li key={id}><OpLink id={id} /></li>}</More></ul></Part>
    </>
  );
}

function StepCard() {
  const model = s.model.value;
  const i = s.step.value;
  const step = model.steps[i];
  if (!step) return <Head over="recording" title={clip(model.recording.title, 60)} />;
  const p = step.profile;
  const left = p.total - p.offloaded_ops;
  const share = p.total ? p.offloaded_ops / p.total : 0;
  const reasons = new Map<string, number>();
  for (const r of step.reasons.values()) reasons.set(r.code, (reasons.get(r.code) ?? 0) + 1);
  return (
    <>
      <Head over={`step ${i + 1} of ${model.steps.length}`} title={step.name}>
        {p.offloaded_ops > 0 && (
          <div class="cover">
            <div class="cover-bar" role="img" aria-label={`${percent(share)} on the backend`}><i style={{ width: `${share * 100}%` }} /></div>
            <p><On on={model.recording.backend.name || "backend"} /> {thousands(p.offloaded_ops)} <span class="quiet">{p.offloaded_ops === 1 ? "operator" : "operators"}, {percent(share)}</span></p>
            <p><On on="tvm" /> {thousands(left)} <span class="quiet">{left === 1 ? "operator" : "operators"}</span></p>
          </div>
        )}
        <p class="big-facts">
          <span><b>{thousands(p.total)}</b> operators</span>
          {p.subgraphs > 0 && <span><b>{p.subgraphs}</b> {p.subgraphs === 1 ? "subgraph" : "subgraphs"}</span>}
          {p.macs !== 0 && <span><b>{figure(p.macs)}</b> MACs</span>}
        </p>
      </Head>
      {step.call && <Part title={step.origin === "tvm" ? "The TVM call" : "The call (byocviz's own)"}><Code text={step.call} label="the call of this step" /></Part>}
      {reasons.size > 0 && (
        <Part title={`On TVM, and why (${step.reasons.size})`}>
          <ul class="oplist">
            {[...reasons].sort((a, b) => b[1] - a[1]).map(([code, n]) => (
              <li><button class="op-link" onClick={() => lookFor(`reason:${code}`)}>{code}</button> {n}</li>
            ))}
          </ul>
        </Part>
      )}
      {step.subgraphs.length > 0 && (
        <Part title={`Subgraphs (${step.subgraphs.length})`}>
          <ul class="oplist">
            <More items={step.subgraphs.map((sub, k) => ({ sub, k })).sort((a, b) => b.sub.op_ids.length - a.sub.op_ids.length)} first={6}>
              {({ sub, k }) => <li key={k}><SubLink index={k} step={i} /> {plural(sub.op_ids.length, "operator")}, {figure(sub.macs)} MACs</li>}
            </More>
          </ul>
        </Part>
      )}
      <Part title="Operators by kind"><OpCounts ops={p.ops} /></Part>
      <Part title="Figures" open={false}><ProfileFacts p={p} /></Part>
      <Part title="Recorded" open={false}>
        <Facts rows={[...Object.entries(model.recording.made_with).slice(0, 8).map(([k, v]): [string, ComponentChildren] => [k, v]), ["at", model.recording.created || "–"], ["weights", `${bytes(model.recording.weights.bytes)} (not in this file)`]]} />
      </Part>
    </>
  );
}
