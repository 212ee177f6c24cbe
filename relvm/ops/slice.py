"""Slices of tensors."""

from __future__ import annotations

import sys

import numpy as np

from relvm.errors import RelvmArgumentError
from relvm.ir.dtypes import I64
from relvm.ir.loop_ir import Scalar, as_scalar, maximum, minimum
from relvm.ir.operator import expect, op
from relvm.ir.symbolic import AnyDim, dim_op
from relvm.ir.type_rules import expect_axes, expect_integers, expect_tensor
from relvm.ir.types import TensorType
from relvm.kernels.lowering_rules import DataMovement, IndexExprs

# A bound of at least this magnitude means the end of the axis.  ONNX models contain INT_MAX or INT64_MAX.
FAR = 1 << 31


def _slice_dim(size: AnyDim, begin: int, end: int, step: int) -> AnyDim:
    """Return the number of elements of the slice [begin:end:step] of an axis with `size` elements, as in Python.

    A bound whose magnitude is at least FAR stands for an end of the axis.
    """
    if isinstance(size, int):
        return len(range(size)[_python_bound(begin) : _python_bound(end) : step])
    begin, end = (max(-FAR, min(FAR, bound)) for bound in (begin, end))
    if (begin, end) == ((0, FAR) if step > 0 else (FAR, -FAR)):
        return dim_op("floordiv", size + abs(step) - 1, abs(step))
    if step < 0:  # count from the last element down to the first element that is excluded
        start = clamp_bound(size, begin, -1, dim_op("sub", size, 1))
        stop = clamp_bound(size, end, -1, dim_op("sub", size, 1))
        return dim_op("max", dim_op("floordiv", start - stop - step - 1, -step), 0)
    start, stop = clamp_bound(size, begin, 0, size), clamp_bound(size, end, 0, size)
    if start == 0 and step == 1:
        return stop
    if stop == size and begin > 0 and step == 1:
        return dim_op("max", size - begin, 0)
    return dim_op("max", dim_op("floordiv", stop - start + step - 1, step), 0)


def _python_bound(bound: int) -> int:
    """Return `bound`, or a bound beyond every axis if the magnitude of `bound` is at least FAR."""
    return bound if -FAR < bound < FAR else sys.maxsize if bound > 0 else -sys.maxsize


def clamp_bound(size: AnyDim, bound: AnyDim, low: int, high: AnyDim) -> AnyDim:
    """Convert `bound`, a bound of a slice, to an index in [low, high], as Python does.

    A negative bound counts from the end of the axis.  A bound outside [low, high] is then clamped.

    size: the size of the axis.   bound: an integer, or a dimension that is never negative.
    """
    if not isinstance(bound, int):
        return dim_op("min", high, bound)
    if bound >= FAR:
        return high
    if bound <= -FAR:
        return low
    if bound < 0:
        return dim_op("max", size + bound, low)
    return low if bound <= low else dim_op("min", high, bound)


def _first_index(dim: AnyDim, begin: int, step: int) -> int | Scalar:
    """Return the index of the first element of a slice, which begins at `begin` as in Python.

    A negative `begin` counts from the end of the axis, and a `begin` outside the axis is clamped.  If the slice is
    empty, the result is any number.

    dim: the size of the axis.
    """
    if isinstance(dim, int):
        return max(0, range(dim)[_python_bound(begin) : None : step].start) if dim else 0
    size = as_scalar(dim, I64)
    if begin >= FAR:
        return size - 1 if step < 0 else size
    if begin < 0:
        begin = max(begin, -FAR)
        return maximum(size + begin, 0)
    if step > 0:
        return begin
    return minimum(size - 1, begin)


def _numpy_slice(x: np.ndarray, *, begin, end, axes, steps) -> np.ndarray:
    index = [slice(None)] * x.ndim
    for axis, *bounds in zip(axes or range(len(begin)), begin, end, steps or (1,) * len(begin), strict=True):
        index[axis] = slice(*(bounds if bounds[2] > 0 or bounds[1] > -FAR else (bounds[0], None, bounds[2])))
    return x[tuple(index)]


def _sliced(at: IndexExprs, x_shape, out_shape, *, begin, end, axes, steps) -> IndexExprs:
    indices = list(at)
    for axis, first, step in zip(axes or range(len(begin)), begin, steps or (1,) * len(begin), strict=True):
        indices[axis] = indices[axis] * step + _first_index(x_shape[axis], first, step)
    return tuple(indices)


@op("slice", numpy=_numpy_slice, lower=DataMovement(_sliced), moves=True)
def slice_(
    x: TensorType,
    *,
    begin: tuple[int, ...],
    end: tuple[int, ...],
    axes: tuple[int, ...] | None = None,
    steps: tuple[int, ...] | None = None,
) -> TensorType:
    """The slice x[begin:end:step] along some axes.

    x: any tensor.
    begin, end: one number for each sliced axis, with the meaning of Python slices.  Negative numbers count from the
    end.  A number >= 2^31 stands for the last possible position, and a number <= -2^31 for the first.
    axes: the sliced axes, which are distinct and in [-rank, rank).  None stands for the first axes, one for each number
    in `begin`.
    steps: the step along each sliced axis, which must not be 0, or None for 1.
    Result: a tensor of the dtype of x.  If a sliced dimension of x is symbolic, the dimension of the result is an exact
    expression of it.
    Raises RelvmTypeError if an axis is out of range or given twice.  Raises RelvmArgumentError if `begin`, `end`,
    `axes` and `steps` differ in length, or a step is 0.
    Source: ONNX Slice-13.

    Examples:

        >>> run("slice(x, begin=(1,), end=(4,), steps=(2,))", x=[10, 20, 30, 40, 50])
        [20 40]
    """
    expect_tensor("slice", x=x)
    count = len(begin) if isinstance(begin, tuple) else None
    expect_integers("slice", "begin", begin)
    expect_integers("slice", "end", end, count)
    axes = tuple(range(count)) if axes is None else axes
    steps = (1,) * count if steps is None else steps
    expect_integers("slice", "axes", axes, count)
    expect_integers("slice", "steps", steps, count)
    expect(0 not in steps, "slice: steps are {}; a step must not be 0", steps, error=RelvmArgumentError)
    if x.rank is None:
        return x
    counted = expect_axes("slice", axes, x.rank)
    if x.shape is None:
        return x
    dims = list(x.shape)
    for axis, bounds in zip(counted, zip(begin, end, steps, strict=True), strict=True):
        dims[axis] = _slice_dim(dims[axis], *bounds)
    return TensorType(x.dtype, tuple(dims))
