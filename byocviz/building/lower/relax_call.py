"""One Relax call as a converter sees it."""

from __future__ import annotations

from typing import Any

from tvm import relax, tirx

from byocviz.building.lower.call import Call
from byocviz.flow.relax.surgery import dtype_of, static_shape


class RelaxCall(Call):
    """See `Call`."""

    fixed_mend = (
        "Give the module fixed shapes before it is recorded (relax.transform.BindSymbolicVars)."
    )

    def static_shape(self, ty: Any) -> tuple[int, ...] | None:
        return static_shape(ty)

    def dtype_of(self, ty: Any) -> str:
        return dtype_of(ty)

    def immediate(self, value: Any) -> float | int | None:
        if isinstance(value, (tirx.IntImm, tirx.FloatImm)):
            return value.value  # type: ignore[no-any-return]
        return None

    def items(self, value: Any) -> Any:
        return value.values if isinstance(value, relax.ShapeExpr) else None
