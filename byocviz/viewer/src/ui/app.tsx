import { useEffect, useState } from "preact/hooks";
import { CHANGES } from "../graph/diff";
import { GraphArea, settle } from "./graph";
import { Inspector } from "./inspector";
import { IrView } from "./ir";
import { onKey } from "./keys";
import { Outline, Overlays } from "./overlays";
import { Rail, StepLine } from "./rail";
import { Results } from "./results";
import { Tables } from "./tables";
import { TopBar } from "./topbar";
import { Icon } from "./icons";
import { clip } from "../data/format";
import { Stage } from "../replay/stage";
import * as s from "./state";

export function App() {
  useEffect(() => {
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  const tab = s.tab.value;
  useEffect(() => {
    // With a drawing, what can wait does so until it stands.
    if (tab !== "graph") void settle();
  }, [tab]);
  const empty = s.model.value.steps.length === 0;
  return (
    <div class="app">
      <TopBar />
      <Messages />
      {!empty && <Rail />}
      {!empty && tab === "graph" && <StepLine />}
      {empty ? (
        <main class="nothing"><h2>Nothing to draw</h2><p>This recording holds no steps.</p></main>
      ) : (
        <div class={`body tab-${tab}`}>
          {tab === "graph" && <Outline />}
          {tab === "graph" && <main class="stage" aria-label="Graph"><GraphArea /><Legend /></main>}
          {tab === "graph" && <Inspector />}
          {tab === "tables" && <Tables />}
          {tab === "ir" && <IrView />}
          {tab === "results" && <Results />}
        </div>
      )}
      <Stage />
      <Overlays />
      {s.toast.value && <div class="toast">{s.toast.value}</div>}
      <div class="sr" role="status" aria-live="polite">{s.said.value}</div>
    </div>
  );
}

function Messages() {
  const [hidden, setHidden] = useState(false);
  const messages = s.messages.value;
  if (hidden || !messages.length) return null;
  return (
    <div class="messages" role="alert">
      <Icon name="warn" />
      <ul>{messages.slice(0, 5).map((m) => <li>{clip(m, 300)}</li>)}{messages.length > 5 && <li>and {messages.length - 5} more</li>}</ul>
      <button class="ghost" aria-label="Dismiss messages" onClick={() => setHidden(true)}><Icon name="close" /></button>
    </div>
  );
}

function Legend() {
  const model = s.model.value;
  const names: [string, string][] = s.colourBy.value === "macs"
    ? [["p-m0", "no MACs"], ["p-m1", "< 0.1 M"], ["p-m2", "< 1 M"], ["p-m3", "< 10 M"], ["p-m4", "more MACs"]]
    : s.colourBy.value === "kind"
      ? [["p-k1", "conv, matmul"], ["p-k2", "activation"], ["p-k3", "shape"], ["p-k4", "pool, norm, reduce"], ["p-k0", "other"]]
      : s.colourBy.value === "region"
        ? [["p-tvm", "TVM"], ["p-r0", "regions, each its own"]]
        : [["p-tvm", "TVM"], ...model.backends.map((b, i): [string, string] => [`p-b${i % 4}`, clip(b, 24)]), ["p-mixed", "some of each"]];
  const changes = [...s.diff.value.counts.keys()];
  return (
    <footer class="legend" aria-label="Legend">
      {names.map(([cls, text]) => <span class={`swatch ${cls}`} key={cls}><i />{text}</span>)}
      <span class="swatch double"><i />composite</span>
      {model.steps[s.step.value]?.reasons.size ? <span class="swatch why"><b>!</b>why on TVM</span> : null}
      <span class="gap" />
      {changes.map((c) => <span class={`swatch c-${c}`} key={c}><b class="glyph">{CHANGES[c].glyph}</b>{CHANGES[c].label}</span>)}
      <label class="colour">colour by <select value={s.colourBy.value} onChange={(e) => (s.colourBy.value = e.currentTarget.value as typeof s.colourBy.value)}>
        <option value="place">where it runs</option><option value="region">region</option><option value="kind">kind</option><option value="macs">MACs</option>
      </select></label>
      <label class="skip"><input type="checkbox" checked={s.plumbing.value} onChange={(e) => (s.plumbing.value = e.currentTarget.checked)} /> constants</label>
    </footer>
  );
}
