"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from byocviz.errors import RecordingError


def write(path: str | os.PathLike[str], data: bytes) -> Path:
    """Writes ``data`` to a file beside the target, then puts it in its place; returns the path.

    Raises `RecordingError` where that cannot be done; what was there before then stays.
    """
    target = Path(path)
    # A link keeps pointing where it did; its target is what changes.
    real = Path(os.path.realpath(target))
    temporary = real.with_name(f".{real.name[:200]}.{secrets.token_hex(4)}.tmp")
    try:
        # Not tempfile: its files are private to the user, and these are to be shared.
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if real.is_file():
            os.chmod(temporary, stat.S_IMODE(real.stat().st_mode))
        os.replace(temporary, real)
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or error
        raise RecordingError(
            f"{target} cannot be written: {cause}.",
            "Name a file in a folder that exists and can be written to.",
        ) from error
    finally:
        with contextlib.suppress(OSError, ValueError):
            temporary.unlink()
    return target
