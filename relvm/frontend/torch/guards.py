"""Conditions on sizes that PyTorch found while it traced a program, such as `(L['x'].size()[0] % 2) == 0`.

The text is parsed as a Python expression and never evaluated.  Conditions that contain anything else than sizes,
numbers and their arithmetic are ignored.  So are those that PyTorch assumes for tracing only: lower bounds of up to 2,
and conditions that a size is not 0 or 1.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from relvm.errors import RelvmTypeError, RelvmUnsupportedError
from relvm.frontend.torch.limits import MAX_GUARD
from relvm.ir.expr import DimValue, Expr, prim
from relvm.ir.symbolic import AnyDim, ComplexDimError, dim_op

# The size of an axis of an input with a name, or None if there is none.
SizeOf = Callable[[str, int], AnyDim | None]

_OPERATORS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "floordiv", ast.Mod: "mod"}
_FUNCTIONS = {"sym_max": "max", "sym_min": "min"}
# The names in size_expressions.py and scalar_values.py.
_SCALAR_OPERATORS: dict[type, str] = {
    **{ast.Add: "Add", ast.Mult: "Mul", ast.FloorDiv: "FloorDiv", ast.Mod: "Mod", ast.Div: "FloatTrueDiv"},
    ast.Pow: "FloatPow",
}
_SCALAR_FUNCTIONS = {
    **{"trunc": "TruncToInt", "floor": "FloorToInt", "ceil": "CeilToInt", "sym_float": "ToFloat"},
    **{"_sym_sqrt": "OpaqueUnaryFn_sqrt", "sym_max": "Max", "sym_min": "Min"},
}
_RELATIONS: dict[type, str] = {ast.Eq: "Eq", ast.NotEq: "Ne", ast.Lt: "StrictLessThan", ast.LtE: "LessThan"}
_RELATIONS |= {ast.Gt: "StrictGreaterThan", ast.GtE: "GreaterThan"}
_SMALLEST_CHECKED = 2
_LIMIT = 1 << 32  # of numbers in conditions
# Exceptions for conditions that are ignored.
_UNKNOWN = (ComplexDimError, MemoryError, RecursionError, RelvmUnsupportedError, SyntaxError, ValueError)


def claim_of_guard(text: str, size_of: SizeOf) -> tuple[str, AnyDim, AnyDim] | None:
    """Return the relation of two sizes that a condition states, as in SizeClaim.

    Return None for all other conditions: if it does not compare two sizes, if relvm cannot express it, or if it only
    states that a size is at least 2 or less.

    text: the condition, an expression of Python.
    size_of: a function that returns the size of an axis of an input.
    """
    if len(text) > MAX_GUARD:
        return None
    try:
        match ast.parse(text, mode="eval").body:
            case ast.Compare(left=left, ops=[relation], comparators=[right]):
                one, other = _size(left, size_of), _size(right, size_of)
            case _:
                return None
    except _UNKNOWN:
        return None
    match relation:
        case ast.Eq():
            return "equal", one, other
        case ast.LtE():
            claim = one, other
        case ast.Lt():
            claim = one + 1, other
        case ast.GtE():
            claim = other, one
        case ast.Gt():
            claim = other + 1, one
        case _:
            return None
    if isinstance(claim[0], int) and claim[0] <= _SMALLEST_CHECKED:
        return None
    return "at_most", *claim


def value_of_guard(text: str, size_of: SizeOf, call: Callable[[str, list[Expr]], Expr]) -> Expr | None:
    """Return whether a condition is true, as a bool scalar, if it excludes a number or does not compare integers.

    Return None for all other conditions, if PyTorch assumes the condition for tracing only, and if relvm cannot compute
    the numbers.

    text, size_of: as for `claim_of_guard`.
    call: a function that emits a call of a function of sympy.
    """
    if len(text) > MAX_GUARD:
        return None
    try:
        body = ast.parse(text, mode="eval").body
        match body:
            case ast.Compare(ops=[ast.NotEq()], comparators=[right]) if not _is_assumed(body.left, right):
                return _value(body, size_of, call)
            case ast.Compare(ops=[ast.Eq() | ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()]) if _has_floats(body):
                return _value(body, size_of, call)
    except (*_UNKNOWN, RelvmTypeError):
        pass
    return None


def _is_assumed(left: ast.expr, right: ast.expr) -> bool:
    """Return whether `left != right` only states that a size is not 0 or 1.   A remainder is not a size."""
    is_small = any(isinstance(side, ast.Constant) and side.value in (0, 1) for side in (left, right))
    return is_small and not any(isinstance(each, ast.Mod) for side in (left, right) for each in ast.walk(side))


def _has_floats(node: ast.expr) -> bool:
    """Return whether a condition has numbers that are not integers, so that it is not one of sizes only."""
    return any(
        isinstance(each, ast.Div | ast.Pow)
        or (isinstance(each, ast.Constant) and isinstance(each.value, float))
        or (isinstance(each, ast.Attribute) and each.attr in ("_sym_sqrt", "sym_float"))
        for each in ast.walk(node)
    )


def _value(node: ast.expr, size_of: SizeOf, call: Callable[[str, list[Expr]], Expr]) -> Expr:
    """Return the value of an expression as a scalar.   Raise RelvmUnsupportedError if it contains anything unknown."""

    def value(operand: ast.expr) -> Expr:
        return _value(operand, size_of, call)

    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool) and abs(number) < _LIMIT:
            return prim(number)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return call("Mul", [prim(-1), value(operand)])
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return call("Add", [value(left), call("Mul", [prim(-1), value(right)])])
        case ast.BinOp(op=ast.FloorDiv() | ast.Mod() | ast.Div(), right=ast.Constant(value=0)):
            raise RelvmUnsupportedError("a condition divides by 0")
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _SCALAR_OPERATORS:
            return call(_SCALAR_OPERATORS[type(operator)], [value(left), value(right)])
        case ast.Compare(left=left, ops=[relation], comparators=[right]):
            return call(_RELATIONS[type(relation)], [value(left), value(right)])
        case ast.Call(func=ast.Attribute(attr=name), args=args) if name in _SCALAR_FUNCTIONS:
            return call(_SCALAR_FUNCTIONS[name], [value(arg) for arg in args])
    size = _size(node, size_of)
    return prim(size) if isinstance(size, int) else DimValue(size)


def shown_guard(text: str) -> str:
    """Return a condition for a message: the size `L['pair'][0].size()[1]` becomes `pair_0.size(1)`."""

    def shown(found: re.Match[str]) -> str:
        name = "_".join(re.findall(r"\w+", found[1]))
        return f"{name}.size({found[2]})"

    return re.sub(r"L((?:\[[^\]]*\])+)\.size\(\)\[(\d+)\]", shown, text)


def _size(node: ast.expr, size_of: SizeOf) -> AnyDim:
    """Return the value of an expression.  Raise RelvmUnsupportedError if it contains anything unknown."""
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool) and number < _LIMIT:
            return number
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
            second = _size(right, size_of)
            if second == 0 and isinstance(operator, ast.FloorDiv | ast.Mod):
                raise RelvmUnsupportedError("a condition divides by 0")
            return dim_op(_OPERATORS[type(operator)], _size(left, size_of), second)
        case ast.Call(func=ast.Attribute(attr=name), args=[first, other]) if name in _FUNCTIONS:
            return dim_op(_FUNCTIONS[name], _size(first, size_of), _size(other, size_of))
        case ast.Subscript(
            value=ast.Call(func=ast.Attribute(value=tensor, attr="size"), args=[]),
            slice=ast.Constant(value=int() as axis),
        ):
            found = size_of("_".join(_path(tensor)), axis)
            if found is not None:
                return found
    raise RelvmUnsupportedError("the condition is not one of sizes")


def _path(node: ast.expr) -> list[str]:
    """Return the keys of a subscript of L: `L['pair']['a']` has the keys pair and a."""
    match node:
        case ast.Name(id="L"):
            return []
        case ast.Subscript(value=value, slice=ast.Constant(value=key)):
            return [*_path(value), str(key)]
    raise RelvmUnsupportedError("the condition is not one of sizes")
