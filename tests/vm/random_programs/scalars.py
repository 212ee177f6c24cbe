"""Random scalar expressions of type i64, f64 and bool."""

from __future__ import annotations

from random_programs.state import State
from random_programs.types import dimension
from relvm.ir.dtypes import BOOL, F64, I64, U8, DType
from relvm.ir.expr import Block, DimValue, Expr, If, OpCall, PrimCall, prim
from relvm.ir.operator import find_operator
from relvm.ir.scalar_ops import DTYPE_OF_LETTER
from relvm.ir.types import PrimType, TensorType
from relvm.tables import PRIM_OPERATORS

INTEGERS = (0, 1, 2, 3, -1, -2, 7, 63, 64, 1000, -(1 << 63), (1 << 63) - 1, 1 << 32, -12345678901)
FLOATS = (0.0, 1.0, -1.0, 0.5, -2.5, 3.75, 1e-3, 1e300, -1e17, 5e-324, -0.0, float("inf"), float("-inf"), float("nan"))
BOOLS = (False, True)
_LITERALS = {"i64": INTEGERS, "f64": FLOATS, "bool": BOOLS}
_ROWS = {dtype: [row for row in PRIM_OPERATORS if DTYPE_OF_LETTER[row.result] == dtype] for dtype in (BOOL, I64, F64)}


def scalar(state: State, dtype: DType, depth: int = 0) -> Expr:
    """Return a random scalar expression.  depth: the nesting depth so far."""
    source = state.source
    choice = source.integer(0, 9)
    if choice <= 3 and (var := state.find(lambda type_: isinstance(type_, PrimType) and type_.dtype == dtype)):
        return var
    if depth > 3 or choice <= 1:
        return literal(state, dtype)
    match choice:
        case 8:
            return _element(state, dtype) or literal(state, dtype)
        case 9 if depth < 2:
            branches = [Block((), scalar(state, dtype, depth + 1)) for _ in range(2)]
            return If(condition(state, depth + 1), *branches)
        case 2 | 9 if dtype == I64:
            return DimValue(dimension(state))
    return operation(state, source.choice(_ROWS[dtype]), depth)


def literal(state: State, dtype: DType) -> Expr:
    return prim(state.source.choice(_LITERALS[dtype.name]))


def operation(state: State, row, depth: int) -> Expr:
    """Apply a scalar operator, a row of the operator table, to random scalars.

    If the operator can fail, its operand is usually restricted to valid values.  It is sometimes left unrestricted if
    failures are allowed.
    """
    args = [scalar(state, DTYPE_OF_LETTER[letter], depth + 1) for letter in row.operands]
    if row.fails:
        if state.frame.may_fail and state.source.one_in(6):
            state.account.fails = True
        else:
            args[-1] = _guarded(state, row, args[-1])
    return PrimCall(row.function, tuple(args))


def _guarded(state: State, row, operand: Expr) -> Expr:
    """Return a last operand, usually derived from `operand`, for which the operator `row` cannot fail."""
    match row.name:
        case "floordiv_i64" | "mod_i64":
            return PrimCall("or", (operand, prim(1)))
        case "shl_i64" | "shr_i64":
            return PrimCall("and", (operand, prim(63)))
        case "i64_of_f64":  # a quotient of an i64 cannot be NaN
            integer = scalar(state, I64, 2)
            return PrimCall("div", (integer, prim(4)))
    raise AssertionError(f"a guard for {row.name} is missing")


def _element(state: State, dtype: DType) -> Expr | None:
    """Convert a tensor of rank 0 in scope to a scalar of type `dtype`.  Return None if there is no suitable tensor."""
    found = {"i64": (I64, U8), "f64": (F64,), "bool": (BOOL,)}[dtype.name]
    var = state.find(lambda type_: isinstance(type_, TensorType) and type_.shape == () and type_.dtype in found)
    if var is None:
        return None
    operator = find_operator("to_scalar")
    return OpCall(operator, (var,), operator.bind((var,), {}))


def condition(state: State, depth: int = 0) -> Expr:
    """Return the condition of an if: a scalar, or a tensor of rank 0 that is not approximate (f32)."""
    match state.source.integer(0, 5):
        case 3:
            return scalar(state, I64, depth + 1)
        case 4 | 5:
            exact = (BOOL, I64, U8)
            var = state.find(lambda t: isinstance(t, TensorType) and t.shape == () and t.dtype in exact)
            if var is not None:
                return var
    return scalar(state, BOOL, depth + 1)


def counter(state: State, bound: int) -> Expr:
    """Return an i64 scalar of at most `bound`."""
    match state.source.integer(0, 3):
        case 0:
            return prim(state.source.integer(0, bound))
        case 1:
            return PrimCall("mod", (scalar(state, I64, 2), prim(bound + 1)))
        case 2:
            return PrimCall("min", (DimValue(dimension(state)), prim(bound)))
    return PrimCall("min", (scalar(state, I64, 2), prim(bound)))
