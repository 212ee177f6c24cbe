"""Binary search in sorted sequences."""

from __future__ import annotations

from typing import Any

import relvm.ops as ops
from relvm.frontend.common.kernel_parts import buffer, loops, quotient, size
from relvm.frontend.torch.registry import Node, converts, shape_of
from relvm.ir.dtypes import I64
from relvm.ir.expr import Expr
from relvm.ir.kernel_def import KernelDef
from relvm.ir.loop_ir import Buffer, Literal
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder


@converts("searchsorted.Tensor", "searchsorted.Scalar")
def _searchsorted(
    node: Node,
    sorted_sequence: Expr,
    self: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: Any = None,
    sorter: Expr | None = None,
) -> Expr:
    if sorter is not None:
        sorted_sequence = node.emit(ops.gather_elements(sorted_sequence, sorter, axis=len(shape_of(sorter)) - 1))
    return searched(node, *node.promoted(sorted_sequence, self), right=side == "right" or right)


@converts("bucketize.Tensor", "bucketize.Scalar")
def _bucketize(node: Node, self: Any, boundaries: Expr, *, out_int32: bool = False, right: bool = False) -> Expr:
    return searched(node, *node.promoted(boundaries, self), right=right)


def searched(node: Node, bounds: Expr, values: Expr, *, right: bool) -> Expr:
    """Return the position in sorted bounds at which each value would be inserted, after equal bounds if `right`.

    bounds: a vector, or a tensor with a sorted sequence in its last axis for each position of the other axes.
    values: a tensor of the same dtype.
    """
    args = [node.emit(node.wide(each)) for each in (bounds, values)]
    kernel = _search_kernel(node.kernel_name("search"), *(each.tensor_type for each in args), right=right)
    return node.emit(node.call_kernel(kernel, args, [TensorType(I64, shape_of(values))]))


def _search_kernel(name: str, bounds: TensorType, values: TensorType, *, right: bool) -> KernelDef:
    """Return the kernel of `searched`.

    Notes
    -----
    Source: cus_lower_bound and cus_upper_bound in ATen/native/BucketizationUtils.h.  As there, a bound that is not
    greater is passed even if it or the value is NaN.
    """
    k = KernelBuilder()
    edges, x = buffer("bounds", bounds), buffer("values", values)
    out = Buffer("out", I64, x.shape, True)
    count = size(edges.shape[-1])
    rounds, reach = k.variable("rounds", Literal(1, I64)), k.variable("reach", Literal(1, I64))
    with k.loop(62, name="n"), k.branch(reach < count):
        k.assign(reach, reach * 2)
        k.assign(rounds, rounds + 1)
    with loops(k, x.shape) as at:
        row = at[:-1] if len(edges.shape) > 1 else ()
        value = k.let("value", x[at])
        low, high = k.variable("low", Literal(0, I64)), k.variable("high", count)
        with k.loop(rounds, name="step"), k.branch(low < high):
            middle = k.let("middle", quotient(low + high, 2))
            bound = k.let("bound", edges[(*row, middle)])
            stops = k.let("stops", bound > value if right else bound >= value)
            with k.branch(stops):
                k.assign(high, middle)
            with k.branch(stops.eq(False)):
                k.assign(low, middle + 1)
        k.store(out, at, low)
    return KernelDef(name, (edges, x), (out,), k.finish())
