/** The build's numbers against those of TVM alone. */
import { plural } from "../../data/format";
import type { Check, Difference } from "../../data/results";
import { Icon } from "../icons";
import { Table } from "../tables";
import { Card, Sub, Words, say, tiny } from "./parts";

export function CheckCard({ check, step }: { check: Check; step: string }) {
  const over = check.differences.filter((d) => d.exceeds);
  const outputs = check.differences.filter((d) => d.kind === "output").length;
  const sizes = check.differences.map((d) => d.max_abs).filter((v): v is number => v !== null && v > 0);
  const limit = check.atol !== null && check.atol > 0 ? check.atol : null;
  const low = Math.floor(Math.log10(Math.min(...sizes, limit ?? Infinity)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...sizes, limit ?? 0))));
  const at = (v: number) => `${Math.max(0, Math.min(100, ((Math.log10(v) - low) / (high - low)) * 100)).toFixed(2)}%`;
  const drawn = sizes.length > 0 && Number.isFinite(low) && Number.isFinite(high);
  return (
    <Card id="check" title="Check against TVM alone" note={check.inputs ? `on ${say(check.inputs, 120)}` : undefined}>
      <div class={`verdict ${over.length || check.first ? "beyond" : "good"}`}>
        {over.length || check.first ? <Icon name="warn" /> : <Tick />}
        <p>
          {check.differences.length === 0 ? <b>Nothing was compared.</b> : over.length === 0 && !check.first
            ? <b>All {plural(outputs, "output")} and {plural(check.differences.length - outputs, "subgraph")} within tolerance.</b>
            : <><b>{over.length} of {check.differences.length} beyond tolerance.</b> {check.first && <>First subgraph: <Sub name={check.first} step={step} limit={60} /></>}</>}
          <span class="quiet">An element may differ by <span class="mono">{tiny(check.atol)} + {tiny(check.rtol)} × |TVM's|</span>.</span>
        </p>
      </div>
      {check.differences.length > 0 && (
        <div class="bare">
          <Table id="differences" title="Differences" rows={over.length ? [...over, ...check.differences.filter((d) => !d.exceeds)] : check.differences} now={(d) => d.exceeds} columns={[
            { name: "verdict", value: (d) => Number(d.exceeds), show: (d) => <State d={d} /> },
            { name: "tensor", value: (d) => d.name, show: (d) => (d.kind === "subgraph" ? <Sub name={d.name} step={step} limit={30} /> : <Words text={d.name} limit={34} mono />) },
            { name: "max. absolute", number: true, value: (d) => d.max_abs, show: (d) => (
              <span class="dot-cell">
                {drawn && <span class={`dots ${d.exceeds ? "beyond" : ""}`} aria-hidden="true">
                  {limit !== null && <i class="limit" style={{ left: at(limit) }} />}
                  {d.max_abs !== null && <i class="dot" style={{ left: d.max_abs > 0 ? at(d.max_abs) : "0" }} />}
                </span>}
                <b>{tiny(d.max_abs)}</b>
              </span>
            ) },
            { name: "max. relative", number: true, value: (d) => d.max_rel, show: (d) => tiny(d.max_rel) },
            { name: "of", value: (d) => d.kind, show: (d) => (d.kind === "output" ? "the module" : d.kind === "subgraph" ? "a subgraph alone" : say(d.kind, 30)) },
            { name: "note", value: (d) => d.note, show: (d) => (d.note ? <Words text={d.note} limit={120} /> : "–") },
          ]} />
          {drawn && limit !== null && <p class="quiet pad">Dots lie on a logarithmic scale from 10<sup>{low}</sup> to 10<sup>{high}</sup>; the line is the absolute part of the tolerance.</p>}
        </div>
      )}
    </Card>
  );
}

function State({ d }: { d: Difference }) {
  return d.exceeds
    ? <span class="state-over"><Icon name="warn" /> exceeds</span>
    : d.max_abs === null ? <span class="quiet">?</span> : <span class="state-good"><Tick /> within</span>;
}

function Tick() {
  return <svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><path d="M4.5 10.5l3.7 3.7L15.5 6.5" /></svg>;
}
