"""The command ``byocviz``: thin commands over the same functions that scripts call.

One file a command, each with ``add``, which makes it known, and ``run``.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import warnings
from collections.abc import Sequence

from byocviz.cli import build, compare, demo, doctor, import_gluoncv, record, replay, show
from byocviz.errors import ByocvizError, ByocvizWarning
from byocviz.version import __version__

__all__ = ["commands", "main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status: 0, 1 for an error that is named, 2 for usage."""
    _terminal()
    try:
        try:
            return _run(argv)
        finally:  # argparse leaves by SystemExit
            sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has enough.
        _discard_output()
        return 141
    except OSError as error:
        _say_error(f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""))
        _discard_output()
        return 1
    except KeyboardInterrupt:
        print("byocviz: interrupted", file=sys.stderr)
        return 130


def _run(argv: Sequence[str] | None) -> int:
    parser = commands()
    arguments = parser.parse_args(argv)
    if not hasattr(arguments, "run"):
        parser.print_help()
        return 2
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ByocvizWarning)  # what is printed says it
            return int(arguments.run(arguments) or 0)
    except ByocvizError as error:
        mend = error.mend
        if "shapes=" in mend and hasattr(arguments, "shape"):
            mend += "\nOn the command line: --shape NAME=1,3,300,300"
        if "time_limit" in mend and hasattr(arguments, "time_limit"):
            mend += "\nOn the command line: --time-limit SECONDS"
        _say_error(error.message, mend)
        return 1


def _say_error(message: str, mend: str = "") -> None:
    from byocviz.recording.printable import printable

    lines = [*message.split("\n"), *(f"  {line}" for line in mend.split("\n") if line)]
    print("byocviz: " + "\n".join(printable(line, limit=4000) for line in lines), file=sys.stderr)


def _terminal() -> None:
    """Streams and a width that can be printed to, whatever they were started with."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed, as by `>&-`
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    # rich believes any number: nothing is printed at 0, and a line of each length at millions.
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and not 0 < int(columns[:9]) <= 10_000:
        del os.environ["COLUMNS"]


def _discard_output() -> None:
    """What could not be written is not tried again at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def commands() -> argparse.ArgumentParser:
    """The parser of all commands."""
    made = argparse.ArgumentParser(
        prog="byocviz",
        description="See what TVM's Bring-Your-Own-Codegen flow does to a model, and why.",
    )
    made.add_argument("--version", action="version", version=f"byocviz {__version__}")
    subparsers = made.add_subparsers(title="commands", metavar="COMMAND")
    for command in (record, show, compare, replay, build, demo, import_gluoncv, doctor):
        command.add(subparsers)
    return made


if __name__ == "__main__":
    sys.exit(main())
