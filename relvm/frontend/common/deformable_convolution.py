"""Deformable convolution: each element of each window is moved by an offset of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import relvm.ops as ops
from relvm.ir.dtypes import DType
from relvm.ir.expr import Expr, Shape
from relvm.ir.symbolic import AnyDim, product


def deformable_convolution(
    emit: Callable[[Expr], Expr],
    x: Expr,
    filters: Expr,
    offsets: Expr,
    mask: Expr | None,
    *,
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    groups: int,
    offset_groups: int,
) -> Expr:
    """Return a convolution of images in which each element of a window is moved by an offset.

    Elements between those of x are interpolated linearly, and elements outside x are 0.

    Parameters
    ----------
    emit
        A function that binds an expression to a variable.
    x
        A tensor of shape (n, channels, height, width) and of a float dtype.
    filters
        A tensor of shape (filters, channels / groups, height, width) of known size.
    offsets
        A tensor of shape (n, offset_groups * window * 2, *out).  For each element of the window, it contains the
        offsets along the height and the width.
    mask
        None, or a tensor of shape (n, offset_groups * window, *out), by which the elements of the windows are
        multiplied.
    strides, dilations, pads
        The numbers for the height and the width.  `pads` is the padding before each axis.
    groups, offset_groups
        The numbers of groups of channels.  They divide the number of channels.

    Returns
    -------
    Expr
        A tensor of shape (n, filters, *out).

    Notes
    -----
    Source: Dai et al., Deformable Convolutional Networks, 2017; ONNX DeformConv-22.
    """
    images, channels, *sizes = x.tensor_type.known_shape
    count, _, *kernel = filters.tensor_type.known_shape
    out = offsets.tensor_type.known_shape[2:]
    assert isinstance(channels, int)
    window, places, rows = product(kernel), product(out), images * offset_groups

    def reshaped(value: Expr, *shape: AnyDim) -> Expr:
        return emit(ops.reshape(value, Shape(shape)))

    moved = emit(ops.transpose(reshaped(offsets, rows, window, 2, places), perm=(0, 1, 3, 2)))
    regular = _window_positions(emit, kernel, strides, dilations, pads, out, offsets.known_element_type)
    split = reshaped(x, rows, channels // offset_groups, *sizes)
    columns = emit(ops.grid_sample(split, emit(ops.add(moved, regular)), mode="linear"))
    if mask is not None:
        columns = emit(ops.multiply(columns, reshaped(mask, rows, 1, window, places)))
    depth = channels // groups * window
    products = ops.matmul(
        reshaped(filters, 1, groups, count // groups, depth), reshaped(columns, images, groups, depth, places)
    )
    return reshaped(emit(products), images, count, *out)


def _window_positions(
    emit: Callable[[Expr], Expr],
    kernel: Sequence[AnyDim],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    out: Sequence[AnyDim],
    dtype: DType,
) -> Expr:
    """Return the position in the input of each element of each window, before the offsets are added.

    The result has the shape (elements, windows, 2).  Its last axis contains the row and the column.

    out: the spatial dimensions of the result of the convolution.
    dtype: the dtype of the positions.
    """

    def steps(extents: Sequence[AnyDim], axis: int, step: int, start: int, shape: tuple[AnyDim, ...]) -> Expr:
        """Return `start + step * i` for the index i of each element of a grid along an axis, in another shape."""
        numbers = emit(ops.add(emit(ops.multiply(emit(ops.iota(Shape((extents[axis],)))), step)), start))
        row = emit(ops.reshape(numbers, Shape((extents[0], 1) if axis == 0 else (1, extents[1]))))
        return emit(ops.reshape(emit(ops.broadcast_to(row, Shape(tuple(extents)))), Shape(shape)))

    window, places = product(kernel), product(out)
    parts = [
        ops.add(
            steps(kernel, axis, dilations[axis], -pads[axis], (window, 1, 1)),
            steps(out, axis, strides[axis], 0, (1, places, 1)),
        )
        for axis in range(2)
    ]
    return emit(ops.cast(emit(ops.concat(*map(emit, parts), axis=2)), to=dtype.name))
