/** Layouts by DOT text, kept, from a warm worker. What is wanted now goes before what may be. */
import { fromBase64 } from "../data/base64";
import { parsed } from "../draw/frames";
import { plainLayout } from "./fallback";
import type { Layout } from "./parse";

interface Job { dot: string; urgent: boolean; resolve: (layout: Layout) => void; reject: (e: Error) => void }
interface Run { id: number; job: Job; timer: number }

/** How many wanted layouts the worker has at once, so that it need not wait for the page between. */
const AT_ONCE = 2;
const KEPT = 60;
/** Past this a layout is given up, and a plain one is drawn. */
const PATIENCE = 12_000;

export class Cancelled extends Error {}

export class Layouter {
  private worker: Worker | null = null;
  /** What the worker has, the one that it is at first. */
  private running: Run[] = [];
  private queue: Job[] = [];
  private cache = new Map<string, Layout>();
  private next = 0;
  private failed = false;

  constructor() {
    this.start();
  }

  private start(): void {
    try {
      const source = document.getElementById("byocviz-worker")?.textContent;
      if (!source) throw new Error("the page holds no layout worker");
      const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
      this.worker = new Worker(url);
      URL.revokeObjectURL(url);
      this.worker.onmessage = (event) => this.done(event.data);
      this.worker.onerror = () => this.broken();
      const worker = this.worker;
      // At once where it can be: what is asked of a worker comes after this.
      if (document.readyState === "loading") void parsed().then(() => this.feed(worker));
      else this.feed(worker);
    } catch {
      this.broken();
    }
  }

  /** Gives a worker its Graphviz, which stands behind the script in the page. */
  private feed(worker: Worker): void {
    if (this.worker !== worker) return;
    try {
      const packed = fromBase64(document.getElementById("byocviz-graphviz")?.textContent ?? "");
      worker.postMessage(packed, [packed.buffer]);
    } catch {
      this.broken();
    }
  }

  /** Without a worker every layout is the plain one, so that there is always a drawing. */
  private broken(): void {
    this.failed = true;
    this.worker?.terminate();
    this.worker = null;
    const jobs = [...this.taken(), ...this.queue];
    this.queue = [];
    for (const job of jobs) job.resolve(plainLayout(job.dot));
  }

  /** Takes what is running from the worker. */
  private taken(): Job[] {
    const runs = this.running;
    this.running = [];
    for (const run of runs) clearTimeout(run.timer);
    return runs.map((run) => run.job);
  }

  peek(dot: string): Layout | undefined {
    return this.cache.get(dot);
  }

  get busy(): boolean {
    return this.running.length > 0;
  }

  /** `urgent` layouts stop those that were only made ahead. */
  layout(dot: string, urgent = true): Promise<Layout> {
    const known = this.cache.get(dot);
    if (known) return Promise.resolve(known);
    if (this.failed) return Promise.resolve(plainLayout(dot));
    const at = this.running.find((run) => run.job.dot === dot)?.job;
    const same = at ?? this.queue.find((one) => one.dot === dot);
    if (same && (same.urgent || !urgent || same === at)) {
      return new Promise((resolve, reject) => {
        const { resolve: first, reject: fail } = same;
        same.urgent ||= urgent;
        same.resolve = (layout) => (first(layout), resolve(layout));
        same.reject = (error) => (fail(error), reject(error));
      });
    }
    return new Promise((resolve, reject) => {
      const job = { dot, urgent, resolve, reject };
      if (urgent) {
        const place = this.queue.findIndex((one) => !one.urgent);
        this.queue.splice(place < 0 ? this.queue.length : place, 0, job);
        if (this.busy && this.running.every((run) => !run.job.urgent)) this.restart();
      } else {
        this.queue.push(job);
      }
      this.pump();
    });
  }

  /** Ends what is running and drops what waits. */
  cancel(): void {
    const jobs = this.queue;
    this.queue = [];
    if (this.busy) this.restart();
    for (const job of jobs) job.reject(new Cancelled());
  }

  private restart(): void {
    for (const job of this.taken()) job.reject(new Cancelled());
    this.worker?.terminate();
    this.start();
  }

  private pump(): void {
    while (this.worker && this.queue.length) {
      const { dot, urgent } = this.queue[0];
      if (this.running.length >= (urgent ? AT_ONCE : 1)) return;
      const job = this.queue.shift()!;
      const known = this.cache.get(dot);
      if (known) {
        job.resolve(known);
        continue;
      }
      const id = this.next++;
      const timer = window.setTimeout(() => this.late(id), PATIENCE);
      this.running.push({ id, job, timer });
      this.worker.postMessage({ id, dot });
    }
  }

  /** What the worker was slow at gets a plain layout; what waited behind it is asked for again. */
  private late(id: number): void {
    const jobs = this.running.filter((run) => run.id !== id).map((run) => run.job);
    const slow = this.running.find((run) => run.id === id);
    if (!slow) return;
    this.taken();
    this.queue.unshift(...jobs);
    this.worker?.terminate();
    this.start();
    this.keep(slow.job.dot, plainLayout(slow.job.dot), slow.job);
    this.pump();
  }

  private done(data: { id: number; layout?: Layout; error?: string }): void {
    const run = this.running.find((one) => one.id === data.id);
    if (!run) return;
    performance.mark(`byocviz:layout-${data.id}`);
    clearTimeout(run.timer);
    this.running = this.running.filter((one) => one !== run);
    this.keep(run.job.dot, data.layout ?? plainLayout(run.job.dot), run.job);
    this.pump();
  }

  private keep(dot: string, layout: Layout, job: Job): void {
    this.cache.set(dot, layout);
    if (this.cache.size > KEPT) this.cache.delete(this.cache.keys().next().value!);
    job.resolve(layout);
    for (const other of this.queue.filter((one) => one.dot === dot)) other.resolve(layout);
    this.queue = this.queue.filter((one) => one.dot !== dot);
  }
}
