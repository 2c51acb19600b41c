/** The stops of a talk, as `byocviz/recording/stops.py` describes them: read leniently, bounded. */
import * as l from "../data/lenient";
import { clip } from "../data/format";
import type { Model } from "../data/model";
import { printable } from "../draw/svg";
import type { Mode, Tab } from "../ui/state";

export const CARDS = ["build", "check", "latency", "detections"] as const;
export type Card = (typeof CARDS)[number];
export type Box = [x: number, y: number, width: number, height: number];

const MOST = 1000;
const LONGEST_NOTE = 20_000;
const LONGEST_TITLE = 200;

export interface Stop {
  /** Index of the step. */
  step: number;
  /** Empty: the step's own words. */
  title: string;
  note: string;
  op: number | null;
  sub: number | null;
  fn: string;
  zoom: Box | "fit" | null;
  layout: Mode;
  tab: Tab;
  left: number | null;
  card: Card | "";
  /** Of autoplay. */
  seconds: number | null;
}

/** The stops of the recording, or those that every recording has. */
export function stopsOf(model: Model): Stop[] {
  const own = l.list(model.recording.extra.stops).slice(0, MOST);
  const found: Stop[] = [];
  for (const one of own) found.push(read(l.dict(one), model, found[found.length - 1]?.step ?? 0));
  return found.length ? found : everyChange(model);
}

function read(raw: l.Raw, model: Model, before: number): Stop {
  const named = (name: unknown) => model.steps.findIndex((one) => one.name === name);
  const known = named(raw.step);
  const step = known >= 0 ? known : before;
  const select = l.dict(raw.select);
  const op = l.index(select.op);
  const sub = l.index(select.subgraph);
  const note = l.text(raw.note).slice(0, LONGEST_NOTE);
  const card = CARDS.find((one) => one === raw.card && held(model, one)) ?? "";
  const left = named(raw.from);
  const seconds = l.figure(raw.seconds, null);
  return {
    step,
    title: printable(l.text(raw.title).slice(0, LONGEST_TITLE).trim() || firstLine(note)),
    note,
    op: op >= 0 && model.recording.ops.has(op) ? op : null,
    sub: op < 0 && sub >= 0 && model.steps[step]?.subgraphs[sub] ? sub : null,
    fn: l.text(raw.function),
    zoom: raw.zoom === "fit" ? "fit" : box(raw.zoom),
    layout: raw.layout === "stacked" || raw.layout === "single" ? raw.layout : "split",
    tab: card ? "results" : raw.tab === "tables" || raw.tab === "ir" || (raw.tab === "results" && anyResult(model)) ? raw.tab : "graph",
    left: left >= 0 && left !== step ? left : null,
    card,
    seconds: seconds !== null && seconds >= 0.1 && seconds <= 3600 ? seconds : null,
  };
}

/** One stop for each step that changed something, then one for each result. */
function everyChange(model: Model): Stop[] {
  const blank: Omit<Stop, "step"> = {
    title: "", note: "", op: null, sub: null, fn: "", zoom: null, layout: "split", tab: "graph", left: null, card: "", seconds: null,
  };
  const stops: Stop[] = [];
  model.steps.forEach((one, step) => {
    if (step === 0 || one.changed || one.error) stops.push({ ...blank, step });
  });
  const last = Math.max(0, model.steps.length - 1);
  const words: [Card, string][] = [["build", "Building it"], ["check", "The same results?"], ["latency", "How fast it is"], ["detections", "What it finds"]];
  for (const [card, title] of words) {
    if (model.steps.length && held(model, card)) stops.push({ ...blank, step: last, title, tab: "results", card });
  }
  return stops;
}

function held(model: Model, card: Card): boolean {
  const r = model.recording.results;
  return card === "detections" ? r.photos.length > 0 : r[card] !== null;
}

function anyResult(model: Model): boolean {
  return CARDS.some((one) => held(model, one)) || Object.keys(model.recording.extra).some((name) => name !== "stops");
}

function box(value: unknown): Box | null {
  const sides = l.list(value);
  const fits = sides.length === 4 && sides.every((one) => typeof one === "number" && Number.isFinite(one));
  return fits && Number(sides[2]) > 0 && Number(sides[3]) > 0 ? (sides as Box) : null;
}

/** The first line of a note that says something, without its marks. */
export function firstLine(note: string): string {
  for (const line of note.slice(0, 4000).split("\n")) {
    const plain = line.replace(/^\s*(?:#{1,6}\s+|[-*+]\s+|\d{1,3}[.)]\s+|>\s*|```.*)/, "").replace(/\[([^\]]{0,500})\]\([^)]{0,500}\)/g, "$1").replace(/[*_`]/g, "").trim();
    if (plain) return plain.length > 110 ? `${plain.slice(0, 109).replace(/\s+\S*$/, "")} …` : plain;
  }
  return "";
}

/** The note without its first line where that is the title already. */
export function bodyOf(note: string, title: string): string {
  const lines = note.trim().split("\n");
  return firstLine(lines[0]) === title ? lines.slice(1).join("\n").trim() : note.trim();
}

/** A machine as people say it: `Intel Xeon Processor, 2 cores`. */
export function machine(facts: Record<string, string>): string {
  const short = (text: string | undefined) => clip(printable((text ?? "").slice(0, 300)).replace(/\((?:R|TM)\)/gi, "").replace(/\s+(?:CPU\s+)?@.*$/, "").replace(/\s+/g, " ").trim(), 60);
  const cores = short(facts.cores);
  return [short(facts.gpu), short(facts.processor), cores && `${cores} ${cores === "1" ? "core" : "cores"}`].filter(Boolean).join(", ") || short(facts.platform);
}

/** `recorded 2026-11-30 on Intel Xeon Processor, 2 cores`. */
export function recordedOn(made: string, facts: Record<string, string>): string {
  const day = /^\d{4}-\d\d-\d\d/.exec(made)?.[0];
  const where = machine(facts);
  return `recorded ${day ?? "at an unknown time"}${where ? ` on ${where}` : ", where is not known"}`;
}
