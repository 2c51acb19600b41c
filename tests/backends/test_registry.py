"""Backends, their rules, and how they are found."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest
from tvm.relax.backend.pattern_registry import get_patterns_with_prefix
from tvm.relax.dpl import is_op, wildcard

from byocviz import backends
from byocviz.backends import Backend
from byocviz.backends.tvm_table import loadable
from byocviz.errors import BackendError
from byocviz.recording import PrunePolicy


def relu() -> list[object]:
    return [("chip.relu", is_op("relax.nn.relu")(wildcard()))]


@pytest.fixture
def registered() -> Iterator[Backend]:
    backend = Backend("chip", relu)
    backends.register(backend)
    yield backend
    backends._registered.pop("chip")


def test_tensorrt_is_tvms_own_table_in_its_order() -> None:
    backend = backends.get("tensorrt")
    assert [rule.name for rule in backend.rules()] == [
        str(p.name) for p in get_patterns_with_prefix("tensorrt")
    ]
    assert backend.prune == PrunePolicy(require_macs=True)


def test_the_table_is_read_anew(registered: Backend) -> None:
    from tvm.relax.backend.pattern_registry import register_patterns

    before = len(backends.get("tensorrt").rules())
    name = "tensorrt.byocviz_test"
    register_patterns([(name, is_op("relax.nn.leakyrelu")(wildcard()))])
    try:
        rules = backends.get("tensorrt").rules()
        assert len(rules) == before + 1
        assert rules[0].name == name, "what is registered later comes first"
    finally:
        from tvm.relax.backend import _ffi_api

        _ffi_api.RemovePatterns([name])


def test_names(registered: Backend) -> None:
    assert {"chip", "tensorrt", "tutorial"} <= set(backends.names())
    assert backends.get("chip") is registered
    assert backends.get(registered) is registered


def test_a_function_that_makes_one() -> None:
    backends.register(lambda: Backend("chip", relu), name="made")
    try:
        assert backends.get("made").name == "chip"
    finally:
        backends._registered.pop("made")
    with pytest.raises(BackendError, match="name"):
        backends.register(lambda: Backend("made", relu))


def test_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("mine", "byocviz.backends.tutorial:backend", backends.GROUP)
    broken = EntryPoint("broken", "byocviz.no_such_module:backend", backends.GROUP)
    monkeypatch.setattr(backends, "entry_points", lambda group: [point, broken])
    assert backends.get("mine").name == "tutorial"
    with pytest.raises(BackendError, match="no_such_module"):
        backends.get("broken")


def test_from_tvm() -> None:
    assert Backend.from_tvm("tensorrt").rules()
    with pytest.raises(BackendError, match=r"no_such_chip[\s\S]*tensorrt"):
        Backend.from_tvm("no_such_chip")


def test_an_unknown_name_offers_a_near_one() -> None:
    with pytest.raises(BackendError, match=r"tensorr\b[\s\S]*tensorrt"):
        backends.get("tensorr")
    with pytest.raises(BackendError, match="int"):
        backends.get(7)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("patterns", "said"),
    [
        ([], "no rules"),
        ([("chip.relu",)], "Rule 0"),
        ([("relu", is_op("relax.nn.relu")(wildcard()))], r"belong[\s\S]*chip\.relu"),
        ([("other.relu", is_op("relax.nn.relu")(wildcard()))], r"belong[\s\S]*chip\.relu"),
        (None, "NoneType"),
        ([object()], "Rule 0"),
    ],
    ids=["empty", "short", "no prefix", "another prefix", "none", "no pattern"],
)
def test_tables_that_cannot_be_used(patterns: list[object], said: str) -> None:
    with pytest.raises(BackendError, match=said):
        Backend("chip", lambda: patterns).rules()


def test_switches() -> None:
    backend = Backend("chip", lambda: [*relu(), ("chip.tanh", is_op("relax.tanh")(wildcard()))])
    assert [r.enabled for r in backend.rules()] == [True, True]
    assert [r.enabled for r in backend.rules({"relu": False})] == [False, True]
    assert [r.enabled for r in backend.rules(["chip.tanh"])] == [False, True]
    assert [r.enabled for r in backend.rules("tanh")] == [False, True]
    with pytest.raises(BackendError, match=r"tan\b[\s\S]*tanh"):
        backend.rules({"tan": True})
    quiet = Backend("chip", relu, off=frozenset({"chip.relu"}))
    assert [r.enabled for r in quiet.rules()] == [False]
    assert [r.enabled for r in quiet.rules({"relu": True})] == [True]


def test_a_table_may_be_a_list() -> None:
    assert [r.name for r in Backend("chip", relu()).rules()] == ["chip.relu"]


def test_with_rules() -> None:
    tanh = ("chip.tanh", is_op("relax.tanh")(wildcard()))
    backend = Backend("chip", relu)
    assert [r.name for r in backend.with_rules(tanh).rules()] == ["chip.relu", "chip.tanh"]
    assert [r.name for r in backend.with_rules(tanh, first=True).rules()] == [
        "chip.tanh",
        "chip.relu",
    ]
    assert len(backend.rules()) == 1
    assert len(backends.get("tensorrt").with_rules(("tensorrt.x", tanh[1])).rules()) == 1 + len(
        backends.get("tensorrt").rules()
    )


def test_the_policy_goes_with_the_table() -> None:
    assert Backend.from_tvm("tensorrt").prune.require_macs
    assert not Backend.from_tvm("tensorrt", prune=PrunePolicy()).prune.require_macs


def test_what_is_unknown_to_tvm_lists_what_doctor_does() -> None:
    with pytest.raises(BackendError) as error:
        Backend.from_tvm("nosuch")
    assert ", ".join(loadable()) in error.value.mend
    assert {"tensorrt", "cutlass", "cublas"} <= {*loadable()}


def test_the_text_of_a_backend_gives_it(registered: Backend) -> None:
    for name in ("tensorrt", "tutorial", "onnxruntime", "chip", "cutlass"):
        assert backends.by_name(backends.get(name)) == f'byocviz.backends.get("{name}")'
    tanh = ("chip.tanh", is_op("relax.tanh")(wildcard()))
    assert backends.by_name(registered.with_rules(tanh)) == "backend"
    assert backends.by_name(Backend("nosuch", [("nosuch.tanh", tanh[1])])) == "backend"


def test_relay_s_tables_are_there_by_name() -> None:
    alone = "import byocviz; print(byocviz.backends.relay_table.tensorrt.__name__)"
    done = subprocess.run([sys.executable, "-c", alone], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "tensorrt"
