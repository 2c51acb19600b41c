"""What is explored: a module, its weights, and how both travel to another process.

Modules go as TVM's own JSON, weights as TVM's own parameter file: nothing is pickled.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byocviz.errors import ArgumentError
from byocviz.recording import Recording

if TYPE_CHECKING:
    from byocviz.explorer.dialects import Dialect


def no_recording(mod: Any) -> None:
    """Refuse what was recorded already: it holds no module that could be walked."""
    if isinstance(mod, Recording) or (
        isinstance(mod, (str, os.PathLike)) and os.fspath(mod).lower().endswith(".byocviz")
    ):
        raise ArgumentError(
            "That is a recording, which holds what ran and no module to run again.",
            "Look at it by byocviz.show, present it by byocviz.replay, or explore the model that "
            "it was made of.",
        )


class CannotTravel(Exception):
    """Something that another process cannot be given; ``str`` says what."""


@dataclass(frozen=True)
class Given:
    """What `byocviz.explore` was given to walk."""

    module: Any
    dialect: Dialect
    entry: str
    params: Any
    title: str

    def write(self, folder: Path) -> dict[str, Any]:
        """Write module and weights; returns the message that `read` takes.

        Raises `CannotTravel` for weights that are no tensors.
        """
        write_module(self.module, folder / "module.json")
        if self.params is not None:
            (folder / "params.bin").write_bytes(_pack(self.params))
        return {
            "folder": str(folder),
            "entry": self.entry,
            "title": self.title,
            "params": self.params is not None,
        }


def read(message: Mapping[str, Any]) -> tuple[Any, Any, str, str]:
    """Module, weights, entry and title of what `Given.write` wrote."""
    folder = Path(message["folder"])
    params = _unpack((folder / "params.bin").read_bytes()) if message["params"] else None
    return read_module(folder / "module.json"), params, message["entry"], message["title"]


def write_module(module: Any, path: Path) -> None:
    """A module as TVM's JSON."""
    import tvm

    path.write_text(tvm.ir.save_json(module), encoding="utf-8")


def read_module(path: Path) -> Any:
    """The module that `write_module` wrote."""
    import tvm

    return tvm.ir.load_json(path.read_text(encoding="utf-8"))


def _pack(params: Any) -> bytes:
    """Weights as they may be given: by name, as a list, or lists by function."""
    import numpy as np
    import tvm

    def tensor(value: Any) -> Any:
        array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
        array = np.ascontiguousarray(array).reshape(array.shape)  # the former makes 0-d 1-d
        return tvm.nd.array(array) if hasattr(tvm, "nd") else tvm.runtime.tensor(array)

    def tensors(value: Any) -> bool:
        return isinstance(value, (list, tuple)) and all(hasattr(one, "dtype") for one in value)

    flat: dict[str, Any] = {}
    try:
        if isinstance(params, (list, tuple)):
            flat = {json.dumps([i]): tensor(value) for i, value in enumerate(params)}
        else:
            for key, value in params.items():
                name = str(getattr(key, "name", key))
                parts = list(enumerate(value)) if tensors(value) else []
                flat |= {json.dumps([name, i]): tensor(one) for i, one in parts}
                if not parts:
                    flat[json.dumps([name])] = tensor(value)
        return bytes(tvm.runtime.save_param_dict(flat))
    except Exception as error:
        raise CannotTravel(f"weights that are no tensors ({error})") from error


def _unpack(data: bytes) -> Any:
    import tvm

    listed: list[Any] = []
    named: dict[str, Any] = {}
    flat = tvm.runtime.load_param_dict(bytearray(data))
    for key, value in flat.items():
        name, *rest = json.loads(str(key))
        if isinstance(name, int):
            listed.append((name, value))
        elif rest:
            named.setdefault(name, []).append((rest[0], value))
        else:
            named[name] = value
    if listed:
        return _in_order(listed)
    return {k: _in_order(v) if isinstance(v, list) else v for k, v in named.items()}


def _in_order(numbered: list[tuple[int, Any]]) -> list[Any]:
    return [value for _, value in sorted(numbered, key=lambda pair: pair[0])]
