"""``byocviz build``: record a model, build it, check and time it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from byocviz.building.names import RUNTIMES
from byocviz.cli import record
from byocviz.cli.shared import json_flag, readable, say, say_saved
from byocviz.errors import ByocvizError


def add(commands: Any) -> None:
    """Make the command known."""
    parser = commands.add_parser(
        "build", help="record a model, build it for a runtime, check and time it"
    )
    record.arguments(parser)
    parser.add_argument(
        "--runtime",
        default="auto",
        choices=["auto", *RUNTIMES],
        help="what executes the subgraphs; auto: TensorRT where it can run, else ONNX Runtime in "
        "its place",
    )
    parser.add_argument(
        "--target", type=_value, help='what TVM compiles the rest for: llvm, cuda, {"kind": ...}'
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        type=_option,
        help="an option of the runtime, as fp16=true; may be given more than once",
    )
    parser.add_argument(
        "--inputs", metavar="FILE.npz", help="arrays by parameter name (default: seeded ones)"
    )
    parser.add_argument("--no-check", action="store_true", help="do not compare with TVM alone")
    parser.add_argument("--no-latency", action="store_true", help="do not time it")
    parser.add_argument("--rounds", type=int, default=20, help="rounds that are timed (20)")
    parser.add_argument("--warmup", type=int, default=3, help="rounds before these (3)")
    parser.add_argument(
        "--time-limit", type=float, default=600.0, metavar="SECONDS", help="for one engine (600)"
    )
    parser.add_argument("--no-cache", action="store_true", help="build engines anew")
    parser.add_argument("--save", metavar="FOLDER", help="keep the build: byocviz.load_build")
    parser.add_argument("--plot", metavar="FILE", help="the latency figure (.png, .svg or .pdf)")
    json_flag(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Record, build, check, time, save, print."""
    from byocviz.building.build import build

    output = record.place(arguments)
    inputs = _inputs(arguments.inputs) if arguments.inputs else None
    recording = record.recorded(arguments)
    built = None
    if recording.failed is None:
        try:
            built = build(
                recording,
                runtime=arguments.runtime,
                target=arguments.target,
                options=dict(arguments.option),
                time_limit=arguments.time_limit,
                cache=not arguments.no_cache,
            )
            runs = not built.info.cannot_run
            if not runs:
                print(f"Not checked, not timed: {built.info.cannot_run}", file=sys.stderr)
            if runs and not arguments.no_check:
                built.check(inputs)
            if runs and not arguments.no_latency:
                built.latency(inputs, repeat=arguments.rounds, warmup=arguments.warmup)
        except ByocvizError:
            # What was recorded is not lost with the build, nor is an earlier recording.
            if not output.exists():
                say_saved(recording.save(output))
            raise
    path = recording.save(output)
    say(recording, arguments.json)
    say_saved(path)
    if built is not None and arguments.save:
        say_saved(built.save(arguments.save))
    if arguments.plot and recording.results.latency is not None:
        say_saved(_plot(recording, arguments.plot))
    check = recording.results.check
    beyond = check is not None and any(one.exceeds for one in check.differences)
    return 1 if recording.failed or beyond else 0


def _plot(recording: Any, path: str) -> Path:
    from byocviz.render import plots

    try:
        plots.latency(recording).savefig(path)
    except (OSError, ValueError) as error:
        raise ByocvizError(
            f"{path} cannot be written: {error}", "Name a file that ends in .png, .svg or .pdf."
        ) from error
    return Path(path)


def _inputs(path: str) -> dict[str, Any]:
    import numpy as np

    try:
        with np.load(readable(path), allow_pickle=False) as found:
            return {name: found[name] for name in found.files}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise ByocvizError(
            f"{path} holds no arrays by name: {error}",
            "Write it with numpy.savez(path, name=array).",
        ) from error


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _option(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not name or not sign:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, _value(value)
