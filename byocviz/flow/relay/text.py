"""The IR text of a Relay function, without the numbers that calls keep in their spans."""

from __future__ import annotations

import re
from typing import Any

from byocviz.flow.relay.compat import TAG, plain

_SPAN = re.compile(rf" ?span={TAG}:(\d+):\d+")
_BARE = re.compile(rf" /\* ?span={TAG}:\d+:\d+ \*/")
_BOUND = re.compile(r"^\s*(?:let )?(%[\w.]+)(?:: [^=]*)? = ")
_FOOT = "/* For debugging purposes the metadata section has been omitted."


def function_text(name: str, function: Any) -> tuple[str, dict[int, str]]:
    """The function as Relay prints it, and the variable that each numbered call is bound to.

    Constants are left out: the text names them only.
    """
    text = plain(function.astext(show_meta_data=False))
    text = text.partition(_FOOT)[0].strip()
    text = text.partition("\n")[2] if text.startswith("#[version") else text
    text = re.sub(r"^fn \(", f"def @{name}(", text, count=1)
    variables: dict[int, str] = {}
    for line in text.split("\n"):
        if (spans := _SPAN.findall(line)) and (bound := _BOUND.match(line)):
            variables[int(spans[-1])] = bound[1]
    text = _BARE.sub("", text)
    return _SPAN.sub("", text) + "\n", variables
