/** The steps of the flow, in order. */
import { useEffect, useRef } from "preact/hooks";
import type { Step } from "../schema";
import { CHANGES } from "../graph/diff";
import { percent, plural, seconds, thousands } from "../data/format";
import { Icon } from "./icons";
import * as s from "./state";

/** What a step did, in a few words. */
export function headline(step: Step, i: number): string {
  if (step.error) return `failed: ${step.error.type}`.slice(0, 60);
  if (step.origin === "pending") return "not run yet";
  const model = s.model.value;
  const before = model.steps[i - 1];
  if (!before) return plural(step.profile.total, "operator");
  // Comparing every pair of steps takes longer than the first drawing, which goes first.
  const counts = s.settled.value ? model.diff(i - 1, i).counts : null;
  const outlined = step.name === "partition" && (counts?.get("outlined") ?? step.subgraphs.length) > 0;
  if (!step.changed && !outlined) return "nothing changed";
  switch (step.name) {
    case "prepare": {
      const by = step.profile.total - before.profile.total;
      return by ? `${thousands(before.profile.total)} → ${plural(step.profile.total, "operator")}` : "rewritten, as many operators";
    }
    case "composite": return counts ? `${thousands(counts.get("composite") ?? 0)} into composites` : "…";
    case "annotate": return plural(step.subgraphs.length, "region");
    case "merge": return `${thousands(before.subgraphs.length)} → ${plural(step.subgraphs.length, "subgraph")}`;
    case "partition": return `${plural(step.subgraphs.length, "subgraph")} outlined`;
    case "prune": {
      const back = counts?.get("returned") ?? 0;
      return !counts ? "…" : back ? `${back} back to TVM` : plural(step.subgraphs.length, "subgraph");
    }
    default: return plural(step.profile.total, "operator");
  }
}

export function Rail() {
  const model = s.model.value;
  const list = useRef<HTMLOListElement>(null);
  const now = s.step.value;
  useEffect(() => {
    list.current?.children[now]?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [now]);
  const unchanged = model.steps.some((one) => !one.changed);
  return (
    <nav class="rail" aria-label="Steps">
      <button class="ghost big" aria-label="Previous step" title="Previous step (←)" disabled={now === 0} onClick={() => s.walk(-1)}><Icon name="left" /></button>
      <ol ref={list}>
        {model.steps.map((step, i) => {
          const share = step.profile.total ? step.profile.offloaded_ops / step.profile.total : 0;
          const classes = ["step", i === now ? "now" : "", i === s.left.value ? "other" : "", step.error ? "failed" : !step.changed && i > 0 ? "same" : ""].join(" ");
          return (
            <li key={step.name + i}>
              <button class={classes} aria-current={i === now ? "step" : undefined} onClick={() => s.go(i)} title={step.note.slice(0, 400)}>
                <span class="step-top">
                  <span class="step-dot">{step.error ? "!" : i + 1}</span>
                  <span class="step-name">{step.name}</span>
                  {step.origin === "tvm" && !step.error && <span class="tag" title="A pass of TVM's">TVM</span>}
                </span>
                <span class="step-line">{headline(step, i)}</span>
                <span class="bar" role="img" aria-label={`${percent(share)} of operators on the backend`}><i style={{ width: `${share * 100}%` }} /></span>
              </button>
            </li>
          );
        })}
      </ol>
      <button class="ghost big" aria-label="Next step" title="Next step (→)" disabled={now === model.steps.length - 1} onClick={() => s.walk(1)}><Icon name="right" /></button>
      {unchanged && (
        <label class="skip" title="Arrow keys and buttons pass over steps that changed nothing">
          <input type="checkbox" checked={s.skipping.value} onChange={(e) => (s.skipping.value = e.currentTarget.checked)} /> skip unchanged
        </label>
      )}
    </nav>
  );
}

/** The sentence under the rail: what this step is and did. */
export function StepLine() {
  const model = s.model.value;
  const i = s.step.value;
  const step = model.steps[i];
  if (!step) return null;
  const counts = [...s.diff.value.counts];
  return (
    <div class="step-info">
      <p class="note">{step.note || headline(step, i)}</p>
      <div class="changes" role="group" aria-label="What changed">
        {counts.map(([change, n]) => (
          <button key={change} class={`change c-${change}`} title={`${CHANGES[change].help}: find them`}
            onClick={() => {
              s.query.value = s.query.value === `changed:${change}` ? "" : `changed:${change}`;
              s.hit.value = -1;
            }}>
            <b class="glyph">{CHANGES[change].glyph}</b> {thousands(n)} {CHANGES[change].label}
          </button>
        ))}
        {step.max_difference !== null && <span class="fact">largest difference {step.max_difference.toExponential(1)}</span>}
        {step.verify_error && <span class="fact bad"><Icon name="warn" /> not verified</span>}
        {step.tvm_seconds > 0 && <span class="fact">{seconds(step.tvm_seconds)} in TVM</span>}
      </div>
    </div>
  );
}
