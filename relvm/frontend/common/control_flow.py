"""Control flow as closures and conditionals: loops with values that they carry, and choices by an index."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import relvm.ops as ops
from relvm.ir.builder import Builder
from relvm.ir.expr import Constant, Expr, Tuple, prim
from relvm.ir.types import TupleType, Type

Branch = Callable[[], Sequence[Expr]]


def as_result(results: Sequence[Expr]) -> Expr:
    """Return the result of a block or function that returns `results`: a tuple, or the value if there is only one."""
    return results[0] if len(results) == 1 else Tuple(tuple(results))


def result_type(types: Sequence[Type]) -> Type:
    """Return the type of `as_result` for values of some types."""
    return types[0] if len(types) == 1 else TupleType(tuple(types))


def if_else(builder: Builder, condition: Expr, then: Branch, orelse: Branch) -> Expr:
    """Emit a conditional, and return the results of the branch that runs (as_result).

    then, orelse: functions that emit a branch, and return its results.
    """
    return builder.if_(condition, lambda: as_result(then()), lambda: as_result(orelse()))


def choose(builder: Builder, index: Expr, branches: Sequence[Branch]) -> Expr:
    """Emit a switch: run the branch that an index selects, and return its results (as_result).

    An index that is out of range selects the last branch.

    index: an integer tensor of rank 0.
    branches: at least one function, which emits a branch and returns its results.
    """
    # To compare scalars takes less time than to compare tensors, but they must be read first.
    reads = len(branches) > 2 and not isinstance(index, Constant)
    scalar = builder.emit(ops.to_scalar(index)) if reads else None

    def select(number: int) -> Expr:
        if number == len(branches) - 1:
            return as_result(branches[number]())
        if scalar is None:
            is_this = builder.emit(ops.equal(index, number))
        else:
            is_this = builder.prim("eq", scalar, prim(number))
        return builder.if_(is_this, lambda: as_result(branches[number]()), lambda: select(number + 1))

    return select(0)


def while_loop(
    builder: Builder,
    initial: Sequence[Expr],
    params: Sequence[tuple[str, Type]],
    condition: Callable[..., Expr],
    body: Callable[..., Sequence[Expr]],
) -> Expr:
    """Emit a loop, and return the values that it carries after the last iteration (as_result).

    The loop becomes a tail-recursive local function, which runs in constant stack space.

    Parameters
    ----------
    initial
        The values before the first iteration, at least one.
    params
        The names and the types of the values that the loop carries.
    condition
        A function that takes these values, and emits the condition: a scalar or tensor of rank 0 and dtype bool.
    body
        A function that takes these values, and emits an iteration.  It returns the next values.
    """

    def loop(recurse: Expr, *state: Expr) -> Expr:
        return builder.if_(
            condition(*state), lambda: builder.call(recurse, *body(*state)), lambda: as_result(list(state))
        )

    types = [type_ for _, type_ in params]
    function = builder.local_function(list(params), loop, result_type(types), name="loop", recursive=True)
    return builder.call(function, *initial)
