"""Products in their general forms: contractions of any axes, and convolutions in any layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

import relvm.ops as ops
from relvm.data_classes import value_record
from relvm.errors import RelvmShapeError
from relvm.frontend.common.moving import dilated
from relvm.ir.expr import Expr, Shape, constant
from relvm.ir.symbolic import AnyDim, exact_quotient, product

Emit = Callable[[Expr], Expr]


@value_record
class DotDimensions:
    """The axes of a general product, in pairs of the left and of the right operand.

    The result has the batch axes, then the other axes of the left operand, then those of the right operand.
    """

    left_batch: tuple[int, ...]
    right_batch: tuple[int, ...]
    left_contracted: tuple[int, ...]
    right_contracted: tuple[int, ...]


def dot_general(emit: Emit, x: Expr, y: Expr, dims: DotDimensions) -> Expr:
    """Return the product of two tensors of the same numeric dtype, summed over the contracted axes.

    Raises
    ------
    RelvmShapeError
        The axes do not fit the operands.

    Notes
    -----
    Source: StableHLO dot_general.
    """
    left, right = x.tensor_type.known_shape, y.tensor_type.known_shape
    for shape, batch, contracted in (
        (left, dims.left_batch, dims.left_contracted),
        (right, dims.right_batch, dims.right_contracted),
    ):
        axes = (*batch, *contracted)
        if len(set(axes)) != len(axes) or not all(0 <= axis < len(shape) for axis in axes):
            raise RelvmShapeError(f"the axes {list(axes)} do not fit an operand of rank {len(shape)}")
    if len(dims.left_batch) != len(dims.right_batch) or len(dims.left_contracted) != len(dims.right_contracted):
        raise RelvmShapeError(f"the axes of the two operands do not form pairs: {dims}")
    for one, other in zip(
        (*dims.left_batch, *dims.left_contracted), (*dims.right_batch, *dims.right_contracted), strict=True
    ):
        if isinstance(left[one], int) and isinstance(right[other], int) and left[one] != right[other]:
            raise RelvmShapeError(
                f"axis {one} has size {left[one]}, but axis {other} of the right operand {right[other]}"
            )
    rows = [axis for axis in range(len(left)) if axis not in (*dims.left_batch, *dims.left_contracted)]
    columns = [axis for axis in range(len(right)) if axis not in (*dims.right_batch, *dims.right_contracted)]
    batch_shape = [left[axis] for axis in dims.left_batch]
    inner = product([left[axis] for axis in dims.left_contracted])
    row_shape, column_shape = [left[axis] for axis in rows], [right[axis] for axis in columns]
    a = _arranged(emit, x, (*dims.left_batch, *rows, *dims.left_contracted))
    b = _arranged(emit, y, (*dims.right_batch, *dims.right_contracted, *columns))
    a = emit(ops.reshape(a, Shape((*batch_shape, product(row_shape), inner))))
    b = emit(ops.reshape(b, Shape((*batch_shape, inner, product(column_shape)))))
    result = emit(ops.matmul(a, b))
    return emit(ops.reshape(result, Shape((*batch_shape, *row_shape, *column_shape))))


def _arranged(emit: Emit, x: Expr, axes: Sequence[int]) -> Expr:
    return x if list(axes) == list(range(len(axes))) else emit(ops.transpose(x, perm=tuple(axes)))


@value_record
class ConvDimensions:
    """The layout of a convolution: for each operand and the result, the axes in the order batch, features, space.

    For the kernel, the order is output features, input features, space.
    """

    input: tuple[int, ...]
    kernel: tuple[int, ...]
    output: tuple[int, ...]


def conv_general(
    emit: Emit,
    x: Expr,
    w: Expr,
    dims: ConvDimensions,
    *,
    strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    input_dilation: Sequence[int],
    kernel_dilation: Sequence[int],
    reversed_axes: Sequence[bool],
    feature_groups: int = 1,
    batch_groups: int = 1,
) -> Expr:
    """Return a convolution of two tensors of the same numeric dtype.

    Raises
    ------
    RelvmShapeError
        The dimensions do not fit the operands.

    Notes
    -----
    Source: StableHLO convolution.
    """
    rank = len(x.tensor_type.known_shape)
    for axes in (dims.input, dims.kernel, dims.output):
        if sorted(axes) != list(range(rank)):
            raise RelvmShapeError(f"the dimension numbers {list(axes)} do not fit operands of rank {rank}")
    x, w = _arranged(emit, x, dims.input), _arranged(emit, w, dims.kernel)
    spatial = rank - 2
    backwards = tuple(2 + i for i in range(spatial) if reversed_axes[i])
    if backwards:
        count = len(backwards)
        w = emit(ops.slice(w, begin=(-1,) * count, end=(-(1 << 31),) * count, axes=backwards, steps=(-1,) * count))
    for i in range(spatial):
        x = emit(dilated(emit, x, 2 + i, input_dilation[i]))
    low, high = [pair[0] for pair in padding], [pair[1] for pair in padding]
    if any(value < 0 for value in (*low, *high)):
        cut_low, cut_high = [min(value, 0) for value in low], [min(value, 0) for value in high]
        x = emit(ops.pad(x, pads=(0, 0, *cut_low, 0, 0, *cut_high), value=0))
        low, high = [max(value, 0) for value in low], [max(value, 0) for value in high]
    if batch_groups > 1:
        x = _batch_groups_as_features(emit, x, batch_groups)
        feature_groups = batch_groups
    if any(size == 0 for size in _window_counts(x, w, low, high, strides, kernel_dilation)):
        result = emit(ops.broadcast_to(_zero(x), Shape(_empty_shape(x, w, low, high, strides, kernel_dilation))))
    elif spatial == 0:  # conv needs a spatial axis
        x, w = emit(ops.expand_dims(x, axes=(2,))), emit(ops.expand_dims(w, axes=(2,)))
        result = emit(ops.conv(x, w, groups=feature_groups))
        result = emit(ops.squeeze(result, axes=(2,)))
    else:
        result = emit(
            ops.conv(
                x,
                w,
                strides=tuple(strides),
                pads=(*low, *high),
                dilations=tuple(kernel_dilation),
                groups=feature_groups,
            )
        )
    order = [dims.output.index(axis) for axis in range(rank)]
    return _arranged(emit, result, order)


def _window_counts(
    x: Expr, w: Expr, low: Sequence[int], high: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> tuple[AnyDim, ...]:
    """Return the number of windows along each spatial axis, or 1 for an axis with a symbolic size."""
    counts: list[AnyDim] = []
    for i, (size, window) in enumerate(zip(x.tensor_type.known_shape[2:], w.tensor_type.known_shape[2:], strict=True)):
        if not isinstance(size, int) or not isinstance(window, int):
            counts.append(1)
            continue
        room = size + low[i] + high[i] - (window - 1) * dilation[i] - 1
        counts.append(0 if room < 0 or window == 0 else room // strides[i] + 1)
    return tuple(counts)


def _zero(x: Expr) -> Expr:
    return constant(np.zeros((), x.known_element_type.numpy))


def _empty_shape(
    x: Expr, w: Expr, low: Sequence[int], high: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> tuple[AnyDim, ...]:
    """Return the shape of a convolution that has no windows along an axis."""
    counts = _window_counts(x, w, low, high, strides, dilation)
    return (x.tensor_type.known_shape[0], w.tensor_type.known_shape[0], *counts)


def _batch_groups_as_features(emit: Emit, x: Expr, groups: int) -> Expr:
    """Return x with its batch divided into groups, which become groups of features."""
    batch, features, *space = x.tensor_type.known_shape
    count: AnyDim | None = exact_quotient(batch, groups)
    if count is None:
        raise RelvmShapeError(f"the batch size {batch} is not divisible by batch_group_count, {groups}")
    split = emit(ops.reshape(x, Shape((groups, count, features, *space))))
    swapped = emit(ops.transpose(split, perm=(1, 0, *range(2, len(space) + 3))))
    return emit(ops.reshape(swapped, Shape((count, features * groups, *space))))
