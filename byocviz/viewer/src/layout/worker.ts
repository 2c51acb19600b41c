/** Lays out DOT texts, one at a time. It is ended and made anew to cancel a layout. */
import { Graphviz } from "@hpcc-js/wasm-graphviz";
import packed from "graphviz-wasm";
import { parseLayout } from "./parse";

// Coordinates without drawing instructions; the typings do not list this format of Graphviz.
const FORMAT = "json0" as string as "json";

/** Runs the parts of Graphviz that a drawing needs, which are compiled when first run. */
const WARM = "digraph{graph[splines=spline]node[shape=box,fixedsize=true,label=\"\"]" +
  "subgraph cluster_0{graph[label=\" \"]a->b a->c subgraph cluster_1{b->d c->d}}d->e a->e x->c x->e}";

async function load(): Promise<Graphviz> {
  const binary = atob(packed);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  (globalThis as { graphvizWasm?: Uint8Array }).graphvizWasm = new Uint8Array(await new Response(stream).arrayBuffer());
  const graphviz = await Graphviz.load();
  graphviz.layout(WARM, FORMAT, "dot");
  return graphviz;
}

const ready = load();

self.onmessage = async (event: MessageEvent<{ id: number; dot: string }>) => {
  const { id, dot } = event.data;
  try {
    const graphviz = await ready;
    const start = performance.now();
    const json = graphviz.layout(dot, FORMAT, "dot");
    self.postMessage({ id, layout: parseLayout(json, performance.now() - start) });
  } catch (error) {
    self.postMessage({ id, error: error instanceof Error ? error.message : String(error) });
  }
};

void ready.then(() => self.postMessage({ id: -1 }), () => undefined);
