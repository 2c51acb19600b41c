/** Repeats that follow each other in a sequence of numbers. */

export interface Run {
  start: number;
  period: number;
  times: number;
  /** Items after it that still fit: how far the blocks' beginning can be shifted. */
  slack: number;
}

const LONGEST = 512;

/**
 * Runs that do not overlap, in order: those that save most first, the shortest period of
 * equal ones. A run covers at least 4 items and every item of it passes `allowed`.
 * O(n * min(n / 2, 512)).
 */
export function findRuns(signs: number[], allowed: (i: number) => boolean): Run[] {
  const n = signs.length;
  // What may not be in a run is like nothing else.
  const sign = Int32Array.from(signs, (one, i) => (allowed(i) ? one : -1 - i));
  const found: Run[] = [];
  for (let p = 1; p <= Math.min(n >> 1, LONGEST); p++) {
    const least = p === 1 ? 4 : 6;
    let equal = 0;
    for (let i = 0; i + p <= n; i++) {
      if (i + p < n && sign[i] === sign[i + p]) {
        equal++;
        continue;
      }
      if (equal >= p) {
        const times = Math.floor((equal + p) / p);
        if (times * p >= least) found.push({ start: i - equal, period: p, times, slack: equal + p - times * p });
      }
      equal = 0;
    }
  }
  found.sort((a, b) => worth(b) - worth(a) || a.period - b.period || a.start - b.start);
  const taken = new Uint8Array(n);
  const runs: Run[] = [];
  for (const run of found) {
    for (const part of free(run, taken)) {
      taken.fill(1, part.start, part.start + part.period * part.times);
      runs.push(part);
    }
  }
  return runs.sort((a, b) => a.start - b.start);
}

/** Items saved by folding to one block; a long block that is seldom repeated tells less. */
function worth(run: Run): number {
  return (run.period * (run.times - 1) ** 2) / run.times / Math.max(1, run.period / 16);
}

/** What is left of a run where a better one took some of it: its longest free stretch. */
function free(run: Run, taken: Uint8Array): Run[] {
  const end = run.start + run.period * run.times + run.slack;
  let best: Run | null = null;
  let i = run.start;
  while (i < end) {
    while (i < end && taken[i]) i++;
    const start = i;
    while (i < end && !taken[i]) i++;
    const times = Math.floor((i - start) / run.period);
    if (times >= 2 && times * run.period >= (run.period === 1 ? 4 : 6) && (!best || times > best.times)) {
      best = { start, period: run.period, times, slack: i - start - times * run.period };
    }
  }
  return best ? [best] : [];
}
