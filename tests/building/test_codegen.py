"""byocviz's codegen is there only while it is needed, and subgraphs run in TVM's machine."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

import tvm
import tvm_ffi
from tvm import relax
from tvm_ffi.registry import remove_global_func

import byocviz
from byocviz.building import codegen
from byocviz.building.codegen import native, offload, registered
from byocviz.building.errors import BuildError, LoweringError
from byocviz.building.module import build_module
from byocviz.flow.relax.verify import max_difference, run_module, seeded_inputs
from tests.corpus import by_name

EXT = "relax.ext.tensorrt"


def partitioned(name: str) -> tuple[tvm.IRModule, tvm.IRModule]:
    """The module as it came and partitioned."""
    case = by_name(name)
    original = case.build()
    recording = byocviz.record(original, case.backend, prune=False, progress=False)
    return original, recording.__dict__["modules"]["partition"]


def names() -> set[str]:
    """What is registered, but for what TVM's own modules register as they are imported."""
    found = {str(n) for n in tvm_ffi.registry.list_global_func_names()}
    return {n for n in found if n.startswith(("relax.ext.", "fused_", "byocviz"))}


def test_only_calls_are_left_and_nothing_stays_registered() -> None:
    _, module = partitioned("diamond_two_levels")
    before = names()
    done = offload(module)
    assert done.functions
    assert not done.native
    assert names() == before
    text = done.module.script(show_meta=False)
    for symbol in done.functions:
        assert f'call_dps_packed("{symbol}"' in text
    left = [v.name_hint for v, f in done.module.functions_items() if isinstance(f, relax.Function)]
    assert left == ["main"]


def test_it_is_undone_where_it_fails() -> None:
    before = names()

    def fails() -> None:
        with registered(EXT, print), registered("byocviz.x", print):
            assert native("tensorrt")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert names() == before


def test_a_function_that_was_there_comes_back() -> None:
    tvm_ffi.register_global_func("byocviz.test.there", lambda: 1)
    try:
        with registered("byocviz.test.there", lambda: 2):
            assert tvm.get_global_func("byocviz.test.there")() == 2
            with registered("byocviz.test.there", lambda: 3):
                assert tvm.get_global_func("byocviz.test.there")() == 3
            assert tvm.get_global_func("byocviz.test.there")() == 2
        assert tvm.get_global_func("byocviz.test.there")() == 1
    finally:
        remove_global_func("byocviz.test.there")


def test_a_module_that_runcodegen_does_not_take(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise ValueError("no such pass")

    _, module = partitioned("chain")
    before = names()
    monkeypatch.setattr(codegen.relax.transform, "RunCodegen", broken)
    with pytest.raises(BuildError, match="no such pass"):
        offload(module)
    assert names() == before


def test_a_native_codegen_is_not_replaced_but_used() -> None:
    _, module = partitioned("chain")
    seen: list[Any] = []

    def theirs(functions: Any, options: Any, constants: Any) -> list[Any]:
        seen.extend(functions)
        return []

    with pytest.raises(BuildError, match=r"relax\.ext\.tensorrt is not registered"):
        offload(module, codegen="native")
    with registered(EXT, theirs):
        with pytest.raises(BuildError, match="codegen='native'"):
            offload(module)
        assert not seen
        done = offload(module, codegen="native")
    assert done.native
    assert len(seen) == 1
    with pytest.raises(BuildError, match="'python'"):
        offload(module, codegen="other")


def test_a_recursive_module_is_not_given_to_runcodegen() -> None:
    """It would take the process with it."""
    _, module = partitioned("walkthrough")
    done = offload(module)
    assert len(done.functions) == 3
    with registered("relax.ext.tutorial", print), pytest.raises(BuildError, match="calls itself"):
        offload(module, codegen="native")


def renamed(module: tvm.IRModule, name: str) -> tvm.IRModule:
    """The module with its external function under another name."""
    (symbol,) = offload(module).functions
    return tvm.ir.load_json(tvm.ir.save_json(module).replace(symbol, name))


@pytest.mark.parametrize("name", ["vm.builtin.alloc_storage", "vm.builtin.match_shape"])
def test_no_function_of_tvm_s_own_is_replaced(name: str) -> None:
    original, module = partitioned("chain")
    inputs = seeded_inputs(original, "main", seed=4)
    theirs = tvm.get_global_func(name)
    renamed_module = renamed(module, name)
    with pytest.raises(BuildError, match=f"'{name}'.*global function") as caught:
        build_module(renamed_module)
    assert "Rename" in caught.value.mend
    executable = relax.build(original, "llvm")
    with pytest.raises(BuildError, match=f"'{name}'"):
        codegen.machine(executable, {name: print}, tvm.cpu())
    assert tvm.get_global_func(name).same_as(theirs)
    given = [t.numpy() for t in build_module(module).run(inputs)]
    assert max_difference(given, run_module(original, "main", inputs)) < 1e-4


CASES = (
    "chain",
    "chain_cut_once",
    "diamond_two_levels",
    "none_offloaded",
    "walkthrough",
    "mutual_recursion",
    "local_function",
    "batch_norm_of_parameters",
)


@pytest.mark.parametrize("name", CASES)
def test_a_built_module_gives_what_tvm_gives(name: str) -> None:
    original, module = partitioned(name)
    backend = by_name(name).backend
    before = names()
    built = build_module(module, backend, "onnxruntime", options={"threads": 1})
    assert names() == before
    inputs = seeded_inputs(original, "main", seed=4)
    given = [t.numpy() for t in built.run(inputs)]
    assert max_difference(given, run_module(original, "main", inputs)) < 1e-4
    again = [t.numpy() for t in built.run(list(inputs.values()))]
    assert max_difference(given, again) == 0


def test_a_subgraph_with_several_outputs() -> None:
    x = relax.Var("x", relax.TensorType((2, 4), "float32"))
    builder = relax.BlockBuilder()
    op = relax.op
    with builder.function("main", [x]):
        with builder.dataflow():
            parts = builder.emit(op.split(builder.emit(op.nn.relu(x)), 2, 1))
            first, second = builder.emit(parts[0]), builder.emit(parts[1])
            other = builder.emit(op.nn.leakyrelu(first))
            total = builder.emit_output(op.add(other, second))
            kept = builder.emit_output(second)
        builder.emit_func_output(relax.Tuple([total, kept]))
    original = builder.get()
    recording = byocviz.record(original, prune=False, progress=False)
    built = build_module(recording.__dict__["modules"]["partition"])
    assert max(len(e.outputs) for e in built.engines.values()) > 1
    value = np.random.default_rng(0).standard_normal((2, 4)).astype("float32")
    given = [t.numpy() for t in built.run([value])]
    assert max_difference(given, run_module(original, "main", [value])) == 0


def test_two_builds_with_the_same_symbols_run_side_by_side() -> None:
    """The same graph twice, with other weights: each keeps its own engine."""
    original, module = partitioned("chain")
    first = build_module(module)
    second = build_module(module)
    assert set(first.engines) == set(second.engines)
    inputs = seeded_inputs(original, "main", seed=4)
    wanted = [t.numpy() for t in first.run(inputs)]
    for symbol in list(second.engines):
        engine = second.engines[symbol]
        assert engine is not first.engines[symbol]
    results: list[Any] = []

    def run(built: Any) -> None:
        results.append([t.numpy() for t in built.run(inputs)])

    threads = [threading.Thread(target=run, args=(b,)) for b in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 2
    assert all(max_difference(wanted, result) == 0 for result in results)


def test_what_does_not_lower_is_refused_before_anything_is_built() -> None:
    x = relax.Var("x", relax.TensorType((1, 4, 6, 6), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(
                relax.op.layout_transform(x, lambda n, c, h, w: (n, c // 4, h, w, c % 4))
            )
        builder.emit_func_output(y)
    recording = byocviz.record(builder.get(), prune=False, progress=False)
    with pytest.raises(LoweringError, match=r"layout_transform.*operator \d+.*index_map"):
        build_module(recording.__dict__["modules"]["partition"])


def test_a_private_entry_runs_and_an_unknown_one_is_an_error() -> None:
    case = by_name("private_entry_beside_a_main")
    original = case.build()
    recording = byocviz.record(original, entry=case.entry, prune=False, progress=False)
    module = recording.__dict__["modules"]["partition"]
    built = build_module(module, entry=case.entry)
    inputs = seeded_inputs(original, case.entry)
    given = [t.numpy() for t in built.run(inputs)]
    assert max_difference(given, run_module(original, case.entry, inputs)) < 1e-4
    with pytest.raises(BuildError, match="no function 'nothing'"):
        build_module(module, entry="nothing")


def test_a_module_of_another_backend() -> None:
    _, module = partitioned("walkthrough")
    with pytest.raises(BuildError, match="not of the backend"):
        build_module(module, "mychip")
