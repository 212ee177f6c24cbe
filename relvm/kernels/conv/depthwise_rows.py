"""Loop nest of depthwise convolutions of f32 without copies of the input.

If the stride along a row is 1, the micro-kernel reads the rows of the input in place.  If it is 2, it copies the input
rows that seven rows of sums read, with even and odd columns separated.  The kernel computes the sums of several planes,
or of several rows of one plane, at a time.  They follow each other without gaps, so that the epilogue is a single loop
over contiguous elements.
"""

from __future__ import annotations

import math

from relvm.ir.dtypes import I64
from relvm.ir.loop_ir import Address, Buffer, Literal, as_scalar, maximum, minimum
from relvm.ir.symbolic import known_size
from relvm.kernels.conv.sliding_window import Window
from relvm.kernels.epilogue import Epilogue
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.tables import kernel_constant

_ROWS, _MAX_TAPS = kernel_constant("COLUMN_ROWS"), kernel_constant("COLUMN_TAPS")
_REACH, _SLACK = kernel_constant("DEPTHWISE_REACH"), kernel_constant("TILE_STEP")
_FORMS = frozenset({(3, 1), (3, 2), (5, 1), (5, 2)})  # (height of the window, stride) of rvm_depthwise_rows_f32
_SUMS = 4096  # maximum number of sums that are computed together, so that they fit the L1 cache with the input
_MAX_COLUMNS = 512  # maximum number of sums of a row that are computed together


def can_write_depthwise_rows(x: Buffer, w: Buffer, window: Window) -> bool:
    """Return whether `write_depthwise_rows` can generate the depthwise convolution of input `x` and weights `w`."""
    if x.dtype.name != "f32" or w.shape[1] != 1 or len(window.sizes) != 2:
        return False
    if not all(isinstance(size, int) for size in window.sizes):
        return False
    high, wide = map(known_size, window.sizes)
    has_form = (high, window.strides[0]) in _FORMS and 0 < wide <= _MAX_TAPS and window.strides[1] <= 2
    # With less padding than the window has elements, windows begin and end inside a plane that is not empty.
    return (
        has_form
        and window.dilations == (1, 1)
        and all(pad < size for pad, size in zip(window.pads, (high, wide) * 2, strict=True))
    )


def write_depthwise_rows(k: KernelBuilder, x: Buffer, w: Buffer, result: Epilogue, window: Window) -> None:
    """Generate a depthwise convolution whose form `can_write_depthwise_rows` accepts."""
    sizes, strides = tuple(map(known_size, window.sizes)), window.strides
    high, wide = (as_scalar(dim, I64) for dim in result.shape[2:])
    height, width = (as_scalar(dim, I64) for dim in x.shape[2:])
    channels, taps, area = k.size(w.shape[:1]), math.prod(sizes), height * width
    columns = k.let("columns", maximum(minimum(wide, _MAX_COLUMNS), 1))
    # If not all rows of a plane are computed at a time, their number is a multiple of _ROWS.
    fast = maximum(Literal(_SUMS // _ROWS, I64) / columns, 1) * _ROWS
    rows = k.let("rows", maximum(minimum(high, fast), 1))
    planes = k.let("planes", maximum(minimum(channels, Literal(_SUMS, I64) / (rows * columns)), 1))
    row_parts = k.let("row_parts", (high + (rows - 1)) / rows)
    parts = k.let("parts", (channels + (planes - 1)) / planes)
    with k.parallel(k.size(x.shape[:1]) * parts * row_parts, planes * rows * wide * taps) as (first, last):
        most = min(result.shape[3], _MAX_COLUMNS) if isinstance(result.shape[3], int) else _MAX_COLUMNS
        lines = 2 + (_ROWS - 1) * strides[0] + sizes[0]
        sums = k.allocate("sums", x.dtype, (_SUMS + (_ROWS - 1) * most + _SLACK,))
        copy = k.allocate("copy", x.dtype, (strides[1] * (max(most, 1) + _REACH) * lines,))
        zero = Literal(0, I64)
        with (
            k.loop(last, start=first, name="part") as part,
            k.loop((wide + (columns - 1)) / columns, name="strip") as strip,
        ):
            number = k.let("number", part / row_parts)
            image, channel = k.let("image", number / parts), k.let("channel", number % parts * planes)
            row, column = k.let("row", part % row_parts * rows), k.let("column", strip * columns)
            count = k.let("count", minimum(channels - channel, planes))
            down, across = k.let("down", minimum(high - row, rows)), k.let("across", minimum(wide - column, columns))
            k.invoke(
                "rvm_depthwise_rows_f32",
                x=Address(x, image * (channels * area)),
                size=channels * area,
                first=channel * area,
                planes=count,
                height=height,
                width=width,
                weights=Address(w, channel * taps),
                window_height=sizes[0],
                window_width=sizes[1],
                stride_y=strides[0],
                stride_x=strides[1],
                pad_y=window.pads[0],
                pad_x=window.pads[1],
                row=row,
                rows=down,
                column=column,
                columns=across,
                sums=Address(sums, zero),
                copy=Address(copy, zero),
            )
            with k.loop(count, name="plane") as plane:
                filter_, start = k.let("filter", channel + plane), k.let("start", plane * (down * across))
                if isinstance(result.shape[3], int) and result.shape[3] <= _MAX_COLUMNS:
                    with k.loop(down * across, name="j", simd=True) as j:
                        result.store(k, (image, filter_, row * wide + j), sums[start + j])
                else:
                    with k.loop(down, name="i") as i, k.loop(across, name="j", simd=True) as j:
                        position = (row + i) * wide + column + j
                        result.store(k, (image, filter_, position), sums[start + i * across + j])
