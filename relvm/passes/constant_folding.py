"""Constant folding: evaluate operators on constants at compile time."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import field, replace

import numpy as np

from relvm.data_classes import dataclass
from relvm.errors import RelvmArithmeticError
from relvm.ir.expr import (
    Binding,
    Block,
    BuiltinCall,
    Constant,
    Expr,
    Function,
    If,
    MatchCast,
    Module,
    OpCall,
    Prim,
    PrimCall,
    Shape,
    Tuple,
    TupleItem,
    Var,
    constant,
    prim,
)
from relvm.ir.node import map_children, walk
from relvm.ir.operator import Effect
from relvm.ir.relate_sizes import checked_claim
from relvm.ir.scalar_ops import evaluate_row, find_row
from relvm.ir.symbolic import AnyDim, known_size
from relvm.ir.types import OBJECT, ShapeType, TensorType
from relvm.ir.verifier import Stage
from relvm.ir.visitor import map_blocks, with_bindings, with_value
from relvm.ops.folding import FoldingBudget
from relvm.passes.cse import computation_key
from relvm.passes.pass_manager import module_pass


@dataclass
class FoldingCache:
    """The values of folded calls, so that equal calls are folded only once.

    budget: the number of bytes and operations that are left for folding.
    results: the key of a call -> a pair of the call and its value.  The value is None if the call cannot be folded.
    Keys contain the ids of arrays.  The stored call keeps these arrays alive, so that the ids stay valid.
    """

    budget: FoldingBudget
    results: dict[Hashable, tuple[OpCall, Constant | None]] = field(default_factory=dict)


@module_pass("constant_folding", at=Stage.ANF, optional=True)
def constant_folding(module: Module) -> Module:
    """Evaluate pure operators on constants with their NumPy functions:

    y = add(const(f32[2], [1, 2]), const(f32[2], [3, 4]))   ->   const(f32[2], [4, 6])

    Equal calls on the same constant result in the same constant, so weights that layers share are not duplicated.
    The pass also simplifies tuples, conditionals and shapes.  `(a, b).0` becomes `a`.  An `if` on a constant condition
    becomes the branch that is taken.  An `if` with the same value in both branches becomes that value.  The shape of a
    tensor of known sizes becomes a constant.

    FoldingBudget limits the bytes of new constants and the work to compute them.
    """
    budget = make_budget(module)
    return module.with_functions(tuple(_function(function, budget) for function in module.functions))


def make_budget(module: Module) -> FoldingBudget:
    """Return the budget for constant folding in `module`, which depends on the total size of its constants."""
    arrays = {id(item.value): item.value for f in module.functions for item in walk(f) if isinstance(item, Constant)}
    return FoldingBudget(sum(array.nbytes for array in arrays.values()))


def _function(function: Function, budget: FoldingBudget) -> Function:
    known: dict[Var, Expr] = {}
    made = FoldingCache(budget)
    return map_blocks(lambda block: _block(block, known, made), function)


def _block(block: Block, known: dict[Var, Expr], cache: FoldingCache) -> Block:
    """Return `block` with constants folded, including those in its inner blocks.

    known: a variable -> its value, which is a tuple of atoms, or an atom that replaces the variable.  An atom is a
    variable or constant.  The variables of the block are added.
    cache: the cache of folded calls.
    """
    bindings: list[Binding | MatchCast] = []
    for binding in block.bindings:
        if not isinstance(binding, Binding):
            bindings.append(with_value(binding, _atom(binding.value, known)))
            continue
        bindings += _fold(binding, known, cache)
    result = _atom(block.result, known)
    return with_bindings(block, bindings, result)


def _fold(binding: Binding, known: dict[Var, Expr], cache: FoldingCache) -> list[Binding | MatchCast]:
    value = binding.value
    match value:
        case If(cond, Block() as then, Block() as orelse):
            cond = _atom(cond, known)
            if isinstance(cond, Constant | Prim):
                branch = _block(then if np.asarray(cond.value).item() else orelse, known, cache)
                return [*branch.bindings, *_bind_atom(binding, branch.result, known)]
            then, orelse = _block(then, known, cache), _block(orelse, known, cache)
            if then.result is orelse.result and not then.bindings and not orelse.bindings and cond.type != OBJECT:
                return _bind_atom(binding, then.result, known)
            return [replace(binding, value=replace(value, cond=cond, then=then, orelse=orelse))]
        case Function():
            return [with_value(binding, map_blocks(lambda block: _block(block, known, cache), value))]
    value = _atom(value, known) if isinstance(value, Var) else _with_known_atoms(value, known)
    match value:
        case TupleItem(Var() as tuple_, index) if isinstance(made_of := known.get(tuple_), Tuple):
            return _bind_atom(binding, made_of.fields[index], known)
        case OpCall(op, type=ShapeType(dims=dims)) if (
            op.effect is Effect.PURE and dims is not None and _all_known(dims)
        ):
            return _bind_atom(binding, Shape(dims), known)
        case Tuple():
            known[binding.var] = value
        case OpCall() if folded := _evaluate_once(value, cache):
            known[binding.var] = folded
            return []
        case BuiltinCall() if (claim := checked_claim(value)) and claim.truth_value():
            return []
        case PrimCall() if scalar := _evaluate_scalar(value):
            known[binding.var] = scalar
            return []
    return [with_value(binding, value)]


def _bind_atom(binding: Binding, atom: Expr, known: dict[Var, Expr]) -> list[Binding | MatchCast]:
    """Return the bindings that replace `binding`, whose value was folded to `atom`, a variable or constant.

    If `atom` has the type of the variable, return no binding, and record in `known` that `atom` replaces the variable.
    Otherwise return one binding of the variable to `atom`.
    """
    if atom.type != binding.var.type:
        return [with_value(binding, atom)]
    known[binding.var] = atom
    return []


def _with_known_atoms(value: Expr, known: dict[Var, Expr]) -> Expr:
    return map_children(lambda part: _atom(part, known), value)


def _atom(expr: Expr, known: dict[Var, Expr]) -> Expr:
    value = known.get(expr) if isinstance(expr, Var) else None
    return expr if value is None or isinstance(value, Tuple) else value


def _evaluate_once(call: OpCall, cache: FoldingCache) -> Constant | None:
    key = computation_key(call) if all(isinstance(arg, Constant | Shape) for arg in call.args) else None
    if key is None:
        return None
    if key not in cache.results:
        cache.results[key] = call, evaluate(call, cache.budget)
    return cache.results[key][1]


def evaluate(call: OpCall, budget: FoldingBudget) -> Constant | None:
    """Evaluate a call, and return its value as a constant.  Return None if the call cannot be folded.

    A call can be folded if it is pure, its arguments are constants, and `budget` suffices.
    """
    if call.op.effect is not Effect.PURE or not isinstance(call.type, TensorType) or not call.args:
        return None
    args: list[np.ndarray | tuple[int, ...]] = []
    for arg in call.args:
        match arg:
            case Constant(value=array):
                args.append(array)
            case Shape(dims=dims) if _all_known(dims):
                args.append(tuple(map(known_size, dims)))
            case _:
                return None
    if call.type.shape is None or not _all_known(call.type.shape) or call.type.dtype is None:
        return None
    if not budget.spend(call, args):
        return None
    result = np.asarray(call.op.numpy(*args, **dict(call.attributes)), dtype=call.type.dtype.numpy)
    assert result.shape == call.type.shape, f"{call.op}: NumPy gives shape {result.shape}, the type rule {call.type}"
    same = (arg for arg in call.args if isinstance(arg, Constant) and arg.value is result)
    return next(same, None) or constant(result, is_new=True)


def _evaluate_scalar(call: PrimCall) -> Prim | None:
    """Return the value of scalar arithmetic, or None if an operand is not constant or the operation fails.

    An operation that fails is not folded, so that it fails at run time.
    """
    args = [arg for arg in call.args if isinstance(arg, Prim)]
    if len(args) < len(call.args):
        return None
    row = find_row(call.function, tuple(arg.dtype for arg in args))
    try:
        return prim(evaluate_row(row, *(arg.value for arg in args)))
    except RelvmArithmeticError:
        return None


def _all_known(dims: tuple[AnyDim, ...]) -> bool:
    return all(isinstance(dim, int) for dim in dims)
