"""Dynamic quantization: a number is represented as (q - zero) * scale.

The scale and the zero point are computed at run time from the range of the numbers.
"""

from __future__ import annotations

import numpy as np

from relvm.ir.dtypes import F32, I64, U8
from relvm.ir.loop_ir import Literal, Operation, Scalar, maximum, minimum, select
from relvm.ir.operator import expect, op
from relvm.ir.symbolic import AnyDim, product
from relvm.ir.types import TensorType, TupleType
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import CustomKernel

_HIGHEST = 255
_MAX_CHUNKS, _MIN_CHUNK = 64, 4096  # maximum number of chunks, and minimum size of a chunk
_ELEMENT_WORK = 2  # the time to quantize an element, in eighths of a nanosecond


def _dynamic_quantize(k: KernelBuilder, inputs, outputs) -> None:
    """Generate the kernel of `dynamic_quantize`.  A first pass over x finds the range, a second quantizes the
    elements."""
    (x,), (out, scale_out, zero_out) = inputs, outputs
    size, nothing = k.size(x.shape), Literal(0, I64)
    chunk = k.let("chunk", maximum((size + (_MAX_CHUNKS - 1)) / _MAX_CHUNKS, _MIN_CHUNK))
    chunks = k.let("chunks", (size + (chunk - 1)) / chunk)
    lows, highs = (k.allocate(name, F32, (_MAX_CHUNKS,)) for name in ("lows", "highs"))
    with k.parallel(chunks, chunk) as (first, last), k.loop(last, start=first, name="c") as c:
        low, high = (k.variable(name, Literal(0, F32)) for name in ("low", "high"))
        stop = k.let("stop", minimum((c + 1) * chunk, size))
        with k.loop(stop, start=c * chunk, simd=True, reduce=(("min", low), ("max", high))) as i:
            element = k.let("element", x.flat(i))
            k.assign(low, select(element < low, element, low))
            k.assign(high, select(element > high, element, high))
        k.store(lows, (c,), low)
        k.store(highs, (c,), high)
    low, high = (k.variable(name, Literal(0, F32)) for name in ("low", "high"))
    with k.loop(chunks, name="c") as c:
        k.assign(low, select(lows[c] < low, lows[c], low))
        k.assign(high, select(highs[c] > high, highs[c], high))
    span = k.let("span", high - low)
    scale = k.let("scale", select(span.eq(0), Literal(1, F32), span / _HIGHEST))
    # NaN, of an infinite low and scale, becomes 255.
    below = k.let("below", _rounded(-low / scale))
    zero = k.let("zero", _clamp_to_u8(select(below < _HIGHEST, below, Literal(_HIGHEST, F32))))
    k.store(scale_out, (nothing,), scale)
    k.store(zero_out, (nothing,), zero.to(U8))
    with k.parallel(size, _ELEMENT_WORK) as (first, last), k.loop(last, start=first, simd=True) as i:
        k.store(out, (i,), Operation("rvm_saturate_u8", (_rounded(x.flat(i) / scale) + zero,), U8))


def _rounded(x: Scalar) -> Scalar:
    return Operation("round", (x,), F32)


def _clamp_to_u8(x: Scalar) -> Scalar:
    """Clamp x to the range of u8; NaN becomes 0."""
    above = select(x > 0, x, Literal(0, F32))
    return select(above < _HIGHEST, above, Literal(_HIGHEST, F32))


def _numpy_dynamic_quantize(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    nothing, highest = np.float32(0), np.float32(_HIGHEST)
    low = np.fmin.reduce(x, axis=None, initial=nothing)
    high = np.fmax.reduce(x, axis=None, initial=nothing)
    with np.errstate(all="ignore"):
        span = np.subtract(high, low)
        scale = np.float32(1) if span == 0 else np.divide(span, highest)
        zero = np.fmax(np.fmin(np.rint(-low / scale), highest), nothing)
        indices = np.fmin(np.fmax(np.rint(x / scale) + zero, nothing), highest)
    return indices.astype(np.uint8), np.asarray(scale, np.float32), np.asarray(zero, np.uint8)


def _operations(x: tuple[AnyDim, ...], *shapes: tuple[AnyDim, ...]) -> AnyDim:
    """Return the number of operations: seven for each element.

    They are two for the range, a division, a rounding, an addition, and two for clamping.
    """
    return 7 * product(x)


@op("dynamic_quantize", numpy=_numpy_dynamic_quantize, lower=CustomKernel(_dynamic_quantize, _operations))
def dynamic_quantize(x: TensorType) -> TupleType:
    """x quantized to u8: round(x / scale) + zero, clamped to [0, 255].  Ties are rounded to even.

    The scale and the zero point are computed from x.  They map an interval [low, high] to [0, 255].  `low` is the
    minimum of 0 and all elements of x, and `high` is the maximum of 0 and all elements of x.

    x: an f32 tensor.  A NaN does not affect the interval, and is quantized to 0.  If x has no elements, or all are
    zero, the scale is 1.  If the scale is infinite because x contains -inf, or 0 by underflow, the zero point is 255.
    Result: a tuple of three tensors: the quantized x (u8), the scale (f32, rank 0), and the zero point (u8, rank 0).
    Raises RelvmTypeError if x has another dtype.
    Source: ONNX DynamicQuantizeLinear-11; ONNX Runtime for the cases that ONNX does not define.

    Examples:

        >>> run("dynamic_quantize(x)", x=[0.0, 1.0, 2.55])
        [  0 100 255]
        0.01
        0
    """
    expect(x.dtype == F32, "dynamic_quantize: x has dtype {}, expected f32", x.dtype)
    return TupleType((TensorType(U8, x.shape, x.rank), TensorType(F32, ()), TensorType(U8, ())))
