"""Rules of `canonicalize` for elementwise operators.

A rule takes a call and the definitions of its arguments, and returns the replacement of the call, or None if the rule
does not apply (relvm/passes/canonicalize/rule.py).  A `Rewrite` states the call and the replacement as expressions.
The docstring of a function shows the call, an arrow, and the replacement.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from relvm import ops
from relvm.ir.dtypes import DType, dtype_of
from relvm.ir.expr import Constant, Expr, OpCall, Shape, Var, constant
from relvm.ir.operator import Operator
from relvm.ir.types import TensorType
from relvm.kernels.lowering_rules import Pointwise
from relvm.passes.canonicalize.rule import Definitions, Rewrite, Rule, all_equal, find_call, number


def _is_unbounded(x: Expr, low: float | None, high: float | None) -> bool:
    dtype = x.known_element_type
    return low in (None, dtype.lowest) and high in (None, dtype.highest)


def _is_exact_cast(x: Expr, to: str | DType) -> bool:
    """Return whether the dtype `to` represents every number of the dtype of x exactly.

    np.can_cast alone is not enough: NumPy considers a cast from i64 to f64 safe, although it is not exact.
    """
    narrow, wide = x.known_element_type, dtype_of(to)
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


def broadcast_argument(call: OpCall, definitions: Definitions) -> Expr | None:
    """Remove the explicit broadcast of an argument if the operator broadcasts the argument itself:

    add(x, broadcast_to(y, s))   ->   add(x, y),   if add broadcasts y to the same shape
    """
    inner = [_without_broadcast(arg, definitions) for arg in call.args]
    for changed in (tuple(inner), *(_replace_argument(call.args, at, source) for at, source in enumerate(inner))):
        if changed == call.args:
            continue
        simpler = call.op(*changed, **dict(call.attributes))
        if simpler.type == call.type:
            return simpler
    return None


def uniform_argument(call: OpCall, definitions: Definitions) -> Expr | None:
    """Replace a constant argument whose elements are all the same by a scalar, if the operator broadcasts it:

    multiply(x, const(f32[128], [2, 2, ...]))   ->   multiply(x, 2)
    """
    for at, arg in enumerate(call.args):
        if (element := _uniform_element(arg)) is not None:
            simpler = call.op(*_replace_argument(call.args, at, element), **dict(call.attributes))
            if simpler.type == call.type:
                return simpler
    return None


def _uniform_element(arg: Expr) -> Constant | None:
    """Return the element of `arg` if it is a constant with several elements that all have the same bits, or None."""
    if not isinstance(arg, Constant) or arg.value.size < 2 or arg.value.dtype.itemsize not in (1, 2, 4, 8):
        return None
    if arg.value.dtype.hasobject:
        return None
    flat = arg.value.reshape(-1)
    bits = flat.view(f"u{flat.itemsize}")
    if bits[0] != bits[-1] or (bits != bits[0]).any():
        return None
    return constant(flat[:1].reshape(()).copy())


def softmax_by_parts(call: OpCall, definitions: Definitions) -> Expr | None:
    """Recognize a softmax:

    e = exp(subtract(x, max(x, axis)));  divide(e, sum(e, axis))   ->   softmax(x, axis)

    In the softmax, elements of x more than 86.9 below the maximum count as -inf (`exp_ftz`).
    """
    powers, total = call.args
    exponential = find_call(definitions, powers, ops.exp)
    shifted = None if exponential is None else find_call(definitions, exponential.args[0], ops.subtract)
    if shifted is None:
        return None
    x, largest = shifted.args
    axis = _reduced_axis(total, ops.sum, powers, definitions)
    if axis is None or axis != _reduced_axis(largest, ops.max, x, definitions):
        return None
    return ops.softmax(x, axis=axis)


def _reduced_axis(expr: Expr, reduction: Operator, x: Expr, definitions: Definitions) -> int | None:
    """Return the axis if `expr` is `reduction` of x along one axis that remains with size 1, otherwise None."""
    shape = x.tensor_type.shape if isinstance(x.type, TensorType) else None
    if shape is None:
        return None
    view = find_call(definitions, expr, ops.reshape, ops.expand_dims)
    reduced = expr if view is None else view.args[0]
    added = find_call(definitions, reduced, ops.add)
    if added is not None and all_equal(added.args[1], 0):  # the initial value of a sum of powers, which is not -0
        reduced = added.args[0]
    found = find_call(definitions, reduced, reduction)
    if found is None or found.args[0] is not x:
        return None
    axes = dict(found.attributes)["axes"]
    if axes is None or len(axes) != 1:
        return None
    axis = axes[0] % len(shape)
    kept = (*shape[:axis], 1, *shape[axis + 1 :])
    return axis if expr.tensor_type.shape == kept else None


def _without_broadcast(arg: Expr, definitions: Definitions) -> Expr:
    inner = find_call(definitions, arg, ops.broadcast_to)
    return arg if inner is None else inner.args[0]


def _replace_argument(args: tuple[Expr, ...], at: int, arg: Expr) -> tuple[Expr, ...]:
    return (*args[:at], arg, *args[at + 1 :])


x, y, s, t, low, high, dtype, wide = map(Var, ("x", "y", "s", "t", "low", "high", "dtype", "wide"))

# power(x, 0.5), with its values for x = -inf and x = -0, for which sqrt(x) is NaN and -0.
_ROOT = ops.where(ops.equal(x, number(-np.inf)), number(np.inf), ops.abs(ops.sqrt(x)))

# No rule changes the type of a result, so cast(x, to=dtype) is only replaced by x if x has this dtype.
_REWRITES = (
    Rewrite(ops.power(x, number(2)), ops.multiply(x, x)),
    Rewrite(ops.power(x, number(3)), ops.multiply(ops.multiply(x, x), x)),
    Rewrite(ops.power(x, number(-1)), ops.reciprocal(x), lambda found: found[x].known_element_type.is_float),
    Rewrite(ops.power(x, number(0.5)), _ROOT),
    Rewrite(ops.power(x, number(-0.5)), ops.reciprocal(_ROOT)),
    Rewrite(ops.identity(x), x),
    Rewrite(ops.clip(x, min=low, max=high), x, lambda found: _is_unbounded(found[x], found[low], found[high])),
    Rewrite(ops.cast(x, to=dtype), x),
    Rewrite(
        ops.cast(ops.cast(x, to=wide), to=dtype),
        ops.cast(x, to=dtype),
        lambda found: _is_exact_cast(found[x], found[wide]),
    ),
    Rewrite(ops.broadcast_to(x, s), x),
    Rewrite(ops.broadcast_to(ops.broadcast_to(x, s), t), ops.broadcast_to(x, t)),
)


def rules_of(f: Operator) -> Iterator[Rule]:
    """Yield the rules for calls of the operator f, in the order in which they are tried."""

    def is_neutral(arg: Expr) -> bool:
        return f.traits.neutral is not None and all_equal(arg, f.traits.neutral(arg.known_element_type))

    if f.traits.neutral:
        yield Rewrite(f(x, y), x, lambda found: is_neutral(found[y]))
        if f.traits.commutative:
            yield Rewrite(f(x, y), y, lambda found: is_neutral(found[x]))
    if f.traits.involution:
        yield Rewrite(f(f(x)), x)
    if f.traits.idempotent:
        once = f(x)  # the replacement is the variable that this part of the pattern matched, not a new call
        yield Rewrite(f(once), once)
    yield from (rewrite for rewrite in _REWRITES if rewrite.pattern.op is f)
    if f is ops.where:
        yield where_with_constant_condition
    if f is ops.divide:
        yield softmax_by_parts
    if not isinstance(f.lower, Pointwise) or f is ops.broadcast_to:
        return
    if len(f.parameters) > 1:
        yield broadcast_argument
        yield uniform_argument
    else:
        attributes = {each.name: Var(each.name) for each in f.attributes}
        yield Rewrite(f(ops.broadcast_to(x, s), **attributes), ops.broadcast_to(f(x, **attributes), s))
