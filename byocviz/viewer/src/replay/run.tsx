/**
 * What was timed, played again: each bar grows for the time that its variant took, engines are
 * built one after the other. Everything is recorded; the pace is said, and so is where and when.
 */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { medians, type Axis } from "../data/latency";
import { plural } from "../data/format";
import type { BuildInfo, Latency } from "../data/results";

import { Icon } from "../ui/icons";
import { say, time } from "../ui/results/parts";
import { building, paceOf, partsOf } from "./pace";
import { recordedOn } from "./stops";
import * as talk from "./talk";

export function Recorded({ made, facts }: { made: string; facts: Record<string, string> }) {
  return <span class="recorded" title="Nothing runs here: these are the figures of the recording">{recordedOn(made, facts)}</span>;
}

function still(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** Counts the times that a card is to be played: on arrival while presenting, and when asked. */
function useRuns(): [number, () => void] {
  const [asked, setAsked] = useState(0);
  return [(talk.presenting.value ? talk.run.value : 0) + asked, () => setAsked(asked + 1)];
}

/** Grows the bars of the chart. */
export function LatencyRun({ latency, on }: { latency: Latency; on: Axis }) {
  const [runs, again] = useRuns();
  const [done, setDone] = useState(true);
  const here = useRef<HTMLSpanElement>(null);
  const most = Math.max(0, ...medians(latency.variants));
  const pace = paceOf(most);
  useLayoutEffect(() => {
    const card = here.current?.closest(".result-card");
    if (!runs || !card || still() || most <= 0) return;
    const playing: Animation[] = [];
    for (const row of card.querySelectorAll<HTMLElement>(".bar-row[data-median]")) {
      const median = Number(row.dataset.median);
      if (!(median > 0)) continue;
      const duration = (median / pace.factor) * 1000;
      const fill = row.querySelector(".fill");
      const steps = on.log ? 40 : 1;
      const widths = Array.from({ length: steps + 1 }, (_, i) => ({ width: `${(on.at((median * i) / steps) * 100).toFixed(3)}%` }));
      if (fill) playing.push(fill.animate(widths, { duration, easing: "linear", fill: "backwards" }));
      for (const rest of row.querySelectorAll(".bar-value, .whisker, .runs, .first, .bar-parts")) {
        playing.push(rest.animate([{ opacity: 0 }, { opacity: 1 }], { delay: duration, duration: 160, fill: "backwards" }));
      }
    }
    setDone(false);
    const timer = setTimeout(() => setDone(true), (most / pace.factor) * 1000);
    return () => {
      clearTimeout(timer);
      playing.forEach((one) => one.cancel());
      setDone(true);
    };
  }, [runs]);
  return (
    <span class="run-line" ref={here} data-playing={done ? undefined : "1"}>
      <button class="ghost small" onClick={again} title="Each bar grows for the time that one run took"><Icon name="play" /> play</button>
      <Recorded made={latency.made} facts={latency.machine} />
      {runs > 0 && <span class="quiet">{still() ? "shown at once, as this system asks for less motion" : `played ${pace.text}`}</span>}
    </span>
  );
}

/** Fills the bar of what building took, and says what is being built. */
export function BuildRun({ build }: { build: BuildInfo }) {
  const [runs, again] = useRuns();
  const [now, setNow] = useState<number | null>(null);
  const here = useRef<HTMLSpanElement>(null);
  const parts = partsOf(build);
  const whole = parts.reduce((sum, one) => sum + one.seconds, 0);
  const pace = paceOf(whole);
  useEffect(() => {
    const bar = here.current?.closest(".result-card")?.querySelector(".build-times .stack-bar");
    if (!runs || !bar || still() || whole <= 0) return;
    const playing = bar.animate([{ clipPath: "inset(0 100% 0 0)" }, { clipPath: "inset(0 0 0 0)" }], {
      duration: (whole / pace.factor) * 1000, easing: "linear", fill: "backwards",
    });
    const begun = performance.now();
    let frame = 0;
    const tick = () => {
      const passed = ((performance.now() - begun) / 1000) * pace.factor;
      setNow(passed < whole ? passed : null);
      if (passed < whole) frame = requestAnimationFrame(tick);
    };
    tick();
    return () => {
      cancelAnimationFrame(frame);
      playing.cancel();
      setNow(null);
    };
  }, [runs]);
  const at = now === null ? null : building(parts, now);
  const doing = at && parts[at.at];
  const n = build.engines.length;
  return (
    <span class="run-line" ref={here} data-playing={at ? "1" : undefined}>
      <button class="ghost small" onClick={again} title="Builds again before the eye, with the recorded times"><Icon name="play" /> play</button>
      <Recorded made={build.made} facts={build.machine} />
      {runs > 0 && <span class="quiet">{still() ? "shown at once, as this system asks for less motion" : `played ${pace.text}`}</span>}
      {doing && (
        <b class="run-now" aria-hidden="true">
          {doing.engine ? `engine ${doing.engine} of ${n}: ${say(doing.name, 40)}` : doing.name}, {time(Math.max(1e-3, Number(at.since.toPrecision(2))))}
        </b>
      )}
      {runs > 0 && !doing && <b class="run-now">{plural(n, "engine")}, all in {time(whole)}</b>}
    </span>
  );
}
