"""Convolution over the spatial axes of (batch, channel, spatial...) tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from relvm.data_classes import value_record
from relvm.errors import RelvmArgumentError, RelvmShapeError
from relvm.ir.dtypes import I64
from relvm.ir.loop_ir import Address, Buffer, Literal, Scalar, as_scalar, constant_value, maximum, minimum, select
from relvm.ir.operator import expect, op
from relvm.ir.symbolic import AnyDim, exact_quotient, known_size, product
from relvm.ir.type_rules import expect_equal_dims, expect_numeric, expect_same_dtype
from relvm.ir.types import TensorType
from relvm.kernels.conv.depthwise import (
    can_write_few_filters,
    can_write_planes,
    column_order,
    write_few_filters,
    write_planes,
)
from relvm.kernels.conv.depthwise_rows import can_write_depthwise_rows, write_depthwise_rows
from relvm.kernels.conv.direct import convolve_directly
from relvm.kernels.conv.plan import direct_shape_if_faster, is_flat, wastes_vectors
from relvm.kernels.conv.sliding_window import (
    Window,
    for_each_tap,
    numpy_windows,
    output_dims,
    over_two_axes,
    valid_range,
    window_arguments,
    window_of,
)
from relvm.kernels.epilogue import Epilogue
from relvm.kernels.flop_count import window_operations
from relvm.kernels.gemm.gemm import (
    ROWS,
    Counters,
    Lhs,
    PackOnTheFly,
    clear_padding_columns,
    copy_run,
    gemm,
    pack_from_row_major,
    run_time_panel_width,
)
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import Contraction, flat_position, parallel_loop_nest
from relvm.kernels.plain_loops import convolve_plainly

Shape = tuple[AnyDim, ...]
Numbers = tuple[int, ...] | None

_STRIP = 128  # output positions computed at a time
_MOST_STEPS = 1 << 30  # limit on strides, pads and dilations in micro-kernels (csrc/kernels/micro_kernels.c)


def convolve_windows(k: KernelBuilder, inputs, result: Epilogue, *, strides, pads, dilations, groups: int) -> None:
    """Generate the kernel of `conv`.

    If no other algorithm is faster or needs less code or memory, it is a matrix product of weights and windows for each
    image and group, with one window for each output position.  If the positions of an image would leave columns of
    panels unused, there is one product for each group, whose columns are the positions of all images.
    """
    x, w = inputs
    window = window_of("conv", w.shape[2:], strides, pads, dilations)
    (x, w), result, window = drop_unit_axes((x, w), result, window)
    in_planes = w.shape[0] == groups and can_write_planes(x, w, window, result.shape[2:])
    write = None
    if isinstance(w.shape[0], int):
        write = _without_product(x, w, window, w.shape[0] // groups, groups)
    in_rows = not in_planes and w.shape[0] == groups and can_write_depthwise_rows(x, w, window)
    in_columns = in_planes or in_rows or write is write_few_filters
    if k.is_small or (k.is_compact and in_columns):  # the other kernels have blocks of 64 kB and more on the stack
        # A single window with constant weights is a matrix product elsewhere (is_window_product_faster).
        is_product = groups == 1 and all(dim == 1 for dim in result.shape[2:])
        order = column_order(window) if in_columns and len(window.sizes) == 2 and not is_product else (None,)
        convolve_plainly(k, x, w, result, window, groups, x.flat, order, is_fused=write is not _conv_rows)
        return
    if in_planes:
        write_planes(k, x, w, result, window)
        return
    if in_rows:
        write_depthwise_rows(k, x, w, result, window)
        return
    if write is not None:
        write(k, x, w, result, window, w.shape[0] // groups)
        return
    indices = product(result.shape[2:])
    in_lines = x.shape[0] != 1 and wastes_vectors(indices) and _is_plane_of_floats(x, window)
    known = exact_quotient(w.shape[0], groups)
    if known is not None and _is_plane_of_floats(x, window) and not k.is_compact:
        dims = result.shape[2:]
        shape = direct_shape_if_faster(x.shape[0], w.shape[1], known, dims, window, shares_panels=in_lines)
        if shape is not None:
            convolve_directly(k, x, w, result, shape, known_size(known), groups)
            return
    filters = k.size((w.shape[0],)) / groups if known is None else k.size((known,))
    depth, area = product(w.shape[1:]), product(x.shape[2:])
    sizes = (filters, k.size((x.shape[0] * indices if in_lines else indices,)), k.size((depth,)))
    width = run_time_panel_width(k, constant_value(sizes[1]) if in_lines else indices)

    def operands(place: tuple[Scalar, ...]) -> tuple[Lhs, PackOnTheFly, Counters]:
        *images, group = place
        at_w = k.let("at_w", group * filters * k.size((depth,)))
        first = images[0] * groups + group if images else group
        at_x = k.let("at_x", first * k.size((w.shape[1], area)))
        if window.is_pointwise() and not in_lines:
            right = pack_from_row_major(k, x, at_x, k.size((area,)))
        else:
            right = im2col(k, x, at_x, result.shape, window)

        def counters(i: Scalar, *column: Scalar) -> tuple[Scalar, ...]:
            image, position = (*images, *column)
            return image, group * filters + i, position

        return Lhs(w, at_w, k.size((depth,)), Literal(1, I64)), right, counters

    batch = (groups,) if in_lines else (x.shape[0], groups)
    gemm(k, batch, sizes, width, result, operands, known_size(indices) if in_lines else None)


def _without_product(x: Buffer, w: Buffer, window: Window, filters: int, groups: int) -> Callable[..., None] | None:
    """Return the function that generates a convolution without a matrix product, or None if a product is faster.

    A product copies each input element once for each window position.  With few filters that takes longer than the
    product itself, and the tiles of the product are not full.  The conditions are from measurements
    (benchmarks/README.md, "Convolutions").

    filters: the number of filters per group.
    """
    is_few = filters < ROWS
    if (is_few or is_flat(w.shape[1], window)) and not window.is_pointwise() and can_write_few_filters(x, w, window):
        return write_few_filters
    return _conv_rows if is_few and groups > 1 else None


def _is_plane_of_floats(x: Buffer, window: Window) -> bool:
    """Return whether the micro-kernels for windows of one or two axes accept the arguments."""
    return (
        x.dtype.name == "f32"
        and len(window.sizes) <= 2
        and max((*window.strides, *window.pads, *window.dilations)) < _MOST_STEPS
    )


def drop_unit_axes(
    buffers: tuple[Buffer, ...], result: Epilogue, window: Window
) -> tuple[tuple[Buffer, ...], Epilogue, Window]:
    """Return `buffers`, `result` and `window` without spatial axes of size 1, except that one spatial axis always
    remains.

    An axis is removed only if the window has size 1 and no padding along it.  Loops along such axes are inefficient,
    because they have only one iteration.

    buffers: the input, then other buffers with as many spatial axes, such as the weights.
    """
    rank, (_, _, *dims) = len(window.sizes), buffers[0].shape
    points = [dims[n] == 1 and window.sizes[n] == 1 and not any(window.pads[n::rank]) for n in range(rank)]
    kept = [n for n in range(rank) if not points[n]] or [rank - 1]

    def shape(dims: Shape) -> Shape:
        return (*dims[:2], *(dims[2 + n] for n in kept))

    pads = (*(window.pads[n] for n in kept), *(window.pads[rank + n] for n in kept))
    sizes = tuple(window.sizes[n] for n in kept)
    strides, dilations = (tuple(given[n] for n in kept) for given in (window.strides, window.dilations))
    small = tuple(replace(buffer, shape=shape(buffer.shape)) for buffer in buffers)
    return small, replace(result, shape=shape(result.shape)), Window(sizes, strides, pads, dilations)


def im2col(
    k: KernelBuilder,
    x: Buffer,
    start: Scalar,
    shape: tuple[AnyDim, ...],
    window: Window,
    padding: int | Scalar = 0,
) -> PackOnTheFly:
    """Return the im2col matrix of a group of channels, as the right operand of a matrix product.

    The matrix has a row for each channel and window position, and a column for each output position.  If `padding` is 0
    and `_is_plane_of_floats`, the columns may be the positions of several images.

    start: the flat position in x of the first channel of the first image.
    shape: the shape of the convolution's result.
    padding: the value of padding elements.
    """
    taps, area = k.size(window.sizes), k.size(x.shape[2:])

    def fill_plane(panel: Buffer, first: Scalar, span: Scalar, column: Scalar, count: Scalar, pitch: Scalar) -> None:
        flat = over_two_axes(window)
        dims, lines = ((1, *given)[-2:] for given in (x.shape[2:], shape[2:]))
        k.invoke(
            "rvm_window_panel_f32",
            panel=Address(panel, Literal(0, I64)),
            panel_stride=pitch,
            x=Address(x, start),
            height=dims[0],
            width=dims[1],
            image_stride=k.size(x.shape[1:]),
            out_height=lines[0],
            out_width=lines[1],
            column=column,
            columns=count,
            row=first,
            rows=span,
            **window_arguments(flat),
        )

    def fill(panel: Buffer, first: Scalar, span: Scalar, column: Scalar, count: Scalar, pitch: Scalar) -> None:
        with k.loop(taps, name="tap") as tap:
            begin = k.let("begin", (first - tap + (taps - 1)) / taps)
            end = k.let("end", (first + span - tap + (taps - 1)) / taps)

            def copy(run: ColumnRun) -> None:
                with k.loop(end, start=begin, name="channel") as channel:
                    to = k.let("to", (channel * taps + tap - first) * pitch)
                    source = k.let("source", start + channel * area + run.source)
                    pad_run(k, panel, to, run, padding)
                    if window.strides[-1] == 1:
                        copy_run(k, panel, to, x, source, run.first, run.end)
                    else:
                        with k.loop(run.end, start=run.first, name="j", simd=True) as j:
                            k.store(panel, (to + j,), x.flat(source + j * window.strides[-1]))

            with k.branch(begin < end):  # a panel with few rows can lack channels at some positions
                generate_runs(k, x.shape[2:], shape[2:], window, tap, column, count, copy)
        clear_padding_columns(k, panel, span, count, pitch)

    return PackOnTheFly(fill_plane if padding == 0 and _is_plane_of_floats(x, window) else fill)


@value_record
class ColumnRun:
    """A run of columns [low, high) of an im2col panel, for one window position.

    The columns are consecutive output positions on one line of the output.  Columns [first, end) read the input: column
    j reads position `source + j * stride` of the input channel.  The other columns are padding.
    """

    low: Scalar
    first: Scalar
    end: Scalar
    high: Scalar
    source: Scalar


def pad_run(k: KernelBuilder, panel: Buffer, start_at: Scalar, run: ColumnRun, padding: int | Scalar) -> None:
    """Generate code that stores the value `padding` in the columns of `run` that lie outside of the input.

    start_at: column j of the run is stored at position `start_at + j` of the panel.
    """
    for start, stop in ((run.low, run.first), (run.end, run.high)):
        with k.loop(stop, start=start, name="j", simd=True) as j:
            k.store(panel, (start_at + j,), padding)


def generate_runs(
    k: KernelBuilder,
    dims: Shape,
    indices: Shape,
    window: Window,
    row: Scalar,
    column: Scalar,
    count: Scalar,
    body: Callable[[ColumnRun], None],
) -> None:
    """Generate code for `count` columns of an im2col panel, by calling `body` with each run of columns.

    A column is an output position, numbered in row-major order.  A run consists of the columns on one line of the
    output.

    column: the first column.
    dims, indices: the spatial dimensions of the input and of the output.
    row: the index of a channel and a window position, in row-major order.
    """
    rank = len(window.sizes)
    extents, sizes = ([as_scalar(dim, I64) for dim in given] for given in (dims, window.sizes))
    lines, wide = [as_scalar(dim, I64) for dim in indices[:-1]], as_scalar(indices[-1], I64)
    begin = k.let("begin", column / wide)
    end = k.let("end", (column + count - 1) / wide + 1)
    channel = k.variable("rest", row)
    offsets: list[Scalar] = []
    for axis in reversed(range(rank)):
        offset = channel % sizes[axis] * window.dilations[axis] - window.pads[axis]
        offsets.insert(0, k.let("offset", offset))
        k.assign(channel, channel / sizes[axis])
    with k.loop(end, start=begin, name="line") as line:
        low = k.let("low", maximum(line * wide - column, 0))
        high = k.let("high", minimum((line + 1) * wide - column, count))
        inside: Scalar | None = None
        position: Scalar = channel
        for axis, place in enumerate(_line_indices(k, line, lines)):
            at = k.let("at", place * window.strides[axis] + offsets[axis])
            within = (at >= 0).logical_and(at < extents[axis])
            inside = within if inside is None else inside.logical_and(within)
            position = position * extents[axis] + at
        source = k.let("source", position * extents[-1])
        shift = k.let("shift", (column - line * wide) * window.strides[-1] + offsets[-1])
        first_in, end_in = low, high
        if any(window.pads) or inside is not None:
            before, behind = valid_range(extents[-1], high, window.strides[-1], shift)
            if inside is not None:
                behind = select(inside, behind, low)
            first_in = k.let("first_in", minimum(k.let("from", maximum(before, low)), high))
            end_in = k.let("end_in", maximum(k.let("to", behind), first_in))
        body(ColumnRun(low, first_in, end_in, high, source + shift))


def _line_indices(k: KernelBuilder, line: Scalar, sizes: list[Scalar]) -> list[Scalar]:
    """Return the indices of a line of the output along all spatial axes except the last.

    A line runs along the last spatial axis.

    line: the index of the line, in row-major order.
    sizes: the sizes of all spatial axes except the last.
    """
    rest: Scalar = line
    indices: list[Scalar] = []
    for size in reversed(sizes[1:]):
        indices.insert(0, k.let("place", rest % size))
        rest = k.let("rest", rest / size)
    return [rest, *indices] if sizes else []


def _conv_rows(k: KernelBuilder, x: Buffer, w: Buffer, result: Epilogue, window: Window, filters: int) -> None:
    """Generate the kernel of `conv` for groups with few filters.

    The kernel computes a strip of _STRIP positions of an output row at a time.  For each weight, it adds the product of
    the weight and the input elements to the whole strip.

    filters: the number of filters per group.
    """
    dims, indices = x.shape[2:], result.shape[2:]
    channels, taps, area, wide = k.size(w.shape[1:2]), k.size(w.shape[2:]), k.size(dims), k.size(indices[-1:])
    each = k.size(indices) * channels * taps
    with (
        parallel_loop_nest(k, result.shape[:-1], each) as (image, filter_, *row),
        k.loop((wide + (_STRIP - 1)) / _STRIP) as part,
    ):
        strip = k.allocate("strip", result.dtype, (_STRIP,))
        start = k.let("start", part * _STRIP)
        count = k.let("count", minimum(wide - start, _STRIP))
        with k.loop(count, name="o", simd=True) as o:
            k.store(strip, (o,), 0)
        with k.loop(channels, name="channel") as channel:
            at_w = k.let("at_w", (filter_ * channels + channel) * taps)
            at_x = k.let("at_x", (image * k.size(x.shape[1:2]) + filter_ / filters * channels + channel) * area)

            def add(tap: Scalar, source: Scalar, first: Scalar, stop: Scalar) -> None:
                factor = k.let("factor", w.flat(at_w + tap))
                source = k.let("source", at_x + source + start * window.strides[-1])
                low, high = maximum(first - start, 0), minimum(stop - start, count)
                with k.loop(high, start=k.let("low", low), name="o", simd=True) as o:
                    k.store(strip, (o,), strip[o] + factor * x.flat(source + o * window.strides[-1]))

            for_each_tap(k, window, dims, indices, row, add)
        with k.loop(count, name="o", simd=True) as o:
            place = flat_position((*row, start + o), indices)
            result.store(k, (image, filter_, place), strip[o])


def loop_axes(*shapes: Shape, **attributes) -> tuple[tuple[int, ...], ...]:
    """Return the axes of the three loops over the result: images, filters, output positions.

    shapes: the shapes of the inputs, then the shape of the result.
    """
    return (0,), (1,), tuple(range(2, len(shapes[-1])))


def numpy_conv(x: np.ndarray, w: np.ndarray, *, strides, pads, dilations, groups: int) -> np.ndarray:
    views = numpy_windows(x, window_of("conv", w.shape[2:], strides, pads, dilations), 0)
    spatial = x.ndim - 2
    filters, channels = w.shape[0] // groups, w.shape[1]
    parts = []
    for group in range(groups):
        seen = views[:, group * channels : (group + 1) * channels]
        weights = w[group * filters : (group + 1) * filters]
        axes = ([1, *range(2 + spatial, 2 + 2 * spatial)], list(range(1, 2 + spatial)))
        parts.append(np.moveaxis(np.tensordot(seen, weights, axes), -1, 1))
    return np.concatenate(parts, axis=1)


def check_convolution(
    name: str, x: TensorType, w: TensorType, strides: Numbers, pads: Numbers, dilations: Numbers, groups: int
) -> tuple[Shape | None, int | None]:
    """Check the arguments of a convolution, and return the shape and the rank of its result.

    Each of the two is None if it is unknown.

    name: the operator, for messages.
    """
    positive = isinstance(groups, int) and groups >= 1
    expect(positive, "{}: groups is {!r}, expected an integer of at least 1", name, groups, error=RelvmArgumentError)
    for parameter, type_ in (("x", x), ("w", w)):
        message = "{}: {} has rank {}, expected at least 3"
        expect(type_.rank is None or type_.rank >= 3, message, name, parameter, type_.rank)
    same = None in (x.rank, w.rank) or x.rank == w.rank
    expect(same, "{}: x has rank {}, but w has rank {}", name, x.rank, w.rank)
    if x.shape is None or w.shape is None:
        return None, w.rank if x.rank is None else x.rank
    what = f"channels of x and channels of w times {groups} groups differ"
    expect_equal_dims(name, what, x.shape[1], w.shape[1] * groups)
    divides = exact_quotient(w.shape[0], groups) is not None
    expect(divides, "{}: {} filters cannot be divided into {} groups", name, w.shape[0], groups, error=RelvmShapeError)
    window = window_of(name, w.shape[2:], strides, pads, dilations)
    return (x.shape[0], w.shape[0], *output_dims(name, x.shape[2:], window)), x.rank


@op("conv", numpy=numpy_conv, lower=Contraction(convolve_windows, loop_axes, window_operations))
def conv(
    x: TensorType,
    w: TensorType,
    *,
    strides: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    dilations: tuple[int, ...] | None = None,
    groups: int = 1,
) -> TensorType:
    """Cross-correlation over any number of spatial axes.  The input is padded with zeros.

    x: a tensor of shape (batch, channels, spatial...) and of an integer or float dtype.
    w: a tensor of shape (filters, channels / groups, window...) and of the same dtype.
    strides, dilations: one number >= 1 for each spatial axis, or None for 1.
    pads: the padding (>= 0) before each spatial axis, then after each spatial axis, or None for 0.
    groups: the number of groups into which channels and filters are divided.  Group g of the filters reads group g of
    the channels.
    Result: a tensor of shape (batch, filters, spatial...).  A spatial axis of size n gets the size (n + p - (window -
    1) * dilation - 1) // stride + 1, where p is the sum of its two pads.
    Raises RelvmTypeError if an argument has another dtype or rank.  Raises RelvmArgumentError if an attribute has the
    wrong length or an invalid value.  Raises RelvmShapeError if the numbers of channels are not provably equal, the
    filters cannot be divided into the groups, or the window is larger than the padded input.
    Source: ONNX Conv-22.

    Examples:

        >>> run("conv(x, w, pads=(1, 1))", x=[[[1.0, 2.0, 3.0, 4.0]]], w=[[[1.0, 0.0, -1.0]]])
        [[[-2. -2. -2.  3.]]]
    """
    expect_numeric("conv", x=x, w=w)
    expect_same_dtype("conv", x=x, w=w)
    return TensorType(x.dtype, *check_convolution("conv", x, w, strides, pads, dilations, groups))
