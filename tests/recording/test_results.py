"""The results of a recording: through the file and back, and what is refused in them."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byocviz.errors import RecordingError
from byocviz.recording import Recording, from_bytes, to_bytes
from byocviz.recording.results import (
    BuildInfo,
    Check,
    Detected,
    EngineInfo,
    Found,
    Latency,
    ModuleNode,
    Photo,
    Results,
    Variant,
)
from tests.recording.strategies import built
from tests.recording.strategies_results import recordings_with_results, with_results

IMAGE = "data:image/png;base64,iVBORw0KGgo="


@given(recordings_with_results())
def test_results_go_through_the_file_unchanged(recording: Recording) -> None:
    assert from_bytes(to_bytes(recording)) == recording


@given(recordings_with_results())
def test_results_go_into_the_page_as_they_are(recording: Recording) -> None:
    """The page's JSON says what the recording says, but that no JSON has NaN or infinity."""
    from byocviz.render.html import pages

    texts, drawn = pages(recording)
    page = msgspec.json.decode(drawn)
    shown = msgspec.convert(page["recording"].get("results", {}), Results)
    assert shown == recording.results
    for key in _keys(recording.results):
        assert key in msgspec.json.decode(texts)


def _keys(results: Results) -> list[str]:
    engines = results.build.engines if results.build else []
    return [key for e in engines for key in (e.code, e.layers) if key]


@pytest.mark.parametrize(
    ("results", "there"),
    [
        (Results(), False),
        (Results(build=BuildInfo("r", "R")), True),
        (Results(check=Check(0.0, 0.0)), True),
        (Results(latency=Latency()), True),
        (Results(photos=[Photo("p", 1, 1)]), True),
    ],
    ids=["none", "build", "check", "latency", "photos"],
)
def test_results_are_true_where_a_part_is_there(results: Results, there: bool) -> None:
    assert bool(results) is there


@pytest.mark.parametrize("figure", [math.nan, math.inf, -math.inf, -1.0, None])
def test_a_time_is_a_number_of_seconds_or_not_known(figure: float | None) -> None:
    recording = built(9)
    recording.results.latency = Latency([Variant("a", "tvm", median=figure)])
    if figure is not None:
        with pytest.raises(
            RecordingError, match=f"a time or difference of the results is {figure}"
        ):
            to_bytes(recording)
        return
    back = from_bytes(to_bytes(recording)).results.latency
    assert back is not None
    assert back.variants[0].median is None


def _built(**fields: object) -> Recording:
    recording = built(9)
    recording.results.build = BuildInfo("onnxruntime", "ONNX Runtime", **fields)  # type: ignore[arg-type]
    return recording


def _photo(width: int = 4, height: int = 3, image: str = "") -> Recording:
    recording = built(9)
    found = [Found("cat", 0.9, (0.0, 0.0, 4.0, 3.0), 16)]
    recording.results.photos = [Photo("p", width, height, image, [Detected("a", found=found)])]
    return recording


FAULTS: dict[str, tuple[Callable[[], Recording], str]] = {
    "operator": (
        lambda: _built(engines=[EngineInfo("f", [0, 8, 9])]),
        r"the engine of 'f' names operator 9",
    ),
    "negative operator": (
        lambda: _built(engines=[EngineInfo("f", [-1])]),
        r"the engine of 'f' names operator -1",
    ),
    "second engine": (
        lambda: _built(engines=[EngineInfo("f", [0]), EngineInfo("g", [77])]),
        r"the engine of 'g' names operator 77",
    ),
    "code": (
        lambda: _built(engines=[EngineInfo("f", code="onnx:f")]),
        r"the engine of 'f' names text 'onnx:f'",
    ),
    "layers": (
        lambda: _built(engines=[EngineInfo("f", layers="layers:f")]),
        r"the engine of 'f' names text 'layers:f'",
    ),
    "own parent": (lambda: _built(tree=[ModuleNode("m", parent=0)]), "module 0 .* parent 0"),
    "later parent": (
        lambda: _built(tree=[ModuleNode("m"), ModuleNode("n", parent=2), ModuleNode("o")]),
        "module 1 .* parent 2",
    ),
    "parent below": (lambda: _built(tree=[ModuleNode("m", parent=-2)]), "module 0 .* parent -2"),
    "no width": (lambda: _photo(width=0), "photo 'p' is 0 x 3"),
    "height below": (lambda: _photo(height=-3), "photo 'p' is 4 x -3"),
    "address": (lambda: _photo(image="https://example.invalid/x.png"), "no JPEG or PNG"),
    "svg": (lambda: _photo(image="data:image/svg+xml;base64,PHN2Zy8+"), "no JPEG or PNG"),
    "webp": (lambda: _photo(image="data:image/webp;base64,AAAA"), "no JPEG or PNG"),
    "html": (lambda: _photo(image="data:text/html;base64,AAAA"), "no JPEG or PNG"),
    "markup": (lambda: _photo(image=IMAGE + '" onerror="x'), "no JPEG or PNG"),
    "line end": (lambda: _photo(image=IMAGE + "\n"), "no JPEG or PNG"),
    "empty data": (lambda: _photo(image="data:image/png;base64,"), "no JPEG or PNG"),
    "not base64": (lambda: _photo(image="data:image/png,AAAA"), "no JPEG or PNG"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_results_that_contradict_themselves_are_not_written(name: str) -> None:
    make, said = FAULTS[name]
    with pytest.raises(RecordingError, match=said):
        to_bytes(make())


@pytest.mark.parametrize("name", FAULTS)
def test_results_that_contradict_themselves_are_not_read(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that another program wrote, which did not look."""
    make, said = FAULTS[name]
    with monkeypatch.context() as patched:
        patched.setattr("byocviz.recording.file.check", lambda *_: None)
        data = to_bytes(make())
    with pytest.raises(RecordingError, match=said):
        from_bytes(data)


@pytest.mark.parametrize(
    "recording",
    [
        _built(
            engines=[EngineInfo("f", [0, 8])], tree=[ModuleNode("m"), ModuleNode("n", parent=0)]
        ),
        _photo(image=IMAGE),
        _photo(image="data:image/jpeg;base64,/9j/4AAQ"),
        _photo(1, 1),
    ],
    ids=["build", "png", "jpeg", "no image"],
)
def test_what_fits_is_written(recording: Recording) -> None:
    assert from_bytes(to_bytes(recording)) == recording


@given(st.data())
def test_one_thing_that_points_nowhere_is_always_found(data: st.DataObject) -> None:
    recording = data.draw(with_results(built(9), build=True))
    build = recording.results.build
    assert build is not None
    to_bytes(recording)
    nowhere = data.draw(st.integers(9, 10**6) | st.integers(-(10**6), -1))
    if build.engines and data.draw(st.booleans()):
        data.draw(st.sampled_from(build.engines)).op_ids.append(nowhere)
    elif build.engines and data.draw(st.booleans()):
        engine = data.draw(st.sampled_from(build.engines))
        setattr(engine, data.draw(st.sampled_from(["code", "layers"])), f"no text {nowhere}")
    else:
        at = data.draw(st.integers(0, len(build.tree)))
        build.tree.insert(at, ModuleNode("m", parent=data.draw(st.integers(at, at + 9))))
    with pytest.raises(RecordingError):
        to_bytes(recording)


@pytest.mark.parametrize(
    ("set_it", "where"),
    [
        (lambda r: setattr(r.build, "lower_seconds", "long"), "results.build.lower_seconds"),
        (lambda r: setattr(r.check, "atol", None), "results.check.atol"),
        (lambda r: setattr(r.latency.variants[0], "median", "1"), r"variants\[0\].median"),
        (lambda r: setattr(r.latency.variants[0], "seconds", [None]), r"variants\[0\].seconds"),
        (lambda r: setattr(r.photos[0], "width", 2.5), r"results.photos\[0\].width"),
        (lambda r: setattr(r, "photos", None), "results.photos"),
    ],
    ids=["seconds", "tolerance", "median", "runs", "width", "photos"],
)
def test_a_field_of_another_type_is_named(set_it: Callable[[Results], None], where: str) -> None:
    recording = _photo()
    recording.results.build = BuildInfo("r", "R")
    recording.results.check = Check(1e-3, 1e-3)
    recording.results.latency = Latency([Variant("a", "tvm")])
    set_it(recording.results)
    with pytest.raises(RecordingError, match=where):
        to_bytes(recording)
