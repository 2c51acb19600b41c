/** Help, export, and the outline of the drawing as text. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import type { Item } from "../graph/tree";
import { canOpen } from "../graph/fold";
import { exportAs } from "./export";
import { openItem, panes, reveal } from "./graph";
import { linkOf } from "./link";
import { TALK_KEYS } from "../replay/keys";
import { Icon } from "./icons";
import * as s from "./state";

export const KEYS: [string, string][] = [
  ["← →", "step before, step after (with Shift: pass over unchanged steps)"],
  ["Home End", "first step, last step"],
  ["↑ ↓  or  k j", "choose the node before, after"],
  ["Enter", "open or fold what is chosen"],
  ["/", "search;  n  N  next and previous match"],
  ["f  0", "show all;  back to the start"],
  ["+ −", "zoom (also Ctrl and scroll; drag or scroll to pan)"],
  ["[ ]", "fewer, more neighbours of what is chosen"],
  ["u  U", "open all, fold all"],
  ["g t i r", "graph, tables, IR text, results"],
  ["1 2 3", "side by side, stacked, after only"],
  ["p", "inspector"],
  ["c", "colour by place, region, kind, MACs"],
  ["x", "constants and tuples shown or hidden"],
  ["l", "top to bottom, or left to right"],
  ["o", "outline as text"],
  ["y", "copy a link to this view"],
  ["d", "light or dark"],
  ["z", "large type, for a projector"],
  ["e  F", "export;  full screen"],
  ["Esc", "close, clear"],
];

function Dialog({ title, children }: { title: string; children: ComponentChildren }) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    ref.current?.showModal();
  }, []);
  return (
    <dialog ref={ref} aria-label={title} onClose={() => (s.overlay.value = "")} onClick={(e) => e.target === ref.current && ref.current?.close()}>
      <div class="dialog">
        <header class="card-head"><h2>{title}</h2><button class="ghost" aria-label="Close" onClick={() => ref.current?.close()}><Icon name="close" /></button></header>
        {children}
      </div>
    </dialog>
  );
}

export function Overlays() {
  if (s.overlay.value === "help") return <Help />;
  if (s.overlay.value === "export") return <Export />;
  return null;
}

function Help() {
  return (
    <Dialog title="Keys">
      <dl class="keys">{[...KEYS, ...TALK_KEYS].map(([k, what]) => <div><dt>{k.split(/\s{2,}|\s/).map((one) => (one === "or" ? " or " : <kbd>{one}</kbd>))}</dt><dd>{what}</dd></div>)}</dl>
      <p class="quiet">Search takes words and filters: <code>op:conv2d</code> <code>on:tvm</code> <code>region:s1</code> <code>reason:no-rule</code> <code>dtype:int64</code> <code>changed:added</code>; a minus before a filter excludes.</p>
    </Dialog>
  );
}

function Export() {
  const [whole, setWhole] = useState(false);
  return (
    <Dialog title="Export the drawing">
      <fieldset class="choices">
        <legend class="quiet">What</legend>
        <label><input type="radio" name="what" checked={!whole} onChange={() => setWhole(false)} /> what is seen</label>
        <label><input type="radio" name="what" checked={whole} onChange={() => setWhole(true)} /> the whole drawing</label>
      </fieldset>
      <div class="chips">
        <button class="primary" onClick={() => void exportAs("svg", whole)}><Icon name="download" /> SVG</button>
        <button class="primary" onClick={() => void exportAs("png", whole)}><Icon name="download" /> PNG</button>
        <button onClick={() => void copyLink()}><Icon name="link" /> Copy a link to this view</button>
      </div>
    </Dialog>
  );
}

export async function copyLink(): Promise<void> {
  await s.copy(`${location.href.split("#")[0]}${linkOf()}`, "Copied a link to this view");
}

/** The drawing as a list that a screen reader can walk and a keyboard can open. */
export function Outline() {
  const [, again] = useState(0);
  useEffect(() => {
    const timer = setTimeout(() => again((n) => n + 1), 60);
    return () => clearTimeout(timer);
  }, [s.step.value, s.choices.value, s.functions.value, s.selection.value]);
  if (!s.outline.value) return null;
  const pane = panes.after;
  const view = pane?.scene?.view;
  return (
    <nav class="outline" aria-label="Outline" data-scrolls>
      <header class="card-head"><h2>Outline</h2><button class="ghost" aria-label="Close outline" onClick={() => (s.outline.value = false)}><Icon name="close" /></button></header>
      {view ? <Branch items={view.root.top} level={1} /> : <p class="quiet pad">Nothing is drawn.</p>}
    </nav>
  );
}

function Branch({ items, level }: { items: Item[]; level: number }) {
  const scene = panes.after?.scene;
  if (!scene) return null;
  return (
    <ul>
      {items.slice(0, 300).map((item) => {
        const d = scene.words.get(item);
        const open = scene.view.open.has(item);
        const text = d ? `${d.title}${d.sub ? `, ${d.sub}` : ""}${d.on ? `, on ${d.on === "tvm" ? "TVM" : d.on}` : ""}` : item.kind;
        const inside = scene.view.instances.get(item);
        return (
          <li>
            {canOpen(item) && <button class="fold-mark" aria-expanded={open} aria-label={`${open ? "Fold" : "Open"} ${text}`} onClick={() => openItem(item)}>{open ? "−" : "+"}</button>}
            <button class="outline-item" onClick={() => {
              if (item.ops.length === 1) s.chooseOp(item.ops[0]);
              else s.choose({ kind: "group", key: item.key, ops: item.ops, title: d?.title ?? item.kind });
              if (item.ops.length) reveal(item.ops[0]);
            }}>{text}</button>
            {open && level < 12 && <Branch items={inside ? inside.top : item.children} level={level + 1} />}
          </li>
        );
      })}
      {items.length > 300 && <li class="quiet">and {items.length - 300} more</li>}
    </ul>
  );
}
