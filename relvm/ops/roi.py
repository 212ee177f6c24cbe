"""Operators that resample regions of interest of images to a common size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmArithmeticError, RelvmIndexError
from relvm.ir.dtypes import I64
from relvm.ir.loop_ir import Buffer, Literal, Operation, Scalar, as_scalar, maximum, minimum, select
from relvm.ir.operator import expect, op
from relvm.ir.symbolic import AnyDim
from relvm.ir.type_rules import expect_equal_dims, expect_float, expect_integers, expect_same_dtype, expect_tensor
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import CustomKernel, parallel_loop_nest

_MODES = ("avg", "max")


def _numpy_images(op: str, images: np.ndarray, count: int) -> None:
    for image in images:
        if not 0 <= image < count:
            raise RelvmIndexError(f"{op}: image {image} is out of range; x has {count} images")


def _check_images(k: KernelBuilder, op: str, images: Buffer, count: AnyDim) -> None:
    size = as_scalar(count, I64)
    with k.loop(k.size(images.shape), name="n") as n:
        image = k.let("image", images.flat(n))
        k.fail(
            (image < 0).logical_or(image >= size),
            "INDEX_ERROR",
            f"{op}: image %lld is out of range; x has %lld images",
            image,
            size,
        )


# Limit on the number of samples of an output element along an axis.  A region that needs more samples, or that is not
# finite, is an error.
_MAX_SAMPLES = 2**15
_ENDLESS = "{}: region %lld must be finite and have at most {} elements for each element of the result"


def _numpy_sides(op: str, regions: np.ndarray, size: tuple[int, int], scale: float) -> None:
    starts = regions[:, 1::-1] * regions.dtype.type(scale)
    sides = regions[:, :1:-1] * regions.dtype.type(scale) - starts
    bounded = np.isfinite(sides) & (sides < np.array(size) * _MAX_SAMPLES)
    if not bounded.all():
        number = np.argmin(bounded.all(axis=1))
        raise RelvmArithmeticError(_ENDLESS.format(op, _MAX_SAMPLES).replace("%lld", str(number)))


def _check_sides(k: KernelBuilder, op: str, regions: Buffer, size: tuple[int, int], scale: float) -> None:
    message = _ENDLESS.format(op, _MAX_SAMPLES)
    with k.loop(k.size(regions.shape[:1]), name="n") as n:
        for first, indices in ((1, size[0]), (0, size[1])):
            start = k.let("start", regions[n, first] * scale)
            side = k.let("side", regions[n, first + 2] * scale - start)
            bounded = (side - side).eq(0).logical_and(side < float(indices * _MAX_SAMPLES))
            k.fail(bounded.eq(False), "ARITHMETIC_ERROR", message, n)


def _check_region_arguments(op: str, x: TensorType, regions: TensorType, images: TensorType, size: Any) -> TensorType:
    """Check the arguments that roi_align and roi_max_pool have in common, and return the type of the result.

    op: the operator, for messages.
    """
    expect_float(op, x=x)
    expect_same_dtype(op, x=x, regions=regions)
    expect_tensor(op, images=images)
    expect(images.dtype == I64, "{}: images has dtype {}, expected i64", op, images.dtype)
    size = expect_integers(op, "size", size, 2)
    expect(min(size) > 0, "{}: size is {}, expected numbers of at least 1", op, size, error=RelvmArgumentError)
    for name, type_, rank in (("x", x, 4), ("regions", regions, 2), ("images", images, 1)):
        expect(type_.rank in (None, rank), "{}: {} has rank {}, expected {}", op, name, type_.rank, rank)
    if x.shape is None or regions.shape is None or images.shape is None:
        return TensorType(x.dtype, None, 4)
    expect_equal_dims(op, "a region must consist of 4 numbers", 4, regions.shape[1])
    expect_equal_dims(op, "numbers of regions and images differ", regions.shape[0], images.shape[0])
    return TensorType(x.dtype, (regions.shape[0], x.shape[1], *size))


# ---- averages and maxima between elements ----


def _numpy_tap(position: float, size: int) -> tuple[bool, int, int, float]:
    """Return how to interpolate at `position` along an axis of `size` elements.

    The result consists of four values: whether the position is at most one element outside the axis, the index of the
    element before the position, the index of the element after it, and the weight of this second element.
    """
    if position < -1 or position > size:
        return False, 0, 0, 0.0
    position = max(position, 0)
    low = min(int(position), size - 1)
    high = min(low + 1, size - 1)
    return True, low, high, (position - low if high > low else 0.0)


def _numpy_roi_align(x, regions, images, *, size, mode, samples, scale, half_pixel) -> np.ndarray:
    _numpy_images("roi_align", images, len(x))
    _numpy_sides("roi_align", regions, size, scale)
    sizes, result = x.shape[2:], np.zeros((len(regions), x.shape[1], *size), x.dtype)
    shift = x.dtype.type(0.5 if half_pixel else 0.0)
    for n, region in enumerate(regions):
        ends = region * x.dtype.type(scale) - shift
        starts, extents = ends[1::-1], ends[:1:-1] - ends[1::-1]
        extents = extents if half_pixel else np.maximum(extents, x.dtype.type(1))
        steps = [extent / x.dtype.type(count) for extent, count in zip(extents, size, strict=True)]
        counts = [samples or max(math.ceil(step), 0) for step in steps]
        for place in np.ndindex(*size):
            found = []
            for at in np.ndindex(*counts):
                spots = [
                    s + p * d + (i + 0.5) * d / c
                    for s, p, d, i, c in zip(starts, place, steps, at, counts, strict=True)
                ]
                (near, top, bottom, v), (close, left, right, u) = map(_numpy_tap, spots, sizes)
                corners = [(top, left, (1 - v) * (1 - u)), (top, right, (1 - v) * u)]
                corners += [(bottom, left, v * (1 - u)), (bottom, right, v * u)]
                weight = near and close
                found.append([x[images[n], :, r, c] * x.dtype.type(w * weight) for r, c, w in corners])
            if found and mode == "avg":
                result[(n, slice(None), *place)] = np.sum(found, axis=(0, 1)) / len(found)
            elif found:
                result[(n, slice(None), *place)] = np.max(found, axis=(0, 1))
    return result


def _tap(k: KernelBuilder, position: Scalar, extent: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    dtype = position.dtype
    near = k.let("near", (position < -1).logical_or(position > extent.to(dtype)).eq(False))
    position = k.let("at", select(near.logical_and(position > 0), position, Literal(0.0, dtype)))
    low = k.let("low", minimum(position.to(I64), extent - 1))
    high = k.let("high", minimum(low + 1, extent - 1))
    weight = k.let("weight", select(high > low, position - low.to(dtype), Literal(0.0, dtype)))
    return near, low, high, weight


def _roi_align(k: KernelBuilder, inputs, outputs, *, size, mode, samples, scale, half_pixel) -> None:
    """Generate the kernel of `roi_align`.

    The positions of the elements near a sample, and their weights, are computed once for all channels.
    """
    (x, regions, images), (out,) = inputs, outputs
    _check_images(k, "roi_align", images, x.shape[0])
    _check_sides(k, "roi_align", regions, size, scale)
    dtype, channels = x.dtype, as_scalar(x.shape[1], I64)
    height, width = (as_scalar(dim, I64) for dim in x.shape[2:])
    with parallel_loop_nest(k, [out.shape[0], size[0] * size[1]], channels * 64 + 64) as (n, place):
        starts, steps, counts = [], [], []
        for first, bins in ((1, size[0]), (0, size[1])):
            start = k.let("start", regions[n, first] * scale - (0.5 if half_pixel else 0.0))
            extent = regions[n, first + 2] * scale - (0.5 if half_pixel else 0.0) - start
            extent = k.variable("extent", extent)
            if not half_pixel:
                k.assign(extent, select(extent > 1, extent, Literal(1.0, dtype)))
            step = k.let("step", extent / bins)
            needed = Operation("ceil", (step,), dtype).to(I64)
            counts.append(k.let("count", Literal(samples, I64) if samples else maximum(needed, 0)))
            starts.append(start)
            steps.append(step)
        target = k.let("target", n * channels * (size[0] * size[1]) + place)
        source = k.let("source", images.flat(n) * channels * height * width)
        with k.loop(channels, name="c", simd=True) as c:
            k.store(out, (target + c * (size[0] * size[1]),), 0)
        with k.loop(counts[0], name="i") as i, k.loop(counts[1], name="j") as j:
            taps = []
            for at, bin_, axis in ((i, place / size[1], 0), (j, place % size[1], 1)):
                inside = (at.to(dtype) + 0.5) * steps[axis] / counts[axis].to(dtype)
                spot = k.let("spot", starts[axis] + bin_.to(dtype) * steps[axis] + inside)
                taps.append(_tap(k, spot, (height, width)[axis]))
            (near, top, bottom, v), (close, left, right, u) = taps
            kept = k.let("kept", select(near.logical_and(close), Literal(1.0, dtype), Literal(0.0, dtype)))
            corners = [(top, left, (1 - v) * (1 - u)), (top, right, (1 - v) * u)]
            corners += [(bottom, left, v * (1 - u)), (bottom, right, v * u)]
            weights = [(k.let("at", r * width + c), k.let("w", w * kept)) for r, c, w in corners]
            is_first = (i + j).eq(0)
            with k.loop(channels, name="c", simd=True) as c:
                plane = k.let("image", source + c * height * width)
                values = [x.flat(plane + corner) * w for corner, w in weights]
                at = target + c * (size[0] * size[1])
                added = out.flat(at) + (values[0] + values[1] + values[2] + values[3])
                largest = _largest(k, select(is_first, values[0], out.flat(at)), values) if mode == "max" else added
                k.store(out, (at,), largest)
        if mode == "avg":
            total = k.let("total", maximum(counts[0] * counts[1], 1).to(dtype))
            with k.loop(channels, name="c", simd=True) as c:
                at = target + c * (size[0] * size[1])
                k.store(out, (at,), out.flat(at) / total)


def _largest(k: KernelBuilder, start: Scalar, values: list[Scalar]) -> Scalar:
    best = k.variable("best", start)
    for value in values:
        candidate = k.let("value", value)
        k.assign(best, select(candidate > best, candidate, best))
    return best


@op("roi_align", numpy=_numpy_roi_align, lower=CustomKernel(_roi_align))
def roi_align(
    x: TensorType,
    regions: TensorType,
    images: TensorType,
    *,
    size: tuple[int, int],
    mode: str = "avg",
    samples: int = 0,
    scale: float = 1.0,
    half_pixel: bool = True,
) -> TensorType:
    """Each region resampled to an image of size `size`, by bilinear interpolation.

    x: a tensor of shape (n, channels, height, width) and of a float dtype.
    regions: a tensor of shape (m, 4) and of the dtype of x.  A region consists of left, top, right and bottom.
    images: an i64 tensor of shape (m,), with the index of each region's image.
    size: the height and width of the result.
    samples: the number of samples of an output element along each axis.  0 means the size of the output element, in
    elements of x, rounded up.
    mode: how an output element is computed from its samples.  Each sample interpolates the four elements of x next to
    its position: it multiplies each element by a weight.  "avg" adds the four products of each sample, and computes the
    mean over the samples.  "max" computes the largest of all products.
    scale: the numbers of a region are multiplied by `scale` to give its coordinates in x.
    half_pixel: whether the center of the first element is at 0.5.  Otherwise the center is at 0, and a region has sides
    of at least 1.
    Result: a tensor of shape (m, channels, *size) and of the dtype of x.  A sample that is more than one element
    outside x is 0.
    Raises RelvmTypeError if an argument has another dtype or rank.  Raises RelvmArgumentError if the mode is unknown,
    or the size or the number of samples is invalid.  Raises RelvmShapeError if the numbers of regions and images
    differ.  At run time, it raises RelvmIndexError if the index of an image is out of range, and
    RelvmArithmeticError if a region is not finite, or has a side of at least 2^15 elements of x for each element of the
    result along it.
    Source: ONNX RoiAlign-22.

    Examples:

        >>> run(
        ...     "roi_align(x, regions, images, size=(1, 2), samples=1)",
        ...     x=[[[[1.0, 2.0, 3.0, 4.0]]]],
        ...     regions=[[0.0, 0.0, 4.0, 1.0]],
        ...     images=[0],
        ... )
        [[[[1.5 3.5]]]]
    """
    expect(mode in _MODES, "roi_align: mode is {!r}, expected avg or max", mode, error=RelvmArgumentError)
    whole = isinstance(samples, int) and not isinstance(samples, bool) and samples >= 0
    expect(whole, "roi_align: samples is {!r}, expected an integer of at least 0", samples, error=RelvmArgumentError)
    is_number = isinstance(scale, int | float)
    expect(is_number, "roi_align: scale is {!r}, expected a number", scale, error=RelvmArgumentError)
    is_bool = isinstance(half_pixel, bool)
    expect(is_bool, "roi_align: half_pixel is {!r}, expected a bool", half_pixel, error=RelvmArgumentError)
    return _check_region_arguments("roi_align", x, regions, images, size)


# ---- maxima of whole elements ----


def _numpy_roi_max_pool(x, regions, images, *, size, scale) -> np.ndarray:
    _numpy_images("roi_max_pool", images, len(x))
    _numpy_sides("roi_max_pool", regions, size, scale)
    result = np.zeros((len(regions), x.shape[1], *size), x.dtype)
    for n, region in enumerate(regions):
        scaled = region * x.dtype.type(scale)
        ends = np.trunc(scaled + np.copysign(x.dtype.type(0.5), scaled))
        for place in np.ndindex(*size):
            spans = []
            for axis, first in enumerate((1, 0)):
                step = np.maximum(ends[first + 2] - ends[first] + 1, 1) / x.dtype.type(size[axis])
                bounds = math.floor(place[axis] * step), math.ceil((place[axis] + 1) * step)
                low, high = (int(min(max(b + ends[first], 0), x.shape[2 + axis])) for b in bounds)
                spans.append(slice(low, high))
            part = x[(images[n], slice(None), *spans)]
            if part[0].size:
                result[(n, slice(None), *place)] = part.max(axis=(1, 2))
    return result


def _roi_max_pool(k: KernelBuilder, inputs, outputs, *, size, scale) -> None:
    (x, regions, images), (out,) = inputs, outputs
    _check_images(k, "roi_max_pool", images, x.shape[0])
    _check_sides(k, "roi_max_pool", regions, size, scale)
    dtype, channels = x.dtype, as_scalar(x.shape[1], I64)
    height, width = (as_scalar(dim, I64) for dim in x.shape[2:])

    def rounded(function: str, value: Scalar) -> Scalar:
        return Operation(function, (value,), dtype)

    def bounded(value: Scalar, extent: Scalar) -> Scalar:
        return select(value > 0, select(value < extent.to(dtype), value, extent.to(dtype)), Literal(0.0, dtype)).to(I64)

    with parallel_loop_nest(k, [out.shape[0], size[0] * size[1]], channels * 64 + 64) as (n, place):
        bounds: list[Scalar] = []
        for first, bins, at, extent in ((1, size[0], place / size[1], height), (0, size[1], place % size[1], width)):
            start = k.let("start", rounded("round_away", regions[n, first] * scale))
            side = k.let("side", rounded("round_away", regions[n, first + 2] * scale) - start + 1)
            step = k.let("step", select(side > 1, side, Literal(1.0, dtype)) / bins)
            bounds.append(k.let("low", bounded(rounded("floor", at.to(dtype) * step) + start, extent)))
            bounds.append(k.let("high", bounded(rounded("ceil", (at + 1).to(dtype) * step) + start, extent)))
        top, bottom, left, right = bounds
        with k.loop(channels, name="c") as c:
            image = k.let("image", (images.flat(n) * channels + c) * height * width)
            best = k.variable("best", Literal(0.0, dtype))
            with k.loop(bottom, start=top, name="i") as i, k.loop(right, start=left, name="j") as j:
                value = k.let("value", x.flat(image + i * width + j))
                is_first = i.eq(top).logical_and(j.eq(left))
                k.assign(best, select(is_first.logical_or(value > best).logical_or(value.ne(value)), value, best))
            k.store(out, ((n * channels + c) * (size[0] * size[1]) + place,), best)


@op("roi_max_pool", numpy=_numpy_roi_max_pool, lower=CustomKernel(_roi_max_pool))
def roi_max_pool(
    x: TensorType, regions: TensorType, images: TensorType, *, size: tuple[int, int], scale: float = 1.0
) -> TensorType:
    """The largest element in each part of each region.  A region is divided into size[0] rows and size[1] columns.

    x: a tensor of shape (n, channels, height, width) and of a float dtype.
    regions: a tensor of shape (m, 4) and of the dtype of x.  A region consists of left, top, right and bottom.  These
    are multiplied by `scale` and rounded to the nearest integer, halves away from 0.  They are then the first column,
    first row, last column and last row of the region in x.
    images: an i64 tensor of shape (m,), with the index of each region's image.
    size: the number of parts along the height and the width of a region.  Neighboring parts overlap if this number does
    not divide the height or width.
    scale: the factor by which the numbers of each region are multiplied.
    Result: a tensor of shape (m, channels, *size) and of the dtype of x.  A part without elements is 0.
    Raises RelvmTypeError if an argument has another dtype or rank.  Raises RelvmArgumentError if the size is invalid.
    Raises RelvmShapeError if the numbers of regions and images differ.  At run time, it raises RelvmIndexError if the
    index of an image is out of range, and RelvmArithmeticError if a region is not finite, or has a side of at least
    2^15 elements of x for each element of the result along it.
    Source: ONNX MaxRoiPool-22, as implemented in ONNX Runtime.

    Examples:

        >>> run(
        ...     "roi_max_pool(x, regions, images, size=(1, 2))",
        ...     x=[[[[1.0, 2.0, 3.0, 4.0]]]],
        ...     regions=[[0.0, 0.0, 3.0, 0.0]],
        ...     images=[0],
        ... )
        [[[[2. 4.]]]]
    """
    is_number = isinstance(scale, int | float)
    expect(is_number, "roi_max_pool: scale is {!r}, expected a number", scale, error=RelvmArgumentError)
    return _check_region_arguments("roi_max_pool", x, regions, images, size)
