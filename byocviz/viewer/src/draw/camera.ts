/** Pan and zoom of one pane. Content coordinates are points of the layout. */

export interface Transform { x: number; y: number; k: number }

const SMALLEST = 0.04;
const LARGEST = 3;
const MARGIN = 28;
/** A drawing that would be smaller than this when it fits is shown from its top instead. */
const LEGIBLE = 0.74;
/** And with large type. */
const LARGE = 1.05;

export class Camera {
  t: Transform = { x: 0, y: 0, k: 1 };
  /** Where it is going, or is. */
  target: Transform = this.t;
  /** Whether nobody has moved it since it showed the whole. */
  home = true;
  dragged = false;
  private width = 1;
  private height = 1;
  private start = 0;
  private known: [number, number] | null = null;
  private frame = 0;
  private pointers = new Map<number, PointerEvent>();

  constructor(private host: HTMLElement, private apply: (t: Transform) => void) {
    host.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    host.addEventListener("pointerdown", (event) => this.down(event));
    new ResizeObserver(() => {
      const was = this.known;
      this.known = null;
      const [w, h] = this.size;
      if (!was || (was[0] === w && was[1] === h)) return;
      if (this.home) this.goHome(false);
      else this.apply(this.t);
    }).observe(host);
  }

  /** Kept, because asking the page for it right after drawing lays the whole page out. */
  private get size(): [number, number] {
    return (this.known ??= [this.host.clientWidth || 1, this.host.clientHeight || 1]);
  }

  /** `start` is the x of what a reader begins with. */
  setContent(width: number, height: number, start: number): void {
    this.width = Math.max(1, width);
    this.height = Math.max(1, height);
    this.start = start;
  }

  private wheel(event: WheelEvent): void {
    if ((event.target as Element).closest("[data-scrolls]")) return;
    event.preventDefault();
    this.home = false;
    const unit = event.deltaMode === 1 ? 18 : event.deltaMode === 2 ? 400 : 1;
    if (event.ctrlKey || event.metaKey) {
      this.zoomAt(Math.exp(-event.deltaY * unit * 0.006), event.clientX, event.clientY);
    } else {
      const dx = event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX;
      const dy = event.shiftKey && !event.deltaX ? 0 : event.deltaY;
      this.set({ ...this.t, x: this.t.x - dx * unit, y: this.t.y - dy * unit });
    }
  }

  private down(event: PointerEvent): void {
    if (event.button !== 0 && event.button !== 1) return;
    if ((event.target as Element).closest("button,canvas,input,select,a,[data-scrolls]")) return;
    this.pointers.set(event.pointerId, event);
    this.dragged = false;
    let last = event;
    const start = event;
    const move = (now: PointerEvent) => {
      if (now.pointerId !== event.pointerId) return;
      if (!this.dragged && Math.hypot(now.clientX - start.clientX, now.clientY - start.clientY) > 4) {
        this.dragged = true;
        this.host.classList.add("dragging");
      }
      if (this.dragged) {
        this.home = false;
        if (this.pointers.size === 2) {
          const other = [...this.pointers.values()].find((one) => one.pointerId !== now.pointerId)!;
          const was = Math.hypot(last.clientX - other.clientX, last.clientY - other.clientY);
          const is = Math.hypot(now.clientX - other.clientX, now.clientY - other.clientY);
          if (was > 1) this.zoomAt(is / was, (now.clientX + other.clientX) / 2, (now.clientY + other.clientY) / 2);
        } else {
          this.set({ ...this.t, x: this.t.x + now.clientX - last.clientX, y: this.t.y + now.clientY - last.clientY });
        }
      }
      last = now;
      this.pointers.set(now.pointerId, now);
    };
    const up = (now: PointerEvent) => {
      if (now.pointerId !== event.pointerId) return;
      this.pointers.delete(now.pointerId);
      this.host.classList.remove("dragging");
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", up);
      window.removeEventListener("pointercancel", up);
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", up);
    window.addEventListener("pointercancel", up);
  }

  private zoomAt(factor: number, clientX: number, clientY: number): void {
    const box = this.host.getBoundingClientRect();
    this.zoomAround(factor, clientX - box.left, clientY - box.top);
  }

  private zoomAround(factor: number, px: number, py: number): void {
    const k = Math.min(LARGEST, Math.max(SMALLEST, this.t.k * factor));
    const r = k / this.t.k;
    this.set({ k, x: px - (px - this.t.x) * r, y: py - (py - this.t.y) * r });
  }

  zoom(factor: number): void {
    this.home = false;
    const [w, h] = this.size;
    this.zoomAround(factor, w / 2, h / 2);
  }

  pan(dx: number, dy: number): void {
    this.home = false;
    this.set({ ...this.t, x: this.t.x + dx, y: this.t.y + dy });
  }

  set(t: Transform): void {
    this.stop();
    this.t = this.target = t;
    this.apply(t);
  }

  private stop(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.target = this.t;
  }

  private glide(to: Transform): void {
    this.stop();
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.set(to);
      return;
    }
    const from = this.t;
    this.target = to;
    const start = performance.now();
    const tick = (now: number) => {
      const p = Math.min(1, (now - start) / 320);
      const e = 1 - (1 - p) ** 3;
      this.t = { x: from.x + (to.x - from.x) * e, y: from.y + (to.y - from.y) * e, k: from.k + (to.k - from.k) * e };
      this.apply(this.t);
      if (p < 1) this.frame = requestAnimationFrame(tick);
    };
    this.frame = requestAnimationFrame(tick);
  }

  private fitScale(): number {
    const [w, h] = this.size;
    return Math.min((w - MARGIN * 2) / this.width, (h - MARGIN * 2) / this.height, this.legible * 1.55);
  }

  private get legible(): number {
    return document.documentElement.classList.contains("large") ? LARGE : LEGIBLE;
  }

  /** The whole if that can be read, else its top. */
  goHome(smooth: boolean): void {
    const [w] = this.size;
    const fit = this.fitScale();
    let to: Transform;
    if (fit >= this.legible * 0.82) {
      to = this.fitted(fit);
    } else {
      const k = Math.max(this.legible, Math.min(this.legible * 1.25, (w - MARGIN * 2) / this.width));
      const wide = this.width * k > w - MARGIN * 2;
      const begin = Math.max(w - MARGIN - this.width * k, Math.min(MARGIN, w / 2 - this.start * k));
      to = { k, x: wide ? begin : (w - this.width * k) / 2, y: MARGIN };
    }
    this.home = true;
    if (smooth) this.glide(to);
    else this.set(to);
  }

  private fitted(k: number): Transform {
    const [w, h] = this.size;
    return { k, x: (w - this.width * k) / 2, y: (h - this.height * k) / 2 };
  }

  fit(smooth = true): void {
    const k = Math.max(SMALLEST, this.fitScale());
    this.home = false;
    if (smooth) this.glide(this.fitted(k));
    else this.set(this.fitted(k));
  }

  /** The content point in the middle of the pane. */
  middle(): [number, number] {
    const [w, h] = this.size;
    return [(w / 2 - this.t.x) / this.t.k, (h / 2 - this.t.y) / this.t.k];
  }

  /** The part of the content that is seen: x, y, w, h. */
  seen(t = this.t): [number, number, number, number] {
    const [w, h] = this.size;
    return [-t.x / t.k, -t.y / t.k, w / t.k, h / t.k];
  }

  get content(): [number, number] {
    return [this.width, this.height];
  }

  /** Puts a content point where another one is now. */
  keep(from: [number, number], to: [number, number], smooth: boolean): void {
    const { x, y, k } = this.t;
    const t = { k, x: x + (from[0] - to[0]) * k, y: y + (from[1] - to[1]) * k };
    if (smooth) this.glide(t);
    else this.set(t);
  }

  centre(x: number, y: number, k = this.t.k, smooth = false): void {
    const [w, h] = this.size;
    this.home = false;
    const t = { k, x: w / 2 - x * k, y: h / 2 - y * k };
    if (smooth) this.glide(t);
    else this.set(t);
  }

  /** A part of the content, as large as the pane takes it; if `legible`, its top where it would be small. */
  show([left, top, width, height]: [number, number, number, number], legible: boolean): void {
    const [w, h] = this.size;
    const fit = Math.min(LARGEST, w / width, h / height);
    const k = legible ? Math.max(this.legible * 0.82, Math.min(fit, this.legible * 1.55)) : Math.max(SMALLEST, fit);
    const high = height * k > h + 1;
    const wide = width * k > w + 1;
    // Where a side does not fit its beginning is seen, and what a reader begins with.
    const middle = wide ? Math.max(left + w / k / 2, Math.min(left + width - w / k / 2, this.start)) : left + width / 2;
    this.home = false;
    this.glide({ k, x: w / 2 - middle * k, y: high ? -top * k : h / 2 - (top + height / 2) * k });
  }

  /** Moves only as far as it takes: not at all where the point is well in sight. */
  reveal(x: number, y: number, force: boolean): void {
    const [w, h] = this.size;
    const px = x * this.t.k + this.t.x;
    const py = y * this.t.k + this.t.y;
    const inside = px > 60 && px < w - 60 && py > 50 && py < h - 50;
    if (inside && !force) return;
    this.centre(x, y, Math.max(this.t.k, this.legible), true);
  }
}
