/** Everything by keyboard. */
import type { Item } from "../graph/tree";
import { activePane, active, foldAll, openItem, panes, remark, selectedOps } from "./graph";
import { copyLink } from "./overlays";
import { fullScreen, nextHit, setLarge } from "./topbar";
import { presenterKey } from "../replay/keys";
import * as s from "./state";

const COLOURS = ["place", "region", "kind", "macs"] as const;

export function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
  const target = event.target instanceof Element ? event.target : document.body;
  if (target.closest("input:not([type=checkbox]):not([type=radio]),textarea,select,[contenteditable]")) return;
  if (s.overlay.value && event.key !== "Escape") return;
  const onButton = target.closest("button,a,summary,[type=checkbox],[type=radio]") !== null;
  const scrolls = target.closest(".table-wrap,.diff,pre,.tables") !== null;
  const done = presenterKey(event.key, event.shiftKey, onButton) || act(event.key, event.shiftKey, onButton, scrolls);
  if (done) event.preventDefault();
}

function act(key: string, shift: boolean, onButton: boolean, scrolls: boolean): boolean {
  const pane = activePane();
  switch (key) {
    case "ArrowRight": s.walk(1, shift || s.skipping.value); return true;
    case "ArrowLeft": s.walk(-1, shift || s.skipping.value); return true;
    case "Home": if (scrolls) return false; s.go(0); return true;
    case "End": if (scrolls) return false; s.go(s.model.value.steps.length - 1); return true;
    case "ArrowDown": if (scrolls || s.tab.value !== "graph") return false; move(1); return true;
    case "ArrowUp": if (scrolls || s.tab.value !== "graph") return false; move(-1); return true;
    case "j": move(1); return true;
    case "k": move(-1); return true;
    case "Enter":
    case " ": {
      if (onButton || s.tab.value !== "graph") return false;
      const item = chosenItem();
      if (item) openItem(item);
      return !!item;
    }
    case "/": toSearch(); return true;
    case "n": nextHit(1); return true;
    case "N": nextHit(-1); return true;
    case "f": panes.before?.camera.fit(); panes.after?.camera.fit(); return true;
    case "0": panes.before?.camera.goHome(true); panes.after?.camera.goHome(true); return true;
    case "+":
    case "=": pane?.camera.zoom(1.25); return true;
    case "-": pane?.camera.zoom(0.8); return true;
    case "]": hops(1); return true;
    case "[": hops(-1); return true;
    case "u": foldAll(active, true); return true;
    case "U": foldAll(active, false); return true;
    case "g": s.tab.value = "graph"; return true;
    case "t": s.tab.value = "tables"; return true;
    case "i": s.tab.value = "ir"; return true;
    case "r": if (s.results.value) s.tab.value = "results"; return true;
    case "1": s.mode.value = "split"; return true;
    case "2": s.mode.value = "stacked"; return true;
    case "3": s.mode.value = "single"; return true;
    case "p": s.inspector.value = !s.inspector.value; return true;
    case "c": {
      const next = COLOURS[(COLOURS.indexOf(s.colourBy.value) + 1) % COLOURS.length];
      s.colourBy.value = next;
      s.tell(`Coloured by ${next === "place" ? "where it runs" : next === "macs" ? "MACs" : next}`);
      return true;
    }
    case "x": s.plumbing.value = !s.plumbing.value; return true;
    case "l": s.direction.value = s.direction.value === "TB" ? "LR" : "TB"; return true;
    case "o": s.outline.value = !s.outline.value; return true;
    case "y": void copyLink(); return true;
    case "d": s.setTheme(s.isDark() ? "light" : "dark"); return true;
    case "z": setLarge(!s.large.value); return true;
    case "e": s.overlay.value = "export"; return true;
    case "F": fullScreen(); return true;
    case "?": s.overlay.value = "help"; return true;
    case "Escape":
      if (s.overlay.value) return false;
      if (s.query.value) s.query.value = "";
      else if (s.hops.value) s.hops.value = 0;
      else s.choose(null);
      return true;
    default: return false;
  }
}

/** What stands there is replaced by what is typed. */
function toSearch(): void {
  const box = document.getElementById("search") as HTMLInputElement | null;
  box?.focus();
  box?.select();
}

function hops(by: number): void {
  s.hops.value = Math.max(0, Math.min(9, s.hops.value + by));
  s.tell(s.hops.value ? `Neighbours within ${s.hops.value} ${s.hops.value === 1 ? "step" : "steps"}` : "All nodes");
  remark();
}

function chosenItem(): Item | null {
  const view = activePane()?.scene?.view;
  const sel = s.selection.value;
  if (!view || !sel) return null;
  const all = [...view.nodes, ...view.boxes];
  if (sel.kind === "group") return all.find((one) => one.key === sel.key) ?? null;
  if (sel.kind === "sub") return all.find((one) => one.subgraph === sel.index && (one.kind === "call" || one.kind === "region")) ?? null;
  return view.seat.get(selectedOps()[0]) ?? null;
}

/** To the node before or after, in the order of the program. */
function move(by: number): void {
  const pane = activePane();
  const scene = pane?.scene;
  if (!pane || !scene) return;
  const nodes = scene.view.nodes.filter((one) => one.ops.length > 0);
  if (!nodes.length) return;
  const now = chosenItem();
  const at = now ? nodes.indexOf(now) : -1;
  const item = nodes[at < 0 ? (by > 0 ? 0 : nodes.length - 1) : Math.max(0, Math.min(nodes.length - 1, at + by))];
  const d = scene.words.get(item)!;
  if (item.ops.length === 1) s.chooseOp(item.ops[0]);
  else if (item.kind === "call" && item.subgraph >= 0) s.choose({ kind: "sub", index: item.subgraph, step: active === "before" ? s.left.value ?? s.step.value : s.step.value });
  else s.choose({ kind: "group", key: item.key, ops: item.ops, title: d.title });
  pane.reveal(item);
  s.said.value = `${d.title} ${d.sub}, on ${d.on === "tvm" ? "TVM" : d.on || "nothing"}`;
}
