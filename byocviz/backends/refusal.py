"""A rule's check that says why it refuses.

TVM takes a bare bool of a check, and what lies behind a no has to be worked out by trying. A check
that knows ends with ``return refuse(Refusal(...))`` instead; the reason then says just that.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """Why a check refuses a match. ``code`` and the rest become those of the `Reason`."""

    code: str
    text: str
    """Follows the words ``The rule ... matches, but``."""
    mend: str
    evidence: tuple[tuple[str, str], ...] = ()


class _Said(threading.local):
    refusal: Refusal | None = None


_said = _Said()


def refuse(refusal: Refusal) -> bool:
    """False, the check's answer; whoever asked may `take` the refusal."""
    _said.refusal = refusal
    return False


def take() -> Refusal | None:
    """What the last check of this thread said of its refusal, once; None where it said nothing.

    Take what is left before a check is asked, and its own after.
    """
    refusal, _said.refusal = _said.refusal, None
    return refusal
