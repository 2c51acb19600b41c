"""Every rule's operator has a converter, and every converter is tested against TVM."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

import byocviz
from byocviz.building.lower import converters
from byocviz.flow.relax.reasons import names_in
from tests.building.lower.lab import Case, build
from tests.building.lower.test_numpy import CASES as BY_NUMPY

KINDS = sorted(p.stem for p in (Path(__file__).parent / "convert").glob("test_*.py"))

OWN = {
    "relax.vision.all_class_non_max_suppression": "test_vision.py: its shape depends on the data",
}
"""Converters whose tests stand elsewhere."""


def cases() -> list[Case]:
    found: list[Case] = []
    for kind in KINDS:
        found += getattr(import_module(f"tests.building.lower.convert.{kind}"), "CASES", [])
    return found


def test_there_are_at_least_400_cases() -> None:
    assert len({case.name for case in cases()}) >= 400


@pytest.mark.parametrize("backend", ["tensorrt", "tutorial"])
def test_each_rule_s_operators_have_a_converter(backend: str) -> None:
    rules = byocviz.backends.get(backend).rules()
    wanted = {name for rule in rules for name in names_in(rule.fusion.pattern)}
    assert wanted
    assert wanted <= set(converters())


def test_each_converter_has_a_case() -> None:
    tested: set[str] = set()
    for group in (cases(), BY_NUMPY):
        module, _, _ = build(group)
        for block in module["main"].body.blocks:
            for binding in block.bindings:
                op = getattr(binding.value, "op", None)
                tested.add(str(getattr(op, "name", "")))
    assert set(converters()) - tested - set(OWN) == set()
