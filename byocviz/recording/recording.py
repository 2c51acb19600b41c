"""`Recording`: the record with the questions that people ask of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from byocviz.errors import StepMissing
from byocviz.recording.printable import printable
from byocviz.recording.schema import Blocker, Operator, RecordingData, Separation, Step

if TYPE_CHECKING:
    from byocviz.recording.compare import Comparison
    from byocviz.recording.tables import Tables


class Blockers(list[Blocker]):
    """A list of `Blocker`, the largest gain first, that prints as a table."""

    def __rich__(self) -> Any:
        from byocviz.render.sections import blocker_table

        return blocker_table(self)

    def __str__(self) -> str:
        from byocviz.render.text import to_text

        return to_text(self.__rich__()).rstrip("\n")

    def __repr__(self) -> str:
        if not self:
            return "<Blockers: none>"
        first = self[0]
        what = (
            "not partitioned"
            if first.error
            else f"{first.subgraphs_now:,} -> {first.subgraphs:,} subgraphs"
        )
        return f"<Blockers: {len(self)}, first {printable(first.op, limit=60)}: {what}>"


class Recording(RecordingData, omit_defaults=True, dict=True):
    """What one walk of the BYOC flow did to one module.

    Its fields are those of `RecordingData` and are all that a file holds. ``dict=True`` lets an
    instance carry, beside them, the recorder's live hook, which is never written and takes no
    part in ``==``.
    """

    @property
    def _live(self) -> Callable[[], list[Blocker]] | None:
        """Works out the blockers by partitioning again; set by the recorder, absent after load."""
        return self.__dict__.get("live")

    @_live.setter
    def _live(self, hook: Callable[[], list[Blocker]] | None) -> None:
        self.__dict__["live"] = hook

    @property
    def failed(self) -> Step | None:
        """The step that raised, where the recording stops early."""
        return next((step for step in self.steps if step.error is not None), None)

    @property
    def last(self) -> Step:
        """The last step that succeeded. Raises `StepMissing` where there is none."""
        for step in reversed(self.steps):
            if step.error is None:
                return step
        raise StepMissing(
            f"Recording {self.title!r} holds no step that succeeded.{self._why_short()}",
            "Record the module again.",
        )

    def step(self, name: str) -> Step:
        """The step of that name, a failed one included (see `Step.error`).

        Raises `StepMissing`, which lists the names there are and the step that failed.
        """
        for step in self.steps:
            if step.name == name:
                return step
        names = ", ".join(step.name for step in self.steps) or "none"
        failed = self.failed
        raise StepMissing(
            f"No step {name!r} in recording {self.title!r}; its steps: {names}.{self._why_short()}",
            (failed.error.mend if failed and failed.error else "")
            or "Ask for one of the steps it has.",
        )

    def module(self, name: str) -> Any:
        """TVM's module at the step of that name, where it was recorded in this process.

        Raises `StepMissing` for a step that is not there or failed, and for a recording that was
        loaded: a file holds no modules.
        """
        step = self.step(name)
        modules = self.__dict__.get("modules")
        if modules is None:
            raise StepMissing(
                f"Recording {self.title!r} was loaded, and a file holds no modules.",
                "Record the module again: byocviz.record(mod).",
            )
        if step.error is not None or name not in modules:
            raise StepMissing(
                f"The step {name!r} has no module.{self._why_short()}",
                (step.error.mend if step.error else "") or "Ask for a step that succeeded.",
            )
        return modules[name]

    def _why_short(self) -> str:
        failed = self.failed
        if failed is None or failed.error is None:
            return ""
        message = failed.error.message.strip()
        first = printable(message.splitlines()[0], limit=300) if message else ""
        kind = printable(failed.error.type)
        return f" It stops at {failed.name!r}, which failed: {kind}: {first}"

    def operators(self, imported_only: bool = True) -> list[Operator]:
        """The operators, in order of id: those of the imported module, or with
        ``imported_only=False`` those that the prepare step made as well. Calls of functions
        have an id too and are not among them."""
        return [
            op
            for _, op in sorted(self.ops.items())
            if op.kind == "operator" and not (imported_only and op.created_by)
        ]

    def operator(self, op_id: int) -> Operator:
        """The operator (or call) of that id. Raises `StepMissing` where there is none."""
        try:
            return self.ops[op_id]
        except KeyError:
            raise StepMissing(
                f"No operator {op_id!r} in recording {self.title!r}.",
                f"It holds {len(self.ops)} ids; `recording.operators()` lists them.",
            ) from None

    def successors_of(self, op_id: int) -> list[int]:
        """Ids that stand for an operator after the prepare step, in order of first mention.

        ``replaced_by`` is followed to its end. An operator that was not rewritten stands for
        itself; one that was folded or is dead has none. Raises `StepMissing` for an unknown id.
        """
        self.operator(op_id)
        seen: set[int] = set()
        stand: list[int] = []
        todo = [op_id]
        while todo:
            current = todo.pop()
            op = self.ops.get(current)
            if current in seen or op is None:
                continue
            seen.add(current)
            if op.replaced_by:
                todo.extend(reversed(op.replaced_by))
            elif not op.fate:
                stand.append(current)
        return stand

    @property
    def why_apart(self) -> list[Separation]:
        """What keeps the subgraphs of the last step from being one."""
        return self.last.separations if self.steps else []

    def compare(self, a: str | Step, b: str | Step) -> Comparison:
        """What changed from step ``a`` to step ``b``; see `byocviz.recording.compare.compare`."""
        from byocviz.recording.compare import compare

        return compare(self, a, b)

    @property
    def tables(self) -> Tables:
        """Its steps, operators, subgraphs, reasons, rewrites, separations and blockers as rows,
        or as pandas frames: ``recording.tables.frame("steps")``; see `Tables`."""
        from byocviz.recording.tables import Tables

        return Tables(self)

    def blockers(self) -> Blockers:
        """For each kind of operator left on TVM, what a rule that took it would change: a list
        of `Blocker`, the largest gain first, that prints as a table.

        Found by partitioning again, so it needs TVM the first time; the result is kept in
        ``what_if`` and saved. Raises `StepMissing` on a loaded recording that was saved without,
        and where a step failed, so that there is nothing to partition again.
        """
        failed = self.failed
        if failed is not None:
            raise StepMissing(
                f"Recording {self.title!r} has no blockers.{self._why_short()}",
                (failed.error.mend if failed.error else "")
                or "Its steps before that one are whole: see `recording.steps`.",
            )
        if self.what_if is None:
            live = self._live
            if live is None:
                raise StepMissing(
                    f"Recording {self.title!r} was saved before its blockers were worked out, "
                    "and that takes the module itself.",
                    "Record the module again and call `recording.blockers()` before `save()`.",
                )
            self.what_if = list(live())
        return Blockers(self.what_if)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the recording to one compressed file and returns its path.

        ``.byocviz`` is added to a name without a suffix. The file appears whole or not at all.
        Raises `RecordingError` where it cannot be written or would not load again.
        """
        from byocviz.recording.file import save

        return save(self, path)

    def summary(self, width: int | None = None) -> str:
        """The whole story as plain text, ``width`` columns wide (the terminal's by default)."""
        from byocviz.render.text import summary, to_text

        return to_text(summary(self), width=width)

    def to_html(self, path: str | os.PathLike[str], *, step: str | None = None) -> Path:
        """Writes the view as one HTML file that opens anywhere, offline, and returns its path.

        It opens at ``step``, a name. ``.html`` is added to a name without a suffix. The file
        appears whole or not at all. Raises
        `MissingPackage` where the viewer's bundle was not built, `StepMissing` for an unknown
        step, `RecordingError` where the file cannot be written.
        """
        from byocviz.recording.atomic import named, write
        from byocviz.render.html import to_html

        target = named(path, ".html")
        return write(target, to_html(self, step=step).encode("utf-8"))

    def to_dot(self, step: str | Step, function: str | None = None, **look: Any) -> str:
        """A step as DOT, Graphviz's text; see `byocviz.render.dot.to_dot`, as for ``look``:
        ``theme``, ``direction`` and ``legend``."""
        from byocviz.render.dot import to_dot

        return to_dot(self, step, function, **look)

    @overload
    def to_svg(
        self, step: str | Step, function: str | None = None, *, path: None = None, **look: Any
    ) -> str: ...

    @overload
    def to_svg(
        self,
        step: str | Step,
        function: str | None = None,
        *,
        path: str | os.PathLike[str],
        **look: Any,
    ) -> Path: ...

    def to_svg(
        self,
        step: str | Step,
        function: str | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        **look: Any,
    ) -> str | Path:
        """A step as SVG, by Graphviz: its text, or the ``path`` that it was written to; see
        `byocviz.render.dot.to_svg`."""
        from byocviz.render.dot import to_svg

        drawn: str | Path = to_svg(self, step, function, path=path, **look)
        return drawn

    @overload
    def to_png(
        self, step: str | Step, function: str | None = None, *, path: None = None, **look: Any
    ) -> bytes: ...

    @overload
    def to_png(
        self,
        step: str | Step,
        function: str | None = None,
        *,
        path: str | os.PathLike[str],
        **look: Any,
    ) -> Path: ...

    def to_png(
        self,
        step: str | Step,
        function: str | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        **look: Any,
    ) -> bytes | Path:
        """A step as PNG, by Graphviz: its bytes, or the ``path`` that it was written to; see
        `byocviz.render.dot.to_png`, as for ``dpi``."""
        from byocviz.render.dot import to_png

        drawn: bytes | Path = to_png(self, step, function, path=path, **look)
        return drawn

    def __rich__(self) -> Any:
        from byocviz.render.text import summary

        return summary(self)

    def __repr__(self) -> str:
        failed = self.failed
        parts = [
            f"{self.title!r}",
            f"ir={self.ir!r}",
            f"backend={self.backend.name!r}",
            f"operators={len(self.operators())}",
            f"steps={len(self.steps)}",
        ]
        if any(step.error is None for step in self.steps):
            parts.append(f"subgraphs={len(self.last.subgraphs)}")
        if failed is not None:
            parts.append(f"failed={failed.name!r}")
        return f"<Recording {', '.join(parts)}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        # msgspec's own lists every field, all IR text among them.
        return [("title", self.title), ("steps", [step.name for step in self.steps])]
