/** What several cards of the results use. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { clip, seconds } from "../../data/format";
import { printable } from "../../draw/svg";
import type { Step } from "../../schema";
import { Icon } from "../icons";
import { loadTexts } from "../ir";
import { Name, SubLink } from "../pieces";
import * as s from "../state";

export function Card({ id, title, note, tools, children }: {
  id: string; title: string; note?: ComponentChildren; tools?: ComponentChildren; children: ComponentChildren;
}) {
  return (
    <section class="table-card result-card" id={`result-${id}`} aria-labelledby={`result-${id}-title`} tabIndex={-1}>
      <header><h2 id={`result-${id}-title`}>{title}</h2>{note && <p class="quiet">{note}</p>}{tools && <div class="result-tools">{tools}</div>}</header>
      {children}
    </section>
  );
}

/** A text from a file: what turns or hides text is taken out, and it is cut. */
export function say(text: string, limit = 80): string {
  return clip(printable(text), limit);
}

export function Words({ text, limit = 60, mono = false }: { text: string; limit?: number; mono?: boolean }) {
  return <Name text={printable(text)} limit={limit} mono={mono} />;
}

/** A time that may be unknown. */
export function time(value: number | null): string {
  return value === null ? "?" : value === 0 ? "0 s" : seconds(value);
}

/** A difference: plain where that is short, else as a power of ten. */
export function tiny(value: number | null): string {
  if (value === null) return "?";
  if (value === 0 || (value >= 1e-3 && value < 1e4)) return String(Number(value.toPrecision(3)));
  const [lead, power] = value.toExponential(1).split("e");
  return `${lead} × 10${[...power.replace("+", "")].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(c)])).join("")}`;
}

/** Two times, the unit once where it is the same. */
export function range(from: number | null, to: number | null): string {
  const [a, b] = [time(from), time(to)];
  const [unit, same] = [a.split(" ")[1], b.split(" ")[1]];
  return unit && unit === same ? `${a.split(" ")[0]} – ${b}` : `${a} – ${b}`;
}

export function when(made: string): string {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(made) ? `${made.slice(0, 10)} ${made.slice(11, 16)} UTC` : say(made, 40);
}

/** One of a few, as pressed and unpressed buttons: the arrow keys go on walking the steps. */
export function Switch<T extends string>({ label, value, options, onChange }: {
  label: string; value: T; options: [T, string][]; onChange: (to: T) => void;
}) {
  return (
    <div class="switch" role="group" aria-label={label}>
      {options.map(([id, text]) => <button key={id} class={id === value ? "on" : ""} aria-pressed={id === value} onClick={() => onChange(id)}>{text}</button>)}
    </div>
  );
}

/** One of many: buttons while they fit on a line, else a list to choose from. */
export function Pick({ label, value, names, onChange }: { label: string; value: number; names: string[]; onChange: (to: number) => void }) {
  if (names.length < 2) return null;
  if (names.length <= 4 && names.join("").length < 90) {
    return <Switch label={label} value={String(value)} options={names.map((name, i): [string, string] => [String(i), say(name, 34)])} onChange={(to) => onChange(Number(to))} />;
  }
  return (
    <select class="pick" aria-label={label} value={value} onChange={(e) => onChange(Number(e.currentTarget.value))}>
      {names.slice(0, 1000).map((name, i) => <option key={i} value={i}>{say(name, 60)}</option>)}
    </select>
  );
}

export interface Segment { cls: string; label: string; value: number; text: string }

/**
 * Shares of a whole as one bar, named and counted beneath. `width` is a share of the place; `shares`
 * says that these are what is known, and the figures only how they were found.
 */
export function Stack({ label, segments, width = 1, bar = true, shares = false }: {
  label: string; segments: Segment[]; width?: number; bar?: boolean; shares?: boolean;
}) {
  const total = segments.reduce((sum, one) => sum + one.value, 0);
  const share = (one: Segment) => (total > 0 ? (one.value / total) * 100 : 0);
  return (
    <div class="stack">
      {bar && <div class="stack-bar" style={{ width: `${width * 100}%` }} aria-hidden="true">{segments.map((one) => <i key={one.label} class={one.cls} style={{ width: `${share(one)}%` }} />)}</div>}
      <ul class="stack-key" aria-label={label}>
        {segments.map((one) => {
          const [first, second] = shares ? [`${share(one).toFixed(0)} %`, one.text] : [one.text, `${share(one).toFixed(0)} %`];
          return <li key={one.label} class={`swatch ${one.cls}`}><i aria-hidden="true" /><span>{one.label}</span> <b>{first}</b> <span class="quiet">{second}</span></li>;
        })}
      </ul>
    </div>
  );
}

const places = new WeakMap<Step, Map<string, number>>();

/** Subgraphs of a step by name, and by function (the first call of it). */
function subgraphsOf(step: Step): Map<string, number> {
  let found = places.get(step);
  if (!found) {
    found = new Map();
    for (let i = step.subgraphs.length - 1; i >= 0; i--) found.set(step.subgraphs[i].function, i);
    step.subgraphs.forEach((sub, i) => found!.set(sub.name, i));
    places.set(step, found);
  }
  return found;
}

/** Where a subgraph is drawn: at the step that was built, else at the last that has it. */
export function whereIs(name: string, step: string): { step: number; index: number } | null {
  const steps = s.model.value.steps;
  const asked = steps.findIndex((one) => one.name === step);
  for (const at of [...(asked >= 0 ? [asked] : []), ...[...steps.keys()].reverse()]) {
    const index = subgraphsOf(steps[at]).get(name);
    if (index !== undefined) return { step: at, index };
  }
  return null;
}

/** A subgraph's number, which leads to the graph, and its name. */
export function Sub({ name, step, limit = 30 }: { name: string; step: string; limit?: number }) {
  const at = whereIs(name, step);
  return (
    <span class="sub-name">
      {at && <SubLink index={at.index} step={at.step} />} <Words text={name} limit={limit} mono />
    </span>
  );
}

const LINES = 600;

/** A long text of the recording, fetched when it is opened. */
export function TextPanel({ title, textKey, onClose }: { title: string; textKey: string; onClose: () => void }) {
  const [all, setAll] = useState<Record<string, string> | null>(null);
  const [most, setMost] = useState(LINES);
  const box = useRef<HTMLElement>(null);
  useEffect(() => void loadTexts().then(setAll), []);
  useEffect(() => {
    setMost(LINES);
    box.current?.scrollIntoView({ block: "nearest" });
    box.current?.focus({ preventScroll: true });
  }, [textKey]);
  const text = all && Object.hasOwn(all, textKey) ? all[textKey] : null;
  const lines = text?.split("\n") ?? [];
  return (
    <section class="text-panel" ref={box} tabIndex={-1} aria-label={title}
      onKeyDown={(e) => {
        if (e.key !== "Escape") return;
        e.stopPropagation();
        onClose();
      }}>
      <header>
        <h3>{title}</h3>
        {text !== null && <span class="quiet">{lines.length.toLocaleString("en-US")} lines</span>}
        <span class="gap" />
        <button class="ghost small" disabled={text === null} onClick={() => void s.copy(text ?? "", "Copied the text")}><Icon name="copy" /> copy</button>
        <button class="ghost" aria-label={`Close ${title}`} onClick={onClose}><Icon name="close" /></button>
      </header>
      {all === null ? <p class="quiet pad">Reading …</p> : text === null ? <p class="bad pad">This page does not hold the text.</p> : (
        <pre tabIndex={0} aria-label={`${title}, text`}>{printLines(lines.slice(0, most))}</pre>
      )}
      {lines.length > most && <button class="ghost more" onClick={() => setMost(most + 5000)}>{Math.min(5000, lines.length - most).toLocaleString("en-US")} more of {lines.length.toLocaleString("en-US")} lines</button>}
    </section>
  );
}

function printLines(lines: string[]): string {
  return lines.map((line) => printable((line.length > 60_000 ? `${line.slice(0, 60_000)} …` : line).replaceAll("\t", "    "))).join("\n");
}
