"""Random graphs: operators on and off TensorRT, tuples and branches, by seed."""

from __future__ import annotations

import random
from typing import Any

from tvm import relay

from .case import CASES, Case, const, conv, main, x

SEEDS = range(14)
_ON = ("nn.relu", "tanh", "sigmoid", "exp")
_OFF = ("round", "sign", "trunc")


def _graph(seed: int) -> Any:
    chance = random.Random(seed)
    values: list[Any] = [x("a"), x("b")]
    for index in range(chance.randint(6, 22)):
        pick = chance.choice(values[-5:])
        kind = chance.random()
        if kind < 0.2:
            made = conv(pick, index)
        elif kind < 0.45:
            made = _unary(chance.choice(_ON), pick)
        elif kind < 0.6:
            made = _unary(chance.choice(_OFF), pick)
        elif kind < 0.75:
            made = relay.add(pick, chance.choice(values))
        elif kind < 0.82:
            made = relay.multiply(pick, const((1, 4, 1, 1), index))
        elif kind < 0.9:
            parts = relay.split(pick, 2, axis=1)
            made = relay.concatenate([parts[1], parts[0]], axis=1)
        elif kind < 0.95:
            pair = relay.Tuple([pick, chance.choice(values)])
            made = relay.TupleGetItem(pair, chance.randint(0, 1))
        else:
            made = relay.If(
                x(f"c{index}", (), "bool"),
                # TVM's PartitionGraph dies (a segmentation fault) on some graphs in which a branch
                # and what lies outside of it share a call, so branches read parameters alone.
                _unary(chance.choice(_ON), chance.choice(values[:2])),
                relay.add(*values[:2]),
            )
        values.append(made)
    results = [values[-1], *chance.sample(values[2:], k=min(2, len(values) - 2))]
    return relay.Tuple(results) if chance.random() < 0.5 else results[0]


def _unary(name: str, value: Any) -> Any:
    op = relay.nn.relu if name == "nn.relu" else getattr(relay, name)
    return op(value)


CASES.extend(
    Case(f"random_{seed}", lambda seed=seed: main(_graph(seed)), tags=frozenset(["random"]))
    for seed in SEEDS
)
