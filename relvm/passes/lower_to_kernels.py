"""Lowering of operators to kernels, views and builtins."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import replace
from itertools import chain

import relvm.ops  # declares the operators  # noqa: F401
from relvm.errors import RelvmError, RelvmNameError, RelvmUnsupportedError, located, near_matches
from relvm.ir.bind_dims import match_dims
from relvm.ir.dtypes import DType, dtype_of
from relvm.ir.expr import (
    Binding,
    Block,
    BuiltinCall,
    DTypeValue,
    Expr,
    Function,
    Fused,
    KernelCall,
    MatchCast,
    Module,
    OpCall,
    Shape,
    Var,
    prim,
)
from relvm.ir.symbolic import AnyDim, DimVar
from relvm.ir.types import ShapeType, TensorType, Type
from relvm.ir.verifier import Stage
from relvm.ir.visitor import map_blocks, with_bindings, with_value
from relvm.kernels.fusion_group import Group
from relvm.kernels.group_cost import group_work
from relvm.kernels.kernel import Kernel, ReferenceKernel
from relvm.kernels.lower_kernel_def import lower_kernel_def
from relvm.kernels.lowering_rules import Alias, Builtin, Composition, Reinterpret
from relvm.passes.check_sizes import find_unknown_argument
from relvm.passes.decompose import expand_composite
from relvm.passes.pass_manager import Pass
from relvm.passes.util.used_names import used_names


def lower_to_kernels(target: str, *, favour: str = "speed") -> Pass:
    """Return the lowering pass for one target.

    Parameters
    ----------
    target
        "c": kernels are loop nests.  "numpy": kernels call the NumPy functions of operators.
    favour
        The goal of the kernels, one of relvm.kernels.kernel_builder.FAVOURS.
    """

    def run(module: Module) -> Module:
        """Replace each operator call by a call of a kernel for its types, by a view, or by a builtin:

        y = add(x, b)   ->   y = kernel add_f32(x, b) : f32[n, 64]

        A fused group becomes one kernel.  Kernels that the module defines are also lowered.  Equal kernels are
        generated only once.
        """
        lowering = _KernelLowering(module, target, favour)
        functions = tuple(map(lowering.function, module.functions))
        return replace(module, functions=functions, kernels=tuple(lowering.finish().items()))

    return Pass("lower_to_kernels", run, Stage.ANF, Stage.LOWERED)


class _KernelLowering:
    def __init__(self, module: Module, target: str, favour: str) -> None:
        self.target, self.favour = target, favour
        self.definitions = dict(module.kernels)
        self.used_names = used_names(module) - self.definitions.keys()
        self.kernels: dict[str, Kernel | ReferenceKernel] = {}
        self.known: dict[Hashable, str] = {}
        self.counts: dict[str, int] = {}
        self.origins: dict[str, list[tuple[tuple[str, ...], ...]]] = {}  # kernel -> member origins of each group

    def finish(self) -> dict[str, Kernel | ReferenceKernel]:
        """Return the generated kernels by name.

        A kernel that several groups share gets the source locations of all these groups.
        """
        for name, groups in self.origins.items():
            kernel = self.kernels[name]
            if len(groups) > 1 and isinstance(kernel, Kernel) and kernel.provenance:
                members = tuple(tuple(dict.fromkeys(chain(*each))) for each in zip(*groups, strict=True))
                self.kernels[name] = replace(kernel, provenance=replace(kernel.provenance, members=members))
        return self.kernels

    def function(self, function: Function) -> Function:
        return map_blocks(self.block, function)

    def block(self, block: Block) -> Block:
        bindings: list[Binding | MatchCast] = []
        for binding in block.bindings:
            try:
                self.binding(with_value(binding, map_blocks(self.block, binding.value)), bindings)
            except RelvmError as error:
                raise located(error, binding.var.origin) from error
        return with_bindings(block, bindings)

    def binding(self, binding: Binding | MatchCast, bindings: list) -> None:
        """Append `binding` to `bindings`, with an operator or fused group replaced by a call of a kernel or builtin."""
        match binding.value:
            case OpCall() as call if isinstance(binding, Binding):
                self.lower_op_call(binding, call, bindings)
            case Fused(Block(result=Var() as result) as body) if isinstance(binding, Binding):
                members = {inner.var: inner.value for inner in body.bindings if isinstance(inner.value, OpCall)}
                self.lower_group(binding, Group(members, (result,)), bindings)
            case KernelCall() as called if isinstance(binding, Binding):
                bindings.append(replace(binding, value=self.specialize_kernel(called)))
            case _:
                bindings.append(binding)

    def specialize_kernel(self, call: KernelCall) -> KernelCall:
        """Lower a call of a kernel that the module itself defines.

        The kernel is specialized for the sizes that are constant in this call.  Return a call of the specialized
        kernel.
        """
        definition = self.definitions.get(call.kernel)
        if definition is None:
            raise RelvmNameError(f"no kernel {call.kernel}{near_matches(call.kernel, self.definitions)}")
        sizes: dict[DimVar, AnyDim] = {}
        for buffer, arg in zip(definition.inputs, call.args, strict=True):
            match_dims(buffer.type, arg.type, sizes)
        match_dims(definition.result_type, call.type, sizes)
        known = {var: dim for var, dim in sizes.items() if isinstance(dim, int)}
        kernel_key = (definition, frozenset(known.items()))
        if kernel_key not in self.known:
            name = self.known[kernel_key] = self.unique(call.kernel)
            self.kernels[name] = lower_kernel_def(definition, known, name)
        return replace(call, kernel=self.known[kernel_key])

    def lower_op_call(self, binding: Binding, call: OpCall, bindings: list) -> None:
        """Append to `bindings` the binding that replaces `binding`, whose value is the operator call `call`.

        Its value is a call of a kernel or of a builtin, or the argument itself if the operator is an alias.
        """
        match call.op.lower:
            case Alias():
                bindings.append(replace(binding, value=call.args[0]))
                return
            case Builtin(name, attributes):
                given = dict(call.attributes)
                values = tuple(_builtin_argument(given[attribute]) for attribute in attributes)
                bindings.append(replace(binding, value=BuiltinCall(name, (*call.args, *values), type=call.type)))
                return
        if (unknown := find_unknown_argument(call)) is not None:
            is_shaped = isinstance(unknown, TensorType | ShapeType)
            hint = (
                "use match_cast to state its rank and dtype"
                if is_shaped
                else "use match_cast to convert it to a tensor"
            )
            raise RelvmUnsupportedError(f"{call.op}: an argument has type {unknown}; {hint}")
        if isinstance(call.op.lower, Reinterpret):
            shape = Shape(_known_shape(call.type, call))
            bindings.append(replace(binding, value=BuiltinCall("reshape", (call.args[0], shape), type=call.type)))
            return
        if self.target == "numpy":
            name = self.reference_kernel(call)
            bindings.append(replace(binding, value=KernelCall(name, call.args, type=call.type)))
            return
        members = {binding.var: call}
        if isinstance(call.op.lower, Composition):
            parts = expand_composite(replace(binding, value=call))
            members = {part.var: part.value for part in parts if isinstance(part.value, OpCall)}
        self.lower_group(binding, Group(members, (binding.var,), name=call.op.name), bindings)

    def lower_group(self, binding: Binding, group: Group, bindings: list) -> None:
        """Append to `bindings` a call of the kernel that computes `group`.  Generate the kernel unless an equal one
        exists.

        binding: the binding that the call replaces.
        """
        name = self.known.get(group.kernel_key)
        if name is None:
            name = self.known[group.kernel_key] = self.unique(group.base_name)
            self.kernels[name] = replace(group.kernel(name, favour=self.favour), work=group_work(group))
        origins = group.origins
        self.origins.setdefault(name, []).append(origins)
        found = tuple(dict.fromkeys(chain(*origins)))
        bindings.append(replace(binding, value=KernelCall(name, group.args, type=binding.var.type, origins=found)))

    def reference_kernel(self, call: OpCall) -> str:
        """Return the name of the kernel that calls the NumPy function of the operator.  Only target "numpy" uses it."""
        kernel_key = (call.op.name, call.attributes)
        if kernel_key not in self.known:
            name = self.known[kernel_key] = self.unique(call.op.name)
            self.kernels[name] = ReferenceKernel(call.op.name, json.dumps(dict(call.attributes), default=str))
        return self.known[kernel_key]

    def unique(self, base: str) -> str:
        while True:
            count = self.counts.get(base, 0)
            self.counts[base] = count + 1
            name = f"{base}_{count}" if count else base
            if name not in self.used_names:
                self.used_names.add(name)
                return name


def _builtin_argument(value: int | str | DType) -> Expr:
    """Convert `value`, an attribute of an operator, to an argument of a builtin."""
    return prim(value) if isinstance(value, int) else DTypeValue(dtype_of(value))


def _known_shape(type_: Type, call: OpCall) -> tuple[AnyDim, ...]:
    if not isinstance(type_, TensorType) or type_.shape is None:
        raise RelvmUnsupportedError(f"{call.op}: the shape of the result must be known at compile time")
    return type_.shape
