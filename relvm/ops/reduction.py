"""Reductions along some or all axes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relvm.errors import RelvmArgumentError
from relvm.ir.dtypes import I64, dtype_of
from relvm.ir.expr import Expr
from relvm.ir.loop_ir import Buffer, Literal, Scalar, as_scalar, constant_value, minimum, select
from relvm.ir.operator import claim_at_most, expect, op
from relvm.ir.symbolic import AnyDim, product
from relvm.ir.type_rules import expect_axes, expect_axis, expect_float, expect_numeric, with_dtype
from relvm.ir.types import TensorType
from relvm.kernels.flop_count import one_per_element
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import Composition, CustomKernel, Reduce, Reduction, loop_nest
from relvm.kernels.simd_extreme import SimdExtreme
from relvm.ops.elementwise import divide, exp_ftz, numpy_exp_ftz, subtract

_BLOCK = 256  # columns whose best elements are found together


def _larger(total: Scalar, x: Scalar) -> Scalar:
    return select((x > total).logical_or(x.ne(x)), x, total)


def _smaller(total: Scalar, x: Scalar) -> Scalar:
    return select((x < total).logical_or(x.ne(x)), x, total)


_SUM = Reduction(lambda total, x: total + x, "add", lambda dtype: 0)
_PROD = Reduction(lambda total, x: total * x, "mul", lambda dtype: 1)
_MAX = Reduction(_larger, "max", lambda dtype: dtype.lowest)
_MIN = Reduction(_smaller, "min", lambda dtype: dtype.highest)


def _reduced_type(name: str, x: TensorType, axes: tuple[int, ...] | None, keepdims: bool) -> TensorType:
    expect_numeric(name, x=x)
    message = "{}: keepdims is {!r}, expected a bool"
    expect(isinstance(keepdims, bool), message, name, keepdims, error=RelvmArgumentError)
    if x.rank is None:
        return x if axes is not None or keepdims else TensorType(x.dtype, ())
    reduced_axes = set(range(x.rank)) if axes is None else set(expect_axes(name, axes, x.rank))
    if x.shape is None:
        return TensorType(x.dtype, None, x.rank if keepdims else x.rank - len(reduced_axes))
    dims = (
        1 if axis in reduced_axes else dim for axis, dim in enumerate(x.shape) if keepdims or axis not in reduced_axes
    )
    return TensorType(x.dtype, tuple(dims))


def _numpy_sum(x: np.ndarray, *, axes: tuple[int, ...] | None, keepdims: bool) -> np.ndarray:
    return np.sum(x, axis=axes, keepdims=keepdims, dtype=x.dtype)


def _numpy_prod(x: np.ndarray, *, axes: tuple[int, ...] | None, keepdims: bool) -> np.ndarray:
    return np.prod(x, axis=axes, keepdims=keepdims, dtype=x.dtype)


def _numpy_mean(x: np.ndarray, *, axes: tuple[int, ...] | None, keepdims: bool) -> np.ndarray:
    if axes == ():
        return x
    total = _numpy_sum(x, axes=axes, keepdims=keepdims)
    return total / np.asarray(x.size / total.size if total.size else 1, x.dtype)


def _numpy_max(x: np.ndarray, *, axes: tuple[int, ...] | None, keepdims: bool) -> np.ndarray:
    return np.max(x, axis=axes, keepdims=keepdims, initial=dtype_of(x.dtype).lowest)


def _numpy_min(x: np.ndarray, *, axes: tuple[int, ...] | None, keepdims: bool) -> np.ndarray:
    return np.min(x, axis=axes, keepdims=keepdims, initial=dtype_of(x.dtype).highest)


@op("sum", numpy=_numpy_sum, lower=Reduce(_SUM))
def sum_(x: TensorType, *, axes: tuple[int, ...] | None = None, keepdims: bool = False) -> TensorType:
    """The sum along some axes; integers wrap around.  The sum of no elements is 0.

    x: a tensor of an integer or float dtype.
    axes: distinct axes, each in [-rank, rank), or None for all axes.
    keepdims: whether the result keeps the reduced axes, with size 1.
    Result: a tensor of the dtype of x.  Floats are added to several partial sums, which are then added.  The result can
    therefore be rounded differently than if the elements were added one after the other.
    Raises RelvmTypeError if x has dtype bool, or an axis is out of range or given twice.
    Source: ONNX ReduceSum-13.

    Examples:

        >>> run("sum(x, axes=(1,))", x=[[1, 2], [3, 4]])
        [3 7]
    """
    return _reduced_type("sum", x, axes, keepdims)


@op("prod", numpy=_numpy_prod, lower=Reduce(_PROD))
def prod(x: TensorType, *, axes: tuple[int, ...] | None = None, keepdims: bool = False) -> TensorType:
    """The product along some axes; integers wrap around.  The product of no elements is 1.

    x: a tensor of an integer or float dtype.
    axes: distinct axes, each in [-rank, rank), or None for all axes.
    keepdims: whether the result keeps the reduced axes, with size 1.
    Result: a tensor of the dtype of x.
    Raises RelvmTypeError if x has dtype bool, or an axis is out of range or given twice.
    Source: ONNX ReduceProd-18.

    Examples:

        >>> run("prod(x, axes=(1,))", x=[[1, 2], [3, 4]])
        [ 2 12]
    """
    return _reduced_type("prod", x, axes, keepdims)


def _divide_by_count(total: Scalar, count: AnyDim) -> Scalar:
    return total / as_scalar(count, I64).to(total.dtype)


@op("mean", numpy=_numpy_mean, lower=Reduce(_SUM, _divide_by_count))
def mean(x: TensorType, *, axes: tuple[int, ...] | None = None, keepdims: bool = False) -> TensorType:
    """The mean along some axes.  The mean of no elements is NaN.

    x: a tensor of a float dtype.
    axes: distinct axes, each in [-rank, rank), or None for all axes.
    keepdims: whether the result keeps the reduced axes, with size 1.
    Result: a tensor of the dtype of x.
    Raises RelvmTypeError if x has another dtype, or an axis is out of range or given twice.
    Source: ONNX ReduceMean-18.

    Examples:

        >>> run("mean(x, axes=(0,))", x=[[1.0, 2.0], [3.0, 4.0]])
        [2. 3.]
    """
    expect_float("mean", x=x)
    return _reduced_type("mean", x, axes, keepdims)


@op("max", numpy=_numpy_max, lower=Reduce(_MAX))
def max_(x: TensorType, *, axes: tuple[int, ...] | None = None, keepdims: bool = False) -> TensorType:
    """The largest element along some axes; NaN if an element is NaN.  The largest of no elements is the smallest value
    of the dtype (-inf for floats).

    x: a tensor of an integer or float dtype.
    axes: distinct axes, each in [-rank, rank), or None for all axes.
    keepdims: whether the result keeps the reduced axes, with size 1.
    Result: a tensor of the dtype of x.
    Raises RelvmTypeError if x has dtype bool, or an axis is out of range or given twice.
    Source: ONNX ReduceMax-20; NaN: NumPy.

    Examples:

        >>> run("max(x, axes=(1,), keepdims=true)", x=[[1, 2], [3, 4]])
        [[2]
         [4]]
    """
    return _reduced_type("max", x, axes, keepdims)


@op("min", numpy=_numpy_min, lower=Reduce(_MIN))
def min_(x: TensorType, *, axes: tuple[int, ...] | None = None, keepdims: bool = False) -> TensorType:
    """The smallest element along some axes; NaN if an element is NaN.  The smallest of no elements is the largest value
    of the dtype (inf for floats).

    x: a tensor of an integer or float dtype.
    axes: distinct axes, each in [-rank, rank), or None for all axes.
    keepdims: whether the result keeps the reduced axes, with size 1.
    Result: a tensor of the dtype of x.
    Raises RelvmTypeError if x has dtype bool, or an axis is out of range or given twice.
    Source: ONNX ReduceMin-20; NaN: NumPy.

    Examples:

        >>> run("min(x)", x=[[1, 2], [3, 4]])
        1
    """
    return _reduced_type("min", x, axes, keepdims)


def _arg_reduction(is_better: Callable[[Scalar, Scalar], Scalar], clause: str) -> CustomKernel:
    """Return the kernel of argmax or argmin.

    is_better: a function of the best element so far and a new element, which returns whether the new element is better.
    For floats, the kernel handles NaN itself: the first NaN counts as the best element.
    clause: the reduction of the best element, "max" or "min".
    """

    def lower(k: KernelBuilder, inputs, outputs, *, axis: int, keepdims: bool) -> None:
        (x,), (out,) = inputs, outputs
        axis %= len(x.shape)
        before, after = product(x.shape[:axis]), product(x.shape[axis + 1 :])
        size, columns = k.size(x.shape[axis : axis + 1]), k.size((after,))
        if constant_value(columns) == 1:
            with loop_nest(k, [before]) as (row,):
                k.store(out, (row,), _arg_of_row(k, x, k.let("start", row * size), size, clause))
            return
        blocks = k.let("blocks", (columns + (_BLOCK - 1)) / _BLOCK)
        with k.parallel(k.size((before,)) * blocks, size * (4 * _BLOCK)) as (first, last):
            best, place = k.allocate("best", x.dtype, (_BLOCK,)), k.allocate("place", I64, (_BLOCK,))
            with k.loop(last, start=first, name="number") as number:
                row, column = k.let("row", number / blocks), k.let("column", number % blocks * _BLOCK)
                count = k.let("count", minimum(columns - column, _BLOCK))
                start = k.let("start", row * size * columns + column)
                with k.loop(count, name="j", simd=True) as j:
                    k.store(best, (j,), x.flat(start + j))
                    k.store(place, (j,), 0)
                with k.loop(size, start=1, name="n") as n:
                    at = k.let("at", start + n * columns)
                    with k.loop(count, name="j", simd=True) as j:
                        element, so_far = k.let("element", x.flat(at + j)), k.let("so_far", best[j])
                        wins = is_better(so_far, element)
                        if x.dtype.is_float:
                            wins = wins.logical_or(element.ne(element)).logical_and(so_far.eq(so_far))
                        k.store(best, (j,), select(wins, element, so_far))
                        k.store(place, (j,), select(wins, n, place[j]))
                with k.loop(count, name="j", simd=True) as j:
                    k.store(out, (row * columns + column + j,), place[j])

    return CustomKernel(lower, one_per_element)


def _arg_of_row(k: KernelBuilder, x: Buffer, start: Scalar, size: Scalar, clause: str) -> Scalar:
    """Generate two passes over the adjacent elements of a row, and return the index of the best one.

    The first pass finds the best element, and the second the first element that is equal to it.

    start: the flat position in x at which the row begins.
    size: the number of its elements.
    clause: the best element, "max" or "min".
    """
    dtype = x.dtype
    best = k.variable("best", Literal(dtype.lowest if clause == "max" else dtype.highest, dtype))
    extreme = SimdExtreme(k, best, clause)
    with k.loop(size, name="n", simd=True, reduce=extreme.reduce) as n:
        extreme.add(k.let("element", x.flat(start + n)))
    target = k.let("target", extreme.result()) if dtype.is_float else best
    place = k.variable("place", size)
    with k.loop(size, name="n", simd=True, reduce=[("min", place)]) as n:
        element = k.let("element", x.flat(start + n))
        is_first = element.eq(target)
        if dtype.is_float:
            is_first = is_first.logical_or(element.ne(element))
        k.assign(place, minimum(place, select(is_first, n, size)))
    return place


def _arg_reduction_type(name: str, x: TensorType, axis: int, keepdims: bool) -> TensorType:
    expect_numeric(name, x=x)
    if x.rank is None:
        return TensorType(I64)
    at = expect_axis(name, axis, x.rank)
    result = _reduced_type(name, x, (at,), keepdims)
    if x.shape is not None:
        claim_at_most(1, x.shape[at], f"{name}: expected at least {{}} element along axis {at} of x, got {{}}")
    return with_dtype(result, I64)


def _numpy_arg_reduction(function: Callable) -> Callable:
    def run(x: np.ndarray, *, axis: int, keepdims: bool) -> np.ndarray:
        return function(x, axis=axis, keepdims=keepdims)

    return run


@op("argmax", numpy=_numpy_arg_reduction(np.argmax), lower=_arg_reduction(lambda best, x: x > best, "max"))
def argmax(x: TensorType, *, axis: int, keepdims: bool = False) -> TensorType:
    """The index of the largest element along an axis: the first of equal elements, or the first NaN if there is one.

    x: a tensor of an integer or float dtype.
    axis: the axis, in [-rank, rank).  Its size must be >= 1.
    keepdims: whether the result keeps the axis, with size 1.
    Result: an i64 tensor.
    Raises RelvmTypeError if x has dtype bool or the axis is out of range.  Raises RelvmShapeError if the axis has no
    elements.
    Source: ONNX ArgMax-13; NaN: NumPy.

    Examples:

        >>> run("argmax(x, axis=1)", x=[[1, 5, 2], [7, 3, 4]])
        [1 0]
    """
    return _arg_reduction_type("argmax", x, axis, keepdims)


@op("argmin", numpy=_numpy_arg_reduction(np.argmin), lower=_arg_reduction(lambda best, x: x < best, "min"))
def argmin(x: TensorType, *, axis: int, keepdims: bool = False) -> TensorType:
    """The index of the smallest element along an axis: the first of equal elements, or the first NaN if there is one.

    x: a tensor of an integer or float dtype.
    axis: the axis, in [-rank, rank).  Its size must be >= 1.
    keepdims: whether the result keeps the axis, with size 1.
    Result: an i64 tensor.
    Raises RelvmTypeError if x has dtype bool or the axis is out of range.  Raises RelvmShapeError if the axis has no
    elements.
    Source: ONNX ArgMin-13; NaN: NumPy.

    Examples:

        >>> run("argmin(x, axis=1)", x=[[1, 5, 2], [7, 3, 4]])
        [0 1]
    """
    return _arg_reduction_type("argmin", x, axis, keepdims)


def _numpy_softmax(x: np.ndarray, *, axis: int) -> np.ndarray:
    powers = numpy_exp_ftz(x - np.max(x, axis=axis, keepdims=True, initial=-np.inf))
    return powers / np.sum(powers, axis=axis, keepdims=True)


def _softmax(x: Expr, *, axis: int) -> Expr:
    powers = exp_ftz(subtract(x, max_(x, axes=(axis,), keepdims=True)))
    return divide(powers, sum_(powers, axes=(axis,), keepdims=True))


@op("softmax", numpy=_numpy_softmax, lower=Composition(_softmax))
def softmax(x: TensorType, *, axis: int = -1) -> TensorType:
    """exp(x - max(x)) divided by its sum, along an axis, with the exponentials of `exp_ftz`.

    x: a tensor of a float dtype and of rank >= 1.
    axis: the axis, in [-rank, rank).
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has another dtype or the axis is out of range.
    Source: ONNX Softmax-13.

    Examples:

        >>> run("softmax(x, axis=1)", x=[[0.0, 1.0, 2.0]])
        [[0.09  0.245 0.665]]
    """
    expect_float("softmax", x=x)
    if x.rank is not None:
        expect_axis("softmax", axis, x.rank)
    return x
