"""Cumulative sums and products along an axis."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relvm.errors import RelvmArgumentError
from relvm.ir.loop_ir import Literal, Scalar
from relvm.ir.operator import expect, op
from relvm.ir.type_rules import expect_axis, expect_numeric
from relvm.ir.types import TensorType
from relvm.kernels.flop_count import one_per_element
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import CustomKernel


def _numpy_cumulation(function: np.ufunc) -> Callable[..., np.ndarray]:
    def run(x: np.ndarray, *, axis: int, exclusive: bool, reverse: bool) -> np.ndarray:
        x = np.flip(x, axis) if reverse else x
        if exclusive:
            first = np.full_like(x.take(range(min(1, x.shape[axis])), axis), function.identity)
            x = np.concatenate((first, x.take(range(x.shape[axis] - 1), axis)), axis)
        result = function.accumulate(x, axis, dtype=x.dtype)
        return np.flip(result, axis) if reverse else result

    return run


def _cumulation(combine: Callable[[Scalar, Scalar], Scalar], start: int) -> CustomKernel:
    """Return the kernel for a cumulative operation along an axis, such as a cumulative sum.

    combine: a function of the previous result and an element, which returns the next result.
    start: the first result if an element's own value is excluded (`exclusive`).
    """

    def lower(k: KernelBuilder, inputs, outputs, *, axis: int, exclusive: bool, reverse: bool) -> None:
        (x,), (out,) = inputs, outputs
        axis %= len(x.shape)
        size, width = k.size(x.shape[axis : axis + 1]), k.size(x.shape[axis + 1 :])
        step = -width if reverse else width
        with k.loop(k.size(x.shape[:axis]), name="block") as block:
            first = k.let("first", (block * size + size - 1 if reverse else block * size) * width)
            with k.branch(size > 0), k.loop(width, simd=True) as i:
                k.store(out, (first + i,), Literal(start, x.dtype) if exclusive else x.flat(first + i))
            with k.loop(size, start=1, name="n") as n:
                here = k.let("here", first + n * step)
                before = k.let("before", here - step)
                with k.loop(width, simd=True) as i:
                    element = x.flat((before if exclusive else here) + i)
                    k.store(out, (here + i,), combine(out.flat(before + i), element))

    return CustomKernel(lower, one_per_element)


def _type(name: str, x: TensorType, axis: int, exclusive: object, reverse: object) -> TensorType:
    expect_numeric(name, x=x)
    for attribute, value in (("exclusive", exclusive), ("reverse", reverse)):
        is_bool = isinstance(value, bool)
        expect(is_bool, "{}: {} is {!r}, expected a bool", name, attribute, value, error=RelvmArgumentError)
    if x.rank is not None:
        expect_axis(name, axis, x.rank)
    return x


@op("cumsum", numpy=_numpy_cumulation(np.add), lower=_cumulation(lambda total, x: total + x, 0))
def cumsum(x: TensorType, *, axis: int, exclusive: bool = False, reverse: bool = False) -> TensorType:
    """The cumulative sum along an axis; integers wrap around.

    x: a tensor of an integer or float dtype and of rank >= 1.
    axis: the axis, in [-rank, rank).
    exclusive: whether the sum for an element excludes the element itself.
    reverse: whether to sum from each element to the end, instead of from the start to each element.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has dtype bool or the axis is out of range.  Raises RelvmArgumentError if a flag is not a
    bool.
    Source: ONNX CumSum-14.

    Examples:

        >>> run("cumsum(x, axis=0)", x=[1, 2, 3, 4])
        [ 1  3  6 10]
    """
    return _type("cumsum", x, axis, exclusive, reverse)


@op("cumprod", numpy=_numpy_cumulation(np.multiply), lower=_cumulation(lambda total, x: total * x, 1))
def cumprod(x: TensorType, *, axis: int, exclusive: bool = False, reverse: bool = False) -> TensorType:
    """The cumulative product along an axis; integers wrap around.

    x: a tensor of an integer or float dtype and of rank >= 1.
    axis: the axis, in [-rank, rank).
    exclusive: whether the product for an element excludes the element itself.
    reverse: whether to multiply from each element to the end, instead of from the start to each element.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has dtype bool or the axis is out of range.  Raises RelvmArgumentError if a flag is not a
    bool.
    Source: ONNX CumProd-26.

    Examples:

        >>> run("cumprod(x, axis=0)", x=[1, 2, 3, 4])
        [ 1  2  6 24]
    """
    return _type("cumprod", x, axis, exclusive, reverse)
