"""Sizes and scalars as C expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from relvm.aot.lower.ir import DimScalar, Scalar, ScalarConstant, ScalarVar
from relvm.codegen.c.expression import (
    CExpression,
    call,
    dimension,
    dimension_atom,
    infix,
    integer,
    primary,
)
from relvm.codegen.c.scalars import scalar_literal
from relvm.ir.dtypes import I64, DType
from relvm.ir.scalar_ops import scalar_dtype
from relvm.ir.symbolic import AnyDim, Dim, DimOp, DimVar
from relvm.ir.value_ranges import Range, range_of

NameOf = Callable[[DimVar], CExpression]


_I64 = Range(-(2**63), 2**63 - 1)


def guards_in(dim: AnyDim, name_of: NameOf, ranges: Mapping[DimVar, Range]) -> Iterator[CExpression]:
    """Yield C conditions that are true if the size `dim` is invalid.

    A size is invalid if one of its divisors is 0, or if a step of its computation does not fit in an int64.  The steps
    are those of the virtual machine (`compute_dim` in relvm/passes/lower_shapes.py), so that both reject the same
    sizes.  A condition assumes that the conditions before it are false.

    dim: a number, or an expression of dimension variables.
    name_of: a function that returns the C expression of a dimension variable.
    ranges: the value range of each dimension variable.  A condition that cannot be true for these ranges is omitted.
    """
    if isinstance(dim, int):
        if not _contains(_I64, Range(dim, dim)):
            yield integer(1)
        return
    total: CExpression | None = None
    for position, (monomial, coefficient) in enumerate(dim.terms):
        for atom in monomial:
            if not isinstance(atom, DimVar):
                yield from _guards_in_operator(atom, name_of, ranges)
        term: CExpression | None = None
        for count, atom in enumerate(monomial, 1):
            value = Dim(((monomial[:count], 1),))
            term, guards = _step("mul", term, dimension_atom(atom, name_of), range_of(value, ranges))
            yield from guards
        if coefficient != 1 or term is None:
            yield from guards_in(coefficient, name_of, ranges)
            found = range_of(Dim(((monomial, coefficient),)), ranges)
            term, guards = _step("mul", term, dimension(coefficient, name_of), found)
            yield from guards
        total, guards = _step("add", total, term, range_of(Dim(dim.terms[: position + 1]), ranges))
        yield from guards


def _guards_in_operator(atom: DimOp, name_of: NameOf, ranges: Mapping[DimVar, Range]) -> Iterator[CExpression]:
    yield from guards_in(atom.left, name_of, ranges)
    yield from guards_in(atom.right, name_of, ranges)
    if atom.function not in ("floordiv", "mod"):
        return
    dividends, divisors = range_of(atom.left, ranges), range_of(atom.right, ranges)
    left, right = dimension(atom.left, name_of), dimension(atom.right, name_of)
    if divisors.low <= 0 <= divisors.high:
        yield infix("==", right, integer(0))
    if atom.function == "floordiv" and dividends.low <= _I64.low and divisors.low <= -1 <= divisors.high:
        yield infix("&&", infix("==", left, integer(-(2**63))), infix("==", right, integer(-1)))


def _step(
    function: str, left: CExpression | None, right: CExpression, result: Range
) -> tuple[CExpression, list[CExpression]]:
    """Return the expression `left + right` or `left * right`, and the conditions under which it overflows.

    function: "add" or "mul".
    left: the result of the steps so far, or None if `right` is the first operand.
    result: the range of the exact result.
    """
    if left is None:
        return right, []
    guards = [] if _contains(_I64, result) else [call(f"rvm_size_{function}_overflows", left, right)]
    return infix("+" if function == "add" else "*", left, right), guards


def _contains(outer: Range, inner: Range) -> bool:
    return outer.low <= inner.low and inner.high <= outer.high


def scalar_expression(scalar: Scalar, name_of: NameOf) -> CExpression:
    """Return the C expression of a scalar.   name_of: a function that returns the expression of a size."""
    match scalar:
        case ScalarVar(name):
            return primary(name)
        case DimScalar(dim):
            return dimension(dim, name_of)
    return scalar_literal(scalar.value)


def dtype_of_scalar(scalar: Scalar) -> DType:
    match scalar:
        case ScalarVar(dtype=dtype):
            return dtype
        case ScalarConstant(value):
            return scalar_dtype(value)
    return I64
