"""TensorRT-RTX builds engines without a GPU, and says why it does not run them."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("tensorrt_rtx")

import byocviz
from byocviz.building.errors import BuildError, EngineError
from byocviz.building.lower import lower
from byocviz.building.runtimes import get
from byocviz.building.runtimes.gpu import missing_gpu
from byocviz.flow.relax.compat import attribute
from byocviz.flow.relax.reasons import names_in
from byocviz.models import ssd
from tests.building.lower.lab import Cases, T, build
from tests.building.lower.test_coverage import KINDS, cases

RTX = get("tensorrt-rtx")


@pytest.fixture(scope="module")
def subgraph() -> Any:
    recording = byocviz.record(ssd.load(), progress=False)
    module = recording.__dict__["modules"]["prune"]
    (function,) = [f for _, f in module.functions_items() if attribute(f, "Codegen")]
    return lower(function)


def test_it_builds_the_ssd_for_a_named_gpu(subgraph: Any) -> None:
    assert RTX.supports(running=False) is None
    engine = RTX.build(subgraph, {"compute_capability": "8.9"})
    assert int(engine.describe()["bytes"]) > 1_000_000
    if missing_gpu() is not None:
        assert RTX.supports() == missing_gpu()
        with pytest.raises(EngineError):
            engine.run([np.zeros((1, 3, 300, 300), "float32")])


def test_a_gpu_that_it_does_not_know(subgraph: Any) -> None:
    with pytest.raises(BuildError, match="SM89"):
        RTX.build(subgraph, {"compute_capability": "5.0"})


def test_what_it_refuses_names_the_operator() -> None:
    from tvm import relax

    cases = Cases()
    cases(
        relax.op.vision.all_class_non_max_suppression, T(1, 5, 4), T(1, 2, 5),
        relax.const(3, "int64"), relax.const(0.5, "float32"), relax.const(0.1, "float32"),
    )  # fmt: skip
    module, _, _ = build(cases)
    with pytest.raises(BuildError) as caught:
        RTX.build(lower(module["main"]), {"compute_capability": "SM89"})
    assert "TensorRT-RTX" in str(caught.value)


def test_it_builds_every_operator_of_the_table() -> None:
    """One case of each in one network, in single precision."""
    wanted = {
        name
        for rule in byocviz.backends.get("tensorrt").rules()
        for name in names_in(rule.fusion.pattern)
    }
    picked = Cases()
    for case in cases():
        module, values, _ = build([case])
        name = operator(module)
        if name in wanted and all(v.dtype == np.float32 for v in values):
            wanted.remove(name)
            picked.append(case)
    assert not wanted
    module, _, _ = build(picked)
    engine = RTX.build(lower(module["main"]), {"compute_capability": "SM89"})
    assert int(engine.describe()["bytes"]) > 0


EXCEPTIONS: dict[str, tuple[str, str]] = {
    "type": (
        r".",
        r"TensorRT-RTX has no (float64|u?int16|uint32|uint64)",
    ),
    "pooling with dilation": (r"max_pool\dd\(.*dilation=", r"dilations other than 1"),
    "quantising round another zero point than 0": (
        r"quantize\(",
        r"shiftIsAllZeros|zero_point|Quantized constant|UINT8",
    ),
    "regions of interest, which its ROIAlign plugin would be for": (r"roi_align", r"plugin"),
    "int8 and uint8 are what is quantised, and nothing else": (
        r"(divide|floor_divide|mod|floor_mod|left_shift|right_shift)\(u?int8",
        r"Quantized constant|Could not infer output types|fmod attribute|UINT8|: false|requires "
        r"inputs with type",
    ),
    "products of integers": (r"matmul\(int", r"unsupported input type of INT(32|64)"),
    "no kernel for a transposed convolution with strides and dilation": (
        r"conv2d_transpose\(.*strides=(2|\(3, 2\)).*dilation=2",
        r"cudnn_impl|no runners",
    ),
    "scattering overwrites and does nothing else": (
        r"scatter_(elements|nd)\(.*(add|mul|min|max)\)",
        r"reduction",
    ),
}
"""What TensorRT-RTX 1.7 does not build of what byocviz lowers: by the cause, which cases, and
what it says of them. All else builds."""


@pytest.mark.parametrize("kind", [*KINDS, "numpy"])
def test_what_does_not_build_is_known(kind: str, request: pytest.FixtureRequest) -> None:
    """Each case of a converter as a network of its own; every eighth, with ``--full`` all."""
    home = "tests.building.lower." + ("test_numpy" if kind == "numpy" else f"convert.{kind}")
    given = getattr(import_module(home), "CASES", [])
    wrong = []
    for case in given if request.config.getoption("--full") else given[::8]:
        module, _, _ = build([case])
        expected = [said for which, said in EXCEPTIONS.values() if re.search(which, case.name)]
        try:
            RTX.build(lower(module["main"]), {"compute_capability": "SM89"})
        except BuildError as error:
            if not any(re.search(said, error.message) for said in expected):
                wrong.append(f"{case.name}: {error.message[:300]}")
    assert not wrong


def operator(module: Any) -> str:
    first = module["main"].body.blocks[0].bindings[0].value
    return str(getattr(getattr(first, "op", None), "name", ""))
