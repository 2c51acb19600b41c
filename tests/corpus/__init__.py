"""Relax modules of many shapes, for the properties that must hold on every module.

`CASES` lists them; each is small and compiles in well under a second. `random_module` draws
more.
"""

from __future__ import annotations

from . import control, importer, straight, values, walkthrough  # noqa: F401  (fill CASES)
from .case import CASES, Case
from .random_graphs import random_module

__all__ = ["CASES", "Case", "by_name", "random_module"]


def by_name(name: str) -> Case:
    """The case of that name; raises `KeyError`."""
    for case in CASES:
        if case.name == name:
            return case
    raise KeyError(name)
