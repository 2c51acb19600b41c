/** The two drawings, their heads, and the line between them. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useComputed } from "@preact/signals";
import { Pane } from "../draw/pane";
import { Cancelled } from "../layout/client";
import type { Item } from "../graph/tree";
import { neighbours, wayTo } from "../graph/view";
import { allKeys, canOpen } from "../graph/fold";
import { readings } from "../data/decode";
import { clip, plural } from "../data/format";
import { afterFrame, nextTask, sleep } from "../draw/frames";
import { Icon } from "./icons";
import { layouter, prepare, toScene, workAhead } from "./scenes";
import * as s from "./state";
import type { Side } from "./state";

export const panes: { before: Pane | null; after: Pane | null } = { before: null, after: null };
/** The pane that keys act on. */
export let active: Side = "after";

export function activePane(): Pane | null {
  return panes[active] ?? panes.after;
}

export function functionOf(side: Side, step: number): string {
  const wanted = s.functions.value[side];
  return wanted && s.model.value.graph(step, wanted) ? wanted : s.model.value.entry(step);
}

/** Draws a function on one side, and on the other where it is drawn there too. */
export function showFunction(side: Side, name: string | null): void {
  const model = s.model.value;
  const other = side === "after" ? s.left.value : s.step.value;
  const both = name === null || (other !== null && model.graph(other, name) !== null);
  s.functions.value = both ? { before: name, after: name } : { ...s.functions.value, [side]: name };
}

export function openItem(item: Item): void {
  if (canOpen(item)) setOpen([item.key], !isOpen(item));
}

/**
 * Opens or folds these and leaves all else as it is seen now: else what one box frees of the
 * budget would open another.
 */
export function setOpen(keys: string[], open: boolean): void {
  const next = new Map(s.choices.value);
  for (const pane of [panes.before, panes.after]) {
    const view = pane?.scene?.view;
    if (!view) continue;
    for (const item of view.nodes) if (item.children.length && !next.has(item.key)) next.set(item.key, false);
    for (const item of view.open) if (item.children.length) next.set(item.key, true);
  }
  for (const key of keys) next.set(key, open);
  s.choices.value = next;
}

function isOpen(item: Item): boolean {
  return [panes.after, panes.before].some((p) => p?.scene?.view.open.has(item));
}

function pick(item: Item | null): void {
  if (!item) return s.choose(null);
  if (item.subgraph >= 0 && (item.kind === "call" || item.kind === "region")) {
    const side = panes.before?.scene?.view.root === item.instance ? "before" : "after";
    return s.choose({ kind: "sub", index: item.subgraph, step: side === "before" ? s.left.value ?? s.step.value : s.step.value });
  }
  if (item.ops.length === 1 && item.kind !== "branch") return s.chooseOp(item.ops[0]);
  const words = (panes.after?.scene?.words.get(item) ?? panes.before?.scene?.words.get(item))!;
  s.choose({ kind: "group", key: item.key, ops: item.ops, title: words?.title || item.kind });
}

/** Ids that a selection stands for. */
export function selectedOps(): number[] {
  const sel = s.selection.value;
  if (!sel) return [];
  if (sel.kind === "op") return [sel.id];
  if (sel.kind === "sub") return s.model.value.steps[sel.step]?.subgraphs[sel.index]?.op_ids ?? [];
  return sel.ops;
}

export function reveal(id: number): void {
  for (const side of ["after", "before"] as const) {
    const pane = panes[side];
    const step = side === "after" ? s.step.value : s.left.value;
    if (!pane?.scene || step === null) continue;
    const there = s.model.value.counterparts(id, step)[0];
    const item = there === undefined ? undefined : pane.scene.view.seat.get(there);
    if (item) pane.reveal(item);
  }
}

/** Opens whatever hides an operator, then shows it. */
export function uncover(id: number): void {
  const keys: string[] = [];
  const before = s.left.value;
  // What is gone stands on the left alone.
  if (before !== null && !s.model.value.place(s.step.value, id) && s.model.value.place(before, id) && s.mode.value === "single") {
    s.mode.value = "split";
  }
  for (const side of ["after", "before"] as const) {
    const root = panes[side]?.scene?.view.root;
    const step = side === "after" ? s.step.value : s.left.value;
    if (!root || step === null) continue;
    for (const there of s.model.value.counterparts(id, step).slice(0, 3)) {
      for (const item of wayTo(root, there) ?? []) keys.push(item.key);
    }
  }
  if (keys.length) setOpen(keys, true);
  s.chooseOp(id);
  setTimeout(() => reveal(id), 120);
}

export function PaneView({ side, step }: { side: Side; step: number }) {
  const host = useRef<HTMLDivElement>(null);
  const map = useRef<HTMLCanvasElement>(null);
  const pane = useRef<Pane | null>(null);
  const [busy, setBusy] = useState(false);
  const model = s.model.value;
  const here = model.steps[step];
  const fn = functionOf(side, step);
  const choices = s.choices.value;
  const plumbing = s.plumbing.value;
  const direction = s.direction.value;
  const colour = s.colourBy.value;
  const diff = s.diff.value;

  // Before the page is painted: a layout takes as long as everything else together.
  useLayoutEffect(() => {
    const made = new Pane(host.current!, map.current!, {
      hover: (item) => (s.hovered.value = item && item.ops.length ? { ops: item.ops, side } : null),
      select: pick,
      toggle: openItem,
      moved: () => drawLink(),
    });
    pane.current = made;
    panes[side] = made;
    return () => {
      if (panes[side] === made) panes[side] = null;
    };
  }, []);

  useLayoutEffect(() => {
    let stale = false;
    const target = pane.current!;
    inSight[side] = whole[side] = null;
    drawing = true;
    delete document.documentElement.dataset.drawn;
    const p = fn && !here?.error ? prepare(step, fn) : null;
    if (!p) {
      target.clear();
      shows(inSight, side, step);
      shows(whole, side, step);
      return;
    }
    const draw = (layout: Parameters<typeof toScene>[1]) => {
      if (stale) return;
      setBusy(false);
      const first = target.scene === null;
      const still = first || matchMedia("(prefers-reduced-motion: reduce)").matches;
      target.show(toScene(p, layout, side), !still, () => shows(whole, side, step));
      remark();
      if (first && s.selection.value) {
        const held = [...target.holders(selectedOps().flatMap((id) => model.counterparts(id, step)))][0];
        if (held) target.reveal(held);
      }
      shows(inSight, side, step);
      if (s.settled.value) void workAhead(idle);
    };
    performance.mark(`byocviz:asked-${side}`);
    const known = layouter.peek(p.dot);
    if (known) {
      draw(known);
    } else {
      const timer = window.setTimeout(() => setBusy(true), 150);
      const ask = (tries: number): void => {
        layouter.layout(p.dot).then(draw, (error) => {
          // Made anew for something more urgent; this one is still wanted.
          if (error instanceof Cancelled && !stale && tries < 3) ask(tries + 1);
          else setBusy(false);
        }).finally(() => clearTimeout(timer));
      };
      ask(0);
    }
    return () => {
      stale = true;
    };
  }, [step, fn, choices, plumbing, direction, colour, diff]);

  const drawable = model.drawable(step);
  const profile = here?.profile;
  return (
    <section class={`pane pane-${side}`} aria-label={`${side}: ${here?.name ?? ""}`} onPointerDown={() => (active = side)} onFocusIn={() => (active = side)}>
      <header class="pane-head">
        <span class="pane-side">{side}</span>
        {side === "before" ? (
          <select class="pane-step" aria-label="Step on the left" value={step} onChange={(e) => (s.against.value = Number(e.currentTarget.value))}>
            {model.steps.map((one, i) => i !== s.step.value && <option value={i}>{one.name}</option>)}
          </select>
        ) : (
          <strong class="pane-step">{here?.name}</strong>
        )}
        {drawable.length > 1 && (
          <select class="pane-fn" aria-label={`Function drawn ${side}`} value={fn}
            onChange={(e) => showFunction(side, e.currentTarget.value)}>
            {drawable.slice(0, 400).map((f) => (
              <option value={f.name}>{f.kind === "subgraph" && f.sites.length ? `S${f.sites.map((x) => x + 1).slice(0, 4).join(", S")}  ${clip(f.name, 30)}` : clip(f.name, 40)}</option>
            ))}
          </select>
        )}
        {fn && fn !== model.entry(step) && (
          <button class="ghost small" onClick={() => showFunction(side, null)}>
            <Icon name="left" /> back to {clip(model.entry(step), 16)}
          </button>
        )}
        <span class="pane-facts">
          {profile && !here.error ? `${plural(profile.total, "operator")}${profile.subgraphs ? ` · ${plural(profile.subgraphs, "subgraph")}` : ""}` : ""}
        </span>
        <span class="pane-tools">
          <button class="ghost" title="Fold all" aria-label={`Fold all, ${side}`} onClick={() => foldAll(side, false)}><Icon name="fold" /></button>
          <button class="ghost" title="Open all" aria-label={`Open all, ${side}`} onClick={() => foldAll(side, true)}><Icon name="unfold" /></button>
        </span>
      </header>
      <div class="canvas" ref={host} tabIndex={0} role="group" aria-label={`Drawing of ${clip(fn || "nothing", 60)}, ${side}`}>
        <canvas class="minimap" ref={map} hidden aria-hidden="true" />
        <div class="zoom">
          <button title="Zoom in (+)" aria-label={`Zoom in, ${side}`} onClick={() => pane.current?.camera.zoom(1.3)}><Icon name="plus" /></button>
          <button title="Zoom out (−)" aria-label={`Zoom out, ${side}`} onClick={() => pane.current?.camera.zoom(1 / 1.3)}><Icon name="minus" /></button>
          <button title="Show all (f)" aria-label={`Show all, ${side}`} onClick={() => pane.current?.camera.fit()}><Icon name="fit" /></button>
        </div>
        {busy && <div class="busy" role="status">laying out… <button onClick={() => layouter.cancel()}>cancel</button></div>}
        {here?.error && <ErrorCard step={step} />}
        {!here?.error && !fn && <div class="empty"><h3>Nothing to draw</h3><p>No function of this step has a graph.</p></div>}
        {!here?.error && fn && (model.graph(step, fn)?.nodes.length ?? 0) === 0 && <div class="empty"><h3>An empty function</h3><p>{clip(fn, 60)} has no nodes.</p></div>}
      </div>
    </section>
  );
}

/** The step whose drawing each side shows: what can be seen of it, and all of it. */
const inSight: Record<Side, number | null> = { before: null, after: null };
const whole: Record<Side, number | null> = { before: null, after: null };

/** Notes what a side shows, and says so once each side shows what it should. */
function shows(what: typeof whole, side: Side, step: number): void {
  what[side] = step;
  if (what.after !== s.step.value) return;
  if (s.layoutMode.value !== "single" && what.before !== s.left.value) return;
  if (what === whole) {
    document.documentElement.dataset.drawn = String(s.step.value);
    if (!s.settled.value) setTimeout(() => void settle(), 30);
  } else {
    performance.mark("byocviz:drawn");
    afterFrame(() => {
      performance.mark("byocviz:painted");
      drawing = false;
    });
  }
}

/** Whether something was asked for that is not on the screen yet. */
let drawing = false;

/** Until nothing is being drawn, or for half a second: it may have been cancelled. */
async function idle(): Promise<void> {
  await nextTask();
  for (let i = 0; i < 30 && drawing && s.tab.value === "graph"; i++) await sleep(16);
}

let settling = false;

/** What could wait for the first drawing: the other steps' layouts, and their data, bit by bit. */
export async function settle(): Promise<void> {
  if (settling) return;
  settling = true;
  const model = s.model.value;
  void workAhead(idle);
  for (const read of readings(model.recording)) {
    await idle();
    read();
  }
  for (let i = 1; i < model.steps.length; i++) {
    await idle();
    model.diff(i - 1, i);
  }
  s.faults.value = model.messages.slice();
  s.settled.value = true;
}

export function foldAll(side: Side, open: boolean): void {
  const view = panes[side]?.scene?.view;
  if (!view) return;
  const keys = allKeys(view.root.top, (item) => open || item.kind !== "branch");
  s.setOpen(keys, open);
}

function ErrorCard({ step }: { step: number }) {
  const error = s.model.value.steps[step].error!;
  return (
    <div class="error-card" role="alert" data-scrolls>
      <h3><Icon name="warn" /> {s.model.value.steps[step].name} failed</h3>
      <p class="mono">{clip(error.type, 200)}: {clip(error.message, 1500)}</p>
      {error.mend && <p><strong>Mend.</strong> {clip(error.mend, 800)}</p>}
      {error.trace && <details><summary>Trace</summary><pre>{error.trace.slice(0, 20_000)}</pre></details>}
      <p class="quiet">The steps before it are shown as they were.</p>
    </div>
  );
}

/** Puts selection, hover and search on both drawings. */
export function remark(): void {
  const model = s.model.value;
  const chosen = selectedOps();
  const hover = s.hovered.value;
  const found = s.hits.value;
  const query = s.query.value.trim() !== "";
  const at = s.hit.value >= 0 ? found[s.hit.value] : undefined;
  for (const side of ["before", "after"] as const) {
    const pane = panes[side];
    const step = side === "after" ? s.step.value : s.left.value;
    if (!pane?.scene || step === null) continue;
    const here = (ops: number[]) => pane.holders(ops.length > 400 ? ops : ops.flatMap((id) => model.counterparts(id, step)));
    let sel = here(chosen);
    const picked = s.selection.value;
    if (picked && picked.kind !== "op") {
      const whole = [...pane.scene.view.nodes, ...pane.scene.view.boxes].filter((one) =>
        picked.kind === "group" ? one.key === picked.key : one.subgraph === picked.index && picked.step === step && (one.kind === "region" || one.kind === "call"));
      if (whole.length) sel = new Set(whole);
    }
    pane.mark("sel", sel);
    pane.mark("hov", hover ? here(hover.ops) : []);
    pane.mark("hit", query ? here(found) : []);
    pane.mark("hit-now", at !== undefined ? here([at]) : []);
    pane.only(
      s.hops.value > 0 && sel.size ? neighbours(pane.scene.view, sel, s.hops.value)
        : query && found.length ? here(found) : null,
    );
  }
  drawLink();
}

/** A line from the hovered (or chosen) operator on one side to itself on the other. */
export function drawLink(): void {
  const path = document.getElementById("pane-link");
  const overlay = path?.closest("svg");
  if (!path || !overlay) return;
  let d = "";
  const ops = s.hovered.value?.ops ?? selectedOps();
  if (ops.length && s.layoutMode.value !== "single" && panes.before && panes.after && s.left.value !== null) {
    const frame = overlay.getBoundingClientRect();
    const ends = (["before", "after"] as const).map((side) => {
      const pane = panes[side]!;
      const step = side === "after" ? s.step.value : s.left.value!;
      const item = [...pane.holders(s.model.value.counterparts(ops[0], step))][0];
      const at = item && pane.at(item);
      if (!at) return null;
      const box = pane.host.getBoundingClientRect();
      const { x, y, k } = pane.camera.t;
      const stacked = s.layoutMode.value === "stacked";
      const px = box.left - frame.left + x + k * (at[0] + (stacked ? 0 : (side === "before" ? at[2] : -at[2]) / 2));
      const py = box.top - frame.top + y + k * (at[1] + (stacked ? (side === "before" ? at[3] : -at[3]) / 2 : 0));
      const inside = px > box.left - frame.left - 1 && px < box.right - frame.left + 1 && py > box.top - frame.top && py < box.bottom - frame.top;
      return inside ? [px, py] : null;
    });
    const [a, b] = ends;
    if (a && b) {
      d = s.layoutMode.value === "stacked"
        ? `M${a[0]} ${a[1]}C${a[0]} ${(a[1] + b[1]) / 2} ${b[0]} ${(a[1] + b[1]) / 2} ${b[0]} ${b[1]}`
        : `M${a[0]} ${a[1]}C${(a[0] + b[0]) / 2} ${a[1]} ${(a[0] + b[0]) / 2} ${b[1]} ${b[0]} ${b[1]}`;
    }
  }
  path.setAttribute("d", d);
}

export function GraphArea() {
  const layout = useComputed(() => s.layoutMode.value);
  const left = s.left.value;
  useEffect(() => {
    remark();
  }, [s.selection.value, s.hovered.value, s.query.value, s.hit.value, s.hops.value, s.hits.value]);
  return (
    <div class={`panes ${layout.value}`}>
      {layout.value !== "single" && left !== null && <PaneView key="before" side="before" step={left} />}
      <PaneView key="after" side="after" step={s.step.value} />
      <svg class="link-layer" aria-hidden="true"><path id="pane-link" /></svg>
    </div>
  );
}
