"""What a runtime's options take, checked before anything is built with them."""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from byocviz.building.errors import RuntimeMissing
from byocviz.errors import ArgumentError
from byocviz.recording.printable import printable


@dataclass(frozen=True)
class Takes:
    """What one option takes, in words, and as a function that gives the value as the runtime has
    it or raises `ValueError`."""

    words: str
    value: Callable[[Any], Any]


def switch() -> Takes:
    """True or False."""

    def value(given: Any) -> bool:
        if not isinstance(given, bool):
            raise ValueError
        return given

    return Takes("True or False", value)


def whole(least: int, most: int, *, none: bool = False) -> Takes:
    """A whole number; with ``none`` also None."""

    def value(given: Any) -> int | None:
        if given is None and none:
            return None
        if isinstance(given, bool) or not isinstance(given, numbers.Integral):
            raise ValueError
        if not least <= int(given) <= most:
            raise ValueError
        return int(given)

    return Takes(
        f"a whole number from {least:,} to {most:,}{', or None' if none else ''}",
        value,
    )


def among(names: Mapping[str, Any]) -> Takes:
    """One of these, or several in a list."""

    def value(given: Any) -> tuple[str, ...]:
        several = [given] if isinstance(given, str) else given
        if not isinstance(several, (list, tuple)) or not several:
            raise ValueError
        if not all(isinstance(one, str) for one in several):
            raise ValueError
        return tuple(several)

    listed = ", ".join(repr(name) for name in names)
    return Takes(f"one of {listed}, or several of them in a list", value)


def chosen(runtime: Any, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """The runtime's options with those that are given.

    Raises `RuntimeMissing` for an unknown name, and `ArgumentError` for a value that the option
    does not take. An option that the runtime declares no `Takes` for is the runtime's to check.
    """
    given = mapping(options)
    for name in given:
        if name not in runtime.options:
            near = difflib.get_close_matches(str(name), list(runtime.options), n=1)
            raise RuntimeMissing(
                f"{runtime.title} has no option {shown(name)}.",
                (f"Did you mean {near[0]!r}? " if near else "")
                + f"Its options: {', '.join(runtime.options)}.",
            )
    return {**runtime.options, **{n: fitting(runtime, n, v) for n, v in given.items()}}


def mapping(options: Any) -> dict[Any, Any]:
    """The options as a dictionary; none for None. Raises `ArgumentError`."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise ArgumentError(
            f"options is {shown(options)}.", 'Give values by name, as {"threads": 2}.'
        )
    return dict(options)


def fitting(runtime: Any, name: str, value: Any) -> Any:
    """The value of an option, as the runtime has it. Raises `ArgumentError`."""
    takes: Takes | None = getattr(runtime, "takes", {}).get(name)
    if takes is None:
        return value
    try:
        return takes.value(value)
    except ValueError:
        raise ArgumentError(
            f"The option {name!r} of {runtime.title} is {shown(value)}.",
            f"It takes {takes.words}.",
        ) from None


def shown(value: Any) -> str:
    """A value as a message shows it: short, and whatever it is."""
    try:
        return printable(repr(value), limit=80)
    except Exception:  # a number of thousands of digits, an object that cannot say what it is
        return f"a {type(value).__name__}"
