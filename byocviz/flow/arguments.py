"""What `record` and the explorer are given: refused where it would mean something else."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from byocviz.errors import ArgumentError, ModuleError, missing
from byocviz.recording.schema import PrunePolicy


def needs_tvm(purpose: str) -> None:
    """Raises `MissingPackage` where no TVM is installed; ``purpose`` says what it is for."""
    try:
        import tvm  # noqa: F401
    except ImportError as error:
        raise missing("TVM with Relax (apache-tvm)", "relax", purpose) from error


def check_arguments(rules: Any, prepare: Any, prune: Any, lowerable: Any, title: Any) -> None:
    """Refuse arguments of a kind that would silently mean something else.

    Raises `ArgumentError`.
    """
    if isinstance(rules, Mapping):
        fine = all(isinstance(n, str) and isinstance(on, bool) for n, on in rules.items())
    else:
        fine = rules is None or isinstance(rules, (str, list, tuple, set, frozenset))
        fine = fine and all(isinstance(name, str) for name in rules or ())
    if not fine:
        raise ArgumentError(
            f"rules is {rules!r}.",
            'Give names with True or False, as rules={"nn.softmax": False}, or a list of the names '
            "of those that are to be on.",
        )
    if not isinstance(prepare, bool) and not (
        isinstance(prepare, Mapping)
        and all(isinstance(n, str) and isinstance(on, bool) for n, on in prepare.items())
    ):
        raise ArgumentError(
            f"prepare is {prepare!r}.",
            'Give True, False, or names with True or False, as prepare={"clip": False}.',
        )
    if isinstance(prune, PrunePolicy):
        figures = {"min_ops": prune.min_ops, "min_macs": prune.min_macs}
        for name, figure in figures.items():
            if not isinstance(figure, int) or isinstance(figure, bool) or not 0 <= figure < 2**63:
                raise ArgumentError(
                    f"PrunePolicy.{name} is {figure!r}.", "Give a whole number, 0 or more."
                )
        if not isinstance(prune.require_macs, bool):
            raise ArgumentError(
                f"PrunePolicy.require_macs is {prune.require_macs!r}.", "Give True or False."
            )
    elif not isinstance(prune, bool):
        raise ArgumentError(f"prune is {prune!r}.", _policy_for(prune))
    if not isinstance(lowerable, bool):
        raise ArgumentError(f"lowerable is {lowerable!r}.", "Give True or False.")
    if title is not None and not isinstance(title, str):
        raise ArgumentError(f"title is {title!r}.", "Give a string.")


def _policy_for(given: Any) -> str:
    """What to give in place of what is no policy; of a dictionary, the same as one."""
    example, ending = "require_macs=True, min_ops=3", ""
    if isinstance(given, Mapping) and all(isinstance(name, str) for name in given):
        known = PrunePolicy.__struct_fields__
        near = {name: difflib.get_close_matches(name, known, n=1) for name in given}
        if given and all(near.values()):
            example = ", ".join(f"{near[name][0]}={value!r}" for name, value in given.items())
        ending = f" It takes {', '.join(known)}."
    return f"Give True, False, or byocviz.PrunePolicy({example}).{ending}"


def module_of(mod: Any) -> Any:
    """The module itself, or that of a model or a file. Raises `ModelError` where there is none."""
    import tvm

    if isinstance(mod, tvm.IRModule):
        return mod
    from byocviz import models

    return models.load(mod)


def is_relay(module: Any) -> bool:
    """Whether the module's functions are written in Relay, which TVM has up to 0.19."""
    try:
        from tvm import relay
    except ImportError:
        return False
    return any(isinstance(function, relay.Function) for function in module.functions.values())


def check_entry(module: Any, entry: str) -> None:
    """Refuse what cannot be walked as Relax. Raises `ModuleError`."""
    from tvm import relax

    functions = {v.name_hint: f for v, f in module.functions.items()}
    names = sorted(n for n, f in functions.items() if isinstance(f, relax.Function))
    if not names:
        raise ModuleError(
            f"The module has no Relax function; it has {len(functions)} others.",
            "byocviz records Relax modules: import the model by byocviz.models, or give the "
            "module from before it was lowered to TIR.",
        )
    if entry not in functions:
        raise ModuleError(
            f"The module has no function {entry!r}.",
            f"Its Relax functions: {', '.join(names)}. Name one: record(mod, entry={names[0]!r}).",
        )
    if entry not in names:
        raise ModuleError(
            f"The entry {entry!r} is a {type(functions[entry]).__name__}, not a Relax function.",
            f"Its Relax functions: {', '.join(names)}.",
        )
