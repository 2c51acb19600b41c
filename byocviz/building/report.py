"""What a build says of itself, for the recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

from byocviz.building.machine import machine, now
from byocviz.building.runnable import BuiltModule
from byocviz.recording.results import BuildInfo, EngineInfo
from byocviz.recording.schema import Step

if TYPE_CHECKING:
    from byocviz.building.built import Plan


def report(step: Step, runnable: BuiltModule, plan: Plan) -> tuple[BuildInfo, dict[str, str]]:
    """The facts, and the texts that they name by key: ONNX, and layers where they can be read."""
    ids = {s.function: s.op_ids for s in reversed(step.subgraphs)}
    engines, texts = [], {}
    for symbol, built in runnable.built.items():
        code, layers = f"onnx:{symbol}", f"layers:{symbol}"
        texts[code] = runnable.lowered[symbol].text()
        text = built.engine.layers()
        if text:
            texts[layers] = text
        engines.append(
            EngineInfo(
                symbol,
                list(ids.get(symbol, ())),
                built.seconds,
                built.cached,
                built.bytes,
                built.engine.describe(),
                code,
                layers if text else "",
            )
        )
    choice = plan.choice
    cannot = choice.runtime.supports() if choice and engines else None
    info = BuildInfo(
        runtime=choice.runtime.name if choice else "native",
        title=plan.title,
        stands_in_for=choice.stands_in_for if choice else "",
        why=choice.why if choice else "",
        codegen=plan.codegen,
        target=str(runnable.target),
        step=step.name,
        cannot_run=cannot or "",
        engines=engines,
        lower_seconds=runnable.lower_seconds,
        tvm_seconds=runnable.tvm_seconds,
        tree=runnable.tree({e.function: plan.title for e in engines}),
        made=now(),
        machine=machine(),
    )
    return info, texts
