/** The view as the page's fragment, `#step=merge&node=o12`, and back. */
import { batch, effect } from "@preact/signals";
import * as talk from "../replay/talk";
import * as s from "./state";

export function readLink(hash: string): void {
  const wanted = new URLSearchParams(hash.replace(/^#/, ""));
  const model = s.model.value;
  batch(() => {
    const name = wanted.get("step");
    const at = model.steps.findIndex((one) => one.name === name);
    if (at >= 0) s.step.value = at;
    const from = model.steps.findIndex((one) => one.name === wanted.get("from"));
    s.against.value = from >= 0 && from !== s.step.value ? from : null;
    const tab = wanted.get("tab");
    s.tab.value = tab === "tables" || tab === "ir" || (tab === "results" && s.results.value) ? tab : "graph";
    const mode = wanted.get("view");
    if (mode === "single" || mode === "stacked" || mode === "split") s.mode.value = mode;
    s.query.value = wanted.get("q") ?? "";
    s.setLarge(wanted.get("type") === "large");
    const fn = model.drawable(s.step.value)[Number(wanted.get("fn") ?? NaN)]?.name ?? model.opening(s.step.value, s.left.value);
    const shown = fn === model.entry(s.step.value) ? null : fn;
    s.functions.value = { before: shown, after: shown };
    const m = /^([os])(\d+)$/.exec(wanted.get("node") ?? "");
    if (m?.[1] === "o" && model.recording.ops.has(Number(m[2]))) s.chooseOp(Number(m[2]));
    if (m?.[1] === "s" && model.steps[s.step.value]?.subgraphs[Number(m[2]) - 1]) {
      s.choose({ kind: "sub", index: Number(m[2]) - 1, step: s.step.value });
    }
  });
}

export function linkOf(): string {
  if (talk.presenting.value) return talk.talkLink();
  const model = s.model.value;
  const now = new URLSearchParams();
  now.set("step", model.steps[s.step.value]?.name ?? "");
  if (s.against.value !== null) now.set("from", model.steps[s.against.value]?.name ?? "");
  const sel = s.selection.value;
  if (sel?.kind === "op") now.set("node", `o${sel.id}`);
  if (sel?.kind === "sub") now.set("node", `s${sel.index + 1}`);
  if (s.tab.value !== "graph") now.set("tab", s.tab.value);
  if (s.mode.value !== "split") now.set("view", s.mode.value);
  if (s.large.value) now.set("type", "large");
  if (s.query.value) now.set("q", s.query.value);
  const shown = s.functions.value.after ?? model.entry(s.step.value);
  const fn = model.drawable(s.step.value).findIndex((one) => one.name === shown);
  if (fn >= 0 && shown !== model.opening(s.step.value, s.left.value)) now.set("fn", String(fn));
  return `#${now}`;
}

/** Keeps the address as the view goes on, without a history entry for each move. */
export function followLink(): void {
  let timer = 0;
  effect(() => {
    const next = linkOf();
    clearTimeout(timer);
    const keep = () => {
      if (location.hash === next) return;
      try {
        history.replaceState(null, "", next);
      } catch {
        // An inlined frame (a notebook's output) may not have an address of its own.
      }
    };
    // A page that is loaded anew while presenting is to be where it was, however soon.
    if (talk.presenting.value) keep();
    else timer = window.setTimeout(keep, 120);
  });
  window.addEventListener("hashchange", () => {
    if (location.hash === linkOf()) return;
    const at = new URLSearchParams(location.hash.slice(1)).get("replay");
    if (at !== null) return talk.enter(Number(at) - 1);
    if (talk.presenting.value) talk.leave();
    readLink(location.hash);
  });
}
