"""Arithmetic on unboxed scalars: types and evaluation of the rows of csrc/tables/scalar_operators.def."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from relvm.errors import RelvmArithmeticError, RelvmTypeError, near_matches
from relvm.ir.dtypes import BOOL, F64, I64, DType
from relvm.tables import PRIM_OPERATORS

Scalar = bool | int | float

DTYPE_OF_LETTER = {"i": I64, "f": F64, "b": BOOL}
FUNCTIONS = tuple(dict.fromkeys(row.function for row in PRIM_OPERATORS))
# (infix sign, number of operands) -> function
FORMS = {(row.form, len(row.operands)): row.function for row in PRIM_OPERATORS if row.form}
SIGNS = {function: sign for (sign, operands), function in FORMS.items() if operands == 2}
COMPARISONS = frozenset(row.function for row in PRIM_OPERATORS if row.operands == "ii" and row.result == "b")
_ROWS = {(row.function, tuple(DTYPE_OF_LETTER[letter] for letter in row.operands)): row for row in PRIM_OPERATORS}


def find_row(function: str, dtypes: tuple[DType, ...]) -> Any:
    """Return the row of csrc/tables/scalar_operators.def that defines `function` for operands with the dtypes `dtypes`.

    Raises
    ------
    RelvmTypeError
        The table has no such function, or no row for these dtypes.
    """
    row = _ROWS.get((function, dtypes))
    if row is not None:
        return row
    if function not in FUNCTIONS:
        raise RelvmTypeError(f"no scalar function {function}{near_matches(function, FUNCTIONS)}")
    known = ", ".join(f"({', '.join(map(str, types))})" for name, types in _ROWS if name == function)
    raise RelvmTypeError(f"scalar {function}: expected {known}, got ({', '.join(map(str, dtypes))})")


def scalar_dtype(value: Scalar) -> DType:
    """Return the dtype of a Python scalar: bool, i64 or f64."""
    return BOOL if isinstance(value, bool) else I64 if isinstance(value, int) else F64


def evaluate_row(row: Any, *operands: Scalar) -> Scalar:
    """Evaluate a scalar operator on `operands`, with the same result as csrc/core/scalar_ops.h.

    row: the row of csrc/tables/scalar_operators.def that defines the operator, from `find_row`.

    Raises
    ------
    RelvmArithmeticError
        The operator has no result for these operands, such as an integer division by zero.
    """
    if not has_defined_result(row, operands):
        raise RelvmArithmeticError(f"{row.name}({', '.join(map(str, operands))}): {row.fails}")
    result = _meaning(row)(*operands)
    match row.result:
        case "i":
            return (int(result) + (1 << 63)) % (1 << 64) - (1 << 63)
        case "f":
            return float(result)
    return bool(result)


def has_defined_result(row: Any, operands: tuple[Scalar, ...]) -> bool:
    """Return whether the operator in `row` has a defined result for these operands."""
    match row.name:
        case "floordiv_i64" | "mod_i64":
            return operands[1] != 0
        case "shl_i64" | "shr_i64":
            return 0 <= operands[1] <= 63
        case "i64_of_f64":
            return -(2.0**63) <= operands[0] < 2.0**63
    return True


def _without_warnings(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a NumPy function so that it converts its operands to float64 and emits no warnings."""
    return np.errstate(all="ignore")(lambda *operands: function(*map(np.float64, operands)))


# The functions of Python that compute the scalar operators, on exact integers or floats.
PYTHON_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "neg": operator.neg,
    "min": min,
    "max": max,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "not": operator.invert,
    "shl": operator.lshift,
    "shr": operator.rshift,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "i64": int,
    "f64": float,
    "bool": bool,
    "f32": _without_warnings(np.float32),
    "i32": lambda value: (value + (1 << 31)) % (1 << 32) - (1 << 31),
}
_FLOATS = {
    "add": _without_warnings(np.add),
    "sub": _without_warnings(np.subtract),
    "mul": _without_warnings(np.multiply),
    "div": _without_warnings(np.divide),
    "floordiv": _without_warnings(np.floor_divide),
    "mod": _without_warnings(np.remainder),
    "min": _without_warnings(np.minimum),
    "max": _without_warnings(np.maximum),
}


def _meaning(row: Any) -> Any:
    if row.name == "not_bool":
        return operator.not_
    if row.function == "div" or row.operands == "ff":
        return _FLOATS.get(row.function, PYTHON_FUNCTIONS.get(row.function))
    return PYTHON_FUNCTIONS[row.function]
