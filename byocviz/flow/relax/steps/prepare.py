"""Rewrites that let the rules see what the model says."""

from __future__ import annotations

import time

from byocviz.errors import ByocvizError
from byocviz.flow.relax.prepare import REWRITES, PrepareContext
from byocviz.flow.relax.steps.state import Outcome, State
from byocviz.recording.schema import Rewrite

NAME = "prepare"


def run(state: State) -> Outcome:
    rewrites = []
    calls = []
    for spec in REWRITES:
        on = state.rewrites.get(spec.name, state.prepare)
        if spec.name == "bind-parameters" and state.params is not None:
            on = True  # who gives parameters wants them bound
        rewrite = Rewrite(
            spec.name,
            spec.text,
            call=spec.call_for(state.entry),
            origin=spec.origin,
            assumes=spec.assumes,
            enabled=on,
        )
        rewrites.append(rewrite)
        if not on:
            continue
        state.before_rewrite(spec.name)
        context = PrepareContext(params=state.params, entry=state.entry)
        start = time.perf_counter()
        try:
            with state.in_tvm():
                module = spec.run(state.module, context)
        except ByocvizError:
            raise
        except Exception as error:
            # One rewrite that fails must not cost the recording: the module stays as it was.
            rewrite.left = {f"failed: {type(error).__name__}: {str(error)[-300:]}": 1}
            continue
        rewrite.seconds = time.perf_counter() - start
        rewrite.count = context.count
        rewrite.left = dict(context.left)
        state.module = state.after_rewrite(module, rewrite)
        if module is not state.module or rewrite.count:
            calls.append(rewrite.call)
    if not any(rewrite.enabled for rewrite in rewrites):
        return Outcome(
            state.module,
            "# switched off",
            "byocviz",
            "Switched off: the module goes on as it came.",
            rewrites=rewrites,
        )
    return Outcome(
        state.module,
        "\n".join(calls) or "# found nothing to rewrite",
        origin="byocviz",
        note="byocviz's own selection of rewrites; each says whether TVM or byocviz makes it.",
        rewrites=rewrites,
    )
