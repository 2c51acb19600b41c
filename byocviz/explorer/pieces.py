"""A recording in parts, each named by its digest: only what changed is sent to a browser."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass, field
from typing import Any

import msgspec

from byocviz.recording.payload import encode
from byocviz.recording.results import Results
from byocviz.recording.schema import SCHEMA, RecordingData, Step

_LEVEL = 1  # the browser is often on the same machine


@dataclass
class Parts:
    """The digests of a recording's parts, and the IR texts that it names."""

    head: str = ""
    ops: str = ""
    results: str = ""
    extra: str = ""
    steps: list[str] = field(default_factory=list)

    def digests(self) -> list[str]:
        return [self.head, self.ops, self.results, self.extra, *self.steps]


class Pieces:
    """Packs recordings; what it packed is kept as long as the last recording needs it."""

    def __init__(self) -> None:
        self.packed: dict[str, bytes] = {}
        """gzip'ed JSON by digest."""
        self._steps: dict[int, tuple[Step, str]] = {}

    def pack(self, recording: RecordingData) -> Parts:
        replace = msgspec.structs.replace
        bare = replace(
            recording, steps=[], ops={}, texts={}, results=Results(), extra={}, created=""
        )
        head = msgspec.to_builtins(bare, str_keys=True)
        head["schema"] = SCHEMA
        kept: dict[str, bytes] = {}
        steps: dict[int, tuple[Step, str]] = {}

        def keep(data: Any) -> str:
            raw = data if isinstance(data, bytes) else msgspec.json.encode(data)
            digest = hashlib.blake2b(raw, digest_size=12).hexdigest()
            had = self.packed.get(digest)
            kept[digest] = had if had is not None else gzip.compress(raw, _LEVEL, mtime=0)
            return digest

        parts = Parts(
            keep(head), keep(recording.ops), keep(recording.results), keep(recording.extra)
        )
        for step in recording.steps:
            # Steps do not change once they ran: the same object is the same part.
            known = self._steps.get(id(step))
            if known is None or known[0] is not step:
                known = step, keep(_step(step))
            else:
                kept[known[1]] = self.packed[known[1]]
            steps[id(step)] = known
            parts.steps.append(known[1])
        self.packed, self._steps = kept, steps
        return parts


def _step(step: Step) -> bytes:
    """One step in the compact form of a recording of it alone."""
    alone = RecordingData(steps=[step])
    return msgspec.json.encode(msgspec.msgpack.decode(encode(alone), strict=False))


def pack_texts(texts: dict[str, str]) -> bytes:
    """IR texts by key, as gzip'ed JSON."""
    return gzip.compress(msgspec.json.encode(texts), _LEVEL, mtime=0)
