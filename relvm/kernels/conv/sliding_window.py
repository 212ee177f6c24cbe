"""Sliding windows of convolution and pooling, over the spatial axes of (batch, channel, spatial...) tensors.

Along an axis, the input element that output position o reads at window position k is `o * stride + k * dilation - pad`.
Positions outside the input are padding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

import numpy as np

from relvm.data_classes import value_record
from relvm.errors import RelvmArgumentError
from relvm.ir.dtypes import I64
from relvm.ir.loop_ir import Literal, Scalar, as_scalar, minimum, select
from relvm.ir.operator import assume_nonnegative, claim_at_most, expect
from relvm.ir.symbolic import AnyDim, format_dim, known_size
from relvm.ir.type_rules import expect_integers
from relvm.kernels.kernel_builder import KernelBuilder


@value_record
class Window:
    """A sliding window.

    sizes: the extent of the window along each spatial axis.
    pads: the padding before each axis, then the padding after each axis.
    """

    sizes: tuple[AnyDim, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]

    def is_pointwise(self) -> bool:
        """Return whether each output position reads only the input position with the same index."""
        return not any(self.pads) and all(n == 1 for n in (*self.sizes, *self.strides))


Ints = tuple[int, ...] | None


def window_of(op: str, sizes: Sequence[AnyDim], strides: Ints, pads: Ints, dilations: Ints) -> Window:
    """Check the attributes `strides`, `pads` and `dilations` of operator `op`, and return its window.

    sizes: the extent of the window along each spatial axis.
    strides, dilations: one number for each spatial axis, or None for 1.
    pads: the padding before each spatial axis, then the padding after each spatial axis, or None for no padding.

    Raises
    ------
    RelvmArgumentError
        An attribute has the wrong length, a stride or dilation is below 1, or a number in `pads` is negative.
    """
    rank = len(sizes)
    ones = (1,) * rank
    strides, dilations = ones if strides is None else strides, ones if dilations is None else dilations
    pads = (0,) * (2 * rank) if pads is None else pads
    for name, values, count, least in (
        ("strides", strides, rank, 1),
        ("pads", pads, 2 * rank, 0),
        ("dilations", dilations, rank, 1),
    ):
        expect_integers(op, name, values, count)
        message = "{}: {} are {}, expected values of at least {}"
        expect(all(n >= least for n in values), message, op, name, values, least, error=RelvmArgumentError)
    return Window(tuple(sizes), strides, pads, dilations)


def over_two_axes(window: Window) -> Window:
    """Return `window` as a window over two spatial axes.  If it has one axis, add a leading axis of size 1."""
    if len(window.sizes) == 2:
        return window
    (before, behind) = window.pads
    return Window((1, *window.sizes), (1, *window.strides), (0, before, 0, behind), (1, *window.dilations))


def window_arguments(window: Window) -> dict[str, AnyDim]:
    """Return the arguments of a micro-kernel that describe `window`, which has two spatial axes."""
    names = ("window_height", "window_width", "stride_y", "stride_x", "pad_y", "pad_x", "dilation_y", "dilation_x")
    values = (*window.sizes, *window.strides, *window.pads[:2], *window.dilations)
    return dict(zip(names, values, strict=True))


def output_dims(op: str, dims: Sequence[AnyDim], window: Window) -> tuple[AnyDim, ...]:
    """Return the output size along each spatial axis.

    dims: the spatial dimensions of the input.

    Raises
    ------
    RelvmShapeError
        The window is larger than the padded input.  If the sizes are symbolic and this is not certain, no error is
        raised here, but the sizes are checked at run time.
    """
    rank = len(window.sizes)
    result = []
    for axis, dim in enumerate(dims):
        size, dilation = window.sizes[axis], window.dilations[axis]
        padded, span = dim + window.pads[axis] + window.pads[rank + axis], (size - 1) * dilation + 1
        dilated = f" ({format_dim(size)} positions, dilated by {dilation})" if dilation != 1 else ""
        claim_at_most(span, padded, f"{op}: window {{}}{dilated} exceeds padded input size {{}} (spatial axis {axis})")
        result.append(assume_nonnegative((padded - span) // window.strides[axis] + 1))
    return tuple(result)


def valid_range(dim: Scalar, indices: Scalar, stride: int, offset: Scalar) -> tuple[Scalar, Scalar]:
    """Return the range [first, end) of output positions along one axis that read the input, and not padding.

    If there is no such position, `end` can be less than `first`.

    Output position o reads input position `o * stride + offset`.

    dim: the size of the input.
    indices: the size of the output.
    """
    first = select(offset >= 0, Literal(0, I64), (-offset + (stride - 1)) / stride)
    last_input = dim - 1 - offset
    last = select(last_input < 0, Literal(0, I64), last_input / stride + 1)
    return first, minimum(last, indices)


def for_each_tap(
    k: KernelBuilder,
    window: Window,
    dims: tuple[AnyDim, ...],
    indices: tuple[AnyDim, ...],
    row: Sequence[Scalar],
    body: Callable[[Scalar, Scalar, Scalar, Scalar], None],
) -> None:
    """Generate loops over the window positions of one output row, with the code that `body` generates.

    At run time, the loops skip rows of the window that lie outside the input.

    dims, indices: the spatial dimensions of the input and of the output.
    row: the output position along all spatial axes except the last.
    body(tap, source, first, stop): generates the code for the window position `tap`, a row-major index.  This window
    position is inside the input for the output positions o in [first, stop) of the row.  Each of them reads position
    `source + o * stride` of the input channel.
    """
    last = len(dims) - 1

    def along(tap: Scalar, source: Scalar) -> None:
        dim = as_scalar(dims[last], I64)
        with k.loop(window.sizes[last], name="at") as at:
            offset = k.let("offset", at * window.dilations[last] - window.pads[last])
            first, stop = valid_range(dim, as_scalar(indices[last], I64), window.strides[last], offset)
            tap = tap * as_scalar(window.sizes[last], I64) + at
            body(tap, source * dim + offset, k.let("first", first), k.let("stop", stop))

    for_each_row(k, window, dims, row, along)


def for_each_row(
    k: KernelBuilder,
    window: Window,
    dims: tuple[AnyDim, ...],
    row: Sequence[Scalar],
    body: Callable[[Scalar, Scalar], None],
) -> None:
    """Generate loops over the rows of the window for one output row, with the code that `body` generates.

    At run time, the loops skip rows of the window that lie outside the input.

    dims: the spatial dimensions of the input.
    row: the output position along all spatial axes except the last.
    body(tap, source): generates the code for row `tap` of the window, which reads row `source` of the input channel.
    Both are row-major indices over all spatial axes except the last.
    """
    with ExitStack() as loops:
        tap: Scalar = Literal(0, I64)
        source: Scalar = Literal(0, I64)
        for axis, size in enumerate(window.sizes[:-1]):
            at = loops.enter_context(k.loop(size, name="at"))
            tap = tap * as_scalar(size, I64) + at
            dim = as_scalar(dims[axis], I64)
            offset = at * window.dilations[axis] - window.pads[axis]
            position = k.let("place", row[axis] * window.strides[axis] + offset)
            loops.enter_context(k.branch((position >= 0).logical_and(position < dim)))
            source = source * dim + position
        body(tap, source)


def numpy_windows(x: np.ndarray, window: Window, fill: float) -> np.ndarray:
    """Return all windows of `x`, as an array of shape (batch, channel, output spatial..., window spatial...).

    If the window is larger than the padded input along an axis, the output size of this axis is 0.

    fill: the value of padding.
    """
    rank = len(window.sizes)
    margins = [(0, 0), (0, 0), *zip(window.pads[:rank], window.pads[rank:], strict=True)]
    padded = np.pad(x, margins, constant_values=fill)
    spans = tuple(
        (known_size(size) - 1) * dilation + 1 for size, dilation in zip(window.sizes, window.dilations, strict=True)
    )
    free_sizes = [size - span for size, span in zip(padded.shape[2:], spans, strict=True)]
    if min(free_sizes) < 0:
        indices = (max(free // stride + 1, 0) for free, stride in zip(free_sizes, window.strides, strict=True))
        return np.empty((*x.shape[:2], *indices, *window.sizes), x.dtype)
    views = np.lib.stride_tricks.sliding_window_view(padded, spans, tuple(range(2, 2 + rank)))
    steps = [slice(None, None, step) for step in (*window.strides, *window.dilations)]
    return views[(slice(None), slice(None), *steps)]
