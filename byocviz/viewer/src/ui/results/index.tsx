/** What building, checking and timing added to the recording: one card a part that is there. */
import "./results.css";
import { plural } from "../../data/format";
import { noisy, verdict } from "../../data/latency";
import type { Results as Data } from "../../data/results";
import { Icon } from "../icons";
import { useStageSize } from "../../replay/stage";
import { card } from "../../replay/talk";
import * as s from "../state";
import { BuildCard } from "./build";
import { CheckCard } from "./check";
import { DetectionsCard } from "./detections";
import { Extra } from "./extra";
import { LatencyCard } from "./latency";
import { say, time, tiny } from "./parts";

export function Results() {
  const { results: r, extra } = s.model.value.recording;
  const only = card.value;
  const main = useStageSize();
  const on = (id: typeof only) => !only || only === id;
  const pair = !only && r.latency !== null && r.photos.length > 0;
  return (
    <main ref={main} class={`tables results ${only ? "one-card" : ""}`} data-scrolls aria-label="Results">
      {r.build?.stands_in_for && (
        <p class="stand-in"><Icon name="warn" /><span><b>{say(r.build.title, 60)} stands in for {say(r.build.stands_in_for, 60)}</b>{r.build.why && `: ${say(r.build.why, 300)}`}</span></p>
      )}
      {r.build?.cannot_run && (
        <p class="stand-in"><Icon name="warn" /><span><b>Built, and cannot run where it was built</b>: {say(r.build.cannot_run, 300)}</span></p>
      )}
      {!only && <Headlines r={r} />}
      <div class={pair ? "result-pair" : "result-alone"}>
        {r.latency && on("latency") && <LatencyCard latency={r.latency} step={r.build?.step ?? ""} />}
        {r.photos.length > 0 && on("detections") && <DetectionsCard photos={r.photos} />}
      </div>
      {r.check && on("check") && <CheckCard check={r.check} step={r.build?.step ?? ""} />}
      {r.build && on("build") && <BuildCard build={r.build} />}
      {!only && <Extra extra={extra} />}
    </main>
  );
}

/** The few figures to read from the back of a hall; each leads to its card. */
function Headlines({ r }: { r: Data }) {
  const items: { id: string; big: string; small: string; bad?: boolean }[] = [];
  const variants = r.latency?.variants ?? [];
  // The first is this build's own; the others are settings that it is compared with.
  const own = variants.find((v) => v.kind === "byoc" && v.median !== null && !v.cannot);
  if (own) {
    const said = verdict(own, variants);
    const unsure = noisy(own) ? ", noisy" : "";
    items.push(said !== null
      ? { id: "latency", big: said.text, small: `${said.text === "same" ? "speed" : "as fast"} as TVM alone, in ${time(own.median)}${unsure}` }
      : { id: "latency", big: time(own.median), small: `${say(own.name, 40)}${unsure}` });
  }
  if (r.check) {
    const over = r.check.differences.filter((d) => d.exceeds).length;
    const most = Math.max(...r.check.differences.map((d) => d.max_abs ?? 0), 0);
    items.push({
      id: "check", bad: over > 0, big: over ? plural(over, "tensor") : tiny(most),
      small: over ? `of ${r.check.differences.length} beyond tolerance` : "largest difference, within tolerance",
    });
  }
  if (r.photos.length) {
    const first = r.photos.map((p) => p.detected[0]?.found.length ?? 0);
    const scores = r.photos.flatMap((p) => p.detected.slice(1).map((d) => d.max_score));
    const known = scores.filter((one): one is number => one !== null);
    items.push({
      id: "detections", big: plural(first.reduce((a, b) => a + b, 0), "detection"),
      small: known.length && known.length === scores.length ? `scores differ by at most ${tiny(Math.max(...known))}` : `in ${plural(r.photos.length, "photo")}`,
    });
  }
  if (r.build) {
    const seconds = r.build.engines.map((e) => e.seconds);
    items.push({
      id: "build", big: plural(r.build.engines.length, "engine"),
      small: `built in ${seconds.includes(null) ? "?" : time(seconds.reduce<number>((a, b) => a + b!, 0))}`,
    });
  }
  if (items.length < 2) return null;
  const show = (id: string) => {
    const card = document.getElementById(`result-${id}`);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    card?.scrollIntoView({ block: "start", behavior: still ? "auto" : "smooth" });
    card?.focus({ preventScroll: true });
  };
  return (
    <nav class="headlines" aria-label="Results at a glance">
      {items.map((one) => (
        <button key={one.id} class={one.bad ? "over-limit" : ""} onClick={() => show(one.id)}>
          <b>{one.bad && <Icon name="warn" />}{one.big}</b> <span>{one.small}</span>
        </button>
      ))}
    </nav>
  );
}
