"""How TVM's own passes partition a module, called one after the other by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import tvm
from tvm import relay
from tvm.relay.op.contrib import get_pattern_table, tensorrt

from .walkthrough import OPERATORS, rules


class _Target:
    """What TVM's TensorRT checks ask of their target: its defaults."""

    class kind:
        name = "tensorrt"

    attrs: ClassVar = {
        "tensorrt_version": [6, 0, 1],
        "use_implicit_batch": True,
        "max_workspace_size": 1 << 30,
        "remove_no_mac_subgraphs": True,
        "use_fp16": False,
    }


def partitioned(mod: tvm.IRModule, backend: str) -> tvm.IRModule:
    """The module after the four passes, nothing prepared and nothing pruned."""
    before = tensorrt.get_tensorrt_target
    tensorrt.get_tensorrt_target = _Target
    operators = OPERATORS if backend == "tutorial" else ()
    try:
        for name in operators:
            tvm.ir.Op.get(name).set_attr(f"target.{backend}", lambda _: True)
        for step in (
            relay.transform.InferType(),
            relay.transform.MergeComposite(_patterns(backend)),
            relay.transform.AnnotateTarget(backend),
            relay.transform.MergeCompilerRegions(),
            relay.transform.PartitionGraph(),
            relay.transform.InferType(),
        ):
            mod = step(mod)
    finally:
        tensorrt.get_tensorrt_target = before
        for name in operators:
            tvm.ir.Op.get(name).reset_attr(f"target.{backend}")
    return mod


def _patterns(backend: str) -> list[Any]:
    if backend == "tutorial":
        return [rule for rule in rules(backend) if not isinstance(rule[1], str)]
    if backend == "dnnl":
        import tvm.relay.op.contrib.dnnl  # noqa: F401  (registers the table)
    return list(get_pattern_table(backend) or ())


def external(mod: tvm.IRModule, backend: str) -> dict[str, Counter[str]]:
    """The operators of each external function of the backend, by its name."""
    found = {}
    for var, function in mod.functions.items():
        attrs = function.attrs if isinstance(function, relay.Function) else None
        if attrs and attrs["Compiler"] == backend:
            found[str(var.name_hint)] = operators(function)
    return found


def operators(expr: Any) -> Counter[str]:
    """Calls of operators in an expression, local functions included, by name."""
    names: Counter[str] = Counter()

    def visit(one: Any) -> None:
        if isinstance(one, relay.Call) and isinstance(one.op, tvm.ir.Op):
            names[one.op.name] += 1

    relay.analysis.post_order_visit(expr, visit)
    return names
