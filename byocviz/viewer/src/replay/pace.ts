/** How fast recorded times are played, and what is under way at a moment. Pure functions. */
import { niceStep } from "../data/latency";
import { thousands } from "../data/format";
import type { BuildInfo } from "../data/results";

/** Seconds on the screen: what is longer is played faster, and what is shorter slower. */
const LONGEST = 4;
const SHORTEST = 0.8;

export interface Pace {
  /** Seconds recorded in a second played. */
  factor: number;
  text: string;
}

/** How fast so many recorded seconds are played. */
export function paceOf(recorded: number): Pace {
  if (!(recorded > 0) || (recorded <= LONGEST && recorded >= SHORTEST)) return { factor: 1, text: "in the time that it took" };
  if (recorded > LONGEST) {
    const factor = niceStep(recorded / LONGEST);
    return { factor, text: `${thousands(factor)} times faster than recorded` };
  }
  const slow = niceStep(SHORTEST / recorded);
  return { factor: 1 / slow, text: `${thousands(slow)} times slower than recorded` };
}

export interface Part { name: string; seconds: number; engine: number }

/** What is being built at a moment, and the seconds of it. Null once all is. */
export function building(parts: Part[], now: number): { at: number; since: number } | null {
  let begun = 0;
  for (let i = 0; i < parts.length; i++) {
    if (now < begun + parts[i].seconds) return { at: i, since: now - begun };
    begun += parts[i].seconds;
  }
  return null;
}

export function partsOf(build: BuildInfo): Part[] {
  return [
    { name: "lowering to ONNX", seconds: build.lower_seconds ?? 0, engine: 0 },
    ...build.engines.map((e, i) => ({ name: e.function, seconds: e.seconds ?? 0, engine: i + 1 })),
    { name: "TVM, what is left", seconds: build.tvm_seconds ?? 0, engine: 0 },
  ];
}
