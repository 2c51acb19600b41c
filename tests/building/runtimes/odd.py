"""Runtimes that do what native libraries do on a bad day. Another process imports them."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from byocviz.building.errors import BuildError, RuntimeMissing
from byocviz.building.runtimes.base import Base, Notes, Subgraph
from byocviz.building.runtimes.onnxruntime import OnnxRuntime
from byocviz.building.runtimes.tensorrt_rtx import TensorrtRtx


class Watched(OnnxRuntime):
    """ONNX Runtime, which gives the names of the modules that it was built with."""

    serializes = True

    def plan(self, subgraph: Subgraph, options: Mapping[str, Any], notes: Notes) -> Any:
        super().plan(subgraph, options, notes)
        return json.dumps(sorted(sys.modules)).encode()

    def load(self, lowered: Any, plan: bytes | None, options: Mapping[str, Any]) -> Any:
        return plan


class WatchedRtx(TensorrtRtx):
    """TensorRT-RTX in half precision, likewise."""

    def plan(self, subgraph: Subgraph, options: Mapping[str, Any], notes: Notes) -> Any:
        super().plan(subgraph, {**options, "fp16": True}, notes)
        return json.dumps(sorted(sys.modules)).encode()

    def load(self, lowered: Any, plan: bytes | None, options: Mapping[str, Any]) -> Any:
        return plan


class Odd(Base):
    """``what`` it does in a build, by the subgraph's name where that is a dictionary."""

    name = "odd"
    title = "Odd"
    options: Mapping[str, Any] = {"what": "builds", "file": ""}
    serializes = True

    def plan(self, subgraph: Subgraph, options: Mapping[str, Any], notes: Notes) -> Any:
        what = options["what"]
        if isinstance(what, dict):
            what = what.get(subgraph.name, "builds")
        return getattr(self, what)(subgraph, options, notes)

    def load(self, lowered: Any, plan: bytes | None, options: Mapping[str, Any]) -> Any:
        return plan

    def fingerprint(self, options: Mapping[str, Any]) -> dict[str, str]:
        return {"odd": "1"}

    def builds(self, subgraph: Subgraph, options: Any, notes: Notes) -> bytes:
        return b"plan of " + subgraph.serialized()

    def times(self, subgraph: Subgraph, options: Any, notes: Notes) -> bytes:
        """Notes what it was handed, and adds to it."""
        notes.timing += b"+" + subgraph.name.encode()
        return notes.timing

    def process(self, subgraph: Subgraph, options: Any, notes: Notes) -> bytes:
        """What it sees of the process that it is in."""
        seen = {
            "pid": os.getpid(),
            "modules": sorted(sys.modules),
            "folder": os.getcwd(),
            "calls": subgraph.calls,
            "nodes": subgraph.nodes,
        }
        return json.dumps(seen).encode()

    def aborts(self, *_: Any) -> None:
        print("I have had enough", flush=True)
        os.abort()

    def faults(self, *_: Any) -> None:
        ctypes.string_at(0)

    def killed(self, *_: Any) -> None:
        os.kill(os.getpid(), 9)

    def exits(self, *_: Any) -> None:
        os._exit(3)

    def hangs(self, subgraph: Any, options: Any, notes: Any) -> None:
        """Holds the interpreter's lock, as a native library may."""
        if options["file"]:
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            Path(options["file"]).write_text(f"{os.getpid()} {child.pid} {os.getcwd()}")
        ctypes.PyDLL(None).sleep(600)

    def waits(self, subgraph: Any, options: Any, notes: Any) -> None:
        Path(options["file"]).write_text(f"{os.getpid()} {os.getpid()} {os.getcwd()}")
        time.sleep(600)

    def eats(self, *_: Any) -> None:
        """Takes memory without end."""
        taken = []
        while True:
            taken.append(b"x" * (8 << 20))
            time.sleep(0.002)

    def too_much(self, *_: Any) -> bytes:
        return b"x" * (1 << 60)

    def raises(self, *_: Any) -> None:
        raise ZeroDivisionError("of its own")

    def refuses(self, subgraph: Subgraph, *_: Any) -> None:
        raise BuildError("It refuses.", "Do without.", subgraph=subgraph.name)

    def is_missing(self, *_: Any) -> None:
        raise RuntimeMissing("It is missing.", "Get it.")

    def no_bytes(self, *_: Any) -> Any:
        return "not bytes"

    def nothing(self, *_: Any) -> None:
        return None

    def prints(self, subgraph: Subgraph, *_: Any) -> bytes:
        """Writes to every stream that it finds, more than a pipe holds, and reads."""
        for stream in (1, 2):
            os.write(stream, b"\x00\x00\x00\x02{}" + b"noise\n" * 50_000)
        assert os.read(0, 10) == b""
        return b"quiet"

    def babbles(self, *_: Any) -> None:
        """Finds the pipe of the answers and writes there what is none."""
        for stream in range(3, 20):
            with contextlib.suppress(OSError):
                os.write(stream, b"\xff\xff\xff\xff no message")
        time.sleep(600)
