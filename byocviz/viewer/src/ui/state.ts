/** What the whole page knows: one signal for each thing that can change. */
import { batch, computed, signal } from "@preact/signals";
import type { Model } from "../data/model";
import type { ColourBy } from "../draw/scene";
import type { Direction } from "../graph/dot";
import { holds } from "../data/results";
import { search } from "../data/search";

export type Tab = "graph" | "tables" | "ir" | "results";
export type Mode = "split" | "stacked" | "single";
export type Side = "before" | "after";

export type Selection =
  | { kind: "op"; id: number }
  | { kind: "sub"; index: number; step: number }
  | { kind: "group"; key: string; ops: number[]; title: string };

export const model = signal<Model>(null as unknown as Model);
export const step = signal(0);
/** The step on the left; null is the one before. */
export const against = signal<number | null>(null);
export const tab = signal<Tab>("graph");
export const mode = signal<Mode>("split");
export const functions = signal<{ before: string | null; after: string | null }>({ before: null, after: null });
export const selection = signal<Selection | null>(null);
export const hovered = signal<{ ops: number[]; side: Side } | null>(null);
export const query = signal("");
export const hit = signal(-1);
export const colourBy = signal<ColourBy>("place");
export const choices = signal<ReadonlyMap<string, boolean>>(new Map());
export const plumbing = signal(false);
export const direction = signal<Direction>("TB");
export const hops = signal(0);
export const overlay = signal<"" | "help" | "export">("");
export const outline = signal(false);
export const inspector = signal(true);
export const skipping = signal(false);
/** Large type, for a projector. */
export const large = signal(false);
export const theme = signal<"" | "light" | "dark">("");
export const said = signal("");
/** Whether the first drawing stands: what is not needed for it comes after. */
export const settled = signal(false);
/** What is wrong with the recording or the page: told anew as more of it is read. */
export const faults = signal<string[]>([]);
/** What went wrong since the page was opened. */
export const notices = signal<string[]>([]);
export const messages = computed(() => [...faults.value, ...notices.value]);
export const toast = signal("");
export const layoutMode = computed<Mode>(() => (left.value === null ? "single" : mode.value));
export const results = computed(() => {
  const r = model.value.recording;
  return holds(r.results) || Object.keys(r.extra).some((name) => name !== "stops");
});

/** The step that is drawn on the left, or null where there is none before. */
export const left = computed<number | null>(() => {
  const other = against.value ?? step.value - 1;
  return other >= 0 && other < model.value.steps.length && other !== step.value ? other : null;
});

/** From which to which step changes are shown. */
export const diff = computed(() => {
  const from = left.value;
  return from === null ? model.value.diff(step.value, step.value) : model.value.diff(from, step.value);
});

export const hits = computed<number[]>(() => search(model.value, step.value, query.value, diff.value, left.value));

export function go(to: number): void {
  const last = model.value.steps.length - 1;
  const next = Math.max(0, Math.min(last, to));
  if (next === step.value) return;
  batch(() => {
    step.value = next;
    if (against.value === next) against.value = null;
    hit.value = -1;
    const s = model.value.steps[next];
    said.value = `Step ${next + 1} of ${last + 1}: ${s.name}${s.error ? ", failed" : s.changed ? "" : ", nothing changed"}`;
  });
}

/** One step on or back; over those that changed nothing where they are skipped. */
export function walk(by: 1 | -1, skip = skipping.value): void {
  let at = step.value + by;
  const steps = model.value.steps;
  while (skip && at > 0 && at < steps.length - 1 && !steps[at].changed && !steps[at].error) at += by;
  go(at);
}

export function choose(what: Selection | null): void {
  selection.value = what;
  if (what) inspector.value = true;
}

export function chooseOp(id: number): void {
  choose({ kind: "op", id });
}

export function setOpen(keys: Iterable<string>, open: boolean): void {
  const next = new Map(choices.value);
  for (const key of keys) next.set(key, open);
  choices.value = next;
}

let toastTimer = 0;

export function tell(text: string): void {
  toast.value = text;
  said.value = text;
  clearTimeout(toastTimer);
  toastTimer = window.setTimeout(() => (toast.value = ""), 2200);
}

export async function copy(text: string, what = "Copied"): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    tell(what);
    return;
  } catch {
    // A page from file:// may not be let near the clipboard; the old way often works.
  }
  const area = document.createElement("textarea");
  area.value = text;
  area.style.position = "fixed";
  area.style.opacity = "0";
  document.body.appendChild(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  tell(done ? what : "Copying is not allowed here: select the text instead");
}

export function setTheme(next: "" | "light" | "dark"): void {
  theme.value = next;
  const dark = next === "dark" || (next === "" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}

export function setLarge(on: boolean): void {
  large.value = on;
  document.documentElement.classList.toggle("large", on);
}

export function isDark(): boolean {
  return document.documentElement.dataset.theme === "dark";
}
