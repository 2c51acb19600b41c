"""What lowering one subgraph gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Port:
    """An input or output of a lowered subgraph.

    ``parameter`` is the position among the Relax function's parameters, -1 for an output;
    ``path`` leads into a tuple. ``dtype`` is NumPy's name, ``bfloat16`` included.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    parameter: int = -1
    path: tuple[int, ...] = ()


@dataclass
class Lowered:
    """The ONNX model of one subgraph, and what leads back from it to the module."""

    name: str
    model: Any
    """The `onnx.ModelProto`."""
    opset: int
    inputs: list[Port]
    """In the order in which the external function takes its tensors; tuples are taken apart."""
    outputs: list[Port]
    tuple_output: bool
    """Whether the function returns a tuple."""
    nodes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Ids of the operators that an ONNX node stands for, by its name; none for a node that only
    hands an input or constant on, or where the module was not recorded."""
    operators: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """ONNX nodes by the operator's id, in order."""
    calls: dict[str, str] = field(default_factory=dict)
    """The Relax operator by the ONNX node's name."""

    def serialized(self) -> bytes:
        """The model as bytes. Raises `BuildError` above ONNX's limit of 2 GiB."""
        from byocviz.building.errors import BuildError

        try:
            return bytes(self.model.SerializeToString())
        except ValueError as error:
            raise BuildError(
                f"The ONNX model of {self.name} cannot be serialised: {error}",
                "Models of 2 GiB and more are not supported; split the subgraph.",
            ) from error

    def text(self) -> str:
        """The model as text, without the values of large constants."""
        import onnx

        return str(onnx.printer.to_text(self.without_weights()))

    def without_weights(self, limit: int = 16) -> Any:
        """A copy of the model; constants of more than ``limit`` elements become inputs of it."""
        import onnx

        model = onnx.ModelProto()
        model.ir_version = self.model.ir_version
        model.producer_name = self.model.producer_name
        model.opset_import.extend(self.model.opset_import)
        graph, old = model.graph, self.model.graph
        graph.name = old.name
        graph.node.extend(old.node)
        graph.input.extend(old.input)
        graph.output.extend(old.output)
        for constant in old.initializer:
            count = 1
            for dim in constant.dims:
                count *= dim
            if count <= limit:
                graph.initializer.append(constant)
            else:
                graph.input.append(
                    onnx.helper.make_tensor_value_info(
                        constant.name, constant.data_type, list(constant.dims)
                    )
                )
        return model
