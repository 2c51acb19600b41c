"""The process that TVM's passes and a person's rules run in: ``python -m byocviz.explorer.child``.

`byocviz.building.child` has the loop and the protocol; files lie in the folder that it works in.
"""

from __future__ import annotations

import contextlib
import faulthandler
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from byocviz.building.child import serve
from byocviz.errors import ByocvizError, in_short
from byocviz.recording.printable import printable

if TYPE_CHECKING:
    from byocviz.explorer.session import Session

Hear = Callable[[Mapping[str, Any]], None]


def _told_of_faults() -> None:
    """Have Python say where it stood when it crashes: TVM puts a handler of its own before it."""
    import tvm  # noqa: F401

    faulthandler.disable()
    faulthandler.enable()


class _Jobs:
    """What is kept between jobs: a session, and the module that rules are tried on."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.hear: Hear = lambda said: None
        self.tried: tuple[str, Any] | None = None

    def begin(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Read the module and the weights."""
        from byocviz.explorer.given import read
        from byocviz.explorer.session import Session
        from byocviz.explorer.settings import Settings

        _told_of_faults()
        module, params, entry, title = read(message)
        settings = Settings.of(message["settings"])
        self.session = Session(
            module, settings.backend, params=params, entry=entry, title=title,
            tell=lambda text, done, total: self.hear({"heard": [text[:500], done, total]}),
        )  # fmt: skip
        return {}

    def _under(self, message: Mapping[str, Any]) -> Session:
        from byocviz.explorer.settings import Settings

        assert self.session is not None
        wanted = Settings.of(message["settings"])
        self.session.change(**self.session.settings.differing(wanted))
        return self.session

    def step(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Run up to a step; write down that one alone."""
        session = self._under(message)
        step = session.run_to(message["step"])
        recording = session.recording
        last = recording.steps[-1:] if step is None else [step]
        keys = {f.text for one in last for f in one.functions}
        texts = {key: text for key, text in recording.texts.items() if key in keys}
        alone = msgspec.structs.replace(recording, steps=last, texts=texts)
        alone.save("step.byocviz")
        answer: dict[str, Any] = {"rules": [rule.name for rule in session.rules]}
        if step is not None and step.name == "partition" and step.error is None:
            answer["prunable"] = sorted(session.prunable() or ())
        return answer

    def module(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Write a step's module down."""
        from byocviz.explorer.given import write_module

        session = self._under(message)
        session.run_to(message["step"])
        write_module(session.recording.module(message["step"]), Path("asked.json"))
        return {}

    def blockers(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """What one more rule would change."""
        found = self._under(message).run_all().blockers()
        Path("blockers.json").write_bytes(msgspec.json.encode(found))
        return {}

    def load(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Read the module that rules are tried on."""
        from byocviz.explorer.given import read_module

        _told_of_faults()
        self.tried = message["ir"], read_module(Path(message["path"]))
        return {}

    def rule(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Match a rule's text by itself."""
        from byocviz.explorer.dialects import named
        from byocviz.explorer.trial import match

        assert self.tried is not None
        ir, module = self.tried
        found = match(named(ir), module, message["backend"], message["source"])
        Path("found.json").write_bytes(msgspec.json.encode(found))
        return {}

    def __call__(self, message: Mapping[str, Any], hear: Hear) -> dict[str, Any]:
        self.hear = hear
        try:
            return dict(getattr(self, message["do"])(message))
        except ByocvizError as error:
            return {
                "error": type(error).__name__,
                "message": error.message[:4000],
                "mend": error.mend[:4000],
            }
        except Exception as error:
            said = printable(in_short(error, 2000))
            return {"error": "Exception", "message": said}


if __name__ == "__main__":
    with contextlib.suppress(OSError):
        serve(_Jobs())
