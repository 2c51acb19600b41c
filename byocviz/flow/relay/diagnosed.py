"""What TVM's type inference finds wrong, which it prints and does not raise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tvm

from byocviz.flow.relay.compat import plain

_RENDERER = "diagnostics.OverrideRenderer"
_MOST = 20


@contextmanager
def diagnosed() -> Iterator[list[str]]:
    """Within: it goes to the list, one text a finding, in place of stderr."""
    said: list[str] = []

    def render(context: Any) -> None:
        for found in context.diagnostics:
            text = " ".join(plain(found.message).split())
            if text and text not in said and len(said) < _MOST:
                said.append(text[:500])

    before = tvm.get_global_func(_RENDERER, allow_missing=True)
    tvm.ir.diagnostics.override_renderer(render)
    try:
        yield said
    finally:
        tvm.ir.diagnostics.override_renderer(None)
        if before is not None:
            tvm.register_func(_RENDERER, before, override=True)
