"""Small modules, rules, and the question that every test here asks: who is left, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.relax.dpl import is_op, wildcard

from byocviz.flow.relax.reasons import explain, record_checks
from byocviz.flow.relax.tag import Tagger, tag_of
from byocviz.recording.schema import Reason

op = relax.op


def tensor(shape: Sequence[Any] | None, dtype: str = "float32", ndim: int = -1) -> Any:
    return relax.TensorType(shape, dtype, ndim=ndim)


def module(build: Callable[..., Any], *types: Any, plain: bool = False) -> tvm.IRModule:
    """``main`` with parameters of those types. ``build(emit, *params)`` gives the results."""
    builder = relax.BlockBuilder()
    params = [relax.Var(f"x{i}", ty) for i, ty in enumerate(types)]
    with builder.function("main", params):
        if plain:
            made = build(builder.emit, *params)
            results = made if isinstance(made, list) else [made]
        else:
            with builder.dataflow():
                made = build(builder.emit, *params)
                made = made if isinstance(made, list) else [made]
                results = [builder.emit_output(value) for value in made]
        builder.emit_func_output(results[0] if len(results) == 1 else results)
    return builder.get()


def const(*shape: int, value: float = 1.0, dtype: str = "float32") -> Any:
    return relax.const(np.full(shape, value, dtype), dtype)


def rule(name: str, pattern: Any, annotations: Any = None, check: Any = None) -> Any:
    return relax.transform.FusionPattern(name, pattern, annotations or {}, check)


def anything(name: str, op_name: str, args: int = 1, check: Any = None) -> Any:
    """A rule for one operator whatever its arguments; the check finds it as ``root``."""
    root = is_op(op_name)(*[wildcard() for _ in range(args)])
    return rule(name, root, {"root": root}, check)


def conv_relu() -> Any:
    conv = is_op("relax.nn.conv2d")(wildcard(), wildcard())
    return rule("t.conv_relu", is_op("relax.nn.relu")(conv))


def conv_bias_relu() -> Any:
    conv = is_op("relax.nn.conv2d")(wildcard(), wildcard())
    return rule("t.conv_bias_relu", is_op("relax.nn.relu")(is_op("relax.add")(conv, wildcard())))


def table(prefix: str) -> list[Any]:
    from tvm.relax.backend.pattern_registry import get_patterns_with_prefix

    return list(get_patterns_with_prefix(prefix))


def calls(mod: tvm.IRModule, composite: bool = False) -> dict[int, str]:
    """Operator names by tag, of all functions that are (or are not) composite functions."""
    found: dict[int, str] = {}
    for function in mod.functions.values():
        if not isinstance(function, relax.Function):
            continue
        inside = function.attrs is not None and "Composite" in function.attrs
        if inside != composite:
            continue

        def note(expr: Any) -> None:
            if isinstance(expr, relax.Call) and tag_of(expr) >= 0:
                found[tag_of(expr)] = str(getattr(expr.op, "name", "call"))

        relax.analysis.post_order_visit(function, note)
    return found


class Case:
    """One run of the pass on a tagged module, and the reasons for what it left."""

    def __init__(
        self, mod: tvm.IRModule, rules: Sequence[Any], disabled: Sequence[Any] = (), **more: Any
    ) -> None:
        self.module = Tagger().tag(mod)
        self.rules = list(rules)
        wrapped, refusals = record_checks(self.rules)
        self.fused = relax.transform.FuseOpsByPattern(wrapped)(self.module)
        self.left = calls(self.fused)
        self.reasons = explain(
            self.module, self.rules, self.left, refusals=refusals, disabled=disabled, **more
        )
        assert self.reasons.keys() == self.left.keys()
        for reason in self.reasons.values():
            assert reason.text
            assert reason.mend

    def of(self, name: str, nth: int = 0) -> Reason:
        """The reason of the nth operator of that name that was left, in the order of the text."""
        tags = [tag for tag, left in sorted(self.left.items()) if left == name]
        return self.reasons[tags[nth]]

    def codes(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for tag, reason in self.reasons.items():
            found.setdefault(reason.code, []).append(self.left[tag])
        return found


def takes(mod: tvm.IRModule, rules: Sequence[Any], name: str) -> bool:
    """Whether the pass takes every operator of that name."""
    fused = relax.transform.FuseOpsByPattern(list(rules))(Tagger().tag(mod))
    return name not in calls(fused).values() and name in calls(fused, composite=True).values()
