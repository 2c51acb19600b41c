"""One step after the other, each written down with what it took, or with its error.

Knows no TVM; each dialect's walk builds on it.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

from byocviz.errors import ByocvizError, ModuleError
from byocviz.flow.ledger import Ledger
from byocviz.recording import Recording
from byocviz.recording.schema import STEPS, Step, StepError

Tell = Callable[[str, int, int], None]
"""Progress: what is done now, and how many of how many are done."""


class Stepping(Ledger):
    """The part of a walk that goes from step to step.

    A walk sets ``tell`` and ``state``, whose ``tvm_seconds`` its steps count up, and says what a
    step does (``_step``) and how its error is written down (``_failed``).
    """

    tell: Tell
    state: Any

    def _step(self, name: str, step: Step) -> None:
        raise NotImplementedError

    def _failed(self, error: Exception) -> StepError:
        raise NotImplementedError

    def run(self) -> Recording:
        """All steps; one that raises is written down with its error and ends the walk."""
        # What is made here lives as long as the recording: collecting meanwhile only costs.
        collecting = gc.isenabled()
        gc.disable()
        try:
            while self.next_step:
                self.advance()
        finally:
            if collecting:
                gc.enable()
        return self.data

    @property
    def next_step(self) -> str:
        """The name of the step that `advance` would run; "" after the last, or a failed one."""
        steps = self.data.steps
        failed = steps and steps[-1].error is not None
        return "" if failed or len(steps) == len(STEPS) else STEPS[len(steps)]

    def advance(self) -> Step:
        """Run the next step and write it down, with its error where it raises in TVM.

        Raises `ByocvizError` where what was given cannot be used; the step is then not there.
        """
        index = len(self.data.steps)
        name = STEPS[index]
        self.tell(name, index, len(STEPS))
        step = Step(name)
        self.data.steps.append(step)
        start = time.perf_counter()
        self.state.tvm_seconds = 0.0
        try:
            self._step(name, step)
        except ByocvizError:
            self.data.steps.remove(step)
            raise  # something that was given cannot be used; nothing of TVM's has failed
        except Exception as error:
            step.error = self._failed(error)
            step.changed = False
            if name == "import":
                raise ModuleError(step.error.message, step.error.mend) from error
        finally:
            step.tvm_seconds = self.state.tvm_seconds
            step.capture_seconds = time.perf_counter() - start - step.tvm_seconds
        return step
