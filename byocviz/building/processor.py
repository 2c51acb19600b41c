"""The processor that a target names, against those that this TVM's LLVM knows."""

from __future__ import annotations

import difflib
from typing import Any

from byocviz.building.errors import BuildError
from byocviz.recording.printable import printable


def must_be_known(target: Any) -> None:
    """Refuse a target of the CPU whose ``mcpu`` LLVM does not know: TVM builds it for a generic
    processor, and says so on stderr only.

    A target for another kind of machine is left to LLVM, and so is all where this TVM tells no
    names. Raises `BuildError`.
    """
    import tvm

    named = str(target.attrs.get("mcpu", "") or "") if target.kind.name == "llvm" else ""
    listed, here, triple = (
        tvm.get_global_func(f"target.llvm_get_{what}", allow_missing=True)
        for what in ("cpu_archlist", "system_cpu", "system_triple")
    )
    if not named or listed is None or here is None or triple is None:
        return
    meant = str(target.attrs.get("mtriple", "") or "").partition("-")[0]
    if meant and meant != str(triple()).partition("-")[0]:
        return
    # Asked of this machine's own: of a triple that LLVM does not know, TVM's list crashes.
    known = [str(name) for name in listed(tvm.target.Target("llvm"))]
    if not known or named in known:
        return
    near = difflib.get_close_matches(named, known, n=3)
    raise BuildError(
        f"LLVM knows no processor {printable(named, limit=80)!r}.",
        (f"Did you mean {' or '.join(map(repr, near))}? " if near else "")
        + f"This machine's is {str(here())!r}; without mcpu TVM takes a generic one.",
    )
