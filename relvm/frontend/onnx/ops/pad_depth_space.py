"""Conversion of Pad, SpaceToDepth and DepthToSpace."""

from __future__ import annotations

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmShapeError, RelvmUnsupportedError, counted
from relvm.frontend.onnx.dynamic_axes import match_axes, scatter_to_axes
from relvm.frontend.onnx.dynamic_sizes import (
    dim_as_operand,
    dims_as_tensor,
    iota,
    is_known,
    known_count,
    run_time_sizes,
)
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr, default_element, input_tensor, pad_axes
from relvm.ir.dtypes import I64
from relvm.ir.expr import Constant, Expr, constant
from relvm.ir.symbolic import AnyDim, known_size
from relvm.ir.value_ranges import range_of


@converts("Pad")
def _pad(node: OnnxNode) -> Expr:
    """Pads or, for negative padding, crops.  Known padding becomes one kernel.  Symbolic padding, or an unknown fill
    value, becomes a concatenation.  Padding that is known only at run time is applied axis by axis.
    """
    x, rank, mode = input_tensor(node, 0), node.type(0).known_rank, node.attribute("mode", "constant")
    if mode not in ("constant", "edge", "reflect", "wrap"):
        raise RelvmUnsupportedError(f"mode {mode!r} is not supported")
    if node.opset >= 11 and not (is_known(node, 1) and (not node.has(3) or is_known(node, 3))):
        return _pad_at_run_time(node, mode).expr
    before, after = _known_padding(node, rank)
    known = all(isinstance(count, int) for count in (*before, *after))
    may_crop = any(range_of(count, {}).low < 0 for count in (*before, *after))
    if mode == "constant":
        value = _fill_value(node)
        if known and isinstance(value, Constant) and (not x.dtype.is_string or value.value.item() == ""):
            number = value.value.item() or 0
            return ops.pad(x.expr, pads=(*before, *after), value=number if x.dtype.is_float else int(number))
        if may_crop:
            return _pad_at_run_time(node, mode).expr
        return pad_axes(x, before, after, lambda x, axis, end: TensorExpr(node, value)).expr
    if known:
        x, pads = _crop(x, *(list(map(known_size, counts)) for counts in (before, after)))
        return ops.pad(x.expr, pads=pads, mode=mode)
    if may_crop:
        return _pad_at_run_time(node, mode).expr
    x = TensorExpr(node, node.known_shape(0))
    for axis, (dim, front, back) in enumerate(zip(x.shape, before, after, strict=True)):
        if (front, back) != (0, 0):
            x = _pad_with_copies(x, axis, front + dim + back, dim_as_operand(node, front), mode)
    return x.expr


def _crop(x: TensorExpr, before: list[int], after: list[int]) -> tuple[TensorExpr, tuple[int, ...]]:
    """Remove the elements that negative padding removes.  Return the rest of x, and the padding with 0 for negative
    numbers.

    As in ONNX Runtime, modes other than constant then copy only elements that remain.
    """
    removed = {axis: (max(-b, 0), max(-a, 0)) for axis, (b, a) in enumerate(zip(before, after, strict=True))}
    removed = {axis: counts for axis, counts in removed.items() if any(counts)}
    if removed:
        x = TensorExpr(x.node, x.node.graph.known_shape(x.expr))
        for axis, counts in removed.items():
            x.node.require_at_most(
                sum(counts), x.shape[axis], f"pads remove {{}} elements of axis {axis}, which has {{}}"
            )
        begin, end = zip(*removed.values(), strict=True)
        end = tuple(-count if count else _FARTHEST for count in end)
        x = x.apply(ops.slice, begin=begin, end=end, axes=tuple(removed))
    return x, tuple(max(count, 0) for count in (*before, *after))


def _known_padding(node: OnnxNode, rank: int) -> tuple[list[AnyDim], list[AnyDim]]:
    """Return two lists: the padding before each of the `rank` axes, and the padding after each."""
    declared = list(node.attribute("pads")) if node.opset < 11 else node.dims(1, "pads")
    axes = [int(axis) for axis in node.known_array(3, "axes").reshape(-1)] if node.has(3) else range(rank)
    if len(declared) != 2 * len(axes):
        raise RelvmShapeError(f"pads has {counted(len(declared), 'element')}, expected 2 for each of {len(axes)} axes")
    before: list[AnyDim] = [0] * rank
    after: list[AnyDim] = [0] * rank
    for i, axis in enumerate(axes):
        if not -rank <= axis < rank:
            raise RelvmShapeError(f"axes contains {axis}, which is outside [-{rank}, {rank})")
        before[axis], after[axis] = declared[i], declared[len(axes) + i]
    return before, after


_FARTHEST = 2**60  # larger than any axis, and small enough that sums do not overflow


def _pad_at_run_time(node: OnnxNode, mode: str) -> TensorExpr:
    """Convert a Pad whose padding or axes are only known at run time, by padding one axis after the other."""
    x, pads = TensorExpr(node, node.known_shape(0)), input_tensor(node, 1).cast(I64)
    pads = pads.apply(ops.clip, min=-_FARTHEST, max=_FARTHEST)
    rank = len(x.shape)
    count = known_count(input_tensor(node, 3), "axes") if node.has(3) else rank
    pads = TensorExpr(node, node.graph.with_shape(pads.expr, (2 * count,)))
    ends = [pads.apply(ops.slice, begin=(start,), end=(start + count,)) for start in (0, count)]
    if node.has(3):
        found = match_axes(input_tensor(node, 3).reshape(count), rank)
        ends = [scatter_to_axes(found, numbers, 0) for numbers in ends]
    value = TensorExpr(node, _fill_value(node))
    for axis in range(rank):
        before, after = (numbers.apply(ops.slice, begin=(axis,), end=(axis + 1,)) for numbers in ends)
        x, before, after = _crop_at_run_time(x, axis, before, after)
        if mode == "constant":
            x = _pad_with_value(x, axis, before, after, value)
        else:
            (size,) = run_time_sizes(before + dim_as_operand(node, x.shape[axis]) + after)
            x = _pad_with_copies(x, axis, size, before, mode)
    return x


def _crop_at_run_time(
    x: TensorExpr, axis: int, before: TensorExpr, after: TensorExpr
) -> tuple[TensorExpr, TensorExpr, TensorExpr]:
    """Remove -before elements at the start of an axis if `before` is negative, and -after at its end likewise.

    Return the rest of x, and the numbers of elements to add before and after it.  If more elements must be removed at
    one end than the axis has, the excess is subtracted from the number to add at the other end.
    """
    size = dims_as_tensor(x.node, [x.shape[axis]])
    first, last = ((0 - count).apply(ops.maximum, 0) for count in (before, after))
    skipped = first.apply(ops.minimum, size)
    left = last.apply(ops.minimum, size - skipped)
    (kept,) = run_time_sizes(size - skipped - left)
    x = x.apply(ops.gather, iota(x.node, kept) + skipped, axis=axis)
    return x, before.apply(ops.maximum, 0) - (last - left), after.apply(ops.maximum, 0) - (first - skipped)


def _pad_with_value(x: TensorExpr, axis: int, before: TensorExpr, after: TensorExpr, value: TensorExpr) -> TensorExpr:
    """Pad x along an axis with a value.  before, after: the number of elements to add before and after the axis."""
    counts: list[list[AnyDim]] = [[0] * len(x.shape), [0] * len(x.shape)]
    for end, count in enumerate((before, after)):
        (counts[end][axis],) = run_time_sizes(count)
    return pad_axes(x, counts[0], counts[1], lambda x, axis, end: value)


def _pad_with_copies(x: TensorExpr, axis: int, size: AnyDim, before: TensorExpr | int, mode: str) -> TensorExpr:
    """Pad x along an axis to `size` elements, with copies of its own elements.

    before: the number of elements to add before the axis.
    mode: which elements are copied: edge, wrap or reflect, as in `ops.pad`.
    """
    dim = dims_as_tensor(x.node, [x.shape[axis]])
    last, place = dim - 1, iota(x.node, size) - before
    match mode:
        case "edge":
            source = place.apply(ops.maximum, 0).apply(ops.minimum, last)
        case "wrap":
            source = place.apply(ops.modulo, dim)
        case _:
            period = (last * 2).apply(ops.maximum, 1)
            phase = place.apply(ops.modulo, period)
            source = phase.apply(ops.minimum, period - phase)
    return x.apply(ops.gather, source, axis=axis)


def _fill_value(node: OnnxNode) -> Expr:
    dtype = node.type(0).known_dtype
    if node.opset < 11:
        return constant(np.asarray(node.attribute("value", 0.0), dtype.numpy))
    if not node.has(2):
        return constant(default_element(dtype))
    return input_tensor(node, 2).reshape().expr


@converts("DepthToSpace")
def _depth_to_space(node: OnnxNode) -> Expr:
    """Moves channels into spatial blocks of blocksize * blocksize positions.

    In DCR mode, the position in the block is the first part of the channel index.  In CRD mode it is the last part.
    """
    x, (batch, channels, height, width), size, mode = _block_arguments(node)
    depth = node.exact_quotient(channels, size * size, "channels")
    parts = (size, size, depth) if mode == "DCR" else (depth, size, size)
    order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    return (
        x.reshape(batch, *parts, height, width)
        .apply(ops.transpose, perm=order)
        .reshape(batch, depth, height * size, width * size)
        .expr
    )


@converts("SpaceToDepth")
def _space_to_depth(node: OnnxNode) -> Expr:
    x, (batch, channels, height, width), size, mode = _block_arguments(node)
    high, wide = node.exact_quotient(height, size, "rows"), node.exact_quotient(width, size, "columns")
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    moved = x.reshape(batch, channels, high, size, wide, size).apply(ops.transpose, perm=order)
    return moved.reshape(batch, channels * (size * size), high, wide).expr


def _block_arguments(node: OnnxNode) -> tuple[TensorExpr, tuple[AnyDim, ...], int, str]:
    """Return the arguments of a DepthToSpace or SpaceToDepth: the input, its shape, the block size and the mode."""
    x, size, mode = input_tensor(node, 0), node.integer("blocksize", least=1), node.attribute("mode", "DCR")
    if x.type.shape is None or len(x.shape) != 4:
        raise RelvmUnsupportedError(f"input is {x.type}, expected rank 4")
    if mode not in ("DCR", "CRD"):
        raise RelvmUnsupportedError(f"mode {mode!r} is not supported")
    return x, x.shape, size, mode
