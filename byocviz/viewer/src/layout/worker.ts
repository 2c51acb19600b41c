/** Lays out DOT texts, one at a time. It is ended and made anew to cancel a layout. */
import { Graphviz } from "@hpcc-js/wasm-graphviz";
import { gunzip } from "../data/base64";
import { sleep } from "../draw/frames";
import { parseLayout } from "./parse";

// Coordinates without drawing instructions; the typings do not list this format of Graphviz.
const FORMAT = "json0" as string as "json";

/** Runs what a drawing needs of Graphviz, which is compiled when first run. Code that runs much is
 * compiled again, and better, while it runs: where the page has long to read, that is over before
 * anything is asked. Bit by bit, so that a drawing that is wanted meanwhile does not wait long. */
const WARM = [
  "digraph{node[shape=box,fixedsize=true,label=\"\"]a->b a->c}",
  "digraph{graph[splines=spline]node[shape=box,fixedsize=true,label=\"\"]" +
    "subgraph cluster_0{graph[label=\" \"]a->b a->c subgraph cluster_1{b->d c->d}}d->e a->e x->c x->e}",
];
/** Milliseconds of the last of them, again and again. */
const WARMING = 100;

let asked = false;

/** The WebAssembly comes first, gzip'ed. */
const ready = new Promise<Graphviz>((resolve, reject) => {
  const load = async (packed: Uint8Array<ArrayBuffer>): Promise<Graphviz> => {
    const bytes = new Uint8Array(await gunzip(packed).arrayBuffer());
    (globalThis as { graphvizWasm?: Uint8Array }).graphvizWasm = bytes;
    return Graphviz.load();
  };
  self.onmessage = (event: MessageEvent<Uint8Array<ArrayBuffer>>) => {
    self.onmessage = layout;
    load(event.data).then(resolve, reject);
  };
});

async function layout(event: MessageEvent<{ id: number; dot: string }>): Promise<void> {
  asked = true;
  const { id, dot } = event.data;
  try {
    const graphviz = await ready;
    const start = performance.now();
    const json = graphviz.layout(dot, FORMAT, "dot");
    self.postMessage({ id, layout: parseLayout(json, performance.now() - start) });
  } catch (error) {
    self.postMessage({ id, error: error instanceof Error ? error.message : String(error) });
  }
}

async function warm(): Promise<void> {
  const graphviz = await ready;
  const run = async (dot: string): Promise<void> => {
    await sleep(0);
    if (!asked) graphviz.layout(dot, FORMAT, "dot");
  };
  for (const dot of WARM) await run(dot);
  const end = performance.now() + WARMING;
  while (!asked && performance.now() < end) await run(WARM[WARM.length - 1]);
}

warm().catch(() => undefined);
