"""Rewrite rules of the pass `canonicalize`: functions, and patterns with replacements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from relvm.data_classes import record
from relvm.ir.dtypes import F64
from relvm.ir.expr import Constant, Expr, OpCall, Var, constant
from relvm.ir.operator import Operator

Definitions = Mapping[Expr, OpCall]
"""The calls that compute variables.  A variable that rules must not look up is left out."""

Rule = Callable[[OpCall, Definitions], Expr | None]
"""A rule returns the replacement of a call: an atom, or a call with atoms or calls as arguments.  It returns None if it
does not apply."""


def find_call(definitions: Definitions, expr: Expr, *operators: Operator) -> OpCall | None:
    """Return the call that computes `expr` if it is known and its operator is one of `operators`, otherwise None."""
    call = definitions.get(expr)
    return call if call is not None and call.op in operators else None


@record
class Rewrite:
    """A rule that replaces calls of the form `pattern`:

    Rewrite(ops.broadcast_to(ops.broadcast_to(x, s), t), ops.broadcast_to(x, t))

    Variables in the pattern match any expressions, or any values of attributes.  A variable that occurs several times
    matches only equal ones.  Every part of the pattern that occurs in the replacement stands for what it matched.

    pattern, replacement: calls without types, whose arguments are variables, `number` or such calls.
    where: an additional condition.  Its argument is a mapping from the variables of the pattern to what they matched.
    """

    pattern: OpCall
    replacement: Expr
    where: Callable[[Mapping[Any, Any]], bool] = lambda found: True

    def __call__(self, call: OpCall, definitions: Definitions) -> Expr | None:
        found: dict[Expr, Any] = {}
        if not _match_call(self.pattern, call, definitions, found) or not self.where(found):
            return None
        return instantiate(self.replacement, found)


def number(value: float) -> Constant:
    """Return a part of a pattern that matches constants whose elements all equal `value`.

    In a replacement, it is a constant with the dtype of the other arguments of the call.
    """
    return constant(value, F64)


def all_equal(expr: Expr, number: float) -> bool:
    """Return whether `expr` is a constant whose elements all equal `number`.  If `number` is a float zero, its sign
    must match, too."""
    if not isinstance(expr, Constant) or not np.all(expr.value == number):
        return False
    signed_zero = number == 0 and expr.value.dtype.kind == "f"
    return not signed_zero or bool(np.all(np.signbit(expr.value) == np.signbit(number)))


def _match_call(pattern: OpCall, call: OpCall, definitions: Definitions, found: dict[Expr, Any]) -> bool:
    """Match `call`, a call of the operator of `pattern`.  Add to `found` what the parts of the pattern match."""
    for part, arg in zip(pattern.args, call.args, strict=True):
        match part:
            case OpCall(op):
                inner = find_call(definitions, arg, op)
                if inner is None or not _match_call(part, inner, definitions, found):
                    return False
            case Constant(value) if (
                not isinstance(arg, Constant) or not arg.value.size or not all_equal(arg, value.item())
            ):
                return False
        if found.setdefault(part, arg) is not arg:
            return False
    for (_, part), (_, value) in zip(pattern.attributes, call.attributes, strict=True):
        if value != (found.setdefault(part, value) if isinstance(part, Var) else part):
            return False
    return True


def instantiate(pattern: Any, values: Mapping[Any, Any]) -> Any:
    """Return `pattern`, a part of a `Rewrite`, with the parts of it that are in `values` replaced by their values."""
    if isinstance(pattern, Expr) and pattern in values:
        return values[pattern]
    match pattern:
        case OpCall(op, args, attributes):
            named = {name: instantiate(value, values) for name, value in attributes}
            return op(*(instantiate(arg, values) for arg in args), **named)
        case Constant(value):
            return value.item()
    return pattern
