/** One drawing: nodes that move from scene to scene, pan and zoom, marks, and a minimap. */
import type { Item } from "../graph/tree";
import { Camera } from "./camera";
import { Heads } from "./heads";
import { drawMinimap } from "./minimap";
import { drawBox, drawEdge, drawNode, hint, type Taken } from "./nodes";
import type { Scene } from "./scene";
import { paintClass } from "./scene";
import { el, printable } from "./svg";
import { afterFrame } from "./frames";
import type { VEdge } from "../graph/view";

export interface PaneEvents {
  hover(item: Item | null): void;
  select(item: Item | null): void;
  toggle(item: Item): void;
  moved(): void;
}

interface Drawn { g: SVGGElement; item: Item; sign: string; x: number; y: number }

/** Classes that the edges of a node get with it. */
const ALONG = ["sel", "hov"];

const numbers = new WeakMap<Scene, Map<Item, number>>();

/** Where a scene shows an operator. */
function seat(scene: Scene, op: number): { x: number; y: number } | undefined {
  let number = numbers.get(scene);
  if (!number) numbers.set(scene, (number = new Map(scene.view.nodes.map((one, i) => [one, i]))));
  const item = scene.view.seat.get(op);
  const at = item && scene.layout.nodes[number.get(item) ?? -1];
  return at ? { x: at[0], y: at[1] } : undefined;
}

/** Above this, nodes are put in place without moving there. */
const MOVING = 500;

export class Pane {
  readonly svg: SVGSVGElement;
  readonly camera: Camera;
  scene: Scene | null = null;
  private root: SVGGElement;
  private boxLayer: SVGGElement;
  private edgeLayer: SVGGElement;
  private headLayer: SVGGElement;
  private nodeLayer: SVGGElement;
  private nodes = new Map<string, Drawn>();
  private boxes = new Map<string, Drawn>();
  private heads = new Heads();
  private itemOf = new WeakMap<Element, Item>();
  private hintOf = new WeakMap<Element, () => string>();
  private mapFrame = 0;
  private mapped: Scene | null = null;
  private hovered: Item | null = null;
  /** Items that have a class, by class. */
  private lit = new Map<string, Set<Item>>();
  private edgesOf = new Map<Item, SVGGElement[]>();
  /** What is out of sight and not drawn yet. */
  private rest: (() => void)[] = [];
  private whole: () => void = () => undefined;

  constructor(readonly host: HTMLElement, private minimap: HTMLCanvasElement, private events: PaneEvents) {
    this.svg = el("svg", { class: "graph", role: "img" });
    host.prepend(this.svg);
    this.root = el("g", { class: "root" }, this.svg);
    this.boxLayer = el("g", {}, this.root);
    this.edgeLayer = el("g", { class: "edges" }, this.root);
    this.headLayer = el("g", {}, this.root);
    this.nodeLayer = el("g", {}, this.root);
    this.camera = new Camera(host, (t) => {
      this.root.style.transform = `translate(${t.x}px,${t.y}px) scale(${t.k})`;
      this.svg.classList.toggle("far", t.k < 0.5);
      this.svg.classList.toggle("tiny", t.k < 0.26);
      this.heads.follow(-t.x / t.k);
      this.drawMap();
      events.moved();
    });
    this.listen();
  }

  private listen(): void {
    const at = (event: Event): Item | null => {
      const target = event.target as Element | null;
      const g = target?.closest?.(".node,.boxtop");
      return g ? this.itemOf.get(g) ?? null : null;
    };
    this.svg.addEventListener("pointerover", (event) => {
      const holder = (event.target as Element).closest(".node,.edge");
      const hint = holder && this.hintOf.get(holder);
      if (holder && hint && !holder.querySelector("title")) {
        el("title", {}, holder).textContent = printable(hint());
      }
      const item = at(event);
      if (item === this.hovered) return;
      this.hovered = item;
      this.events.hover(item);
    });
    this.svg.addEventListener("pointerleave", () => {
      this.hovered = null;
      this.events.hover(null);
    });
    this.svg.addEventListener("click", (event) => {
      if (this.camera.dragged) return;
      const item = at(event);
      const target = event.target as Element;
      if (item && target.closest(".toggle,.head")) this.events.toggle(item);
      else this.events.select(item);
    });
    this.svg.addEventListener("dblclick", (event) => {
      const item = at(event);
      if (item && !(event.target as Element).closest(".toggle,.head")) this.events.toggle(item);
    });
    const jump = (event: PointerEvent) => {
      if (!this.scene || !(event.buttons & 1)) return;
      const box = this.minimap.getBoundingClientRect();
      const scale = Number(this.minimap.dataset.scale) || 1;
      this.camera.centre((event.clientX - box.left) / scale, (event.clientY - box.top) / scale);
    };
    this.minimap.addEventListener("pointerdown", (event) => {
      this.minimap.setPointerCapture(event.pointerId);
      jump(event);
    });
    this.minimap.addEventListener("pointermove", jump);
  }

  clear(): void {
    this.scene = null;
    this.rest = [];
    for (const layer of [this.boxLayer, this.edgeLayer, this.headLayer, this.nodeLayer]) layer.replaceChildren();
    this.nodes.clear();
    this.boxes.clear();
    this.drawMap();
  }

  /**
   * Draws a scene; what was there before moves to its new place, by operator. What can be seen is
   * drawn at once and the rest after the frame, then `whole` is called.
   */
  show(scene: Scene, animate: boolean, whole: () => void): void {
    const old = this.scene;
    const anchor = old ? this.anchor(old, scene) : null;
    const move = animate && scene.view.nodes.length + this.nodes.size < MOVING;
    this.scene = scene;
    this.rest = [];
    this.whole = whole;
    this.lit.clear();
    this.hovered = null;
    this.svg.setAttribute("aria-label", `${scene.view.nodes.length} nodes, ${scene.view.edges.length} edges`);
    this.svg.classList.remove("moving");
    const before = this.camera.seen();
    this.aim(scene, anchor, move && !!old, !old);
    const views = old ? [before, this.camera.seen(this.camera.target)] : [this.camera.seen()];
    const seen = (x: number, y: number) => views.some(([left, top, wide, high]) =>
      x > left - 200 && x < left + wide + 200 && y > top - 120 && y < top + high + 120);
    const moves = this.drawNodes(scene, old, move, seen);
    this.drawBoxes(scene);
    const [high, low] = [Math.min(...views.map((v) => v[1])) - 120, Math.max(...views.map((v) => v[1] + v[3])) + 120];
    this.drawEdges(scene, (from, to) => Math.max(from, to) > high && Math.min(from, to) < low);
    if (move && old) {
      for (const layer of [this.boxLayer, this.edgeLayer, this.headLayer]) {
        layer.animate([{ opacity: 0 }, { opacity: 0, offset: 0.4 }, { opacity: 1 }], 420);
      }
    }
    // By script, as a CSS transition would need the page laid out in between.
    for (const { drawn, x, y } of moves) {
      drawn.g.animate(
        [{ transform: `translate(${x}px,${y}px)` }, { transform: `translate(${drawn.x}px,${drawn.y}px)` }],
        { duration: 380, easing: "cubic-bezier(.3,0,.1,1)" },
      );
    }
    this.svg.classList.toggle("moving", moves.length > 0);
    this.drawMap();
    if (this.rest.length) afterFrame(() => this.scene === scene && this.drawRest());
    else whole();
  }

  /** Where the camera goes with a scene: home, or so that what is looked at stays where it is. */
  private aim(scene: Scene, anchor: { from: [number, number]; to: [number, number] } | null, smooth: boolean, first: boolean): void {
    const top = scene.layout.nodes.reduce((best, at) => (at && (!best || at[1] < best[1]) ? at : best), null);
    this.camera.setContent(scene.layout.width, scene.layout.height, top?.[0] ?? 0);
    if (first) this.camera.home = true;
    if (this.camera.home) this.camera.goHome(smooth);
    else if (anchor) this.camera.keep(anchor.from, anchor.to, smooth);
  }

  /** The nodes that move, and from where. */
  private drawNodes(
    scene: Scene, old: Scene | null, move: boolean, seen: (x: number, y: number) => boolean,
  ): { drawn: Drawn; x: number; y: number }[] {
    const moves: { drawn: Drawn; x: number; y: number }[] = [];
    const nodes = new Map<string, Drawn>();
    const keys = new Set<string>();
    scene.view.nodes.forEach((item, i) => {
      const at = scene.layout.nodes[i];
      if (!at) return;
      const d = scene.words.get(item)!;
      const mark = scene.marks.get(item);
      const sign = `${item.kind}|${paintClass(item, d, scene)}|${d.title}|${d.sub}|${d.chip}|${d.fold}|${d.share}|${d.composite}|${d.reasons}|${at[2]}x${at[3]}|${mark ? `${mark.change}${mark.count}` : ""}`;
      const key = keys.has(item.key) ? `${item.key}~${i}` : item.key;
      keys.add(key);
      const had = this.nodes.get(key);
      const from = had ?? (old && item.ops.length ? seat(old, item.ops[0]) : undefined);
      const inSight = seen(at[0], at[1]) || (!!from && seen(from.x, from.y));
      const put = (g: SVGGElement): Drawn => {
        const drawn = { g, item, sign, x: at[0], y: at[1] };
        g.style.transform = `translate(${at[0]}px,${at[1]}px)`;
        this.itemOf.set(g, item);
        this.hintOf.set(g, () => hint(item, d, mark));
        nodes.set(key, drawn);
        return drawn;
      };
      const make = () => {
        const { g } = put(drawNode(item, d, mark, at[2], at[3], scene));
        this.nodeLayer.appendChild(g);
        return g;
      };
      if (had?.sign === sign) {
        put(had.g);
      } else if (inSight) {
        const g = make();
        if (!from && move && old) g.classList.add("new");
      } else {
        this.rest.push(() => {
          const g = make();
          for (const [name, items] of this.lit) if (items.has(item)) g.classList.add(name);
        });
        return;
      }
      // What is out of sight is put in place: each moving element is a layer of its own to the browser.
      if (from && move && inSight && (Math.abs(from.x - at[0]) > 1 || Math.abs(from.y - at[1]) > 1)) {
        moves.push({ drawn: nodes.get(key)!, x: from.x, y: from.y });
      }
    });
    for (const [key, gone] of this.nodes) if (nodes.get(key)?.g !== gone.g) gone.g.remove();
    this.nodes = nodes;
    return moves;
  }

  /** Some of what is out of sight; the rest of it with the next tasks, so that the page answers. */
  private drawRest(): void {
    const scene = this.scene;
    const end = performance.now() + 8;
    while (this.rest.length && performance.now() < end) this.rest.shift()!();
    if (this.rest.length) setTimeout(() => this.scene === scene && this.drawRest());
    else this.whole();
  }

  /** Draws what is out of sight now, for what needs all of it. */
  finish(): void {
    const rest = this.rest;
    this.rest = [];
    for (const draw of rest) draw();
    if (rest.length) this.whole();
  }

  private drawBoxes(scene: Scene): void {
    this.boxLayer.replaceChildren();
    this.headLayer.replaceChildren();
    this.boxes.clear();
    this.heads.clear();
    scene.view.boxes.forEach((item, j) => {
      const at = scene.layout.boxes[j];
      if (!at) return;
      const { g, top, lead, room } = drawBox(item, { ...scene.words.get(item)!, fold: "open" }, scene.marks.get(item), at[2], at[3], scene);
      for (const [part, layer] of [[g, this.boxLayer], [top, this.headLayer]] as const) {
        part.style.transform = `translate(${at[0]}px,${at[1]}px)`;
        layer.appendChild(part);
        this.itemOf.set(part, item);
      }
      this.boxes.set(item.key, { g, item, sign: "", x: at[0], y: at[1] });
      this.heads.add(lead, at[0], room);
    });
    this.heads.follow(-this.camera.t.x / this.camera.t.k);
  }

  private drawEdges(scene: Scene, seen: (from: number, to: number) => boolean): void {
    this.edgeLayer.replaceChildren();
    this.edgesOf.clear();
    const taken: Taken[] = [];
    const byEnds = new Map<number, VEdge>();
    const number = new Map(scene.view.nodes.map((one, i) => [one, i]));
    const many = scene.view.nodes.length;
    for (const e of scene.view.edges) byEnds.set(number.get(e.src)! * many + number.get(e.dst)!, e);
    for (const line of scene.layout.edges) {
      const e = byEnds.get(line.src * many + line.dst);
      if (!e) continue;
      const draw = () => {
        const g = drawEdge(e, line, this.boundary(scene, e.src, e.dst), taken);
        this.hintOf.set(g, () => scene.edgeType(e));
        this.edgeLayer.appendChild(g);
        for (const end of [e.src, e.dst]) {
          const list = this.edgesOf.get(end);
          if (list) list.push(g);
          else this.edgesOf.set(end, [g]);
          for (const name of ALONG) if (this.lit.get(name)?.has(end)) g.classList.add(name);
        }
      };
      const from = scene.layout.nodes[line.src];
      const to = scene.layout.nodes[line.dst];
      if (!from || !to || seen(from[1], to[1])) draw();
      else this.rest.push(draw);
    }
  }

  /** Whether a value crosses between TVM and a backend, or two subgraphs. */
  private boundary(scene: Scene, a: Item, b: Item): boolean {
    const x = scene.words.get(a);
    const y = scene.words.get(b);
    if (!x || !y) return false;
    const flows = (one: Item) => one.kind === "param" || one.kind === "output";
    if (x.on === "" || y.on === "") return (x.inRegion && flows(b)) || (y.inRegion && flows(a));
    return x.inRegion !== y.inRegion || (x.subgraph !== y.subgraph && x.on !== "tvm" && !x.mixed && !y.mixed && x.subgraph >= 0 && y.subgraph >= 0);
  }

  /** A point of both drawings that should not move on the screen: the one nearest its middle. */
  private anchor(old: Scene, next: Scene): { from: [number, number]; to: [number, number] } | null {
    const [cx, cy] = this.camera.middle();
    let best: { from: [number, number]; to: [number, number] } | null = null;
    let least = Infinity;
    old.view.nodes.forEach((item, i) => {
      const at = old.layout.nodes[i];
      if (!at || !item.ops.length) return;
      const distance = Math.hypot(at[0] - cx, at[1] - cy);
      if (distance >= least) return;
      const to = seat(next, item.ops[0]);
      if (!to) return;
      least = distance;
      best = { from: [at[0], at[1]], to: [to.x, to.y] };
    });
    return best;
  }

  /** The items that show some operators now. */
  holders(ops: Iterable<number>): Set<Item> {
    const found = new Set<Item>();
    for (const id of ops) {
      const item = this.scene?.view.seat.get(id);
      if (item) found.add(item);
    }
    return found;
  }

  private element(item: Item): SVGGElement | undefined {
    const drawn = this.nodes.get(item.key) ?? this.boxes.get(item.key);
    return drawn?.item === item ? drawn.g : [...this.nodes.values()].find((one) => one.item === item)?.g;
  }

  /** Gives a class to some items and takes it from all others. */
  mark(name: string, items: Iterable<Item>): void {
    const now = new Set(items);
    const each = (item: Item, act: (g: Element) => void) => {
      const g = this.element(item);
      if (g) act(g);
      if (ALONG.includes(name)) this.edgesOf.get(item)?.forEach(act);
    };
    for (const item of this.lit.get(name) ?? []) if (!now.has(item)) each(item, (g) => g.classList.remove(name));
    for (const item of now) each(item, (g) => g.classList.add(name));
    this.lit.set(name, now);
  }

  /** Everything but these is faded; null for none. */
  only(items: Set<Item> | null): void {
    this.svg.classList.toggle("some", items !== null);
    this.mark("kept", items ?? []);
  }

  at(item: Item): [number, number, number, number] | null {
    const scene = this.scene;
    if (!scene) return null;
    const i = scene.view.nodes.indexOf(item);
    if (i >= 0) return scene.layout.nodes[i];
    const j = scene.view.boxes.indexOf(item);
    const box = j >= 0 ? scene.layout.boxes[j] : null;
    return box ? [box[0] + box[2] / 2, box[1] + box[3] / 2, box[2], box[3]] : null;
  }

  reveal(item: Item, force = false): void {
    const at = this.at(item);
    if (at) this.camera.reveal(at[0], at[1], force);
  }

  /** With the next frame, however often it is asked for until then; a new scene's after it. */
  drawMap(): void {
    cancelAnimationFrame(this.mapFrame);
    this.mapFrame = requestAnimationFrame(() => {
      const draw = () => drawMinimap(this.minimap, this.scene, this.camera);
      if (this.mapped === this.scene) draw();
      else setTimeout(draw);
      this.mapped = this.scene;
    });
  }
}
