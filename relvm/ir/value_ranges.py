"""Value range analysis: the bounds that a function declares for its dimension variables, and interval arithmetic on
dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from relvm.data_classes import value_record
from relvm.errors import RelvmNameError, RelvmShapeError, RelvmTypeError, near_matches
from relvm.ir.expr import Function
from relvm.ir.operator import SizeClaim
from relvm.ir.symbolic import AnyDim, Atom, DimVar, var_dim
from relvm.ir.types import type_vars

LOWER, UPPER = "lower_bounds", "upper_bounds"  # the function attributes that declare bounds

Number = int | float  # an integer, or an infinity


@value_record
class Range:
    """The integers from `low` to `high`, both included.  A bound is infinite if there is no limit on that side."""

    low: Number = 0
    high: Number = inf


ANYTHING = Range(-inf, inf)


def declared_ranges(function: Function) -> dict[DimVar, Range]:
    """Return the ranges that a function declares for the dimension variables of its parameters.

    The function attributes `upper_bounds` and `lower_bounds` declare the ranges, as in `upper_bounds=(("n", 32),)`.
    Variables without a bound are omitted.

    Raises
    ------
    RelvmTypeError
        An attribute is not a tuple of (name, integer) pairs.
    RelvmShapeError
        A bound is negative or declared twice, or a lower bound exceeds the upper bound.
    RelvmNameError
        No parameter's type has a variable of that name.
    """
    variables: dict[str, list[DimVar]] = {}
    for param in function.params:
        for var in type_vars(param.type):
            variables.setdefault(var.name, []).append(var)
    attributes = dict(function.attributes)
    lower, upper = (_pairs(function.name, key, attributes.get(key, ()), variables) for key in (LOWER, UPPER))
    ranges: dict[DimVar, Range] = {}
    for name in dict.fromkeys((*lower, *upper)):
        found = Range(lower.get(name, 0), upper.get(name, inf))
        if found.low > found.high:
            raise RelvmShapeError(
                f"{function.name}: dimension {name}: lower bound {found.low} exceeds upper bound {found.high}"
            )
        ranges |= dict.fromkeys(variables[name], found)
    return ranges


def range_claims(function: Function) -> list[SizeClaim]:
    """Return the claims that each dimension variable is in the range that a function declares for it.

    The errors are those of `declared_ranges`.
    """
    claims = []
    prefix = f"{function.name}: " if function.name else ""
    for var, found in declared_ranges(function).items():
        what = f"{prefix}dimension {var.name}"
        if found.low > 0 or var.signed:
            low = int(found.low)
            claims.append(SizeClaim("at_most", low, var_dim(var), f"{what} must be at least {{}}, got {{}}"))
        if found.high != inf:
            claims.append(SizeClaim("at_most", var_dim(var), int(found.high), f"{what} is {{}}, expected at most {{}}"))
    return claims


def _pairs(function: str, key: str, value: Any, variables: Mapping[str, list[DimVar]]) -> dict[str, int]:
    where = f"{function}: {key}"
    if not isinstance(value, tuple) or not all(isinstance(p, tuple) and len(p) == 2 for p in value):
        raise RelvmTypeError(f"{where}: expected pairs of a dimension and its bound, got {value!r}")
    bounds: dict[str, int] = {}
    for name, bound in value:
        if name not in variables:
            raise RelvmNameError(
                f"{where}: no parameter's type has a dimension {name}{near_matches(str(name), variables)}"
            )
        if not isinstance(bound, int) or isinstance(bound, bool):
            raise RelvmTypeError(f"{where}: expected an integer for dimension {name}, got {bound!r}")
        if bound < 0:
            raise RelvmShapeError(f"{where}: expected a bound of at least 0 for dimension {name}, got {bound}")
        if name in bounds:
            raise RelvmShapeError(f"{where}: dimension {name} has two bounds")
        bounds[name] = bound
    return bounds


def range_of(dim: AnyDim, ranges: Mapping[DimVar, Range]) -> Range:
    """Return an interval that contains the value of `dim` for all values of its variables within `ranges`.

    A variable without an entry in `ranges` can be any integer if it is signed, otherwise any integer >= 0.

    The interval is not always the narrowest, because each occurrence of a variable is treated as a separate variable.
    """
    if isinstance(dim, int):
        return Range(dim, dim)
    total = Range(0, 0)
    for monomial, coefficient in dim.terms:
        term = Range(coefficient, coefficient)
        for atom in monomial:
            term = _product(term, _atom_range(atom, ranges))
        total = Range(total.low + term.low, total.high + term.high)
    return total


def _atom_range(atom: Atom, ranges: Mapping[DimVar, Range]) -> Range:
    if isinstance(atom, DimVar):
        return ranges.get(atom, ANYTHING if atom.signed else Range())
    left, right = range_of(atom.left, ranges), range_of(atom.right, ranges)
    match atom.function:
        case "min":
            return Range(min(left.low, right.low), min(left.high, right.high))
        case "max":
            return Range(max(left.low, right.low), max(left.high, right.high))
        case "mod" if right.low > 0:
            return Range(0, min(right.high - 1, left.high) if left.low >= 0 else right.high - 1)
        case "floordiv" if right.low > 0:
            quotients = [_quotient(a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
            return Range(min(quotients), max(quotients))
        case "mod" | "floordiv":
            return ANYTHING
    raise AssertionError(f"unknown dimension operator {atom.function}")


def _product(left: Range, right: Range) -> Range:
    products = [0 if 0 in (a, b) else a * b for a in (left.low, left.high) for b in (right.low, right.high)]
    return Range(min(products), max(products))


def _quotient(dividend: Number, divisor: Number) -> Number:
    """Return dividend // divisor for divisor > 0.  If an operand is infinite, return the limit of the quotient."""
    if divisor == inf:
        return -1 if dividend < 0 else 0
    return dividend if dividend in (inf, -inf) else dividend // divisor
