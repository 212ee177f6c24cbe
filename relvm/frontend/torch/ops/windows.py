"""Pooling, resampling, and other operators on windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmUnsupportedError
from relvm.frontend.torch.ops.indexing import as_dim
from relvm.frontend.torch.registry import Node, converts, known_int, shape_of
from relvm.ir.dtypes import F32, F64, I64, DType
from relvm.ir.expr import Expr, Shape, constant
from relvm.ir.symbolic import AnyDim, dim_op, product


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
    """

    def __init__(
        self, shape: Sequence[AnyDim], kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, rank: int
    ) -> None:
        self.kernel = each_axis(kernel, rank, ())
        self.strides = each_axis(stride, rank, self.kernel)
        self.before = each_axis(padding, rank, (0,) * rank)
        self.dilations = each_axis(dilation, rank, (1,) * rank)
        self.extra = [0] * rank
        if ceil_mode:
            for axis, size in enumerate(shape[-rank:]):
                self.extra[axis] = self._missing(axis, known_int(size, "the size of an axis with ceil_mode"))

    def _missing(self, axis: int, size: int) -> int:
        span = (self.kernel[axis] - 1) * self.dilations[axis] + 1
        pad, step = self.before[axis], self.strides[axis]
        count = -(-(size + 2 * pad - span) // step) + 1
        if (count - 1) * step >= size + pad:  # the last window would begin in the padding
            count -= 1
        return max((count - 1) * step + span - (size + 2 * pad), 0)

    def attributes(self) -> dict[str, Any]:
        after = tuple(pad + more for pad, more in zip(self.before, self.extra, strict=True))
        return {"kernel": self.kernel, "strides": self.strides, "pads": (*self.before, *after)}


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
        values = _without_batch(node, ops.max_pool(x, **attributes), added)
        if not with_indices:
            return values
        indices = node.emit(ops.max_pool_indices(x, **attributes))
        area = product(shape_of(x)[2:])  # positions count from the start of each channel
        indices = node.emit(ops.modulo(indices, node.number(area, I64)))
        return values, _without_batch(node, indices, added)


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
        return _without_batch(node, result, added)


for _rank in (1, 2, 3):
    _average_pool(_rank, f"avg_pool{_rank}d")


def _adaptive_ranges(size: int, count: int) -> list[tuple[int, int]]:
    """Return the start and the end of each of `count` windows of adaptive pooling, along an axis of size `size`."""
    return [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def _adaptive_matrix(size: int, count: int, dtype: DType) -> np.ndarray:
    """Return the matrix, of shape (size, count), whose product with an axis is the mean of each adaptive window."""
    matrix = np.zeros((size, count), np.float64)
    for column, (start, end) in enumerate(_adaptive_ranges(size, count)):
        matrix[start:end, column] = 1 / (end - start)
    return matrix.astype(dtype.numpy)


def _adaptive_average(rank: int, *names: str) -> None:
    @converts(*names)
    def convert(node: Node, self: Expr, output_size: Any) -> Expr:
        x, added = _with_batch(node, node.wide(self), rank)
        targets = (output_size,) * rank if isinstance(output_size, int) else tuple(output_size)
        shape = shape_of(x)
        targets = tuple(shape[2 + i] if target is None or target == -1 else target for i, target in enumerate(targets))
        if all(target == 1 for target in targets):
            axes = tuple(range(2, 2 + rank))
            return _without_batch(node, ops.mean(x, axes=axes, keepdims=True), added)
        sizes = [known_int(size, "the size of an axis") for size in shape[2:]]
        counts = [known_int(target, "the output size") for target in targets]
        if all(count and size % count == 0 for size, count in zip(sizes, counts, strict=True)):
            kernel = tuple(size // count for size, count in zip(sizes, counts, strict=True))
            return _without_batch(node, ops.average_pool(x, kernel=kernel, strides=kernel), added)
        dtype = x.known_element_type
        for axis, (size, count) in enumerate(zip(sizes, counts, strict=True), 2):
            matrix = constant(_adaptive_matrix(size, count, dtype))
            x = node.emit(_along_axis(node, x, matrix, axis))
        return _without_batch(node, x, added)


def _along_axis(node: Node, x: Expr, matrix: Expr, axis: int) -> Expr:
    """Return the product of an axis of x with a matrix of shape (old size, new size)."""
    rank = len(shape_of(x))
    if axis == rank - 1:
        return ops.matmul(x, matrix)
    order = [*(each for each in range(rank) if each != axis), axis]
    moved = node.emit(ops.matmul(node.emit(ops.transpose(x, perm=tuple(order))), matrix))
    back = [order.index(each) for each in range(rank)]
    return ops.transpose(moved, perm=tuple(back))


_adaptive_average(1, "adaptive_avg_pool1d")
_adaptive_average(2, "adaptive_avg_pool2d", "_adaptive_avg_pool2d")
_adaptive_average(3, "adaptive_avg_pool3d", "_adaptive_avg_pool3d")


def _adaptive_maximum(rank: int, name: str) -> None:
    @converts(name)
    def convert(node: Node, self: Expr, output_size: Any) -> tuple[Expr, Expr]:
        x, added = _with_batch(node, node.wide(self), rank)
        targets = (output_size,) * rank if isinstance(output_size, int) else tuple(output_size)
        sizes = [known_int(size, "the size of an axis") for size in shape_of(x)[2:]]
        positions = _window_positions(sizes, [known_int(target, "the output size") for target in targets])
        flat = node.reshaped(x, (*shape_of(x)[:2], product(sizes)))
        count, taps = positions.shape
        windows = node.emit(ops.gather(flat, constant(positions), axis=2))
        place = node.emit(ops.argmax(windows, axis=3, keepdims=True))
        shape = (*shape_of(x)[:2], *targets)
        values = node.reshaped(node.emit(ops.gather_elements(windows, place, axis=3)), shape)
        start = node.emit(ops.multiply(ops.iota(Shape((count,))), taps))
        rows = node.emit(ops.add(node.reshaped(place, (*shape_of(x)[:2], count)), start))
        indices = node.reshaped(node.emit(ops.gather(constant(positions.reshape(-1)), rows, axis=0)), shape)
        return _without_batch(node, values, added), _without_batch(node, indices, added)


def _window_positions(sizes: Sequence[int], counts: Sequence[int]) -> np.ndarray:
    """Return the flat positions of the elements of each adaptive window, one window in each row.

    Windows of fewer elements than the largest one repeat their last position.

    sizes, counts: the size of the input and the number of windows on each axis.
    """
    rows = []
    for window in np.ndindex(*counts):
        ranges = [
            np.arange(*_adaptive_ranges(size, count)[i]) for size, count, i in zip(sizes, counts, window, strict=True)
        ]
        grid = np.meshgrid(*ranges, indexing="ij")
        rows.append(np.ravel_multi_index([each.reshape(-1) for each in grid], sizes))
    longest = max((len(row) for row in rows), default=1)
    return np.array([np.concatenate([row, np.repeat(row[-1:], longest - len(row))]) for row in rows], np.int64)


for _rank in (1, 2, 3):
    _adaptive_maximum(_rank, f"adaptive_max_pool{_rank}d")


def _unpool(rank: int, name: str) -> None:
    @converts(name)
    def convert(
        node: Node, self: Expr, indices: Expr, output_size: Any, stride: Any = None, padding: Any = None
    ) -> Expr:
        x, added = _with_batch(node, self, rank)
        at, _ = _with_batch(node, indices, rank)
        batch, channels = shape_of(x)[:2]
        count, area = product(shape_of(x)[2:]), product(tuple(output_size))
        rows, values = node.reshaped(at, (batch, channels, count)), node.reshaped(x, (batch, channels, count))
        zeros = node.full(0, (batch, channels, area), x.known_element_type)
        found = node.emit(ops.scatter_elements(zeros, rows, values, axis=2))
        return _without_batch(node, node.reshaped(found, (batch, channels, *output_size)), added)


_unpool(2, "max_unpool2d")
_unpool(3, "max_unpool3d")


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
    x = node.wide(x)
    computed = x.known_element_type
    for axis, scale in enumerate(scales, 2):
        old = shape_of(x)[axis]
        if size is not None:
            new = size[axis - 2]
        else:
            new = _scaled_size(node, old, scale or 1)
        if mode.startswith("nearest"):
            x = node.emit(ops.gather(x, _nearest_positions(node, old, new, scale, mode == "nearest-exact"), axis=axis))
            continue
        if isinstance(old, int) and isinstance(new, int):
            taps = _taps(old, new, scale, align_corners, mode, computed)
        else:
            taps = _taps_of_sizes(node, old, new, scale, align_corners, mode, computed)
        x = node.emit(ops.interpolate(x, *taps, axis=axis))
    return node.cast(x, dtype) if dtype.is_float or mode.startswith("nearest") else x


def _scaled_size(node: Node, old: AnyDim, scale: float) -> AnyDim:
    """Return the product of a size and a scale, rounded down."""
    if isinstance(old, int):
        return int(old * scale)
    top, bottom = scale.as_integer_ratio()
    if bottom <= 1 << 10:
        return dim_op("floordiv", old * top, bottom)
    exact = node.emit(ops.multiply(node.number(old, F64), scale))
    return as_dim(node, node.cast(node.emit(ops.floor(exact)), I64))


def _nearest(old: int, new: int, scale: float | None, *, exact: bool) -> np.ndarray:
    ratio = np.float32(1 / scale) if scale is not None and scale > 0 else np.float32(old) / np.float32(new)
    at = np.arange(new, dtype=np.float32)
    positions = np.floor((at + np.float32(0.5)) * ratio) if exact else np.floor(at * ratio)
    if not exact and new == old:
        positions = at
    elif not exact and new == 2 * old:
        positions = np.arange(new) // 2
    return np.minimum(positions.astype(np.int64), old - 1)


def _taps(old: int, new: int, scale: float | None, align_corners: bool, mode: str, dtype: DType) -> tuple[Expr, Expr]:
    """Return, for each new element along an axis, the positions and the weights of the old elements that it sums."""
    real: Any = np.float64 if dtype.bits == 64 else np.float32
    at = np.arange(new, dtype=real)
    if align_corners:
        ratio = real(old - 1) / real(new - 1) if new > 1 else real(0)
        source = at * ratio
    else:
        is_copy = mode == "linear" and old == new  # whatever the scale is
        ratio = real(1 / scale) if scale is not None and scale > 0 and not is_copy else real(old) / real(new)
        source = (at + real(0.5)) * ratio - real(0.5)
        if mode == "linear":
            source = np.maximum(source, 0)
    first = np.floor(source)
    rest = (source - first).astype(real)
    if mode == "linear":
        low = np.minimum(first.astype(np.int64), old - 1)
        rest = np.clip(source - low, 0, 1)
        indices = np.stack([low, np.minimum(low + 1, old - 1)])
        weights = np.stack([1 - rest, rest])
    else:
        indices = np.clip(first.astype(np.int64)[None, :] + np.arange(-1, 3)[:, None], 0, old - 1)
        weights = np.stack([_cubic(np.abs(rest + real(1 - i))) for i in range(4)])
    return constant(indices), constant(weights.astype(dtype.numpy))


def _places(node: Node, new: AnyDim, dtype: DType) -> Expr:
    return node.cast(node.emit(ops.iota(Shape((new,)))), dtype)


def _ratio(node: Node, old: AnyDim, new: AnyDim, scale: float | None, dtype: DType, factors: Sequence[int]) -> Expr:
    """Return the distance between adjacent new elements, where the distance between adjacent old elements is 1.

    factors: for these quotients of the sizes, the distance does not depend on the scale.
    """
    if scale is None or scale <= 0:
        return node.emit(ops.divide(node.number(old, dtype), node.number(new, dtype)))
    ratio = node.number(1 / scale, dtype)
    for factor in factors:
        is_multiple = ops.equal(node.number(new, I64), node.number(factor * old, I64))
        ratio = node.emit(ops.where(is_multiple, node.number(1 / factor, dtype), ratio))
    return ratio


def _nearest_positions(node: Node, old: AnyDim, new: AnyDim, scale: float | None, exact: bool) -> Expr:
    """Return the position of the old element for each new one."""
    if isinstance(old, int) and isinstance(new, int):
        return constant(_nearest(old, new, scale, exact=exact))
    at = _places(node, new, F32)
    shifted = ops.add(at, 0.5) if exact else at
    found = ops.floor(ops.multiply(shifted, _ratio(node, old, new, scale, F32, () if exact else (1, 2))))
    positions = node.cast(node.emit(found), I64)
    return node.emit(ops.minimum(positions, node.emit(ops.subtract(node.number(old, I64), 1))))


def _taps_of_sizes(
    node: Node, old: AnyDim, new: AnyDim, scale: float | None, align_corners: bool, mode: str, dtype: DType
) -> tuple[Expr, Expr]:
    """Return what `_taps` returns, for symbolic sizes."""
    at = _places(node, new, dtype)
    last = node.emit(ops.subtract(node.number(old, I64), 1))
    if align_corners:
        steps = node.emit(ops.maximum(node.emit(ops.subtract(node.number(new, dtype), 1.0)), 1.0))
        source = node.emit(ops.multiply(at, ops.divide(node.cast(last, dtype), steps)))
    else:
        ratio = _ratio(node, old, new, scale, dtype, (1,) if mode == "linear" else ())
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
        weights = [node.emit(_cubic_of(node.emit(ops.abs(ops.add(rest, float(1 - i)))))) for i in range(4)]
    indices = ops.minimum(ops.maximum(ops.add(whole, offsets[:, None]), 0), last)
    rows = [node.reshaped(weight, (1, new)) for weight in weights]
    return node.emit(indices), node.emit(ops.concat(*rows, axis=0))


def _cubic_of(distance: Expr) -> Expr:
    """Return what `_cubic` returns, for a tensor."""
    a = -0.75
    squared = ops.multiply(distance, distance)
    near = ops.add(ops.multiply(ops.subtract(ops.multiply(distance, a + 2), a + 3), squared), 1.0)
    inner = ops.add(ops.multiply(ops.subtract(ops.multiply(distance, a), 5 * a), distance), 8 * a)
    return ops.where(ops.less_equal(distance, 1.0), near, ops.subtract(ops.multiply(inner, distance), 4 * a))


def _cubic(distance: np.ndarray) -> np.ndarray:
    """Return the weights of cubic convolution, Keys' kernel with a = -0.75."""
    a = -0.75
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, far)


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


_GRID_MODES = ("linear", "nearest", "cubic")
_GRID_PADDINGS = ("zeros", "border", "reflection")


@converts("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def _grid_sampler(
    node: Node, input: Expr, grid: Expr, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Expr:
    """Samples at the coordinates in the grid, which are in [-1, 1], the last axis first."""
    if interpolation_mode == 2 and padding_mode:
        raise RelvmUnsupportedError("cubic interpolation with another padding than zeros is not supported")
    x, points = node.wide(input), node.wide(grid)
    spatial = shape_of(x)[2:]
    parts = []
    for at, size in enumerate(spatial):
        place = len(spatial) - 1 - at
        coordinate = node.emit(ops.slice(points, begin=(place,), end=(place + 1,), axes=(len(shape_of(points)) - 1,)))
        extent = node.number(size, points.known_element_type)
        shifted = ops.add(coordinate, 1.0)
        if align_corners:
            parts.append(ops.multiply(ops.multiply(shifted, 0.5), ops.subtract(extent, 1.0)))
        else:
            parts.append(ops.multiply(ops.subtract(ops.multiply(shifted, extent), 1.0), 0.5))
    places = node.emit(ops.concat(*(node.emit(part) for part in parts), axis=len(shape_of(points)) - 1))
    mode, padding = _GRID_MODES[interpolation_mode], _GRID_PADDINGS[padding_mode]
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
