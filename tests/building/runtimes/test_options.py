"""What options and other arguments of a build cannot be is said before anything is built."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

import byocviz
from byocviz.building import runtimes
from byocviz.building.errors import BuildError, RuntimeMissing
from byocviz.building.runtimes.options import chosen
from byocviz.errors import ArgumentError
from tests.corpus import by_name

ALL = runtimes.names()


class Unspeakable:
    def __repr__(self) -> str:
        raise ZeroDivisionError


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def recording() -> byocviz.Recording:
    case = by_name("chain_cut_once")
    return byocviz.record(case.build(), case.backend, prune=False, progress=False)


@pytest.mark.parametrize("name", ALL)
def test_each_option_says_what_it_takes_and_takes_its_default(name: str) -> None:
    runtime: Any = runtimes.get(name)
    assert set(runtime.takes) == set(runtime.options)
    for option, default in runtime.options.items():
        assert chosen(runtime, {option: default}) == dict(runtime.options)
        for odd in (
            {"a": 1},
            object(),
            Unspeakable(),
            b"x",
            math.nan if option != "compute_capability" else [],
        ):
            with pytest.raises(ArgumentError) as caught:
                chosen(runtime, {option: odd})
            assert repr(option) in caught.value.message
            assert runtime.title in caught.value.message
            assert runtime.takes[option].words in caught.value.mend


@pytest.mark.parametrize(
    "options",
    [
        {"threads": "x"},
        {"threads": None},
        {"threads": -5},
        {"threads": 2.7},
        {"threads": True},
        {"threads": 10**30},
        {"threads": 10**6},
        {"threads": 10**5000},
        {"optimize": "no"},
        {"optimize": 0},
        {"spinning": None},
        {"providers": None},
        {"providers": []},
        {"providers": [1]},
        {"providers": 5},
        {"providers": {"cpu": 1}},
        {1: 2},
        {"thread": 1},
        {None: 1},
        [1],
        "threads",
        5,
    ],
    ids=lambda one: repr(one)[:40] if one != {"threads": 10**5000} else "digits",
)
@pytest.mark.parametrize("isolate", [True, False])
def test_options_that_cannot_be(
    recording: byocviz.Recording, options: Any, isolate: bool, tmp_path: Path
) -> None:
    before = recording.results.build
    with pytest.raises((ArgumentError, RuntimeMissing)) as caught:
        byocviz.build(
            recording, runtime="onnxruntime", options=options, isolate=isolate, progress=False
        )
    assert caught.value.mend
    assert len(str(caught.value)) < 400
    assert recording.results.build is before
    assert not (tmp_path / "cache").exists()  # no report for the library's makers


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"threads": np.int64(2)}, 2),
        ({"threads": 0}, 0),
        ({"providers": "cpu"}, ("cpu",)),
        ({"providers": ["cpu"]}, ("cpu",)),
    ],
)
def test_values_are_kept_plain(given: dict[str, Any], kept: Any) -> None:
    (name,) = given
    found = chosen(runtimes.get("onnxruntime"), given)[name]
    assert found == kept
    assert type(found) is type(kept)


def test_the_command_line_gives_a_compute_capability_as_a_number() -> None:
    found = chosen(runtimes.get("tensorrt-rtx"), {"compute_capability": 8.9})
    assert found["compute_capability"] == "8.9"


@pytest.mark.parametrize(
    "arguments",
    [
        {"time_limit": "x"},
        {"time_limit": -1},
        {"time_limit": 0},
        {"time_limit": math.nan},
        {"time_limit": True},
        {"cancel": 5},
        {"runtime": 5},
        {"runtime": b"tensorrt"},
        {"runtime": type(runtimes.get("onnxruntime"))},
        {"cache": 5},
        {"cache": "x\0y", "isolate": "no"},
        {"cache": b"x"},
        {"isolate": "no"},
        {"isolate": None},
        {"codegen": 5},
        {"step": 5},
        {"target": 5},
        {"target": "c"},
        {"target": {"kind": "llvm", "mtriple": "riscv64-linux-gnu"}},
        {"backend": 5},
    ],
    ids=repr,
)
def test_arguments_that_cannot_be(recording: byocviz.Recording, arguments: Any) -> None:
    before = recording.results.build
    with pytest.raises(byocviz.ByocvizError) as caught:
        byocviz.build(recording, **{"progress": False, **arguments})
    assert caught.value.mend
    assert "Send it" not in caught.value.mend
    assert recording.results.build is before


def test_they_are_said_before_anything_is_recorded(tmp_path: Path) -> None:
    for wrong in ({"options": {"threads": -1}}, {"runtime": 5}, {"time_limit": 0}):
        with pytest.raises(ArgumentError):
            byocviz.build(tmp_path / "nowhere.onnx", "onnxruntime", progress=False, **wrong)


def test_a_stand_in_checks_what_was_meant_too() -> None:
    stand_in = runtimes.Choice(runtimes.get("onnxruntime"), "TensorRT")
    assert runtimes.of_stand_in(stand_in, "tensorrt", {"fp16": True, "threads": 1}) == {
        "threads": 1
    }
    with pytest.raises(ArgumentError, match="fp16"):
        runtimes.of_stand_in(stand_in, "tensorrt", {"fp16": "yes"})


def test_limits_that_mean_something_are_taken(recording: byocviz.Recording) -> None:
    for limit in (None, math.inf, np.float32(600)):
        byocviz.build(recording, time_limit=limit, isolate=False, cache=False, progress=False)  # type: ignore[call-overload]
    with pytest.raises(BuildError, match="longer than the limit"):
        byocviz.build(recording, time_limit=1e-9, cache=False, progress=False)
