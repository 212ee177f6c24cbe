"""Interpolation of tensors at computed positions between their elements."""

from __future__ import annotations

import itertools
import math

import numpy as np

from relvm.errors import RelvmArgumentError
from relvm.ir.dtypes import I64
from relvm.ir.loop_ir import Literal, Operation, Scalar, as_scalar, select
from relvm.ir.operator import expect, op
from relvm.ir.symbolic import known_size
from relvm.ir.type_rules import expect_equal_dims, expect_float, expect_tensor
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import CustomKernel, parallel_loop_nest, strides_of

_MODES = ("nearest", "linear", "cubic")
_PADDINGS = ("zeros", "border", "reflection")
_MAX_AXES = 4  # limit on the spatial axes, because a kernel has code for up to 4 ** axes elements near a position
_SHARPNESS = -0.75  # coefficient a of Keys' cubic kernel


def _numpy_bounds(size: int, align_corners: bool) -> tuple[float, float]:
    return (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)


def _numpy_pad_positions(positions: np.ndarray, size: int, padding: str, align_corners: bool) -> np.ndarray:
    """Map positions that are outside an axis of `size` elements to positions inside it, as `padding` defines.

    With padding "zeros", return all positions unchanged.
    """
    low, high = _numpy_bounds(size, align_corners)
    outside = (positions < low) | (positions > high)
    match padding:
        case "border":
            nearest = np.where(positions > 0, np.minimum(positions, size - 1), 0)
            return np.where(outside, nearest, positions)
        case "reflection":
            span = high - low
            with np.errstate(invalid="ignore"):
                distance = np.abs(positions - low)
                phase = np.fmod(distance, positions.dtype.type(2 * span)) if span > 0 else np.zeros_like(positions)
            mirrored = low + np.where(phase > span, 2 * span - phase, phase)
            return np.where(outside, mirrored if span > 0 else 0, positions).astype(positions.dtype)
    return positions


def _numpy_weights(mode: str, part: np.ndarray) -> list[np.ndarray]:
    match mode:
        case "nearest":
            return [np.ones_like(part)]
        case "linear":
            return [1 - part, part]
    a = _SHARPNESS
    far = [((a * d - 5 * a) * d + 8 * a) * d - 4 * a for d in (part + 1, 2 - part)]
    near = [((a + 2) * d - (a + 3)) * d * d + 1 for d in (part, 1 - part)]
    return [far[0], near[0], near[1], far[1]]


def _numpy_grid_sample(x, grid, *, mode: str, padding: str, align_corners: bool) -> np.ndarray:
    batch, channels, *sizes = x.shape
    shape = (batch, channels, *grid.shape[1:-1])
    grid = grid.reshape(batch, math.prod(shape[2:]), len(sizes)).astype(x.dtype if x.dtype.kind == "f" else grid.dtype)
    taps = []
    for axis, size in enumerate(sizes):
        at = np.rint(grid[..., axis]) if mode == "nearest" else grid[..., axis]
        at = _numpy_pad_positions(at, size, padding, align_corners)
        base = at if mode == "nearest" else np.floor(at)
        first = 1 if mode == "cubic" else 0
        weights = _numpy_weights(mode, at - base)
        found = [_numpy_pad_positions(base + (i - first), size, padding, align_corners) for i in range(len(weights))]
        taps.append([(f, (f >= 0) & (f < size), w) for f, w in zip(found, weights, strict=True)])
    result = np.zeros((batch, channels, grid.shape[1]), x.dtype)
    flat = x.reshape(batch, channels, math.prod(sizes))
    for chosen in itertools.product(*taps):
        inside = np.logical_and.reduce([tap[1] for tap in chosen])
        if not inside.any():
            continue
        offset = np.zeros(inside.shape, np.int64)
        for (index, _, _), stride in zip(chosen, strides_of(tuple(sizes)), strict=True):
            offset += np.where(inside, index, 0).astype(np.int64) * known_size(stride)
        near = np.where(inside[:, None], np.take_along_axis(flat, offset[:, None].repeat(channels, 1), 2), 0)
        weight = np.multiply.reduce([tap[2] for tap in chosen])
        result = result + near.astype(x.dtype) * weight[:, None] if mode != "nearest" else near.astype(x.dtype)
    return result.reshape(shape)


def _pad_positions(position: Scalar, size: Scalar, padding: str, align_corners: bool) -> Scalar:
    dtype = position.dtype
    low, high = (Literal(0.0, dtype), size - 1) if align_corners else (Literal(-0.5, dtype), size - 0.5)
    match padding:
        case "border":
            clamped = select(position > 0, select(position < size - 1, position, size - 1), Literal(0.0, dtype))
        case "reflection":
            span = high - low
            phase = Operation("fmod", (Operation("abs", (position - low,), dtype), span * 2), dtype)
            mirrored = low + select(phase > span, span * 2 - phase, phase)
            clamped = select(span > 0, mirrored, Literal(0.0, dtype))
        case _:
            return position
    return select((position < low).logical_or(position > high), clamped, position)


def _weights(mode: str, part: Scalar) -> list[Scalar]:
    match mode:
        case "nearest":
            return [Literal(1.0, part.dtype)]
        case "linear":
            return [1 - part, part]
    a = _SHARPNESS
    far = [((d * a - 5 * a) * d + 8 * a) * d - 4 * a for d in (part + 1, 2 - part)]
    near = [(d * (a + 2) - (a + 3)) * d * d + 1 for d in (part, 1 - part)]
    return [far[0], near[0], near[1], far[1]]


Tap = tuple[Scalar, Scalar, Scalar]  # (index along an axis, whether it is in range, weight)


def _taps(k: KernelBuilder, position: Scalar, size: Scalar, mode: str, padding: str, align_corners: bool) -> list[Tap]:
    """Return the taps of `position` along one axis: the elements that contribute to the interpolated value.

    A tap consists of the index of the element, the condition that the index is in range, and the weight of the element.
    """
    dtype = position.dtype
    extent = k.let("extent", size.to(dtype))
    position = k.let("at", Operation("round", (position,), dtype) if mode == "nearest" else position)
    position = k.let("at", _pad_positions(position, extent, padding, align_corners))
    base = position if mode == "nearest" else k.let("base", Operation("floor", (position,), dtype))
    part = k.let("part", position - base)
    taps = []
    for i, weight in enumerate(_weights(mode, part)):
        step = i - 1 if mode == "cubic" else i
        found = k.let("found", _pad_positions(k.let("tap", base + step), extent, padding, align_corners))
        inside = k.let("inside", (found >= 0).logical_and(found < extent))
        index = k.let("index", select(inside, found, Literal(0.0, dtype)).to(I64))
        taps.append((index, inside, k.let("weight", weight)))
    return taps


def _grid_sample(k: KernelBuilder, inputs, outputs, *, mode: str, padding: str, align_corners: bool) -> None:
    """Generate the kernel of `grid_sample`.

    The elements near a position, and their weights, are computed once for all channels.
    """
    (x, grid), (out,) = inputs, outputs
    channels, sizes = as_scalar(x.shape[1], I64), x.shape[2:]
    points = k.size(grid.shape[1:-1])
    volume = k.size(sizes)
    wide = x.dtype if x.dtype.is_float else grid.dtype
    taps_of_axis = {"nearest": 1, "linear": 2, "cubic": 4}[mode]
    with parallel_loop_nest(k, [x.shape[0], points], channels * 4 * taps_of_axis ** len(sizes) + 100) as (image, point):
        start = k.let("start", (image * points + point) * len(sizes))
        axes = []
        for axis, size in enumerate(sizes):
            at = k.let("place", grid.flat(start + axis).to(wide))
            axes.append(_taps(k, at, as_scalar(size, I64), mode, padding, align_corners))
        terms = []
        for chosen in itertools.product(*axes):
            offset, inside, weight = _combine_taps(chosen, sizes)
            terms.append((k.let("offset", offset), k.let("within", inside), k.let("factor", weight)))
        with k.loop(channels, name="c") as channel:
            source = k.let("source", (image * channels + channel) * volume)
            total: Scalar | None = None
            for offset, inside, weight in terms:
                kept = select(inside, x.flat(source + offset), Literal(0, x.dtype))
                element = kept if mode == "nearest" else kept * weight
                total = element if total is None else total + element
            k.store(out, ((image * channels + channel) * points + point,), total)


def _combine_taps(taps: tuple[Tap, ...], sizes: tuple) -> tuple[Scalar, Scalar, Scalar]:
    """Combine one tap along each axis to a tap of the whole image.

    A tap is an element that contributes to an interpolated value.  Return the flat position of the combined tap, the
    condition that it is in range, and its weight.

    sizes: the spatial dimensions of the image.
    """
    offset: Scalar
    inside: Scalar
    weight: Scalar
    (offset, inside, weight), *rest = taps
    for size, (index, within, factor) in zip(sizes[1:], rest, strict=True):
        offset = offset * as_scalar(size, I64) + index
        inside, weight = inside.logical_and(within), weight * factor
    return offset, inside, weight


@op("grid_sample", numpy=_numpy_grid_sample, lower=CustomKernel(_grid_sample))
def grid_sample(
    x: TensorType, grid: TensorType, *, mode: str, padding: str = "zeros", align_corners: bool = False
) -> TensorType:
    """The values of x, interpolated at positions between its elements, for every channel.

    x: a tensor of shape (n, channels, size...), with 1 to 4 spatial axes, and of a float dtype.  If mode is "nearest",
    any dtype is allowed.
    grid: a tensor of a float dtype and of shape (n, ..., axes).  It contains the coordinates of each position along the
    spatial axes.  Coordinates are in units of elements, and 0 is the center of the first element.
    mode: "nearest" (ties to even), "linear", or "cubic" (Keys' kernel, a = -0.75).
    padding: the elements outside x.  "zeros": they are 0.  "border": they equal the nearest element of x.
    "reflection": they are the elements of x, mirrored at both ends of x as often as needed.
    align_corners: where the ends of x are along a spatial axis.  If true, they are at the centers of the first and the
    last element.  If false, they are half an element farther out.  "reflection" mirrors x at these ends, and "border"
    moves a position beyond them to the nearest element.
    Result: a tensor of the dtype of x and of shape (n, channels, ...).
    Raises RelvmTypeError if an argument has another dtype or rank.  Raises RelvmArgumentError if the mode or the
    padding is unknown, or align_corners is not a bool.  Raises RelvmShapeError if the batch sizes differ, or the number
    of coordinates differs from the number of spatial axes.
    Source: ONNX GridSample-22.

    Examples:

        >>> run(
        ...     'grid_sample(x, grid, mode="linear")',
        ...     x=[[[10.0, 20.0, 30.0]]],
        ...     grid=[[[0.5], [1.0], [1.75]]],
        ... )
        [[[15.  20.  27.5]]]
    """
    expect_float("grid_sample", grid=grid)
    expect_tensor("grid_sample", x=x)
    for name, value, known in (("mode", mode, _MODES), ("padding", padding, _PADDINGS)):
        message = "grid_sample: {} is {!r}, expected one of {}"
        expect(value in known, message, name, value, ", ".join(known), error=RelvmArgumentError)
    is_bool = isinstance(align_corners, bool)
    expect(is_bool, "grid_sample: align_corners is {!r}, expected a bool", align_corners, error=RelvmArgumentError)
    if mode != "nearest":
        expect_float("grid_sample", x=x)
    for name, type_, least in (("x", x, 3), ("grid", grid, 2)):
        fits = type_.rank is None or type_.rank >= least
        expect(fits, "grid_sample: {} has rank {}, expected at least {}", name, type_.rank, least)
    fits = x.rank is None or x.rank <= 2 + _MAX_AXES
    expect(fits, "grid_sample: x has rank {}, expected at most {}", x.rank, 2 + _MAX_AXES)
    if x.shape is None or grid.shape is None:
        return TensorType(x.dtype, None, grid.rank)
    expect_equal_dims("grid_sample", "batch sizes of x and grid differ", x.shape[0], grid.shape[0])
    axes = len(x.shape) - 2
    expect_equal_dims("grid_sample", "numbers of spatial axes and of coordinates differ", axes, grid.shape[-1])
    return TensorType(x.dtype, (*x.shape[:2], *grid.shape[1:-1]))
