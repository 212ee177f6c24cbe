"""The items of `for` loops and comprehensions in scripts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from relvm.data_classes import value_record
from relvm.errors import RelvmTypeError
from relvm.frontend.script.indexing import index_tensor
from relvm.frontend.script.values import Value
from relvm.ir.builder import Builder
from relvm.ir.expr import DimValue, Expr, TupleItem
from relvm.ir.symbolic import AnyDim, dim_op
from relvm.ir.types import TensorType, TupleType


@value_record
class LoopItems:
    """The items of a loop whose number can depend on sizes.

    count: the number of items.   item: a function that returns the item at an index, an integer or an i64 scalar.
    """

    count: AnyDim
    item: Callable[[int | Expr], Value]

    def known(self) -> list[Value] | None:
        """Return the items as a list if their number is known during the translation, otherwise None."""
        return [self.item(k) for k in range(self.count)] if isinstance(self.count, int) else None


Items = Sequence[Value] | LoopItems


def items_of(builder: Builder, value: Value) -> Items:
    """Return the items of a Python sequence, of a tuple, or of a tensor along its first axis.

    Raises
    ------
    RelvmTypeError
        The value has no items, or their number is unknown.
    """
    match value:
        case tuple() | list() | range():
            return value
        case Expr(type=TupleType(fields=fields)):
            return [builder.emit(TupleItem(value, k)) for k in range(len(fields))]
        case Expr(type=TensorType(shape=(size, *_))):
            return LoopItems(size, lambda at: index_tensor(builder, value, (at,)))
        case DimValue() | int():
            raise RelvmTypeError(f"cannot loop over a number; write range({value})")
    shown = value.type if isinstance(value, Expr) else f"a Python {type(value).__name__}"
    raise RelvmTypeError(
        f"cannot loop over {shown}; expected range(...), a tuple, a list, or a tensor whose first size is known"
    )


def enumerated(builder: Builder, items: Items, start: int = 0) -> Items:
    """Return the items of `enumerate(items, start)`."""
    if not isinstance(items, LoopItems):
        return list(enumerate(items, start))

    def item(at: int | Expr) -> Value:
        count = at + start if isinstance(at, int) else at if start == 0 else builder.prim("add", at, start)
        return count, items.item(at)

    return LoopItems(items.count, item)


def zipped(*parts: Items) -> Items:
    """Return the items of `zip(*parts)`.

    Raises
    ------
    RelvmTypeError
        Some parts are Python sequences, and others have symbolic sizes.
    """
    known = [part.known() if isinstance(part, LoopItems) else part for part in parts]
    if all(part is not None for part in known):
        return list(zip(*known, strict=False))
    loops = [part for part in parts if isinstance(part, LoopItems)]
    if len(loops) < len(parts):
        raise RelvmTypeError("zip: expected only tensors, or only tuples and lists, if a size is symbolic")
    count = reduce(lambda a, b: a if a == b else dim_op("min", a, b), (part.count for part in loops))
    return LoopItems(count, lambda at: tuple(part.item(at) for part in loops))
