"""Random numbers.

In every run, a node draws one random number from the virtual machine and mixes it with the index of each element.  A
node with a seed uses the seed instead, so it returns the same numbers in every run.  Source: SplitMix64; Box and
Muller, 1958.
"""

from __future__ import annotations

import math
import struct

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.onnx.dynamic_sizes import iota
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr, shaped_input
from relvm.ir.dtypes import F32, F64, I32, I64, U64, DType
from relvm.ir.expr import Expr, constant
from relvm.ir.symbolic import AnyDim

_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


@converts("RandomUniform", "RandomUniformLike")
def _uniform(node: OnnxNode) -> Expr:
    low, high = node.attribute("low", 0.0), node.attribute("high", 1.0)
    shape, dtype = _result_type(node)
    return (_uniform_fractions(node, shape, dtype) * (high - low) + low).cast(dtype).expr


@converts("RandomNormal", "RandomNormalLike")
def _normal(node: OnnxNode) -> Expr:
    mean, scale = node.attribute("mean", 0.0), node.attribute("scale", 1.0)
    shape, dtype = _result_type(node)
    one, other = (_uniform_fractions(node, shape, dtype, stream) for stream in (0, 1))
    radius = ((1 - one).apply(ops.log) * -2.0).apply(ops.sqrt)
    return (radius * (other * (2 * math.pi)).apply(ops.cos) * scale + mean).cast(dtype).expr


@converts("Bernoulli")
def _bernoulli(node: OnnxNode) -> Expr:
    """Draws 1 with the probability given by each element, otherwise 0.  (ONNX's own function body swaps 0 and 1.)"""
    x, number = shaped_input(node, 0), node.attribute("dtype")
    dtype = x.dtype if number is None else node.graph.element_type(number, "dtype")
    drawn = _uniform_fractions(node, x.shape, x.dtype).cast(x.dtype)
    return (drawn < x).cast(dtype).expr


@converts("Multinomial")
def _multinomial(node: OnnxNode) -> Expr:
    """Draws classes from each row of unnormalized log probabilities."""
    x = shaped_input(node, 0)
    rows, count, last = x.shape[0], node.attribute("sample_size", 1), x.shape[1]
    dtype = node.graph.element_type(node.attribute("dtype", 6), "dtype")
    if not isinstance(last, int):
        raise RelvmUnsupportedError(f"the number of classes must be known, got {last}")
    if dtype not in (I32, I64):
        raise RelvmUnsupportedError(f"dtype is {dtype}, expected i32 or i64")
    bounds = x.apply(ops.softmax, axis=1).apply(ops.cumsum, axis=1)
    drawn = _uniform_fractions(node, (rows, count), x.dtype).cast(x.dtype)
    passed = drawn.apply(ops.expand_dims, axes=(2,)) > bounds.apply(ops.expand_dims, axes=(1,))
    place = passed.cast(I64).apply(ops.sum, axes=(2,), keepdims=False)
    return place.apply(ops.minimum, last - 1).cast(dtype).expr


def _result_type(node: OnnxNode) -> tuple[tuple[AnyDim, ...], DType]:
    """Return the shape and dtype of a node's result, from the attributes or the input of the node."""
    number = node.attribute("dtype")
    like = shaped_input(node, 0) if node.inputs else None
    dtype = like.dtype if like and number is None else node.graph.element_type(number or 1, "dtype")
    if not dtype.is_float:
        raise RelvmUnsupportedError(f"random numbers of dtype {dtype} are not supported: expected a float dtype")
    return like.shape if like else tuple(node.attribute("shape")), dtype


def _uniform_fractions(node: OnnxNode, shape: tuple[AnyDim, ...], dtype: DType, stream: int = 0) -> TensorExpr:
    """Return a tensor of random numbers in [0, 1), of dtype f64 if `dtype` is f64, otherwise f32.

    stream: a number that must differ between several calls for one node.  If the node has a seed, calls with the same
    value of `stream` would return the same numbers.
    """
    seed = node.attribute("seed")
    if seed is None:
        start = TensorExpr(node, node.emit(ops.to_tensor(node.emit(ops.random_bits()), dtype="i64"))).cast(U64)
    else:
        (bits,) = struct.unpack("<I", struct.pack("<f", seed))
        start = TensorExpr(node, constant(np.uint64((bits * _SECOND + stream * _FIRST) % 2**64)))
    x = iota(node, *shape).cast(U64) * _STEP + start
    x = _mix(_mix(_mix(x, 30) * _FIRST, 27) * _SECOND, 31)
    wide, digits = (F64, 53) if dtype == F64 else (F32, 24)
    return x.apply(ops.shift_right, 64 - digits).cast(wide) * 2.0**-digits


def _mix(x: TensorExpr, shift: int) -> TensorExpr:
    return x.apply(ops.bitwise_xor, x.apply(ops.shift_right, shift))
