"""Destination passing: computing results directly in the storages that the caller provides for them.

Both branches of an `if` compute their results in the storages of the `if`.  A function computes its results in the
storages that its caller provides.  It copies a result that it did not compute itself, such as a parameter.  It also
copies a result whose number of elements is checked only at run time.
"""

from __future__ import annotations

from collections.abc import Iterator

from relvm.ir.expr import Block, BuiltinCall, Expr, MatchCast, Tuple, TupleItem, Var
from relvm.ir.symbolic import difference, product
from relvm.ir.types import TensorType, TupleType, Type

Targets = tuple[int | None, ...]  # for each tensor in a value, the storage in which it should be computed


def find_targets(block: Block, targets: Targets) -> dict[Var, Targets]:
    """Find the variables of a block that can be computed directly in the storages of the block's result.

    Return the storages of each of these variables.   targets: the storages of the block's result.

    A variable that occurs twice in the result is computed in the first storage and copied to the second.  A variable
    that is bound outside the block is also copied.
    """
    bound = {binding.var for binding in block.bindings}
    found: dict[Var, Targets] = {}

    def set_target(value: Expr, ids: Targets) -> None:
        if isinstance(value, Var) and value in bound:
            old = found.setdefault(value, (None,) * len(ids))
            pairs = zip(old, ids, strict=True)
            found[value] = tuple(number if before is None else before for before, number in pairs)

    set_target(block.result, targets)
    for binding in reversed(block.bindings):
        ids = found.get(binding.var, ())
        if not ids:
            continue
        if isinstance(binding, MatchCast):
            set_target(binding.value, _operand_targets(ids, binding.value.type, binding.var.type))
            continue
        match binding.value:
            case Var():
                set_target(binding.value, ids)
            case Tuple(fields):
                for item in fields:
                    count = _tensor_count(item.type)
                    set_target(item, ids[:count])
                    ids = ids[count:]
            case TupleItem(tuple_, index):
                counts = _tensor_counts(tuple_.type)
                before = sum(counts[:index])
                set_target(tuple_, (None,) * before + ids + (None,) * (sum(counts) - before - len(ids)))
            case BuiltinCall("reshape" | "to_device", args):
                set_target(args[0], _operand_targets(ids, args[0].type, binding.var.type))
    return found


def _operand_targets(ids: Targets, operand_type: Type, result_type: Type) -> Targets:
    """Return, for each tensor in the operand of a view or match_cast, the storage in which to compute it, or None.

    ids: the storages in which the result should be.
    operand_type, result_type: the types of the operand and the result.  The operand can use a storage only if both
    types provably have the same number of elements.  Otherwise a run-time check compares them, and the storage must not
    be written before that check.
    """
    if _tensor_count(operand_type) != len(ids):
        return ()
    leaves = zip(ids, tensor_leaves(operand_type), tensor_leaves(result_type), strict=True)
    return tuple(number if _have_equal_sizes(operand, result) else None for number, operand, result in leaves)


def _have_equal_sizes(operand: TensorType, result: TensorType) -> bool:
    if operand.shape is None or result.shape is None:
        return False
    return difference(product(operand.shape), product(result.shape)) == 0


def tensor_leaves(type_: Type) -> Iterator[TensorType]:
    """Yield the tensor types in a type, from left to right."""
    match type_:
        case TensorType():
            yield type_
        case TupleType(fields):
            for item in fields:
                yield from tensor_leaves(item)


def _tensor_count(type_: Type) -> int:
    return sum(1 for _ in tensor_leaves(type_))


def _tensor_counts(type_: Type) -> list[int]:
    """Return the number of tensors in each field of a tuple type."""
    return [_tensor_count(item) for item in type_.fields] if isinstance(type_, TupleType) else []
