/** The speaker's window: what to say now, what comes next, and the time. */
import "./replay.css";
import { useEffect, useState } from "preact/hooks";
import { clip } from "../data/format";
import { Icon } from "../ui/icons";
import * as s from "../ui/state";
import { Note } from "./note";
import { bodyOf, stopsOf } from "./stops";
import * as talk from "./talk";
import { answers, ask, follow, told } from "./wire";

export function openSpeakerPage(): void {
  talk.stops.value = stopsOf(s.model.value);
  s.settled.value = true; // no drawing comes first here
  document.documentElement.classList.add("speaker-page");
  document.title = `Speaker: ${document.title}`;
  document.addEventListener("keydown", onKey);
  follow();
}

function go(by: number): void {
  const state = told.value;
  if (state) ask({ type: "go", to: state.at + by });
}

function onKey(event: KeyboardEvent): void {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const onButton = event.target instanceof Element && event.target.closest("button") !== null;
  const state = told.value;
  switch (event.key) {
    case "ArrowRight": case "PageDown": go(1); break;
    case "ArrowLeft": case "PageUp": go(-1); break;
    case " ":
      if (onButton) return;
      go(event.shiftKey ? -1 : 1);
      break;
    case "Home": ask({ type: "go", to: 0 }); break;
    case "End": ask({ type: "go", to: talk.stops.value.length - 1 }); break;
    case "a": if (state) ask({ type: "auto", on: !state.auto }); break;
    case "b": case ".": if (state) ask({ type: "blank", on: !state.blank }); break;
    case "d": s.setTheme(s.isDark() ? "light" : "dark"); break;
    default: return;
  }
  event.preventDefault();
}

export function Speaker() {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 250);
    return () => clearInterval(timer);
  }, []);
  const state = told.value;
  const all = talk.stops.value;
  const one = state ? all[state.at] : undefined;
  const next = state ? all[state.at + 1] : undefined;
  const passed = state?.started ? Math.max(0, now - state.started) : 0;
  const left = state?.until ? Math.max(0, state.until - now) : null;
  const title = one ? talk.titleOf(one) : "";
  const note = bodyOf(one?.note ?? "", title) || (one && !one.card ? s.model.value.steps[one.step]?.note : "") || "";
  return (
    <div class="speaker">
      <header>
        <p class="speaker-clock"><span class="quiet">now</span><b>{new Date(now).toTimeString().slice(0, 5)}</b></p>
        <p class="speaker-clock"><span class="quiet">since the start</span><b class="speaker-elapsed">{clock(passed)}</b></p>
        {left !== null && <p class="speaker-clock"><span class="quiet">next in</span><b>{clock(left)}</b></p>}
        <span class="gap" />
        <button onClick={() => ask({ type: "clock" })}>start the clock anew</button>
      </header>
      {!answers.value && (
        <p class="stand-in" role="alert"><Icon name="warn" /><span><b>The stage does not answer.</b> It was closed, or shows another page: open the replay again and press s there.</span></p>
      )}
      {state?.blank && <p class="stand-in"><Icon name="warn" /><span><b>The screen is black</b>; b brings it back.</span></p>}
      {one && state ? (
        <>
          <div class="speaker-head">
            <b class="talk-count">{state.at + 1}<span> / {all.length}</span></b>
            <h1>{title}</h1>
          </div>
          <main class="speaker-note" tabIndex={0} aria-label="Note">{note ? <Note text={note} /> : <p class="quiet">No note.</p>}</main>
          <section class="speaker-next" aria-label="Next stop">
            <span class="quiet">next</span>
            <p>{next ? talk.titleOf(next) : "That was the last stop."}</p>
            {next && <span class="quiet">{clip([s.model.value.steps[next.step]?.name, next.tab !== "graph" && (next.card || next.tab)].filter(Boolean).join(", "), 60)}</span>}
          </section>
          <footer class="speaker-tools">
            <button class="primary" disabled={state.at === 0} onClick={() => go(-1)}><Icon name="left" /> before</button>
            <button class="primary" disabled={state.at >= all.length - 1} onClick={() => go(1)}>next <Icon name="right" /></button>
            <span class="gap" />
            <button aria-pressed={state.auto} onClick={() => ask({ type: "auto", on: !state.auto })}>{state.auto ? "pause" : "go on by itself"}</button>
            <button aria-pressed={state.blank} onClick={() => ask({ type: "blank", on: !state.blank })}>black screen</button>
          </footer>
        </>
      ) : answers.value && <main class="speaker-note"><p class="quiet">Waiting for the stage …</p></main>}
    </div>
  );
}

function clock(ms: number): string {
  const whole = Math.floor(ms / 1000);
  const two = (n: number) => String(n).padStart(2, "0");
  const hours = Math.floor(whole / 3600);
  return `${hours ? `${hours}:` : ""}${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
}
