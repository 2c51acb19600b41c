/** What presenting adds to the page: the line below with the stop, its note, and the black screen. */
import "./replay.css";
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { clip } from "../data/format";
import { printable } from "../draw/svg";
import { Icon } from "../ui/icons";
import * as s from "../ui/state";
import { noteOn, toggleAuto } from "./keys";
import { Note } from "./note";
import { bodyOf } from "./stops";
import * as talk from "./talk";
import { heard, openSpeaker } from "./wire";

/** A button that does not keep the keyboard: Space goes on, whatever was clicked. */
function Press({ label, title, on, disabled, act, children }: {
  label: string; title: string; on?: boolean; disabled?: boolean; act: () => void; children: ComponentChildren;
}) {
  return (
    <button class="ghost" aria-label={label} title={title} aria-pressed={on} disabled={disabled}
      onClick={(e) => {
        act();
        if (e.detail > 0) e.currentTarget.blur();
      }}>{children}</button>
  );
}

export function Stage() {
  const one = talk.stop.value;
  const n = talk.at.value;
  const all = talk.stops.value.length;
  const note = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const root = document.documentElement.classList;
    root.toggle("presenting", talk.presenting.value);
    root.toggle("hushed", talk.presenting.value && talk.hushed.value);
  }, [talk.presenting.value, talk.hushed.value]);
  useEffect(() => {
    note.current?.scrollTo(0, 0);
  }, [n]);
  if (!one) return null;
  const title = talk.titleOf(one);
  const body = bodyOf(one.note, title);
  const end = talk.until.value;
  const r = s.model.value.recording;
  return (
    <>
      {body && noteOn() && <div class="stage-note" ref={note} data-scrolls><Note text={body} /></div>}
      <footer class="talk" aria-label="Presenter">
        <div class="talk-progress" aria-hidden="true"><i style={{ width: `${((n + 1) / all) * 100}%` }} /></div>
        <span class="talk-moves">
          <Press label="Stop before" title="Stop before (←)" disabled={n === 0} act={() => talk.walk(-1)}><Icon name="left" /></Press>
          <b class="talk-count">{n + 1}<span> / {all}</span></b>
          <Press label="Next stop" title="Next stop (→)" disabled={n === all - 1} act={() => talk.walk(1)}><Icon name="right" /></Press>
        </span>
        <h2 class="talk-title">{title}</h2>
        <p class="talk-what">{clip(printable(r.title), 46)}{r.backend.name && ` for ${clip(printable(r.backend.name), 24)}`}</p>
        <span class="talk-tools">
          {talk.hushed.value && s.messages.value.length > 0 && (
            <Press label="Messages" title="Messages" act={() => (talk.hushed.value = false)}><Icon name="warn" /></Press>
          )}
          <Press label={talk.auto.value ? "Pause" : "Go on by itself"} title={talk.auto.value ? "Pause (a)" : "Go on by itself (a)"} on={talk.auto.value} act={toggleAuto}>
            {talk.auto.value && end !== null
              ? <svg class="talk-ring" viewBox="0 0 20 20" key={end} aria-hidden="true"><circle cx="10" cy="10" r="8" pathLength="1" style={{ animationDuration: `${Math.max(0, end - Date.now())}ms` }} /><path d="M8 7v6M12 7v6" /></svg>
              : <Icon name="play" />}
          </Press>
          <Press label="Speaker's window" title="Speaker's window: notes and clock (s)" on={heard.value > 0} act={openSpeaker}><Icon name="single" /></Press>
          <Press label="Leave the presentation" title="Back to the viewer (Shift P)" act={talk.leave}><Icon name="close" /></Press>
        </span>
      </footer>
      {talk.blank.value && <div class="blank" role="img" aria-label="Black screen" onClick={() => talk.setBlank(false)} />}
    </>
  );
}

const SIZES = [1.9, 1.7, 1.5, 1.35, 1.2, 1.1, 1, 0.9, 0.8, 0.7];

/** Makes the only card that is shown as large as the stage takes it. */
export function useStageSize(): RefObject<HTMLElement | null> {
  const main = useRef<HTMLElement>(null);
  const only = talk.card.value;
  useLayoutEffect(() => {
    const box = main.current;
    if (!box || !only) return;
    const fit = () => {
      for (const size of SIZES) {
        box.style.zoom = String(size);
        const wide = [...box.querySelectorAll(".table-wrap")].some((one) => one.scrollWidth > one.clientWidth + 1);
        if (!wide && box.scrollHeight <= box.clientHeight + 1) break;
      }
    };
    fit();
    box.scrollTo(0, 0);
    const late = setTimeout(fit, 120);
    window.addEventListener("resize", fit);
    return () => {
      clearTimeout(late);
      window.removeEventListener("resize", fit);
      box.style.zoom = "";
    };
  }, [only, talk.at.value, talk.hushed.value, heard.value > 0, talk.noteShown.value]);
  return main;
}
