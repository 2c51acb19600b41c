"""Backends for a Relay module: TVM's own tables are read at run time, never copied.

Relay has two kinds of rules. A *pattern* makes a composite function (MergeComposite). An *operator
rule* says of single calls of one operator whether the backend takes them: TVM keeps it as the
operator's attribute ``target.<backend>``, and AnnotateTarget asks it.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from byocviz.backends import Backend
from byocviz.errors import BackendError
from byocviz.recording.schema import PrunePolicy

TENSORRT_OPTIONS: dict[str, str] = {
    "tensorrt_version": "6.0.1",
    "use_implicit_batch": "True",
    "max_workspace_size": "1073741824",
    "use_fp16": "False",
    "remove_no_mac_subgraphs": "True",
}
"""The attributes of TVM's target "tensorrt", which this TVM may have been built without, with
their defaults; but remove_no_mac_subgraphs is on, as in byocviz's TensorRT backend for Relax."""

_HOME = "tvm.relay.op.contrib"


@dataclass(frozen=True)
class RelayRule:
    """One rule. ``pattern`` is a DFPattern, or None where the rule is about the operator ``op``."""

    name: str
    pattern: Any
    op: str
    check: Callable[[Any], Any] | None
    enabled: bool = True
    index: int = -1


def get(backend: str | Backend) -> Backend:
    """A backend whose rules are Relay's, by name; a `Backend` is returned as it is.

    The rules of a `Backend` are tuples ``(name, pattern[, check])``; where an operator's name
    stands in place of the pattern, single calls of it are taken. Raises `BackendError` where the
    TVM at hand knows no rule for the name.
    """
    if isinstance(backend, Backend):
        return backend
    if not isinstance(backend, str):
        raise BackendError(
            f"A backend is a name or a byocviz.Backend, not {type(backend).__name__}.",
            f"Known: {', '.join(names())}",
        )
    if backend == "tutorial":
        return _tutorial()
    home = _import_home(backend)
    if not _entries(backend):
        raise BackendError(
            f"This TVM has no Relay rules for {backend!r}: neither a pattern table nor operators "
            f"with the attribute target.{backend}.",
            f"Known: {', '.join(names())}. Import the module that registers yours first.",
        )
    options: dict[str, str] = {}
    lines = [f"import {home}"] if home else []
    lines.append("from tvm.relay.op.contrib import get_pattern_table")
    lines.append(f"patterns = list(get_pattern_table({backend!r}) or ())")
    if backend == "tensorrt":
        options = dict(TENSORRT_OPTIONS)
    return Backend(
        backend,
        lambda: _entries(backend),
        PrunePolicy(require_macs=True) if backend == "tensorrt" else PrunePolicy(),
        options,
        table="\n".join(lines),
        source=home or "TVM's registry",
    )


def by_name(backend: Backend) -> str:
    """Python text that gives a backend; ``backend`` where no name gives one of its rules, as for
    an object of the person's own."""
    try:
        named = get(backend.name)
        known = [rule.name for rule in rules(named)]
    except BackendError:
        return "backend"
    same = named.options == backend.options and known == [rule.name for rule in rules(backend)]
    return f'byocviz.backends.relay_table.get("{backend.name}")' if same else "backend"


def names() -> list[str]:
    """The names for which `get` finds rules that TVM brings."""
    package = importlib.import_module(_HOME)
    found = {m.name for m in pkgutil.iter_modules(package.__path__)}
    return sorted((found - {"register", "te_target"}) | {"tutorial"})


def _import_home(name: str) -> str:
    """Import the module of TVM that registers this backend; its name, or "" where none does."""
    package = importlib.import_module(_HOME)
    known = {m.name for m in pkgutil.iter_modules(package.__path__)}
    for module in (name, name.replace("-", "_")):
        if module in known:
            importlib.import_module(f"{_HOME}.{module}")
            return f"{_HOME}.{module}"
    return ""


def _entries(name: str) -> list[Any]:
    """The pattern table, then the operators that have an attribute for the backend."""
    from tvm.relay.op.contrib import get_pattern_table

    found: list[Any] = list(get_pattern_table(name) or ())
    key = f"target.{name}"
    found += [(f"{name}.{op}", op, check) for op, check in _operator_checks(key).items()]
    return found


def _operator_checks(key: str) -> dict[str, Any]:
    """The operators that have an attribute, with its value."""
    from tvm.ir import Op

    found: dict[str, Any] = {}
    for name in sorted(str(n) for n in Op.list_op_names()):
        op = Op.get(name)
        if not op.has_attr(key):
            break  # TVM has no such attribute at all: it says so of every operator
        if (check := op.get_attr(key)) is not None:
            found[name] = check
    return found


def rules(
    backend: Backend, switches: Mapping[str, bool] | Iterable[str] | None = None
) -> list[RelayRule]:
    """The rules in TVM's order, patterns first, switched for one recording.

    ``switches`` is as in `Backend.rules`. Raises `BackendError` for a name that no rule has, an
    empty table, or an entry that is no rule.
    """
    if not backend.name or backend.name == "default":
        raise BackendError(
            f"A backend for Relay cannot be called {backend.name!r}: AnnotateTarget calls what "
            "stays on TVM 'default'.",
            "Give it another name.",
        )
    found = [_rule(backend, i, entry) for i, entry in enumerate(backend._entries())]
    found.sort(key=lambda rule: rule.pattern is None)  # MergeComposite runs before AnnotateTarget
    found = [
        replace(rule, index=i, enabled=rule.name not in backend.off) for i, rule in enumerate(found)
    ]
    if not found:
        raise BackendError(
            f"The backend {backend.name!r} has no rules: its table is empty.",
            "Give (name, pattern[, check]) tuples, or the name of an operator as the pattern.",
        )
    if switches is None:
        return found
    if isinstance(switches, str):
        switches = [switches]
    if isinstance(switches, Mapping):
        wanted = {backend._known(n, found): bool(on) for n, on in switches.items()}  # type: ignore[arg-type]
        return [replace(rule, enabled=wanted.get(rule.name, rule.enabled)) for rule in found]
    chosen = {backend._known(n, found) for n in switches}  # type: ignore[arg-type]
    return [replace(rule, enabled=rule.name in chosen) for rule in found]


def _rule(backend: Backend, index: int, entry: Any) -> RelayRule:
    from tvm.relay.dataflow_pattern import DFPattern

    if not isinstance(entry, tuple) or not 2 <= len(entry) <= 3 or not isinstance(entry[0], str):
        raise BackendError(
            f"Rule {index} of the backend {backend.name!r} is no Relay rule: {entry!r}",
            "Give (name, pattern) or (name, pattern, check), the pattern one of "
            "tvm.relay.dataflow_pattern, or the name of an operator.",
        )
    name, what = str.__str__(entry[0]), entry[1]
    check = entry[2] if len(entry) == 3 else None
    if check is not None and not callable(check):
        raise BackendError(
            f"The check of the rule {name!r} is {check!r}, which cannot be called.",
            "Give a function that takes the matched expression and returns True or False.",
        )
    if isinstance(what, str):
        return RelayRule(name, None, _operator(name, str.__str__(what)), check)
    if not isinstance(what, DFPattern):
        raise BackendError(
            f"The rule {name!r} of the backend {backend.name!r} has {type(what).__name__} for a "
            "pattern, which Relay does not take.",
            "A Relay module needs patterns of tvm.relay.dataflow_pattern, or the name of an "
            "operator.",
        )
    if name.partition(".")[0] != backend.name:
        raise BackendError(
            f"The rule {name!r} does not belong to the backend {backend.name!r} by its name.",
            f"Name it '{backend.name}.{name.partition('.')[2] or name}': AnnotateTarget takes what "
            "stands before the first full stop as the compiler's name.",
        )
    return RelayRule(name, what, "", check)


def _operator(rule: str, name: str) -> str:
    from tvm.ir import Op

    known = [str.__str__(str(n)) for n in Op.list_op_names()]
    if name in known:
        return name
    near = difflib.get_close_matches(name, known, n=3)
    raise BackendError(
        f"The rule {rule!r} is about the operator {name!r}, which this TVM does not have.",
        f"Did you mean {' or '.join(near)}?"
        if near
        else "Those that it has: tvm.ir.Op.list_op_names().",
    )


def _tutorial() -> Backend:
    def patterns() -> list[Any]:
        from tvm.relay.dataflow_pattern import is_op, wildcard

        def conv2d() -> Any:
            return is_op("nn.conv2d")(wildcard(), wildcard())

        biased = is_op("nn.bias_add")(conv2d(), wildcard()) | is_op("add")(conv2d(), wildcard())
        return [
            ("tutorial.conv2d_bias_relu", is_op("nn.relu")(biased)),
            ("tutorial.conv2d_relu", is_op("nn.relu")(conv2d())),
            ("tutorial.reshape", "reshape"),
            ("tutorial.add", "add"),
        ]

    return Backend(
        "tutorial",
        patterns,
        table=(
            "from byocviz.backends import relay_table\n"
            'backend = relay_table.get("tutorial")\n'
            "patterns = relay_table.table(backend)"
        ),
        source="byocviz",
    )


def table(backend: Backend, off: Iterable[str] = ()) -> list[tuple[str, Any, Any]]:
    """The pattern rules of a backend but for those named, as MergeComposite takes them."""
    return [
        (rule.name, rule.pattern, rule.check or _always)
        for rule in rules(backend)
        if rule.pattern is not None and rule.name not in set(off)
    ]


def _always(_: Any) -> bool:
    return True


@contextmanager
def operator_rules(
    backend: str, checks: Mapping[str, Callable[[Any], Any] | None]
) -> Iterator[None]:
    """Within: of all operators, exactly those of ``checks`` have a rule for the backend.

    What TVM's registry held before is put back after.
    """
    import tvm

    key = f"target.{backend}"
    before = _operator_checks(key)
    for name in before:
        tvm.ir.Op.get(name).reset_attr(key)
    try:
        for name, check in checks.items():
            tvm.ir.Op.get(name).set_attr(key, check or _always)
        yield
    finally:
        for name in checks:
            tvm.ir.Op.get(name).reset_attr(key)
        for name, check in before.items():
            tvm.ir.Op.get(name).set_attr(key, check)


class _Kind:
    name = "tensorrt"


class _Target:
    """Answers for TVM's target "tensorrt", of which a TVM built without TensorRT has no kind."""

    kind = _Kind()

    def __init__(self, options: Mapping[str, str]) -> None:
        version = [int(part) for part in options["tensorrt_version"].split(".")]
        self.attrs: dict[str, Any] = {
            "tensorrt_version": version,
            "max_workspace_size": int(options["max_workspace_size"]),
            **{
                name: options[name] == "True"
                for name in ("use_implicit_batch", "use_fp16", "remove_no_mac_subgraphs")
            },
        }


@contextmanager
def tensorrt_target(**options: Any) -> Iterator[None]:
    """Within: TVM's TensorRT rules ask these options, where TVM lacks the target "tensorrt".

    ``options`` are those of `TENSORRT_OPTIONS`. Raises `BackendError` for an unknown one.
    """
    from tvm.relay.op.contrib import tensorrt

    if unknown := options.keys() - TENSORRT_OPTIONS.keys():
        raise BackendError(
            f"TensorRT's target has no option {', '.join(sorted(map(repr, unknown)))}.",
            f"Its options: {', '.join(TENSORRT_OPTIONS)}.",
        )
    chosen = {**TENSORRT_OPTIONS, **{name: str(value) for name, value in options.items()}}
    target = _Target(chosen)
    before = tensorrt.get_tensorrt_target
    tensorrt.get_tensorrt_target = lambda: target
    try:
        yield
    finally:
        tensorrt.get_tensorrt_target = before


def lowerable(backend: Backend) -> Backend:
    """`Backend.lowerable`, such that the text of a table that was given stays one that runs."""
    made = backend.lowerable()
    return made if backend.table else replace(made, table="")


def operator_checks(backend: Backend, off: Iterable[str] = ()) -> dict[str, Any]:
    """The operator rules of a backend but for those named: the check by operator, or None."""
    found: dict[str, Any] = {}
    for rule in rules(backend):
        if rule.pattern is None and rule.name not in set(off):
            found.setdefault(rule.op, rule.check)
    return found


def tensorrt(**options: Any) -> Backend:
    """TVM's Relay rules for TensorRT with other options than the defaults.

    ``options`` are those of `TENSORRT_OPTIONS`, as ``use_implicit_batch=False``. Raises
    `BackendError` for an unknown one.
    """
    if unknown := options.keys() - TENSORRT_OPTIONS.keys():
        raise BackendError(
            f"TensorRT's target has no option {', '.join(sorted(map(repr, unknown)))}.",
            f"Its options: {', '.join(TENSORRT_OPTIONS)}.",
        )
    return replace(
        get("tensorrt"),
        options={**TENSORRT_OPTIONS, **{name: str(value) for name, value in options.items()}},
    )
