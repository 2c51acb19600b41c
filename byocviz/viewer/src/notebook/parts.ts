/** A recording put together from parts, of which only those that changed are read anew. */
import { decode } from "../data/decode";
import { gunzip } from "../data/base64";
import { dict, documents } from "../data/lenient";
import type { Recording, Step } from "../schema";

export interface Parts { head: string; ops: string; results: string; extra: string; steps: string[] }

/** IR texts by key. One object for the whole page: the viewer keeps hold of it. */
const texts: Record<string, string> = {};
const raw = new Map<string, unknown>();
const steps = new Map<string, Step>();
const KEPT = 60;

async function read(data: ArrayBuffer): Promise<unknown> {
  return JSON.parse(await gunzip(new Uint8Array(data)).text());
}

export async function keep(digest: string, data: ArrayBuffer): Promise<void> {
  raw.delete(digest);
  raw.set(digest, await read(data));
  while (raw.size > KEPT) raw.delete(raw.keys().next().value!);
}

export async function keepTexts(data: ArrayBuffer): Promise<void> {
  Object.assign(texts, documents(await read(data)));
}

/** The digests that are not here. */
export function missing(parts: Parts): string[] {
  return [parts.head, parts.ops, parts.results, parts.extra, ...parts.steps].filter((one) => !raw.has(one) && !steps.has(one));
}

export function assemble(parts: Parts, pending: string[]): { recording: Recording; messages: string[] } {
  const whole = decode({
    ...dict(raw.get(parts.head)), ops: raw.get(parts.ops), results: raw.get(parts.results), extra: raw.get(parts.extra), steps: [],
  });
  const { recording } = whole;
  recording.steps = parts.steps.map((digest) => {
    let made = steps.get(digest);
    if (!made) {
      made = decode(raw.get(digest)).recording.steps[0];
      steps.set(digest, made);
      if (steps.size > KEPT) steps.delete(steps.keys().next().value!);
    }
    return made;
  }).filter(Boolean);
  recording.steps.push(...pending.map(waiting));
  recording.texts = texts;
  return { recording, messages: whole.messages.filter((text) => !text.includes("holds no steps")) };
}

/** A step that has not run yet: choosing it runs it. */
function waiting(name: string): Step {
  const bare = decode({ steps: [{ name, origin: "pending", note: "Not run yet: it runs when it is chosen.", changed: false }] });
  return bare.recording.steps[0];
}
