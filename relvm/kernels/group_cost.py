"""Cost of the kernel of a fusion group: the sum of the costs of its members, by their mathematical definitions.

The actual work of the kernel can be larger, if it computes a value several times, or smaller, if it works in tiles.
The cost ignores this, so that two kernels for the same group can be compared.
"""

from __future__ import annotations

from relvm.ir.expr import Expr, OpCall
from relvm.ir.loop_ir import Load, Local, Operation, Scalar
from relvm.ir.symbolic import AnyDim, product
from relvm.ir.types import TensorType
from relvm.kernels.cost import Work
from relvm.kernels.fused_expr import NotFusable
from relvm.kernels.fusion_group import Group, tensors
from relvm.kernels.lowering_rules import Contraction, CustomKernel, DataMovement, GatherKernel, Pointwise, Reduce


def group_work(group: Group) -> Work:
    """Return the work of one call of the group's kernel: the number of operations, and of elements read."""
    counts = [_operations(group, call) for call in group.members.values()]
    known = [count for count in counts if count is not None]
    total = sum(known, 0) if len(known) == len(counts) else None
    return Work(total, tuple(_elements_read(group, arg) for arg in group.args))


def _operations(group: Group, call: OpCall) -> AnyDim | None:
    """Return the number of operations of `call`, an operator of the group, or None if it is unknown.

    It is unknown if the operator declares no operation count, or if the count depends on a size that the kernel does
    not receive.
    """
    attributes = dict(call.attributes)
    try:
        types = [group.kernel_type(arg.type) for arg in call.args if isinstance(arg.type, TensorType)]
        results = [group.kernel_type(type_) for type_ in tensors(call.type)]
    except NotFusable:
        return None
    result = results[0].shape
    match call.op.lower:
        case Pointwise(point):
            elements = [Local(f"x{i}", type_.known_dtype) for i, type_ in enumerate(types)]
            return product(result) * scalar_operations(point(*elements, **attributes))
        case Reduce(_, finish):
            total = Local("total", types[0].known_dtype)
            return product(types[0].shape) + product(result) * scalar_operations(finish(total, 1))
        case CustomKernel() if call.op.moves:
            return 0
        case Contraction(operations=operations) | CustomKernel(operations=operations):
            return operations and operations(*(type_.shape for type_ in types), result, **attributes)
    return 0


def scalar_operations(result: Scalar) -> int:
    """Return the number of operations in the expression `result`.

    Arithmetic, comparisons, selections and functions such as exp count as one each.  Conversions and the conditions of
    selections do not count.
    """
    waiting, seen, count = [result], set(), 0
    while waiting:
        scalar = waiting.pop()
        if scalar in seen:
            continue
        seen.add(scalar)
        match scalar:
            case Operation("select", (_, *counted)) | Operation(_, counted):
                count += scalar.function != "cast"
                waiting += counted
            case Load(_, indices):
                waiting += indices
    return count


def _elements_read(group: Group, arg: Expr) -> AnyDim | None:
    """Return the maximum number of elements that the group's kernel reads of argument `arg`, or None for all elements.

    The maximum is known if each operator that uses the argument only selects elements of it, as a slice does.
    """
    total: AnyDim = 0
    for call in group.members.values():
        used = [index for index, argument in enumerate(call.args) if argument is arg]
        if used and (used != [0] or not _only_selects(call)):
            return None
        if used:
            try:
                total = total + product(group.kernel_type(call.tensor_type).shape)
            except NotFusable:
                return None
    return total


def _only_selects(call: OpCall) -> bool:
    """Return whether `call` only selects elements of its first argument.

    Each element of the result must be copied from this argument, or be independent of all arguments, like padding.
    """
    lower = call.op.lower
    return isinstance(lower, DataMovement | GatherKernel) or (isinstance(lower, CustomKernel) and call.op.moves)
