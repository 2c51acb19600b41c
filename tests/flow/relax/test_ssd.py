"""The bundled SSD through the whole flow."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest

import byocviz
from byocviz.demo import demo
from byocviz.models import ssd

from . import properties

pytestmark = pytest.mark.xdist_group("ssd")  # in one process it is made once
NMS = "relax.vision.all_class_non_max_suppression"


@pytest.fixture(scope="module")
def raw() -> byocviz.Recording:
    return byocviz.record(ssd.load(), prepare=False, prune=False, progress=False)


@pytest.fixture(scope="module")
def prepared() -> byocviz.Recording:
    return byocviz.record(ssd.load(), progress=False)


def test_as_imported(raw: byocviz.Recording) -> None:
    properties.check_all(raw)
    profile = raw.step("import").profile
    assert profile.total == 705
    assert profile.ops["relax.nn.conv2d"] == 88


def test_tvms_own_entry_point_gives_the_same_subgraphs(raw: byocviz.Recording) -> None:
    from tvm import relax
    from tvm.relax.backend.contrib.tensorrt import partition_for_tensorrt

    partitioned = partition_for_tensorrt(ssd.load())
    called = [
        call.op.name_hint
        for block in partitioned["main"].body.blocks
        for binding in block.bindings
        if isinstance(call := binding.value, relax.Call)
        and (attrs := getattr(partitioned.functions.get(call.op), "attrs", None))
        and "Codegen" in attrs
    ]
    assert sorted(called) == sorted(s.function for s in raw.last.subgraphs)


def test_equal_composites_keep_their_operators_apart(raw: byocviz.Recording) -> None:
    composites = [f for f in raw.step("composite").functions if f.kind == "composite"]
    made = [p for p in raw.step("composite").places.values() if p.composite]
    assert len(composites) < len(made), "TVM keeps one of equal composite functions"


def test_prepared_and_pruned(prepared: byocviz.Recording) -> None:
    properties.check_all(prepared)
    properties.check_calls(prepared)
    last = prepared.last
    assert sum(s.ops.get("relax.nn.conv2d", 0) for s in last.subgraphs) == 88
    assert len(last.subgraphs) == 1
    assert [prepared.ops[i].name for i in last.reasons] == [NMS]
    rewrites = {r.name: r for r in prepared.step("prepare").rewrites}
    assert rewrites["clip"].count == 59
    assert rewrites["clip"].assumes
    assert rewrites["nary"].count == 10


def test_what_was_rewritten_points_to_what_replaced_it(prepared: byocviz.Recording) -> None:
    for operator in prepared.operators():
        if operator.fate_by == "clip" and operator.name == "relax.call_tir":
            (successor,) = prepared.successors_of(operator.id)
            assert prepared.ops[successor].name == "relax.clip"
    folded = [o for o in prepared.operators() if o.fate == "folded"]
    assert {o.name for o in folded} == {"relax.reshape"}


def test_the_file_is_small_and_holds_no_weight(
    prepared: byocviz.Recording, raw: byocviz.Recording, tmp_path: Path
) -> None:
    for recording in (prepared, raw):
        path = recording.save(tmp_path / "ssd")
        assert path.stat().st_size < 300_000
        assert recording.weights.bytes > 17_000_000
        assert byocviz.load(path) == recording


def test_it_opens_where_no_tvm_is(prepared: byocviz.Recording, tmp_path: Path) -> None:
    path = prepared.save(tmp_path / "ssd")
    script = (
        "import sys\n"
        "sys.modules['tvm'] = None\n"
        "import byocviz\n"
        f"recording = byocviz.load({str(path)!r})\n"
        "print(recording.last.profile.subgraphs, len(recording.summary()) > 500)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", "True"]


def test_the_demos_figures_come_from_its_recordings(tmp_path: Path) -> None:
    found = demo(tmp_path / "ssd.byocviz")
    figures = found.figures
    assert figures["operators_imported"] == 705
    assert figures["subgraphs_as_imported"] == figures["subgraphs_partition_for_tensorrt"]
    assert figures["conv2d_offloaded"] == figures["conv2d"] == 88
    assert figures["operators_on_tvm"] == {NMS: 1}
    assert figures["subgraphs"] == 1 or figures["kept_apart_by"]
    assert found.path.exists()
    assert 500_000 < found.page.stat().st_size < 1_500_000
    assert "705 operators at import" in found.text()


def test_what_keeps_the_imported_subgraphs_apart(raw: byocviz.Recording) -> None:
    """Every pair that meets names the operators on TVM between, and they do lie between."""
    step = raw.step("merge")
    users: dict[int, set[int]] = {}
    for maker, user in properties.connections(step):
        users.setdefault(maker, set()).add(user)
    assert len(step.separations) >= len(step.subgraphs) - 1
    for separation in step.separations:
        if not separation.path:
            continue
        first, second = step.subgraphs[separation.a], step.subgraphs[separation.b]
        trail = [set(first.op_ids), *({i} for i in separation.path), set(second.op_ids)]
        for makers, readers in itertools.pairwise(trail):
            assert any(users.get(maker, set()) & readers for maker in makers)


def test_the_blockers_of_the_imported_ssd_name_the_clamps(raw: byocviz.Recording) -> None:
    blockers = raw.blockers()
    assert blockers[0].op == "relax.call_tir"
    assert blockers[0].gain > 0
    gains = [b.gain for b in blockers]
    assert gains == sorted(gains, reverse=True)
