"""What a rule for an operator left on TVM would change, against recording with that rule."""

from __future__ import annotations

from tests.relay import needs_relay

needs_relay()

import pytest  # noqa: E402

import byocviz  # noqa: E402
from byocviz.backends import relay_table  # noqa: E402
from tests.corpus_relay import CASES  # noqa: E402
from tests.corpus_relay.straight import cut_in_two, cycle  # noqa: E402

from tests.corpus_relay.case import main  # isort: skip  # noqa: E402

SOME = [c for c in CASES if "random" in c.tags][:6]


def test_a_cut_is_closed():
    recording = byocviz.record(main(cut_in_two()), progress=False)
    (blocker,) = recording.blockers()
    assert (blocker.op, blocker.subgraphs_now, blocker.subgraphs) == ("round", 2, 1)
    assert blocker.gain == 1
    assert blocker.coverage_ops == 1.0


def test_the_policy_applies():
    recording = byocviz.record(main(cycle()), progress=False)
    (blocker,) = recording.blockers()
    assert (blocker.subgraphs_now, blocker.subgraphs) == (1, 1)


@pytest.mark.parametrize("case", SOME, ids=str)
def test_it_is_what_recording_with_the_rule_gives(case):
    recording = byocviz.record(case.build(), prune=False, progress=False)
    for blocker in recording.blockers():
        assert not blocker.error
        rule = (f"tensorrt.{blocker.op}", blocker.op)
        again = byocviz.record(
            case.build(), relay_table.get("tensorrt").with_rules(rule), prune=False, progress=False
        )
        assert blocker.subgraphs == len(again.last.subgraphs)
        assert blocker.coverage_ops == again.last.profile.coverage_ops
        assert blocker.boundary_bytes == (
            again.last.profile.bytes_in + again.last.profile.bytes_out
        )
