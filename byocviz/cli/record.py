"""``byocviz record``, and the arguments that recording takes in other commands."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byocviz.cli.shared import json_flag, readable, say, say_saved, writable
from byocviz.errors import ByocvizError

if TYPE_CHECKING:
    from byocviz.recording import Recording


def add(commands: Any) -> None:
    """Make the command known."""
    parser = commands.add_parser(
        "record", help="walk a model through every step and save the recording"
    )
    arguments(parser)
    json_flag(parser)
    parser.set_defaults(run=run)


def arguments(parser: argparse.ArgumentParser) -> None:
    """What says which model is recorded, how, and where it is saved."""
    parser.add_argument("model", help="an ONNX, TFLite or .pt2 file, or a module saved by TVM")
    parser.add_argument("-o", "--output", help="where to save (default: MODEL.byocviz)")
    parser.add_argument("-b", "--backend", default="tensorrt", help="default: tensorrt")
    parser.add_argument("--entry", default="main", help="the entry function (default: main)")
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=1,3,300,300",
        type=_shape,
        help="fix the shape of an input; may be given more than once",
    )
    parser.add_argument(
        "--off", action="append", default=[], metavar="RULE", help="switch a rule off"
    )
    parser.add_argument(
        "--on",
        action="append",
        default=[],
        metavar="RULE",
        help="switch a rule on that the backend has off",
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="RULE", help="leave only these rules on"
    )
    parser.add_argument("--no-prepare", action="store_true", help="leave the prepare step out")
    parser.add_argument(
        "--no-rewrite",
        action="append",
        default=[],
        metavar="NAME",
        help="leave one rewrite of the prepare step out",
    )
    parser.add_argument("--no-prune", action="store_true", help="give no subgraph back to TVM")
    parser.add_argument(
        "--min-ops", type=int, metavar="N", help="subgraphs of fewer operators go back to TVM"
    )
    parser.add_argument(
        "--min-macs",
        type=int,
        metavar="N",
        help="subgraphs of fewer multiply-accumulates go back to TVM",
    )
    parser.add_argument(
        "--lowerable",
        action="store_true",
        help="take only what can be lowered to ONNX, and so be built",
    )
    parser.add_argument(
        "--verify", action="store_true", help="compile and run each step on the CPU and compare"
    )
    parser.add_argument(
        "--blockers", action="store_true", help="find what each operator left on TVM costs"
    )
    parser.add_argument("--title", help="default: the file's name")


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, numbers = text.rpartition("=")
    try:
        shape = tuple(int(number) for number in numbers.split(",") if number.strip())
    except ValueError:
        shape = ()
    if not name or not shape or min(shape) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=SIZE,SIZE,... with sizes above 0")
    return name, shape


def place(arguments: argparse.Namespace) -> Path:
    """Where the recording is saved. Raises where nothing could be written there."""
    stem = Path(readable(arguments.model)).stem or "model"
    return writable(f"{stem}.byocviz" if arguments.output is None else arguments.output)


def possible(arguments: argparse.Namespace) -> None:
    """Refuse what cannot be recorded whatever the model, before the model is read."""
    from byocviz import backends

    if arguments.only and (arguments.on or arguments.off):
        raise ByocvizError("--only cannot go with --on or --off.", "It names all rules that stay.")
    for name, least in (("--min-ops", arguments.min_ops), ("--min-macs", arguments.min_macs)):
        if least is not None and not 0 <= least < 2**63:
            raise ByocvizError(f"{name} is {least}.", "Give a whole number, 0 or more.")
    try:
        from byocviz.flow.relax.prepare import rewrite
    except ImportError:
        return  # Relay's rules are those of its own table; what is not installed is said later

    chosen = backends.get(arguments.backend)

    for name in arguments.no_rewrite:
        rewrite(name)
    chosen.rules(_switches(arguments))


def _switches(arguments: argparse.Namespace) -> Any:
    switches = dict.fromkeys(arguments.off, False) | dict.fromkeys(arguments.on, True)
    return arguments.only or switches or None


def loaded(arguments: argparse.Namespace) -> Any:
    """The model as a module."""
    from byocviz import models

    return models.load(readable(arguments.model), shapes=dict(arguments.shape) or None)


def recorded(arguments: argparse.Namespace, module: Any = None) -> Recording:
    """Record as the arguments say; ``module`` is the model where it was loaded already."""
    from byocviz import backends
    from byocviz.flow.record import record
    from byocviz.recording import PrunePolicy

    prune: bool | PrunePolicy = not arguments.no_prune
    if arguments.min_ops is not None or arguments.min_macs is not None:
        own = backends.get(arguments.backend).prune
        prune = PrunePolicy(own.require_macs, arguments.min_ops or 0, arguments.min_macs or 0)
    recording = record(
        loaded(arguments) if module is None else module,
        arguments.backend,
        entry=arguments.entry,
        rules=_switches(arguments),
        prepare=False if arguments.no_prepare else dict.fromkeys(arguments.no_rewrite, False),
        prune=prune,
        lowerable=arguments.lowerable,
        verify=arguments.verify,
        title=arguments.title or Path(arguments.model).stem or "model",
    )
    if arguments.blockers and recording.failed is None:
        recording.blockers()
    return recording


def run(arguments: argparse.Namespace) -> int:
    """Record, save, print."""
    output = place(arguments)
    possible(arguments)
    recording = recorded(arguments)
    path = recording.save(output)
    say(recording, arguments.json)
    say_saved(path)
    return 1 if recording.failed else 0
