"""Tries a rule, or the passes, in a process of its own: an endless loop or a crash ends there.

``python -m byocviz.explorer.trial FOLDER`` is that process.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byocviz.errors import ByocvizError
from byocviz.recording.printable import printable

if TYPE_CHECKING:
    from byocviz.explorer.settings import Settings

_GLANCE = 0.02
_MOST_MATCHES = 20_000


@dataclass(frozen=True)
class Trial:
    """What a rule matched by itself, each match as ids of operators, or what went wrong."""

    matches: tuple[tuple[int, ...], ...] = ()
    refused: tuple[tuple[int, ...], ...] = ()
    """Matches that its own check refused."""
    error: str = ""
    mend: str = ""
    line: int = 0
    """The line of the text that failed, from 1; 0 where it is not known."""
    seconds: float = 0.0

    @property
    def operators(self) -> list[int]:
        """Ids of all operators in matches, each once, in order."""
        return sorted({i for match in self.matches for i in match})


@dataclass
class _Saved:
    """The module that was written last, so that the next trial need not write it again."""

    module: Any = None
    folder: Any = field(default=None, repr=False)


_saved = _Saved()


def try_rule(
    module: Any, source: str, backend: str, time_limit: float, cancelled: Callable[[], bool]
) -> Trial:
    """What `Session.try_rule` says. ``module`` is tagged."""
    start = time.monotonic()
    job = {"source": source, "name": f"{backend}.tried"}
    answer, problem = _ask(module, job, "The rule", time_limit, cancelled)
    seconds = time.monotonic() - start
    if problem:
        return Trial(error=problem[0], mend=problem[1], seconds=seconds)
    return Trial(
        tuple(tuple(match) for match in answer["matches"]),
        tuple(tuple(match) for match in answer["refused"]),
        answer["error"],
        answer["mend"],
        answer["line"],
        seconds,
    )


def try_passes(
    module: Any, settings: Settings, time_limit: float, cancelled: Callable[[], bool]
) -> tuple[str, str] | None:
    """Run the composite, annotate and merge steps' passes apart; None where the process lives
    through them (what they raise is no matter here), else what became of it, and the mend."""
    job = {
        "passes": True,
        "backend": settings.backend,
        "rules": dict(settings.rules),
        "lowerable": settings.lowerable,
        "added": [[rule.name, rule.source] for rule in settings.added],
    }
    return _ask(module, job, "The passes", time_limit, cancelled)[1]


def _ask(
    module: Any, job: dict[str, Any], what: str, time_limit: float, cancelled: Callable[[], bool]
) -> tuple[dict[str, Any], tuple[str, str] | None]:
    """The child's answer, or what became of it and the mend."""
    import tvm

    if _saved.module is None or not _saved.module.same_as(module):
        folder = tempfile.TemporaryDirectory(prefix="byocviz-trial-")
        Path(folder.name, "module.json").write_text(tvm.ir.save_json(module), encoding="utf-8")
        _saved.module, _saved.folder = module, folder
    place = Path(_saved.folder.name)
    (place / "answer.json").unlink(missing_ok=True)
    (place / "job.json").write_text(json.dumps(job), encoding="utf-8")
    problem = _run(place, what, time_limit, cancelled)
    if problem:
        return {}, problem
    try:
        return json.loads((place / "answer.json").read_text(encoding="utf-8")), None
    except (OSError, ValueError):
        return {}, (f"{what}: the process that ran it gave no answer.", _LOOK)


_LOOK = "Look for what ends or crashes the interpreter, in a rule's text or in its check."


def _run(
    place: Path, what: str, time_limit: float, cancelled: Callable[[], bool]
) -> tuple[str, str] | None:
    """None where the child ended by itself and well; else what happened, and the mend."""
    paths = os.pathsep.join(os.path.abspath(p) for p in sys.path if p)
    with open(place / "said.txt", "wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "byocviz.explorer.trial", str(place)],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            cwd=place,
            env={**os.environ, "PYTHONPATH": paths},
            start_new_session=True,
        )
        # The clock runs once the module is read: reading it is no fault of the rule's.
        began: float | None = None
        asked = time.monotonic()
        try:
            while process.poll() is None:
                if began is None and (place / "ready").exists():
                    began = time.monotonic()
                if cancelled():
                    return "The trial was cancelled.", "Try again."
                limit = time_limit if began is not None else time_limit + 60.0
                if time.monotonic() - (asked if began is None else began) > limit:
                    return (
                        f"{what} took longer than the limit of {time_limit:g} s.",
                        "Look for a loop that does not end, in a rule's text or in its check.",
                    )
                time.sleep(_GLANCE)
        finally:
            with contextlib.suppress(OSError):
                (place / "ready").unlink()
            if process.poll() is None:
                with contextlib.suppress(OSError):
                    if hasattr(os, "killpg"):
                        os.killpg(process.pid, signal.SIGKILL)
                    else:
                        process.kill()
                process.wait()
    if process.returncode:
        tail = printable((place / "said.txt").read_text(errors="replace")[-600:], limit=600)
        return (
            f"{what}: the process that ran it ended with {process.returncode}: {tail}",
            _LOOK,
        )
    return None


def main(place: Path) -> None:
    """Read the job, try it, write the answer."""
    import faulthandler

    faulthandler.enable()
    import tvm
    from tvm import relax

    from byocviz.explorer.rulebox import RuleError, compile_rule, line_of
    from byocviz.flow.relax.tag import tag_of

    job = json.loads((place / "job.json").read_text(encoding="utf-8"))
    module = tvm.ir.load_json((place / "module.json").read_text(encoding="utf-8"))
    (place / "ready").touch()
    if job.get("passes"):
        with contextlib.suppress(Exception):  # what is raised is raised again where it is shown
            _passes(module, job)
        (place / "answer.json").write_text("{}", encoding="utf-8")
        return
    answer: dict[str, Any] = {"matches": [], "refused": [], "error": "", "mend": "", "line": 0}
    where = f"<rule {job['name']}>"
    try:
        name, pattern, *rest = compile_rule(job["source"], job["name"])
        own = rest[1] if len(rest) > 1 else None

        def check(context: Any) -> bool:
            calls = [v for v in context.matched_bindings.values() if isinstance(v, relax.Call)]
            tags = sorted(tag for tag in map(tag_of, calls) if tag >= 0)
            said = True if own is None else own(context)
            if not isinstance(said, (bool, int)):
                raise TypeError(f"check returned {type(said).__name__}, not a bool")
            kind = "matches" if said else "refused"
            if len(answer[kind]) < _MOST_MATCHES:
                answer[kind].append(tags)
            return bool(said)

        fusion = relax.transform.FusionPattern(name, pattern, {}, check)
        relax.transform.FuseOpsByPattern([fusion])(module)
    except RuleError as error:
        answer.update(error=error.message, mend=error.mend, line=error.line)
    except ByocvizError as error:
        answer.update(error=error.message, mend=error.mend)
    except Exception as error:
        lines = [text.strip() for text in str(error).splitlines() if text.strip()]
        last = printable(lines[-1] if lines else "", limit=500)
        answer.update(
            error=f"{type(error).__name__}: {last}",
            mend="TVM, or the rule's own check, raised it while matching.",
            line=line_of(error, where),
        )
    (place / "answer.json").write_text(json.dumps(answer), encoding="utf-8")


def _passes(module: Any, job: dict[str, Any]) -> None:
    from tvm import relax

    from byocviz.explorer.rulebox import AddedRule
    from byocviz.explorer.settings import Settings
    from byocviz.flow.relax.passes.merge import merge

    added = tuple(AddedRule(*one) for one in job["added"])
    settings = Settings(job["backend"], job["rules"], lowerable=job["lowerable"], added=added)
    rules = [rule.fusion for rule in settings.resolve().rules if rule.enabled]
    fused = relax.transform.FuseOpsByPattern(rules, bind_constants=True)(module)
    relax.transform.FuseOpsByPattern(rules, bind_constants=True, annotate_codegen=True)(module)
    merge(fused)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
