"""The last state of an explorer as HTML that needs no script and no kernel."""

from __future__ import annotations

import html
import re

from byocviz.recording import Recording
from byocviz.recording.printable import printable
from byocviz.recording.schema import Step
from byocviz.render import figures

_LARGEST = 600_000
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_CELL = "padding:2px 10px;text-align:left;border-bottom:1px solid #c3ccd8"


def still(recording: Recording, step: str, png: str = "", name: str = "") -> str:
    """A table of the steps, what was measured, and the picture that the viewer last drew: a
    PNG in base64, which is checked.

    ``name`` marks it, so that a widget that lives hides it.
    """
    rows = "".join(_row(one, one.name == step) for one in recording.steps)
    head = "".join(
        f'<th style="{_CELL}">{text}</th>'
        for text in ("step", "operators", "subgraphs", "on the backend", "boundary", "time in TVM")
    )
    parts = [
        f"<p><b>{_text(recording.title)}</b> for {_text(recording.backend.name)}, "
        f"{_text(recording.made_with.get('tvm', '')) and 'TVM '}"
        f"{_text(recording.made_with.get('tvm', ''))}</p>",
        f'<table style="border-collapse:collapse"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table>",
    ]
    if recording.results:
        parts.append(_results(recording))
    if png and len(png) <= _LARGEST and _BASE64.fullmatch(png):
        parts.append(
            f'<img alt="The drawing at the step {_text(step)}" style="max-width:100%" '
            f'src="data:image/png;base64,{png}">'
        )
    return f'<div data-byocviz-static="{_text(name)}">{"".join(parts)}</div>'


def _row(step: Step, now: bool) -> str:
    profile = step.profile
    name = f"<b>{_text(step.name)}</b>" if now else _text(step.name)
    if step.error is not None:
        said = _text(f"failed: {step.error.type}: {step.error.message}", 300)
        return (
            f'<tr><td style="{_CELL}">{name}</td><td style="{_CELL}" colspan="5">{said}</td></tr>'
        )
    parts = [profile.bytes_in, profile.bytes_out]
    crossing = None if None in parts else sum(part or 0 for part in parts)
    cells = (
        figures.count(profile.total),
        figures.count(len(step.subgraphs)),
        figures.share(profile.coverage_ops),
        figures.data(crossing),
        figures.seconds(step.tvm_seconds),
    )
    return (
        f'<tr><td style="{_CELL}">{name}</td>'
        + "".join(f'<td style="{_CELL}">{html.escape(cell)}</td>' for cell in cells)
        + "</tr>"
    )


def _results(recording: Recording) -> str:
    results = recording.results
    rows = []
    if results.latency:
        for variant in results.latency.variants:
            cannot = f"cannot: {_text(variant.cannot)}"
            figure = f"{figures.seconds(variant.median)} (median)" if variant.median else cannot
            rows.append((_text(variant.name), figure))
    for photo in results.photos:
        for one in photo.detected:
            found = ", ".join(f"{f.label} {f.score:.2f}" for f in one.found[:8]) or "nothing"
            rows.append((_text(f"{photo.name}, {one.variant}"), _text(found, 300)))
    if not rows:
        return ""
    body = "".join(
        f'<tr><td style="{_CELL}">{name}</td><td style="{_CELL}">{what}</td></tr>'
        for name, what in rows[:60]
    )
    return f'<table style="border-collapse:collapse;margin-top:8px"><tbody>{body}</tbody></table>'


def _text(text: str, limit: int = 120) -> str:
    return html.escape(printable(str(text), limit=limit), quote=True)
