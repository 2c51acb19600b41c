/** Title, tabs, search and switches. */
import { useRef } from "preact/hooks";
import { clip } from "../data/format";
import { panes, uncover } from "./graph";
import { Icon } from "./icons";
import { enter } from "../replay/talk";
import * as s from "./state";

export function TopBar() {
  const model = s.model.value;
  const r = model.recording;
  const tabs: [s.Tab, string, string][] = [["graph", "Graph", "g"], ["tables", "Tables", "t"], ["ir", "IR text", "i"]];
  if (s.results.value) tabs.push(["results", "Results", "r"]);
  const modes: [s.Mode, string, string][] = [["split", "Side by side", "1"], ["stacked", "One above the other", "2"], ["single", "After only", "3"]];
  return (
    <header class="top">
      <div class="brand">
        <svg viewBox="0 0 32 32" aria-hidden="true"><rect x="2" y="6" width="12" height="8" rx="2.5" class="b1" /><rect x="18" y="6" width="12" height="8" rx="2.5" class="b2" /><rect x="10" y="20" width="12" height="8" rx="2.5" class="b3" /><path d="M8 14v3h16v-3M16 17v3" /></svg>
        <div>
          <h1 title={r.title.slice(0, 500)}>{clip(r.title, 70)}</h1>
          <p>{[r.ir, r.backend.name && `for ${r.backend.name}`, r.made_with.tvm && `TVM ${r.made_with.tvm}`].filter(Boolean).map((x) => clip(String(x), 40)).join("  ·  ")}</p>
        </div>
      </div>
      <div class="tabs" role="tablist" aria-label="Views">
        {tabs.map(([id, text, key]) => (
          <button role="tab" id={`tab-${id}`} aria-selected={s.tab.value === id} title={`${text} (${key})`} onClick={() => (s.tab.value = id)}>{text}</button>
        ))}
      </div>
      <SearchBox />
      <div class="tools">
        {s.tab.value === "graph" && s.left.value !== null && (
          <div class="group" role="group" aria-label="Panes">
            {modes.map(([id, text, key]) => (
              <button class={s.mode.value === id ? "on" : ""} aria-pressed={s.mode.value === id} aria-label={text} title={`${text} (${key})`} onClick={() => (s.mode.value = id)}><Icon name={id} /></button>
            ))}
          </div>
        )}
        <button class="ghost" aria-label="Outline as text" title="Outline as text (o)" aria-pressed={s.outline.value} onClick={() => (s.outline.value = !s.outline.value)}><Icon name="outline" /></button>
        <button class="ghost" aria-label="Export" title="Export (e)" onClick={() => (s.overlay.value = "export")}><Icon name="download" /></button>
        <button class="ghost" aria-label="Light or dark" title="Light or dark (d)" onClick={() => s.setTheme(s.isDark() ? "light" : "dark")}><Icon name={s.theme.value !== "" ? (s.theme.value === "dark" ? "sun" : "moon") : s.isDark() ? "sun" : "moon"} /></button>
        <button class="ghost" aria-label="Large type" title="Large type, for a projector (z)" aria-pressed={s.large.value} onClick={() => setLarge(!s.large.value)}><Icon name="type" /></button>
        <button class="ghost" aria-label="Present" title="Present (Shift P)" onClick={() => enter()}><Icon name="play" /></button>
        <button class="ghost" aria-label="Full screen" title="Full screen (Shift F)" onClick={fullScreen}><Icon name="full" /></button>
        <button class="ghost" aria-label="Keys and help" title="Keys and help (?)" onClick={() => (s.overlay.value = "help")}><Icon name="help" /></button>
      </div>
    </header>
  );
}

/** Large type: what was shown from its beginning still is. */
export function setLarge(on: boolean): void {
  s.setLarge(on);
  for (const pane of [panes.before, panes.after]) if (pane?.camera.home) requestAnimationFrame(() => pane.camera.goHome(false));
}

export function fullScreen(): void {
  if (document.fullscreenElement) void document.exitFullscreen();
  else document.documentElement.requestFullscreen?.().catch(() => s.tell("Full screen is not allowed here"));
}

export function nextHit(by: 1 | -1): void {
  const found = s.hits.value;
  if (!found.length) return;
  const at = s.hit.value < 0 ? (by > 0 ? 0 : found.length - 1) : (s.hit.value + by + found.length) % found.length;
  s.hit.value = at;
  if (s.tab.value !== "graph") s.tab.value = "graph";
  uncover(found[at]);
  s.said.value = `${at + 1} of ${found.length}: ${s.model.value.opTitle(found[at])}`;
}

/** Searches, and goes to the first match: what is found fades all else, and may be out of sight. */
export function lookFor(query: string): void {
  s.query.value = query;
  s.hit.value = -1;
  nextHit(1);
}

function SearchBox() {
  const input = useRef<HTMLInputElement>(null);
  const found = s.hits.value;
  const typed = s.query.value.trim() !== "";
  return (
    <div class="search" role="search">
      <Icon name="search" />
      <input id="search" ref={input} type="search" placeholder="Search   op:conv2d on:tvm reason: …" aria-label="Search operators" title="Words, or op: on: region: reason: rule: dtype: shape: changed: fn: source: id:  (−op: excludes)"
        autocomplete="off" spellcheck={false} value={s.query.value}
        onInput={(e) => {
          s.query.value = e.currentTarget.value;
          s.hit.value = -1;
        }}
        onKeyDown={(e) => {
          if (e.key === "Enter") {
            e.preventDefault();
            nextHit(e.shiftKey ? -1 : 1);
          }
          if (e.key === "Escape") {
            s.query.value = "";
            input.current?.blur();
          }
          e.stopPropagation();
        }} />
      {typed ? (
        <>
          <span class="count" aria-live="polite">{found.length ? `${s.hit.value >= 0 ? `${s.hit.value + 1} of ` : ""}${found.length}` : "none"}</span>
          <button class="ghost" aria-label="Previous match" title="Previous match (Shift N)" disabled={!found.length} onClick={() => nextHit(-1)}><Icon name="left" /></button>
          <button class="ghost" aria-label="Next match" title="Next match (n)" disabled={!found.length} onClick={() => nextHit(1)}><Icon name="right" /></button>
          <button class="ghost" aria-label="Clear search" onClick={() => (s.query.value = "")}><Icon name="close" /></button>
        </>
      ) : <kbd aria-hidden="true">/</kbd>}
    </div>
  );
}
