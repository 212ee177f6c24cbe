"""Reductions of segments of an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

import relvm.ops as ops
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.common.kernel_parts import buffer, index_of, loops, size
from relvm.frontend.torch.ops.control_flow import check_true
from relvm.frontend.torch.registry import Node, converts, shape_of
from relvm.ir.dtypes import I64
from relvm.ir.expr import Expr
from relvm.ir.kernel_def import KernelDef
from relvm.ir.loop_ir import Literal, Scalar, select
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder

_FAR = 1 << 31
_FIRST = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}


@converts("segment_reduce")
def _segment_reduce(
    node: Node,
    data: Expr,
    reduce: str,
    *,
    lengths: Expr | None = None,
    indices: Expr | None = None,
    offsets: Expr | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Expr:
    """Reduces segments of an axis, which `lengths` or `offsets` state.  An empty segment is `initial`."""
    if indices is not None or (lengths is None and offsets is None):
        raise RelvmUnsupportedError("segments that are stated by indices are not supported; pass lengths or offsets")
    if offsets is None:
        assert lengths is not None
        ends = node.emit(ops.cumsum(node.cast(lengths, I64), axis=axis))
        first = node.full(0, (*shape_of(lengths)[:-1], 1), I64)
        offsets = node.emit(ops.concat(first, ends, axis=axis))
        if not unsafe:
            _check_lengths(node, lengths, ends, shape_of(data)[axis])
    args = [node.emit(node.wide(data)), node.emit(node.cast(offsets, I64))]
    *batch, marks = shape_of(offsets)
    result = TensorType(args[0].known_element_type, (*batch, marks - 1, *shape_of(data)[axis + 1 :]))
    types = [*(each.tensor_type for each in args), result]
    kernel = _segment_kernel(node.kernel_name("segment_reduce"), types, reduce, initial)
    return node.call_kernel(kernel, args, [result])


def _check_lengths(node: Node, lengths: Expr, ends: Expr, size: AnyDim) -> None:
    """Check at run time that lengths are not negative, and that they add up to the size of the axis."""
    last = ops.slice(ends, begin=(-1,), end=(_FAR,), axes=(len(shape_of(ends)) - 1,))
    least = ops.min(node.cast(lengths, I64))
    is_valid = ops.logical_and(ops.greater_equal(least, 0), ops.equal(ops.min(last), ops.max(last)))
    is_valid = ops.logical_and(is_valid, ops.equal(ops.max(last), node.number(size, I64)))
    message = "segment_reduce needs lengths that are not negative and add up to the size of the axis"
    check_true(node, node.emit(ops.to_scalar(is_valid)), message)


def _segment_kernel(name: str, types: Sequence[TensorType], reduce: str, initial: float | None) -> KernelDef:
    """Return the kernel that reduces the rows of each segment.

    types: the types of the data, the offsets and the result.  The data has the axes of the offsets, and then any
    others.  The offsets are positions along the last of these axes, at which the segments begin, and finally the end.
    reduce: sum, mean, prod, max or min.   initial: the value to which the rows are added, or None.
    """
    k = KernelBuilder()
    x, marks = (buffer(stem, type_) for stem, type_ in zip(("data", "offsets"), types, strict=False))
    out = buffer("out", types[2], is_output=True)
    rank = len(marks.shape)
    segments = size(marks.shape[-1]) - 1
    first = Literal(_FIRST[reduce] if initial is None else float(initial), out.dtype)

    def combined(total: Scalar, element: Scalar) -> Scalar:
        if reduce in ("sum", "mean"):
            return total + element
        if reduce == "prod":
            return total * element
        is_better = element > total if reduce == "max" else element < total
        return select(is_better.logical_or(element.ne(element)), element, total)

    with loops(k, marks.shape[:-1]) as place, loops(k, (segments,)) as (segment,):
        start, end = (k.let("mark", index_of(marks[(*place, segment + at)])) for at in (0, 1))
        with loops(k, x.shape[rank:]) as rest:
            total = k.variable("total", first)
            with k.loop(end, start=start, name="row") as row:
                k.assign(total, combined(total, x[(*place, row, *rest)]))
            value: Scalar = total
            if reduce == "mean":
                count = k.let("count", end - start)
                empty = Literal(math.nan if initial is None else float(initial), out.dtype)
                value = select(count > 0, total / count.to(out.dtype), empty)
            k.store(out, (*place, segment, *rest), value)
    return KernelDef(name, (x, marks), (out,), k.finish())
