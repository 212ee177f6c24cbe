"""Simulation of planned functions: the memory held at each point, and whether a live value is overwritten."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from relvm.ir.expr import (
    Binding,
    Block,
    BuiltinCall,
    Call,
    DTypeValue,
    Expr,
    Function,
    If,
    KernelCall,
    KernelRun,
    Kill,
    Module,
    PackedCall,
    Prim,
    Shape,
    Tuple,
    TupleItem,
    Var,
    prim,
)
from relvm.ir.node import walk
from relvm.ir.symbolic import AnyDim, evaluate_with
from relvm.ir.types import OBJECT, VOID, ShapeType, TupleType
from relvm.ir.verifier import Stage
from relvm.passes.pass_manager import Pass, function_pass, run_passes
from relvm.passes.pipeline import build_pipeline


@function_pass("a storage for each", at=Stage.LOWERED, to=Stage.PLANNED)
def a_storage_for_each(function: Function) -> Function:
    """Allocate a separate storage for each tensor.  The results of plan_memory are compared with this pass."""
    return replace(function, body=_unplanned(function.body))


def _unplanned(block: Block) -> Block:
    bindings: list = []
    for binding in block.bindings:
        match binding.value:
            case KernelCall(kernel, args) as call:
                types = call.type.fields if isinstance(call.type, TupleType) else (call.type,)
                outs = tuple(Var(f"{binding.var.name}_{i}", type=type_) for i, type_ in enumerate(types))
                for out, type_ in zip(outs, types, strict=True):
                    shape, dtype, storage = Shape(type_.shape), DTypeValue(type_.dtype), Var("s", type=OBJECT)
                    bindings.append(Binding(storage, BuiltinCall("alloc_storage", (shape, prim(0), dtype))))
                    made = BuiltinCall("alloc_tensor", (storage, prim(0), shape, dtype), type=type_)
                    bindings.append(Binding(out, made))
                bindings.append(Binding(Var("_", type=VOID), KernelRun(kernel, (*args, *outs))))
                whole = Tuple(outs, type=call.type) if isinstance(call.type, TupleType) else outs[0]
                bindings.append(replace(binding, value=whole))
            case If(then=then, orelse=orelse) as value:
                value = replace(value, then=_unplanned(then), orelse=_unplanned(orelse))
                bindings.append(replace(binding, value=value))
            case _:
                bindings.append(binding)
    return replace(block, bindings=tuple(bindings))


def planned(module: Module, planner: Pass | None = None) -> Module:
    """Run the pass pipeline on a module.  planner: a pass that replaces plan_memory, or None."""
    steps = [planner if planner and step.name == "plan_memory" else step for step in build_pipeline("c", fused=False)]
    return run_passes(module, steps, verified=True)


@dataclass(eq=False)
class Region:
    """A storage: memory that was allocated by one call."""

    size_bytes: int


@dataclass(eq=False)
class Array:
    """A tensor in a region.  overwritten: whether another tensor was written over it."""

    region: Region
    start: int
    stop: int
    overwritten: bool = False

    def meets(self, other: Array) -> bool:
        return self.region is other.region and self.start < other.stop and other.start < self.stop


@dataclass
class Trace:
    """The memory use of a simulated run.

    held: the bytes held at each kernel and each call.  at_calls: the bytes held at each call.  allocations: the number
    of storages allocated.
    """

    held: list[int] = field(default_factory=list)
    at_calls: list[int] = field(default_factory=list)
    allocations: int = 0


def trace(module: Module, name: str, sizes: dict[str, int], seed: int) -> Trace:
    """Simulate a run of a function in a module from `planned`.

    Fail if the run uses an overwritten value, or overwrites a value that is visible outside the function.

    sizes: the values of dimension variables, by name.   seed: determines the branches taken.  Two plans of the same
    module take the same branches.
    """
    return _Run(module, sizes, seed).function(module[name])


class _Run:
    def __init__(self, module: Module, sizes: dict[str, int], seed: int) -> None:
        self.kernels = dict(module.kernels)
        self.sizes = sizes
        self.random = random.Random(seed)
        self.registers: dict[Var, object] = {}
        self.left: list[Array] = []  # tensors that may be visible outside the function
        self.trace = Trace()

    def function(self, function: Function) -> Trace:
        self.registers = dict.fromkeys(function.params)
        self.left += arrays_in(self.block(function.body))
        return self.trace

    def block(self, block: Block) -> object:
        for binding in block.bindings:
            self.binding(binding)
        return self.value(block.result)

    def binding(self, binding: Binding) -> None:
        match binding.value:
            case Kill(var):
                del self.registers[var]
                return
            case If(then=then, orelse=orelse):
                self.note(self.trace.at_calls)
                result = self.block(then if self.random.random() < 0.5 else orelse)
            case KernelRun(kernel, args):
                self.kernel(len(self.kernels[kernel].outputs), args)
                result = None
            case BuiltinCall("alloc_storage", (size, _, DTypeValue(dtype))):
                self.trace.allocations += 1
                result = Region(self.elements(size) * dtype.size_bytes)
            case BuiltinCall("alloc_tensor", (storage, Prim(offset), shape, DTypeValue(dtype))):
                region = self.registers[storage]
                result = Array(region, offset, offset + self.elements(shape) * dtype.size_bytes)
                assert offset % dtype.size_bytes == 0 and result.stop <= region.size_bytes
            case BuiltinCall("reshape", (tensor, _)):
                viewed = self.value(tensor)
                result = viewed and Array(viewed.region, viewed.start, viewed.stop, viewed.overwritten)
            case Tuple(fields):
                result = tuple(map(self.value, fields))
            case TupleItem(whole, index):
                parts = self.value(whole)
                result = parts[index] if parts else None
            case Call() | PackedCall() | BuiltinCall("make_closure") as value:
                for item in walk(value):
                    self.left += arrays_in(self.value(item)) if isinstance(item, Var) else []
                self.note(self.trace.at_calls)
                result = None
            case value:
                for item in walk(value):
                    self.value(item)
                result = None
        self.registers[binding.var] = result

    def kernel(self, outputs: int, args: tuple[Expr, ...]) -> None:
        values = [self.value(arg) for arg in args]
        self.note(self.trace.held)
        for out in values[len(values) - outputs :]:
            assert not any(out.meets(array) for array in self.left), "a value that has left is overwritten"
            for register in self.registers.values():
                for array in arrays_in(register):
                    array.overwritten |= array is not out and array.meets(out)

    def value(self, expr: object) -> object:
        if not isinstance(expr, Var):
            return None
        value = self.registers[expr]
        assert not any(array.overwritten for array in arrays_in(value)), f"{expr.name} is used and was overwritten"
        return value

    def note(self, where: list[int]) -> None:
        """Append the bytes held to `where`, including the overhead of each storage."""
        regions = {array.region for value in self.registers.values() for array in arrays_in(value)}
        regions |= {value for value in self.registers.values() if isinstance(value, Region)}
        held = sum(region.size_bytes + 96 for region in regions)
        where.append(held)
        if where is not self.trace.held:
            self.trace.held.append(held)

    def elements(self, size: Expr) -> int:
        match size:
            case Prim(count):
                return count
            case Shape(dims) | Var(type=ShapeType(dims)):
                return self.product(dims)
        raise AssertionError(f"no size: {size}")

    def product(self, dims: tuple[AnyDim, ...]) -> int:
        total = 1
        for dim in dims:
            total *= evaluate_with(dim, lambda var: self.sizes[var.name])
        return total


def arrays_in(value: object) -> Iterator[Array]:
    """Yield the tensors in a value."""
    if isinstance(value, Array):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from arrays_in(part)
