"""Pooling: the maximum or mean of each window over the spatial axes of (batch, channel, spatial...) tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relvm.errors import RelvmArgumentError
from relvm.ir.dtypes import BOOL, F32, I64, dtype_of
from relvm.ir.loop_ir import Address, Buffer, Literal, Scalar, as_scalar, maximum, minimum, select
from relvm.ir.operator import expect, op
from relvm.ir.symbolic import AnyDim, known_size, product
from relvm.ir.type_rules import expect_float, expect_integers, expect_numeric, with_dtype
from relvm.ir.types import TensorType
from relvm.kernels.conv.sliding_window import (
    Ints,
    Window,
    for_each_row,
    for_each_tap,
    numpy_windows,
    output_dims,
    over_two_axes,
    valid_range,
    window_arguments,
    window_of,
)
from relvm.kernels.flop_count import pooling_operations
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import CustomKernel, flat_position, loop_nest, parallel_loop_nest
from relvm.kernels.plain_loops import pool_plainly
from relvm.tables import kernel_constant

_LINE = kernel_constant("POOL_LINE")
_STRIP, _MAX_ELEMENTS = 128, 2048  # output positions and input elements that are processed at a time, at most


def _pool(
    k: KernelBuilder, x: Buffer, out: Buffer, window: Window, start: float, combine: Callable, finish: Callable | None
) -> None:
    """Generate a pooling kernel, row by row of the result.

    start: the value with which each window starts.
    combine: a function that combines two values of a window.
    finish: None, or a function finish(k, row) that returns another function, convert(position, value).  This function
    converts `value`, the combined elements of a window, to an element of the result.  `position` is the index of the
    element along the last axis, or None if the window has no padding along that axis.
    """
    indices = out.shape[2:]
    planes: AnyDim = product(out.shape[:2])
    deeper = indices[1:] if len(indices) > 1 else indices
    write = _write_line if (known_size(window.sizes[-1]) - 1) * window.dilations[-1] < _STRIP else _write_row
    with parallel_loop_nest(k, [planes, *indices[:-1]], k.size((*deeper, *window.sizes))) as (plane, *row):
        target = k.let("target", flat_position((plane, *row, Literal(0, I64)), (planes, *indices)))
        write(k, x, out, window, start, combine, finish and finish(k, row), plane, row, target)


def _write_line(k, x: Buffer, out: Buffer, window: Window, start, combine, finish, plane, row, target) -> None:
    """Generate a row of the result, one strip of positions at a time, each in two passes.

    The first pass combines the input rows that the windows cover, elementwise, into a single line.  For each output
    position, the second pass combines the elements of this line that are in the window of the position.

    start: the value with which each window starts.
    combine: a function that combines two values of a window.
    finish: a function finish(position, value) that converts the combined elements of a window to an element of the
    result, or None if there is nothing to convert.  `position` is the index of the result in its row, or None if the
    window has no padding along the last axis.
    plane, row: the indices of the output row.
    target: the flat position of the row in `out`.
    """
    dims, indices = x.shape[2:], out.shape[2:]
    size, stride, dilation = known_size(window.sizes[-1]), window.strides[-1], window.dilations[-1]
    pad = window.pads[len(dims) - 1]
    strip = max(1, min(_STRIP, _MAX_ELEMENTS // stride))
    if isinstance(indices[-1], int):
        strip = max(1, min(strip, indices[-1]))
    reach = (strip - 1) * stride + (size - 1) * dilation + 1
    wide, across = as_scalar(dims[-1], I64), as_scalar(indices[-1], I64)
    line = k.allocate("line", x.dtype, (reach,))
    with k.loop((across + (strip - 1)) / strip, name="part") as part:
        at = k.let("at", part * strip)
        count = k.let("count", minimum(across - at, strip))
        shift = k.let("shift", at * stride - pad)
        low = k.let("low", minimum(maximum(-shift, 0), reach))
        high = k.let("high", maximum(minimum(wide - shift, reach), low))
        with k.loop(reach, name="i", simd=True) as i:
            k.store(line, (i,), start)

        def bring(tap: Scalar, source: Scalar) -> None:
            begin = k.let("begin", plane * k.size(dims) + source * wide + shift)
            with k.loop(high, start=low, name="i", simd=True) as i:
                k.store(line, (i,), combine(line[i], x.flat(begin + i)))

        for_each_row(k, window, dims, row, bring)

        def write(start: Scalar, stop: Scalar, is_inside: bool) -> None:
            with k.loop(stop, start=start, name="o", simd=True) as o:
                total: Scalar = k.let("total", line[o * stride])
                for tap in range(1, size):
                    total = k.let("total", combine(total, line[o * stride + tap * dilation]))
                place = None if is_inside else at + o
                k.store(out, (target + at + o,), finish(place, total) if finish else total)

        if finish is None or not any(window.pads[len(dims) - 1 :: len(dims)]):
            write(Literal(0, I64), count, is_inside=True)
            return
        first, _ = valid_range(wide, across, stride, Literal(-pad, I64))
        _, end = valid_range(wide, across, stride, Literal((size - 1) * dilation - pad, I64))
        begin = k.let("begin", minimum(maximum(first - at, 0), count))
        stop = k.let("stop", maximum(minimum(end - at, count), begin))
        write(Literal(0, I64), begin, is_inside=False)
        write(begin, stop, is_inside=True)
        write(stop, count, is_inside=False)


def _write_row(k, x: Buffer, out: Buffer, window: Window, start, combine, finish, plane, row, target) -> None:
    """Generate a row of the result, for windows that are wide along the last axis.

    The outer loop runs over the positions in a window, and the inner loop over all windows of the row.

    start: the value with which each window starts.
    combine: a function that combines two values of a window.
    finish: a function finish(position, value) that converts the combined elements of a window to an element of the
    result, or None if there is nothing to convert.  `position` is the index of the result in its row.
    plane, row: the indices of the output row.
    target: the flat position of the row in `out`.
    """
    dims, indices = x.shape[2:], out.shape[2:]
    with k.loop(indices[-1], name="o", simd=True) as o:
        k.store(out, (target + o,), start)

    def take(tap: Scalar, source: Scalar, first: Scalar, stop: Scalar) -> None:
        source = k.let("source", plane * k.size(dims) + source)
        with k.loop(stop, start=first, name="o", simd=True) as o:
            element = x.flat(source + o * window.strides[-1])
            k.store(out, (target + o,), combine(out.flat(target + o), element))

    for_each_tap(k, window, dims, indices, row, take)
    if finish:
        with k.loop(indices[-1], name="o", simd=True) as o:
            k.store(out, (target + o,), finish(o, out.flat(target + o)))


def _max_pool(k: KernelBuilder, inputs, outputs, *, kernel, strides, pads, dilations) -> None:
    (x,), (out,) = inputs, outputs

    def larger_or_nan(total: Scalar, element: Scalar) -> Scalar:
        return select((element > total).logical_or(element.ne(element)), element, total)

    window = window_of("max_pool", kernel, strides, pads, dilations)
    if k.is_small:
        pool_plainly(k, x, out, window, x.dtype.lowest, larger_or_nan)
    elif _suits_planes(x, window):
        _pool_planes(k, "rvm_max_pool_f32", x, out, over_two_axes(window))
    else:
        _pool(k, x, out, window, x.dtype.lowest, larger_or_nan, None)


def _suits_planes(x: Buffer, window: Window) -> bool:
    """Return whether a function in csrc/codegen/pooling.h can pool x: f32 with one or two axes, and not too wide."""
    if x.dtype is not F32 or len(window.sizes) > 2:
        return False
    return (known_size(window.sizes[-1]) - 1) * over_two_axes(window).dilations[1] < _LINE


def _pool_planes(k: KernelBuilder, function: str, x: Buffer, out: Buffer, window: Window, **arguments: Scalar) -> None:
    """Generate a pooling kernel that calls a function in csrc/codegen/pooling.h.

    window: the window, with two spatial axes.   arguments: the arguments that only this function has.
    """
    high, wide = ([1] * (4 - len(x.shape)) + [*x.shape[2:]])[-2:]
    rows, columns = ([1] * (4 - len(out.shape)) + [*out.shape[2:]])[-2:]
    planes, work = k.size(out.shape[:2]), k.size((rows, columns, *window.sizes))
    with k.parallel(planes, work) as (first, last):
        k.invoke(
            function,
            out=Address(out, first * k.size((rows, columns))),
            x=Address(x, first * k.size((high, wide))),
            planes=last - first,
            height=high,
            width=wide,
            out_height=rows,
            out_width=columns,
            **window_arguments(window),
            **arguments,
        )


def _average_pool(
    k: KernelBuilder, inputs, outputs, *, kernel, strides, pads, dilations, count_include_pad: bool
) -> None:
    (x,), (out,) = inputs, outputs
    window = window_of("average_pool", kernel, strides, pads, dilations)
    if _suits_planes(x, window) and not k.is_small:
        counts_padding = Literal(int(count_include_pad), I64)
        _pool_planes(k, "rvm_average_pool_f32", x, out, over_two_axes(window), counts_padding=counts_padding)
        return

    def mean(k: KernelBuilder, row: list[Scalar]) -> Callable[[Scalar, Scalar], Scalar]:
        if count_include_pad:
            return lambda place, total: total / as_scalar(product(window.sizes), out.dtype)
        rows = k.variable("rows", Literal(1, I64))
        for axis, place in enumerate(row):
            k.assign(rows, rows * _count_inside(x, window, axis, place))
        every = k.let("every", (rows * window.sizes[-1]).to(out.dtype))

        def finish(place: Scalar | None, total: Scalar) -> Scalar:
            if place is None:
                return total / every
            return total / (rows * _count_inside(x, window, len(row), place)).to(out.dtype)

        return finish

    _pool(k, x, out, window, 0, lambda total, element: total + element, mean)


def _count_inside(x: Buffer, window: Window, axis: int, position: Scalar) -> Scalar:
    """Return the number of window elements along `axis` that are inside the input, for the output position
    `position`."""
    size, taps = as_scalar(x.shape[2 + axis], I64), as_scalar(window.sizes[axis], I64)
    corner = position * window.strides[axis] - window.pads[axis]
    first, last = valid_range(size, taps, window.dilations[axis], corner)
    return maximum(last - first, 0)


def _pooled_type(name: str, x: TensorType, kernel: Any, strides: Ints, pads: Ints, dilations: Ints) -> TensorType:
    expect_numeric(name, x=x)
    expect(x.rank is None or x.rank >= 3, "{}: x has rank {}, expected at least 3", name, x.rank)
    kernel = expect_integers(name, "kernel", kernel, None if x.rank is None else x.rank - 2)
    positive = all(size >= 1 for size in kernel)
    expect(positive, "{}: kernel is {}, expected sizes of at least 1", name, kernel, error=RelvmArgumentError)
    window = window_of(name, kernel, strides, pads, dilations)
    if x.shape is None:
        return TensorType(x.dtype, None, 2 + len(kernel))
    return TensorType(x.dtype, (*x.shape[:2], *output_dims(name, x.shape[2:], window)))


def _axes_of(window: Window) -> tuple[int, ...]:
    return tuple(range(-len(window.sizes), 0))


def _numpy_max_pool(x: np.ndarray, *, kernel, strides, pads, dilations) -> np.ndarray:
    window = window_of("max_pool", kernel, strides, pads, dilations)
    return np.max(numpy_windows(x, window, dtype_of(x.dtype).lowest), axis=_axes_of(window))


@op("max_pool", numpy=_numpy_max_pool, lower=CustomKernel(_max_pool, pooling_operations))
def max_pool(
    x: TensorType,
    *,
    kernel: tuple[int, ...],
    strides: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    dilations: tuple[int, ...] | None = None,
) -> TensorType:
    """The largest element in each window; NaN if the window contains a NaN.  For a window that covers only padding, the
    result is the smallest value of the dtype (-inf for floats).

    x: a tensor of shape (batch, channels, spatial...) and of an integer or float dtype.
    kernel: the size (>= 1) of the window along each spatial axis.
    strides, dilations: one number >= 1 for each spatial axis, or None for 1.
    pads: the padding (>= 0) before each spatial axis, then after each spatial axis, or None for 0.
    Result: a tensor of shape (batch, channels, spatial...).  A spatial axis of size n gets the size (n + p - (kernel -
    1) * dilation - 1) // stride + 1, where p is the sum of its two pads.
    Raises RelvmTypeError if x has dtype bool or a rank below 3.  Raises RelvmArgumentError if an attribute has the
    wrong length or an invalid value.  Raises RelvmShapeError if the window is larger than the padded input.
    Source: ONNX MaxPool-22 (ceil_mode 0); NaN: NumPy.

    Examples:

        >>> run("max_pool(x, kernel=(2,), strides=(2,))", x=[[[1.0, 4.0, 2.0, 3.0]]])
        [[[4. 3.]]]
    """
    return _pooled_type("max_pool", x, kernel, strides, pads, dilations)


def _numpy_average_pool(x: np.ndarray, *, kernel, strides, pads, dilations, count_include_pad: bool) -> np.ndarray:
    window = window_of("average_pool", kernel, strides, pads, dilations)
    axes = _axes_of(window)
    total = np.sum(numpy_windows(x, window, 0), axis=axes)
    if count_include_pad:
        return total / np.asarray(np.prod(kernel), x.dtype)
    return total / np.sum(numpy_windows(np.ones_like(x), window, 0), axis=axes)


def _average_operations(*shapes: tuple[AnyDim, ...], **attributes) -> AnyDim:
    return pooling_operations(*shapes, **attributes) + product(shapes[-1])


@op("average_pool", numpy=_numpy_average_pool, lower=CustomKernel(_average_pool, _average_operations))
def average_pool(
    x: TensorType,
    *,
    kernel: tuple[int, ...],
    strides: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    dilations: tuple[int, ...] | None = None,
    count_include_pad: bool = False,
) -> TensorType:
    """The mean of each window.

    x: a tensor of shape (batch, channels, spatial...) and of a float dtype.
    kernel: the size (>= 1) of the window along each spatial axis.
    strides, dilations: one number >= 1 for each spatial axis, or None for 1.
    pads: the padding (>= 0) before each spatial axis, then after each spatial axis, or None for 0.
    count_include_pad: whether padding counts as zeros.  If not, padding is ignored, and the mean of a window that
    covers only padding is NaN.
    Result: a tensor of shape (batch, channels, spatial...).  A spatial axis of size n gets the size (n + p - (kernel -
    1) * dilation - 1) // stride + 1, where p is the sum of its two pads.
    Raises RelvmTypeError if x has another dtype or a rank below 3.  Raises RelvmArgumentError if an attribute has the
    wrong length or an invalid value.  Raises RelvmShapeError if the window is larger than the padded input.
    Source: ONNX AveragePool-22 (ceil_mode 0).

    Examples:

        >>> run("average_pool(x, kernel=(2,), strides=(2,))", x=[[[1.0, 4.0, 2.0, 3.0]]])
        [[[2.5 2.5]]]
    """
    expect_float("average_pool", x=x)
    given = isinstance(count_include_pad, bool)
    message = "average_pool: count_include_pad is {!r}, expected a bool"
    expect(given, message, count_include_pad, error=RelvmArgumentError)
    return _pooled_type("average_pool", x, kernel, strides, pads, dilations)


def _plane_positions(dims: tuple[int, ...], column_major: bool) -> np.ndarray:
    count = np.arange(np.prod(dims), dtype=np.int64)
    return count.reshape(dims[::-1]).T if column_major else count.reshape(dims)


def _numpy_max_pool_indices(x: np.ndarray, *, kernel, strides, pads, dilations, column_major: bool) -> np.ndarray:
    window = window_of("max_pool_indices", kernel, strides, pads, dilations)
    planes, area = np.arange(x.shape[0] * x.shape[1]), int(np.prod(x.shape[2:]))
    numbers = planes.reshape(*x.shape[:2], *[1] * len(kernel)) * area + _plane_positions(x.shape[2:], column_major)
    views = [numpy_windows(a, window, fill) for a, fill in ((x, dtype_of(x.dtype).lowest), (numbers, -1))]
    values, indices = (view.reshape(*view.shape[: x.ndim], int(np.prod(kernel))) for view in views)
    largest = np.max(values, axis=-1, keepdims=True)
    wins = (indices >= 0) & ((values == largest) | (values != values))
    first = np.argmax(wins, axis=-1)[..., None]
    return np.where(wins.any(axis=-1), np.take_along_axis(indices, first, -1)[..., 0], -1)


def _max_pool_indices(
    k: KernelBuilder, inputs, outputs, *, kernel, strides, pads, dilations, column_major: bool
) -> None:
    (x,), (out,) = inputs, outputs
    window = window_of("max_pool_indices", kernel, strides, pads, dilations)
    dims = [as_scalar(dim, I64) for dim in x.shape[2:]]
    area, planes = k.size(x.shape[2:]), product(out.shape[:2])
    with loop_nest(k, [planes, *out.shape[2:]]) as (plane, *place):
        best, found = k.variable("best", Literal(x.dtype.lowest, x.dtype)), k.variable("found", Literal(-1, I64))
        with loop_nest(k, list(window.sizes)) as taps:
            inside: Scalar = Literal(True, BOOL)
            at: list[Scalar] = []
            for axis, dim in enumerate(dims):
                start = place[axis] * window.strides[axis] - window.pads[axis]
                at.append(k.let("at", start + taps[axis] * window.dilations[axis]))
                within = (at[axis] >= 0).logical_and(at[axis] < dim)
                inside = inside.logical_and(within)
            with k.branch(inside):
                element = k.let("element", x.flat(plane * area + flat_position(tuple(at), x.shape[2:])))
                wins = (element > best).logical_or(found < 0)
                if x.dtype.is_float:
                    wins = wins.logical_or(element.ne(element).logical_and(best.eq(best)))
                with k.branch(wins):
                    k.assign(best, element)
                    order = (at[::-1], x.shape[:1:-1]) if column_major else (at, x.shape[2:])
                    k.assign(found, plane * area + flat_position(tuple(order[0]), order[1]))
        k.store(out, (flat_position((plane, *place), (planes, *out.shape[2:])),), found)


@op("max_pool_indices", numpy=_numpy_max_pool_indices, lower=CustomKernel(_max_pool_indices, pooling_operations))
def max_pool_indices(
    x: TensorType,
    *,
    kernel: tuple[int, ...],
    strides: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    dilations: tuple[int, ...] | None = None,
    column_major: bool = False,
) -> TensorType:
    """For each window, the position of the element that max_pool returns, the largest.  The position is an index in x
    flattened to one axis, including the batch and channel axes.  Of several equal elements, the first counts.  If a
    window contains NaNs, the position is that of the first NaN.  If it covers only padding, the position is -1.

    x: a tensor of shape (batch, channels, spatial...) and of an integer or float dtype.
    kernel: the size (>= 1) of the window along each spatial axis.
    strides, dilations: one number >= 1 for each spatial axis, or None for 1.
    pads: the padding (>= 0) before each spatial axis, then after each spatial axis, or None for 0.
    column_major: whether the elements of each channel are flattened in column-major order, with the first spatial axis
    fastest, instead of row-major order.
    Result: an i64 tensor of shape (batch, channels, spatial...).  A spatial axis of size n gets the size (n + p -
    (kernel - 1) * dilation - 1) // stride + 1, where p is the sum of its two pads.
    Raises RelvmTypeError if x has dtype bool or a rank below 3.  Raises RelvmArgumentError if an attribute has the
    wrong length or an invalid value.  Raises RelvmShapeError if the window is larger than the padded input.
    Source: the second output of ONNX MaxPool-22.

    Examples:

        >>> run("max_pool_indices(x, kernel=(2,), strides=(2,))", x=[[[1.0, 4.0, 2.0, 3.0]]])
        [[[1 3]]]
    """
    message = "max_pool_indices: column_major is {!r}, expected a bool"
    expect(isinstance(column_major, bool), message, column_major, error=RelvmArgumentError)
    return with_dtype(_pooled_type("max_pool_indices", x, kernel, strides, pads, dilations), I64)
