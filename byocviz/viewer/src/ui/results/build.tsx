/** The build: an engine a subgraph, what it took, and the module that TVM runs. */
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { bytes, plural } from "../../data/format";
import type { BuildInfo, EngineInfo, ModuleNode } from "../../data/results";
import { BuildRun } from "../../replay/run";
import { Facts, More } from "../pieces";
import { Table, type Column } from "../tables";
import { Card, Stack, Sub, TextPanel, Words, say, time, when } from "./parts";

interface Open { key: string; title: string; from: HTMLElement }

export function BuildCard({ build }: { build: BuildInfo }) {
  const [open, setOpen] = useState<Open | null>(null);
  const engines = build.engines;
  const unknown = engines.some((e) => e.seconds === null) || build.lower_seconds === null || build.tvm_seconds === null;
  const cached = engines.filter((e) => e.cached).length;
  const close = () => {
    open?.from.focus();
    setOpen(null);
  };
  const show = (key: string, title: string) => (event: Event) => setOpen({ key, title, from: event.currentTarget as HTMLElement });
  const text = (e: EngineInfo, key: string, what: string) =>
    key && <button class="ghost small" aria-label={`${what} of ${say(e.function, 60)}`} onClick={show(key, `${what} of ${say(e.function, 60)}`)}>{what}</button>;
  const columns: Column<EngineInfo>[] = [
    { name: "subgraph", value: (e) => e.function, show: (e) => <Sub name={e.function} step={build.step} limit={30} /> },
    { name: "operators", number: true, value: (e) => e.op_ids.length },
    { name: "seconds", number: true, value: (e) => e.seconds, show: (e) => time(e.seconds) },
    { name: "made", value: (e) => Number(e.cached), show: (e) => (e.cached ? <span class="tag-cached">from the cache</span> : "built") },
    { name: "engine", number: true, value: (e) => e.bytes, show: (e) => bytes(e.bytes) },
    { name: "facts", value: (e) => factsText(e.facts), show: (e) => <span class="engine-facts">{Object.entries(e.facts).slice(0, 12).map(([k, v]) => <span key={k}><span class="quiet">{say(k, 24)}</span> <Words text={v} limit={36} /></span>)}</span> },
    { name: "text", value: (e) => Number(!!e.code) + Number(!!e.layers), show: (e) => (e.code || e.layers ? <span class="text-buttons">{text(e, e.code, "ONNX text")}{text(e, e.layers, "layers")}</span> : "–") },
  ];
  return (
    <Card id="build" title={`Build for ${say(build.title || "?", 60)}`} note={[build.step && `of the module after ${say(build.step, 30)}`, build.made && when(build.made)].filter(Boolean).join("; ") || undefined}>
      <div class="pad build-times">
        <h3>What building took <span class="quiet">once, apart from any latency</span></h3>
        <Stack label="What building took" segments={[
          { cls: "p-b3", label: "lowering to ONNX", value: build.lower_seconds ?? 0, text: time(build.lower_seconds) },
          { cls: "p-b0", label: `${plural(engines.length, "engine")}${cached ? `, ${cached} from the cache` : ""}`, value: sum(engines), text: engines.some((e) => e.seconds === null) ? "?" : time(sum(engines)) },
          { cls: "p-tvm", label: "TVM, what is left", value: build.tvm_seconds ?? 0, text: time(build.tvm_seconds) },
        ]} />
        <BuildRun build={build} />
        {unknown && <p class="quiet">Shares are of what is known.</p>}
      </div>
      <div class="bare"><Table id="engines" title="Engines" rows={engines} columns={columns} /></div>
      {open && <TextPanel title={open.title} textKey={open.key} onClose={close} />}
      <div class="build-more">
        {build.tree.length > 0 && <Tree nodes={build.tree} />}
        <section aria-label="Where and how it was built">
          <h3>Where and how</h3>
          <Facts rows={[
            ["runtime", <Words text={build.title} limit={60} />],
            ["codegen", build.codegen === "native" ? "TVM's own (native)" : build.codegen === "python" ? "byocviz's" : <Words text={build.codegen} />],
            ...(build.target ? [["target", <Words text={build.target} limit={120} mono />] as [string, ComponentChildren]] : []),
            ...Object.entries(build.machine).slice(0, 60).map(([k, v]): [string, ComponentChildren] => [say(k, 40), <Words text={v} limit={120} />]),
          ]} />
        </section>
      </div>
    </Card>
  );
}

function sum(engines: EngineInfo[]): number {
  return engines.reduce((total, e) => total + (e.seconds ?? 0), 0);
}

function factsText(facts: Record<string, string>): string {
  return Object.entries(facts).map(([k, v]) => `${k} ${v}`).join(", ");
}

/** Modules in the order of an outline, each with the lines that lead to it. */
export function outline(nodes: ModuleNode[]): { node: ModuleNode; lines: string; level: number }[] {
  const children = new Map<number, number[]>();
  nodes.forEach((node, i) => {
    const list = children.get(node.parent);
    if (list) list.push(i);
    else children.set(node.parent, [i]);
  });
  const out: { node: ModuleNode; lines: string; level: number }[] = [];
  const todo = (children.get(-1) ?? []).map((at) => ({ at, lead: "", mark: "", level: 1 })).reverse();
  while (todo.length) {
    const { at, lead, mark, level } = todo.pop()!;
    out.push({ node: nodes[at], lines: lead + mark, level });
    const below = children.get(at) ?? [];
    // Past this depth the lines would fill the page; the level is still told.
    const next = level === 1 || level > 12 ? lead : lead + (mark.startsWith("├") ? "│  " : "   ");
    for (let k = below.length - 1; k >= 0; k--) {
      todo.push({ at: below[k], lead: next, mark: k === below.length - 1 ? "└─ " : "├─ ", level: level + 1 });
    }
  }
  return out;
}

function Tree({ nodes }: { nodes: ModuleNode[] }) {
  const rows = useMemo(() => outline(nodes), [nodes]);
  return (
    <section aria-label="Runtime module tree">
      <h3>Runtime modules <span class="quiet">{nodes.length}</span></h3>
      <ul class="tree">
        <More items={rows} first={14}>
          {({ node, lines, level }, i) => (
            <li key={i}>
              <span class="mono tree-lines" aria-hidden="true">{lines}</span>
              <span><span class="sr">Level {level}: </span><b class="mono">{say(node.kind || "?", 60)}</b> {node.name && <Words text={node.name} limit={44} mono />} {node.detail && <span class="quiet"><Words text={node.detail} limit={90} /></span>}</span>
            </li>
          )}
        </More>
      </ul>
    </section>
  );
}
