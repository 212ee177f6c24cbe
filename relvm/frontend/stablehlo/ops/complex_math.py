"""Arithmetic on complex numbers.  The formulas of complex<f32> are computed in f64, and rounded at the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmFormatError
from relvm.frontend.common import complex_math
from relvm.frontend.common.complex_math import Complex
from relvm.frontend.common.fourier import fourier_transform, inverse_real_transform
from relvm.frontend.stablehlo.complex_numbers import complex_of, is_complex, parts, real_type
from relvm.frontend.stablehlo.ops.elementwise import converted, unified
from relvm.frontend.stablehlo.program import Elements, Value
from relvm.frontend.stablehlo.registry import Node, converter_for, converts_complex
from relvm.ir.dtypes import F32, F64
from relvm.ir.expr import Expr, Tuple


def _wide(node: Node, index: int) -> Complex:
    """Return the parts of an operand in f64."""
    real, imaginary = parts(node, node.operands[index])
    return node.cast(real, F64), node.cast(imaginary, F64)


def _declare(name: str, function: Callable[..., Complex]) -> None:
    """Register a function of the parts of complex numbers, in f64, as a converter."""

    @converts_complex(name)
    def convert(node: Node) -> Tuple:
        dtype = F32 if "f32" in str(node.declared().element) else F64
        operands = [_wide(node, i) for i in range(len(node.operands))]
        real, imaginary = function(node, *operands)
        return complex_of(node, node.cast(node.emit(real), dtype), node.cast(node.emit(imaginary), dtype))


# Operations -> functions of the parts of complex numbers.
_FUNCTIONS: dict[str, Callable[..., Complex]] = {
    "multiply": complex_math.multiply,
    "divide": complex_math.divide,
    "exponential": complex_math.exponential,
    "exponential_minus_one": complex_math.exponential_minus_one,
    "log": complex_math.log,
    "log_plus_one": complex_math.log_plus_one,
    "sqrt": complex_math.sqrt,
    "cbrt": complex_math.cbrt,
    "rsqrt": complex_math.rsqrt,
    "power": complex_math.power,
    "logistic": complex_math.logistic,
    "sine": complex_math.sine,
    "cosine": complex_math.cosine,
    "tanh": complex_math.tanh,
    "chlo.square": complex_math.square,
    "tan": complex_math.tan,
    "chlo.tan": complex_math.tan,
    "chlo.sinh": complex_math.sinh,
    "chlo.cosh": complex_math.cosh,
    "sign": complex_math.sign,
    "chlo.asinh": complex_math.asinh,
    "chlo.asin": complex_math.asin,
    "chlo.acos": complex_math.acos,
    "chlo.acosh": complex_math.acosh,
    "chlo.atan": complex_math.atan,
    "chlo.atanh": complex_math.atanh,
}
for _name, _each in _FUNCTIONS.items():
    _declare(_name, _each)


@converts_complex("iota")
def _iota(node: Node) -> Tuple:
    """Returns the positions as real parts, with imaginary parts of 0."""
    result = node.operation.results[0]
    real_result = Value(real_type(result.type), result.name)
    convert = converter_for("stablehlo.iota")
    assert convert is not None
    real = node.emit(convert(replace(node, operation=replace(node.operation, results=(real_result,)))))
    return complex_of(node, real, ops.multiply(real, 0.0))


# ---- parts, conversions and comparisons ----


@converts_complex("abs")
def _abs(node: Node) -> Expr:
    dtype = node.result_dtype()
    return node.cast(complex_math.magnitude(node, _wide(node, 0)), dtype)


@converts_complex("real")
def _real(node: Node) -> Expr:
    return parts(node, node.operands[0])[0]


@converts_complex("imag")
def _imag(node: Node) -> Expr:
    return parts(node, node.operands[0])[1]


@converts_complex("complex")
def _complex(node: Node) -> Tuple:
    real, imaginary = unified(node)
    return complex_of(node, real, imaginary)


@converts_complex("chlo.conj")
def _conj(node: Node) -> Tuple:
    real, imaginary = parts(node, node.operands[0])
    return complex_of(node, real, ops.negative(imaginary))


@converts_complex("constant")
def _constant(node: Node) -> Expr:
    value = node.attribute("value")
    if not isinstance(value, Elements) or value.array.dtype.kind != "c":
        raise RelvmFormatError(f"the value is {value!r}, expected complex elements")
    return constant_of(node, value)


def constant_of(node: Node, value: Elements) -> Expr:
    """Return the tensor of a constant, which can be complex."""
    if value.array.dtype.kind != "c":
        return node.importer.constant(value)
    real, imaginary = (
        node.importer.constant(Elements(real_type(value.type), np.ascontiguousarray(part).reshape(part.shape)))
        for part in (value.array.real, value.array.imag)
    )
    return complex_of(node, real, imaginary)


@converts_complex("convert")
def _convert(node: Node) -> Expr:
    """Converts a real number with the imaginary part 0, and a complex number to a real one by dropping this part."""
    x = node.operands[0]
    target = real_type(node.declared())
    plain = replace(node.operation, results=(Value(target),))
    dtype = Node(node.importer, plain, node.operands, node.values).result_dtype()
    if not is_complex(node.operation.operands[0].type):
        real = node.emit(converted(node, x, dtype))
        zero = node.broadcast(node.number(0, dtype), real.tensor_type.known_shape)
        return complex_of(node, real, zero)
    real, imaginary = parts(node, x)
    if not is_complex(node.declared()):
        return node.emit(converted(node, real, dtype))
    return complex_of(node, converted(node, real, dtype), converted(node, imaginary, dtype))


@converts_complex("compare")
def _compare(node: Node) -> Expr:
    """Supports only the comparisons EQ and NE."""
    direction = node.word("comparison_direction", ("EQ", "NE"))
    (a, b), (c, d) = (parts(node, x) for x in node.operands)
    same = ops.logical_and(ops.equal(a, c), ops.equal(b, d))
    return same if direction == "EQ" else ops.logical_not(same)


@converts_complex("dot_general", "dot", "convolution")
def _product(node: Node) -> Tuple:
    """Computes four products of the real and imaginary parts."""
    convert = converter_for(node.operation.name)
    assert convert is not None
    plain = replace(node.operation, results=(Value(real_type(node.declared())),))

    def product(x: Expr, y: Expr) -> Expr:
        return node.emit(convert(Node(node.importer, plain, [x, y], node.values)))

    (a, b), (c, d) = (parts(node, x) for x in node.operands)
    real = ops.subtract(product(a, c), product(b, d))
    return complex_of(node, real, ops.add(product(a, d), product(b, c)))


@converts_complex("fft")
def _fft(node: Node) -> Expr:
    """Transforms one axis after the other, in f64, and rounds the result once."""
    kind = node.word("fft_type", ("FFT", "IFFT", "RFFT", "IRFFT"))
    lengths = node.integers("fft_length")
    rank = len(lengths)
    source, target = node.operation.operands[0].type, node.declared()
    dtype = F32 if "f32" in str(target.element) else F64
    real, imaginary = (node.cast(node.operands[0], F64), None) if kind == "RFFT" else _wide(node, 0)
    shape = real.tensor_type.known_shape
    if not 1 <= rank <= len(shape):
        raise RelvmFormatError(f"fft_length is {list(lengths)} for an operand of type {source}")
    first = len(shape) - rank
    for position in range(rank - 1, -1, -1) if kind == "RFFT" else range(rank):
        axis, count = first + position, lengths[position]
        is_half = position == rank - 1 and kind in ("RFFT", "IRFFT")
        expected = count // 2 + 1 if kind == "IRFFT" and is_half else count
        if count < 0 or real.tensor_type.known_shape[axis] != expected:
            raise RelvmFormatError(f"axis {axis} of {source} must have the size {expected}")
        real = _along(node, real, axis)
        imaginary = None if imaginary is None else _along(node, imaginary, axis)
        if kind == "IRFFT" and is_half:
            assert imaginary is not None
            result = inverse_real_transform(node.importer, real, imaginary, count)
            return node.cast(_back(node, result, axis), dtype)
        inverse = kind in ("IFFT", "IRFFT")
        real, imaginary = fourier_transform(node.importer, real, imaginary, count, inverse=inverse)
        if is_half:
            real, imaginary = (_first(node, part, count // 2 + 1) for part in (real, imaginary))
        real, imaginary = _back(node, real, axis), _back(node, imaginary, axis)
    assert imaginary is not None
    return complex_of(node, node.cast(real, dtype), node.cast(imaginary, dtype))


def _first(node: Node, x: Expr, count: int) -> Expr:
    """Return the first `count` elements of the last axis."""
    axis = len(x.tensor_type.known_shape) - 1
    return node.emit(ops.slice(x, begin=(0,), end=(count,), axes=(axis,)))


def _along(node: Node, x: Expr, axis: int) -> Expr:
    """Return x with an axis moved to the end."""
    rank = len(x.tensor_type.known_shape)
    order = (*(i for i in range(rank) if i != axis), axis)
    return x if axis == rank - 1 else node.emit(ops.transpose(x, perm=order))


def _back(node: Node, x: Expr, axis: int) -> Expr:
    """Return x with the last axis moved to `axis`."""
    rank = len(x.tensor_type.known_shape)
    order = (*range(axis), rank - 1, *range(axis, rank - 1))
    return x if axis == rank - 1 else node.emit(ops.transpose(x, perm=order))
