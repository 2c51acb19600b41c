"""The backend of TVMConf 2020's BYOC demo: small enough to follow every rule by eye."""

from __future__ import annotations

from typing import Any

from byocviz.backends.base import Backend


def _patterns() -> list[Any]:
    from tvm.relax.dpl import is_op, wildcard

    def conv2d() -> Any:
        return is_op("relax.nn.conv2d")(wildcard(), wildcard())

    def relu(value: Any) -> Any:
        return is_op("relax.nn.relu")(value)

    # TVM applies the rules in order and a call belongs to the first that takes it: long ones first.
    return [
        ("tutorial.conv2d_bias_relu", relu(is_op("relax.add")(conv2d(), wildcard()))),
        ("tutorial.conv2d_relu", relu(conv2d())),
        ("tutorial.reshape", is_op("relax.reshape")(wildcard(), wildcard())),
        ("tutorial.add", is_op("relax.add")(wildcard(), wildcard())),
    ]


def backend() -> Backend:
    """Takes reshape and add by themselves, and conv2d with a relu, with or without a bias."""
    return Backend(
        "tutorial",
        _patterns,
        table='import byocviz\npatterns = byocviz.backends.get("tutorial").patterns()',
        source="byocviz",
    )
