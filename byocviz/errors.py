"""The errors that byocviz raises: each names what was wrong, where, and the mend."""

from __future__ import annotations


class ByocvizError(Exception):
    """Base of all errors of byocviz.

    ``mend`` is what to do about it, one or two sentences; it is part of ``str(error)``.
    """

    def __init__(self, message: str, mend: str = "") -> None:
        self.message = message
        self.mend = mend
        super().__init__(f"{message}\n  {mend}" if mend else message)


class ByocvizWarning(UserWarning):
    """What is done otherwise than was asked for, or only in part; the result says it too."""


class ArgumentError(ByocvizError, TypeError):
    """An argument of a kind that the function does not take."""


class MissingPackage(ByocvizError, ImportError):
    """A package that an extra brings is not installed."""


class ModelError(ByocvizError, ValueError):
    """A model that cannot be read or imported."""


class ModuleError(ByocvizError, ValueError):
    """A TVM module that cannot be recorded as it is."""


class BackendError(ByocvizError, LookupError):
    """An unknown backend or rule, or one that cannot be used with the TVM at hand."""


class RecordingError(ByocvizError, ValueError):
    """A file that is not a recording, is damaged, too large, or of a newer schema."""


class StepMissing(ByocvizError, LookupError):
    """A step, operator or figure that the recording does not hold."""


def missing(package: str, extra: str, why: str) -> MissingPackage:
    """The error for an optional package: ``why`` says what it was needed for."""
    from byocviz._install import pip_install

    return MissingPackage(f"{package} is not installed; it is needed {why}.", pip_install(extra))


def last_line(error: BaseException, limit: int = 500) -> str:
    """The last line of what an error says: there, under the trace, TVM and native libraries say
    what it was. Its kind where it says nothing."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:limit] if lines else type(error).__name__


def in_short(error: BaseException, limit: int = 500) -> str:
    """An error's kind, and what it says: one of ours whole, of another the last line."""
    kind = type(error).__name__
    said = str(error) if isinstance(error, ByocvizError) else last_line(error, limit)
    return kind if said == kind else f"{kind}: {said}"
