"""``byocviz build``: record a model, build it, check and time it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byocviz.building.names import RUNTIMES
from byocviz.cli import record
from byocviz.cli.shared import (
    figure_to_write,
    json_flag,
    page_to_write,
    readable,
    say,
    say_saved,
    writable,
)
from byocviz.errors import ByocvizError, ModelError

if TYPE_CHECKING:
    from byocviz.building.built import Build
    from byocviz.recording import Recording


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
    parser.add_argument("--rounds", type=_count(1), default=20, help="rounds that are timed (20)")
    parser.add_argument("--warmup", type=_count(0), default=3, help="rounds before these (3)")
    parser.add_argument(
        "--time-limit",
        type=_seconds,
        default=600.0,
        metavar="SECONDS",
        help="for one engine (600)",
    )
    parser.add_argument("--no-cache", action="store_true", help="build engines anew")
    parser.add_argument("--save", metavar="FOLDER", help="keep the build: byocviz.load_build")
    parser.add_argument(
        "--detect",
        action="append",
        default=[],
        metavar="PHOTO",
        help="what the model finds in a photo: the bundled SSD, one that takes and gives the same, "
        "or one of import-gluoncv; may be given more than once",
    )
    parser.add_argument(
        "--plot",
        metavar="FILE",
        help="a figure of the latency, and with --detect of what is found (.png, .svg or .pdf)",
    )
    parser.add_argument("--html", metavar="FILE", help="the recording as a page (.html)")
    json_flag(parser)
    parser.set_defaults(run=run)


@dataclass
class _Wanted:
    """What is written and put in, checked before an hour's work is done for it."""

    output: Path
    inputs: dict[str, Any] | None
    plot: Path | None
    html: Path | None
    photos: list[str]
    detector: Any
    """Of the model, where it says itself how it is fed and read; None: the bundled SSD's."""


def run(arguments: argparse.Namespace) -> int:
    """Record, build, check, time, save, print."""
    wanted = _wanted(arguments)
    module = record.loaded(arguments)
    _must_fit(module, arguments.entry, wanted)
    recording = record.recorded(arguments, module)
    built = None
    if recording.failed is None:
        try:
            built = _built(recording, arguments, wanted)
        except BaseException:
            _keep(recording, wanted.output)
            raise
    say_saved(recording.save(wanted.output))
    if built is not None and arguments.save is not None:
        say_saved(built.save(arguments.save))
    results = recording.results
    if wanted.html is not None:
        say_saved(recording.to_html(wanted.html))
    if wanted.plot is not None and (results.latency is not None or results.photos):
        say_saved(_plot(recording, wanted.plot))
    say(recording, arguments.json)
    beyond = results.check is not None and any(one.exceeds for one in results.check.differences)
    return 1 if recording.failed or beyond else 0


def _wanted(arguments: argparse.Namespace) -> _Wanted:
    from byocviz.building.build import possible
    from byocviz.building.runtimes import chosen_for
    from byocviz.building.runtimes.base import usable
    from byocviz.building.saved import replaceable

    output = record.place(arguments)
    record.possible(arguments)
    possible(arguments.target)
    usable(chosen_for(arguments.runtime, arguments.backend, dict(arguments.option))[0].runtime)
    if arguments.save is not None:
        replaceable(arguments.save)
    if arguments.plot is not None and arguments.no_latency and not arguments.detect:
        raise ByocvizError(
            "--plot draws the latency, and --no-latency leaves it out.", "Leave one of them out."
        )
    return _Wanted(
        output=output,
        inputs=None if arguments.inputs is None else _inputs(arguments.inputs),
        plot=None if arguments.plot is None else figure_to_write(arguments.plot),
        html=None if arguments.html is None else page_to_write(arguments.html),
        photos=[_photo(path) for path in arguments.detect],
        detector=_detector(arguments.model) if arguments.detect else None,
    )


def _photo(path: str) -> str:
    """The path of a photo that can be opened."""
    from byocviz.models._photo import photo

    photo(readable(path))
    return path


def _detector(model: str) -> Any:
    """How photos go into the model and boxes come out, where it says so."""
    from byocviz import models

    try:
        return models.detector(model)
    except ModelError:
        return None


def _must_fit(module: Any, entry: str, wanted: _Wanted) -> None:
    """Refuse arrays and photos that the model does not take, before it is recorded."""
    before = wanted.detector
    if wanted.photos and before is None:
        from byocviz.models import ssd as before
    photos = [before.preprocess(photo) for photo in wanted.photos]
    try:
        from tvm import relax
    except ImportError:
        return  # of Relay; what takes the inputs says so later
    names = {str(var.name_hint): var for var in module.get_global_vars()}
    function = module[names[entry]] if entry in names else None
    if not isinstance(function, relax.Function):
        return  # said where it is recorded
    from byocviz.building.tensors import checked

    if wanted.inputs is not None:
        checked(function, entry, wanted.inputs)
    if photos:
        try:
            checked(function, entry, photos[0])
        except ByocvizError as error:
            what = "the model says it takes" if wanted.detector else "the bundled SSD takes"
            raise ByocvizError(
                f"--detect gives a photo as {what}, and this model takes another: {error.message}",
                "Give its own in Python: build.detect(photos, preprocess=..., postprocess=...).",
            ) from error


def _built(recording: Recording, arguments: argparse.Namespace, wanted: _Wanted) -> Build:
    """The build, and all that is asked of it in the recording."""
    from byocviz.building.build import build

    built = build(
        recording,
        runtime=arguments.runtime,
        target=arguments.target,
        options=dict(arguments.option),
        time_limit=arguments.time_limit,
        cache=not arguments.no_cache,
    )
    if built.info.cannot_run:
        print(f"Not checked, not timed: {built.info.cannot_run}", file=sys.stderr)
        return built
    if not arguments.no_check:
        built.check(wanted.inputs)
    if not arguments.no_latency:
        built.latency(wanted.inputs, repeat=arguments.rounds, warmup=arguments.warmup)
    if wanted.photos:
        own = wanted.detector
        around = {"preprocess": own.preprocess, "postprocess": own.postprocess} if own else {}
        built.detect(wanted.photos, **around)
    return built


def _keep(recording: Recording, output: Path) -> None:
    """What was recorded is not lost with the build, nor is an earlier recording."""
    path = output
    if path.exists():
        path = path.with_name(f"{path.stem}-unbuilt{path.suffix}")
    try:
        say_saved(recording.save(writable(str(path))))
    except ByocvizError as error:
        print(f"byocviz: the recording is lost: {error.message}", file=sys.stderr)


def _plot(recording: Recording, path: Path) -> Path:
    from byocviz.render import plots

    draw = plots.demo if recording.results.photos else plots.latency
    try:
        draw(recording).savefig(path)
    except (OSError, ValueError) as error:
        if isinstance(error, ByocvizError):
            raise
        raise ByocvizError(
            f"{path} cannot be written: {error}", "Name a file that ends in .png, .svg or .pdf."
        ) from error
    return path


def _inputs(path: str) -> dict[str, Any]:
    import numpy as np

    try:
        with np.load(readable(path), allow_pickle=False) as found:
            return {name: found[name] for name in found.files}
    except ByocvizError:
        raise
    except Exception as error:  # zipfile, zlib and NumPy each raise their own
        raise ByocvizError(
            f"{path} holds no arrays by name: {error}",
            "Write it with numpy.savez(path, name=array).",
        ) from error


def _count(least: int) -> Callable[[str], int]:
    def count(text: str) -> int:
        try:
            found = int(text)
        except ValueError:
            found = least - 1
        if found < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} on")
        return found

    return count


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not found > 0:  # nan is not, either
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return found


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
