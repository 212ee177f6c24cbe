"""Pairwise coupling: estimates class probabilities from the probabilities of pairs of classes."""

from __future__ import annotations

import numpy as np

from relvm.ir.dtypes import I64
from relvm.ir.loop_ir import Literal, Operation, Scalar, as_scalar, select
from relvm.ir.operator import expect, op
from relvm.ir.type_rules import expect_equal_dims, expect_float
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import CustomKernel, parallel_loop_nest

_MAX_CLASSES = 512  # limit because two numbers for each class are stored on the C stack
_MIN_ROUNDS, _TOLERANCE = 100, 0.005


def _numpy_pairwise_coupling(x: np.ndarray) -> np.ndarray:
    classes, own = x.shape[1], x.dtype.type
    result = np.full(x.shape[:2], own(1) / own(max(classes, 1)), x.dtype)
    for pairs, shares in zip(x, result, strict=True):
        between = -(pairs * pairs.T)
        apart = np.where(np.eye(classes, dtype=bool), own(0), pairs)
        np.fill_diagonal(between, (apart * apart).sum(axis=0))
        for _ in range(max(_MIN_ROUNDS, classes)):
            slopes = between @ shares
            mean = shares @ slopes
            if np.all(np.abs(slopes - mean) < own(_TOLERANCE / classes)):
                break
            for t in range(classes):
                step = (mean - slopes[t]) / between[t, t]
                shares[t] += step
                mean = (mean + step * (step * between[t, t] + 2 * slopes[t])) / (1 + step) / (1 + step)
                slopes = (slopes + step * between[t]) / (1 + step)
                shares /= 1 + step
    return result


def _pairwise_coupling(k: KernelBuilder, inputs, outputs) -> None:
    """Generate the kernel of `pairwise_coupling`: Newton steps for one class after another.

    After each step, the probabilities are normalized so that their sum is 1.
    """
    (x,), (out,) = inputs, outputs
    count, dtype = x.shape[1], x.dtype
    classes, zero = as_scalar(count, I64), Literal(0.0, dtype)
    with parallel_loop_nest(k, [out.shape[0]], classes * classes * classes * 256) as (n,):
        start, shares = k.let("start", n * classes * classes), k.let("shares", n * classes)
        own, slopes = (k.allocate(name, dtype, (count,)) for name in ("own", "slopes"))

        def pair(t: Scalar, j: Scalar) -> Scalar:
            return x.flat(start + t * classes + j)

        def between(t: Scalar, j: Scalar) -> Scalar:
            return select(t.eq(j), own[t], -(pair(t, j) * pair(j, t)))

        with k.loop(classes, name="t") as t:
            k.store(out, (shares + t,), Literal(1.0, dtype) / classes.to(dtype))
            total = k.variable("total", zero)
            with k.loop(classes, name="j") as j:
                k.assign(total, total + select(t.eq(j), zero, pair(j, t) * pair(j, t)))
            k.store(own, (t,), total)
        left = k.variable("left", classes)  # set to 0 on convergence
        with k.loop(max(_MIN_ROUNDS, count), name="round"):
            mean, farthest = k.variable("mean", zero), k.variable("farthest", zero)
            with k.loop(left, name="t") as t:
                slope = k.variable("slope", zero)
                with k.loop(classes, name="j") as j:
                    k.assign(slope, slope + between(t, j) * out.flat(shares + j))
                k.store(slopes, (t,), slope)
                k.assign(mean, mean + out.flat(shares + t) * slope)
            with k.loop(left, name="t") as t:
                apart = k.let("apart", Operation("abs", (slopes[t] - mean,), dtype))
                k.assign(farthest, select(apart < farthest, farthest, apart))
            k.assign(left, select(farthest < _TOLERANCE / count, Literal(0, I64), left))
            with k.loop(left, name="t") as t:
                step = k.let("step", (mean - slopes[t]) / own[t])
                whole = k.let("whole", step + 1)
                k.store(out, (shares + t,), out.flat(shares + t) + step)
                k.assign(mean, (mean + step * (step * own[t] + slopes[t] * 2)) / whole / whole)
                with k.loop(classes, name="j") as j:
                    k.store(slopes, (j,), (slopes[j] + step * between(t, j)) / whole)
                    k.store(out, (shares + j,), out.flat(shares + j) / whole)


@op("pairwise_coupling", numpy=_numpy_pairwise_coupling, lower=CustomKernel(_pairwise_coupling))
def pairwise_coupling(x: TensorType) -> TensorType:
    """The class probabilities of each row that agree best with the probabilities of all pairs of classes.

    x: a tensor of shape (n, classes, classes) and of a float dtype.  Element (i, j) of a matrix is the probability of
    class i given that the class is i or j.  The diagonal is ignored.
    Result: a tensor of shape (n, classes) and of the dtype of x.  The elements of each row sum to 1.
    Raises RelvmTypeError if x has another dtype or rank, or the number of classes is unknown or exceeds 512.  Raises
    RelvmShapeError if the matrices are not square.
    Source: T.-F. Wu, C.-J. Lin, R. C. Weng, Probability Estimates for Multi-class Classification by Pairwise Coupling,
    2004, second method; with the tolerance of LIBSVM and ONNX Runtime.
    """
    expect_float("pairwise_coupling", x=x)
    expect(x.rank in (None, 3), "pairwise_coupling: x has rank {}, expected 3", x.rank)
    if x.shape is None:
        return TensorType(x.dtype, None, 2)
    expect_equal_dims("pairwise_coupling", "the matrices must be square", *x.shape[1:])
    known = isinstance(x.shape[1], int) and 1 <= x.shape[1] <= _MAX_CLASSES
    expect(known, "pairwise_coupling: x has {} classes, expected a known number from 1 to {}", x.shape[1], _MAX_CLASSES)
    return TensorType(x.dtype, x.shape[:2])
