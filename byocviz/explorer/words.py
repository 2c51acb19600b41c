"""What the explorer says, as HTML for ipywidgets: every name escaped and cut."""

from __future__ import annotations

import html

from byocviz.errors import ByocvizError, in_short
from byocviz.explorer.preview import PrunePreview
from byocviz.explorer.trial import Trial
from byocviz.recording.compare import RecordingComparison
from byocviz.recording.printable import printable
from byocviz.recording.results import Results
from byocviz.recording.schema import Rewrite, Step
from byocviz.render import figures


def text(value: object, limit: int = 300) -> str:
    """Anything, printable, cut and escaped."""
    return html.escape(printable(str(value), limit=limit), quote=True)


def good(said: str) -> str:
    return f'<span class="byocviz-good">{said}</span>'


def bad(message: str, mend: str = "") -> str:
    tail = f"<br><i>{text(mend, 600)}</i>" if mend else ""
    return f'<span class="byocviz-bad"><b>{text(message, 900)}</b>{tail}</span>'


def failure(error: BaseException) -> str:
    """An exception, with its mend where it has one."""
    if isinstance(error, ByocvizError):
        return bad(error.message, error.mend)
    return bad(in_short(error, 1000))


def cancelling(first: str, doing: str) -> str:
    """That it was asked to cancel: ``first`` is what cannot be interrupted, "" for nothing."""
    if not first:
        return "<i>Cancelling ...</i>"
    if first == "build":
        return (
            "<i>Cancelling. An engine that is being built ends at once; what TVM compiles or "
            "runs in this process ends first.</i>"
        )
    return (
        f"<i>Cancelling: {text(doing, 80)} ends first, for a pass that runs in the kernel's own "
        "process cannot be interrupted. With <b>own process</b> on, it can.</i>"
    )


def cost(step: Step) -> str:
    """What a step did and took."""
    if step.error is not None:
        return bad(f"{step.name} failed: {step.error.type}: {step.error.message}", step.error.mend)
    profile = step.profile
    return (
        f"<b>{text(step.name)}</b>: {figures.plural(profile.total, 'operator')}, "
        f"{figures.plural(len(step.subgraphs), 'subgraph')}, "
        f"{figures.share(profile.coverage_ops)} of operators on the backend; "
        f"{figures.seconds(step.tvm_seconds)} in TVM, "
        f"{figures.seconds(step.capture_seconds)} writing down"
    )


def _pair(name: str, before: str, after: str) -> str:
    mark = "" if before == after else ' style="font-weight:bold"'
    return f"<tr><td>{name}</td><td>{before}</td><td>&rarr;</td><td{mark}>{after}</td></tr>"


def rewritten(rewrite: Rewrite | None, what: str) -> str:
    """What a rewrite of the prepare step does, and did."""
    if rewrite is None:
        return text(what, 600)
    places = f"<b>{figures.plural(rewrite.count, 'place')}</b>" if rewrite.count else "nothing"
    left = "; ".join(f"left {count}: {text(cause, 80)}" for cause, count in rewrite.left.items())
    return f"{places if rewrite.enabled else 'off'} &middot; {text(what, 600)}" + (
        f" <i>({left})</i>" if left and rewrite.enabled else ""
    )


def compared(found: RecordingComparison | None) -> str:
    """This run beside the last one."""
    if found is None:
        return "<i>Change something: this run then stands beside the one before.</i>"
    rows = [
        _pair("subgraphs", *map(figures.count, found.subgraphs)),
        _pair("operators on the backend", *map(figures.count, found.offloaded)),
        _pair("coverage, operators", *map(figures.share, found.coverage_ops)),
        _pair("coverage, MACs", *map(figures.share, found.coverage_macs)),
        _pair("boundary", *map(figures.data, found.boundary_bytes)),
    ]
    rows += [
        _pair(f"on TVM: {text(code, 60)}", *map(figures.count, pair))
        for code, pair in list(found.reasons.items())[:8]
    ]
    step = text(found.b.rpartition(": ")[2], 60)
    only = [text(", ".join(names), 400) for names in found.rules_on]
    said = "".join(
        f"<p>Only {which}: rule {names}</p>"
        for which, names in zip(("the last run", "this run"), only, strict=True)
        if names
    )
    return (
        f"<p>The last run &rarr; this run, at the step <b>{step}</b></p>"
        f"<table>{''.join(rows)}</table>{said}"
    )


def previewed(found: PrunePreview | None) -> str:
    """What a prune policy would do."""
    if found is None:
        return "<i>Run the partition step to see what a policy would do.</i>"
    rows = [
        _pair("subgraphs", *map(figures.count, found.subgraphs)),
        _pair("coverage, operators", *map(figures.share, found.coverage_ops)),
        _pair("coverage, MACs", *map(figures.share, found.coverage_macs)),
        _pair("boundary", *map(figures.data, found.boundary_bytes)),
    ]
    going = "".join(f"<li>{text(name, 60)}: {text(why, 120)}</li>" for name, why in found.going[:8])
    more = f"<li>and {len(found.going) - 8} more</li>" if len(found.going) > 8 else ""
    return f"<table>{''.join(rows)}</table><ul>{going}{more}</ul>"


def tried(trial: Trial) -> str:
    """What a rule matched, or what went wrong."""
    if trial.error:
        return bad(trial.error, trial.mend)
    matches, ops = len(trial.matches), len(trial.operators)
    said = f"{figures.plural(matches, 'match', 'matches')}, {figures.plural(ops, 'operator')}"
    if trial.refused:
        said += f"; its check refused {len(trial.refused)}"
    if matches:
        said += ". They are marked in the drawing."
    return good(f"{said} <i>({figures.seconds(trial.seconds)})</i>")


def measured(results: Results) -> str:
    """What building and running gave."""
    parts = []
    if results.build:
        build = results.build
        stands = f", in place of {text(build.stands_in_for)}" if build.stands_in_for else ""
        parts.append(
            f"<p>Built: {figures.plural(len(build.engines), 'engine')} of {text(build.title)}"
            f"{stands}</p>"
        )
    if results.check:
        check = results.check
        worst = max((d.max_abs or 0.0 for d in check.differences), default=0.0)
        verdict = f"differs first at {text(check.first)}" if check.first else "within tolerance"
        parts.append(
            f"<p>Largest difference to TVM alone {figures.difference(worst)}: {verdict}</p>"
        )
    if results.latency:
        rows = "".join(
            f"<tr><td>{text(v.name)}</td><td>"
            + (f"cannot: {text(v.cannot)}" if v.median is None else figures.seconds(v.median))
            + "</td></tr>"
            for v in results.latency.variants[:12]
        )
        parts.append(f"<p>Median latency</p><table>{rows}</table>")
    for photo in results.photos[:4]:
        rows = "".join(
            f"<tr><td>{text(d.variant)}</td><td>"
            + (", ".join(f"{text(f.label, 40)} {f.score:.2f}" for f in d.found[:6]) or "nothing")
            + "</td></tr>"
            for d in photo.detected[:8]
        )
        parts.append(f"<p>Found in {text(photo.name)}</p><table>{rows}</table>")
    return "".join(parts)
