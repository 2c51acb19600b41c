"""Whether variants found the same things. Imports nothing heavy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from byocviz.recording.results import Detected, Photo
from byocviz.render import figures

SCORE = 0.005
"""Scores that differ by no more agree."""
BOX = 0.005
"""Sides of a box that differ by no more, as a share of the photo's longer side, agree."""


def agrees(photo: Photo, one: Detected) -> bool | None:
    """Whether a variant found what the first one did; None where that is not known, as for the
    first one itself and for one that could not run."""
    if not photo.detected or one is photo.detected[0] or (one.note and not one.found):
        return None
    if one.max_score is None:
        return not one.found and not photo.detected[0].found
    return one.max_score <= SCORE and (one.max_box or 0.0) <= _limit(photo)


def _limit(photo: Photo) -> float:
    return max(1.0, BOX * max(photo.width, photo.height))


def _apart(score: float, box: float | None) -> str:
    if not score and not box:
        return "scores and boxes are equal"
    shown = f"{score:.3f}" if 0.001 <= score < 1e3 else figures.difference(score)
    said = f"scores differ by at most {shown}" if score else "scores are equal"
    return said if box is None else f"{said}, boxes by at most {pixels(box)}"


def pixels(value: float) -> str:
    """``0.3 px``, ``12 px``; what is smaller than anyone could see is ``0.01 px``."""
    if not math.isfinite(value):
        return figures.UNKNOWN
    if value < 9.95:
        said = f"{max(value, 0.01):.2g}"
    else:
        said = f"{value:,.0f}" if value < 1e9 else f"{value:.1e}"
    return f"{said}\N{NO-BREAK SPACE}px"


def sentence(photo: Photo, one: Detected) -> str:
    """What stands below a variant's picture."""
    if one.note and not one.found:
        return one.note
    said = f"{figures.plural(len(one.found), 'object')} found"
    verdict = agrees(photo, one)
    if verdict is not None:
        first = photo.detected[0]
        if one.max_score is None:
            if verdict:
                said = f"Nothing found, as by {first.variant}"
            else:
                said = (
                    f"Other objects than {first.variant}: {len(one.found)} and {len(first.found)}"
                )
        elif verdict:
            said = f"Same as {first.variant}: {_apart(one.max_score, one.max_box)}"
        else:
            said = f"Not the same as {first.variant}: {_apart(one.max_score, one.max_box)}"
    return f"{said}. {one.note}" if one.note else said


def together(photos: Sequence[Photo]) -> tuple[bool, str]:
    """Whether all variants agree on all photos, and a line that says so or what differs."""
    verdicts = [(photo, one, agrees(photo, one)) for photo in photos for one in photo.detected]
    names = list(dict.fromkeys(one.variant for _, one, _ in verdicts))
    wrong = [(photo, one) for photo, one, verdict in verdicts if verdict is False]
    if wrong:
        photo, one = wrong[0]
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        return False, f"{one.variant}, {photo.name}{more}: {sentence(photo, one)}"
    agreed = [one for _, one, verdict in verdicts if verdict]
    if not agreed:
        return True, f"Found by {names[0]}" if len(names) == 1 else "Not compared"
    ran = {one.variant for _, one, verdict in verdicts if verdict or not one.note or one.found}
    count = f"All {len(ran)} variants" if len(ran) > 2 else "Both variants"
    score, box = _most(one.max_score for one in agreed), _most(one.max_box for one in agreed)
    line = f"{count} find the same"
    return True, line if score is None else f"{line}: {_apart(score, box)}"


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
