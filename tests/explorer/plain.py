"""A recording as plain data, for comparing two."""

from __future__ import annotations

from typing import Any

import msgspec

from byocviz.recording import Recording


def plain(recording: Recording) -> dict[str, Any]:
    """All that a recording says but for when, and how long it took."""
    data = msgspec.json.decode(msgspec.json.encode(recording))
    data.pop("created", None)
    for step in data["steps"]:
        step.pop("tvm_seconds", None)
        step.pop("capture_seconds", None)
        for rewrite in step.get("rewrites", []):
            rewrite.pop("seconds", None)
    return dict(data)
