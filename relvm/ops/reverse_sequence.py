"""The operator reverse_sequence, for a tensor that contains sequences of different lengths."""

from __future__ import annotations

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmShapeError
from relvm.ir.dtypes import I64
from relvm.ir.loop_ir import select
from relvm.ir.operator import expect, op
from relvm.ir.type_rules import expect_equal_dims, expect_tensor
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import CustomKernel


def _numpy_reverse_sequence(x: np.ndarray, lengths: np.ndarray, *, time_axis: int) -> np.ndarray:
    steps, result = x.shape[time_axis], x.copy()
    wrong = next((n for n in lengths if not 0 <= n <= steps), None)
    if wrong is not None:
        raise RelvmShapeError(f"reverse_sequence: a sequence has {wrong} steps, expected 0 to {steps}")
    for n, length in enumerate(lengths):
        if time_axis == 0:
            result[:length, n] = x[:length, n][::-1]
        else:
            result[n, :length] = x[n, :length][::-1]
    return result


def _reverse_sequence(k: KernelBuilder, inputs, outputs, *, time_axis: int) -> None:
    (x, lengths), (out,) = inputs, outputs
    steps, batch, width = (k.size(dims) for dims in (x.shape[time_axis:][:1], lengths.shape, x.shape[2:]))
    with k.loop(batch, name="n") as n:
        length = k.let("length", lengths[n].to(I64))
        outside = (length < 0).logical_or(length > steps)
        message = "reverse_sequence: a sequence has %lld steps, expected 0 to %lld"
        k.fail(outside, "SHAPE_ERROR", message, length, steps)
    with k.loop(x.shape[0], name="a") as a, k.loop(x.shape[1], name="b") as b:
        n, t = (a, b) if time_axis == 1 else (b, a)
        length = k.let("length", lengths[n].to(I64))
        from_ = k.let("from", select(t < length, length - 1 - t, t))
        first, second = (a, from_) if time_axis == 1 else (from_, b)
        columns = k.size(x.shape[1:2])
        source = k.let("source", (first * columns + second) * width)
        target = k.let("target", (a * columns + b) * width)
        with k.loop(width, simd=True) as i:
            k.store(out, (target + i,), x.flat(source + i))


@op("reverse_sequence", numpy=_numpy_reverse_sequence, lower=CustomKernel(_reverse_sequence), moves=True)
def reverse_sequence(x: TensorType, lengths: TensorType, *, time_axis: int = 0) -> TensorType:
    """Each sequence in reverse order.  Steps after the end of a sequence are unchanged.

    x: a tensor of shape (steps, batch, ...), or (batch, steps, ...) if `time_axis` is 1.
    lengths: a tensor of an integer dtype and of shape (batch,), with the length of each sequence, in [0, steps].
    time_axis: the axis of the steps, 0 or 1.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if the rank of x is below 2, or `lengths` has another dtype or rank.  Raises
    RelvmArgumentError if `time_axis` has another value.  Raises RelvmShapeError if the number of lengths is not the
    batch size or, at run time, if a length is out of range.
    Source: ONNX ReverseSequence-10.

    Examples:

        >>> run("reverse_sequence(x, lengths)", x=[[1, 10], [2, 20], [3, 30]], lengths=[3, 2])
        [[ 3 20]
         [ 2 10]
         [ 1 30]]
    """
    expect_tensor("reverse_sequence", x=x, lengths=lengths)
    message = "reverse_sequence: lengths has dtype {}, expected an integer dtype"
    expect(lengths.known_dtype.is_integer, message, lengths.dtype)
    expect(x.rank is None or x.rank >= 2, "reverse_sequence: x has rank {}, expected at least 2", x.rank)
    expect(lengths.rank in (1, None), "reverse_sequence: lengths has rank {}, expected 1", lengths.rank)
    message = "reverse_sequence: time_axis is {!r}, expected 0 or 1"
    expect(time_axis in (0, 1), message, time_axis, error=RelvmArgumentError)
    if x.shape is not None and lengths.shape is not None:
        what = f"dimension {1 - time_axis} of x and the number of lengths differ"
        expect_equal_dims("reverse_sequence", what, x.shape[1 - time_axis], lengths.shape[0])
    return x
