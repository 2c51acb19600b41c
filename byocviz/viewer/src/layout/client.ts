/** Layouts by DOT text, kept, from a warm worker. What is wanted now goes before what may be. */
import source from "worker-text";
import { plainLayout } from "./fallback";
import type { Layout } from "./parse";

interface Job { dot: string; urgent: boolean; resolve: (layout: Layout) => void; reject: (e: Error) => void }

const KEPT = 60;
/** Past this a layout is given up, and a plain one is drawn. */
const PATIENCE = 12_000;

export class Cancelled extends Error {}

export class Layouter {
  private worker: Worker | null = null;
  private running: { id: number; job: Job; timer: number } | null = null;
  private queue: Job[] = [];
  private cache = new Map<string, Layout>();
  private next = 0;
  private failed = false;

  constructor() {
    this.start();
  }

  private start(): void {
    try {
      const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
      this.worker = new Worker(url);
      URL.revokeObjectURL(url);
      this.worker.onmessage = (event) => this.done(event.data);
      this.worker.onerror = () => this.broken();
    } catch {
      this.broken();
    }
  }

  /** Without a worker every layout is the plain one, so that there is always a drawing. */
  private broken(): void {
    this.failed = true;
    this.worker?.terminate();
    this.worker = null;
    const jobs = this.running ? [this.running.job, ...this.queue] : this.queue;
    this.running = null;
    this.queue = [];
    for (const job of jobs) job.resolve(plainLayout(job.dot));
  }

  peek(dot: string): Layout | undefined {
    return this.cache.get(dot);
  }

  get busy(): boolean {
    return this.running !== null;
  }

  /** `urgent` layouts stop those that were only made ahead. */
  layout(dot: string, urgent = true): Promise<Layout> {
    const known = this.cache.get(dot);
    if (known) return Promise.resolve(known);
    if (this.failed) return Promise.resolve(plainLayout(dot));
    const same = this.running?.job.dot === dot ? this.running.job : this.queue.find((one) => one.dot === dot);
    if (same && (same.urgent || !urgent || same === this.running?.job)) {
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
        const at = this.queue.findIndex((one) => !one.urgent);
        this.queue.splice(at < 0 ? this.queue.length : at, 0, job);
        if (this.running && !this.running.job.urgent && this.running.job.dot !== dot) this.restart();
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
    if (this.running) this.restart();
    for (const job of jobs) job.reject(new Cancelled());
  }

  private restart(): void {
    const running = this.running;
    this.running = null;
    if (running) {
      clearTimeout(running.timer);
      running.job.reject(new Cancelled());
    }
    this.worker?.terminate();
    this.start();
  }

  private pump(): void {
    if (this.running || !this.worker) return;
    const job = this.queue.shift();
    if (!job) return;
    const known = this.cache.get(job.dot);
    if (known) {
      job.resolve(known);
      this.pump();
      return;
    }
    const id = this.next++;
    const timer = window.setTimeout(() => {
      if (this.running?.id !== id) return;
      this.running = null;
      this.worker?.terminate();
      this.start();
      this.keep(job.dot, plainLayout(job.dot), job);
      this.pump();
    }, PATIENCE);
    this.running = { id, job, timer };
    this.worker.postMessage({ id, dot: job.dot });
  }

  private done(data: { id: number; layout?: Layout; error?: string }): void {
    performance.mark(data.id < 0 ? "byocviz:worker" : `byocviz:layout-${data.id}`);
    if (!this.running || data.id !== this.running.id) return;
    const { job, timer } = this.running;
    clearTimeout(timer);
    this.running = null;
    this.keep(job.dot, data.layout ?? plainLayout(job.dot), job);
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
