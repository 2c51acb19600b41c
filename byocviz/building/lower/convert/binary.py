"""Element-wise operators of two tensors and more; they broadcast as NumPy does."""

from __future__ import annotations

from typing import Any

from byocviz.building.lower.call import Call
from byocviz.building.lower.convert.unary import infinite
from byocviz.building.lower.graph import Graph, Tensor
from byocviz.building.lower.registry import converter

_NUMBERS = {
    "relax.add": "Add",
    "relax.subtract": "Sub",
    "relax.multiply": "Mul",
    "relax.maximum": "Max",
    "relax.minimum": "Min",
}
_COMPARE = {
    "relax.equal": "Equal",
    "relax.greater": "Greater",
    "relax.greater_equal": "GreaterOrEqual",
    "relax.less": "Less",
    "relax.less_equal": "LessOrEqual",
}
_LOGIC = {"relax.logical_and": "And", "relax.logical_or": "Or", "relax.logical_xor": "Xor"}
_BITS = {"relax.bitwise_and": "And", "relax.bitwise_or": "Or", "relax.bitwise_xor": "Xor"}


def _operands(call: Call) -> tuple[Tensor, Tensor]:
    """Both operands; a number written in place takes the other's type."""
    first, second = call.args[0], call.args[1]
    if isinstance(first, Tensor):
        return first, call.tensor(1, first.dtype)
    return call.tensor(0, getattr(second, "dtype", None)), call.tensor(1)


def _numbers(operator: str) -> Any:
    def convert(g: Graph, call: Call) -> Tensor:
        a, b = _operands(call)
        _no_bool(call, a, operator)
        return g.add(operator, a, b)

    return convert


def _no_bool(call: Call, x: Tensor, operator: str) -> None:
    if x.dtype == "bool":
        raise call.refuse("dtype", x.dtype, f"ONNX's {operator} takes numbers.", "Cast it first.")


def _compare(operator: str) -> Any:
    def convert(g: Graph, call: Call) -> Tensor:
        a, b = _operands(call)
        if a.dtype == "bool" and operator != "Equal":
            raise call.refuse("dtype", a.dtype, f"ONNX's {operator} takes numbers.")
        return g.add(operator, a, b, dtype="bool")

    return convert


def _logic(operator: str) -> Any:
    def convert(g: Graph, call: Call) -> Tensor:
        a, b = _operands(call)
        if a.dtype != "bool":
            raise call.refuse("dtype", a.dtype, f"ONNX's {operator} takes booleans.")
        return g.add(operator, a, b)

    return convert


def _bits(operator: str) -> Any:
    def convert(g: Graph, call: Call) -> Tensor:
        a, b = _operands(call)
        if a.dtype == "bool":
            return g.add(operator, a, b)
        if g.opset < 18:
            raise call.refuse(
                "dtype", a.dtype, f"ONNX has Bitwise{operator} from opset 18 on.", "opset=18"
            )
        return g.add(f"Bitwise{operator}", a, b)

    return convert


for _name, _operator in _NUMBERS.items():
    converter(_name)(_numbers(_operator))
for _name, _operator in _COMPARE.items():
    converter(_name)(_compare(_operator))
for _name, _operator in _LOGIC.items():
    converter(_name)(_logic(_operator))
for _name, _operator in _BITS.items():
    converter(_name)(_bits(_operator))


@converter("relax.not_equal")
def not_equal(g: Graph, call: Call) -> Tensor:
    a, b = _operands(call)
    return g.add("Not", g.add("Equal", a, b, dtype="bool"))


def _divisor(call: Call, b: Tensor) -> None:
    """Integers divided by zero are no number in TVM, and no model in ONNX Runtime."""
    if b.constant and "float" not in b.dtype and not b.value().all():
        raise call.refuse("divisor", 0, "An integer divided by zero has no result.", "Mend it.")


@converter("relax.divide")
def divide(g: Graph, call: Call) -> Tensor:
    """Integers are cut towards zero, by TVM and by ONNX."""
    a, b = _operands(call)
    _no_bool(call, a, "Div")
    _divisor(call, b)
    return g.add("Div", a, b)


@converter("relax.floor_divide")
def floor_divide(g: Graph, call: Call) -> Tensor:
    a, b = _operands(call)
    _no_bool(call, a, "Div")
    _divisor(call, b)
    if "float" in a.dtype:
        return g.add("Floor", g.add("Div", a, b))
    if a.dtype.startswith("uint"):
        return g.add("Div", a, b)
    # Div cuts towards zero: one less where something is left whose sign is not the divisor's.
    # All of it stays within the type, which a - Mod(a, b) does not next to its least number.
    quotient = g.add("Div", a, b)
    rest = g.add("Sub", a, g.add("Mul", quotient, b))
    zero = g.scalar(0, a.dtype)
    some = g.add("Not", g.add("Equal", rest, zero, dtype="bool"))
    below = [g.add("Less", x, zero, dtype="bool") for x in (rest, b)]
    less = g.add("And", some, g.add("Xor", *below))
    return g.add("Sub", quotient, g.cast(less, a.dtype))


@converter("relax.mod")
def mod(g: Graph, call: Call) -> Tensor:
    """The remainder with the dividend's sign."""
    a, b = _operands(call)
    _no_bool(call, a, "Mod")
    _divisor(call, b)
    return g.add("Mod", a, b, fmod=1)


@converter("relax.floor_mod")
def floor_mod(g: Graph, call: Call) -> Tensor:
    """The remainder with the divisor's sign."""
    a, b = _operands(call)
    _no_bool(call, a, "Mod")
    _divisor(call, b)
    if "float" in a.dtype:
        return g.add("Sub", a, g.add("Mul", g.add("Floor", g.add("Div", a, b)), b))
    return g.add("Mod", a, b, fmod=0)


@converter("relax.power")
def power(g: Graph, call: Call) -> Tensor:
    a, b = _operands(call)
    if "float" not in a.dtype:
        raise call.refuse("dtype", a.dtype, "TVM compiles power for floats only.")
    return g.add("Pow", a, b)


@converter("relax.where")
def where(g: Graph, call: Call) -> Tensor:
    condition, a, b = call.tensor(0), call.tensor(1), call.tensor(2)
    if condition.dtype != "bool":
        condition = g.cast(condition, "bool")
    if a.dtype == "bool":  # runtimes choose between numbers only
        first = g.add("And", condition, a)
        return g.add("Or", first, g.add("And", g.add("Not", condition), b))
    return g.add("Where", condition, a, b, dtype=a.dtype)


@converter("relax.ewise_fma")
def ewise_fma(g: Graph, call: Call) -> Tensor:
    a, b, c = call.tensor(0), call.tensor(1), call.tensor(2)
    return g.add("Add", g.add("Mul", a, b), c)


@converter("relax.log_add_exp")
def log_add_exp(g: Graph, call: Call) -> Tensor:
    """max(a, b) + log(exp(a - max) + exp(b - max)); where the maximum is infinite, without it."""
    call.floats()
    a, b = _operands(call)
    top = g.add("Max", a, b)
    endless = infinite(g, top)
    top = g.add("Where", endless, g.scalar(0, a.dtype), top, dtype=a.dtype)
    parts = [g.add("Exp", g.add("Sub", x, top)) for x in (a, b)]
    return g.add("Add", top, g.add("Log", g.add("Add", *parts)))


@converter("relax.left_shift")
def left_shift(g: Graph, call: Call) -> Tensor:
    return _shift(g, call, "LEFT")


@converter("relax.right_shift")
def right_shift(g: Graph, call: Call) -> Tensor:
    """Of a signed number the sign stays: the quotient by a power of two, rounded down."""
    return _shift(g, call, "RIGHT")


def _shift(g: Graph, call: Call, direction: str) -> Tensor:
    """ONNX shifts unsigned numbers; a signed one by a number of bits that is known."""
    a, b = _operands(call)
    if a.dtype.startswith("uint"):
        return g.add("BitShift", a, b, direction=direction)
    bits = int(a.dtype.removeprefix("int")) if a.dtype.startswith("int") else 0
    if not bits:
        raise call.refuse("dtype", a.dtype, "Bits of integers are shifted.")
    if not b.constant:
        raise call.refuse("dtype", a.dtype, "ONNX shifts unsigned numbers only.",
                          "Shift by a constant, or cast to an unsigned type.")  # fmt: skip
    by = b.value()
    if by.size and (by.min() < 0 or by.max() > bits - 2):
        raise call.refuse(
            "bits", by.tolist(), f"{a.dtype} is shifted by 0 to {bits - 2} bits here."
        )
    power = g.constant(2 ** by.astype("int64"), a.dtype)
    if direction == "LEFT":
        return g.add("Mul", a, power)
    return g.add("Div", g.add("Sub", a, g.add("Mod", a, power)), power)
