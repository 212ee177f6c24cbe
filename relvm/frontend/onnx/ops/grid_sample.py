"""Sampling of tensors at the points of a grid: GridSample, AffineGrid, DeformConv."""

from __future__ import annotations

import relvm.ops as ops
from relvm.errors import RelvmShapeError, RelvmUnsupportedError, counted
from relvm.frontend.common.deformable_convolution import deformable_convolution
from relvm.frontend.onnx.dynamic_sizes import dim_as_operand, dims_as_tensor, iota, sizes_of
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.sliding_window import expect_kernel_shape, padding_of, strides_and_dilations
from relvm.frontend.onnx.tensor_expr import TensorExpr, input_tensor, per_channel, shaped_input
from relvm.ir.dtypes import DType
from relvm.ir.expr import Expr
from relvm.ir.symbolic import AnyDim, product

_MODES = {"nearest": "nearest", "linear": "linear", "bilinear": "linear", "cubic": "cubic", "bicubic": "cubic"}


@converts("GridSample")
def _grid_sample(node: OnnxNode) -> Expr:
    """Samples x, which has at most 4 spatial axes, at grid coordinates from -1 to 1.

    If align_corners is set, -1 and 1 are the centers of the outermost elements, otherwise their outer edges.
    """
    x, grid = shaped_input(node, 0), input_tensor(node, 1)
    asked, padding = node.attribute("mode", "linear"), node.attribute("padding_mode", "zeros")
    if asked not in _MODES:
        raise RelvmUnsupportedError(f"mode {asked!r} is not supported")
    sizes = list(x.shape[2:])
    if grid.type.rank != len(sizes) + 2:
        raise RelvmShapeError(f"grid has rank {grid.type.rank}, expected the rank of x, {len(sizes) + 2}")
    aligned = bool(node.attribute("align_corners", 0))
    extents = dims_as_tensor(node, sizes).cast(grid.dtype)
    at = grid.reverse(-1) + 1  # in ONNX, the coordinate along the last axis comes first
    at = at / 2 * (extents - 1) if aligned else (at * extents - 1) / 2
    return ops.grid_sample(x.expr, at.expr, mode=_MODES[asked], padding=padding, align_corners=aligned)


@converts("AffineGrid")
def _affine_grid(node: OnnxNode) -> Expr:
    """Creates a grid of coordinates from -1 to 1 along every axis, and transforms it by the affine matrix of each
    image.
    """
    size = sizes_of(node, 1, "size")
    if len(size) not in (4, 5):
        raise RelvmShapeError(f"size has {counted(len(size), 'element')}, expected 4 or 5")
    images, _, *sizes = size
    rank = len(sizes)
    theta = TensorExpr(node, node.graph.with_shape(node.tensor(0), (images, rank, rank + 1)))
    dtype = theta.dtype
    axes = [_axis_coordinates(node, size, dtype, bool(node.attribute("align_corners", 0))) for size in sizes]
    columns = []
    for axis in reversed(range(rank)):
        shape: list[AnyDim] = [1] * rank
        shape[axis] = sizes[axis]
        columns.append(axes[axis].reshape(*shape).apply(ops.broadcast_to, node.shape(sizes)).reshape(product(sizes), 1))
    ones = TensorExpr(node, columns[0].operand(1)).apply(ops.broadcast_to, node.shape([product(sizes), 1]))
    points = columns[0].apply(ops.concat, *columns[1:], ones, axis=1)
    moved = points.apply(ops.matmul, theta, transpose_b=True)
    return moved.reshape(images, *sizes, rank).expr


def _axis_coordinates(node: OnnxNode, size: AnyDim, dtype: DType, aligned: bool) -> TensorExpr:
    """Return the coordinates from -1 to 1 of the `size` elements along an axis.

    If `aligned` is true, -1 and 1 are the centers of the outermost elements, otherwise their outer edges.
    """
    place = iota(node, size).cast(dtype)
    count = dim_as_operand(node, size)
    count = count.cast(dtype) if isinstance(count, TensorExpr) else count
    if not aligned:
        return (place * 2 + 1) / count - 1
    steps = count - 1
    steps = steps.apply(ops.maximum, 1) if isinstance(steps, TensorExpr) else max(steps, 1)
    return place * 2 / steps - 1


@converts("DeformConv")
def _deform_conv(node: OnnxNode) -> Expr:
    """Samples x like im2col, but shifts each position of a window by its own offset.

    The result is multiplied by the weights.
    """
    x, w, offset = (shaped_input(node, i) for i in range(3))
    if len(x.shape) != 4:
        raise RelvmUnsupportedError(f"x of rank {len(x.shape)} is not supported: expected rank 4")
    for index, what in ((1, "W"), (2, "offset")):
        node.expect_rank(index, 4, what)
    expect_kernel_shape(node, w.shape[2:])
    kernel = node.attribute("kernel_shape", list(w.shape[2:]))
    if not all(isinstance(extent, int) for extent in kernel):
        raise RelvmUnsupportedError("the kernel shape must be known when the model is imported")
    strides, dilations = strides_and_dilations(node, 2)
    pads = padding_of(node, tuple(kernel), strides, dilations)
    if not all(isinstance(pad, int) for pad in pads):
        raise RelvmUnsupportedError("the padding must be known when the model is imported")
    channels, groups = x.shape[1], node.integer("group", 1, least=1)
    shares = node.integer("offset_group", 1, least=1)
    if not isinstance(channels, int) or channels % shares or channels % groups:
        raise RelvmShapeError(
            f"group is {groups} and offset_group is {shares}, but both must divide the number of channels, {channels}"
        )
    node.graph.file.count(sum(kernel) * 8, node.here)
    result = deformable_convolution(
        node.emit,
        x.expr,
        w.expr,
        offset.expr,
        shaped_input(node, 4).expr if node.has(4) else None,
        strides=strides,
        dilations=dilations,
        pads=[pad for pad in pads if isinstance(pad, int)],
        groups=groups,
        offset_groups=shares,
    )
    return (TensorExpr(node, result) + per_channel(node, 3, 4)).expr if node.has(3) else result
