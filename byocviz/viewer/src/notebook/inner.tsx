/** The viewer within a notebook's frame: the same App, given recordings by messages. */
import { batch, effect } from "@preact/signals";
import { render } from "preact";
import "../viewer.css";
import "./notebook.css";
import { App } from "../ui/app";
import { Model } from "../data/model";
import { picture } from "../ui/export";
import { panes } from "../ui/graph";
import * as s from "../ui/state";
import { holds, listen, Menu } from "./menu";
import { assemble, keep, keepTexts, missing } from "./parts";
import type { Chosen, FromFrame, Show, ToFrame } from "./protocol";

const root = document.getElementById("byocviz-root")!;
let shown = false;
/** What was last told or asked, so that an echo is not told again. */
let last = "";
let waitingFor: { rev: number; since: number } | null = null;
const LARGEST_PICTURE = 400_000;
/** In pixels, of a side of a picture that shows all of a drawing. */
const WIDEST = 1400;

function tell(message: FromFrame): void {
  parent.postMessage({ byocviz: message }, "*");
}

function viewNow(): Show {
  const model = s.model.value;
  const sel = s.selection.value;
  const select: Chosen | null = sel?.kind === "op" ? { op: sel.id } : sel?.kind === "sub" ? { subgraph: sel.index } : null;
  return {
    step: model.steps[s.step.value]?.name ?? "",
    select,
    from: s.against.value !== null ? model.steps[s.against.value]?.name ?? "" : "",
    tab: s.tab.value,
    layout: s.mode.value,
    function: s.functions.value.after ?? "",
  };
}

function show(to: Show): void {
  const model = s.model.value;
  batch(() => {
    const at = model.steps.findIndex((one) => one.name === to.step);
    if (at >= 0) s.go(at);
    if (to.tab === "graph" || to.tab === "tables" || to.tab === "ir" || (to.tab === "results" && s.results.value)) s.tab.value = to.tab;
    if (to.from !== undefined) {
      const from = model.steps.findIndex((one) => one.name === to.from);
      s.against.value = from >= 0 && from !== s.step.value ? from : null;
    }
    if (to.layout === "split" || to.layout === "stacked" || to.layout === "single") s.mode.value = to.layout;
    if (to.function !== undefined) s.functions.value = { before: to.function || null, after: to.function || null };
    if (to.select === null) {
      if (s.selection.value?.kind !== "group") s.choose(null);
    } else if (to.select?.op !== undefined && model.recording.ops.has(to.select.op)) s.selection.value = { kind: "op", id: to.select.op };
    else if (to.select?.subgraph !== undefined && model.steps[s.step.value]?.subgraphs[to.select.subgraph]) {
      s.selection.value = { kind: "sub", index: to.select.subgraph, step: s.step.value };
    }
  });
  last = JSON.stringify(viewNow());
}

type State = Extract<ToFrame, { type: "state" }>;
let queue: Promise<void> = Promise.resolve();


async function take(message: State, buffers: ArrayBuffer[]): Promise<void> {
  const since = performance.now();
  const named = message.pieces as unknown as { digest: string }[];
  await Promise.all(named.map((piece, i) => keep(piece.digest, buffers[i])));
  if (message.texts !== null && buffers.length > named.length) await keepTexts(buffers[named.length]);
  const lacking = missing(message.parts);
  if (lacking.length) {
    tell({ type: "missing", digests: lacking });
    return;
  }
  const { recording, messages } = assemble(message.parts, message.pending);
  const before = shown ? s.model.value.steps[s.step.value]?.name : undefined;
  batch(() => {
    holds.value = new Set(message.holds);
    s.model.value = new Model(recording, messages);
    s.faults.value = messages.slice();
    s.notices.value = [];
    // What was prepared for drawing hangs on this map.
    s.choices.value = new Map(s.choices.value);
    const name = message.show.step ?? before;
    const at = recording.steps.findIndex((one) => one.name === name);
    s.step.value = Math.max(0, at >= 0 ? at : Math.min(s.step.value, recording.steps.length - 1));
    if (s.against.value !== null && s.against.value >= recording.steps.length) s.against.value = null;
    if (s.selection.value?.kind === "op" && !recording.ops.has(s.selection.value.id)) s.selection.value = null;
    if (s.selection.value?.kind === "sub") s.selection.value = null;
    if (s.tab.value === "results" && !s.results.value) s.tab.value = "graph";
    waitingFor = { rev: message.rev, since };
  });
  show(message.show);
  if (!shown) {
    shown = true;
    if (!message.show.function) {
      // As a page does, begin where most of the operators are.
      const fn = s.model.value.opening(s.step.value, s.left.value);
      const begin = fn === s.model.value.entry(s.step.value) ? null : fn;
      s.functions.value = { before: begin, after: begin };
    }
    root.replaceChildren();
    render(<><App /><Menu hold={(ops, on) => tell({ type: "hold", ops, on })} /></>, root);
    follow();
  }
  // Another tab draws no graph, and nothing would say that it is done.
  if (s.tab.value !== "graph") drawn();
}

function drawn(): void {
  if (!waitingFor) return;
  const { rev, since } = waitingFor;
  waitingFor = null;
  tell({ type: "drawn", rev, step: s.model.value.steps[s.step.value]?.name ?? "", milliseconds: performance.now() - since });
}

/** Tells what is looked at, and when a new state is drawn. */
function follow(): void {
  let timer = 0;
  effect(() => {
    const now = viewNow();
    const text = JSON.stringify(now);
    clearTimeout(timer);
    if (text === last) return;
    timer = window.setTimeout(() => {
      last = text;
      tell({ type: "view", show: now, zoom: zoom() });
    }, 60);
  });
  let still = 0;
  new MutationObserver(() => {
    if (document.documentElement.dataset.drawn === undefined) return; // being drawn
    drawn();
    clearTimeout(still);
    still = window.setTimeout(() => void sendPicture().catch(() => undefined), 900);
  }).observe(document.documentElement, { attributes: true, attributeFilter: ["data-drawn"] });
}

function zoom(): number[] | null {
  return panes.after?.scene ? panes.after.camera.seen() : null;
}

/** The drawing as a small PNG, for readers of the notebook without a kernel: all of it where that can
 * be read, else what is seen. */
async function sendPicture(): Promise<void> {
  if (s.tab.value !== "graph" || !shown) return;
  const whole = picture(true);
  const made = whole && whole.width <= WIDEST && whole.height <= WIDEST ? whole : picture(false);
  if (!made) return;
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(made.text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = made.width;
  canvas.height = made.height;
  canvas.getContext("2d")!.drawImage(image, 0, 0);
  const png = canvas.toDataURL("image/png").split(",")[1] ?? "";
  if (png && png.length < LARGEST_PICTURE) tell({ type: "picture", png });
}

window.addEventListener("message", (event) => {
  if (event.source !== parent) return;
  const message = event.data?.byocviz as ToFrame | { type: "zoom?" } | undefined;
  const buffers = (event.data?.buffers ?? []) as ArrayBuffer[];
  if (!message) return;
  switch (message.type) {
    case "state":
      queue = queue.then(() => take(message, buffers)).catch(failed);
      break;
    case "show":
      if (shown) show(message.show);
      break;
    case "matches":
      if (shown) s.choose({ kind: "group", key: "matches", ops: message.ops, title: message.title });
      break;
    case "say":
      s.tell(message.text.slice(0, 300));
      break;
    case "copy":
      void s.copy(message.text, message.what);
      break;
    case "picture?": {
      const made = shown ? picture(true) ?? picture(false) : null;
      if (made) tell({ type: "picture", svg: made.text });
      break;
    }
    case "zoom?":
      if (shown) tell({ type: "view", show: viewNow(), zoom: zoom() });
      break;
    case "theme":
      s.setTheme(message.dark ? "dark" : "light");
      break;
  }
});

function failed(error: unknown): void {
  const text = `The viewer failed: ${error instanceof Error ? error.message : String(error)}`;
  if (shown) {
    s.notices.value = [text];
    return;
  }
  const box = document.createElement("div");
  box.setAttribute("role", "alert");
  box.className = "fatal";
  box.textContent = text;
  root.replaceChildren(box);
}

// In the width of a notebook the drawing comes first; choosing a node opens what is known of it.
if (innerWidth < 1300) s.inspector.value = false;
if (innerWidth < 820) s.mode.value = "single";
listen();
tell({ type: "ready" });
