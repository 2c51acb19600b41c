"""The whole model for a runtime alone: the file that a recording began with, or the module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from byocviz.building.lower.lowered import Lowered, Port
from byocviz.building.variants import Whole, engine_inputs
from byocviz.errors import ByocvizError, StepMissing

if TYPE_CHECKING:
    from byocviz.building.built import Build
    from byocviz.recording import Recording


def whole(build: Build) -> Whole:
    """See `Build.whole`.

    Of a file whose results have a shape that depends on the data, the module comes first: its
    results have fixed ones, which the runtime's are written into.
    """
    try:
        found, of_file = original(build.recording), None
    except ByocvizError as error:
        found, of_file = None, Whole(None, cannot=error.message[:120], detail=error.message)
    fixed = found is not None and settled(found[0])
    if found is not None and fixed:
        of_file = _of_file(build, found)
        if of_file.engine is not None:
            return of_file
    of_module = _of_module(build)
    if found is not None and not fixed and of_module.engine is None:
        of_file = _run_once(build, _of_file(build, found))
        if of_file.engine is not None:
            return of_file
    # What the runtime says of the model itself, in the model's own words.
    return of_module if of_module.engine is not None or of_file is None else of_file


def _of_file(build: Build, found: tuple[Lowered, list[str]]) -> Whole:
    made = Whole.of(lambda: found, lambda one: build.plan.engine(one).engine)
    made.what = "the model file itself, as one graph"
    return made


def _of_module(build: Build) -> Whole:
    steps = {step.name for step in build.recording.steps if step.error is None}
    try:
        module = build.recording.module("prepare" if "prepare" in steps else "import")
    except StepMissing as error:
        return Whole(None, cannot="not saved with the build", detail=error.message)
    return Whole.of(
        lambda: build.runnable.lower_whole(module), lambda one: build.plan.engine(one).engine
    )


def _run_once(build: Build, made: Whole) -> Whole:
    """The same, where its results have the shapes that the module gives them."""
    if made.engine is None:
        return made
    values = build.named(None)
    given = engine_inputs(made.engine, [values[name] for name in made.names])
    run = made.engine.run
    try:
        made.first.watched(lambda: run(given))()
    except ByocvizError as error:
        return Whole(None, cannot=error.message[:120], detail=error.message)
    return made


def original(recording: Recording) -> tuple[Lowered, list[str]] | None:
    """The ONNX model that the recorded module was imported from, and the entry's parameters'
    names; None where there is none, or the module does not have the model's inputs and outputs.

    Raises `ModelError` where the file is not there any more, or has changed since.
    """
    held = recording.__dict__
    source = held.get("source")
    if source is None or recording.ir != "relax" or held.get("params"):
        return None
    function = recording.module("import")[recording.entry]
    model = source()
    graph = model.graph
    constants = {tensor.name for tensor in graph.initializer}
    given = [value for value in graph.input if value.name not in constants]
    inputs = _ports(given, [param.ty for param in function.params], parameters=True)
    outputs = _ports(graph.output, list(_flat(function.ret_ty)), parameters=False)
    if inputs is None or outputs is None:
        return None
    opset = max((e.version for e in model.opset_import if e.domain in ("", "ai.onnx")), default=1)
    lowered = Lowered(
        recording.entry, model, int(opset), inputs, outputs, len(outputs) != 1,
        calls={node.name: node.op_type for node in graph.node if node.name},
    )  # fmt: skip
    return lowered, [str(param.name) for param in function.params]


def settled(lowered: Lowered) -> bool:
    """Whether the model itself fixes the shapes of its outputs; they do not depend on data then."""
    for value, port in zip(lowered.model.graph.output, lowered.outputs, strict=True):
        dims = [d.dim_value for d in value.type.tensor_type.shape.dim]
        if tuple(dims) != port.shape:
            return False
    return True


def _flat(ty: Any) -> Iterator[Any]:
    from tvm import relax

    if isinstance(ty, relax.TupleType):
        for field in ty.fields:
            yield from _flat(field)
    else:
        yield ty


def _ports(values: Sequence[Any], types: Sequence[Any], *, parameters: bool) -> list[Port] | None:
    """The model's values with the module's fixed shapes; None where they are not the same."""
    from byocviz.building.lower.graph import onnx_type
    from byocviz.flow.relax.surgery import dtype_of, static_shape

    if len(values) != len(types):
        return None
    ports = []
    for index, (value, ty) in enumerate(zip(values, types, strict=True)):
        shape, dtype = static_shape(ty), dtype_of(ty)
        if shape is None or value.type.tensor_type.elem_type != onnx_type(dtype):
            return None
        ports.append(Port(value.name, dtype, shape, index if parameters else -1))
    return ports
