/** IR text before and after as a line diff, with the call that made the one from the other. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { diffLines, hunks, pairs, segments, type Hunk, type Line } from "../data/textdiff";
import { unpack } from "../data/decode";
import { documents } from "../data/lenient";
import { clip } from "../data/format";
import { printable } from "../draw/svg";
import { Icon } from "./icons";
import { Code } from "./pieces";
import * as s from "./state";

let texts: Promise<Record<string, string>> | null = null;

/** IR texts stand apart in the page, packed, as most readers never look at them. */
export function loadTexts(): Promise<Record<string, string>> {
  texts ??= (async () => {
    const own = s.model.value.recording.texts;
    const packed = document.getElementById("byocviz-texts")?.textContent;
    if (!packed?.trim()) return own;
    try {
      return { ...own, ...documents(await unpack(packed)) };
    } catch (error) {
      s.tell(`The IR texts cannot be read: ${String(error).slice(0, 120)}`);
      return own;
    }
  })();
  return texts;
}

const LONG = 400;
const FIRST = 1200;

export function IrView() {
  const model = s.model.value;
  const at = s.step.value;
  const left = s.left.value;
  const [all, setAll] = useState<Record<string, string> | null>(null);
  const [name, setName] = useState<string | null>(null);
  const [whole, setWhole] = useState(false);
  const [only, setOnly] = useState(true);
  const [beside, setBeside] = useState(window.innerWidth > 1000);
  useEffect(() => void loadTexts().then(setAll), []);
  const step = model.steps[at];
  const functions = useMemo(() => {
    const before = new Map(left === null ? [] : model.steps[left].functions.map((f) => [f.name, f.text]));
    const after = new Map(step?.functions.map((f) => [f.name, f.text]) ?? []);
    const names = [...new Set([...after.keys(), ...before.keys()])];
    const rows = names.map((one) => ({
      name: one, before: before.get(one) ?? "", after: after.get(one) ?? "",
      state: left === null ? "same" : !before.has(one) ? "new" : !after.has(one) ? "gone" : before.get(one) !== after.get(one) ? "changed" : "same",
    }));
    const rank = { changed: 0, new: 1, gone: 2, same: 3 } as Record<string, number>;
    const entry = model.recording.entry;
    return rows.sort((a, b) => Number(b.name === entry) - Number(a.name === entry) || rank[a.state] - rank[b.state]);
  }, [model, at, left]);
  const shownFunctions = functions.filter((f) => !only || f.state !== "same" || f.name === model.recording.entry);
  const chosen = functions.find((f) => f.name === name) ?? functions[0];
  const lines = useMemo(() => (all && chosen ? diffLines(left === null ? "" : all[chosen.before] ?? "", all[chosen.after] ?? "") : []), [all, chosen, left]);
  const shown: Hunk[] = useMemo(
    () => (whole || left === null || lines.every((l) => l.kind === "same") ? [{ kind: "lines", lines }] : hunks(lines)),
    [lines, whole, left],
  );
  const plain = left === null;
  const added = plain ? 0 : lines.filter((l) => l.kind === "add").length;
  const gone = plain ? 0 : lines.filter((l) => l.kind === "del").length;
  return (
    <main class="ir" aria-label="IR text">
      <nav class="ir-list" aria-label="Functions" data-scrolls>
        <label class="skip"><input type="checkbox" checked={only} onChange={(e) => setOnly(e.currentTarget.checked)} /> changed only</label>
        {shownFunctions.slice(0, 500).map((f) => (
          <button class={f === chosen ? "now" : ""} aria-current={f === chosen ? "true" : undefined} onClick={() => setName(f.name)} title={f.name.slice(0, 300)}>
            <span class={`state ${f.state}`}>{({ new: "+", gone: "−", changed: "~", same: "·" } as Record<string, string>)[f.state]}</span>
            <span class="mono">{clip(f.name, 30)}</span>
          </button>
        ))}
        {shownFunctions.length > 500 && <p class="quiet pad">and {shownFunctions.length - 500} more</p>}
      </nav>
      <div class="ir-main">
        <header class="ir-head">
          <h2>{left === null ? "" : <><span class="quiet">{model.steps[left].name}</span> <Icon name="arrow" /> </>}{step?.name}</h2>
          <span class="add-count">+{added}</span><span class="del-count">−{gone}</span>
          {!plain && <label class="skip"><input type="checkbox" checked={beside} onChange={(e) => setBeside(e.currentTarget.checked)} /> side by side</label>}
          <label class="skip"><input type="checkbox" checked={whole} onChange={(e) => setWhole(e.currentTarget.checked)} /> whole text</label>
          {all && chosen && <button class="ghost small" onClick={() => void s.copy(all[chosen.after] || all[chosen.before] || "", "Copied the IR text")}><Icon name="copy" /> copy text</button>}
        </header>
        {step?.call && <Code text={step.call} label={step.origin === "tvm" ? "the TVM call of this step" : "the call of this step (byocviz's own)"} />}
        <div class="diff" tabIndex={0} role="region" aria-label="Line diff" data-scrolls>
          {!all ? <p class="quiet pad">reading…</p> : lines.length === 0 ? <p class="quiet pad">No IR text was recorded for this function.</p> : (
            <>
              {!plain && added + gone === 0 && <p class="quiet pad">The text of this function is the same at both steps.</p>}
              {shown.map((h, i) => <HunkView key={`${at}.${left}.${chosen?.name.slice(0, 50)}.${i}`} hunk={h} plain={plain} beside={beside} />)}
            </>
          )}
        </div>
      </div>
    </main>
  );
}

function HunkView({ hunk, plain, beside }: { hunk: Hunk; plain: boolean; beside: boolean }) {
  const [open, setOpen] = useState(hunk.kind === "lines");
  const [most, setMost] = useState(FIRST);
  if (!open) return <button class="skip-lines" onClick={() => setOpen(true)}>{hunk.lines.length} equal lines</button>;
  const rows = pairs(hunk.lines);
  return (
    <>
      {rows.slice(0, most).map(({ left, right }) => {
        if (plain) return <LineView line={right ?? left!} side="right" plain />;
        const same = left?.kind === "same";
        if (beside) {
          return (
            <div class="pair">
              {left ? <LineView line={left} other={same ? undefined : right?.text} side="left" /> : <div class="line none" />}
              {right ? <LineView line={right} other={same ? undefined : left?.text} side="right" /> : <div class="line none" />}
            </div>
          );
        }
        if (same) return <LineView line={right!} side="right" />;
        return <>{left && <LineView line={left} other={right?.text} side="left" />}{right && <LineView line={right} other={left?.text} side="right" />}</>;
      })}
      {rows.length > most && <button class="skip-lines" onClick={() => setMost(most + 3000)}>{rows.length - most} more lines</button>}
    </>
  );
}

function LineView({ line, other, side, plain = false }: { line: Line; other?: string; side: "left" | "right"; plain?: boolean }) {
  const [all, setAll] = useState(false);
  const kind = plain ? "same" : line.kind;
  const text = all || line.text.length <= LONG ? line.text.slice(0, 50_000) : line.text.slice(0, LONG);
  const at = side === "left" ? line.a : line.b;
  const parts = useMemo(() => (other === undefined ? null : segments(text, other, side)), [text, other, side]);
  return (
    <div class={`line ${kind}`}>
      <span class="no">{at >= 0 ? at + 1 : ""}</span>
      <span class="sign">{kind === "add" ? "+" : kind === "del" ? "−" : " "}</span>
      <code>
        {parts ? parts.map((p) => (p.changed ? <mark>{printable(p.text)}</mark> : printable(p.text))) : printable(text)}
        {line.text.length > LONG && <button class="ghost small" onClick={() => setAll(!all)}>{all ? "less" : `… ${line.text.length - LONG} more`}</button>}
      </code>
    </div>
  );
}
