"""`Explorer`: a `Session` as a widget. Its thread does the work; its state lives here alone."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import ipywidgets
import traitlets

from byocviz.errors import ArgumentError, ByocvizError
from byocviz.explorer import words
from byocviz.explorer.keeping import Keeping
from byocviz.explorer.panel import Panel
from byocviz.explorer.session import Session, Stopped
from byocviz.explorer.settings import Settings
from byocviz.explorer.views import WIDGET_VIEW, Views, close_all
from byocviz.explorer.worker import Worker
from byocviz.recording import Recording
from byocviz.recording.printable import printable
from byocviz.recording.schema import STEPS, PrunePolicy

if TYPE_CHECKING:
    from byocviz.building.built import Build

_FIRST = 10.0
"""Seconds that a display waits for what is to be shown; most first steps take one."""


def _running_loop() -> asyncio.AbstractEventLoop | None:
    """That of a notebook's kernel, where one calls."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Explorer(Keeping, ipywidgets.VBox):  # type: ignore[misc]
    """The flow over one module, driven by widgets. Made by `byocviz.explore`.

    Traits to observe, set and link: ``step`` (the name of the step that is looked at; setting one
    that has not run runs it), ``selection`` (``{"op": id}``, ``{"subgraph": index}`` or None),
    ``rules`` and ``prepare`` (names to True or False), ``busy``. Work is done on a thread of its
    own; `wait` waits for it. What cannot be is said in the widget, and by `error`. ``isolated``:
    whether TVM's passes run in a process of their own (see `Session`).
    """

    step = traitlets.Unicode("import")
    selection = traitlets.Dict(allow_none=True, default_value=None)
    rules = traitlets.Dict()
    prepare = traitlets.Dict()
    isolated = traitlets.Bool(False)
    busy = traitlets.Bool(False)
    _closed = False

    def __init__(
        self,
        mod: Any,
        backend: Any = "tensorrt",
        *,
        height: int = 680,
        isolated: bool | None = None,
        **record: Any,
    ):
        self.session = Session(mod, backend, isolated=isolated, tell=self._told, **record)
        self.wanted: Settings = self.session.settings
        """The settings as the controls say; the session has them once its thread is there."""
        self.error: BaseException | None = None
        """What the last job raised."""
        self.built: Build | None = None
        self._furthest = 0
        self._doing = ""
        self._wanted_lock = threading.Lock()
        self._loop = _running_loop()
        self._posted: deque[Callable[[], Any]] = deque()
        self._worker = Worker(self._finished)
        self.session.cancelled = lambda: self._worker.cancelled
        self._following = False
        super().__init__()
        self.views = Views(self, height)
        self._mirror()
        self.panel = Panel(self)
        self.children = [self.panel.top, self.views.viewer, self.panel.below]
        self._following = True
        self.panel.show()
        self.run_to("import")

    # -- what is known

    @property
    def recording(self) -> Recording:
        """The record of the steps that ran; that of `Session`, which is always the truth."""
        return self.session.recording

    @property
    def policy(self) -> PrunePolicy:
        """The prune policy as it is set; one that prunes nothing where pruning is off."""
        given = self.wanted.prune
        if isinstance(given, PrunePolicy):
            return given
        return (self.session._resolved.backend.prune if given else None) or PrunePolicy()

    # -- what is asked for; each returns at once

    def next(self) -> None:
        """Look at the next step."""
        self.step = STEPS[min(self._at() + 1, len(STEPS) - 1)]

    def previous(self) -> None:
        """Look at the step before."""
        self.step = STEPS[max(self._at() - 1, 0)]

    def _at(self) -> int:
        return STEPS.index(self.step) if self.step in STEPS else 0

    def run_to(self, step: str) -> None:
        """Run what is missing up to a step, and look at it."""
        if step not in STEPS:
            raise ArgumentError(f"There is no step {step!r}.", f"Its steps: {', '.join(STEPS)}.")
        self._furthest = max(self._furthest, STEPS.index(step))
        self._submit("run", self._run)
        self.step = step

    def run_all(self) -> None:
        """Run every step; the step that is looked at stays."""
        self._furthest = len(STEPS) - 1
        self._submit("run", self._run)

    def change(self, **changes: Any) -> None:
        """Change settings (fields of `Settings`); what they touch runs again.

        Raises `ArgumentError` and `BackendError` for what there is not; nothing changes then.
        """
        with self._wanted_lock:
            wanted = self.wanted.changed(**changes)
            if wanted == self.wanted:
                return
            wanted.resolve()
            self.wanted = wanted
        self._mirror()
        self._submit("run", self._run)

    def toggle_rule(self, name: str, on: bool) -> None:
        """Switch one rule, by its full name."""
        self.change(rules={**self.wanted.rules, name: on})

    def hold(self, ops: Iterable[int], on: bool = True) -> None:
        """Offload nothing after these operators (by id), or again."""
        ids = frozenset(ops)
        for identity in ids:
            if on and identity not in self.recording.ops:
                raise ArgumentError(
                    f"There is no operator {identity!r}.", "Give ids of the recording's operators."
                )
        self.change(held=self.wanted.held | ids if on else self.wanted.held - ids)

    def hold_chosen(self) -> None:
        """`hold` for the operators that are chosen in the drawing."""
        chosen = self.selection or {}
        step = next((s for s in self.recording.steps if s.name == self.step), None)
        if "op" in chosen:
            self.hold([chosen["op"]])
        elif step and chosen.get("subgraph", -1) in range(len(step.subgraphs)):
            self.hold(step.subgraphs[chosen["subgraph"]].op_ids)
        else:
            raise ArgumentError("No operator is chosen.", "Click a node of the drawing first.")

    def held_by_view(self, ids: list[int], on: bool) -> None:
        """`hold`, from a node's menu: what cannot be is said."""
        self.panel.act(lambda: self.hold(ids, on=on))
        self._post(self.panel.show)

    def try_rule(self, source: str, *, time_limit: float = 20.0) -> None:
        """Match a rule's text by itself and mark what it matches; see `Session.try_rule`."""

        def work() -> None:
            trial = self.session.try_rule(source, time_limit=time_limit)
            self.panel.rule_said.value = words.tried(trial)
            if not trial.error:
                self.views.tell(
                    {"type": "matches", "title": "what the rule matches", "ops": trial.operators}
                )

        self.panel.rule_said.value = "trying ..."
        self._submit("try", work)

    def add_rule(self, name: str, source: str) -> None:
        """Try a rule, add it before the others and run again from composite."""

        def work() -> None:
            try:
                self.session.add_rule(name, source)
            except ByocvizError as error:
                self.panel.rule_said.value = words.failure(error)
                raise
            with self._wanted_lock:
                self.wanted = self.wanted.changed(added=self.session.settings.added)
            self.panel.rule_said.value = words.good("Added.")
            self._run()

        self.panel.rule_said.value = "trying ..."
        self._submit("add", work)

    def build(
        self,
        runtime: str = "auto",
        *,
        fp16: bool = False,
        photo: Any = None,
        repeat: int = 10,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """Run all steps, build, check against TVM alone, time, and look at a picture: the name of
        a bundled one, a path, an image or its bytes; None for none. Results go into the recording.
        """
        from byocviz.explorer.building import build_and_run, picture_of

        self._furthest = len(STEPS) - 1
        self._submit(
            "build",
            lambda: build_and_run(
                self,
                runtime,
                {**(options or {}), **({"fp16": True} if fp16 else {})},
                picture_of(photo),
                repeat,
            ),
        )

    def cancel(self) -> None:
        """Drop what waits, and end what is under way as soon as it can; earlier steps stay."""
        now = self._worker.now
        self._worker.cancel()
        with self._wanted_lock:
            self.wanted = self.session.settings
        if now:
            self.panel.say(words.cancelling(self._ends_first(now), self._doing))

    def _ends_first(self, job: str) -> str:
        """What has to end before that job can: a step's passes in this process, or nothing."""
        if job == "build":
            return "build"
        apart = self.session.isolated and not self.session.why_here
        return "" if apart or job in ("try", "add", "isolate") else "run"

    def close(self) -> None:
        """End what is under way and the processes that were started, and take the widget away."""
        worker = getattr(self, "_worker", None)  # none where it could not be made
        if worker is None or self._closed:
            return
        self._closed = True
        worker.end("close", self.session.close)
        super().close()
        close_all(self.children)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until all that was asked for is done; False after ``timeout`` seconds."""
        done = self._worker.wait(timeout)
        if self._loop is not None and self._loop is _running_loop():
            self._deliver()  # what waits for the kernel's loop would else come after the cell
        return done

    # -- the work, on its thread

    def _submit(self, name: str, work: Callable[[], Any]) -> None:
        self._show_busy(True, name)
        self._worker.submit(name, work)

    def _run(self) -> None:
        """Take the newest settings, run what is looked at, show it, and run the rest."""
        self.adopt()
        here = self.step if self.step in STEPS else STEPS[0]
        target = STEPS[max(self._furthest, STEPS.index(here))]
        missing = target not in self.session.done
        self.session.run_to(here)
        self.views.publish()
        if missing and target != here:
            self.session.run_to(target)
            self.views.publish()

    def adopt(self) -> None:
        """Give the session the newest settings. Only for the thread that works."""
        with self._wanted_lock:
            wanted, now = self.wanted, self.session.settings
        changes = {
            name: getattr(wanted, name)
            for name in ("backend", "rules", "prepare", "prune", "lowerable", "held", "added")
            if getattr(wanted, name) != getattr(now, name)
        }
        if changes:
            self.session.change(**changes)
            with self._wanted_lock:
                if self.wanted == wanted:
                    self.wanted = self.session.settings

    def _told(self, text: str, done: int, total: int) -> None:
        if self._worker.cancelled:
            raise Stopped("Cancelled.", "What ran before stays; run it again to go on.")
        self._doing = text
        self.say_progress(f"{text} ({done + 1} of {total})")

    def say_progress(self, text: str) -> None:
        """Show what goes on now; raises `Stopped` where it was cancelled."""
        self.panel.say(f"<i>{words.text(text)} ...</i>")

    def _finished(self, name: str, error: BaseException | None) -> None:
        self.error = error
        if isinstance(error, Stopped):
            self.session.undo()
        elif not self._worker.waiting:
            self.session.keep()
        if error is not None:
            # What could not be taken is not wanted any more.
            with self._wanted_lock:
                self.wanted = self.session.settings
            self.views.publish()
            self.panel.say(words.failure(error))
        else:
            self._say_cost()
        if name == "build":
            self.panel.build_failed = words.failure(error) if error is not None else ""
        self._post(self._settle)

    def _settle(self) -> None:
        self._mirror()
        self.panel.show()
        self._show_busy(self._worker.waiting)
        self.views.refresh_still()

    def _say_cost(self) -> None:
        step = next((s for s in self.recording.steps if s.name == self.step), None)
        if step is not None:
            self.panel.say(words.cost(step))

    def _show_busy(self, on: bool, name: str = "") -> None:
        self.busy = on
        self.panel.cancel.disabled = not on
        if on and name:
            self.panel.say(f"<i>{words.text(name)} ...</i>")

    def _post(self, call: Callable[[], Any]) -> None:
        """Call on the kernel's own thread, where there is one that listens."""
        if self._loop is not None and self._loop.is_running():
            self._posted.append(call)
            self._loop.call_soon_threadsafe(self._deliver)
        else:
            call()

    def _deliver(self) -> None:
        while self._posted:
            self._posted.popleft()()

    # -- traits

    def _mirror(self) -> None:
        """Bring the traits to what is wanted."""
        with self.quietly():
            self.isolated = self.session.isolated
            self.rules = dict(self.wanted.rules)
            self.prepare = self.session.dialect.switched(self.wanted, self.session.given.params)

    @contextlib.contextmanager
    def quietly(self) -> Iterator[None]:
        """Within it, traits change without anything being asked for."""
        was, self._following = self._following, False
        try:
            yield
        finally:
            self._following = was

    @traitlets.observe("step")
    def _step_changed(self, change: Any) -> None:
        if not self._following:
            return
        if change["new"] not in STEPS:
            self.step = change["old"]
            raise ArgumentError(
                f"There is no step {change['new']!r}.", f"Its steps: {', '.join(STEPS)}."
            )
        self.views.tell({"type": "show", "show": self.views.shown()})
        self.moved()

    def moved(self) -> None:
        """Another step is looked at: run it where it did not run."""
        self._furthest = max(self._furthest, self._at())
        self.panel.show_step()
        if self.step not in self.session.done and self.recording.failed is None:
            self._submit("run", self._run)
        elif not self.busy:
            self._say_cost()
            self.views.refresh_still()

    @traitlets.observe("selection")
    def _selection_changed(self, change: Any) -> None:
        if self._following:
            self.views.tell({"type": "show", "show": {"select": change["new"]}})

    @traitlets.observe("rules", "prepare")
    def _switched(self, change: Any) -> None:
        if self._following:
            self.change(**{change["name"]: dict(change["new"])})

    @traitlets.observe("isolated")
    def _isolated_changed(self, change: Any) -> None:
        if self._following:
            on = bool(change["new"])
            self._submit("isolate", lambda: self.session.isolate(on))

    # -- display

    def still(self) -> str:
        """The last state as HTML without scripts, for front ends without widgets."""
        return self.views.still()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        return {
            WIDGET_VIEW: {"version_major": 2, "version_minor": 0, "model_id": self.model_id},
            "text/html": self.still(),
            "text/plain": repr(self),
        }

    def _ipython_display_(self, **kwargs: Any) -> None:
        # A notebook that is executed and not looked at keeps what stands there at this moment.
        self.wait(_FIRST)
        self.views.display(self._repr_mimebundle_())

    def __repr__(self) -> str:
        return (
            f"<Explorer {printable(self.session.title, limit=80)!r}, "
            f"backend={self.recording.backend.name!r}, steps={self.session.done}>"
        )
