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
    """Return whether `expr` is a constant whose elements all equal `number`.  Float zeros must have the same sign."""
    if not isinstance(expr, Constant) or not np.all(expr.value == number):
        return False
    signed_zero = number == 0 and expr.value.dtype.kind == "f"
    return not signed_zero or bool(np.all(np.signbit(expr.value) == np.signbit(number)))


def neutral_element(call: OpCall, definitions: Definitions) -> Expr | None:
    """Remove an operand that is the neutral element: x * 1, x - 0, x / 1, maximum(x, -inf), x and true   ->   x"""
    x, y = call.args
    assert call.op.traits.neutral is not None
    neutral = call.op.traits.neutral(call.known_element_type)
    if _all_equal(y, neutral):
        return x
    return y if call.op.traits.commutative and _all_equal(x, neutral) else None


def known_power(call: OpCall, definitions: Definitions) -> Expr | None:
    """Replace a power with a constant exponent:

    power(x, 2)   ->   x * x;   similarly for the exponent 3, and for floats 1/2, -1/2 and -1

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


def inverse_twice(call: OpCall, definitions: Definitions) -> Expr | None:
    """Cancel an operator that is applied twice and is its own inverse: negative(negative(x)), not not x   ->   x"""
    inner = definitions.call_of(call.args[0], call.op)
    return inner.args[0] if inner is not None else None


def same_again(call: OpCall, definitions: Definitions) -> Expr | None:
    """Remove the second of two equal idempotent operators: floor(floor(x))   ->   floor(x)"""
    return call.args[0] if definitions.call_of(call.args[0], call.op) else None


def argument_itself(call: OpCall, definitions: Definitions) -> Expr | None:
    """Replace a call that changes nothing by its argument:

    identity(x), cast(x, its dtype), broadcast_to(x, its shape)   ->   x
    """
    return call.args[0]


def no_bounds(call: OpCall, definitions: Definitions) -> Expr | None:
    """Remove a clip without effective bounds: clip(x), clip(x, min=-inf, max=inf)   ->   x"""
    bounds, dtype = dict(call.attributes), call.known_element_type
    free = bounds["min"] in (None, dtype.lowest) and bounds["max"] in (None, dtype.highest)
    return call.args[0] if free else None


def cast_of_cast(call: OpCall, definitions: Definitions) -> Expr | None:
    """Merge two casts if the first one is exact:

    cast(cast(x, wide), any)   ->   cast(x, any),   if `wide` represents every number of x exactly
    """
    inner = definitions.call_of(call.args[0], ops.cast)
    if inner is None:
        return None
    (x,) = inner.args
    if not _holds(inner.known_element_type, x.known_element_type):
        return None
    return ops.cast(x, to=dict(call.attributes)["to"])


def _holds(wide: DType, narrow: DType) -> bool:
    """Return whether `wide` represents every number of `narrow` exactly.

    NumPy calls a cast from i64 to f64 safe, but it is not exact.
    """
    if wide.is_float and narrow.is_integer and narrow.size_bytes >= wide.size_bytes:
        return False
    return np.can_cast(narrow.numpy, wide.numpy, "safe")


def known_condition(call: OpCall, definitions: Definitions) -> Expr | None:
    """Resolve a `where` with a constant condition or equal values:

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
    inner = definitions.call_of(call.args[0], ops.broadcast_to)
    if inner is None:
        return None
    return ops.broadcast_to(inner.args[0], call.args[1])


def broadcast_argument(call: OpCall, definitions: Definitions) -> Expr | None:
    """Remove the explicit broadcast of an argument that the operator also broadcasts implicitly:

    add(x, broadcast_to(y, s))   ->   add(x, y),   if add broadcasts y to the same shape
    """
    if call.op is ops.broadcast_to or len(call.args) < 2:
        return None
    inner = [_source(arg, definitions) for arg in call.args]
    for changed in (tuple(inner), *(_with(call.args, at, source) for at, source in enumerate(inner))):
        if changed == call.args:
            continue
        simpler = call.op(*changed, **dict(call.attributes))
        if simpler.type == call.type:
            return simpler
    return None


def _source(arg: Expr, definitions: Definitions) -> Expr:
    inner = definitions.call_of(arg, ops.broadcast_to)
    return arg if inner is None else inner.args[0]


def _with(args: tuple[Expr, ...], at: int, arg: Expr) -> tuple[Expr, ...]:
    return (*args[:at], arg, *args[at + 1 :])


def function_of_broadcast(call: OpCall, definitions: Definitions) -> Expr | None:
    """Apply an elementwise function before a broadcast instead of after it:

    exp(broadcast_to(x, s))   ->   broadcast_to(exp(x), s)
    """
    if call.op is ops.broadcast_to or len(call.args) != 1:
        return None
    inner = definitions.call_of(call.args[0], ops.broadcast_to)
    if inner is None:
        return None
    return ops.broadcast_to(call.op(inner.args[0], **dict(call.attributes)), inner.args[1])


RULES: dict[Operator, tuple[Rule, ...]] = {
    ops.power: (known_power,),
    ops.identity: (argument_itself,),
    ops.clip: (no_bounds,),
    ops.cast: (argument_itself, cast_of_cast),
    ops.broadcast_to: (argument_itself, broadcast_of_broadcast),
    ops.where: (known_condition,),
}


def rules_of_traits(traits: Traits) -> Iterator[Rule]:
    """Yield the rules that follow from the algebraic properties of an operator."""
    if traits.neutral:
        yield neutral_element
    if traits.involution:
        yield inverse_twice
    if traits.idempotent:
        yield same_again


POINTWISE_RULES: tuple[Rule, ...] = (broadcast_argument, function_of_broadcast)
