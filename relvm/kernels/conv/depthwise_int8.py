"""Loop nest of depthwise convolutions of bytes.

Each word packs the bytes that four adjacent window positions read.  A ring buffer contains the words of the input rows
that the window covers.  The weights are packed in the same way: each row of the window has one word for every four
positions (csrc/codegen/gemm_int8.h).
"""

from __future__ import annotations

import math

from relvm.ir.dtypes import I32, I64
from relvm.ir.loop_ir import Address, Buffer, Literal, Scalar, as_scalar, maximum, minimum, select
from relvm.ir.symbolic import known_size
from relvm.kernels.conv.sliding_window import Window, over_two_axes
from relvm.kernels.epilogue import Epilogue
from relvm.kernels.gemm.gemm_int8 import WORD, padding_word, unsigned_flip_mask, unsigned_zero_point, word_of
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.tables import kernel_constant

_STRIP = 128  # output positions of a row that are processed at a time
_BLOCK = 4096  # output positions stored at a time: whole rows, because vector loops are slow on short rows
_SLACK = kernel_constant("TAP_STEP")
_MAX_BYTES = 64 << 10  # maximum size of a ring buffer, so that it fits the L1 or L2 cache


class _RingLayout:
    """The window over two spatial axes, and the layout of the ring buffer.

    The ring buffer contains words of four bytes, and has shape (`rows`, `words_per_row`, `pitch`).

    rows: the number of input rows that the window covers.
    words_per_row: the number of words in a row of the window.
    pitch: the maximum number of output positions that are processed at a time, rounded up to a multiple of _SLACK.
    """

    def __init__(self, window: Window, wide: object) -> None:
        window = over_two_axes(window)
        self.sizes = tuple(map(known_size, window.sizes))
        self.strides, self.dilations = window.strides, window.dilations
        self.pads = window.pads[:2]
        self.strip = min(_STRIP, max(wide, 1)) if isinstance(wide, int) else _STRIP
        self.words_per_row = math.ceil(self.sizes[1] / WORD)
        self.pitch = math.ceil(self.strip / _SLACK) * _SLACK
        self.rows = (self.sizes[0] - 1) * self.dilations[0] + 1
        self.row_size = self.words_per_row * self.pitch


def can_write_byte_depthwise(w: Buffer, window: Window) -> bool:
    """Return whether `write_byte_depthwise` can generate the convolution with weights `w` and window `window`.

    This requires that `w` has shape (filters, 1, window...), and that the window has known sizes and is not too large.
    """
    if not all(isinstance(size, int) and size > 0 for size in window.sizes) or len(window.sizes) > 2:
        return False
    shape = _RingLayout(window, None)
    return w.shape[1] == 1 and shape.rows * shape.row_size * WORD <= _MAX_BYTES


def write_byte_depthwise(
    k: KernelBuilder, x: Buffer, w: Buffer, padding: Scalar, result: Epilogue, window: Window, filters: int
) -> None:
    """Generate a depthwise convolution of bytes.  Each filter reads one channel.

    padding: the zero point of x, which is also the value of padding.
    filters: the number of filters per group.
    """
    shape = _RingLayout(window, result.shape[-1])
    taps = shape.sizes[0] * shape.words_per_row
    wide = as_scalar(result.shape[-1], I64)
    high = as_scalar(result.shape[2], I64) if len(result.shape) == 4 else Literal(1, I64)
    all_filters = k.size(result.shape[1:2])
    zero = unsigned_zero_point(k, x.dtype, padding)
    pad_word = padding_word(k, zero)
    rows = k.let("rows", maximum(select(wide <= shape.strip, _BLOCK / maximum(wide, 1), Literal(1, I64)), 1))
    with k.parallel(k.size(result.shape[:2]), wide * high * taps) as (first, last):
        ring = k.allocate("ring", I32, (shape.rows * shape.row_size,))
        offsets = k.allocate("offsets", I64, (taps,))
        weights = k.allocate("weights", I32, (taps,))
        sums = k.allocate("sums", I32, (_BLOCK + shape.pitch,))
        with k.loop(shape.rows * shape.row_size, simd=True) as i:
            k.store(ring, (i,), 0)
        with k.loop(last, start=first, name="number") as number:
            image, filter_ = k.let("image", number / all_filters), k.let("filter", number % all_filters)
            channel = k.let("channel", image * k.size(x.shape[1:2]) + filter_ / filters)
            plane = k.let("plane", channel * k.size(x.shape[2:]))
            total = _set_weights(k, w, weights, shape, filter_)
            term = k.let("term", -(zero * total))
            with k.loop((wide + (shape.strip - 1)) / shape.strip, name="part") as part:
                start = k.let("start", part * shape.strip)
                count = k.let("count", minimum(wide - start, shape.strip))
                with k.loop((high + (rows - 1)) / rows, name="block") as block:
                    top = k.let("top", block * rows)
                    end = k.let("end", minimum(top + rows, high))
                    with k.loop(end, start=top, name="y") as y:
                        _fill_ring(k, x, ring, shape, plane, start, count, y, padding, pad_word)
                        _set_offsets(k, offsets, shape, y)
                        at = k.let("at", (y - top) * count)
                        with k.loop(shape.pitch, name="o", simd=True) as o:
                            k.store(sums, (at + o,), term)
                        k.invoke(
                            "rvm_taps_bytes",
                            columns=count,
                            taps=taps,
                            offsets=Address(offsets, Literal(0, I64)),
                            weights=Address(weights, Literal(0, I64)),
                            words=Address(ring, Literal(0, I64)),
                            sums=Address(sums, at),
                        )
                    with k.loop((end - top) * count, name="o", simd=True) as o:
                        result.store(k, (image, filter_, top * wide + start + o), sums[o])


def _set_weights(k: KernelBuilder, w: Buffer, weights: Buffer, shape: _RingLayout, filter_: Scalar) -> Scalar:
    """Generate code that packs the weights of one filter into words of four bytes, and stores the words in `weights`.

    Return the variable that contains the sum of the weights.

    w: the weights of all filters.
    shape: the window and the layout of its words.
    filter_: the index of the filter.
    """
    total = k.variable("total", Literal(0, I32))
    rows, wide = shape.sizes
    with k.loop(rows, name="r") as r:
        at = k.let("at_w", (filter_ * rows + r) * wide)
        for four in range(shape.words_per_row):
            here = [k.let("b", w.flat(at + i).to(I32)) for i in range(four * WORD, min(four * WORD + WORD, wide))]
            k.store(
                weights, (r * shape.words_per_row + four,), word_of([*here, *[Literal(0, I32)] * (WORD - len(here))])
            )
            for byte in here:
                k.assign(total, total + byte)
    return total


def _fill_ring(
    k: KernelBuilder,
    x: Buffer,
    ring: Buffer,
    shape: _RingLayout,
    plane: Scalar,
    start: Scalar,
    count: Scalar,
    y: Scalar,
    padding: Scalar,
    pad_word: Scalar,
) -> None:
    """Generate code that loads input rows into the ring buffer, as words of four bytes.

    The rows are those that output row `y` reads and output row `y - 1` does not.

    shape: the layout of the ring buffer.
    plane: the position in x at which the channel begins.
    start, count: the first output position of the row to process, and the number of output positions.
    padding: the zero point of x.
    pad_word: the word for positions outside the input (see `padding_word`).
    """
    dims = [as_scalar(dim, I64) for dim in x.shape[2:]]
    high, wide = dims if len(dims) == 2 else (Literal(1, I64), dims[0])
    reused_rows = shape.rows - min(shape.strides[0], shape.rows)
    fresh = k.let("fresh", select(y.eq(0), Literal(0, I64), Literal(reused_rows, I64)))
    before = k.let("before", start * shape.strides[1] - shape.pads[1])
    with k.loop(shape.rows, start=fresh, name="n") as n:
        row = k.let("row", y * shape.strides[0] + n)
        target = k.let("target", row % shape.rows * shape.row_size)
        position = k.let("place", row - shape.pads[0])
        inside = k.let("inside", (position >= 0).logical_and(position < high))
        with k.branch(inside):
            line = Address(x, plane + position * wide)
            for four in range(shape.words_per_row):
                at = before + four * WORD * shape.dilations[1]
                k.invoke(
                    "rvm_words_of_line",
                    words=Address(ring, target + four * shape.pitch),
                    line=line,
                    line_size=wide,
                    position=at,
                    stride=shape.dilations[1],
                    rows=min(shape.sizes[1] - four * WORD, WORD),
                    count=count,
                    step=shape.strides[1],
                    padding=padding,
                    flip=unsigned_flip_mask(x.dtype),
                )
        with k.branch(inside.eq(False)), k.loop(shape.row_size, name="i", simd=True) as i:
            k.store(ring, (target + i,), pad_word)


def _set_offsets(k: KernelBuilder, offsets: Buffer, shape: _RingLayout, y: Scalar) -> None:
    """Generate code that stores, for each word (four bytes) of weights, where in the ring buffer its input words begin.

    A word of weights is multiplied by adjacent input words, one for each output position.

    offsets: the array for the flat positions in the ring buffer.
    shape: the layout of the ring buffer.
    y: the output row.
    """
    for row in range(shape.sizes[0]):
        position = (y * shape.strides[0] + row * shape.dilations[0]) % shape.rows
        at_row = k.let("at_row", position * shape.row_size)
        for four in range(shape.words_per_row):
            k.store(offsets, (row * shape.words_per_row + four,), at_row + four * shape.pitch)
