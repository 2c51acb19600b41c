"""A recording of a module of any size, made from the schema's structs: TVM's own passes take
minutes on 10,000 operators, and what is tested here is the viewer."""

from __future__ import annotations

import random

from byocviz.recording import Recording
from byocviz.recording.schema import (
    BackendInfo,
    Edge,
    FunctionView,
    Graph,
    Node,
    Operator,
    Place,
    Profile,
    Reason,
    Separation,
    Step,
    Subgraph,
    Tensor,
)

BLOCK = ("nn.conv2d", "add", "nn.relu", "nn.conv2d", "add", "nn.relu", "nn.conv2d", "add", "add")
ODD = ("isnan", "cumsum", "nonzero", "topk")
SHAPE = "float32[1, 32, 56, 56]"


def large(operators: int = 10_000, seed: int = 5, backend: str = "tensorrt") -> Recording:
    """Residual blocks, now and then an operator that no rule takes, through all seven steps."""
    flow = _Flow(operators, seed, backend)
    names = ("import", "prepare", "composite", "annotate", "merge", "partition", "prune")
    steps = [flow.step(name) for name in names]
    return Recording(
        title=f"{operators:,} operators",
        ir="relax",
        entry="main",
        backend=BackendInfo(backend),
        made_with={"byocviz": "synthetic"},
        ops=flow.ops,
        steps=steps,
        texts=flow.texts,
    )


class _Flow:
    def __init__(self, operators: int, seed: int, backend: str) -> None:
        dice = random.Random(seed)
        self.backend = backend
        self.ops: dict[int, Operator] = {}
        self.inputs: dict[int, list[int]] = {}
        self.texts: dict[str, str] = {}
        entry = -1
        while len(self.ops) < operators:
            at = len(self.ops)
            block = (dice.choice(ODD),) if dice.random() < 0.12 else BLOCK
            for k, name in enumerate(block[: operators - at]):
                ident = at + k
                reads = [ident - 1] + ([entry] if k == 8 else [])
                self.inputs[ident] = reads
                conv = name == "nn.conv2d"
                self.ops[ident] = Operator(
                    ident,
                    f"relax.{name}",
                    function="main",
                    var=f"lv{ident}",
                    source=f"net/stage{at // 1000}/block{at}/{name.split('.')[-1]}{k}",
                    arg_types=[SHAPE] * len(reads) + (["float32[32, 32, 3, 3] const"] * conv),
                    out_types=[SHAPE],
                    macs=28_901_376 if conv else 0,
                    param_count=9216 if conv else 0,
                    param_bytes=36_864 if conv else 0,
                    attrs={"strides": "[1, 1]", "padding": "[1, 1, 1, 1]"} if conv else {},
                )
            entry = len(self.ops) - 1
        self.taken = {i for i, op in self.ops.items() if op.name.split("relax.")[1] not in ODD}
        self.regions = self._regions()

    def _regions(self) -> list[list[int]]:
        found: list[list[int]] = []
        for ident in self.ops:
            if ident not in self.taken:
                continue
            if found and found[-1][-1] == ident - 1:
                found[-1].append(ident)
            else:
                found.append([ident])
        return found

    def step(self, name: str) -> Step:
        groups: list[list[int]] = []
        if name == "annotate":
            groups = [[ident] for ident in self.ops if ident in self.taken]
        elif name in ("merge", "partition", "prune"):
            groups = self.regions
        of = {ident: k for k, group in enumerate(groups) for ident in group}
        outlined = name in ("partition", "prune")
        places: dict[int, Place] = {}
        functions = self._functions(name, groups, of, outlined, places)
        return Step(
            name,
            call=f"mod = {name}(mod)",
            note=f"The {name} step of a module that was made up.",
            functions=functions,
            places=places,
            subgraphs=[self._subgraph(k, group) for k, group in enumerate(groups)],
            profile=self._profile(groups),
            reasons={
                ident: Reason("no-rule", f"No rule names {op.name}.", "Add a rule.")
                for ident, op in self.ops.items()
                if groups and ident not in self.taken
            },
            separations=[
                Separation(k, k + 1, "path", "An operator on TVM lies between.", [group[-1] + 1])
                for k, group in enumerate(groups[:-1])
                if name != "annotate"
            ],
            changed=name not in ("prepare", "partition", "prune"),
            tvm_seconds=0.01,
        )

    def _functions(
        self,
        step: str,
        groups: list[list[int]],
        of: dict[int, int],
        outlined: bool,
        places: dict[int, Place],
    ) -> list[FunctionView]:
        main = Graph([Node("param", "x", type=SHAPE)], [])
        node = {-1: 0}
        inner: list[FunctionView] = []
        boxes: dict[int, int] = {}
        for ident in self.ops:
            k = of.get(ident, -1)
            if outlined and k >= 0:
                group = groups[k]
                if ident != group[0]:
                    continue
                inner.append(self._outline(k, group, places))
                main.nodes.append(Node("call", f"lv{ident}", callee=f"region{k}", subgraph=k))
                at = len(main.nodes) - 1
                outside = sorted({i for m in group for i in self.inputs[m] if i not in group})
                main.edges += [Edge(node[i], at, slot) for slot, i in enumerate(outside)]
                node.update(dict.fromkeys(group, at))
                continue
            parent = -1
            if k >= 0:
                if k not in boxes:
                    boxes[k] = len(main.nodes)
                    main.nodes.append(Node("region", f"region{k}", callee=f"region{k}", subgraph=k))
                parent = boxes[k]
            rule = self._rule(ident) if step not in ("import", "prepare") else ""
            self._add(main, node, ident, parent, rule)
            on = self.backend if rule else "tvm"
            places[ident] = Place("main", "main", node[ident], on, rule, k)
        main.nodes.append(Node("output", "result"))
        main.edges.append(Edge(node[max(self.ops)], len(main.nodes) - 1))
        lines = []
        for ident, op in self.ops.items():
            reads = ", ".join(f"lv{i}" for i in self.inputs[ident])
            lines.append(f"{op.var} = R.{op.name[6:]}({reads})  # {step}")
        self.texts[step] = "\n".join(lines)
        return [FunctionView("main", "entry", text=step, graph=main), *inner]

    def _outline(self, k: int, group: list[int], places: dict[int, Place]) -> FunctionView:
        outside = sorted({i for m in group for i in self.inputs[m] if i not in group})
        graph = Graph([Node("param", f"p{i}", type=SHAPE) for i in range(len(outside))], [])
        node = {ident: i for i, ident in enumerate(outside)}
        for ident in group:
            self._add(graph, node, ident, -1, self._rule(ident))
            places[ident] = Place(
                f"region{k}", f"region{k}", node[ident], self.backend, self._rule(ident), k
            )
        graph.nodes.append(Node("output", "result"))
        graph.edges.append(Edge(node[group[-1]], len(graph.nodes) - 1))
        return FunctionView(f"region{k}", "subgraph", graph=graph, sites=[k])

    def _rule(self, ident: int) -> str:
        return f"{self.backend}.{self.ops[ident].name[6:]}" if ident in self.taken else ""

    def _add(self, graph: Graph, node: dict[int, int], ident: int, parent: int, rule: str) -> None:
        if rule:
            graph.nodes.append(Node("composite", rule, parent=parent, callee=f"fused{ident}"))
            parent = len(graph.nodes) - 1
        slots = list(self.inputs[ident])
        graph.nodes.append(Node("op", f"lv{ident}", [ident], parent))
        at = len(graph.nodes) - 1
        graph.edges += [Edge(node[i], at, slot) for slot, i in enumerate(slots)]
        if self.ops[ident].name == "relax.nn.conv2d":
            graph.nodes.append(Node("const", "const", parent=parent, type="float32[32, 32, 3, 3]"))
            graph.edges.append(Edge(len(graph.nodes) - 1, at, len(slots)))
        node[ident] = at

    def _subgraph(self, k: int, group: list[int]) -> Subgraph:
        outside = sorted({i for m in group for i in self.inputs[m] if i not in group})
        counts: dict[str, int] = {}
        for ident in group:
            counts[self.ops[ident].name] = counts.get(self.ops[ident].name, 0) + 1
        size = 401_408
        return Subgraph(
            f"region{k}",
            self.backend,
            f"region{k}",
            caller="main",
            op_ids=group,
            ops=counts,
            macs=sum(self.ops[i].macs or 0 for i in group),
            bytes_in=size * len(outside),
            bytes_out=size,
            inputs=[Tensor(f"lv{i}", SHAPE, size, i) for i in outside],
            outputs=[Tensor(f"lv{group[-1]}", SHAPE, size, group[-1])],
        )

    def _profile(self, groups: list[list[int]]) -> Profile:
        counts: dict[str, int] = {}
        for op in self.ops.values():
            counts[op.name] = counts.get(op.name, 0) + 1
        macs = sum(op.macs or 0 for op in self.ops.values())
        off = [i for group in groups for i in group]
        return Profile(
            ops=dict(sorted(counts.items(), key=lambda kv: -kv[1])),
            total=len(self.ops),
            macs=macs,
            offloaded_ops=len(off),
            offloaded_macs=sum(self.ops[i].macs or 0 for i in off),
            subgraphs=len(groups),
            bytes_in=401_408 * len(groups),
            bytes_out=401_408 * len(groups),
        )
