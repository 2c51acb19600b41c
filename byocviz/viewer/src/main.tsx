import { render } from "preact";
import "./viewer.css";
import { App } from "./ui/app";
import { decode, unpack } from "./data/decode";
import { text, dict } from "./data/lenient";
import { Model } from "./data/model";
import { followLink, readLink } from "./ui/link";
import { nextTask, parsed } from "./draw/frames";
import { layouter, prepare } from "./ui/scenes";
import * as s from "./ui/state";
import { Speaker, openSpeakerPage } from "./replay/speaker";
import { openTalk } from "./replay/talk";
import { HASH, listen } from "./replay/wire";

async function start(): Promise<void> {
  const root = document.getElementById("byocviz-root") ?? document.body.appendChild(document.createElement("div"));
  performance.mark("byocviz:start");
  await parsed();
  const messages: string[] = [];
  let raw: unknown = null;
  let options: Record<string, unknown> = {};
  try {
    options = dict(JSON.parse(document.getElementById("byocviz-options")?.textContent || "{}"));
  } catch {
    messages.push("The page's options cannot be read.");
  }
  try {
    const packed = document.getElementById("byocviz-recording")?.textContent;
    if (!packed?.trim()) messages.push("This page holds no recording.");
    else raw = await unpack(packed);
  } catch (error) {
    messages.push(`The recording in this page cannot be read: ${String(error).slice(0, 200)}`);
  }
  performance.mark("byocviz:unpacked");
  await nextTask();
  const decoded = decode(raw ?? {});
  // What is wrong with the page explains whatever the decoder missed.
  if (messages.length) decoded.messages.splice(0, decoded.messages.length, ...messages);
  performance.mark("byocviz:decoded");
  await nextTask();
  if (text(options.title)) decoded.recording.title = text(options.title);
  s.model.value = new Model(decoded.recording, decoded.messages);
  s.faults.value = s.model.value.messages.slice();
  const theme = text(options.theme);
  s.setTheme(theme === "light" || theme === "dark" ? theme : "");
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => s.theme.value === "" && s.setTheme(""));
  document.title = decoded.recording.title.slice(0, 200);
  if (location.hash === HASH) {
    openSpeakerPage();
    root.replaceChildren();
    render(<Speaker />, root);
    return;
  }
  s.step.value = first(text(options.step));
  readLink(location.hash);
  openTalk(options.replay, location.hash);
  await begin();
  root.replaceChildren();
  render(<App />, root);
  followLink();
  listen();
}

/**
 * Asks for the layouts of the first view, so that the worker is at it while the page is made. What
 * is sent to a worker that is not yet running leaves only between two tasks.
 */
async function begin(): Promise<void> {
  const now = s.step.value;
  for (const at of [now, s.layoutMode.value === "single" ? null : s.left.value]) {
    if (at === null || s.model.value.steps[at]?.error) continue;
    const fn = s.functions.value.after ?? s.model.value.entry(at);
    const p = s.model.value.graph(at, fn) ? prepare(at, fn) : null;
    if (p) layouter.layout(p.dot).catch(() => undefined);
    await nextTask();
  }
  performance.mark("byocviz:begun");
}

/** The step that is asked for, or the last: what came of it all. */
function first(wanted: string): number {
  const steps = s.model.value.steps;
  const at = steps.findIndex((one) => one.name === wanted);
  if (at >= 0) return at;
  const merge = steps.findIndex((one) => one.name === "merge" && !one.error);
  return merge >= 0 ? merge : Math.max(0, steps.length - 1);
}

start().catch((error: unknown) => {
  // Whatever went wrong is said; a page that stays blank tells nothing.
  const root = document.getElementById("byocviz-root") ?? document.body;
  const box = document.createElement("div");
  box.setAttribute("role", "alert");
  box.className = "fatal";
  box.textContent = `The viewer failed: ${error instanceof Error ? error.message : String(error)}`;
  root.replaceChildren(box);
});
