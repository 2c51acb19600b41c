/** The talk under way: which stop, what it shows, and going on by itself. */
import { batch, computed, signal } from "@preact/signals";
import * as l from "../data/lenient";
import { sleep } from "../draw/frames";
import type { Item } from "../graph/tree";
import { panes, reveal, uncover } from "../ui/graph";
import { headline } from "../ui/rail";
import { layouter, prepare } from "../ui/scenes";
import * as s from "../ui/state";
import { type Card, type Stop, stopsOf } from "./stops";

/** Seconds of autoplay where neither a stop nor the command says another. */
const PAUSE = 8;
/** Another talk in the same tab has a clock of its own. */
const KEPT = `byocviz:talk:${location.pathname}`;

export const presenting = signal(false);
export const stops = signal<Stop[]>([]);
export const at = signal(0);
export const auto = signal(false);
/** The screen is black. */
export const blank = signal(false);
/** When the stop that autoplay shows ends; null where it waits for nothing. Milliseconds of the epoch. */
export const until = signal<number | null>(null);
export const started = signal(0);
/** Whether the note is shown to the audience; null: where no speaker's window shows it. */
export const noteShown = signal<boolean | null>(null);
/** Whether messages are out of sight: they are for the speaker, and told before the first move. */
export const hushed = signal(false);
/** Counts the arrivals at a result, which plays what was timed there. */
export const run = signal(0);
export const stop = computed<Stop | undefined>(() => (presenting.value ? stops.value[at.value] : undefined));
/** The only result that is shown; "" for all. */
export const card = computed<Card | "">(() => (s.tab.value === "results" ? stop.value?.card ?? "" : ""));

let pause = PAUSE;
let timer = 0;
let turn = 0;

export function titleOf(one: Stop): string {
  if (one.title) return one.title;
  const step = s.model.value.steps[one.step];
  if (!step) return "";
  return one.step === 0 ? `${step.name}: ${headline(step, 0)}` : `${step.name}: ${headline(step, one.step)}`;
}

/** Begins where the page's options or its address say so. */
export function openTalk(options: unknown, hash: string): void {
  const asked = typeof options === "object" && options !== null ? l.dict(options) : null;
  const wanted = new URLSearchParams(hash.replace(/^#/, ""));
  if (!wanted.has("replay") && (!asked || wanted.has("step"))) return;
  const seconds = l.figure(asked?.seconds, null);
  if (seconds !== null && seconds >= 0.1 && seconds <= 3600) pause = seconds;
  for (const text of l.texts(asked?.problems).slice(0, 100)) s.model.value.messages.push(text);
  s.faults.value = s.model.value.messages.slice();
  readStops();
  const step = s.model.value.steps.findIndex((one) => one.name === asked?.step);
  const first = step < 0 ? 0 : Math.max(0, stops.value.findIndex((one) => one.step >= step));
  enter(wanted.has("replay") ? Number(wanted.get("replay")) - 1 : first);
  if (wanted.has("replay") ? wanted.get("auto") === "1" : asked?.auto === true) setAuto(true);
}

function readStops(): void {
  stops.value = stopsOf(s.model.value);
}

/** Presents from a stop on; without one from that which shows what is seen now. */
export function enter(to?: number): void {
  if (!s.model.value.steps.length) return;
  readStops();
  batch(() => {
    presenting.value = true;
    s.setLarge(true);
    recall();
    const here = stops.value.findIndex((one) => one.step === s.step.value && one.tab === s.tab.value);
    show(to ?? Math.max(0, here));
  });
}

export function leave(): void {
  setAuto(false);
  turn++;
  batch(() => {
    presenting.value = false;
    blank.value = hushed.value = false;
    s.setLarge(false);
  });
}

/** To a stop; at either end it stays. */
export function show(to: number): void {
  const all = stops.value;
  const next = Math.max(0, Math.min(all.length - 1, Number.isInteger(to) ? to : 0));
  const one = all[next];
  if (!one) return;
  const model = s.model.value;
  const mine = ++turn;
  batch(() => {
    at.value = next;
    blank.value = false;
    s.overlay.value = "";
    s.query.value = "";
    s.hit.value = -1;
    s.hops.value = 0;
    s.hovered.value = null;
    if (s.choices.value.size) s.choices.value = new Map();
    s.step.value = one.step;
    s.against.value = one.left;
    s.mode.value = one.layout;
    s.tab.value = one.tab;
    const fn = one.fn && model.graph(one.step, one.fn) ? one.fn : model.opening(one.step, s.left.value);
    const shown = fn === model.entry(one.step) ? null : fn;
    s.functions.value = { before: shown, after: shown };
    s.selection.value = one.op !== null ? { kind: "op", id: one.op } : one.sub !== null ? { kind: "sub", index: one.sub, step: one.step } : null;
    s.inspector.value = s.selection.value !== null;
    s.said.value = `Stop ${next + 1} of ${all.length}: ${titleOf(one)}`;
    if (one.tab === "results") run.value++;
  });
  wait();
  if (one.tab === "graph" && !model.steps[one.step]?.error) void aim(one, mine);
}

export function walk(by: 1 | -1): void {
  hushed.value = true;
  if (by > 0 && !started.value) setStarted(Date.now());
  const to = at.value + by;
  if (blank.value) setBlank(false);
  else if (to < 0 || to >= stops.value.length) s.tell(by > 0 ? "That was the last stop" : "This is the first stop");
  else show(to);
}

// -- what is seen

/** Whether the panes show what they should by now. */
function drawn(): boolean {
  return (["after", "before"] as const).every((side) => {
    const step = side === "after" ? s.step.value : s.layoutMode.value === "single" ? null : s.left.value;
    if (step === null || s.model.value.steps[step]?.error) return true;
    const wanted = s.functions.value[side];
    const fn = wanted && s.model.value.graph(step, wanted) ? wanted : s.model.value.entry(step);
    const p = fn ? prepare(step, fn) : null;
    return !p || panes[side]?.scene?.view === p.view;
  });
}

async function untilDrawn(mine: number): Promise<boolean> {
  for (let i = 0; i < 600; i++) {
    if (mine !== turn) return false;
    if (drawn()) return true;
    await sleep(25);
  }
  return false;
}

/** Brings into sight what the stop is about. */
async function aim(one: Stop, mine: number): Promise<void> {
  if (!(await untilDrawn(mine))) return;
  const after = panes.after;
  if (!after) return;
  const held = one.op === null ? undefined : after.scene?.view.seat.get(one.op);
  if (one.op !== null && held?.ops.length !== 1) {
    // Within something folded, or gone at this step.
    uncover(one.op);
    if (!(await untilDrawn(mine))) return;
  }
  if (mine !== turn) return;
  const both = [panes.before, panes.after];
  if (one.zoom === "fit") both.forEach((pane) => pane?.camera.fit());
  else if (one.zoom) {
    panes.before?.camera.goHome(true);
    after.camera.show(one.zoom, false);
  } else if (one.op !== null) {
    reveal(one.op);
  } else if (one.sub !== null) {
    panes.before?.camera.goHome(true);
    const item = holder(one.sub);
    const seat = item && after.at(item);
    if (seat) after.camera.show([seat[0] - seat[2] / 2 - 30, seat[1] - seat[3] / 2 - 30, seat[2] + 60, seat[3] + 60], true);
    else after.camera.goHome(true);
  } else both.forEach((pane) => pane?.camera.goHome(true));
  document.documentElement.dataset.stop = String(at.value + 1);
  ahead();
}

function holder(sub: number): Item | undefined {
  const view = panes.after?.scene?.view;
  return view && [...view.boxes, ...view.nodes].find((one) => one.subgraph === sub && (one.kind === "region" || one.kind === "call"));
}

/** The next stop's drawing, so that the key finds it made. */
function ahead(): void {
  const next = stops.value[at.value + 1];
  if (next?.tab !== "graph" || s.model.value.steps[next.step]?.error) return;
  const fn = next.fn && s.model.value.graph(next.step, next.fn) ? next.fn : s.model.value.entry(next.step);
  const p = fn ? prepare(next.step, fn) : null;
  if (p && !layouter.peek(p.dot)) layouter.layout(p.dot).catch(() => undefined);
}

// -- by itself

export function setAuto(on: boolean): void {
  auto.value = on;
  if (on && !started.value) setStarted(Date.now());
  wait();
}

export function pauseOf(one: Stop): number {
  return one.seconds ?? pause;
}

function wait(): void {
  clearTimeout(timer);
  const one = stops.value[at.value];
  if (!auto.value || !one || blank.value) {
    until.value = null;
    return;
  }
  const ms = pauseOf(one) * 1000;
  until.value = Date.now() + ms;
  timer = window.setTimeout(() => {
    if (at.value < stops.value.length - 1) show(at.value + 1);
    else setAuto(false);
  }, ms);
}

export function setBlank(on: boolean): void {
  blank.value = on;
  wait();
}

// -- what a reload keeps, where the browser lets a page keep anything

export function setStarted(when: number): void {
  started.value = when;
  try {
    sessionStorage.setItem(KEPT, String(when));
  } catch {
    // Then the clock begins anew.
  }
}

function recall(): void {
  try {
    const kept = Number(sessionStorage.getItem(KEPT));
    if (kept > 0 && kept <= Date.now()) started.value = kept;
  } catch {
    // Not kept.
  }
}

/** The address while presenting. */
export function talkLink(): string {
  return `#replay=${at.value + 1}${auto.value ? "&auto=1" : ""}`;
}
