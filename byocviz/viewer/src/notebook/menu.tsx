/** The menu of a node: right-click, or the context-menu key, on what is chosen. */
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { selectedOps } from "../ui/graph";
import { plural } from "../data/format";
import * as s from "../ui/state";

const at = signal<{ x: number; y: number } | null>(null);
/** Operators after which nothing is offloaded. */
export const holds = signal<ReadonlySet<number>>(new Set());

export function listen(): void {
  document.addEventListener("contextmenu", (event) => {
    const node = (event.target as Element).closest?.(".node,.boxtop");
    if (!node) return;
    event.preventDefault();
    // The drawing knows which item a node is, and says so by a click.
    node.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    if (selectedOps().length) at.value = { x: event.clientX, y: event.clientY };
  });
}

export function Menu({ hold }: { hold(ops: number[], on: boolean): void }) {
  const ref = useRef<HTMLDivElement>(null);
  const place = at.value;
  useEffect(() => {
    if (!place) return;
    const close = (event: Event) => {
      if (event instanceof KeyboardEvent ? event.key === "Escape" : !ref.current?.contains(event.target as Node)) at.value = null;
    };
    document.addEventListener("pointerdown", close, true);
    document.addEventListener("keydown", close, true);
    ref.current?.querySelector("button")?.focus();
    return () => {
      document.removeEventListener("pointerdown", close, true);
      document.removeEventListener("keydown", close, true);
    };
  }, [place]);
  if (!place) return null;
  const ops = selectedOps();
  const on = ops.some((id) => holds.value.has(id));
  const what = ops.length === 1 ? s.model.value.opTitle(ops[0]) : plural(ops.length, "operator");
  const choose = (then: () => void) => () => {
    at.value = null;
    then();
  };
  return (
    <div class="node-menu" role="menu" ref={ref} style={{ left: `${Math.min(place.x, innerWidth - 290)}px`, top: `${Math.min(place.y, innerHeight - 110)}px` }}>
      <p class="over">{what}</p>
      {on
        ? <button role="menuitem" onClick={choose(() => hold(ops.filter((id) => holds.value.has(id)), false))}>Offload after it again</button>
        : <button role="menuitem" onClick={choose(() => hold(ops, true))}>Do not offload after this operator</button>}
      <button role="menuitem" onClick={choose(() => void s.copy(ops.join(", "), "Copied the id"))}>Copy {ops.length === 1 ? "its id" : "their ids"}</button>
    </div>
  );
}
