"""Plots of any recording: whole, within the figure, nothing on top of anything else."""

from __future__ import annotations

import io
import math
import subprocess
import sys
from typing import Any

import matplotlib
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import byocviz
from byocviz import plots
from byocviz.errors import ArgumentError, StepMissing
from byocviz.recording import STEPS, Operator, Recording
from byocviz.recording.results import BuildInfo, Detected, Found, Latency, Part, Photo, Variant
from byocviz.render import figures
from byocviz.render.palette import theme
from byocviz.render.plots import _words
from tests.recording.strategies import HOSTILE, built, built_step, recordings
from tests.render import plots_lab as lab

some = settings(max_examples=12, suppress_health_check=list(HealthCheck), deadline=None)
THEMES = ("light", "dark")


def timed(*variants: Variant, **more: Any) -> Recording:
    return lab.with_results(built(20), latency=Latency(list(variants), 10, 2, **more))


def one(name: str, kind: str, ms: float, **more: Any) -> Variant:
    return Variant(name, kind, median=ms / 1e3, p10=ms / 1.1e3, p90=ms / 0.9e3, **more)


# -- any recording


@some
@given(recordings(), st.sampled_from(THEMES))
def test_coverage_draws_every_recording(recording: Recording, name: str) -> None:
    if not recording.steps:
        with pytest.raises(StepMissing, match="Record the module"):
            plots.coverage(recording, theme=name)
        return
    figure = plots.coverage(recording, theme=name)
    lab.check(figure)
    [axes] = lab.axes_named(figure, "coverage")
    good = [step.profile for step in recording.steps if step.error is None]
    for label, shares in (
        ("byoc", [profile.coverage_ops for profile in good]),
        ("macs", [profile.coverage_macs for profile in good]),
    ):
        drawn = [patch.get_height() for patch in lab.patches(axes, label)]
        assert drawn == [share for share in shares if share]
    said = lab.words(figure).splitlines()
    for profile in good:
        for text in (
            figures.share(profile.coverage_ops),
            figures.share(profile.coverage_macs),
            figures.count(profile.subgraphs),
            figures.short(profile.macs),
        ):
            assert text in said


@some
@given(recordings(), st.sampled_from(THEMES), st.integers(1, 40))
def test_op_profile_draws_every_recording(recording: Recording, name: str, top: int) -> None:
    if all(step.error is not None for step in recording.steps):
        with pytest.raises(StepMissing, match="Record the module"):
            plots.op_profile(recording, theme=name)
        return
    figure = plots.op_profile(recording, theme=name, top=top)
    lab.check(figure)
    profile = recording.last.profile
    for label, total, away in (
        ("operators", profile.total, profile.offloaded_ops),
        ("macs", profile.macs, profile.offloaded_macs),
    ):
        drawn = lab.axes_named(figure, label)
        if total is None or away is None or not drawn:
            continue
        shown = {
            kind: sum(patch.get_width() for patch in lab.patches(drawn[0], kind))
            for kind in ("byoc", "tvm")
        }
        assert shown == {"byoc": away, "tvm": total - away}


@some
@given(lab.latencies, lab.builds, st.sampled_from(THEMES))
def test_latency_draws_whatever_was_timed(
    latency: Latency, build: BuildInfo | None, name: str
) -> None:
    recording = lab.with_results(built(9), latency=latency, build=build)
    figure = plots.latency(recording, theme=name)
    lab.check(figure)
    [axes] = lab.axes_named(figure, "latency")
    said = lab.words(figure)
    for number, variant in enumerate(latency.variants):
        ms = _words.milliseconds(variant.median)
        bars = lab.patches(axes, f"variant {number}")
        if ms is None or variant.cannot:
            assert not bars
            assert ("cannot: " if variant.cannot else "not timed") in said
        else:
            assert [bar.get_width() for bar in bars] == [ms]
            assert _words.said(ms) in said.splitlines()
            assert axes.get_xlim()[1] >= ms


@some
@given(st.lists(lab.photos(), min_size=1, max_size=7), st.sampled_from(THEMES))
def test_detections_draw_whatever_was_found(photos: list[Photo], name: str) -> None:
    recording = lab.with_results(built(9), photos=photos)
    if not any(photo.detected for photo in photos):
        with pytest.raises(StepMissing, match=r"build\.detect"):
            plots.detections(recording, theme=name)
        return
    lab.check(plots.detections(recording, theme=name))
    lab.check(plots.demo(recording, theme=name))


@settings(some, max_examples=8)
@given(lab.latencies, lab.builds, st.lists(lab.photos(), max_size=5), recordings())
def test_the_demo_fits_a_slide_whatever_it_holds(
    latency: Latency, build: BuildInfo | None, photos: list[Photo], recording: Recording
) -> None:
    recording = lab.with_results(recording, latency=latency, build=build, photos=photos)
    figure = plots.demo(recording)
    lab.check(figure)
    width, height = figure.get_size_inches()
    assert width / height == pytest.approx(16 / 9)


@pytest.mark.parametrize("hostile", [*HOSTILE, "$\\frac{", "$x^2$", "\\alpha", "%", "a" * 10_000])
def test_hostile_names_are_plain_text(hostile: str) -> None:
    recording = timed(
        one(hostile, "byoc", 3, setting=hostile, note=hostile, parts=[Part(hostile, 0.001)]),
        Variant(hostile, "runtime", cannot=hostile or "no"),
        note=hostile,
        machine={hostile: hostile},
    )
    photo = Photo(
        hostile, 90, 60, "", [Detected(hostile, "", [Found(hostile, 0.5, (9, 9, 50, 50))])]
    )
    recording.results.photos = [photo]
    recording.results.build = BuildInfo(hostile, hostile, stands_in_for=hostile, why=hostile)
    recording.title = recording.backend.name = recording.steps[0].name = hostile
    for op in recording.ops.values():
        op.name = hostile
    for draw in (plots.latency, plots.coverage, plots.op_profile, plots.detections, plots.demo):
        lab.check(draw(recording))


# -- what is said


def test_forty_variants_and_more_than_can_be_drawn() -> None:
    many = [one(f"variant {n}", "byoc", 1 + n, first=0.5, subgraphs=n) for n in range(60)]
    lab.check(figure := plots.latency(timed(*many[:40])))
    assert "not drawn" not in lab.words(figure)
    lab.check(figure := plots.latency(timed(*many)))
    assert "... and 12 variants more, not drawn" in lab.words(figure)
    lab.check(figure := plots.demo(timed(*many)))
    drawn = sum(f"variant {n}" in lab.words(figure).splitlines() for n in range(60))
    assert f"... and {60 - drawn} variants more, not drawn" in lab.words(figure)


@given(st.floats(0.01, 1e4), st.floats(1.0, 400.0))
@some
def test_the_axis_is_logarithmic_only_where_it_must_be_and_says_so(ms: float, by: float) -> None:
    figure = plots.latency(timed(one("a", "byoc", ms), one("b", "tvm", ms * by)))
    medians = [round(v * 1e3, 12) for v in (ms / 1e3, ms * by / 1e3)]
    log = max(medians) > 20 * min(medians)
    [axes] = lab.axes_named(figure, "latency")
    if not math.isclose(by, 20):
        assert axes.get_xscale() == ("log" if log else "linear")
        assert ("ms, logarithmic axis" in lab.words(figure)) == log
    low, high = axes.get_xlim()
    assert high > ms * by
    assert (low > 0) == (axes.get_xscale() == "log")


def test_beside_each_bar_stand_its_figures() -> None:
    figure = plots.latency(
        timed(
            one("TVM alone", "tvm", 50),
            one("TVM + TensorRT", "byoc", 10, subgraphs=116, boundary_bytes=3 * 2**20, first=0.013),
            one("the part", "part", 8),
            one("unknown", "byoc", 100, subgraphs=1),
            Variant("TensorRT alone", "runtime", cannot="NonMaxSuppression"),
        )
    )
    said = lab.words(figure).splitlines()
    for text in (
        "50.0 ms",
        "1×",
        "10.0 ms",
        "5.0× faster",
        "2.0× slower",
        "116",
        "3.00 MiB",
        "?",
        "first run 13.0 ms",
        "cannot: NonMaxSuppression",
        "Median of 10 runs each, in turn, after 2 runs to warm up; shorter is better",
    ):
        assert text in said, text


def test_parts_are_shares_of_the_median() -> None:
    parts = [Part("trt_0", 0.004), Part("trt_1", 0.002), Part("TVM", 0.002)]
    figure = plots.latency(timed(one("both", "byoc", 10, parts=parts), one("TVM", "tvm", 20)))
    [axes] = lab.axes_named(figure, "latency")
    drawn = [patch.get_width() for patch in lab.patches(axes, "part")]
    assert drawn == pytest.approx([5, 2.5, 2.5])
    assert "75.0% of a run in 2 subgraphs" in lab.words(figure)
    wide = plots.latency(timed(one("both", "byoc", 10, parts=parts), one("TVM", "tvm", 900)))
    [axes] = lab.axes_named(wide, "latency")
    assert not lab.patches(axes, "part"), "lengths do not add up on a logarithmic axis"
    assert "75.0% of a run in 2 subgraphs" in lab.words(wide)


def test_settings_are_groups_and_each_compares_with_its_own_tvm_alone() -> None:
    figure = plots.latency(
        timed(
            one("TVM alone", "tvm", 10),
            one("x", "byoc", 5, setting="one"),
            one("TVM alone", "tvm", 30, setting="two"),
            one("y", "byoc", 5, setting="two"),
        )
    )
    said = lab.words(figure).splitlines()
    assert {"one", "two", "2.0× faster", "6.0× faster"} <= set(said)


def test_a_stand_in_is_named() -> None:
    recording = timed(one("a", "byoc", 1))
    recording.results.build = BuildInfo(
        "onnxruntime", "ONNX Runtime", stands_in_for="TensorRT", why="no GPU"
    )
    recording.results.photos = [Photo("p", 4, 3, "", [Detected("a")])]
    for draw in (plots.latency, plots.detections, plots.demo):
        assert "ONNX Runtime stands in for TensorRT: no GPU" in lab.words(draw(recording))


def test_unknown_multiply_accumulates_are_no_zero() -> None:
    ops = {
        0: Operator(0, "relax.matmul", macs=None),
        1: Operator(1, "relax.add", macs=0),
        2: Operator(2, "relax.nn.conv2d", macs=1000),
    }
    recording = Recording(ops=ops, steps=[built_step(STEPS[-1], ops, {0: -1, 1: -1, 2: 0}, {})])
    said = lab.words(plots.op_profile(recording)).splitlines()
    assert said.count("?") == 1
    assert "1.00 k" in said, "a share of an unknown whole is not known either"
    assert "?" in lab.words(plots.coverage(recording)).splitlines()


def test_what_differs_is_shown() -> None:
    base = Detected("TVM alone", "tvm", [Found("cat", 0.9, (1, 1, 50, 50))])
    same = Detected("b", "byoc", [Found("cat", 0.9, (1, 1, 50, 50))], 0.0, 0.0)
    near = Detected("c", "byoc", [Found("cat", 0.9, (1, 1, 50, 50))], 1e-6, 0.2)
    far = Detected("d", "byoc", [Found("cat", 0.7, (1, 1, 60, 50))], 0.2, 10.0)
    other = Detected("e", "byoc", [Found("dog", 0.7, (1, 1, 60, 50))])
    failed = Detected("f", "byoc", note="no engine")

    def said(*detected: Detected) -> str:
        recording = lab.with_results(built(9), photos=[Photo("p", 90, 60, "", list(detected))])
        return " ".join(lab.words(plots.detections(recording)).split())

    assert "Both variants find the same: scores and boxes are equal" in said(base, same)
    assert "All 3 variants find the same: scores differ by at most 1.0e-06" in said(
        base, same, near
    )
    assert "Not the same as TVM alone: scores differ by at most 0.200" in said(base, same, far)
    assert "Other objects than TVM alone: 1 and 1" in said(base, other)
    assert "no engine" in said(base, failed)
    assert "Nothing found, as by a" in said(Detected("a"), Detected("b"))


def test_chosen_photos_and_variants() -> None:
    detected = [Detected("a"), Detected("b")]
    photos = [Photo(name, 9, 9, "", detected) for name in ("x", "y", "z")]
    recording = lab.with_results(built(9), photos=photos)
    for photo, variants, count in ((None, None, 6), ("y", None, 2), (["x", "z"], "b", 2)):
        figure = plots.detections(recording, photo, variants)
        assert len(lab.axes_named(figure, "photo")) == count
    with pytest.raises(StepMissing, match="'x', 'y', 'z'"):
        plots.detections(recording, "no")
    with pytest.raises(StepMissing, match="'a', 'b'"):
        plots.detections(recording, variants=["a", "no"])
    for wrong in ([], 3, [3]):
        with pytest.raises(ArgumentError):
            plots.detections(recording, wrong)  # type: ignore[arg-type]


# -- whose figure


@settings(some, max_examples=6)
@given(
    lab.latencies,
    st.lists(lab.photos(), max_size=3),
    recordings(),
    st.floats(4, 16),
    st.floats(3, 10),
    st.sampled_from([None, "constrained", "tight"]),
)
def test_given_axes_hold_all_that_is_drawn(
    latency: Latency,
    photos: list[Photo],
    recording: Recording,
    width: float,
    height: float,
    layout: str | None,
) -> None:
    recording = lab.with_results(recording, latency=latency, photos=photos)
    for draw in (plots.latency, plots.coverage, plots.op_profile, plots.detections, plots.demo):
        figure = Figure(figsize=(width, height), layout=layout)
        FigureCanvasAgg(figure)
        ax = figure.add_subplot()
        try:
            assert draw(recording, ax=ax) is figure
        except (StepMissing, ArgumentError):  # of which other tests are
            continue
        lab.check(figure, ax)


def test_a_subfigure_belongs_to_its_figure() -> None:
    figure = Figure(figsize=(14, 5))
    left, right = figure.subfigures(1, 2)
    assert plots.coverage(built(20), ax=left.add_subplot()) is figure
    assert plots.op_profile(built(20), ax=right.add_subplot(), theme="dark") is figure
    lab.check(figure)


def test_what_is_no_axes_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"figure\.subplots"):
        plots.coverage(built(20), ax=3)  # type: ignore[arg-type]
    small = Figure(figsize=(2, 1)).add_subplot()
    with pytest.raises(ArgumentError, match="too small"):
        plots.coverage(built(20), ax=small)


@pytest.mark.parametrize("name", THEMES)
def test_the_page_has_the_colour_of_the_theme(name: str) -> None:
    figure = plots.coverage(built(20), theme=name)
    assert matplotlib.colors.to_hex(figure.get_facecolor()) == theme(name).page
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_an_unknown_theme_is_refused() -> None:
    with pytest.raises(ValueError, match="'light' or 'dark'"):
        plots.coverage(built(20), theme="neon")


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_it_is_written_in_any_form(kind: str) -> None:
    made = io.BytesIO()
    plots.demo(timed(one("a", "byoc", 1))).savefig(made, format=kind)
    assert len(made.getvalue()) > 1000


def test_settings_of_pyplot_change_nothing() -> None:
    recording = timed(one("a", "byoc", 1), one("b", "tvm", 100))
    plain = plots.latency(recording)._repr_png_()
    odd = {
        "text.usetex": True,
        "axes.grid": True,
        "axes.facecolor": "red",
        "font.family": "monospace",
        "figure.constrained_layout.use": True,
        "text.color": "red",
        "lines.linestyle": "--",
        "lines.marker": "s",
    }
    with matplotlib.rc_context(odd):
        assert plots.latency(recording)._repr_png_() == plain


# -- errors, and what is not imported


def test_what_is_missing_is_named_with_the_mend() -> None:
    recording = built(20)
    for draw, mend in (
        (plots.latency, r"build\.latency\(inputs\)"),
        (plots.detections, r"build\.detect\(photos\)"),
        (plots.demo, r"build\.latency\(inputs\), or build\.detect\(\)"),
    ):
        with pytest.raises(StepMissing, match=mend):
            draw(recording)
    with pytest.raises(StepMissing, match="its steps: import, prepare"):
        plots.op_profile(recording, "no")
    for wrong in (0, 41, True, 1.5):
        with pytest.raises(ArgumentError, match="from 1 to 40"):
            plots.op_profile(recording, top=wrong)  # type: ignore[arg-type]
    assert plots.op_profile(recording, recording.steps[0], 3) is not None


def test_neither_pyplot_nor_settings_are_touched() -> None:
    script = """
import sys, byocviz
assert "matplotlib" not in sys.modules
byocviz.plots
assert "matplotlib" not in sys.modules
import matplotlib
def now():  # the backend is left out: to read it is to choose one
    return {key: matplotlib.rcParams[key] for key in matplotlib.rcParams if key != "backend"}
before = now()
from tests.recording.strategies import built
byocviz.plots.coverage(built(9))
assert "matplotlib.pyplot" not in sys.modules
assert now() == before
"""
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)


def test_without_matplotlib_the_extra_is_named() -> None:
    script = """
import sys
sys.modules["matplotlib"] = None
import byocviz
from tests.recording.strategies import built
for draw in (byocviz.plots.coverage, byocviz.plots.latency, byocviz.plots.demo,
             byocviz.plots.detections, byocviz.plots.op_profile):
    try:
        draw(built(9))
    except byocviz.errors.MissingPackage as error:
        assert "[plots]" in str(error)
    else:
        raise SystemExit("no error")
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_every_plot_is_public() -> None:
    assert byocviz.plots is plots
    for name in plots.__all__:
        assert callable(getattr(plots, name))
