"""Upper bounds of run-time sizes, derived from assertions that precede the uses of the sizes."""

from __future__ import annotations

from collections.abc import Sequence

from relvm.aot.lower.ir import (
    Check,
    CheckRange,
    CheckSizes,
    Compute,
    DimScalar,
    ReadItem,
    Scalar,
    ScalarConstant,
    SetScalar,
    SetSize,
    Statement,
)
from relvm.ir.symbolic import DimVar, as_var

_WITHOUT_TENSORS = (Check, CheckRange, CheckSizes, Compute, ReadItem, SetScalar, SetSize)


def asserted_bound(body: Sequence[Statement], cond: Scalar) -> tuple[DimVar, int] | None:
    """Return the run-time size for which an assertion states an upper bound, and the largest value that the assertion
    allows.

    For example, an assertion that `n < 10` has the result (n, 9).

    Return None if the assertion states no upper bound, or if a tensor of that size might exist before the assertion is
    checked.  To exclude such a tensor, `body` must define the size.  After the definition, it may only read elements of
    tensors, and compute and check scalars and sizes.

    Parameters
    ----------
    body
        The statements of the block before the assertion.
    cond
        The asserted condition.
    """
    comparison = next((s for s in reversed(body) if isinstance(s, Compute) and s.target is cond), None)
    match comparison:
        case Compute(_, "le_i64", (DimScalar(dim), ScalarConstant(int(maximum)))) | Compute(
            _, "ge_i64", (ScalarConstant(int(maximum)), DimScalar(dim))
        ):
            pass
        case Compute(_, "lt_i64", (DimScalar(dim), ScalarConstant(int(above)))) | Compute(
            _, "gt_i64", (ScalarConstant(int(above)), DimScalar(dim))
        ):
            maximum = above - 1
        case _:
            return None
    var = as_var(dim)
    for statement in reversed(body):
        if isinstance(statement, SetSize) and statement.target is var:
            return var, maximum
        if not isinstance(statement, _WITHOUT_TENSORS):
            return None
    return None
