/** Latency: a bar a variant, with what it costs and covers beside it. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { bytes, figure, percent, plural, seconds } from "../../data/format";
import { axis, baseline, csv, groups, isWide, medians, noisy, speedup, split, times, verdict, type Axis, type Split, type Verdict } from "../../data/latency";
import type { Latency, Variant } from "../../data/results";
import { LatencyRun } from "../../replay/run";
import { card } from "../../replay/talk";
import { Icon } from "../icons";
import { Facts, More } from "../pieces";
import * as s from "../state";
import { Table } from "../tables";
import { Card, Stack, Sub, Switch, Words, range, say, time, when, whereIs } from "./parts";

const PALETTE: Record<string, string> = { tvm: "p-tvm", byoc: "p-b0", runtime: "p-b1", part: "p-b1 partial" };
const KINDS: Record<string, string> = {
  tvm: "every operator on TVM", byoc: "subgraphs in the runtime", runtime: "the whole model in the runtime", part: "only the part that the runtime takes",
};

export function LatencyCard({ latency, step }: { latency: Latency; step: string }) {
  const variants = latency.variants;
  const wide = isWide(variants);
  const [scale, setScale] = useState<"log" | "linear">(wide ? "log" : "linear");
  const [view, setView] = useState<"chart" | "table">("chart");
  // On a stage bars race: their lengths are their times.
  const log = wide && scale === "log" && !card.value;
  const on = axis(variants, log);
  const all = medians(variants);
  const parts = groups(variants);
  return (
    <Card id="latency" title="Latency" note="median of one run; shorter is faster"
      tools={<>
        {wide && view === "chart" && <Switch label="Scale" value={scale} options={[["log", "log"], ["linear", "linear"]]} onChange={setScale} />}
        <Switch label="Latency as" value={view} options={[["chart", "chart"], ["table", "table"]]} onChange={setView} />
        <button class="ghost small" onClick={() => void s.copy(csv(latency), "Copied as CSV")}><Icon name="copy" /> CSV</button>
      </>}>
      {variants.length === 0 && <p class="quiet pad">Nothing was timed.</p>}
      {view === "table" && variants.length > 0 ? <Figures latency={latency} /> : (
        <div class="bars-wrap">
          {on && <LatencyRun latency={latency} on={on} />}
          {log && <p class="quiet scale-note">Logarithmic scale: equal distances are equal ratios. The slowest takes {figure(Math.round(Math.max(...all) / Math.min(...all)))} times as long as the fastest.</p>}
          {on && variants.length > 12 && <Ticks on={on} />}
          {parts.map((group) => (
            <section key={group.setting} class="bar-group" aria-label={group.setting ? say(group.setting) : "Whole model"}>
              {parts.length > 1 && <h3>{group.setting ? <Words text={group.setting} limit={80} /> : "Whole model"}</h3>}
              <ul class="bars">
                <More items={group.variants} first={40}>{(v: Variant, i: number) => <Row key={i} v={v} all={variants} on={on} step={step} />}</More>
              </ul>
            </section>
          ))}
          {on && <Ticks on={on} />}
        </div>
      )}
      <footer class="result-foot">
        {view === "chart" && on && <Key first={variants.some((v) => v.first !== null && v.first <= on.high)} />}
        <p class="quiet">
          {[
            latency.repeat > 0 && `${plural(latency.repeat, "run")} of each, in turn`, latency.warmup > 0 && `after ${latency.warmup} to warm up`,
            "the first run is never in the statistic", latency.made && when(latency.made),
          ].filter(Boolean).join("; ")}
        </p>
        {variants.some(noisy) && <p>Noisy: p90 lies far above p10, so the median and its ratios say little. Time it again when the machine is quiet.</p>}
        {latency.note && <p><Words text={latency.note} limit={300} /></p>}
        {Object.keys(latency.machine).length > 0 && <details><summary>Measured on</summary><Facts rows={Object.entries(latency.machine).slice(0, 60).map(([k, v]) => [say(k, 40), <Words text={v} limit={120} />])} /></details>}
      </footer>
    </Card>
  );
}

function Row({ v, all, on, step }: { v: Variant; all: Variant[]; on: Axis | null; step: string }) {
  const said = verdict(v, all);
  const palette = PALETTE[v.kind] ?? "p-b2";
  const parts = split(v);
  // Names of another setting's subgraphs may stand for something else here.
  const linked = parts?.subgraphs.every((p) => whereIs(p.name, step)) ?? false;
  const facts = [
    v.subgraphs !== null && (v.kind === "byoc" || v.subgraphs > 0) && plural(v.subgraphs, "subgraph"),
    v.boundary_bytes !== null && (v.kind === "byoc" || v.boundary_bytes > 0) && `${bytes(v.boundary_bytes)} across the boundary`,
    v.coverage_ops !== null && v.kind !== "tvm" && `${percent(v.coverage_ops)} of operators`,
  ].filter(Boolean);
  const unknown = v.kind === "byoc" && (v.subgraphs === null || v.boundary_bytes === null);
  return (
    <li class={`bar-row ${palette} ${parts && !v.cannot ? "with-parts" : ""}`} data-median={v.cannot ? undefined : v.median ?? undefined}>
      <div class="bar-name">
        <b><Words text={v.name || "?"} limit={60} /></b>
        <small>{facts.length ? facts.join(" · ") : unknown ? "subgraphs and boundary: ?" : KINDS[v.kind] ?? say(v.kind, 40)}</small>
        {v.note && <small class="note"><Words text={v.note} limit={90} /></small>}
      </div>
      {v.cannot ? (
        <p class="cannot"><Icon name="warn" /><span>cannot: <Words text={v.cannot} limit={110} /></span></p>
      ) : (
        <>
          <div class="lane" aria-hidden="true">{on && <Lane v={v} on={on} parts={parts} />}</div>
          <div class="bar-value">
            <span><b>{time(v.median)}</b>{said && <Speed said={said} base={baseline(v, all)!} />}</span>
            {(v.p10 !== null || v.p90 !== null) && <small>p10–p90 {range(v.p10, v.p90)}</small>}
            {noisy(v) && <small class="noisy">noisy</small>}
            {v.first !== null && <small>first run {time(v.first)}</small>}
          </div>
        </>
      )}
      {parts && !v.cannot && (
        <div class="bar-parts">
          <Stack shares bar={!on || on.log} width={on && v.median !== null ? on.at(v.median) : 1} label={`Where the time of ${say(v.name, 40)} goes`} segments={[
            { cls: "p-b0", label: v.subgraphs === null ? "in subgraphs" : `in ${plural(v.subgraphs, "subgraph")}`, value: parts.inside, text: time(parts.inside) },
            { cls: "p-tvm", label: "on TVM between", value: parts.between, text: time(parts.between) },
          ]} />
          <small class="quiet">{APART}: shares, not sums</small>
          {parts.subgraphs.length > 0 && (
            <details>
              <summary>{parts.subgraphs.length === 1 ? "The subgraph" : "Each subgraph"}</summary>
              <ul class="part-list">
                <More items={[...parts.subgraphs].sort((a, b) => (b.median ?? -1) - (a.median ?? -1))} first={8}>
                  {(p, i) => (
                    <li key={i}>
                      {linked ? <Sub name={p.name} step={step} limit={28} /> : <Words text={p.name} limit={30} mono />}
                      <span class="bar"><i style={{ width: `${((p.median ?? 0) / parts.most) * 100}%` }} /></span>
                      <b>{time(p.median)}</b>
                    </li>
                  )}
                </More>
              </ul>
            </details>
          )}
        </div>
      )}
    </li>
  );
}

/** Parts are timed so, that the clock slows no other run. */
const APART = "in runs of their own, with a clock in them";

function Speed({ said, base }: { said: Verdict; base: Variant }) {
  const words = `as fast as ${say(base.name, 40)}`;
  return (
    <span class={`speed ${said.faster === "yes" ? "" : said.faster === "no" ? "slower" : "unsure"}`} title={`${times(said.ratio)} ${words}${said.faster ? "" : ": within the noise of the runs"}`}>
      {said.text}<span class="sr"> {words}</span>
    </span>
  );
}

/** The drawing of one bar: median, p10 to p90, each run as a tick, the first one apart. */
function Lane({ v, on, parts }: { v: Variant; on: Axis; parts: Split | null }) {
  const at = (t: number) => `${(on.at(t) * 100).toFixed(3)}%`;
  const every = Math.ceil(v.seconds.length / 400);
  const runs = v.seconds.filter((t, i) => i % every === 0 && t >= on.low && t <= on.high).map((t) => `M${(on.at(t) * 1000).toFixed(1)} 0V10`).join("");
  return (
    <>
      {on.ticks.map((t) => <i key={t} class="rule" style={{ left: at(t) }} />)}
      {v.median !== null && v.median > 0 && (
        <i class="fill" style={{ width: at(v.median) }}>
          {/* On a logarithmic axis lengths do not add up. */}
          {parts && !on.log && <i class="rest p-tvm" style={{ width: `${(parts.between / (parts.inside + parts.between)) * 100}%` }} />}
        </i>
      )}
      {runs && <svg class="runs" viewBox="0 0 1000 10" preserveAspectRatio="none"><path d={runs} /></svg>}
      {v.p10 !== null && v.p90 !== null && v.p90 >= v.p10 && (
        <i class="whisker" style={{ left: at(v.p10), width: `${Math.max(0, (on.at(v.p90) - on.at(v.p10)) * 100).toFixed(3)}%` }} />
      )}
      {v.first !== null && v.first >= on.low && v.first <= on.high && <i class="first" style={{ left: at(v.first) }} />}
    </>
  );
}

/** Labels that would touch one that stands already are left out, the lesser ones first. */
function thin(lane: HTMLElement) {
  const stand: DOMRect[] = [];
  const labels = [...lane.querySelectorAll<HTMLElement>("span")];
  const lesser = (label: HTMLElement) => Number(label.classList.contains("minor"));
  for (const label of labels.sort((a, b) => lesser(a) - lesser(b))) {
    const box = label.getBoundingClientRect();
    const free = stand.every((other) => box.left > other.right + GAP || box.right + GAP < other.left);
    label.classList.toggle("over", !free);
    if (free) stand.push(box);
  }
}

const GAP = 8; // pixels between two labels

function Ticks({ on }: { on: Axis }) {
  const lane = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = lane.current!;
    const watch = new ResizeObserver(() => thin(element));
    watch.observe(element);
    for (const label of element.children) watch.observe(label);
    thin(element);
    return () => watch.disconnect();
  }, [on.ticks.join()]);
  return (
    <div class="bar-row axis" aria-hidden="true">
      <span />
      <div class="lane" ref={lane}>{on.ticks.map((t, i) => (
        <span key={t} class={`${on.at(t) > 0.95 ? "last" : on.at(t) < 0.04 ? "start" : ""} ${(on.log ? !/^1e/.test(t.toExponential()) : on.ticks.length > 5 && i % 2 === 1) ? "minor" : ""}`} style={{ left: `${on.at(t) * 100}%` }}>{t === 0 ? "0" : seconds(t)}</span>
      ))}</div>
      <span />
    </div>
  );
}

function Key({ first }: { first: boolean }) {
  const item = (cls: string, text: string): ComponentChildren => <span class="key-item"><i class={`key ${cls}`} aria-hidden="true" />{text}</span>;
  return <p class="bar-key">{item("k-fill", "median")}{item("k-whisker", "p10 to p90")}{item("k-one", "one run")}{first && item("k-first", "first run")}</p>;
}

function Figures({ latency }: { latency: Latency }) {
  // What a variant without subgraphs cannot have is not unknown.
  const known = (v: Variant, value: number | null, how: (value: number) => string) => (value !== null ? how(value) : v.kind === "byoc" ? "?" : "–");
  const settings = latency.variants.some((v) => v.setting);
  return (
    <div class="bare">
      <Table id="latency" title="Figures" note={latency.variants.some((v) => split(v)) ? `"In subgraphs" and "TVM between" were timed ${APART}: they do not add up to the median.` : undefined} rows={latency.variants} columns={[
        { name: "variant", value: (v) => v.name, show: (v) => <Words text={v.name} limit={60} /> },
        ...(settings ? [{ name: "setting", value: (v: Variant) => v.setting, show: (v: Variant) => (v.setting ? <Words text={v.setting} limit={40} /> : "–") }] : []),
        { name: "median", number: true, value: (v) => v.median, show: (v) => (v.cannot ? <span class="bad">cannot: <Words text={v.cannot} limit={40} /></span> : time(v.median)) },
        { name: "p10", number: true, value: (v) => v.p10, show: (v) => (v.cannot ? "–" : time(v.p10)) },
        { name: "p90", number: true, value: (v) => v.p90, show: (v) => (v.cannot ? "–" : time(v.p90)) },
        { name: "first run", number: true, value: (v) => v.first, show: (v) => (v.cannot ? "–" : time(v.first)) },
        { name: "× TVM alone", number: true, value: (v) => speedup(v, latency.variants), show: (v) => { const r = speedup(v, latency.variants); return r === null ? "–" : times(r); } },
        { name: "subgraphs", number: true, value: (v) => v.subgraphs, show: (v) => known(v, v.subgraphs, String) },
        { name: "boundary", number: true, value: (v) => v.boundary_bytes, show: (v) => known(v, v.boundary_bytes, bytes) },
        { name: "coverage", number: true, value: (v) => v.coverage_ops, show: (v) => known(v, v.coverage_ops, percent) },
        { name: "in subgraphs", number: true, value: (v) => split(v)?.inside ?? null, show: (v) => known(v, split(v)?.inside ?? null, time) },
        { name: "TVM between", number: true, value: (v) => split(v)?.between ?? null, show: (v) => known(v, split(v)?.between ?? null, time) },
      ]} />
    </div>
  );
}
