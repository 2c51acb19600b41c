"""The engines of all subgraphs, built so that a native library that fails takes nothing with it."""

from __future__ import annotations

import json
import numbers
import platform
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byocviz.building import reports
from byocviz.building.cache import EngineCache
from byocviz.building.errors import BuildError, RuntimeMissing
from byocviz.building.isolate import Cancel, Child, Lost
from byocviz.building.runtimes.base import Engine, Notes, Runtime, usable
from byocviz.building.runtimes.options import chosen, shown
from byocviz.errors import ArgumentError, ByocvizError
from byocviz.recording.printable import printable
from byocviz.version import __version__

if TYPE_CHECKING:
    from byocviz.building.lower.lowered import Lowered

TIME_LIMIT = 600.0
"""Seconds that one engine may take."""

Progress = Callable[[str, int, int], None]
"""What is built now, how many are done, how many there are."""


@dataclass(frozen=True)
class BuiltEngine:
    """``seconds`` is what the runtime took to build it; where it was ``cached``, to load it.

    ``bytes`` is of the serialised engine; None where the runtime has no such thing.
    """

    engine: Engine
    seconds: float
    cached: bool
    bytes: int | None


def build_engines(
    lowered: Mapping[str, Lowered],
    runtime: Runtime,
    options: Mapping[str, Any] | None = None,
    *,
    time_limit: float | None = TIME_LIMIT,
    memory_limit: int | None = None,
    isolate: bool = True,
    cache: EngineCache | None = None,
    cancel: Cancel | None = None,
    tell: Progress | None = None,
) -> dict[str, BuiltEngine]:
    """Engines by symbol, in the order of ``lowered``.

    With ``isolate`` the runtime's native library builds in a process of its own, one for all, in
    which each engine may take ``time_limit`` seconds (None: for ever) and ``memory_limit`` bytes
    (resident, on Linux; None: what there is). Where a runtime's engines are not bytes, that is a
    rehearsal, after which the engine is made here. Without ``isolate`` all is done here, without
    limits. ``cache`` is where engines are looked for first and kept. ``cancel`` stops the build
    from another thread: in isolation at once, else before the next engine.

    Raises `RuntimeMissing` where the runtime cannot be used, `BuildError` where it refuses a
    subgraph or its library crashes, hangs or takes too much memory (its ONNX is then saved:
    ``onnx_path``), `BuildCancelled`, and `ArgumentError` for an option or a limit that cannot be.
    Nothing half-built is left.
    """
    must_be_sound(time_limit, memory_limit, isolate, cache, cancel)
    usable(runtime)
    wanted = chosen(runtime, options)
    for subgraph in lowered.values():
        runtime.refuse(subgraph)
    request = cancel or Cancel()
    if not isolate:
        maker: _Here | _Apart = _Here(runtime, wanted)
    else:
        maker = _Apart(runtime, wanted, request, time_limit, memory_limit)
    kept = _Kept(cache, runtime, wanted)
    built: dict[str, BuiltEngine] = {}
    total = len(lowered)
    with maker:
        for number, (symbol, subgraph) in enumerate(lowered.items()):
            request.check()
            if tell is not None:
                made_of = operators(subgraph)
                text = f"engine {number + 1} of {total}: {printable(symbol, limit=60)}"
                tell(f"{text}: {made_of}" if made_of else text, number, total)
            built[symbol] = _one(subgraph, runtime, wanted, maker, kept)
        request.check()
    if tell is not None:
        tell(f"{total} engine{'s' if total != 1 else ''} built", total, total)
    return built


def must_be_sound(
    time_limit: Any, memory_limit: Any, isolate: Any, cache: Any, cancel: Any
) -> None:
    """Refuse arguments of `build_engines` that cannot be, before anything is done for them."""
    for name, limit in (("time_limit", time_limit), ("memory_limit", memory_limit)):
        number = isinstance(limit, numbers.Real) and not isinstance(limit, bool)
        if limit is not None and not (number and limit > 0):  # nan is not above 0 either
            raise ArgumentError(
                f"{name} is {shown(limit)}.",
                "Give a number above 0, or None for no limit.",
            )
    if not isinstance(isolate, bool):
        raise ArgumentError(f"isolate is {shown(isolate)}.", "Give True or False.")
    if cache is not None and not isinstance(cache, EngineCache):
        raise ArgumentError(
            f"cache is {shown(cache)}.",
            "Give True or False, the path of a folder, or a byocviz.building.cache.EngineCache.",
        )
    if cancel is not None and not isinstance(cancel, Cancel):
        raise ArgumentError(f"cancel is {shown(cancel)}.", "Give a byocviz.building.errors.Cancel.")


def _one(
    subgraph: Lowered, runtime: Runtime, options: Mapping[str, Any], maker: Any, kept: _Kept
) -> BuiltEngine:
    model = subgraph.serialized()
    began = time.perf_counter()
    plan = kept.find(model)
    if plan is not None:
        engine = runtime.load(subgraph, plan, options)
        return BuiltEngine(engine, time.perf_counter() - began, True, len(plan))
    notes = Notes(kept.timing())
    before = notes.timing
    plan, seconds = maker.plan(subgraph, model, notes)
    began = time.perf_counter()
    missing = runtime.serializes and plan is None
    made = None if missing else runtime.load(subgraph, plan, options)
    if made is None:
        raise BuildError(
            f"{runtime.title} gave no engine of the subgraph {subgraph.name}.",
            "Take another runtime.",
            subgraph=subgraph.name,
        )
    if plan is None:
        return BuiltEngine(made, time.perf_counter() - began, False, None)
    kept.keep(model, plan)
    if notes.timing != before:
        kept.keep_timing(notes.timing)
    return BuiltEngine(made, seconds, False, len(plan))


def operators(subgraph: Lowered, most: int = 6) -> str:
    """The subgraph's operators by name, the most frequent first: ``conv2d x 88, add x 70``."""
    # One call is one or several nodes: "conv2d_3", "conv2d_3.1", ...
    calls = {
        node.partition(".")[0]: name.removeprefix("relax.").rpartition(".")[2]
        for node, name in subgraph.calls.items()
        if name
    }
    found = Counter(calls.values()).most_common()
    text = ", ".join(f"{name} x {count}" for name, count in found[:most])
    return printable(text) + (f" and {len(found) - most} more kinds" if len(found) > most else "")


class _Kept:
    """The cache as one build uses it; without a cache, nothing."""

    def __init__(
        self, cache: EngineCache | None, runtime: Runtime, options: Mapping[str, Any]
    ) -> None:
        self.cache = cache if runtime.serializes else None
        if self.cache is not None:
            depends = runtime.fingerprint(options)
            self._parts = (runtime.name, options, depends)
            self._timing = self.cache.timing_key(runtime.name, depends)
        self._times: bytes | None = None

    def _key(self, model: bytes) -> str:
        assert self.cache is not None
        name, options, depends = self._parts
        return self.cache.key(name, model, options, depends)

    def find(self, model: bytes) -> bytes | None:
        return self.cache.get(self._key(model)) if self.cache is not None else None

    def keep(self, model: bytes, plan: bytes) -> None:
        if self.cache is not None:
            self.cache.put(self._key(model), plan)

    def timing(self) -> bytes:
        """The kernels' times of earlier builds, and of this one so far."""
        if self._times is None:
            found = self.cache.get(self._timing) if self.cache is not None else None
            self._times = found or b""
        return self._times

    def keep_timing(self, times: bytes) -> None:
        self._times = times
        if self.cache is not None:
            self.cache.put(self._timing, times)


class _Here:
    """Builds in this process."""

    def __init__(self, runtime: Runtime, options: Mapping[str, Any]) -> None:
        self._runtime, self._options = runtime, options

    def __enter__(self) -> _Here:
        return self

    def __exit__(self, *error: Any) -> None:
        return None

    def plan(self, subgraph: Lowered, model: bytes, notes: Notes) -> tuple[bytes | None, float]:
        if not self._runtime.serializes:
            return None, 0.0  # made once: there is nothing to rehearse
        began = time.perf_counter()
        try:
            plan = self._runtime.plan(subgraph, self._options, notes)
        except ByocvizError:
            raise
        except Exception as error:
            what = f"failed ({type(error).__name__}: {str(error)[:500]})"
            raise _broken(self._runtime, self._options, subgraph, model, what) from error
        return plan, time.perf_counter() - began


class _Apart:
    """Builds in a child process."""

    def __init__(
        self,
        runtime: Runtime,
        options: Mapping[str, Any],
        cancel: Cancel,
        time_limit: float | None,
        memory_limit: int | None,
    ) -> None:
        kind = type(runtime)
        if kind.__module__ == "__main__" or "." in kind.__qualname__:
            raise BuildError(
                f"The runtime {runtime.name!r} is of the class {kind.__qualname__} in "
                f"{kind.__module__}, which another process cannot import.",
                "Put the class into a module, at its top level, or build with isolate=False.",
            )
        self._runtime, self._options = runtime, options
        self._child = Child(cancel)
        self._limits = time_limit, memory_limit
        self._home = [kind.__module__, kind.__qualname__]
        self._number = 0

    def __enter__(self) -> _Apart:
        return self

    def __exit__(self, *error: Any) -> None:
        self._child.close()

    def plan(self, subgraph: Lowered, model: bytes, notes: Notes) -> tuple[bytes | None, float]:
        self._number += 1
        base = self._hand_over(subgraph, model, notes)
        try:
            answer = self._child.ask({"number": self._number}, *self._limits)
        except Lost as lost:
            raise self._broken(subgraph, model, str(lost), lost.mend, lost.printed) from None
        self._refused(subgraph, model, answer)
        if answer.get("timing"):
            notes.timing = base.with_suffix(".times").read_bytes()
        plan = base.with_suffix(".plan").read_bytes() if answer.get("plan") else None
        for path in base.parent.glob(f"{base.name}.*"):
            path.unlink()
        return plan, float(answer.get("seconds", 0.0))

    def _hand_over(self, subgraph: Lowered, model: bytes, notes: Notes) -> Path:
        try:
            job = json.dumps(
                {
                    "runtime": self._home,
                    "options": dict(self._options),
                    "name": subgraph.name,
                    "nodes": {k: list(v) for k, v in subgraph.nodes.items()},
                    "calls": subgraph.calls,
                }
            )
        except TypeError as error:
            raise RuntimeMissing(
                f"An option of {self._runtime.title} is no text, number or list: {error}.",
                "Options go to another process; give plain values, or build with isolate=False.",
            ) from error
        try:
            base = self._child.folder / str(self._number)
            base.with_suffix(".json").write_text(job, encoding="utf-8")
            base.with_suffix(".onnx").write_bytes(model)
            if notes.timing:
                base.with_suffix(".timing").write_bytes(notes.timing)
        except OSError as error:
            raise BuildError(
                f"The subgraph {subgraph.name} cannot be written for the process that builds "
                f"engines: {error.strerror or error}.",
                "Make room in the folder for temporary files (TMPDIR), or build with "
                "isolate=False.",
                subgraph=subgraph.name,
            ) from error
        return base

    def _refused(self, subgraph: Lowered, model: bytes, answer: Mapping[str, Any]) -> None:
        """Raises what the child could not do, as it would have been raised here."""
        kind = answer.get("error")
        if kind is None:
            return
        message, mend = str(answer.get("message", "")), str(answer.get("mend", ""))
        if kind == "MemoryError":
            raise self._broken(subgraph, model, "ran out of memory", "Free memory.", "")
        if kind == "Exception":
            raise self._broken(subgraph, model, f"failed ({message})", "", "")
        if kind == "RuntimeMissing":
            raise RuntimeMissing(message, mend)
        raise BuildError(message, mend, subgraph=subgraph.name)

    def _broken(
        self, subgraph: Lowered, model: bytes, what: str, mend: str, printed: str
    ) -> BuildError:
        return _broken(self._runtime, self._options, subgraph, model, what, mend, printed)


def _broken(
    runtime: Runtime,
    options: Mapping[str, Any],
    subgraph: Lowered,
    model: bytes,
    what: str,
    mend: str = "",
    printed: str = "",
) -> BuildError:
    """The error for a library that did not answer, with what a bug report needs."""
    message = (
        f"{runtime.title} {what} while it built the subgraph "
        f"{printable(subgraph.name, limit=120)} "
        f"({operators(subgraph) or 'no operators'})."
    )
    try:
        depends = runtime.fingerprint(options)
    except Exception:
        depends = {}
    facts = [
        message,
        f"byocviz {__version__}, Python {platform.python_version()}, {platform.platform()}",
        *(f"{name}: {value}" for name, value in {**depends, **options}.items()),
        "What it printed last:",
        printed or "nothing",
    ]
    path = reports.save(subgraph.name, model, "\n".join(facts) + "\n")
    saved = f"Its ONNX is saved for a bug report: {path}." if path is not None else ""
    rest = mend or "Send it to the library's makers, or take another runtime."
    return BuildError(message, f"{saved} {rest}".strip(), subgraph=subgraph.name, onnx_path=path)
