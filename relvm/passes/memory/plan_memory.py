"""Memory planning: explicit allocation of tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from relvm.errors import RelvmUnsupportedError, located
from relvm.ir.dtypes import U8
from relvm.ir.expr import (
    Binding,
    Block,
    BuiltinCall,
    DTypeValue,
    Expr,
    If,
    KernelCall,
    KernelRun,
    Module,
    Shape,
    Tuple,
    Var,
    prim,
)
from relvm.ir.node import walk
from relvm.ir.symbolic import DimVar, known_size, product
from relvm.ir.types import OBJECT, VOID, TensorType, TupleType
from relvm.ir.value_ranges import Range, declared_ranges
from relvm.ir.verifier import Stage
from relvm.ir.visitor import map_blocks, with_value
from relvm.kernels.kernel import Kernel
from relvm.passes.memory.buffer_reuse import ArenaStorage, BlockPlan, name_of, plan_block, result_tensors
from relvm.passes.memory.liveness import Scope, Value
from relvm.passes.pass_manager import module_pass


@module_pass("plan_memory", at=Stage.LOWERED, to=Stage.PLANNED)
def plan_memory(module: Module) -> Module:
    """Allocate the tensors that kernels write:

    y = kernel sum_f32(x)   ->   y_storage = builtin.alloc_storage(shape(n, 64), 0, dtype(f32))
                                 y = builtin.alloc_tensor(y_storage, 0, shape(n, 64), dtype(f32))
                                 _ = run sum_f32(x, y)
    z = kernel relu_f32(y)  ->   _ = run relu_f32(y, y)
                                 z = y

    A kernel that updates a tensor which does not belong to the block, such as a parameter, updates the tensor itself if
    nothing else refers to it at run time, and otherwise a copy:

    y = kernel scatter_f32(x, i, u)   ->   y = builtin.unshare_tensor(x)
                                           _ = run scatter_f32(y, i, u, y)

    Tensors that are not needed at the same time can share a storage, by the rules of
    relvm/passes/memory/buffer_reuse.py.  The pass insert_kills adds the release of each value after its last use.
    """
    kernels = dict(module.kernels)
    updating = _updating(kernels)
    functions = []
    for function in module.functions:
        planner = _Planner(kernels, updating, declared_ranges(function))
        functions.append(replace(function, body=planner.block(function.block, Scope(), frozenset())))
    return module.with_functions(tuple(functions))


def _updating(kernels: Mapping[str, object]) -> frozenset[str]:
    """Return the names of the kernels that update an argument."""
    return frozenset(
        name for name, kernel in kernels.items() if isinstance(kernel, Kernel) and kernel.updated is not None
    )


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
    updating = _updating(kernels)
    for function in module.functions:
        planner = _Planner(kernels, updating, declared_ranges(function))
        yield from planner.plans(function.name, function.block, Scope(), frozenset())


def _used_roots(expr: Expr, scope: Scope) -> set[Var]:
    """Return the roots of the variables that occur in an expression."""
    return {scope.root(item) for item in walk(expr) if isinstance(item, Var)}


class _Planner:
    """Planner of the memory of a function.

    updating: the names of the kernels that update an argument.
    """

    def __init__(self, kernels: Mapping[str, object], updating: frozenset[str], ranges: Mapping[DimVar, Range]) -> None:
        self.kernels = kernels
        self.updating = updating
        self.ranges = ranges

    def plans(self, place: str, block: Block, outer: Scope, needed: frozenset[Var]) -> Iterator[tuple[str, BlockPlan]]:
        """Yield the plan of `block` and of its inner blocks, as `memory_plans` does.   place: where the block is."""
        scope = outer.enter(block, needed)
        yield place, plan_block(block, scope, self.kernels, self.ranges)
        needed_after = self.needed_after_branches(block, scope)
        for binding in block.bindings:
            match binding.value:
                case If(_, Block() as then, Block() as orelse):
                    later = needed_after.get(binding.var, frozenset())
                    for name, branch in (("then", then), ("else", orelse)):
                        yield from self.plans(f"{place}, {binding.var.name}: {name}", branch, scope, later)

    def block(self, block: Block, outer: Scope, needed: frozenset[Var]) -> Block:
        """Return `block` with allocations.

        outer: the scope of the enclosing block.
        needed: the roots of the variables that the enclosing blocks use after `block`.
        """
        scope = outer.enter(block, needed)
        placing = _BlockRewriter(plan_block(block, scope, self.kernels, self.ranges))
        needed_after = self.needed_after_branches(block, scope)
        for binding in block.bindings:
            match binding.value:
                case KernelCall() as call if isinstance(binding, Binding):
                    placing.add_kernel_run(binding, call)
                case value:
                    later = needed_after.get(binding.var, frozenset())
                    inner = map_blocks(partial(self.block, outer=scope, needed=later), value)
                    placing.bindings.append(with_value(binding, inner))
        return replace(block, bindings=tuple(placing.bindings))

    def needed_after_branches(self, block: Block, scope: Scope) -> dict[Var, frozenset[Var]]:
        """Return, for each `if` of a block, the roots of the variables that are used after it, in the block and
        outside.

        An `if` in whose branches no kernel updates an argument is left out, because the roots are then not used.
        """
        found: dict[Var, frozenset[Var]] = {}
        if not self.updating or not any(isinstance(binding.value, If) for binding in block.bindings):
            return found
        later = {*scope.needed, *_used_roots(block.result, scope)}
        for binding in reversed(block.bindings):
            if isinstance(binding.value, If) and self.updates(binding.value):
                found[binding.var] = frozenset(later)
            later |= _used_roots(binding.value, scope)
        return found

    def updates(self, expr: Expr) -> bool:
        return any(isinstance(item, KernelCall) and item.kernel in self.updating for item in walk(expr))


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
        args = call.args
        if binding.var in self.plan.unshared:
            args = tuple(outputs[0] if arg is self.plan.unshared[binding.var] else arg for arg in args)
        run = KernelRun(call.kernel, (*args, *outputs), names=names)
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
        if value in self.plan.unshared:
            given = self.plan.unshared[value]
            self.bindings.append(Binding(var, BuiltinCall("unshare_tensor", (given,), type=type_)))
            return var
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
