"""Modules drawn from a seed: DAGs with branches, tuples, constants, If and shared values."""

from __future__ import annotations

import random
import re
from collections import Counter
from typing import Any

import tvm

from .case import CASES, Case, module

_UNARY = [
    "R.nn.relu",
    "R.tanh",
    "R.sigmoid",
    "R.negative",
    "R.nn.leakyrelu",
    "R.nn.gelu",
    "R.nn.softplus",
    "R.abs",
]
_BINARY = ["R.add", "R.multiply", "R.subtract", "R.maximum", "R.minimum", "R.floor_mod"]


class _Writer:
    """Writes bindings of values of one shape, [1, 4, 8, 8], as text.

    Unless ``dead``, what nobody has used becomes an output.
    """

    def __init__(self, rng: random.Random, dead: bool) -> None:
        self.rng = rng
        self.dead = dead
        self.lines: list[str] = []
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def emit(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def pick(self, values: list[str]) -> str:
        """A value, recent ones more often: chains as well as long reaches."""
        if self.rng.random() < 0.6:
            return values[-1]
        return self.rng.choice(values)

    def block(self, indent: int, values: list[str], size: int) -> list[str]:
        """A dataflow block of about ``size`` operators; returns its outputs."""
        self.emit(indent, "with R.dataflow():")
        local = list(values)
        made: list[str] = []
        while len(made) < size:
            made.append(self.binding(indent + 1, local))
            local.append(made[-1])
        outputs = sorted({made[-1], *self.rng.sample(made, min(len(made), self.rng.randint(1, 3)))})
        if not self.dead:
            outputs = sorted({*outputs, *self.unused(made)})
        self.emit(indent + 1, f"R.output({', '.join(outputs)})")
        return outputs

    def unused(self, names: list[str]) -> list[str]:
        text = " ".join(line.partition(" = ")[2] or line for line in self.lines)
        words = Counter(re.findall(r"v\d+", text))
        return [name for name in names if not words[name]]

    def binding(self, indent: int, values: list[str]) -> str:
        name, roll = self.name(), self.rng.random()
        if roll < 0.35:
            self.emit(indent, f"{name} = {self.rng.choice(_UNARY)}({self.pick(values)})")
        elif roll < 0.6:
            left, right = self.pick(values), self.rng.choice([*values, "B"])
            self.emit(indent, f"{name} = {self.rng.choice(_BINARY)}({left}, {right})")
        elif roll < 0.8:
            weight = self.rng.choice(["W, padding=(1, 1)", "K"])
            self.emit(indent, f"{name} = R.nn.conv2d({self.pick(values)}, {weight})")
        elif roll < 0.9:
            halves = self.name()
            self.emit(indent, f"{halves} = R.split({self.pick(values)}, 2, axis=1)")
            self.emit(indent, f"{name} = R.concat(({halves}[1], {halves}[0]), axis=1)")
        else:
            pair = self.name()
            self.emit(indent, f"{pair} = ({self.pick(values)}, {self.rng.choice(values)})")
            self.emit(indent, f"{name} = R.add({pair}[0], {pair}[1])")
        return name

    def choice(self, indent: int, values: list[str], condition: str, size: int, depth: int) -> str:
        """An If whose branches give one value."""
        out = self.name()
        for head in (f"if {condition}:", "else:"):
            self.emit(indent, head)
            inner = [*values, *self.block(indent + 1, values, size)]
            last = inner[-1]
            if depth:
                last = self.choice(indent + 1, inner, condition, max(1, size // 2), depth - 1)
            self.emit(indent + 1, f"{out} = R.add({last}, {self.rng.choice(inner)})")
        return out


def random_module(seed: int, size: int = 12) -> tvm.IRModule:
    """A module of about ``size`` operators, the same for the same seed and size.

    It has one to three dataflow blocks; every third seed puts an If, every sixth a nested one,
    between them. ``main`` takes two tensors and a condition and returns one or more tensors,
    nested in a tuple for every fourth seed. With an odd seed every operator counts for a result;
    with an even one some code is dead.
    """
    rng = random.Random(f"byocviz {seed} {size}")
    writer = _Writer(rng, dead=seed % 2 == 0)
    values = ["x", "y"]
    blocks = rng.randint(1, 3)
    for index in range(blocks):
        values += writer.block(1, values, max(1, size // blocks))
        if seed % 3 == 0 and index == 0:
            inner = max(1, size // (2 * blocks))
            values.append(writer.choice(1, values, "c", inner, int(seed % 6 == 0)))
    results = values[-min(len(values) - 2, rng.randint(1, 3)) :]
    if not writer.dead:
        results = sorted({*results, *writer.unused(values[2:])})
    result = results[0] if len(results) == 1 else f"({', '.join(results)})"
    if seed % 4 == 0:
        result = f"(({results[0]}, {results[-1]}), x)"
    writer.emit(1, f"return {result}")
    head = '@R.function\ndef main(x: X, y: X, c: R.Tensor((), "bool")):\n'
    return module(head + "\n".join(writer.lines) + "\n")


def _case(seed: int) -> Case:
    size = 6 + 3 * (seed % 8)
    tags: set[Any] = {"random"}
    if seed % 3 == 0:
        tags |= {"if", "if-dataflow"}
    if seed % 6 == 0:
        tags |= {"if-nested"}
    if seed % 4 == 0:
        tags |= {"tuple"}
    if seed % 2 == 0:
        tags |= {"dead"}
    return Case(f"random_{seed:02d}", lambda: random_module(seed, size), tags=frozenset(tags))


CASES.extend(_case(seed) for seed in range(1, 27))
