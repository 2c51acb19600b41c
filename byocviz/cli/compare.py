"""``byocviz compare``: two recordings side by side, by figures."""

from __future__ import annotations

import argparse
from typing import Any

from byocviz.cli.shared import json_flag, print_json


def add(commands: Any) -> None:
    """Make the command known."""
    parser = commands.add_parser(
        "compare",
        help="set two recordings side by side: two sets of rules, or Relay and Relax",
    )
    parser.add_argument("first", help="a .byocviz file")
    parser.add_argument("second", help="another")
    parser.add_argument("--step", help="the step to compare (default: the last of each)")
    json_flag(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from byocviz.recording import load
    from byocviz.recording.compare import compare_recordings

    first, second = load(arguments.first), load(arguments.second)
    steps = [arguments.step or recording.last for recording in (first, second)]
    found = compare_recordings(first, steps[0], second, steps[1])
    if arguments.json:
        print_json(found)
    else:
        print(found)
    return 0
