"""What an expression stands for, with its type; tuples are taken apart."""

from __future__ import annotations

from typing import Any

from tvm import relay

from byocviz.flow.reading import Origin, Value


class Typed(Value):
    """A value with its Relay type, as far as it is needed: of a leaf."""

    __slots__ = ("name", "source", "ty")

    def __init__(
        self,
        node: int,
        origin: Origin,
        out: int = 0,
        fields: list[Value] | None = None,
        expr: Any = None,
        ty: Any = None,
        name: str = "",
        source: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(node, origin, out, fields, expr)
        self.ty = ty
        self.name = name
        """Of the parameter that it is, if it is one."""
        self.source = source or (node, out)
        """The node and result that it comes from, tuples and elements looked through."""


def spread(
    node: int, origin: Origin, ty: Any, expr: Any = None, name: str = "", out: int = 0
) -> Value:
    """The value of a node; of a tuple type, its fields one by one.

    So a tuple that is passed whole has the same leaves as one that a pass takes apart.
    """
    if isinstance(ty, relay.TupleType):
        fields: list[Value] = []
        flat = 0
        for index, field in enumerate(ty.fields):
            part = spread(node, origin, field, expr, f"{name}.{index}" if name else "", out + flat)
            flat += sum(1 for _ in part.leaves())
            fields.append(part)
        return Typed(node, origin, out, fields, expr, ty, name)
    return Typed(node, origin, out, None, expr, ty, name)


def through(node: int, values: list[Value]) -> list[Value]:
    """The values as a drawn tuple or element hands them on: out of its node, of the same origin."""
    count = 0

    def again(value: Value) -> Value:
        nonlocal count
        ty, name = getattr(value, "ty", None), getattr(value, "name", "")
        if value.fields is not None:
            start = count
            fields = [again(field) for field in value.fields]
            return Typed(node, value.origin, start, fields, value.expr, ty, name)
        count += 1
        source = getattr(value, "source", None)
        return Typed(node, value.origin, count - 1, None, value.expr, ty, name, source)

    return [again(value) for value in values]
