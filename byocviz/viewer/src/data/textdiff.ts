/** Line diff of two texts: common ends off, unique common lines as anchors, then Myers' O(ND). */

export interface Line { kind: "same" | "add" | "del"; a: number; b: number; text: string }

const EFFORT = 1500;

export function diffLines(before: string, after: string): Line[] {
  const a = before === "" ? [] : before.split("\n");
  const b = after === "" ? [] : after.split("\n");
  const out: Line[] = [];
  walk(a, b, 0, a.length, 0, b.length, out, 0);
  return out;
}

function walk(
  a: string[], b: string[], a0: number, a1: number, b0: number, b1: number, out: Line[], depth: number,
): void {
  while (a0 < a1 && b0 < b1 && a[a0] === b[b0]) {
    out.push({ kind: "same", a: a0, b: b0, text: a[a0] });
    a0++;
    b0++;
  }
  let tail = 0;
  while (a1 - tail > a0 && b1 - tail > b0 && a[a1 - tail - 1] === b[b1 - tail - 1]) tail++;
  const a2 = a1 - tail;
  const b2 = b1 - tail;
  if (a0 < a2 || b0 < b2) {
    const anchors = depth < 40 && a0 < a2 && b0 < b2 ? common(a, b, a0, a2, b0, b2) : [];
    if (anchors.length) {
      let x = a0;
      let y = b0;
      for (const [i, j] of anchors) {
        walk(a, b, x, i, y, j, out, depth + 1);
        out.push({ kind: "same", a: i, b: j, text: a[i] });
        x = i + 1;
        y = j + 1;
      }
      walk(a, b, x, a2, y, b2, out, depth + 1);
    } else {
      myers(a, b, a0, a2, b0, b2, out);
    }
  }
  for (let k = 0; k < tail; k++) out.push({ kind: "same", a: a2 + k, b: b2 + k, text: a[a2 + k] });
}

/** Lines that occur once on both sides, as the longest rising sequence (patience). */
function common(a: string[], b: string[], a0: number, a1: number, b0: number, b1: number): [number, number][] {
  const once = (lines: string[], from: number, to: number): Map<string, number> => {
    const seen = new Map<string, number>();
    for (let i = from; i < to; i++) seen.set(lines[i], seen.has(lines[i]) ? -1 : i);
    return seen;
  };
  const there = once(b, b0, b1);
  const pairs: [number, number][] = [];
  for (const [line, i] of once(a, a0, a1)) {
    const j = there.get(line);
    if (i >= 0 && j !== undefined && j >= 0) pairs.push([i, j]);
  }
  const piles: number[] = [];
  const back = new Array<number>(pairs.length).fill(-1);
  pairs.forEach(([, j], k) => {
    let low = 0;
    let high = piles.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (pairs[piles[mid]][1] < j) low = mid + 1;
      else high = mid;
    }
    if (low) back[k] = piles[low - 1];
    piles[low] = k;
  });
  const out: [number, number][] = [];
  for (let k = piles.length ? piles[piles.length - 1] : -1; k >= 0; k = back[k]) out.push(pairs[k]);
  return out.reverse();
}

function myers(a: string[], b: string[], a0: number, a1: number, b0: number, b1: number, out: Line[]): void {
  const n = a1 - a0;
  const m = b1 - b0;
  const limit = Math.min(n + m, EFFORT);
  const trace: Int32Array[] = [];
  let v = new Int32Array(2 * limit + 3);
  const mid = limit + 1;
  let found = -1;
  search: for (let d = 0; d <= limit && n && m; d++) {
    trace.push(v.slice());
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && v[mid + k - 1] < v[mid + k + 1]) ? v[mid + k + 1] : v[mid + k - 1] + 1;
      let y = x - k;
      while (x < n && y < m && a[a0 + x] === b[b0 + y]) {
        x++;
        y++;
      }
      v[mid + k] = x;
      if (x >= n && y >= m) {
        found = d;
        break search;
      }
    }
    // Each round keeps a copy; past a few hundred that costs more than it tells.
    if (d * limit > 4e6) break;
  }
  if (found < 0) {
    for (let i = a0; i < a1; i++) out.push({ kind: "del", a: i, b: -1, text: a[i] });
    for (let j = b0; j < b1; j++) out.push({ kind: "add", a: -1, b: j, text: b[j] });
    return;
  }
  const reversed: Line[] = [];
  let x = n;
  let y = m;
  for (let d = found; d >= 0; d--) {
    v = trace[d] as Int32Array<ArrayBuffer>;
    const k = x - y;
    const from = k === -d || (k !== d && v[mid + k - 1] < v[mid + k + 1]) ? k + 1 : k - 1;
    const px = d === 0 ? 0 : v[mid + from];
    const py = d === 0 ? 0 : px - from;
    while (x > px && y > py && x > 0 && y > 0 && a[a0 + x - 1] === b[b0 + y - 1]) {
      x--;
      y--;
      reversed.push({ kind: "same", a: a0 + x, b: b0 + y, text: a[a0 + x] });
    }
    if (d === 0) break;
    if (x > px) {
      x--;
      reversed.push({ kind: "del", a: a0 + x, b: -1, text: a[a0 + x] });
    } else {
      y--;
      reversed.push({ kind: "add", a: -1, b: b0 + y, text: b[b0 + y] });
    }
  }
  out.push(...reversed.reverse());
}

export type Hunk = { kind: "lines"; lines: Line[] } | { kind: "skip"; lines: Line[] };

/** Long stretches without a change, but for `context` lines at their ends, as skips. */
export function hunks(lines: Line[], context = 3): Hunk[] {
  const out: Hunk[] = [];
  let i = 0;
  while (i < lines.length) {
    let j = i;
    while (j < lines.length && (lines[j].kind === "same") === (lines[i].kind === "same")) j++;
    const part = lines.slice(i, j);
    if (part[0].kind === "same" && part.length > context * 2 + 2) {
      const head = i === 0 ? 0 : context;
      const end = j === lines.length ? part.length : part.length - context;
      if (head) out.push({ kind: "lines", lines: part.slice(0, head) });
      out.push({ kind: "skip", lines: part.slice(head, end) });
      if (end < part.length) out.push({ kind: "lines", lines: part.slice(end) });
    } else {
      out.push({ kind: "lines", lines: part });
    }
    i = j;
  }
  return out;
}

/** What stands beside what: equal lines, and what was taken out beside what was put in. */
export interface Pair { left: Line | null; right: Line | null }

export function pairs(lines: Line[]): Pair[] {
  const out: Pair[] = [];
  for (let i = 0; i < lines.length; ) {
    if (lines[i].kind === "same") {
      out.push({ left: lines[i], right: lines[i] });
      i++;
      continue;
    }
    const gone: Line[] = [];
    const made: Line[] = [];
    for (; i < lines.length && lines[i].kind !== "same"; i++) (lines[i].kind === "del" ? gone : made).push(lines[i]);
    for (let k = 0; k < Math.max(gone.length, made.length); k++) out.push({ left: gone[k] ?? null, right: made[k] ?? null });
  }
  return out;
}

export interface Segment { text: string; changed: boolean }

/**
 * A line in pieces: what the other line does not have is `changed`. Null where so little is
 * common, or the line so long, that marking it would tell nothing.
 */
export function segments(text: string, other: string, side: "left" | "right"): Segment[] | null {
  if (text.length > 600 || other.length > 600) return null;
  const tokens = (line: string) => (line.match(/\w+|\s+|[^\w\s]/g) ?? []).join("\n");
  const [a, b] = side === "left" ? [text, other] : [other, text];
  const mine = side === "left" ? "del" : "add";
  const out: Segment[] = [];
  let changed = 0;
  for (const token of diffLines(tokens(a), tokens(b))) {
    if (token.kind !== "same" && token.kind !== mine) continue;
    const differs = token.kind === mine;
    if (differs) changed += token.text.length;
    const last = out[out.length - 1];
    if (last && last.changed === differs) last.text += token.text;
    else out.push({ text: token.text, changed: differs });
  }
  return changed > text.trim().length * 0.7 ? null : out;
}
