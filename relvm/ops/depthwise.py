"""The loop nest of depthwise convolutions: the input rows that a row of the result sees lie in a ring beside it."""

from __future__ import annotations

import math

from relvm.ir.dtypes import I64
from relvm.lir.kernel import Address, Buffer, KernelBuilder, Literal, Local, Scalar, Select, as_scalar, smaller
from relvm.ops.products import Result
from relvm.ops.window import Window

_STRIP = 128  # places of a row that are taken at a time
_SLACK = 64  # csrc/tile.h reads and writes so many at a time
_MOST_BYTES = 64 << 10  # of a ring, which is to stay in the first or second cache


class _Shape:
    """The window over two spatial axes, and the ring: `rows` rows, each `strides[1]` phases of `pitch` elements, so
    that the elements that a window position meets along a row follow each other."""

    def __init__(self, window: Window, wide: object) -> None:
        one_axis = len(window.sizes) == 1
        self.sizes = (1, *window.sizes) if one_axis else window.sizes
        self.strides = (1, *window.strides) if one_axis else window.strides
        self.dilations = (1, *window.dilations) if one_axis else window.dilations
        self.pads = (0, window.pads[0]) if one_axis else window.pads[:2]
        self.strip = min(_STRIP, max(wide, 1)) if isinstance(wide, int) else _STRIP
        self.reach = (self.sizes[1] - 1) * self.dilations[1] // self.strides[1] + 1  # elements beyond a strip
        self.pitch = math.ceil(self.strip / _SLACK) * _SLACK + self.reach + _SLACK
        self.rows = (self.sizes[0] - 1) * self.dilations[0] + 1
        self.row_size = self.strides[1] * self.pitch


def is_depthwise(x: Buffer, w: Buffer, window: Window) -> bool:
    """Whether `write_depthwise` is for a convolution of these tensors."""
    known = all(isinstance(size, int) and size > 0 for size in window.sizes) and len(window.sizes) <= 2
    if not known or w.shape[1] != 1 or x.dtype.name != "f32":
        return False
    shape = _Shape(window, None)
    return shape.rows * shape.row_size * 4 <= _MOST_BYTES


def write_depthwise(k: KernelBuilder, x: Buffer, w: Buffer, result: Result, window: Window, filters: int) -> None:
    """Each filter sees one channel.  filters: of a group."""
    shape = _Shape(window, result.shape[-1])
    taps = math.prod(shape.sizes)
    wide = as_scalar(result.shape[-1], I64)
    high = as_scalar(result.shape[2], I64) if len(result.shape) == 4 else Literal(1, I64)
    all_filters = k.size(result.shape[1:2])
    with k.parallel(k.size(result.shape[:2]), wide * high * taps) as (first, last):
        ring = k.allocate("ring", x.dtype, (shape.rows * shape.row_size,))
        offsets = k.allocate("offsets", I64, (taps,))
        sums = k.allocate("sums", x.dtype, (math.ceil(shape.strip / _SLACK) * _SLACK,))
        with k.loop(shape.rows * shape.row_size, simd=True) as i:
            k.store(ring, (i,), 0)
        with k.loop(last, start=first, name="number") as number:
            image, filter_ = k.declare("image", number / all_filters), k.declare("filter", number % all_filters)
            channel = k.declare("channel", image * k.size(x.shape[1:2]) + filter_ / filters)
            plane = k.declare("plane", channel * k.size(x.shape[2:]))
            with k.loop((wide + (shape.strip - 1)) / shape.strip, name="part") as part:
                start = k.declare("start", part * shape.strip)
                count = k.declare("count", smaller(wide - start, shape.strip))
                with k.loop(high, name="y") as y:
                    _bring_rows(k, x, ring, shape, plane, start, count, y)
                    _set_offsets(k, offsets, shape, y)
                    weights = Address(w, filter_ * taps)
                    to_offsets, to_sums = (Address(buffer, Literal(0, I64)) for buffer in (offsets, sums))
                    k.invoke(
                        "rvm_taps_f32", count, taps, to_offsets, weights, Address(ring, Literal(0, I64)), to_sums, 0
                    )
                    with k.loop(count, name="o", simd=True) as o:
                        result.store(k, (image, filter_, y * wide + start + o), sums[o])


def _bring_rows(
    k: KernelBuilder, x: Buffer, ring: Buffer, shape: _Shape, plane: Local, start: Local, count: Local, y: Local
) -> None:
    """Copies the rows of the input into the ring that this row of the result is the first to see, zeros around them."""
    dims = [as_scalar(dim, I64) for dim in x.shape[2:]]
    high, wide = dims if len(dims) == 2 else (Literal(1, I64), dims[0])
    kept = shape.rows - min(shape.strides[0], shape.rows)
    fresh = k.declare("fresh", Select(y.equals(0), Literal(0, I64), Literal(kept, I64)))
    with k.loop(shape.rows, start=fresh, name="n") as n:
        row = k.declare("row", y * shape.strides[0] + n)
        target = k.declare("target", row % shape.rows * shape.row_size)
        place = k.declare("place", row - shape.pads[0])
        inside = (place >= 0).both(place < high)
        source = k.declare("source", plane + place * wide)
        for phase in range(shape.strides[1]):
            with k.loop(count + shape.reach, name="i", simd=True) as i:
                at = k.declare("at", (start + i) * shape.strides[1] + (phase - shape.pads[1]))
                within = inside.both(at >= 0).both(at < wide)
                element: Scalar = Select(within, x.flat(source + at), Literal(0, x.dtype))
                k.store(ring, (target + phase * shape.pitch + i,), element)


def _set_offsets(k: KernelBuilder, offsets: Buffer, shape: _Shape, y: Local) -> None:
    """Where in the ring the first element is that each window position meets."""
    for row in range(shape.sizes[0]):
        place = (y * shape.strides[0] + row * shape.dilations[0]) % shape.rows
        at_row = k.declare("at_row", place * shape.row_size)
        for column in range(shape.sizes[1]):
            step = column * shape.dilations[1]
            shift = step % shape.strides[1] * shape.pitch + step // shape.strides[1]
            k.store(offsets, (row * shape.sizes[1] + column,), at_row + shift)
