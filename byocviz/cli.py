"""The command ``byocviz``: thin commands over the same functions that scripts call."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from byocviz.errors import ByocvizError
from byocviz.version import __version__

if TYPE_CHECKING:
    from byocviz.recording import Recording


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status: 0, 1 for an error that is named, 2 for usage."""
    _terminal()
    try:
        try:
            return _run(argv)
        finally:  # argparse leaves by SystemExit
            sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has enough.
        _discard_output()
        return 141
    except OSError as error:
        _say_error(f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""))
        _discard_output()
        return 1
    except KeyboardInterrupt:
        print("byocviz: interrupted", file=sys.stderr)
        return 130


def _run(argv: Sequence[str] | None) -> int:
    parser = _parser()
    arguments = parser.parse_args(argv)
    if not hasattr(arguments, "run"):
        parser.print_help()
        return 2
    try:
        return int(arguments.run(arguments) or 0)
    except ByocvizError as error:
        _say_error(error.message, error.mend)
        return 1


def _say_error(message: str, mend: str = "") -> None:
    from byocviz.recording.printable import printable

    lines = [*message.split("\n"), *(f"  {line}" for line in mend.split("\n") if line)]
    print("byocviz: " + "\n".join(printable(line, limit=4000) for line in lines), file=sys.stderr)


def _terminal() -> None:
    """Streams and a width that can be printed to, whatever they were started with."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed, as by `>&-`
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    # rich believes any number: nothing is printed at 0, and a line of each length at millions.
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and not 0 < int(columns[:9]) <= 10_000:
        del os.environ["COLUMNS"]


def _discard_output() -> None:
    """What could not be written is not tried again at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="byocviz",
        description="See what TVM's Bring-Your-Own-Codegen flow does to a model, and why.",
    )
    parser.add_argument("--version", action="version", version=f"byocviz {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    record = commands.add_parser(
        "record", help="walk a model through every step and save the recording"
    )
    record.add_argument("model", help="an ONNX, TFLite or .pt2 file, or a module saved by TVM")
    record.add_argument("-o", "--output", help="where to save (default: MODEL.byocviz)")
    record.add_argument("-b", "--backend", default="tensorrt", help="default: tensorrt")
    record.add_argument("--entry", default="main", help="the entry function (default: main)")
    record.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=1,3,300,300",
        type=_shape,
        help="fix the shape of an input; may be given more than once",
    )
    record.add_argument(
        "--off", action="append", default=[], metavar="RULE", help="switch a rule off"
    )
    record.add_argument(
        "--on",
        action="append",
        default=[],
        metavar="RULE",
        help="switch a rule on that the backend has off",
    )
    record.add_argument(
        "--only", action="append", default=[], metavar="RULE", help="leave only these rules on"
    )
    record.add_argument("--no-prepare", action="store_true", help="leave the prepare step out")
    record.add_argument(
        "--no-rewrite",
        action="append",
        default=[],
        metavar="NAME",
        help="leave one rewrite of the prepare step out",
    )
    record.add_argument("--no-prune", action="store_true", help="give no subgraph back to TVM")
    record.add_argument(
        "--min-ops", type=int, metavar="N", help="subgraphs of fewer operators go back to TVM"
    )
    record.add_argument(
        "--min-macs",
        type=int,
        metavar="N",
        help="subgraphs of fewer multiply-accumulates go back to TVM",
    )
    record.add_argument(
        "--verify", action="store_true", help="compile and run each step on the CPU and compare"
    )
    record.add_argument(
        "--blockers", action="store_true", help="find what each operator left on TVM costs"
    )
    record.add_argument("--title", help="default: the file's name")
    _json(record)
    record.set_defaults(run=_record)

    show = commands.add_parser(
        "show", help="print a recording as text, or write it as a page or figure"
    )
    show.add_argument("recording", help="a .byocviz file, or a model to record")
    show.add_argument(
        "-o",
        "--output",
        help="write a page that opens in any browser (.html), or with --step a figure of it "
        "(.svg, .png or .dot)",
    )
    show.add_argument(
        "--step",
        help="the IR text of every function at this step; with -o: where the page opens, or what "
        "the figure is of",
    )
    show.add_argument("--function", help="with --step: this function alone")
    _json(show)
    show.set_defaults(run=_show)

    demo = commands.add_parser(
        "demo", help="record the bundled SSD (MobileNetV2, COCO) and say what became of it"
    )
    demo.add_argument(
        "-o",
        "--output",
        default="ssd.byocviz",
        help="where to save the recording (default: ssd.byocviz)",
    )
    demo.add_argument(
        "--verify",
        action="store_true",
        help="also compile and run each step on the CPU (some minutes)",
    )
    _json(demo)
    demo.set_defaults(run=_demo)

    doctor = commands.add_parser("doctor", help="what is installed, and how to get the rest")
    _json(doctor)
    doctor.set_defaults(run=_doctor)
    return parser


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON for a script")


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, numbers = text.rpartition("=")
    try:
        shape = tuple(int(number) for number in numbers.split(",") if number.strip())
    except ValueError:
        shape = ()
    if not name or not shape or min(shape) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=SIZE,SIZE,... with sizes above 0")
    return name, shape


def _print_json(value: Any) -> None:
    text = msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode()
    print(text)


def summary_data(recording: Recording) -> dict[str, Any]:
    """What ``--json`` prints of a recording: its tables as rows, without IR text and graphs."""
    from byocviz.recording import tables

    rows = tables(recording)
    return {
        "title": recording.title,
        "created": recording.created,
        "made_with": recording.made_with,
        "backend": recording.backend.name,
        "entry": recording.entry,
        "steps": rows.steps,
        "rewrites": rows.rewrites,
        "subgraphs": rows.subgraphs,
        "reasons": rows.reasons,
        "separations": rows.separations,
        "blockers": rows.blockers if recording.what_if is not None else None,
    }


def _say(recording: Recording, as_json: bool) -> None:
    if as_json:
        _print_json(summary_data(recording))
    else:
        from byocviz.render.text import print_to

        print_to(recording)


def _writable(output: str) -> Path:
    """The file to save to, before an hour's work is done for it. Refuses to write a recording
    over what is none: most likely it is somebody's model."""
    from byocviz.recording.atomic import usable
    from byocviz.recording.file import MAGIC, target

    if os.path.isdir(output):
        raise ByocvizError(f"{output} is a folder.", "Name a file: -o model.byocviz")
    path = usable(target(output))
    if path.is_file():
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise ByocvizError(
                    f"{path} is there and is no recording; it is left as it is.",
                    "Name another file with -o, one that ends in .byocviz.",
                )
    return path


def _readable(path: str) -> str:
    """Refuse what could be waited for without end; what else is wrong, its reader says."""
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise ByocvizError(f"{path} is a device or pipe, not a file.", "Name a file.")
    return path


def _record(arguments: argparse.Namespace) -> int:
    from byocviz import backends, models
    from byocviz.flow.record import record
    from byocviz.recording import PrunePolicy

    if arguments.only and (arguments.on or arguments.off):
        raise ByocvizError("--only cannot go with --on or --off.", "It names all rules that stay.")
    model = _readable(arguments.model)
    stem = Path(model).stem or "model"
    output = _writable(f"{stem}.byocviz" if arguments.output is None else arguments.output)
    switches = dict.fromkeys(arguments.off, False) | dict.fromkeys(arguments.on, True)
    prune: bool | PrunePolicy = not arguments.no_prune
    if arguments.min_ops is not None or arguments.min_macs is not None:
        own = backends.get(arguments.backend).prune
        prune = PrunePolicy(own.require_macs, arguments.min_ops or 0, arguments.min_macs or 0)
    recording = record(
        models.load(model, shapes=dict(arguments.shape) or None),
        arguments.backend,
        entry=arguments.entry,
        rules=arguments.only or switches or None,
        prepare=False if arguments.no_prepare else dict.fromkeys(arguments.no_rewrite, False),
        prune=prune,
        verify=arguments.verify,
        title=arguments.title or stem,
    )
    if arguments.blockers and recording.failed is None:
        recording.blockers()
    path = recording.save(output)
    _say(recording, arguments.json)
    _say_saved(path)
    return 1 if recording.failed else 0


def _say_saved(path: Path) -> None:
    from byocviz.recording.printable import printable

    print(f"Saved {printable(str(path))}", file=sys.stderr)


def _show(arguments: argparse.Namespace) -> int:
    from byocviz._show import recording_of

    if arguments.function is not None and arguments.step is None:
        raise ByocvizError(
            "--function needs --step.", "byocviz show FILE --step merge --function main"
        )
    if arguments.output is not None:
        _page_or_figure(arguments.output)
    recording = recording_of(_readable(arguments.recording))
    if arguments.output is not None:
        path = _write(recording, arguments)
        if arguments.json:
            _say(recording, as_json=True)
        _say_saved(path)
        return 0
    if arguments.step is not None:
        return _show_step(recording, arguments)
    _say(recording, arguments.json)
    return 0


def _page_or_figure(output: str) -> None:
    """Refuse what `_write` could not write, before a model is recorded for it."""
    from byocviz.recording.atomic import named, usable

    path = named(output, ".html")
    if path.suffix.lower() not in (".html", ".htm", ".svg", ".png", ".dot"):
        raise ByocvizError(
            f"{path}: what -o writes is told by its suffix, and {path.suffix!r} is none that it "
            "knows.",
            "Name a file that ends in .html, .svg, .png or .dot.",
        )
    usable(path)


def _write(recording: Recording, arguments: argparse.Namespace) -> Path:
    """The page or figure that -o asks for, by its suffix."""
    path = Path(arguments.output)
    step: str = arguments.step
    function: str | None = arguments.function
    kind = path.suffix.lower()
    if kind in (".svg", ".png", ".dot") and step is None:
        raise ByocvizError(
            f"A figure is of one step: {path} needs --step.",
            "Steps: " + ", ".join(one.name for one in recording.steps),
        )
    if kind == ".svg":
        return recording.to_svg(step, function, path=path)
    if kind == ".png":
        return recording.to_png(step, function, path=path)
    if kind == ".dot":
        from byocviz.recording.atomic import write

        return write(path, recording.to_dot(step, function).encode("utf-8"))
    if function is not None:
        raise ByocvizError(
            "A page holds every function: --function cannot go with it.",
            "Leave it out, or write a figure: -o figure.svg",
        )
    return recording.to_html(path, step=step)


def _show_step(recording: Recording, arguments: argparse.Namespace) -> int:
    from byocviz.recording.printable import printable

    step = recording.step(arguments.step)
    functions = [f for f in step.functions if arguments.function in (None, f.name)]
    if arguments.function is not None and not functions:
        raise ByocvizError(
            f"The step {step.name!r} has no function {arguments.function!r}.",
            "Its functions: " + ", ".join(f.name for f in step.functions[:50]),
        )
    if arguments.json:
        _print_json({"step": step, "texts": {f.name: recording.texts[f.text] for f in functions}})
        return 0
    for function in functions:
        lines = recording.texts[function.text].splitlines()
        print("\n".join(printable(line, limit=100_000) for line in lines), end="\n\n")
    return 0


def _demo(arguments: argparse.Namespace) -> int:
    from byocviz.demo import demo

    found = demo(_writable(arguments.output), verify=arguments.verify)
    if arguments.json:
        _print_json({**summary_data(found.recording), "demo": found.figures})
    else:
        from rich.text import Text

        from byocviz.render.text import print_to

        print_to(found.recording)
        print_to(Text(found.text()))
    _say_saved(found.path)
    _say_saved(found.page)
    return 1 if found.recording.failed else 0


def _doctor(arguments: argparse.Namespace) -> int:
    from byocviz.doctor import examine

    findings = examine()
    if arguments.json:
        _print_json(findings)
    else:
        width = max(len(f.name) for f in findings)
        for finding in findings:
            print(f"{finding.state:7} {finding.name:{width}}  {finding.value}")
            if finding.mend and finding.state != "ok":
                print(f"{'':8}{'':{width}}  -> {finding.mend}")
    return 1 if any(f.state == "broken" for f in findings) else 0


if __name__ == "__main__":
    sys.exit(main())
