"""What a Relay rule's check objected to, and the mend."""

from __future__ import annotations

from typing import Any

from byocviz.flow import pruning
from byocviz.flow.relay.checks import Verdict, where
from byocviz.flow.relay.compat import plain
from byocviz.recording.schema import Reason


def _dtypes(call: Any) -> set[str]:
    """Of the tensors that a call takes."""
    found = set()
    todo = [arg.checked_type for arg in call.args]
    while todo:
        ty = todo.pop()
        todo += getattr(ty, "fields", ())
        if hasattr(ty, "dtype"):
            found.add(plain(ty.dtype))
    return found


def check_refused(verdict: Verdict, name: str, call: Any) -> Reason:
    """The reason of an operator ``name``, whose call is given, where a rule's check refused."""
    rule, refusal = verdict.rule, verdict.refusal
    if refusal is not None:
        text = f"The rule {rule.name} matches, but {refusal.text}"
        evidence = dict(refusal.evidence)
        return Reason(refusal.code, text, refusal.mend, rule.name, evidence)
    place = where(rule.check)
    said = "; ".join(dict.fromkeys(verdict.lines))
    evidence = {"check": place} if place else {}
    if said:
        evidence["logged"] = said
        text = f"The rule {rule.name} matches, but its check refuses: {said.rstrip('.')}."
    else:
        text = (
            f"The rule {rule.name} matches {name}, but its check"
            + (f" ({place})" if place else "")
            + " refuses and logs no cause."
        )
    mend = _mend(said, rule.name, place)
    if _DTYPES in said and _dtypes(call) <= {"float16", "float32"}:
        mend += _HALF
    return Reason("check-refused", text, mend, rule.name, evidence)


_EXPLICIT = (
    "TensorRT's implicit batch mode forbids it: byocviz.backends.relay_table.tensorrt("
    "use_implicit_batch=False) records for explicit batches."
)
_DTYPES = "tensor dtypes are supported"
_HALF = " Or allow float16: byocviz.backends.relay_table.tensorrt(use_fp16=True)."
_MENDS = (
    (
        ("batch", "scalar"),
        _EXPLICIT,
    ),
    (
        ("requires TensorRT version",),
        "Name the version that you have: byocviz.backends.relay_table.tensorrt("
        "tensorrt_version='8.6.1').",
    ),
    (
        (_DTYPES,),
        "Cast to float32 before it (relay.cast).",
    ),
    (
        ("statically known",),
        "Give the dimension a size (relay.frontend's shape argument, or a new parameter type).",
    ),
    (
        ("must be constant",),
        "Bind the weights: record(params=...).",
    ),
    (
        ("layout",),
        "Convert the layout first: relay.transform.ConvertLayout (the prepare step does).",
    ),
)
"""Words of TVM's TensorRT checks, and what to do about what they object to."""


def mend_pruned(cause: str) -> str:
    """What to do where a subgraph went back for this cause, TVM's or that of a policy."""
    if "scalar inputs" in cause or "batch sizes" in cause:
        return _EXPLICIT
    if "compute-intens" in cause:
        return (
            "It needs a multiply-accumulate, unless byocviz.backends.relay_table.tensorrt("
            "remove_no_mac_subgraphs=False), or prune=False, is recorded." + pruning.JOIN
        )
    return pruning.mend_pruned(cause)


def _mend(said: str, rule: str, place: str) -> str:
    if rule.startswith("tensorrt."):
        for words, mend in _MENDS:
            if any(word in said for word in words):
                return mend
    return (
        "Change what the check objects to"
        + (f"; it stands in {place}" if place else "")
        + ". The backend cannot run it as it is."
    )
