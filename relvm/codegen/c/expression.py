"""C expressions: the one place that knows the precedence of C operators and inserts parentheses.

The printers of C build every expression from the functions of this module.  They never join the texts of operands
themselves, so that an operand keeps its meaning wherever it stands: `-(-x)` is not printed as `--x`, and a negative
literal is a unary minus.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce

import numpy as np

from relvm.data_classes import value_record
from relvm.ir.dtypes import F16, F32, F64, I8, I64, DType
from relvm.ir.symbolic import AnyDim, Atom, DimVar

# Precedence of the infix operators.  An operator with a higher number binds tighter.
_PRECEDENCE = {"||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7}
_PRECEDENCE |= {"<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10}
_UNARY, _PRIMARY = 11, 12

_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
_ARITHMETIC = frozenset("+-*/%")
_SHIFTS = frozenset(("<<", ">>"))


@value_record
class CExpression:
    """A C expression.

    text: the text, which can stand wherever C allows any expression: in a statement, as an argument, or in brackets.
    precedence: the precedence of the outermost operator.
    sign: the outermost operator if it is an infix operator, otherwise "".
    is_int: whether the C type is int although the value is an int64, as in the literal `5`.
    """

    text: str
    precedence: int = _PRIMARY
    sign: str = ""
    is_int: bool = False

    def __str__(self) -> str:
        return self.text


def primary(text: str) -> CExpression:
    """Return an expression without operators, such as a name or a macro."""
    return CExpression(text)


def call(function: str, *arguments: CExpression) -> CExpression:
    return CExpression(f"{function}({', '.join(argument.text for argument in arguments)})")


def element(array: str, index: CExpression) -> CExpression:
    """Return the element of an array.   array: the name of the array."""
    return CExpression(f"{array}[{index.text}]")


def prefix(sign: str, operand: CExpression) -> CExpression:
    """Return `sign operand`.   sign: one of - ! ~ * &."""
    # Without the parentheses, C would read `--x` and `&&x` as other operators.
    is_bare = operand.precedence >= _UNARY and not operand.text.startswith(sign)
    return CExpression(f"{sign}{operand.text if is_bare else _in_parentheses(operand)}", _UNARY, "", operand.is_int)


def cast(ctype: str, operand: CExpression) -> CExpression:
    """Return the conversion of an operand to a C type."""
    text = operand.text if operand.precedence >= _UNARY else _in_parentheses(operand)
    return CExpression(f"({ctype}){text}", _UNARY)


def infix(sign: str, left: CExpression, right: CExpression) -> CExpression:
    """Return `left sign right`.

    If both operands have the C type int, the left one is converted, so that C computes an int64.
    """
    level = _PRECEDENCE[sign]
    if left.is_int and (right.is_int or sign in _SHIFTS) and sign not in _COMPARISONS:
        left = cast(I64.ctype, left)
    first = left.text if _is_bare(sign, left, level) else _in_parentheses(left)
    is_right_bare = _is_bare(sign, right, level + 1) and not (sign in _ARITHMETIC and right.text.startswith("-"))
    second = right.text if is_right_bare else _in_parentheses(right)
    return CExpression(f"{first} {sign} {second}", level, sign)


def conditional(condition: CExpression, then: CExpression, orelse: CExpression) -> CExpression:
    """Return `(condition ? then : orelse)`, always in parentheses."""
    parts = (part.text for part in (condition, then, orelse))
    return CExpression("({} ? {} : {})".format(*parts), is_int=then.is_int and orelse.is_int)


def _in_parentheses(operand: CExpression) -> str:
    return f"({operand.text})"


def _is_bare(sign: str, operand: CExpression, lowest: int) -> bool:
    """Return whether an operand of the infix operator `sign` is printed without parentheses.

    Parentheses are omitted only where the reader does not need them, and where compilers do not warn about it: for
    arithmetic in arithmetic and in comparisons, for arithmetic and comparisons in logical operators, and for chains of
    one operator.

    lowest: the lowest precedence of an operand that C reads as an operand of `sign` without parentheses.
    """
    if operand.precedence >= _UNARY:
        return True
    if operand.precedence < lowest:
        return False
    if operand.sign in _ARITHMETIC:
        return sign in _ARITHMETIC or sign in _COMPARISONS or sign in ("&&", "||")
    if operand.sign in _COMPARISONS:
        return sign in ("&&", "||")
    return operand.sign == sign


def integer(value: int) -> CExpression:
    """Return the literal of an int64."""
    return literal(value, I64)


def literal(value: bool | int | float, dtype: DType) -> CExpression:
    """Return a number as a C constant of `dtype`.  It is exact, except for the bits of a NaN.

    C has no types for narrow floats and for integers of less than a byte.  A constant of such a dtype is printed as an
    integer with the same bits.
    """
    if dtype.is_narrow_float or dtype.bits < 8:
        code = np.asarray(value).astype(dtype.numpy).view(f"u{dtype.size_bytes}")
        return CExpression(str(int(code)))
    text = _float_text(abs(value), dtype) if dtype.is_float else _integer_text(abs(int(value)), dtype)
    if dtype.is_integer and dtype.bits >= 32 and value == dtype.lowest < 0:
        return CExpression(f"INT{dtype.bits}_MIN")  # C has no negative literals, and the absolute value does not fit
    is_int = dtype is I64 and text.isdigit()
    is_negative = math.copysign(1.0, value) < 0 and value == value
    return CExpression(f"-{text}", _UNARY, "", is_int) if is_negative else CExpression(text, is_int=is_int)


def _float_text(value: float, dtype: DType) -> str:
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY"
    text = float(value).hex() if value != int(value) or value >= 1e15 else f"{float(value):.1f}"
    return f"{text}f" if dtype.name == "f32" else text


def _integer_text(value: int, dtype: DType) -> str:
    if dtype.is_signed and value < 2**31:
        return str(value)
    suffix = {"i64": "LL", "u64": "ULL", "u32": "U"}.get(dtype.name, "")
    return f"{value}{suffix}"


def conversion(operand: CExpression, source: DType, target: DType) -> CExpression:
    """Return an operand of dtype `source`, converted to dtype `target`.

    Conversions to and from floats narrower than f32 go through f32.  The conversion of f64 to f16 is rounded only once.
    Conversions to and from integers of less than a byte go through i8.  The conversion functions are in
    csrc/core/small_floats.h and csrc/codegen/kernel_conversions.h.
    """
    if target.is_narrow_float:
        if (source, target) == (F64, F16):
            return call("rvm_f16_of_f32", call("rvm_odd_f32_of_f64", operand))
        return call(f"rvm_{target}_of_f32", _plain_conversion(operand, source, F32))
    if target.is_integer and target.bits < 8:
        return call(f"rvm_{target}_of_i8", _plain_conversion(operand, source, I8))
    return _plain_conversion(operand, source, target)


def _plain_conversion(operand: CExpression, source: DType, target: DType) -> CExpression:
    """Return an operand of dtype `source`, converted to `target`, a dtype with which C can compute."""
    if source.is_narrow_float:
        operand, source = call(f"rvm_f32_of_{source}", operand), F32
    elif source.is_integer and source.bits < 8:
        operand, source = call(f"rvm_i8_of_{source}", operand), I8
    if source == target:
        return operand
    if target.is_bool:
        return infix("!=", operand, primary("0"))
    if source.is_float and target.is_integer:
        return call(f"rvm_{target}_of_{source}", operand)
    return cast(target.ctype, operand)


def dimension(dim: AnyDim, name_of: Callable[[DimVar], CExpression]) -> CExpression:
    """Return the size `dim`, an int64, computed modulo 2^64.

    name_of: a function that returns the expression of a dimension variable.
    """
    if isinstance(dim, int):
        return integer(_wrapped(dim))
    total = None
    for monomial, wide in dim.terms:
        coefficient = _wrapped(wide)
        is_subtracted = total is not None and -(2**63) < coefficient < 0
        factors = [dimension_atom(atom, name_of) for atom in monomial]
        factor = -coefficient if is_subtracted else coefficient
        if factor != 1 or not factors:
            factors.append(integer(factor))
        term = reduce(partial(infix, "*"), factors)
        total = term if total is None else infix("-" if is_subtracted else "+", total, term)
    assert total is not None, "a dimension without terms"
    return total


def _wrapped(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def dimension_atom(atom: Atom, name_of: Callable[[DimVar], CExpression]) -> CExpression:
    """Return a factor of a size: a dimension variable, or an operation on sizes.

    name_of: a function that returns the expression of a dimension variable.
    """
    if isinstance(atom, DimVar):
        return name_of(atom)
    operands = (dimension(side, name_of) for side in (atom.left, atom.right))
    return call(f"rvm_scalar_op_{atom.function}_i64_value", *operands)
