"""The operators iota, which numbers the elements of a tensor, and interpolate, which computes weighted sums along an
axis."""

from __future__ import annotations

import numpy as np

from relvm.errors import RelvmIndexError
from relvm.ir.dtypes import I64
from relvm.ir.loop_ir import Buffer, Literal, Scalar, as_scalar
from relvm.ir.operator import expect, op
from relvm.ir.symbolic import AnyDim, product
from relvm.ir.type_rules import (
    expect_axis,
    expect_equal_dims,
    expect_float,
    expect_same_dtype,
    expect_shape,
    expect_tensor,
)
from relvm.ir.types import ShapeType, TensorType
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import CustomKernel, parallel_loop_nest

Shape = tuple[AnyDim, ...]

_UNROLLED = 4  # maximum number of taps (elements of a weighted sum) that one expression adds


def _iota(k: KernelBuilder, inputs, outputs) -> None:
    (out,) = outputs
    with k.loop(k.size(out.shape), simd=True) as i:
        k.store(out, (i,), i)


def _numpy_iota(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.int64).reshape(shape)


@op("iota", numpy=_numpy_iota, lower=CustomKernel(_iota, lambda *shapes: 0))
def iota(shape: ShapeType) -> TensorType:
    """The numbers 0, 1, 2..., in row-major order.

    shape: the shape of the result.
    Result: an i64 tensor of this shape.
    Raises RelvmTypeError if the argument is not a shape.
    Source: numpy.arange.

    Examples:

        >>> run("iota(shape(2, 3))")
        [[0 1 2]
         [3 4 5]]
    """
    expect_shape("iota", "shape", shape)
    return TensorType(I64, shape.dims, shape.rank)


def _numpy_interpolate(x: np.ndarray, indices: np.ndarray, weights: np.ndarray, *, axis: int) -> np.ndarray:
    size = x.shape[axis]
    for index in indices.flat:
        if not 0 <= index < size:
            raise RelvmIndexError(f"interpolate: index {index} is outside axis {axis % x.ndim} of size {size}")
    moved = np.moveaxis(x, axis, -1)
    result = np.zeros((*moved.shape[:-1], indices.shape[1]), x.dtype)
    for positions, factors in zip(indices, weights, strict=True):
        result = result + factors * moved[..., positions]
    return np.moveaxis(result, -1, axis)


def _interpolate(k: KernelBuilder, inputs, outputs, *, axis: int) -> None:
    """Generate the kernel of `interpolate`.  It checks all indices before it writes anything.

    If the axis is the last one, the inner loop runs over positions along the axis.  Otherwise, it runs over the
    elements of the axes that follow.
    """
    (x, indices, weights), (out,) = inputs, outputs
    axis %= len(x.shape)
    taps, places = indices.shape
    size, width = k.size(x.shape[axis : axis + 1]), k.size(x.shape[axis + 1 :])
    with k.loop(k.size(indices.shape), name="n") as n:
        index = k.let("index", indices.flat(n))
        outside = (index < 0).logical_or(index >= size)
        k.fail(outside, "INDEX_ERROR", f"interpolate: index %lld is outside axis {axis} of size %lld", index, size)
    rows, along, each = k.size(x.shape[:axis]), k.size((places,)), k.size((taps,)) * 2
    if axis == len(x.shape) - 1:
        with parallel_loop_nest(k, [rows], along * each) as (row,):
            source = k.let("source", row * size)
            target = k.let("target", row * along)
            _interpolate_row(k, (x, indices, weights, out), source, target)
        return
    with parallel_loop_nest(k, [rows, along], width * each) as (row, place):
        source = k.let("source", row * size * width)
        target = k.let("target", (row * along + place) * width)

        def tap(t: Scalar) -> tuple[Scalar, Scalar]:
            start = k.let("start", source + indices[t, place] * width)
            return start, k.let("weight", weights[t, place])

        _sum_of_taps(k, out, target, width, taps, tap, lambda made, i: made[1] * x.flat(made[0] + i))


def _interpolate_row(k: KernelBuilder, buffers: tuple[Buffer, ...], source: Scalar, target: Scalar) -> None:
    x, indices, weights, out = buffers
    taps, places = indices.shape

    def element(t: Scalar, place: Scalar) -> Scalar:
        return weights[t, place] * x.flat(source + indices[t, place])

    _sum_of_taps(k, out, target, k.size((places,)), taps, lambda t: t, element)


def _sum_of_taps(k: KernelBuilder, out: Buffer, start: Scalar, width: Scalar, tap_count, tap, element) -> None:
    """Generate code that sets out.flat[start + i], for each i below `width`, to the sum of element(tap(t), i) over all
    t.

    tap_count: the number of taps.  t runs from 0 to `tap_count` - 1.
    tap: a function of t, which generates the code that does not depend on i.
    element: a function of the result of `tap` and of i, which returns one summand.
    """
    if isinstance(tap_count, int) and 1 <= tap_count <= _UNROLLED:
        taps = [tap(Literal(t, I64)) for t in range(tap_count)]
        with k.loop(width, simd=True) as i:
            total = element(taps[0], i)
            for each in taps[1:]:
                total = total + element(each, i)
            k.store(out, (start + i,), total)
        return
    with k.loop(width, simd=True) as i:
        k.store(out, (start + i,), 0)
    with k.loop(as_scalar(tap_count, I64), name="t") as t:
        prepared = tap(t)
        with k.loop(width, simd=True) as i:
            k.store(out, (start + i,), out.flat(start + i) + element(prepared, i))


def _operations(x: Shape, indices: Shape, weights: Shape, out: Shape, *, axis: int) -> AnyDim:
    return 2 * product(out) * indices[0]


@op("interpolate", numpy=_numpy_interpolate, lower=CustomKernel(_interpolate, _operations))
def interpolate(x: TensorType, indices: TensorType, weights: TensorType, *, axis: int) -> TensorType:
    """Weighted sums of elements along an axis.  Along this axis, element p of the result is the sum over t of
    weights[t,p] * x[indices[t,p]].

    x: a tensor of a float dtype.
    indices: an i64 tensor of shape (taps, places): for each of the `places` elements of the result, the indices of the
    `taps` elements of x to add.  Each index is in [0, n), where n is the size of the axis.
    weights: a tensor with the dtype of x and the shape of `indices`.
    axis: the axis, in [-rank, rank).
    Result: a tensor with the dtype and shape of x, but with `places` elements along the axis.
    Raises RelvmTypeError if an argument has another dtype or rank, or the axis is out of range.  Raises RelvmShapeError
    if the shapes of `indices` and `weights` differ.  At run time, it raises RelvmIndexError if an index is out of
    range.
    Source: the interpolation of ONNX Resize-19; `weights` are its coefficients.

    Examples:

        >>> run(
        ...     "interpolate(x, indices, weights, axis=0)",
        ...     x=[10.0, 20.0],
        ...     indices=[[0, 0, 1], [1, 1, 1]],
        ...     weights=[[1.0, 0.5, 1.0], [0.0, 0.5, 0.0]],
        ... )
        [10. 15. 20.]
    """
    expect_float("interpolate", x=x, weights=weights)
    expect_tensor("interpolate", indices=indices)
    expect_same_dtype("interpolate", x=x, weights=weights)
    expect(indices.dtype == I64, "interpolate: indices has dtype {}, expected i64", indices.dtype)
    for name, type_ in (("indices", indices), ("weights", weights)):
        expect(type_.rank in (None, 2), "interpolate: {} has rank {}, expected 2", name, type_.rank)
    if indices.shape is not None and weights.shape is not None:
        for at, (first, second) in enumerate(zip(indices.shape, weights.shape, strict=True)):
            expect_equal_dims("interpolate", f"dimension {at} of indices and weights differs", first, second)
    if x.rank is None:
        return x
    at = expect_axis("interpolate", axis, x.rank)
    if x.shape is None or indices.shape is None:
        return TensorType(x.dtype, None, x.rank)
    return TensorType(x.dtype, (*x.shape[:at], indices.shape[1], *x.shape[at + 1 :]))
