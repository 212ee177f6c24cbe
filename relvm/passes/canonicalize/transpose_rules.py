"""Rules of `canonicalize` that move transpositions behind the operators that use them.

A model that was written for channels in the last axis often transposes the input and the result of each convolution.
Behind the elementwise operators between two convolutions, these transpositions meet and cancel.

A rule takes a call and the definitions of its arguments, and returns the replacement of the call, or None if the rule
does not apply (relvm/passes/canonicalize/rule.py).  Each docstring shows the call, an arrow, and the replacement.
"""

from __future__ import annotations

from collections.abc import Iterator

from relvm import ops
from relvm.ir.expr import Constant, Expr, OpCall, constant
from relvm.ir.operator import Operator
from relvm.kernels.lowering_rules import Pointwise
from relvm.passes.canonicalize.movement_rules import permutation_of
from relvm.passes.canonicalize.rule import Definitions, Rule, find_call


def elementwise_of_transposes(call: OpCall, definitions: Definitions) -> Expr | None:
    """Transpose the result of an elementwise operator instead of its arguments:

    add(transpose(x), transpose(y))   ->   transpose(add(x, y)),   also if y is a constant or a scalar
    """
    inside = _transposed_arguments(call, definitions)
    return None if inside is None else ops.transpose(call.op(*inside[0], **dict(call.attributes)), perm=inside[1])


def concat_of_transposes(call: OpCall, definitions: Definitions) -> Expr | None:
    """Transpose a concatenation instead of its parts:

    concat(transpose(x), transpose(y))   ->   transpose(concat(x, y)),   concatenated along the original axis
    """
    if any(isinstance(arg, Constant) for arg in call.args):
        return None
    inside = _transposed_arguments(call, definitions)
    if inside is None:
        return None
    args, perm = inside
    return ops.transpose(ops.concat(*args, axis=perm[dict(call.attributes)["axis"]]), perm=perm)


def pad_of_transpose(call: OpCall, definitions: Definitions) -> Expr | None:
    """Transpose the result of a pad instead of its argument: pad(transpose(x))   ->   transpose(pad(x))"""
    inside = _transposed_arguments(call, definitions)
    if inside is None:
        return None
    (x,), perm = inside
    attributes, rank = dict(call.attributes), len(perm)
    pads = [0] * (2 * rank)
    for axis, source in enumerate(perm):
        pads[source], pads[rank + source] = attributes["pads"][axis], attributes["pads"][rank + axis]
    return ops.transpose(ops.pad(x, **attributes | {"pads": tuple(pads)}), perm=perm)


def _transposed_arguments(call: OpCall, definitions: Definitions) -> tuple[list[Expr], tuple[int, ...]] | None:
    """Return the arguments of `call` before a transposition, and its permutation.

    At least one argument must be transposed.  Each other argument must be transposed in the same way, or be a constant
    or a scalar.  The result must have the rank of the transposed arguments.  Otherwise return None.
    """
    found = [find_call(definitions, arg, ops.transpose) for arg in call.args]
    perms = {permutation_of(inner) for inner in found if inner is not None and inner.tensor_type.rank is not None}
    if len(perms) != 1 or call.tensor_type.rank is None:
        return None
    (perm,) = perms
    if len(perm) != call.tensor_type.rank:
        return None
    args: list[Expr] = []
    for arg, inner in zip(call.args, found, strict=True):
        if inner is not None:
            args.append(inner.args[0])
        elif isinstance(arg, Constant) and arg.value.ndim:
            value = arg.value.reshape((1,) * (len(perm) - arg.value.ndim) + arg.value.shape)
            args.append(constant(value.transpose([perm.index(axis) for axis in range(len(perm))])))
        elif arg.tensor_type.rank == 0:
            args.append(arg)
        else:
            return None
    return args, perm


def rules_of(operator: Operator) -> Iterator[Rule]:
    """Yield the rules for calls of `operator`, in the order in which they are tried."""
    if operator is ops.concat:
        yield concat_of_transposes
    elif operator is ops.pad:
        yield pad_of_transpose
    elif isinstance(operator.lower, Pointwise) and operator is not ops.broadcast_to:
        yield elementwise_of_transposes
