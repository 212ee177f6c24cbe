"""Sizes, scalars and elements of storages as C expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial, reduce

from relvm.aot.lower.ir import DimScalar, Scalar, ScalarConstant, ScalarVar
from relvm.codegen.c.expression import (
    CExpression,
    call,
    cast,
    conversion,
    dimension,
    dimension_atom,
    element,
    infix,
    integer,
    literal,
    prefix,
    primary,
)
from relvm.ir.dtypes import BOOL, F64, I64, DType
from relvm.ir.symbolic import AnyDim, Dim, DimVar, as_var
from relvm.ir.value_ranges import Range, range_of

DTYPES = {"i": I64, "f": F64, "b": BOOL}
CTYPES = {"i": "int64_t", "f": "double", "b": "int64_t"}

NameOf = Callable[[DimVar], CExpression]


def guards_in(dim: AnyDim, name_of: NameOf, ranges: Mapping[DimVar, Range]) -> Iterator[CExpression]:
    """Yield C conditions that are true if the size `dim` is invalid.

    A size is invalid if one of its divisors is 0, or if its value does not fit in an int64.  For example, the
    conditions for `n // (m * k)` are that `m * k` does not fit, and then that it is 0.  A sum or product has one
    condition for its final value.  It needs none for intermediate results, because C computes them modulo 2^64.

    dim: a number, or an expression of dimension variables.
    name_of: a function that returns the C expression of a dimension variable.
    ranges: the value range of each dimension variable.  A condition that cannot be true for these ranges is omitted.
    """
    if isinstance(dim, int):
        if not -(2**63) <= dim < 2**63:
            yield integer(1)
        return
    for atom in (atom for monomial, _ in dim.terms for atom in monomial if not isinstance(atom, DimVar)):
        yield from guards_in(atom.left, name_of, ranges)
        yield from guards_in(atom.right, name_of, ranges)
        if atom.function in ("floordiv", "mod") and not isinstance(atom.right, int):
            yield infix("==", dimension(atom.right, name_of), integer(0))
    found = range_of(dim, ranges)
    if as_var(dim) is None and not (found.low >= -(2**63) and found.high < 2**63):
        yield prefix("!", call("rvm_scalar_op_fits_i64", _as_double(dim, name_of)))


def _as_double(dim: Dim, name_of: NameOf) -> CExpression:
    """Return a C expression of type double that approximates the size `dim`, to detect overflow of int64."""
    terms = []
    for monomial, coefficient in dim.terms:
        factors = [cast("double", dimension_atom(atom, name_of)) for atom in monomial]
        terms.append(reduce(partial(infix, "*"), [*factors, literal(float(coefficient), F64)]))
    return reduce(partial(infix, "+"), terms)


def scalar_expression(scalar: Scalar, name_of: NameOf) -> CExpression:
    """Return the C expression of a scalar.   name_of: a function that returns the expression of a size."""
    match scalar:
        case ScalarVar(name):
            return primary(name)
        case DimScalar(dim):
            return dimension(dim, name_of)
    return literal(scalar.value, DTYPES[letter_of(scalar)])


def from_element(letter: str, storage: str, dtype: DType, position: int) -> CExpression:
    """Return a C expression that reads an element of a storage and converts it to a scalar.

    letter: the type of the scalar, "i" (int64), "f" (double) or "b" (bool).
    storage: the C name of the storage, the array that contains the element.
    dtype: the dtype of the element.
    position: the flat position of the element.
    """
    return conversion(element(storage, integer(position)), dtype, DTYPES[letter])


def letter_of(scalar: Scalar) -> str:
    match scalar:
        case ScalarVar(letter=letter):
            return letter
        case ScalarConstant(bool()):
            return "b"
        case ScalarConstant(float()):
            return "f"
    return "i"
