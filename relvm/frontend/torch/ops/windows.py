"""Pooling, resampling, and other operators on windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmFormatError
from relvm.frontend.common.kernel_parts import buffer, loops
from relvm.frontend.common.kernel_parts import size as size_of
from relvm.frontend.torch.ops.indexing import as_dim
from relvm.frontend.torch.ops.shapes import sliced
from relvm.frontend.torch.registry import Node, converts, known_int, shape_of
from relvm.ir.dtypes import F32, F64, I64, U8, DType
from relvm.ir.expr import Expr, Shape, constant
from relvm.ir.kernel_def import KernelDef
from relvm.ir.loop_ir import Buffer, Literal, Operation, Scalar
from relvm.ir.symbolic import AnyDim, dim_op, product
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder


def each_axis(values: Any, rank: int, default: Sequence[int]) -> tuple[int, ...]:
    """Return one number for each spatial axis.  One number stands for all axes, and no number for the default."""
    if values is None or (isinstance(values, tuple) and not values):
        return tuple(default)
    found = (values,) if isinstance(values, int) else tuple(known_int(value, "an argument") for value in values)
    return found * rank if len(found) == 1 else found


def _with_batch(node: Node, x: Expr, rank: int) -> tuple[Expr, bool]:
    """Return x with a batch axis, and whether the axis was added."""
    if len(shape_of(x)) == rank + 1:
        return node.emit(ops.expand_dims(x, axes=(0,))), True
    if len(shape_of(x)) != rank + 2:
        raise RelvmFormatError(f"the argument has rank {len(shape_of(x))}, expected {rank + 1} or {rank + 2}")
    return x, False


def _without_batch(node: Node, x: Expr, added: bool) -> Expr:
    return ops.squeeze(node.emit(x), axes=(0,)) if added else x


class _Windows:
    """The windows of a pooling operator.

    extra: the padding that ceil_mode adds behind each axis, beyond the operator's own.
    counts: for each axis, the number of windows if it is symbolic and ceil_mode determines it, otherwise None.
    """

    def __init__(
        self, shape: Sequence[AnyDim], kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, rank: int
    ) -> None:
        self.kernel = each_axis(kernel, rank, ())
        self.strides = each_axis(stride, rank, self.kernel)
        self.before = each_axis(padding, rank, (0,) * rank)
        self.dilations = each_axis(dilation, rank, (1,) * rank)
        self.extra = [0] * rank
        self.counts: list[AnyDim | None] = [None] * rank
        for axis, size in enumerate(shape[-rank:] if ceil_mode else ()):
            count, span = self._count(axis, size), (self.kernel[axis] - 1) * self.dilations[axis] + 1
            end = (count - 1) * self.strides[axis] + span
            missing = end - (size + 2 * self.before[axis])
            if isinstance(missing, int):
                self.extra[axis] = max(missing, 0)
            else:  # enough for each size
                self.extra[axis], self.counts[axis] = self.strides[axis] - 1, count

    def _count(self, axis: int, size: AnyDim) -> AnyDim:
        """Return the number of windows along an axis with ceil_mode.  None of them begins behind the elements."""
        span = (self.kernel[axis] - 1) * self.dilations[axis] + 1
        pad, step = self.before[axis], self.strides[axis]
        count = dim_op("floordiv", size + 2 * pad - span + step - 1, step) + 1
        return dim_op("min", count, dim_op("floordiv", size + pad - 1, step) + 1)

    def attributes(self) -> dict[str, Any]:
        after = tuple(pad + more for pad, more in zip(self.before, self.extra, strict=True))
        return {"kernel": self.kernel, "strides": self.strides, "pads": (*self.before, *after)}

    def cut(self, node: Node, x: Expr) -> Expr:
        """Return the result of the pooling without the windows that the padding of symbolic sizes added."""
        for axis, count in enumerate(self.counts, 2):
            x = node.emit(x if count is None else sliced(node, node.emit(x), axis, 0, count))
        return x


def _max_pool(rank: int, name: str, *, with_indices: bool) -> None:
    @converts(name)
    def convert(
        node: Node,
        self: Expr,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Any:
        x, added = _with_batch(node, node.wide(self), rank)
        windows = _Windows(shape_of(x), kernel_size, stride, padding, dilation, ceil_mode, rank)
        attributes = {**windows.attributes(), "dilations": windows.dilations}
        values = _without_batch(node, windows.cut(node, ops.max_pool(x, **attributes)), added)
        if not with_indices:
            return values
        indices = node.emit(ops.max_pool_indices(x, **attributes))
        area = product(shape_of(x)[2:])  # positions count from the start of each channel
        indices = node.emit(ops.modulo(indices, node.number(area, I64)))
        return values, _without_batch(node, windows.cut(node, indices), added)


for _rank in (1, 2, 3):
    _max_pool(_rank, f"max_pool{_rank}d", with_indices=False)
    _max_pool(_rank, f"max_pool{_rank}d_with_indices", with_indices=True)


def _average_pool(rank: int, name: str) -> None:
    @converts(name)
    def convert(
        node: Node,
        self: Expr,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Expr:
        is_integer = not self.known_element_type.is_float
        x, added = _with_batch(node, node.cast(self, F64) if is_integer else node.wide(self), rank)
        windows = _Windows(shape_of(x), kernel_size, stride, padding, 1, ceil_mode, rank)
        attributes = windows.attributes()
        if divisor_override is not None:
            mean = ops.average_pool(x, **attributes, count_include_pad=True)
            result = ops.multiply(mean, math.prod(windows.kernel) / divisor_override)
        elif not count_include_pad:
            result = ops.average_pool(x, **attributes)
        elif not any(windows.extra):
            result = ops.average_pool(x, **attributes, count_include_pad=True)
        else:  # the operator's padding counts, and that of ceil_mode does not
            before = (0, 0, *windows.before)
            x = node.emit(ops.pad(x, pads=(*before, *before), value=0.0))
            rest = {"kernel": windows.kernel, "strides": windows.strides, "pads": (*(0,) * rank, *windows.extra)}
            result = ops.average_pool(x, **rest)
        return _without_batch(node, windows.cut(node, result), added)


for _rank in (1, 2, 3):
    _average_pool(_rank, f"avg_pool{_rank}d")


def _adaptive_sizes(shape: Sequence[AnyDim], output_size: Any, rank: int) -> tuple[AnyDim, ...]:
    """Return the number of adaptive windows along each spatial axis.   shape: that of the argument."""
    counts = (output_size,) * rank if isinstance(output_size, int) else tuple(output_size)
    return tuple(shape[2 + i] if count is None or count == -1 else count for i, count in enumerate(counts))


def _adaptive_windows(name: str, x: TensorType, counts: Sequence[AnyDim], *, maximum: bool) -> KernelDef:
    """Return the kernel of an adaptive pooling operator.

    Window i of n windows along an axis of size s begins at i * s / n, rounded down, and ends before (i + 1) * s / n,
    rounded up.

    x: the type of the argument, with a batch and channels.
    counts: the number of windows along each spatial axis.
    maximum: whether the outputs are the largest element of each window and its flat position in the channel, or the
    mean of each window.
    """
    k = KernelBuilder()
    source = buffer("x", x)
    result = TensorType(x.dtype, (*source.shape[:2], *counts))
    out = buffer("out", result, is_output=True)
    places = Buffer("places", I64, out.shape, is_output=True)
    sizes = [size_of(extent) for extent in source.shape[2:]]
    with loops(k, out.shape) as at:
        starts, lengths = [], []
        for index, extent, count in zip(at[2:], sizes, map(size_of, out.shape[2:]), strict=True):
            start = k.let("start", Operation("floordiv", (index * extent, count), I64))
            end = Operation("floordiv", ((index + 1) * extent + count - 1, count), I64)
            starts.append(start)
            lengths.append(k.let("length", end - start))
        if maximum:
            best, place = k.variable("best", source[(*at[:2], *starts)]), k.variable("place", _flat(starts, sizes))
        else:
            total = k.variable("total", Literal(0.0, source.dtype))
        with loops(k, lengths) as steps:
            inner = [start + step for start, step in zip(starts, steps, strict=True)]
            element = k.let("element", source[(*at[:2], *inner)])
            if maximum:
                with k.branch((element > best).logical_or(element.ne(element))):
                    k.assign(best, element)
                    k.assign(place, _flat(inner, sizes))
            else:
                k.assign(total, total + element)
        if maximum:
            k.store(out, at, best)
            k.store(places, at, place)
        else:
            k.store(out, at, total / math.prod(lengths[1:], start=lengths[0]).to(source.dtype))
    return KernelDef(name, (source,), (out, places) if maximum else (out,), k.finish())


def _flat(place: Sequence[Scalar], sizes: Sequence[Scalar]) -> Scalar:
    """Return the flat position of an element.   place: its position along axes of the given sizes."""
    flat = place[0]
    for index, extent in zip(place[1:], sizes[1:], strict=True):
        flat = flat * extent + index
    return flat


def _adaptive_average(rank: int, *names: str) -> None:
    @converts(*names)
    def convert(node: Node, self: Expr, output_size: Any) -> Expr:
        x, added = _with_batch(node, node.wide(self), rank)
        shape = shape_of(x)
        counts = _adaptive_sizes(shape, output_size, rank)
        if all(count == 1 for count in counts):
            axes = tuple(range(2, 2 + rank))
            return _without_batch(node, ops.mean(x, axes=axes, keepdims=True), added)
        pairs = list(zip(shape[2:], counts, strict=True))
        if all(isinstance(each, int) for pair in pairs for each in pair):
            numbers = [(known_int(size, ""), known_int(count, "")) for size, count in pairs]
            if all(count and size % count == 0 for size, count in numbers):
                kernel = tuple(size // count for size, count in numbers)
                return _without_batch(node, ops.average_pool(x, kernel=kernel, strides=kernel), added)
        type_ = TensorType(x.known_element_type, (*shape[:2], *counts))
        kernel_def = _adaptive_windows(node.kernel_name("adaptive_average"), x.tensor_type, counts, maximum=False)
        return _without_batch(node, node.call_kernel(kernel_def, [node.emit(x)], [type_]), added)


_adaptive_average(1, "adaptive_avg_pool1d")
_adaptive_average(2, "adaptive_avg_pool2d", "_adaptive_avg_pool2d")
_adaptive_average(3, "adaptive_avg_pool3d", "_adaptive_avg_pool3d")


def _adaptive_maximum(rank: int, name: str) -> None:
    @converts(name)
    def convert(node: Node, self: Expr, output_size: Any) -> tuple[Expr, Expr]:
        x, added = _with_batch(node, node.wide(self), rank)
        counts = _adaptive_sizes(shape_of(x), output_size, rank)
        shape = (*shape_of(x)[:2], *counts)
        types = [TensorType(x.known_element_type, shape), TensorType(I64, shape)]
        kernel = _adaptive_windows(node.kernel_name("adaptive_maximum"), x.tensor_type, counts, maximum=True)
        values, places = node.call_kernel(kernel, [node.emit(x)], types)
        return _without_batch(node, values, added), _without_batch(node, places, added)


for _rank in (1, 2, 3):
    _adaptive_maximum(_rank, f"adaptive_max_pool{_rank}d")


def _unpool(rank: int, name: str) -> None:
    @converts(name)
    def convert(
        node: Node, self: Expr, indices: Expr, output_size: Any, stride: Any = None, padding: Any = None
    ) -> Expr:
        x, added = _with_batch(node, self, rank)
        at, _ = _with_batch(node, indices, rank)
        return _without_batch(node, _scattered(node, x, at, output_size, "none"), added)


def _scattered(node: Node, values: Expr, indices: Expr, sizes: Sequence[AnyDim], reduction: str) -> Expr:
    """Return planes of zeros into which the elements of `values` are scattered.

    indices: the flat positions of the elements in their plane.
    sizes: the spatial sizes of the result.
    """
    batch, channels, *counts = shape_of(values)
    rows = (batch, channels, product(counts))
    zeros = node.full(0, (batch, channels, product(sizes)), values.known_element_type)
    places, elements = node.reshaped(indices, rows), node.reshaped(values, rows)
    found = node.emit(ops.scatter_elements(zeros, places, elements, axis=2, reduction=reduction))
    return node.reshaped(found, (batch, channels, *sizes))


_unpool(2, "max_unpool2d")
_unpool(3, "max_unpool3d")


# ---- gradients of pooling ----


@converts("max_pool2d_with_indices_backward")
def _max_pool_backward(
    node: Node,
    grad_output: Expr,
    self: Expr,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: Expr,
) -> Expr:
    gradient, added = _with_batch(node, node.wide(grad_output), 2)
    at, _ = _with_batch(node, indices, 2)
    x, _ = _with_batch(node, self, 2)
    return _without_batch(node, _scattered(node, gradient, at, shape_of(x)[2:], "add"), added)


@converts("avg_pool2d_backward")
def _average_pool_backward(
    node: Node,
    grad_output: Expr,
    self: Expr,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Expr:
    gradient, added = _with_batch(node, node.wide(grad_output), 2)
    x, _ = _with_batch(node, self, 2)
    shape, dtype = shape_of(x), gradient.known_element_type
    windows = _Windows(shape, kernel_size, stride, padding, 1, ceil_mode, 2)
    counts = shape_of(gradient)[2:]
    if divisor_override is not None:
        divisor = node.number(divisor_override, dtype)
    else:  # the number of elements in each window: of the image, and of its padding if that counts
        border = windows.before if count_include_pad else (0, 0)
        ones = node.full(1, (1, 1, *(size + 2 * pad for size, pad in zip(shape[2:], border, strict=True))), dtype)
        rest = [pad - own for pad, own in zip(windows.before, border, strict=True)]
        pads = (*rest, *(pad + more for pad, more in zip(rest, windows.extra, strict=True)))
        kernel = node.full(1, (1, 1, *windows.kernel), dtype)
        divisor = node.emit(windows.cut(node, ops.conv(ones, kernel, strides=windows.strides, pads=pads)))
    share = node.emit(ops.divide(gradient, divisor))
    columns = node.broadcast(node.reshaped(share, (*shape[:2], 1, 1, *counts)), (*shape[:2], *windows.kernel, *counts))
    result = ops.col2im(columns, Shape(shape), strides=windows.strides, pads=windows.before)
    return _without_batch(node, result, added)


@converts("_adaptive_avg_pool2d_backward")
def _adaptive_average_backward(node: Node, grad_output: Expr, self: Expr) -> Expr:
    """Multiplies by a matrix along each axis: the mean over adaptive windows is a product of such matrices."""
    found = node.emit(node.wide(grad_output))
    (height, width), (rows, columns) = shape_of(self)[-2:], shape_of(found)[-2:]
    left = _adaptive_weights(node, height, rows, found.known_element_type)
    right = _adaptive_weights(node, width, columns, found.known_element_type)
    found = node.emit(ops.matmul(left, found, transpose_a=True))
    return ops.matmul(found, right)


def _adaptive_weights(node: Node, size: AnyDim, count: AnyDim, dtype: DType) -> Expr:
    """Return the factors of the mean over adaptive windows along an axis, of shape (count, size)."""
    number, length = node.number(count, I64), node.number(size, I64)
    window = node.reshaped(node.emit(ops.iota(Shape((count,)))), (count, 1))
    start = node.emit(ops.divide(ops.multiply(window, length), number))
    after = ops.add(ops.multiply(ops.add(window, 1), length), ops.subtract(number, 1))
    end = node.emit(ops.divide(after, number))
    at = node.emit(ops.iota(Shape((size,))))
    is_inside = ops.logical_and(ops.greater_equal(at, start), ops.less(at, end))
    share = ops.divide(1.0, node.cast(node.emit(ops.subtract(end, start)), dtype))
    return node.emit(ops.where(is_inside, share, 0.0))


@converts("im2col")
def _im2col(node: Node, self: Expr, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Expr:
    x, added = _with_batch(node, self, 2)
    kernel, spread, pads, steps = (each_axis(each, 2, (1, 1)) for each in (kernel_size, dilation, padding, stride))
    batch, channels, *sizes = shape_of(x)
    x = node.emit(ops.pad(x, pads=(0, 0, *pads, 0, 0, *pads)))
    height, width = (size + 2 * pad for size, pad in zip(sizes, pads, strict=True))
    counts = [
        dim_op("floordiv", n - (k - 1) * d - 1, s) + 1
        for n, k, d, s in zip((height, width), kernel, spread, steps, strict=True)
    ]
    at = [
        node.emit(ops.add((np.arange(k) * d)[:, None], ops.multiply(ops.iota(Shape((count,))), s)))
        for count, k, d, s in zip(counts, kernel, spread, steps, strict=True)
    ]
    row = node.reshaped(node.emit(ops.multiply(at[0], node.number(width, I64))), (kernel[0], 1, counts[0], 1))
    positions = node.emit(ops.add(row, node.reshaped(at[1], (1, kernel[1], 1, counts[1]))))
    flat = node.reshaped(x, (batch, channels, height * width))
    found = node.emit(ops.gather(flat, positions, axis=2))
    rows, columns = channels * product(kernel), counts[0] * counts[1]
    return _without_batch(node, node.reshaped(found, (batch, rows, columns)), added)


@converts("col2im")
def _col2im(
    node: Node, self: Expr, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> Expr:
    added = len(shape_of(self)) == 2
    x = node.emit(ops.expand_dims(self, axes=(0,))) if added else self
    kernel, spread, pads, steps = (each_axis(each, 2, (1, 1)) for each in (kernel_size, dilation, padding, stride))
    batch, rows, _ = shape_of(x)
    channels = node.exact_quotient(rows, product(kernel), "the number of rows")
    counts = [
        (n + 2 * p - (k - 1) * d - 1) // s + 1
        for n, k, d, p, s in zip(output_size, kernel, spread, pads, steps, strict=True)
    ]
    windows = node.reshaped(x, (batch, channels, *kernel, *counts))
    shape = Shape((batch, channels, *output_size))
    return _without_batch(node, ops.col2im(windows, shape, strides=steps, pads=pads, dilations=spread), added)


# ---- resampling ----


def _resampled(
    node: Node, x: Expr, mode: str, size: Sequence[AnyDim] | None, scales: Sequence[float | None], align_corners: bool
) -> Expr:
    """Return x with its spatial axes resampled.

    mode: nearest, nearest-exact, linear or cubic.
    size: the new sizes, or None to compute them from the scales.
    scales: the factor of each axis, or None to use the quotient of the sizes.
    """
    dtype = x.known_element_type
    if dtype == U8 and not mode.startswith("nearest"):
        return _resampled_pixels(node, x, size, scales, partial(_pixel_taps, align_corners=align_corners, mode=mode))
    x = node.wide(x)
    taps = partial(_taps, align_corners=align_corners, mode=mode, copies_equal_sizes=mode == "linear")
    for axis, scale in [*enumerate(scales, 2)][::-1]:  # the last axis first, as in PyTorch
        old = shape_of(x)[axis]
        if size is not None:
            new = size[axis - 2]
        else:
            new = _scaled_size(node, old, scale or 1)
        if mode.startswith("nearest"):
            x = node.emit(ops.gather(x, _nearest_positions(node, old, new, scale, mode == "nearest-exact"), axis=axis))
            continue
        x = node.emit(ops.interpolate(x, *taps(node, old, new, scale, x.known_element_type), axis=axis))
    return node.cast(x, dtype)


def _scaled_size(node: Node, old: AnyDim, scale: float) -> AnyDim:
    """Return the product of a size and a scale, rounded down."""
    if isinstance(old, int):
        return int(old * scale)
    top, bottom = scale.as_integer_ratio()
    if bottom <= 1 << 10:
        return dim_op("floordiv", old * top, bottom)
    exact = node.emit(ops.multiply(node.number(old, F64), scale))
    return as_dim(node, node.cast(node.emit(ops.floor(exact)), I64))


def _places(node: Node, new: AnyDim, dtype: DType) -> Expr:
    return node.cast(node.emit(ops.iota(Shape((new,)))), dtype)


def _ratio(
    node: Node,
    old: AnyDim,
    new: AnyDim,
    scale: float | None,
    dtype: DType,
    factors: Sequence[int],
    align_corners: bool = False,
) -> Expr:
    """Return the distance between adjacent new elements, where the distance between adjacent old elements is 1.

    factors: for these quotients of the sizes, the distance does not depend on the scale.
    align_corners: whether the first and the last elements have the positions of the first and the last old ones.
    """
    if align_corners:
        steps = node.emit(ops.maximum(node.emit(ops.subtract(node.number(new, dtype), 1.0)), 1.0))
        return node.emit(ops.divide(node.emit(ops.subtract(node.number(old, dtype), 1.0)), steps))
    if scale is None or scale <= 0:
        return node.emit(ops.divide(node.number(old, dtype), node.number(new, dtype)))
    ratio = node.number(1 / scale, dtype)
    for factor in factors:
        is_multiple = ops.equal(node.number(new, I64), node.number(factor * old, I64))
        ratio = node.emit(ops.where(is_multiple, node.number(1 / factor, dtype), ratio))
    return ratio


def _nearest_positions(node: Node, old: AnyDim, new: AnyDim, scale: float | None, exact: bool) -> Expr:
    """Return the position of the old element for each new one."""
    at = _places(node, new, F32)
    shifted = ops.add(at, 0.5) if exact else at
    found = ops.floor(ops.multiply(shifted, _ratio(node, old, new, scale, F32, () if exact else (1, 2))))
    positions = node.cast(node.emit(found), I64)
    return node.emit(ops.minimum(positions, node.emit(ops.subtract(node.number(old, I64), 1))))


# Arguments: the node, the old size, the new size, the scale, and the dtype of the weights.
# Results: for each new element along an axis, the positions and the weights of the old elements that it sums.
Taps = Callable[[Node, AnyDim, AnyDim, float | None, DType], tuple[Expr, Expr]]


def _taps(
    node: Node,
    old: AnyDim,
    new: AnyDim,
    scale: float | None,
    dtype: DType,
    *,
    align_corners: bool,
    mode: str,
    copies_equal_sizes: bool,
) -> tuple[Expr, Expr]:
    """Return the taps of linear or cubic resampling.

    copies_equal_sizes: whether an axis that keeps its size is copied, whatever the scale is.
    """
    at = _places(node, new, dtype)
    last = node.emit(ops.subtract(node.number(old, I64), 1))
    ratio = _ratio(node, old, new, scale, dtype, (1,) if copies_equal_sizes else (), align_corners)
    if align_corners:
        source = node.emit(ops.multiply(at, ratio))
    else:
        source = node.emit(ops.subtract(ops.multiply(ops.add(at, 0.5), ratio), 0.5))
        source = node.emit(ops.maximum(source, 0.0)) if mode == "linear" else source
    first = node.emit(ops.floor(source))
    whole = node.cast(first, I64)
    if mode == "linear":
        low = node.emit(ops.minimum(whole, last))
        rest = node.emit(ops.clip(ops.subtract(source, node.cast(low, dtype)), min=0.0, max=1.0))
        offsets, weights = np.arange(2), [node.emit(ops.subtract(1.0, rest)), rest]
        whole = low
    else:
        rest = node.emit(ops.subtract(source, first))
        offsets = np.arange(-1, 3)
        weights = [node.emit(_cubic(node.emit(ops.abs(ops.add(rest, float(1 - i)))), -0.75)) for i in range(4)]
    indices = ops.minimum(ops.maximum(ops.add(whole, offsets[:, None]), 0), last)
    rows = [node.reshaped(weight, (1, new)) for weight in weights]
    return node.emit(indices), node.emit(ops.concat(*rows, axis=0))


def _cubic(distance: Expr, a: float) -> Expr:
    """Return the weights of cubic convolution, Keys' kernel.   a: its parameter."""
    near = ops.multiply(ops.subtract(ops.multiply(distance, a + 2), a + 3), distance)
    far = ops.add(ops.multiply(ops.subtract(distance, 5.0), distance), 8.0)
    return ops.where(
        ops.less(distance, 1.0),
        ops.add(ops.multiply(near, distance), 1.0),
        ops.where(ops.less(distance, 2.0), ops.multiply(ops.subtract(ops.multiply(far, distance), 4.0), a), 0.0),
    )


def _declare_upsample(name: str, mode: str, rank: int) -> None:
    letters = (
        ("scales",) if rank == 1 else ("scales_h", "scales_w") if rank == 2 else ("scales_d", "scales_h", "scales_w")
    )

    @converts(name)
    def convert(node: Node, self: Expr, output_size: Any, align_corners: bool = False, **scales: float | None) -> Expr:
        return _resampled(node, self, mode, output_size, [scales.get(each) for each in letters], align_corners)

    @converts(f"{name}.vec")
    def convert_vec(
        node: Node, input: Expr, output_size: Any, scale_factors: Any = None, align_corners: bool = False
    ) -> Expr:
        factors = list(scale_factors) if scale_factors is not None else [None] * rank
        return _resampled(node, input, mode, output_size, factors, align_corners)


for _rank, _kind in ((1, "linear"), (2, "bilinear"), (3, "trilinear")):
    _declare_upsample(f"upsample_{_kind}{_rank}d", "linear", _rank)
    _declare_upsample(f"upsample_nearest{_rank}d", "nearest", _rank)
    _declare_upsample(f"_upsample_nearest_exact{_rank}d", "nearest-exact", _rank)
_declare_upsample("upsample_bicubic2d", "cubic", 2)


_WEIGHT_LIMIT = 1 << 15  # of the weights of pixels, which are rounded to integers of 16 bits
_MOST_BITS = 22  # of the fraction of such a weight


def _resampled_pixels(
    node: Node, x: Expr, size: Sequence[AnyDim] | None, scales: Sequence[float | None], taps: Taps
) -> Expr:
    """Return images of dtype u8 with their spatial axes resampled, the last axis first.

    As in PyTorch, weights are rounded to fixed-point numbers, and the result along each axis to an integer.  f64
    represents all sums exactly.
    """
    new_sizes = [
        size[axis] if size is not None else _scaled_size(node, old, scales[axis] or 1)
        for axis, old in enumerate(shape_of(x)[2:])
    ]
    x = node.cast(x, F64)
    for axis in range(len(new_sizes) - 1, -1, -1):
        old, new = shape_of(x)[axis + 2], new_sizes[axis]
        if old == new:
            continue
        places, weights = taps(node, old, new, scales[axis], F64)
        power = _fixed_point(node, weights)
        exact = node.emit(ops.multiply(weights, power))
        away = ops.where(ops.less(exact, 0.0), ops.subtract(exact, 0.5), ops.add(exact, 0.5))
        rounded = node.cast(node.emit(away), I64)
        total = node.emit(ops.interpolate(x, places, node.cast(rounded, F64), axis=axis + 2))
        scaled = node.emit(ops.divide(ops.add(total, ops.multiply(power, 0.5)), power))
        x = node.emit(ops.clip(ops.floor(scaled), min=0.0, max=255.0))
    return node.cast(x, U8)


def _fixed_point(node: Node, weights: Expr) -> Expr:
    """Return the power of 2 by which weights are multiplied: the largest for which they fit into 16 bits."""
    powers = constant(2.0 ** np.arange(1, _MOST_BITS + 1))
    largest = node.emit(ops.floor(ops.add(ops.multiply(ops.max(weights, axes=(0, 1)), powers), 0.5)))
    fits = node.cast(node.emit(ops.less(largest, float(_WEIGHT_LIMIT))), I64)
    return node.emit(ops.gather(constant(2.0 ** np.arange(_MOST_BITS + 1)), ops.sum(fits, axes=(0,)), axis=0))


def _pixel_taps(
    node: Node, old: AnyDim, new: AnyDim, scale: float | None, dtype: DType, *, align_corners: bool, mode: str
) -> tuple[Expr, Expr]:
    """Return the taps of `_taps`, for which those that are clamped to one element are part of the first of them."""
    places, weights = _taps(
        node, old, new, scale, dtype, align_corners=align_corners, mode=mode, copies_equal_sizes=True
    )
    count = known_int(shape_of(weights)[0], "the number of taps")
    indices, rows = (
        [node.emit(ops.slice(each, begin=(tap,), end=(tap + 1,), axes=(0,))) for tap in range(count)]
        for each in (places, weights)
    )
    for tap in range(count - 1, 0, -1):
        is_same = node.emit(ops.equal(indices[tap], indices[tap - 1]))
        rows[tap - 1] = node.emit(ops.add(rows[tap - 1], ops.where(is_same, rows[tap], 0.0)))
        rows[tap] = node.emit(ops.where(is_same, 0.0, rows[tap]))
    return places, node.emit(ops.concat(*rows, axis=0))


def _smooth_taps(
    node: Node, old: AnyDim, new: AnyDim, scale: float | None, dtype: DType, *, align_corners: bool, cubic: bool
) -> tuple[Expr, Expr]:
    """Return the taps of resampling with antialias: a window that grows with the reduction."""
    reach = 2 if cubic else 1
    ratio = _ratio(node, old, new, scale, dtype, (1,), align_corners)
    widening = node.emit(ops.maximum(ratio, 1.0))
    support = node.emit(ops.multiply(widening, float(reach)))
    center = node.emit(ops.multiply(ops.add(_places(node, new, dtype), 0.5), ratio))
    low = node.cast(node.emit(ops.add(ops.subtract(center, support), 0.5)), I64)
    low = node.emit(ops.maximum(low, 0))
    high = node.cast(node.emit(ops.add(ops.add(center, support), 0.5)), I64)
    high = node.emit(ops.minimum(high, node.number(old, I64)))
    count = _widest_window(old, new, scale, align_corners, reach)
    steps = node.reshaped(node.emit(ops.iota(Shape((count,)))), (count, 1))
    places = node.emit(ops.add(steps, low))
    shifted = ops.add(ops.subtract(node.cast(places, dtype), center), 0.5)
    distance = node.emit(ops.abs(ops.multiply(shifted, ops.divide(1.0, widening))))
    weights = _cubic(distance, -0.5) if cubic else ops.maximum(ops.subtract(1.0, distance), 0.0)
    weights = node.emit(ops.where(ops.less(places, high), weights, 0.0))
    total = node.emit(ops.sum(weights, axes=(0,), keepdims=True))
    inside = node.emit(ops.minimum(places, node.emit(ops.subtract(high, 1))))
    return inside, node.emit(ops.divide(weights, ops.where(ops.equal(total, 0.0), 1.0, total)))


def _widest_window(old: AnyDim, new: AnyDim, scale: float | None, align_corners: bool, reach: int) -> AnyDim:
    """Return the largest number of elements in a window of `_smooth_taps`: its width, rounded up."""
    if align_corners:
        old, new = old - 1, dim_op("max", new - 1, 1)
    elif scale is not None and scale > 0:
        return max(2 * reach, math.ceil(2 * reach / scale))
    width = dim_op("floordiv", 2 * reach * old + new - 1, new)
    return dim_op("max", width, 2 * reach)


def _declare_smooth_upsample(name: str, *, cubic: bool) -> None:
    def resampled(node: Node, x: Expr, size: Any, scales: Sequence[float | None], align_corners: bool) -> Expr:
        dtype, x = x.known_element_type, node.wide(x)
        taps = partial(_smooth_taps, align_corners=align_corners, cubic=cubic)
        if dtype == U8:
            return _resampled_pixels(node, x, size, scales, taps)
        for axis, scale in [*enumerate(scales, 2)][::-1]:  # the last axis first, as in PyTorch
            old = shape_of(x)[axis]
            new = size[axis - 2] if size is not None else _scaled_size(node, old, scale or 1)
            if old != new:
                x = node.emit(ops.interpolate(x, *taps(node, old, new, scale, x.known_element_type), axis=axis))
        return node.cast(x, dtype)

    @converts(name)
    def convert(
        node: Node,
        self: Expr,
        output_size: Any,
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Expr:
        return resampled(node, self, output_size, (scales_h, scales_w), align_corners)

    @converts(f"{name}.vec")
    def convert_vec(node: Node, input: Expr, output_size: Any, align_corners: bool, scale_factors: Any = None) -> Expr:
        return resampled(node, input, output_size, scale_factors or (None, None), align_corners)


_declare_smooth_upsample("_upsample_bilinear2d_aa", cubic=False)
_declare_smooth_upsample("_upsample_bicubic2d_aa", cubic=True)


_GRID_MODES = ("linear", "nearest", "cubic")
_CUBIC_BORDER = 3  # the number of elements outside the image that the taps of clamped positions reach
_GRID_PADDINGS = ("zeros", "border", "reflection")


def _reflected(node: Node, position: Expr, extent: Expr, align_corners: bool) -> Expr:
    """Return positions along an axis, mirrored at both ends of the axis as often as needed."""
    if align_corners:
        low, period = 0.0, node.emit(ops.multiply(ops.subtract(extent, 1.0), 2.0))
    else:
        low, period = -0.5, node.emit(ops.multiply(extent, 2.0))
    distance = node.emit(ops.abs(ops.subtract(position, low)))
    phase = node.emit(ops.subtract(distance, ops.multiply(ops.floor(ops.divide(distance, period)), period)))
    return node.emit(ops.add(ops.minimum(phase, ops.subtract(period, phase)), low))


@converts("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def _grid_sampler(
    node: Node, input: Expr, grid: Expr, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Expr:
    """Samples at the coordinates in the grid, which are in [-1, 1], the last axis first."""
    mode, padding = _GRID_MODES[interpolation_mode], _GRID_PADDINGS[padding_mode]
    x, points = node.wide(input), node.wide(grid)
    spatial = shape_of(x)[2:]
    has_border = mode == "cubic" and padding == "border"  # PyTorch moves each tap into the image, relvm the position
    parts = []
    for at, size in enumerate(spatial):
        place = len(spatial) - 1 - at
        coordinate = node.emit(ops.slice(points, begin=(place,), end=(place + 1,), axes=(len(shape_of(points)) - 1,)))
        extent = node.number(size, points.known_element_type)
        shifted = ops.add(coordinate, 1.0)
        if align_corners:
            position = node.emit(ops.multiply(shifted, ops.multiply(ops.subtract(extent, 1.0), 0.5)))
        else:
            position = node.emit(ops.subtract(ops.multiply(shifted, ops.multiply(extent, 0.5)), 0.5))
        if has_border:  # all taps of a position outside [-2, extent] are the same element
            nearest = ops.minimum(ops.maximum(position, -2.0), extent)
            unknown = ops.multiply(position, 0.0)  # NaN at positions that are infinite or NaN, as in PyTorch
            position = ops.add(ops.add(nearest, float(_CUBIC_BORDER)), unknown)
        elif mode != "cubic" and padding != "zeros":  # PyTorch moves positions into the image before it rounds them
            if padding == "reflection":
                position = _reflected(node, position, extent, align_corners)
            last = ops.minimum(position, ops.subtract(extent, 1.0))
            position = ops.where(ops.greater(position, 0.0), last, 0.0)  # NaN becomes 0
        parts.append(position)
    if has_border:
        pads = (0, 0, *(_CUBIC_BORDER for _ in spatial)) * 2
        x, padding = node.emit(ops.pad(x, pads=pads, mode="edge")), "zeros"
    elif mode != "cubic" and padding == "reflection":
        padding = "border"
    places = node.emit(ops.concat(*(node.emit(part) for part in parts), axis=len(shape_of(points)) - 1))
    return ops.grid_sample(x, places, mode=mode, padding=padding, align_corners=bool(align_corners))


@converts("affine_grid_generator")
def _affine_grid(node: Node, theta: Expr, size: Sequence[AnyDim], align_corners: bool) -> Expr:
    spatial = [known_int(each, "the size") for each in size[2:]]
    dtype = theta.known_element_type
    axes = []
    for extent in spatial:
        steps = np.linspace(-1, 1, extent) if extent > 1 else np.zeros(1)
        axes.append(steps if align_corners else steps * (extent - 1) / extent)
    grid = np.meshgrid(*axes, indexing="ij")
    base = np.stack([*reversed(grid), np.ones(spatial)], axis=-1).reshape(-1, len(spatial) + 1).astype(dtype.numpy)
    order = (0, 2, 1)
    result = node.emit(ops.matmul(constant(base), node.emit(ops.transpose(theta, perm=order))))
    return node.reshaped(result, (size[0], *spatial, len(spatial)))
