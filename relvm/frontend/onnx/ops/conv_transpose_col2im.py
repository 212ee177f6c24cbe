"""Overlap-add of windows: Col2Im, and transposed convolution as a matrix product followed by col2im."""

from __future__ import annotations

import relvm.ops as ops
from relvm.errors import RelvmArgumentError, RelvmShapeError, RelvmUnsupportedError, counted
from relvm.frontend.onnx.dynamic_sizes import dims_as_tensor, run_time_sizes, sizes_of
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.sliding_window import (
    dilated_sizes,
    expect_kernel_shape,
    split_pads,
    strides_and_dilations,
)
from relvm.frontend.onnx.tensor_expr import TensorExpr, input_tensor, per_channel
from relvm.ir.expr import Expr
from relvm.ir.symbolic import AnyDim, exact_quotient, product


@converts("ConvTranspose")
def _conv_transpose(node: OnnxNode) -> Expr:
    x, w, groups = input_tensor(node, 0), input_tensor(node, 1), node.integer("group", 1, least=1)
    if x.type.shape is None or w.type.shape is None:
        raise RelvmUnsupportedError(f"ConvTranspose requires known shapes, got {x.type} and {w.type}")
    if len(x.shape) < 3 or len(x.shape) != len(w.shape):
        raise RelvmShapeError(f"x is {x.type} and w is {w.type}, expected the same rank of at least 3")
    (batch, channels, *input_dims), (depths, filters, *window) = x.shape, w.shape
    expect_kernel_shape(node, window)
    if not isinstance(channels, int):  # the weights state the number of channels
        x, channels = TensorExpr(node, node.graph.with_shape(x.expr, (batch, depths, *input_dims))), depths
    depth = node.exact_quotient(channels, groups, "channels")
    rank = len(input_dims)
    strides, dilations = strides_and_dilations(node, rank)
    before, sizes = _output_extent(node, input_dims, dilated_sizes(tuple(window), dilations), strides)
    area = product(input_dims)
    weights = w.reshape(groups, depth, product((filters, *window)))
    columns = x.reshape(batch, groups, depth, area)
    windows = weights.apply(ops.matmul, columns, transpose_a=True)
    windows = windows.reshape(batch, groups * filters, *window, *input_dims)
    shape = [batch, groups * filters, *sizes]
    is_disjoint = window == list(strides) and not any(before) and all(n == 1 for n in dilations)
    if is_disjoint and sizes == [n * s for n, s in zip(input_dims, strides, strict=True)]:
        order = [axis for pair in zip(range(2 + rank, 2 + 2 * rank), range(2, 2 + rank), strict=True) for axis in pair]
        result = windows.apply(ops.transpose, perm=(0, 1, *order)).reshape(*shape)
    else:
        result = windows.apply(ops.col2im, node.shape(shape), strides=strides, pads=before, dilations=dilations)
    return (result + per_channel(node, 2, 2 + rank)).expr if node.has(2) else result.expr


def _output_extent(
    node: OnnxNode, input_dims: list[AnyDim], window: list[AnyDim], strides: tuple[int, ...]
) -> tuple[tuple[int, ...], list[AnyDim]]:
    """Return the padding at the start of each spatial axis, and the spatial dimensions of the result.

    Without padding, an axis of the result has (n - 1) * stride + window + output_padding positions, where n is the size
    of the axis in the input.  Padding is cut off at both ends of the axis.  Normally, the attribute pads contains the
    padding.  If output_shape or a SAME mode of auto_pad determines the size of the result, the padding follows from
    that size.  If the size is larger than the axis, zeros are appended.

    input_dims: the spatial dimensions of the input.
    window: the number of positions that a window spans along each axis.
    """
    rank, mode = len(input_dims), node.attribute("auto_pad", "NOTSET")
    extra = node.integers("output_padding", rank, 0, least=0)
    whole = [(n - 1) * s + w + e for n, s, w, e in zip(input_dims, strides, window, extra, strict=True)]
    stated, same = node.attribute("output_shape"), mode in ("SAME_UPPER", "SAME_LOWER")
    if not stated and not same:
        if mode not in ("NOTSET", "VALID", ""):
            raise RelvmUnsupportedError(f"auto_pad {mode!r} is not supported")
        pads = node.integers("pads", 2 * rank, 0) if mode != "VALID" else (0,) * (2 * rank)
        cut = zip(whole, pads[:rank], pads[rank:], strict=True)
        return pads[:rank], [total - front - back for total, front, back in cut]
    if stated and len(stated) not in (rank, rank + 2):
        raise RelvmArgumentError(f"output_shape is {stated}, expected {rank} integers, or {rank + 2} with all axes")
    sizes = stated[-rank:] if stated else [n * s for n, s in zip(input_dims, strides, strict=True)]
    totals = []
    for n, total, size in zip(input_dims, whole, sizes, strict=True):
        left = total - size
        if not isinstance(left, int):
            raise RelvmUnsupportedError(
                f"output_shape {stated} requires a fixed size of the input, whose dimension is {n}"
            )
        totals.append(max(0, left))
    # If the padding is odd, all modes except SAME_UPPER put the extra element at the front, as SAME_LOWER does.
    pads = split_pads("SAME_UPPER" if mode == "SAME_UPPER" else "SAME_LOWER", totals)
    return pads[:rank], list(sizes)


@converts("Col2Im")
def _col2im(node: OnnxNode) -> Expr:
    x, window = TensorExpr(node, node.known_shape(0)), sizes_of(node, 2, "block_shape")
    rank = len(window)
    image = sizes_of(node, 1, "image_shape", rank)
    if len(x.shape) != 3:
        raise RelvmShapeError(f"x is {x.type}, expected rank 3")
    if len(image) != rank:
        raise RelvmShapeError(f"image_shape has {counted(len(image), 'element')}, expected {rank}, as block_shape has")
    strides, dilations = strides_and_dilations(node, rank)
    pads = node.integers("pads", 2 * rank, 0)
    channels = _channels(node, x.shape[1], product(window))
    rows = zip(image, pads[:rank], pads[rank:], dilated_sizes(window, dilations), strides, strict=True)
    window_counts = [(size + front + back - span) // stride + 1 for size, front, back, span, stride in rows]
    windows = x.reshape(x.shape[0], channels, *window, *window_counts)
    shape = node.shape([x.shape[0], channels, *image])
    return windows.apply(ops.col2im, shape, strides=strides, pads=pads[:rank], dilations=dilations).expr


def _channels(node: OnnxNode, rows: AnyDim, block: AnyDim) -> AnyDim:
    """Return the number of channels of a Col2Im, which is rows / block.

    If this number is only known at run time, the reshape that uses it checks that `rows` is divisible by `block`.

    rows: the size of axis 1 of the input.   block: the number of elements in a window.
    """
    channels = exact_quotient(rows, block)
    if channels is None and isinstance(rows, int) and isinstance(block, int):
        raise RelvmShapeError(f"the number of rows, {rows}, must be a multiple of the block size, {block}")
    if channels is None:
        above, below = dims_as_tensor(node, [rows]), dims_as_tensor(node, [block])
        (channels,) = run_time_sizes(above / below.apply(ops.maximum, 1))
    return channels
