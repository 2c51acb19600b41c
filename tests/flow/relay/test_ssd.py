"""GluonCV's SSD of the demo: the figures that the demo tells."""

from __future__ import annotations

from tests.relay import needs_relay

needs_relay()

import pytest  # noqa: E402

import byocviz  # noqa: E402
from tests.corpus_relay import ssd  # noqa: E402

from .properties import check_all, check_calls  # noqa: E402

if not ssd.available():
    pytest.skip(
        "mxnet and gluoncv are not installed: pip install mxnet==1.9.1 gluoncv==0.5.0",
        allow_module_level=True,
    )


pytestmark = ssd.together


@pytest.fixture(scope="module")
def recording():
    return ssd.recording()


def test_the_demo_s_figures(recording):
    """The demo of 2020 told of ten subgraphs before pruning; TVM 0.19 makes five."""
    assert recording.failed is None
    assert recording.step("import").profile.total == ssd.OPERATORS
    assert len(recording.backend.rules) == len({r.name for r in recording.backend.rules})
    assert len(recording.step("partition").subgraphs) == 5
    (subgraph,) = recording.last.subgraphs
    assert subgraph.ops["nn.conv2d"] == ssd.CONVOLUTIONS
    assert recording.step("import").profile.ops["nn.conv2d"] == ssd.CONVOLUTIONS
    assert recording.last.profile.coverage_macs == 1.0


def test_tensorrt_s_table_has_59_rules():
    from byocviz.backends import relay_table

    assert len(relay_table.rules(relay_table.get("tensorrt"))) == 59


def test_properties(recording):
    check_all(recording)
    check_calls(recording, ssd.load()[1])
    # What TVM's checks log is what the reasons say.
    refused = [r for r in recording.last.reasons.values() if r.code == "check-refused"]
    assert refused
    assert all(r.evidence.get("logged") for r in refused)


def test_round_trip(recording, tmp_path):
    assert byocviz.load(recording.save(tmp_path / "ssd")) == recording
    assert recording.to_html(tmp_path / "ssd.html").stat().st_size > 100_000
