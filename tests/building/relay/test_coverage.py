"""Every rule's operator has a converter, and every converter is tested against TVM."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from tests.relay import needs_relay

needs_relay()

from byocviz.backends import relay_table  # noqa: E402
from byocviz.building.relay.lower import converters  # noqa: E402
from byocviz.flow.relay.reasons import names_in  # noqa: E402
from byocviz.flow.relay.scopes import Body  # noqa: E402
from tests.building.relay.lab import Case, build  # noqa: E402

KINDS = sorted(p.stem for p in (Path(__file__).parent / "convert").glob("test_*.py"))

NOT_MADE = {"annotation.stop_fusion", "nn.dropout", "image.resize3d", "bitwise_and", "bitwise_or",
            "bitwise_xor", "bitwise_not"}  # fmt: skip
"""What passes make or take away by themselves, or TVM's own writes no call of; the bits need a
later opset."""


def cases() -> list[Case]:
    found: list[Case] = []
    for kind in KINDS:
        module = import_module(f"tests.building.relay.convert.{kind}")
        found += module.CASES + getattr(module, "NO_REFERENCE", [])
    return found


@pytest.mark.parametrize("backend", ["tensorrt", "tutorial"])
def test_each_rule_s_operators_have_a_converter(backend: str) -> None:
    rules = relay_table.rules(relay_table.get(backend))
    wanted: set[str] = set()
    for rule in rules:
        wanted |= names_in(rule.pattern) if rule.pattern is not None else {rule.op}
    if backend == "tensorrt":
        assert len(rules) == 59
    assert wanted <= set(converters())


def test_each_converter_has_a_case() -> None:
    module, _, _ = build(cases())
    tested = {item.name for item in Body(module["main"].body).items.values()}
    assert set(converters()) - tested - NOT_MADE == set()
