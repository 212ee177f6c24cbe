"""Memory planning: explicit allocation of tensors."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import replace

from relvm.errors import RelvmUnsupportedError, located
from relvm.ir.dtypes import U8
from relvm.ir.expr import (
    Binding,
    Block,
    BuiltinCall,
    DTypeValue,
    Expr,
    Function,
    If,
    KernelCall,
    KernelRun,
    Module,
    Shape,
    Tuple,
    Var,
    prim,
)
from relvm.ir.symbolic import DimVar, known_size, product
from relvm.ir.types import OBJECT, VOID, TensorType, TupleType
from relvm.ir.value_ranges import Range, declared_ranges
from relvm.ir.verifier import Stage
from relvm.ir.visitor import map_blocks, with_value
from relvm.passes.memory.buffer_reuse import ArenaStorage, BlockPlan, name_of, plan_block, result_tensors
from relvm.passes.memory.liveness import Fields, Value, tuple_fields
from relvm.passes.pass_manager import module_pass


@module_pass("plan_memory", at=Stage.LOWERED, to=Stage.PLANNED)
def plan_memory(module: Module) -> Module:
    """Allocate the tensors that kernels write:

    y = kernel sum_f32(x)   ->   y_storage = builtin.alloc_storage(shape(n, 64), 0, dtype(f32))
                                 y = builtin.alloc_tensor(y_storage, 0, shape(n, 64), dtype(f32))
                                 _ = run sum_f32(x, y)
    z = kernel relu_f32(y)  ->   _ = run relu_f32(y, y)
                                 z = y

    Tensors that are not needed at the same time can share a storage, by the rules of
    relvm/passes/memory/buffer_reuse.py.  The pass insert_kills adds the release of a storage after its last use.
    """
    kernels = dict(module.kernels)
    functions = tuple(_function(function, kernels) for function in module.functions)
    return module.with_functions(functions)


def _function(function: Function, kernels: Mapping[str, object]) -> Function:
    planner = _Planner(kernels, declared_ranges(function))
    return replace(function, body=planner.block(function.block, ChainMap()))


def memory_plans(module: Module) -> Iterator[tuple[str, BlockPlan]]:
    """Yield a pair for each block of each function: a text that says where the block is, and its memory plan.

    A block is the body of a function or a branch of an `if`.  The pass `plan_memory` allocates memory by the same
    plans.

    Parameters
    ----------
    module
        A module at stage LOWERED.
    """
    kernels = dict(module.kernels)
    for function in module.functions:
        yield from _plans(function.name, function.block, ChainMap(), kernels, declared_ranges(function))


def _plans(
    place: str, block: Block, outer: Fields, kernels: Mapping[str, object], ranges: Mapping[DimVar, Range]
) -> Iterator[tuple[str, BlockPlan]]:
    fields = tuple_fields(block, outer)
    yield place, plan_block(block, fields, kernels, ranges)
    for binding in block.bindings:
        match binding.value:
            case If(_, Block() as then, Block() as orelse):
                yield from _plans(f"{place}, {binding.var.name}: then", then, fields, kernels, ranges)
                yield from _plans(f"{place}, {binding.var.name}: else", orelse, fields, kernels, ranges)


class _Planner:
    def __init__(self, kernels: Mapping[str, object], ranges: Mapping[DimVar, Range]) -> None:
        self.kernels = kernels
        self.ranges = ranges

    def block(self, block: Block, outer: Fields) -> Block:
        fields = tuple_fields(block, outer)
        placing = _BlockRewriter(plan_block(block, fields, self.kernels, self.ranges))
        for binding in block.bindings:
            match binding.value:
                case KernelCall() as call if isinstance(binding, Binding):
                    placing.add_kernel_run(binding, call)
                case value:
                    inner = map_blocks(lambda block: self.block(block, fields), value)
                    placing.bindings.append(with_value(binding, inner))
        return replace(block, bindings=tuple(placing.bindings))


class _BlockRewriter:
    """Rewrites the bindings of a block according to its memory plan."""

    def __init__(self, plan: BlockPlan) -> None:
        self.plan = plan
        self.variables: dict[ArenaStorage, Var] = {}
        self.bindings: list = []

    def add_kernel_run(self, binding: Binding, call: KernelCall) -> None:
        """Append the allocations for the results of a kernel call, then the call (`KernelRun`) that writes to them."""
        results = result_tensors(binding.var, call)
        if not results:
            error = RelvmUnsupportedError(f"kernel {call.kernel}: a result of type {call.type} is not supported")
            raise located(error, binding.var.origin)
        outputs = tuple(self.output_tensor(value, type_) for value, type_ in results)
        origins = tuple(dict.fromkeys((*binding.var.origins, *call.origins)))
        names = tuple(name_of(value) for value, _ in results)
        run = KernelRun(call.kernel, (*call.args, *outputs), names=names)
        self.bindings.append(Binding(Var("_", type=VOID, origins=origins), run))
        if isinstance(call.type, TupleType):
            self.bindings.append(replace(binding, value=Tuple(outputs, type=call.type)))
        elif outputs[0] is not binding.var:
            self.bindings.append(replace(binding, value=outputs[0]))

    def output_tensor(self, value: Value, type_: TensorType) -> Var:
        """Return the variable of the tensor into which a kernel writes `value`.

        Append the allocation of this tensor, unless `value` is computed in place.
        """
        assert type_.shape is not None and type_.dtype, f"{name_of(value)}: {type_}"
        if value in self.plan.overwritten:
            return self.plan.overwritten[value]
        var = value if isinstance(value, Var) else Var(name_of(value), type=type_)
        storage, offset = self.plan.placement[value]
        if storage not in self.variables:
            self.variables[storage] = self.allocate_storage(storage, var, type_)
        args = (self.variables[storage], prim(offset), Shape(type_.shape), DTypeValue(type_.dtype))
        self.bindings.append(Binding(var, BuiltinCall("alloc_tensor", args, type=type_)))
        return var

    def allocate_storage(self, storage: ArenaStorage, first: Var, type_: TensorType) -> Var:
        """Append the allocation of `storage`, and return its variable.

        first, type_: the first tensor in the storage, and its type.
        """
        shape, dtype = type_.known_shape, type_.known_dtype
        size: tuple[Expr, ...] = (Shape(shape), prim(0), DTypeValue(dtype))
        if product((*shape, dtype.size_bytes)) != storage.size_bytes:
            size = (prim(known_size(storage.size_bytes)), prim(0), DTypeValue(U8))
        var = Var("arena", type=OBJECT) if storage.is_arena else first.intermediate("storage", OBJECT)
        self.bindings.append(Binding(var, BuiltinCall("alloc_storage", size)))
        return var
