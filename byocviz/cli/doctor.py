"""``byocviz doctor``: what is installed, and how to get the rest."""

from __future__ import annotations

import argparse
from typing import Any

from byocviz.cli.shared import json_flag, print_json


def add(commands: Any) -> None:
    """Make the command known."""
    parser = commands.add_parser("doctor", help="what is installed, and how to get the rest")
    json_flag(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from byocviz.doctor import examine

    findings = examine()
    if arguments.json:
        print_json(findings)
    else:
        width = max(len(f.name) for f in findings)
        for finding in findings:
            print(f"{finding.state:7} {finding.name:{width}}  {finding.value}")
            if finding.mend and finding.state != "ok":
                for line in finding.mend.split("\n"):
                    print(f"{'':8}{'':{width}}  -> {line}")
    return 1 if any(f.state == "broken" for f in findings) else 0
