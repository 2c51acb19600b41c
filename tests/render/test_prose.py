"""Code in a sentence is never broken, all else fits; tables give columns up, figures stay whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from byocviz.recording import Recording
from byocviz.render import figures
from byocviz.render.prose import GLUE, lines, whole_code
from byocviz.render.result_sections import timed
from byocviz.render.text import StepsTable, to_text
from tests.recording.strategies import built
from tests.recording.strategies_results import recordings_with_results

CODE = [
    'byocviz.backends.get("tensorrt").with_rules(("t.a", is_op("relax.a")(wildcard())))',
    "mod['main'] = mod['main'].without_attr('Codegen')",
    'relax.transform.BindSymbolicVars({"n": number, "m": number})',
    "@byocviz.building.lower.converter('relax.atan2')",
    "record(..., prune=byocviz.PrunePolicy(require_macs=True, min_ops=3))",
    'rule("a) b", f[0])',
]


@given(
    st.lists(st.sampled_from([*CODE, "some", "words", "(in brackets)", "f(x", "])", "x" * 90])),
    st.integers(10, 120),
)
def test_code_is_whole_and_the_rest_fits(parts: list[str], width: int) -> None:
    text = " ".join(parts)
    broken = lines(text, width)
    assert "".join(broken).replace(" ", "") == text.replace(" ", "")
    for code in {part for part in parts if part in CODE}:
        assert sum(line.count(code) for line in broken) >= text.count(code)
    for line in broken:
        assert cell_len(line) <= width or whole_code(line) != line


@pytest.mark.parametrize("text", ["a(" * 900, "a()" + "()" * 900, "a[" + "'" * 900, "f" * 2000])
def test_what_is_no_code_ends_too(text: str) -> None:
    assert all(cell_len(line) <= 40 or "(" in line for line in lines(text, 40))
    assert GLUE not in "".join(lines(text, 40))


@given(recordings_with_results(), st.sampled_from([40, 60, 80, 120]))
def test_latencies_fit_and_no_figure_is_broken(recording: Recording, width: int) -> None:
    section = timed(recording)
    if section is None:
        return
    said = to_text(section, width)
    assert all(cell_len(line) <= width or whole_code(line) != line for line in said.splitlines())
    for variant in recording.results.latency.variants:
        if variant.median and variant.median < 86_400:  # seconds: longer than a day is no latency
            assert figures.seconds(variant.median) in said


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_steps_fit_and_none_is_broken(width: int) -> None:
    recording = built(60)
    said = to_text(StepsTable(recording), width)
    assert all(cell_len(line) <= width for line in said.splitlines())
    for step in recording.steps:
        assert sum(line.startswith(f"{step.name} ") for line in said.splitlines()) in (1, 2)
