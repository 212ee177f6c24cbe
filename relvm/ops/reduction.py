"""Reductions: many elements become one, along some axes or all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmShapeError
from relvm.ir.dims import AnyDim, product
from relvm.ir.dtypes import I64, DType, dtype_of
from relvm.ir.operator import expect, op
from relvm.ir.types import TensorType
from relvm.lir.kernel import Buffer, Intrinsic, KernelBuilder, Literal, Local, Scalar, Select, as_scalar
from relvm.ops.lowering import Axis, Loops, flat_index, loop_nest, strides_of
from relvm.ops.rules import expect_axes, expect_axis, expect_float, expect_numeric, with_dtype


@dataclass(frozen=True)
class _Reduction:
    """combine: two elements into one, keeping NaN.  clause: its OpenMP name.  start: the value of no elements."""

    combine: Callable[[Scalar, Scalar], Scalar]
    clause: str
    start: Callable[[DType], int | float]


def _larger(total: Scalar, x: Scalar) -> Scalar:
    return Select((x > total).either(x.differs(x)), x, total)


def _smaller(total: Scalar, x: Scalar) -> Scalar:
    return Select((x < total).either(x.differs(x)), x, total)


def lowest(dtype: DType) -> int | float:
    """The dtype's smallest value."""
    return -np.inf if dtype.is_float else int(np.iinfo(dtype.numpy).min)


def highest(dtype: DType) -> int | float:
    """The dtype's largest value."""
    return np.inf if dtype.is_float else int(np.iinfo(dtype.numpy).max)


_SUM = _Reduction(lambda total, x: total + x, "+", lambda dtype: 0)
_PROD = _Reduction(lambda total, x: total * x, "*", lambda dtype: 1)
_MAX = _Reduction(_larger, "max", lowest)
_MIN = _Reduction(_smaller, "min", highest)


@dataclass(frozen=True)
class _Walk:
    """The axes of x as the loops take them, each with the strides of x and of the result; reduced ones have 0 there.

    outer: kept axes.  reduced.  inner: the kept axes after the last reduced one, as one (extent 1: there are none).
    """

    outer: list[Axis]
    reduced: list[Axis]
    inner: AnyDim


def _walk(x: Buffer, axes: tuple[int, ...] | None) -> _Walk:
    rank = len(x.shape)
    gone = set(range(rank)) if axes is None else {axis % rank for axis in axes}
    kept_shape = tuple(1 if axis in gone else dim for axis, dim in enumerate(x.shape))
    runs = [(is_gone, list(run)) for is_gone, run in groupby(range(rank), gone.__contains__)]
    inner: AnyDim = 1
    if len(runs) > 1 and not runs[-1][0]:
        inner = product(x.shape[axis] for axis in runs.pop()[1])
    outer, reduced = [], []
    for is_gone, run in runs:
        extent = product(x.shape[axis] for axis in run)
        stride = strides_of(x.shape)[run[-1]]
        if is_gone:
            reduced.append(Axis(extent, (stride, 0)))
        else:
            outer.append(Axis(extent, (stride, strides_of(kept_shape)[run[-1]])))
    return _Walk(outer, reduced, inner)


def _reduce(reduction: _Reduction, finish: Callable[[Scalar, AnyDim], Scalar] = lambda total, count: total) -> Loops:
    """finish: what is made of the total and the number of elements in it."""

    def lower(k: KernelBuilder, inputs, outputs, *, axes: tuple[int, ...] | None, keepdims: bool) -> None:
        (x,), (out,) = inputs, outputs
        walk = _walk(x, axes)
        count = product(axis.extent for axis in walk.reduced)
        with loop_nest(k, [axis.extent for axis in walk.outer]) as kept:
            source = k.declare("source", flat_index(walk.outer, 0, kept))
            target = k.declare("target", flat_index(walk.outer, 1, kept))
            if walk.inner == 1:
                total = _reduce_rows(k, reduction, x, source, walk.reduced)
                k.store(out, (target,), finish(total, count))
            else:
                _reduce_columns(k, reduction, x, source, walk, out, target)
                with k.loop(walk.inner, simd=True) as i:
                    k.store(out, (target + i,), finish(out.flat(target + i), count))

    return Loops(lower)


def _reduce_rows(k: KernelBuilder, reduction: _Reduction, x: Buffer, source: Scalar, reduced: list[Axis]) -> Scalar:
    """The total of the elements that the reduced axes reach from position `source`; the innermost loop is in lanes.

    A lane of a maximum or minimum never holds NaN: that one was met is counted beside it.
    """
    total = k.declare("total", Literal(reduction.start(x.dtype), x.dtype))
    sees_nan = x.dtype.is_float and reduction.clause in ("max", "min")
    lanes: list[tuple[str, Local]] = [(reduction.clause, total)]
    if sees_nan:
        unordered = k.declare("unordered", Literal(0, I64))
        lanes.append(("+", unordered))
    with loop_nest(k, [axis.extent for axis in reduced], simd=True, reduce=tuple(lanes)) as counters:
        element = k.declare("element", x.flat(source + flat_index(reduced, 0, counters)))
        if sees_nan:
            better = element > total if reduction.clause == "max" else element < total
            k.assign(total, Select(better, element, total))
            k.assign(unordered, unordered + element.differs(element).to(I64))
        else:
            k.assign(total, reduction.combine(total, element))
    if not sees_nan:
        return total
    return Select(unordered > 0, Literal(np.nan, x.dtype), total)


def _reduce_columns(
    k: KernelBuilder, reduction: _Reduction, x: Buffer, source: Scalar, walk: _Walk, out: Buffer, target: Local
) -> None:
    """Adds row after row to the result itself, so that memory is read in order."""
    with k.loop(walk.inner, simd=True) as i:
        k.store(out, (target + i,), reduction.start(x.dtype))
    with loop_nest(k, [axis.extent for axis in walk.reduced]) as counters:
        row = k.declare("row", source + flat_index(walk.reduced, 0, counters))
        with k.loop(walk.inner, simd=True) as i:
            total = out.flat(target + i)
            k.store(out, (target + i,), reduction.combine(total, x.flat(row + i)))


def _reduced(name: str, x: TensorType, axes: tuple[int, ...] | None, keepdims: bool) -> TensorType:
    expect_numeric(name, x=x)
    message = "{}: keepdims is {!r}, expected a bool"
    expect(isinstance(keepdims, bool), message, name, keepdims, error=RelvmArgumentError)
    if x.rank is None:
        return x if axes is not None or keepdims else TensorType(x.dtype, ())
    gone = set(range(x.rank)) if axes is None else set(expect_axes(name, axes, x.rank))
    if x.shape is None:
        return TensorType(x.dtype, None, x.rank if keepdims else x.rank - len(gone))
    kept = (1 if axis in gone else dim for axis, dim in enumerate(x.shape) if keepdims or axis not in gone)
    return TensorType(x.dtype, tuple(kept))


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
    return np.max(x, axis=axes, keepdims=keepdims, initial=lowest(dtype_of(x.dtype)))


def _numpy_min(x: np.ndarray, *, axes: tuple[int, ...] | None, keepdims: bool) -> np.ndarray:
    return np.min(x, axis=axes, keepdims=keepdims, initial=highest(dtype_of(x.dtype)))


@op("sum", numpy=_numpy_sum, lower=_reduce(_SUM))
def sum_(x: TensorType, *, axes: tuple[int, ...] | None = None, keepdims: bool = False) -> TensorType:
    """The sum along some axes; integers wrap around; 0 for no elements.

    x: an integer or float dtype.   axes: each in [-rank, rank), none twice; None: all.   keepdims: whether the axes
    stay, with size 1.   Result: the dtype of x.   Floats are added in several partial sums.
    Raises RelvmTypeError: bool, an axis out of range or given twice.   Source: ONNX ReduceSum-13.
    """
    return _reduced("sum", x, axes, keepdims)


@op("prod", numpy=_numpy_prod, lower=_reduce(_PROD))
def prod(x: TensorType, *, axes: tuple[int, ...] | None = None, keepdims: bool = False) -> TensorType:
    """The product along some axes; integers wrap around; 1 for no elements.

    x: an integer or float dtype.   axes: each in [-rank, rank), none twice; None: all.   keepdims: whether the axes
    stay, with size 1.   Result: the dtype of x.
    Raises RelvmTypeError: bool, an axis out of range or given twice.   Source: ONNX ReduceProd-18.
    """
    return _reduced("prod", x, axes, keepdims)


def _divide_by_count(total: Scalar, count: AnyDim) -> Scalar:
    return total / as_scalar(count, I64).to(total.dtype)


@op("mean", numpy=_numpy_mean, lower=_reduce(_SUM, _divide_by_count))
def mean(x: TensorType, *, axes: tuple[int, ...] | None = None, keepdims: bool = False) -> TensorType:
    """The sum along some axes divided by the number of elements; NaN for none.

    x: a float dtype.   axes: each in [-rank, rank), none twice; None: all.   keepdims: whether the axes stay, with
    size 1.
    Result: the dtype of x.
    Raises RelvmTypeError: another dtype, an axis out of range or given twice.   Source: ONNX ReduceMean-18.
    """
    expect_float("mean", x=x)
    return _reduced("mean", x, axes, keepdims)


@op("max", numpy=_numpy_max, lower=_reduce(_MAX))
def max_(x: TensorType, *, axes: tuple[int, ...] | None = None, keepdims: bool = False) -> TensorType:
    """The largest element along some axes; NaN where there is one; the dtype's smallest value (-inf) for no elements.

    x: an integer or float dtype.   axes: each in [-rank, rank), none twice; None: all.   keepdims: whether the axes
    stay, with size 1.   Result: the dtype of x.
    Raises RelvmTypeError: bool, an axis out of range or given twice.   Source: ONNX ReduceMax-20; NaN: NumPy.
    """
    return _reduced("max", x, axes, keepdims)


@op("min", numpy=_numpy_min, lower=_reduce(_MIN))
def min_(x: TensorType, *, axes: tuple[int, ...] | None = None, keepdims: bool = False) -> TensorType:
    """The smallest element along some axes; NaN where there is one; the dtype's largest value (inf) for no elements.

    x: an integer or float dtype.   axes: each in [-rank, rank), none twice; None: all.   keepdims: whether the axes
    stay, with size 1.   Result: the dtype of x.
    Raises RelvmTypeError: bool, an axis out of range or given twice.   Source: ONNX ReduceMin-20; NaN: NumPy.
    """
    return _reduced("min", x, axes, keepdims)


def _along(k: KernelBuilder, x: Buffer, axis: int):
    """An axis's size, the step along it, and the loops over everything before it and after it."""
    axis %= len(x.shape)
    size, step = k.size(x.shape[axis : axis + 1]), k.size(x.shape[axis + 1 :])
    return size, step, loop_nest(k, [product(x.shape[:axis]), product(x.shape[axis + 1 :])])


def _argument(better: Callable[[Scalar, Scalar], Scalar], name: str) -> Loops:
    """better: whether the second element takes the place of the first; NaN, once taken, stays."""

    def lower(k: KernelBuilder, inputs, outputs, *, axis: int, keepdims: bool) -> None:
        (x,), (out,) = inputs, outputs
        size, step, others = _along(k, x, axis)
        k.fail(size.equals(0), "SHAPE_ERROR", f"{name}: the axis has no elements")
        with others as (row, column):
            start = k.declare("start", row * size * step + column)
            best, place = k.declare("best", x.flat(start)), k.declare("place", Literal(0, I64))
            with k.loop(size, start=1, name="n") as n:
                element = k.declare("element", x.flat(start + n * step))
                wins = better(best, element)
                if x.dtype.is_float:
                    wins = wins.either(element.differs(element)).both(best.equals(best))
                with k.branch(wins):
                    k.assign(best, element)
                    k.assign(place, n)
            k.store(out, (row * step + column,), place)

    return Loops(lower)


def _argument_type(name: str, x: TensorType, axis: int, keepdims: bool) -> TensorType:
    expect_numeric(name, x=x)
    if x.rank is None:
        return TensorType(I64)
    at = expect_axis(name, axis, x.rank)
    result = _reduced(name, x, (at,), keepdims)
    empty = x.shape is not None and x.shape[at] == 0
    expect(not empty, "{}: axis {} of x has no elements", name, at, error=RelvmShapeError)
    return with_dtype(result, I64)


def _numpy_argument(function: Callable) -> Callable:
    def run(x: np.ndarray, *, axis: int, keepdims: bool) -> np.ndarray:
        return function(x, axis=axis, keepdims=keepdims)

    return run


@op("argmax", numpy=_numpy_argument(np.argmax), lower=_argument(lambda best, x: x > best, "argmax"))
def argmax(x: TensorType, *, axis: int, keepdims: bool = False) -> TensorType:
    """The place of the largest element along an axis, the first of equal ones; the first NaN where there is one.

    x: an integer or float dtype.   axis: in [-rank, rank), of size >= 1.   keepdims: whether the axis stays, with
    size 1.
    Result: i64.   Raises RelvmTypeError: bool, an axis out of range.  RelvmShapeError: an axis without elements.
    Source: ONNX ArgMax-13; NaN: NumPy.
    """
    return _argument_type("argmax", x, axis, keepdims)


@op("argmin", numpy=_numpy_argument(np.argmin), lower=_argument(lambda best, x: x < best, "argmin"))
def argmin(x: TensorType, *, axis: int, keepdims: bool = False) -> TensorType:
    """The place of the smallest element along an axis, the first of equal ones; the first NaN where there is one.

    x: an integer or float dtype.   axis: in [-rank, rank), of size >= 1.   keepdims: whether the axis stays, with
    size 1.
    Result: i64.   Raises RelvmTypeError: bool, an axis out of range.  RelvmShapeError: an axis without elements.
    Source: ONNX ArgMin-13; NaN: NumPy.
    """
    return _argument_type("argmin", x, axis, keepdims)


def _numpy_softmax(x: np.ndarray, *, axis: int) -> np.ndarray:
    powers = np.exp(x - np.max(x, axis=axis, keepdims=True, initial=-np.inf))
    return powers / np.sum(powers, axis=axis, keepdims=True)


def _softmax(k: KernelBuilder, inputs, outputs, *, axis: int) -> None:
    """A NaN anywhere makes the total NaN, so the maximum need not see it."""
    (x,), (out,) = inputs, outputs
    size, step, others = _along(k, x, axis)
    with others as (row, column):
        start = k.declare("start", row * size * step + column)
        largest = k.declare("largest", Literal(-np.inf, x.dtype))
        with k.loop(size, name="n", simd=True, reduce=[("max", largest)]) as n:
            element = k.declare("element", x.flat(start + n * step))
            k.assign(largest, Select(element > largest, element, largest))
        total = k.declare("total", Literal(0, x.dtype))
        with k.loop(size, name="n", simd=True, reduce=[("+", total)]) as n:
            position = k.declare("position", start + n * step)
            power = k.declare("power", Intrinsic("exp", (x.flat(position) - largest,), x.dtype))
            k.store(out, (position,), power)
            k.assign(total, total + power)
        with k.loop(size, name="n", simd=True) as n:
            position = k.declare("position", start + n * step)
            k.store(out, (position,), out.flat(position) / total)


@op("softmax", numpy=_numpy_softmax, lower=Loops(_softmax))
def softmax(x: TensorType, *, axis: int = -1) -> TensorType:
    """exp(x - max(x)) / sum, along an axis.

    x: a float dtype, rank >= 1.   axis: in [-rank, rank).   Result: the type of x.
    Raises RelvmTypeError: another dtype, an axis out of range.   Source: ONNX Softmax-13.
    """
    expect_float("softmax", x=x)
    if x.rank is not None:
        expect_axis("softmax", axis, x.rank)
    return x
