"""Operators become kernels, views and builtins."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

import relvm.ops  # declares the operators  # noqa: F401
from relvm.errors import RelvmUnsupportedError
from relvm.ir.dims import AnyDim, DimVar, dim_var
from relvm.ir.dtypes import dtype_of
from relvm.ir.expr import (
    Binding,
    Block,
    BuiltinCall,
    DTypeValue,
    Expr,
    Function,
    If,
    KernelCall,
    MatchCast,
    Module,
    OpCall,
    Shape,
    Var,
)
from relvm.ir.node import map_children
from relvm.ir.stages import Stage
from relvm.ir.types import TensorType, TupleType, Type
from relvm.lir.kernel import Buffer, Kernel, KernelBuilder, ReferenceKernel
from relvm.ops.lowering import Alias, Builtin, View
from relvm.transform.passes import Pass
from relvm.transform.run_time_shapes import with_known_shapes


def legalize(target: str) -> Pass:
    """The pass for one target.

    Parameters
    ----------
    target
        "c": kernels are loop nests.  "numpy": kernels are the operators' NumPy meanings, called as packed functions.
    """

    def run(module: Module) -> Module:
        """Replace each operator by a call of a kernel made for its types, by a view, or by a builtin:

        y = add(x, b)   ->   y = kernel add_f32(x, b) : f32[n, 64]

        Kernels that would be the same are made once.  Sizes that only the machine knows get names and checks by
        match_casts (relvm/transform/run_time_shapes.py).
        """
        legalizer = _Legalizer(target)
        functions = tuple(map(legalizer.function, module.functions))
        return replace(module, functions=functions, kernels=tuple(legalizer.kernels.items()))

    return Pass("legalize", run, Stage.NORMAL, Stage.LEGAL)


@dataclass(frozen=True)
class _Spec:
    """What decides whether two kernels are the same: the operator, its attributes, and the types with sizes
    numbered."""

    op: str
    attributes: tuple
    types: tuple


class _Legalizer:
    def __init__(self, target: str) -> None:
        self.target = target
        self.kernels: dict[str, Kernel | ReferenceKernel] = {}
        self.known: dict[_Spec, str] = {}
        self.counts: dict[str, int] = {}
        self.name = ""  # of the present function
        self.unnamed: set[DimVar] = set()  # its sizes that only the machine knows
        self.better: dict[Expr, Expr] = {}  # a variable -> one of the same value whose type says more
        self.cast: list[Expr] = []  # those of them that were cast in the present block

    def function(self, function: Function) -> Function:
        self.name, self.unnamed = function.name, set()
        return replace(function, body=self.block(function.body))

    def block(self, block: Block) -> Block:
        bindings: list[Binding | MatchCast] = []
        outer, self.cast = self.cast, []
        for binding in block.bindings:
            value = binding.value
            match value:
                case If(cond, then, orelse):
                    value = replace(value, cond=self.atom(cond), then=self.block(then), orelse=self.block(orelse))
                case Var():
                    value = self.atom(value)
                case _ if self.better:
                    value = map_children(self.atom, value)
            if value is not binding.value:
                binding = replace(binding, value=value)
            if isinstance(value, OpCall):
                self.op_call(binding, value, bindings)
            else:
                bindings.append(binding)
        result = self.atom(block.result)
        for var in self.cast:
            del self.better[var]
        self.cast = outer
        return replace(block, bindings=tuple(bindings), result=result)

    def atom(self, expr: Expr) -> Expr:
        while expr in self.better:  # no more often than it has dimensions
            expr = self.better[expr]
        return expr

    def op_call(self, binding: Binding, call: OpCall, bindings: list) -> None:
        """Appends what takes the place of `binding`."""
        match call.op.lower:
            case Alias():
                bindings.append(replace(binding, value=call.args[0]))
                return
            case Builtin(name, attributes):
                given = dict(call.attributes)
                dtypes = tuple(DTypeValue(dtype_of(given[attribute])) for attribute in attributes)
                bindings.append(replace(binding, value=BuiltinCall(name, (*call.args, *dtypes), type=call.type)))
                return
        known, casts = with_known_shapes(call, self.name, self.unnamed)
        if known is not call:
            bindings += casts
            var = Var(binding.var.name, type=known.type)
            for cast in casts:
                self.better[cast.value] = cast.var
                self.cast.append(cast.value)
            self.better[binding.var] = var
            binding, call = replace(binding, var=var), known
        if isinstance(call.op.lower, View):
            shape = Shape(_known_shape(call.type, call))
            bindings.append(replace(binding, value=BuiltinCall("reshape", (call.args[0], shape), type=call.type)))
            return
        args = call.args
        if self.target == "c":
            args = tuple(arg for arg in args if isinstance(arg.type, TensorType))
        kernel = KernelCall(self.kernel(call), args, type=call.type)
        bindings.append(replace(binding, value=kernel))

    def kernel(self, call: OpCall) -> str:
        """The name of the kernel for this call, made where there is none yet."""
        if self.target == "numpy":
            attributes = json.dumps(dict(call.attributes), default=str)
            return self.add(_Spec(call.op.name, call.attributes, ()), call, ReferenceKernel(call.op.name, attributes))
        sizes: dict[AnyDim, AnyDim] = {}
        types = tuple(
            _plain(type_, sizes) for type_ in (*_tensors(arg.type for arg in call.args), *_tensors([call.type]))
        )
        order = {dim: i for i, dim in enumerate(sizes.values())}
        numbered = tuple((t.dtype, tuple(d if isinstance(d, int) else f"#{order[d]}" for d in t.shape)) for t in types)
        spec = _Spec(call.op.name, call.attributes, numbered)
        if spec in self.known:
            return self.known[spec]
        output_count = len(_tensors([call.type]))
        names = _buffer_names(call, len(types) - output_count, output_count)
        buffers = tuple(Buffer(name, t.dtype, t.shape) for name, t in zip(names, types, strict=True))
        inputs, outputs = buffers[: len(types) - output_count], buffers[len(types) - output_count :]
        builder = KernelBuilder(names=dict.fromkeys(names, 1))
        call.op.lower.function(builder, inputs, outputs, **dict(call.attributes))
        same = tuple(i for i, buffer in enumerate(inputs) if _is_like(buffer, outputs[0]))
        in_place = same if call.op.lower.pointwise else ()
        kernel = Kernel("", inputs, outputs, builder.finish(), _comment(call), in_place)
        return self.add(spec, call, kernel)

    def add(self, spec: _Spec, call: OpCall, kernel: Kernel | ReferenceKernel) -> str:
        if spec in self.known:
            return self.known[spec]
        base = call.op.name if self.target == "numpy" else f"{call.op.name}_{_tensors([call.type])[0].dtype}"
        count = self.counts.get(base, 0)
        self.counts[base] = count + 1
        name = f"{base}_{count}" if count else base
        self.known[spec] = name
        self.kernels[name] = replace(kernel, name=name) if isinstance(kernel, Kernel) else kernel
        return name


def _is_like(buffer: Buffer, other: Buffer) -> bool:
    return (buffer.dtype, buffer.shape) == (other.dtype, other.shape)


def _known_shape(type_: Type, call: OpCall) -> tuple[AnyDim, ...]:
    if not isinstance(type_, TensorType) or type_.shape is None:
        raise RelvmUnsupportedError(f"{call.op}: the shape of its result is not known at compile time")
    return type_.shape


def _tensors(types: Iterable[Type]) -> list[TensorType]:
    found: list[TensorType] = []
    for type_ in types:
        match type_:
            case TensorType():
                found.append(type_)
            case TupleType(fields):
                found.extend(_tensors(fields))
    return found


def _plain(type_: TensorType, sizes: dict[AnyDim, AnyDim]) -> TensorType:
    """The type with each symbolic dimension a variable of the kernel's own, equal ones the same."""
    if type_.shape is None or type_.dtype is None:
        raise RelvmUnsupportedError(f"a kernel for a tensor of type {type_}")
    shape = tuple(
        dim if isinstance(dim, int) else sizes.setdefault(dim, dim_var(_size_name(dim))) for dim in type_.shape
    )
    return TensorType(type_.dtype, shape)


def _size_name(dim: AnyDim) -> str:
    text = str(dim)
    return text if text.isidentifier() else "size"


def _buffer_names(call: OpCall, inputs: int, outputs: int) -> list[str]:
    """C names after the operator's parameters."""
    tensor_params = [
        p.name for p, arg in zip(call.op.parameters, call.args, strict=False) if isinstance(arg.type, TensorType)
    ]
    names = [f"{tensor_params[i]}_" if i < len(tensor_params) else f"x{i}_" for i in range(inputs)]
    return names + (["out_"] if outputs == 1 else [f"out{i}_" for i in range(outputs)])


def _comment(call: OpCall) -> str:
    args = ", ".join(str(arg.type) for arg in call.args)
    attributes = "".join(f", {name}={value}" for name, value in call.attributes)
    return f"{call.op}({args}{attributes}) -> {call.type}"
