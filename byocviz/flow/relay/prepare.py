"""The passes that TVM's ``partition_for_tensorrt`` runs before MergeComposite, each by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import relay

from byocviz.errors import ModuleError, StepMissing

LAYOUTS = {
    "nn.conv1d": ["NCW", "default"],
    "nn.conv2d": ["NCHW", "default"],
    "nn.conv3d": ["NCDHW", "default"],
    "nn.conv2d_transpose": ["NCHW", "default"],
}
"""What partition_for_tensorrt asks ConvertLayout for: the layouts that its rules take."""


@dataclass(frozen=True)
class RelayRewrite:
    """One rewrite. ``run(module, entry, params)`` returns the rewritten module; where it differs,
    its types are inferred after, as ``call`` says."""

    name: str
    text: str
    call: str
    run: Callable[[tvm.IRModule, str, Any], tvm.IRModule]
    only: str = ""
    """The backend for which alone it runs by default; "" for all."""


def bound(module: tvm.IRModule, entry: str, params: Any) -> tvm.IRModule:
    """The module with the given weights, if any, as constants in the entry.

    Raises `ModuleError` for such as do not fit.
    """
    if not params:
        return module
    from byocviz.flow.relay.params import tensors

    function = module[entry]
    values = tensors(function, params, entry)
    copy = module.clone()
    copy.update_func(
        copy.get_global_var(entry), relay.build_module.bind_params_by_name(function, values)
    )
    return copy


def _no_dropout(module: tvm.IRModule, _: str, __: Any) -> tvm.IRModule:
    from tvm.relay.op.contrib.tensorrt import RemoveDropoutPass

    return RemoveDropoutPass()(module)


def _no_unused(module: tvm.IRModule, entry: str, _: Any) -> tvm.IRModule:
    # The pass writes into the module that it is given.
    return relay.transform.RemoveUnusedFunctions([entry])(module.clone())


def _layout(module: tvm.IRModule, _: str, __: Any) -> tvm.IRModule:
    return relay.transform.ConvertLayout(LAYOUTS)(module)


def _fold(module: tvm.IRModule, _: str, __: Any) -> tvm.IRModule:
    return relay.transform.FoldConstant()(module)


REWRITES = (
    RelayRewrite(
        "bind-parameters",
        "Weights that were given become constants in the entry function.",
        "from tvm import relay\n"
        "# params: the weights by parameter name\n"
        "mod = mod.clone()\n"
        "mod.update_func(\n"
        "    mod.get_global_var({entry!r}),\n"
        "    relay.build_module.bind_params_by_name(mod[{entry!r}], params),\n"
        ")\n"
        "mod = relay.transform.InferType()(mod)",
        bound,
    ),
    RelayRewrite(
        "infer-types",
        "Writes the type of every expression down.",
        "from tvm import relay\nmod = relay.transform.InferType()(mod)",
        lambda module, _, __: relay.transform.InferType()(module),
    ),
    RelayRewrite(
        "remove-dropout",
        "Takes out nn.dropout, which changes nothing when a model is used.",
        "from tvm import relay\n"
        "from tvm.relay.op.contrib.tensorrt import RemoveDropoutPass\n"
        "mod = relay.transform.InferType()(RemoveDropoutPass()(mod))",
        _no_dropout,
        "tensorrt",
    ),
    RelayRewrite(
        "remove-unused-functions",
        "Drops functions that the entry does not call.",
        "from tvm import relay\n"
        "# On a copy: the pass writes into the module that it is given.\n"
        "mod = relay.transform.RemoveUnusedFunctions([{entry!r}])(mod.clone())",
        _no_unused,
    ),
    RelayRewrite(
        "convert-layout",
        "Puts convolutions into the layouts that the rules take (NCHW and its like).",
        "from tvm import relay\n"
        f"layouts = {LAYOUTS!r}\n"
        "mod = relay.transform.InferType()(relay.transform.ConvertLayout(layouts)(mod))",
        _layout,
        "tensorrt",
    ),
    RelayRewrite(
        "fold-constant",
        "Computes what depends on constants alone.",
        "from tvm import relay\n"
        "mod = relay.transform.InferType()(relay.transform.FoldConstant()(mod))",
        _fold,
    ),
)


def rewrite(name: str) -> RelayRewrite:
    """The rewrite of that name. Raises `StepMissing` where there is none."""
    for spec in REWRITES:
        if spec.name == name:
            return spec
    raise StepMissing(
        f"There is no rewrite {name!r}.",
        f"Those of the prepare step on Relay: {', '.join(spec.name for spec in REWRITES)}.",
    )


def switched_on(
    spec: RelayRewrite, backend: str, switches: bool | Mapping[str, bool], params: Any
) -> bool:
    """Whether a rewrite runs in a recording for ``backend``."""
    if spec.name == "bind-parameters" and params:
        return True  # who gives parameters wants them bound
    usual = spec.only in ("", backend)
    if isinstance(switches, bool):
        return switches and usual
    return switches.get(spec.name, usual)


__all__ = ["LAYOUTS", "REWRITES", "ModuleError", "RelayRewrite", "rewrite", "switched_on"]
