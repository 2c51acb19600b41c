"""What a call that is no longer an operator was lowered from."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax
from tvm.ir import GlobalVar, Op

from byocviz.flow.relax.prepare import apply
from byocviz.flow.relax.reasons.graph import Def, Index, type_text
from byocviz.recording.schema import Reason

_CALLS = frozenset(
    {"relax.call_tir", "relax.call_tir_inplace", "relax.call_tir_with_grad",
     "relax.call_dps_packed", "relax.call_pure_packed", "relax.call_inplace_packed",
     "relax.call_builtin_with_ctx", "relax.call_py_func", "relax.invoke_closure",
     "relax.invoke_pure_closure"}
)  # fmt: skip
_MACHINE = ("relax.vm.", "relax.memory.", "relax.builtin.", "vm.builtin.")
# What one store of a TIR function computes, in Relax's words.
_STORES = {
    "Max": "maximum", "Min": "minimum", "Add": "add", "Sub": "subtract", "Mul": "multiply",
    "Div": "divide", "FloorDiv": "floor_divide", "FloorMod": "floor_mod", "Cast": "astype",
    "Select": "where", "LT": "less", "LE": "less_equal", "GT": "greater", "GE": "greater_equal",
    "EQ": "equal", "NE": "not_equal", "And": "logical_and", "Or": "logical_or",
    "Not": "logical_not",
}  # fmt: skip
_RESTORING = ("bind-parameters", "dataflow-blocks", "local-functions", "clip")
"""The rewrites that make operators of TIR functions, and those that prepare it."""
_PARTS = ("block", "body", "seq", "then_case", "else_case")


class Lowered:
    """Explains calls of TIR and external functions. Each function is read once."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._operators: frozenset[str] | None = None
        self._bodies: dict[str, tuple[str, str]] = {}
        self._back: frozenset[int] | None = None

    @staticmethod
    def is_one(of: Def) -> bool:
        if of.op in _CALLS or of.op.startswith(_MACHINE):
            return True
        return isinstance(of.value.op, relax.ExternFunc)

    def reason(self, of: Def) -> Reason:
        """The reason ``already-lowered``: from what, as far as the function tells."""
        value = of.value
        callee = value.op if isinstance(value.op, relax.ExternFunc) else None
        if callee is None and of.args and isinstance(of.args[0], GlobalVar | relax.ExternFunc):
            callee = of.args[0]
        over = type_text(value.ty)
        if isinstance(callee, GlobalVar):
            name = str(callee.name_hint)
            meaning, operator = self._prim(name)
            text = f"This is a TIR function already: {meaning} over {over} ({name})."
            if operator:
                text = (
                    f"This is a TIR function already: {meaning} over {over} ({name}); it looks "
                    f"like a lowered {operator}."
                )
            evidence = {"function": name, "computes": meaning, "result": over}
            if operator:
                evidence["operator"] = operator
            what = operator or "an operator"
            if of.tag in self._restored():
                mend = "Let the prepare step put the operator back: record(..., prepare=True)."
            else:
                mend = (
                    f"Rules match operators. Where relax.transform.LegalizeOps lowered {what}, "
                    f"record the module before it. Where an importer wrote the function, it stays "
                    f"on TVM: nothing puts the operator back."
                )
            return Reason("already-lowered", text, mend, evidence=evidence)
        if isinstance(callee, relax.ExternFunc):
            name = str(callee.global_symbol)
            text = f"This calls the external function {name} (result {over}); it is no operator."
            mend = (
                "Record the module before the pass that put the external function there "
                "(RunCodegen, a library dispatch), or write a rule with "
                f"is_call_packed({name!r}) or is_call_dps_packed({name!r})."
            )
            return Reason("already-lowered", text, mend, evidence={"function": name})
        text = f"{of.op} belongs to the lowered form of a module (result {over})."
        mend = "Record the module before it is lowered for the virtual machine."
        return Reason("already-lowered", text, mend, evidence={"operator": of.op})

    def _restored(self) -> frozenset[int]:
        """Tags of the calls of TIR functions that the prepare step would make operators again;
        none where it did all it can."""
        if self._back is None:
            module = self.index.module
            try:
                for name in _RESTORING:
                    module, _ = apply(module, name)
            except Exception:  # what the prepare step dies of, it does not mend
                module = self.index.module
            still = {tag for tag, made in Index(module).tagged.items() if self.is_one(made)}
            self._back = frozenset(
                tag
                for tag, made in self.index.tagged.items()
                if self.is_one(made) and tag not in still
            )
        return self._back

    def _prim(self, name: str) -> tuple[str, str]:
        """What a TIR function computes in a word, and the Relax operator that it resembles."""
        known = self._bodies.get(name)
        if known is not None:
            return known
        plain = name.rstrip("0123456789_") or name
        operator = self._operator(plain) or self._operator(name)
        meaning = plain
        if not operator:
            stores = self._stores(self.index.module[name])
            if len(stores) == 1:
                meaning = stores[0]
                operator = self._operator(meaning)
        self._bodies[name] = meaning, operator
        return meaning, operator

    def _operator(self, name: str) -> str:
        if self._operators is None:
            self._operators = frozenset(str(n) for n in Op.list_op_names())
        for candidate in (f"relax.{name}", f"relax.nn.{name}", f"relax.image.{name}"):
            if candidate in self._operators:
                return candidate
        return ""

    @staticmethod
    def _stores(function: Any) -> list[str]:
        """What the stores of a TIR function compute, each kind once, in order."""
        found: dict[str, None] = {}
        stack = [getattr(function, "body", None)]
        while stack and len(found) < 4:
            statement = stack.pop()
            if statement is None:
                continue
            if isinstance(statement, tvm.tirx.BufferStore):
                value = statement.value
                kind = type(value).__name__
                op = getattr(getattr(value, "op", None), "name", "")
                word = _STORES.get(kind) or str(op).rpartition(".")[2] or kind
                found[word] = None
                continue
            for part in _PARTS:
                inner = getattr(statement, part, None)
                if inner is None:
                    continue
                stack.extend(reversed(list(inner)) if part == "seq" else [inner])
        return list(found)
