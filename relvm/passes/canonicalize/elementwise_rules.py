"""Rules of `canonicalize` for elementwise operators.

A rule takes a call and the definitions of its arguments, and returns the replacement of the call, or None if the rule
does not apply (relvm/passes/canonicalize/rule.py).  Each docstring shows the call, an arrow, and the replacement.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from relvm import ops
from relvm.ir.dtypes import DType
from relvm.ir.expr import Constant, Expr, OpCall, Shape, constant
from relvm.ir.operator import Operator, Traits
from relvm.passes.canonicalize.rule import Definitions, Rule


def _all_equal(expr: Expr, number: float) -> bool:
    """Return whether `expr` is a constant whose elements all equal `number`.  If `number` is a float zero, its sign
    must match, too."""
    if not isinstance(expr, Constant) or not np.all(expr.value == number):
        return False
    signed_zero = number == 0 and expr.value.dtype.kind == "f"
    return not signed_zero or bool(np.all(np.signbit(expr.value) == np.signbit(number)))


def neutral_element(call: OpCall, definitions: Definitions) -> Expr | None:
    """Remove an operand that is the neutral element:

    x * 1, x - 0, x / 1, maximum(x, -inf), logical_and(x, true)   ->   x
    """
    x, y = call.args
    assert call.op.traits.neutral is not None
    neutral = call.op.traits.neutral(call.known_element_type)
    if _all_equal(y, neutral):
        return x
    return y if call.op.traits.commutative and _all_equal(x, neutral) else None


def power_with_constant_exponent(call: OpCall, definitions: Definitions) -> Expr | None:
    """Replace a power with a constant exponent:

    power(x, 2)   ->   x * x;   similarly for the exponent 3 and, if x is a float tensor, for 1/2, -1/2 and -1

    The exponents 1/2 and -1/2 become a square root.  It is corrected for the two values of x for which it differs from
    the power.  For x = -inf, the power is inf and the root is NaN.  For x = -0, the power is 0 and the root is -0.
    """
    x, exponent = call.args
    if not isinstance(exponent, Constant) or exponent.value.size == 0:
        return None
    number = exponent.value.flat[0]
    if not _all_equal(exponent, number):
        return None
    match number.item():
        case 2:
            return ops.multiply(x, x)
        case 3:
            return ops.multiply(ops.multiply(x, x), x)
        case -1 if x.known_element_type.is_float:
            return ops.reciprocal(x)
        case 0.5:
            return _root(x)
        case -0.5:
            return ops.reciprocal(_root(x))
    return None


def _root(x: Expr) -> Expr:
    endless = constant(np.inf, x.element_type)
    return ops.where(ops.equal(x, constant(-np.inf, x.element_type)), endless, ops.abs(ops.sqrt(x)))


def involution_twice(call: OpCall, definitions: Definitions) -> Expr | None:
    """Cancel two consecutive calls of an operator that is its own inverse: negative(negative(x)), not not x   ->   x"""
    inner = definitions.find_call(call.args[0], call.op)
    return inner.args[0] if inner is not None else None


def idempotent_twice(call: OpCall, definitions: Definitions) -> Expr | None:
    """Remove the second of two consecutive calls of the same idempotent operator: floor(floor(x))   ->   floor(x)"""
    return call.args[0] if definitions.find_call(call.args[0], call.op) else None


def unchanged_argument(call: OpCall, definitions: Definitions) -> Expr | None:
    """Replace a call that changes nothing by its argument:

    identity(x), cast(x, its dtype), broadcast_to(x, its shape)   ->   x
    """
    return call.args[0]


def clip_without_bounds(call: OpCall, definitions: Definitions) -> Expr | None:
    """Remove a clip without effective bounds: clip(x), clip(x, min=-inf, max=inf)   ->   x"""
    bounds, dtype = dict(call.attributes), call.known_element_type
    free = bounds["min"] in (None, dtype.lowest) and bounds["max"] in (None, dtype.highest)
    return call.args[0] if free else None


def cast_of_cast(call: OpCall, definitions: Definitions) -> Expr | None:
    """Merge two casts if the first one is exact:

    cast(cast(x, wide), any)   ->   cast(x, any),   if `wide` represents every number of x exactly
    """
    inner = definitions.find_call(call.args[0], ops.cast)
    if inner is None:
        return None
    (x,) = inner.args
    if not _represents_exactly(inner.known_element_type, x.known_element_type):
        return None
    return ops.cast(x, to=dict(call.attributes)["to"])


def _represents_exactly(wide: DType, narrow: DType) -> bool:
    """Return whether the dtype `wide` represents every number of the dtype `narrow` exactly.

    np.can_cast alone is not enough: NumPy considers a cast from i64 to f64 safe, although it is not exact.
    """
    if wide.is_float and narrow.is_integer and narrow.size_bytes >= wide.size_bytes:
        return False
    return np.can_cast(narrow.numpy, wide.numpy, "safe")


def where_with_constant_condition(call: OpCall, definitions: Definitions) -> Expr | None:
    """Replace a `where` whose condition is constant, or whose two values are the same, by one of the values:

    where(true, x, y)   ->   x,   broadcast if the result is larger;   where(c, x, x)   ->   x
    """
    cond, x, y = call.args
    if x is y:
        return x
    if not isinstance(cond, Constant) or cond.value.size == 0:
        return None
    if not (cond.value.all() or not cond.value.any()):
        return None
    chosen = x if cond.value.all() else y
    if chosen.type == call.type or call.tensor_type.shape is None:
        return chosen
    return ops.broadcast_to(chosen, Shape(call.tensor_type.shape))


def broadcast_of_broadcast(call: OpCall, definitions: Definitions) -> Expr | None:
    """Merge two broadcasts: broadcast_to(broadcast_to(x, s), t)   ->   broadcast_to(x, t)"""
    inner = definitions.find_call(call.args[0], ops.broadcast_to)
    if inner is None:
        return None
    return ops.broadcast_to(inner.args[0], call.args[1])


def broadcast_argument(call: OpCall, definitions: Definitions) -> Expr | None:
    """Remove the explicit broadcast of an argument if the operator broadcasts the argument itself:

    add(x, broadcast_to(y, s))   ->   add(x, y),   if add broadcasts y to the same shape
    """
    if call.op is ops.broadcast_to or len(call.args) < 2:
        return None
    inner = [_without_broadcast(arg, definitions) for arg in call.args]
    for changed in (tuple(inner), *(_replace_argument(call.args, at, source) for at, source in enumerate(inner))):
        if changed == call.args:
            continue
        simpler = call.op(*changed, **dict(call.attributes))
        if simpler.type == call.type:
            return simpler
    return None


def _without_broadcast(arg: Expr, definitions: Definitions) -> Expr:
    inner = definitions.find_call(arg, ops.broadcast_to)
    return arg if inner is None else inner.args[0]


def _replace_argument(args: tuple[Expr, ...], at: int, arg: Expr) -> tuple[Expr, ...]:
    return (*args[:at], arg, *args[at + 1 :])


def function_of_broadcast(call: OpCall, definitions: Definitions) -> Expr | None:
    """Apply an elementwise function before a broadcast instead of after it:

    exp(broadcast_to(x, s))   ->   broadcast_to(exp(x), s)
    """
    if call.op is ops.broadcast_to or len(call.args) != 1:
        return None
    inner = definitions.find_call(call.args[0], ops.broadcast_to)
    if inner is None:
        return None
    return ops.broadcast_to(call.op(inner.args[0], **dict(call.attributes)), inner.args[1])


RULES: dict[Operator, tuple[Rule, ...]] = {
    ops.power: (power_with_constant_exponent,),
    ops.identity: (unchanged_argument,),
    ops.clip: (clip_without_bounds,),
    ops.cast: (unchanged_argument, cast_of_cast),
    ops.broadcast_to: (unchanged_argument, broadcast_of_broadcast),
    ops.where: (where_with_constant_condition,),
}


def rules_of_traits(traits: Traits) -> Iterator[Rule]:
    """Yield the rules for an operator with the algebraic properties `traits`."""
    if traits.neutral:
        yield neutral_element
    if traits.involution:
        yield involution_twice
    if traits.idempotent:
        yield idempotent_twice


POINTWISE_RULES: tuple[Rule, ...] = (broadcast_argument, function_of_broadcast)
