/**
 * Two windows of one talk. The speaker's is the same page, opened by the stage, which stays its
 * opener when either is loaded anew. Pages from file:// have no origin that could be checked, so
 * each checks who speaks: the stage listens to windows that it opened, the speaker to its opener.
 * What is told is the state, not a change of it: a message that is lost is made good by the next.
 */
import { effect, signal } from "@preact/signals";
import * as s from "../ui/state";
import * as talk from "./talk";

export const HASH = "#speaker";
const NAME = "byocviz-speaker";
const AGAIN = 1000;
/** Without a word for so long a window is taken for closed. */
const SILENCE = 4000;

export interface State { type: "state"; at: number; count: number; auto: boolean; blank: boolean; until: number | null; started: number }
export type Ask =
  | { type: "hello" }
  | { type: "go"; to: number }
  | { type: "auto" | "blank"; on: boolean }
  | { type: "clock" };

/** When the speaker's window was last heard of; 0 where there is none. */
export const heard = signal(0);
let speaker: Window | null = null;

function stateNow(): State {
  return {
    type: "state", at: talk.at.value, count: talk.stops.value.length, auto: talk.auto.value,
    blank: talk.blank.value, until: talk.until.value, started: talk.started.value,
  };
}

/** The stage's side. */
export function listen(): void {
  window.addEventListener("message", (event) => {
    const source = event.source as Window | null;
    if (!talk.presenting.value || !source || !mine(source)) return;
    const ask = event.data?.byocvizAsk as Ask | undefined;
    if (!ask) return;
    speaker = source;
    heard.value = Date.now();
    if (ask.type === "go" && Number.isInteger(ask.to)) {
      if (ask.to > talk.at.value && !talk.started.value) talk.setStarted(Date.now());
      talk.hushed.value = true;
      talk.show(ask.to);
    } else if (ask.type === "auto") talk.setAuto(ask.on === true);
    else if (ask.type === "blank") talk.setBlank(ask.on === true);
    else if (ask.type === "clock") talk.setStarted(Date.now());
    send();
  });
  effect(() => {
    stateNow();
    send();
  });
  setInterval(() => {
    if (heard.value && (Date.now() - heard.value > SILENCE || speaker?.closed)) {
      heard.value = 0;
      speaker = null;
    }
  }, AGAIN);
}

function mine(source: Window): boolean {
  try {
    // One of the few properties of a window that any page may read.
    return source.opener === window;
  } catch {
    return false;
  }
}

function send(): void {
  if (!speaker || speaker.closed || !talk.presenting.peek()) return;
  speaker.postMessage({ byocvizState: stateNow() }, "*");
}

/** Opens the speaker's window, or brings it to the front. */
export function openSpeaker(): void {
  const address = location.href.split("#")[0] + HASH;
  let opened: Window | null = null;
  try {
    opened = window.open(address, NAME, "popup,width=1040,height=760");
  } catch {
    // Said below.
  }
  const blocked = "The browser blocked the speaker's window. Allow pop-ups for this page (the sign is in the address bar), then press s again.";
  if (!opened) {
    talk.hushed.value = false;
    s.notices.value = [...s.notices.value.filter((one) => one !== blocked), blocked];
    return;
  }
  speaker = opened;
  s.notices.value = s.notices.value.filter((one) => one !== blocked);
  opened.focus();
}

/** The speaker's side. */
export const told = signal<State | null>(null);
/** Whether the stage answers. */
export const answers = signal(true);

export function ask(what: Ask): void {
  const stage = window.opener as Window | null;
  if (!stage || stage.closed) {
    answers.value = false;
    return;
  }
  stage.postMessage({ byocvizAsk: what }, "*");
}

export function follow(): void {
  let last = Date.now();
  window.addEventListener("message", (event) => {
    const state = event.data?.byocvizState as State | undefined;
    if (!state || event.source === null || event.source !== window.opener) return;
    if (!Number.isInteger(state.at)) return;
    last = Date.now();
    answers.value = true;
    told.value = state;
  });
  const hello = () => {
    ask({ type: "hello" });
    if (Date.now() - last > SILENCE) answers.value = false;
  };
  hello();
  setInterval(hello, AGAIN);
}
