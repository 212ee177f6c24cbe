"""Arithmetic on complex numbers.  The formulas of complex<f32> are computed in f64, and rounded at the end."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmFormatError
from relvm.frontend.common.fourier import fourier_transform, inverse_real_transform
from relvm.frontend.stablehlo.complex_numbers import complex_of, is_complex, parts, real_type
from relvm.frontend.stablehlo.ops.elementwise import converted, unified
from relvm.frontend.stablehlo.program import Elements, ElementType, Value
from relvm.frontend.stablehlo.registry import Node, converter_for, converts_complex
from relvm.ir.dtypes import F32, F64
from relvm.ir.expr import Expr, Tuple

Complex = tuple[Expr, Expr]
_F64 = ElementType("f64")


def _wide(node: Node, index: int) -> Complex:
    """Return the parts of an operand in f64."""
    real, imaginary = parts(node, node.operands[index])
    return node.cast(real, F64), node.cast(imaginary, F64)


def _is_negative(x: Expr) -> Expr:
    """Return whether the sign bit of x is set.  For -0.0, it selects the side of a branch cut."""
    return ops.less(ops.bit_cast(x, to="i64"), 0)


def _function(name: str) -> Callable[[Callable[..., Complex]], Callable[..., Complex]]:
    """Return a decorator that registers a function of complex numbers as the converter of the operation `name`.

    The function takes the node and the parts of each operand in f64, and returns the parts of the result in f64.
    """

    def declare(function: Callable[..., Complex]) -> Callable[..., Complex]:
        @converts_complex(name)
        def convert(node: Node) -> Tuple:
            dtype = F32 if "f32" in str(node.declared().element) else F64
            operands = [_wide(node, i) for i in range(len(node.operands))]
            real, imaginary = function(node, *operands)
            return complex_of(node, node.cast(node.emit(real), dtype), node.cast(node.emit(imaginary), dtype))

        return function

    return declare


@converts_complex("iota")
def _iota(node: Node) -> Tuple:
    """Returns the positions as real parts, with imaginary parts of 0."""
    result = node.operation.results[0]
    real_result = Value(real_type(result.type), result.name)
    convert = converter_for("stablehlo.iota")
    assert convert is not None
    real = node.emit(convert(replace(node, operation=replace(node.operation, results=(real_result,)))))
    return complex_of(node, real, ops.multiply(real, 0.0))


@_function("multiply")
def _multiply(node: Node, x: Complex, y: Complex) -> Complex:
    (a, b), (c, d) = x, y
    return (
        node.emit(ops.subtract(ops.multiply(a, c), ops.multiply(b, d))),
        node.emit(ops.add(ops.multiply(a, d), ops.multiply(b, c))),
    )


@_function("divide")
def _divide(node: Node, x: Complex, y: Complex) -> Complex:
    """Divides by Smith's method, which does not overflow where the result does not."""
    (a, b), (c, d) = x, y
    steep = node.emit(ops.less(ops.abs(c), ops.abs(d)))
    small, large = node.emit(ops.where(steep, c, d)), node.emit(ops.where(steep, d, c))
    ratio = node.emit(ops.divide(small, large))
    scale = node.emit(ops.add(large, ops.multiply(small, ratio)))
    first, second = node.emit(ops.where(steep, b, a)), node.emit(ops.where(steep, a, b))
    real = ops.divide(ops.add(first, ops.multiply(second, ratio)), scale)
    up = ops.subtract(second, ops.multiply(first, ratio))
    down = ops.subtract(ops.multiply(first, ratio), second)
    return node.emit(real), node.emit(ops.divide(ops.where(steep, down, up), scale))


def _magnitude(node: Node, x: Complex) -> Expr:
    a, b = (node.emit(ops.abs(part)) for part in x)
    large, small = node.emit(ops.maximum(a, b)), node.emit(ops.minimum(a, b))
    ratio = node.emit(ops.divide(small, large))
    size = ops.multiply(large, ops.sqrt(ops.add(ops.multiply(ratio, ratio), 1.0)))
    is_special = ops.logical_or(ops.equal(small, 0.0), ops.equal(large, math.inf))
    return node.emit(ops.where(is_special, large, size))


@_function("exponential")
def _exponential(node: Node, x: Complex) -> Complex:
    a, b = x
    size = node.emit(ops.exp(a))
    return ops.multiply(size, ops.cos(b)), ops.multiply(size, ops.sin(b))


@_function("exponential_minus_one")
def _exponential_minus_one(node: Node, x: Complex) -> Complex:
    a, b = x
    half = node.emit(ops.sin(ops.multiply(b, 0.5)))
    versine = ops.multiply(ops.multiply(half, half), -2.0)
    return (
        ops.add(ops.multiply(ops.expm1(a), ops.cos(b)), versine),
        ops.multiply(ops.exp(a), ops.sin(b)),
    )


@_function("log")
def _log(node: Node, x: Complex) -> Complex:
    return node.emit(ops.log(_magnitude(node, x))), node.emit(ops.atan2(x[1], x[0]))


@_function("log_plus_one")
def _log_plus_one(node: Node, x: Complex) -> Complex:
    a, b = x
    square = ops.add(ops.multiply(a, ops.add(a, 2.0)), ops.multiply(b, b))
    return node.emit(ops.multiply(ops.log1p(square), 0.5)), node.emit(ops.atan2(b, ops.add(a, 1.0)))


@_function("sqrt")
def _sqrt(node: Node, x: Complex) -> Complex:
    a, b = x
    root = node.emit(ops.sqrt(ops.multiply(ops.add(ops.abs(a), _magnitude(node, x)), 0.5)))
    other = node.emit(ops.divide(ops.abs(b), ops.multiply(root, 2.0)))
    other = node.emit(ops.where(ops.equal(root, 0.0), 0.0, other))
    is_right = node.emit(ops.greater_equal(a, 0.0))
    size = ops.where(is_right, other, root)
    return (
        node.emit(ops.where(is_right, root, other)),
        node.emit(ops.where(_is_negative(b), ops.negative(size), size)),
    )


@_function("cbrt")
def _cbrt(node: Node, x: Complex) -> Complex:
    size = node.emit(ops.cbrt(_magnitude(node, x)))
    angle = node.emit(ops.divide(ops.atan2(x[1], x[0]), 3.0))
    return ops.multiply(size, ops.cos(angle)), ops.multiply(size, ops.sin(angle))


@_function("rsqrt")
def _rsqrt(node: Node, x: Complex) -> Complex:
    one = node.number(1.0, F64), node.number(0.0, F64)
    return _divide(node, one, _sqrt(node, x))


@_function("power")
def _power(node: Node, x: Complex, y: Complex) -> Complex:
    found = _exponential(node, _multiply(node, _log(node, x), y))
    is_zero = node.emit(ops.logical_and(ops.equal(x[0], 0.0), ops.equal(x[1], 0.0)))
    is_one = ops.logical_and(ops.equal(y[0], 0.0), ops.equal(y[1], 0.0))
    at_zero = ops.where(is_one, node.number(1.0, F64), node.number(0.0, F64))
    return ops.where(is_zero, at_zero, found[0]), ops.where(is_zero, 0.0, found[1])


@_function("logistic")
def _logistic(node: Node, x: Complex) -> Complex:
    a, b = _exponential(node, (ops.negative(x[0]), ops.negative(x[1])))
    one = node.number(1.0, F64), node.number(0.0, F64)
    return _divide(node, one, (node.emit(ops.add(a, 1.0)), node.emit(b)))


@_function("sine")
def _sine(node: Node, x: Complex) -> Complex:
    a, b = x
    return (
        node.emit(ops.multiply(ops.sin(a), ops.cosh(b))),
        node.emit(ops.multiply(ops.cos(a), ops.sinh(b))),
    )


@_function("cosine")
def _cosine(node: Node, x: Complex) -> Complex:
    a, b = x
    return (
        node.emit(ops.multiply(ops.cos(a), ops.cosh(b))),
        node.emit(ops.negative(ops.multiply(ops.sin(a), ops.sinh(b)))),
    )


@_function("tanh")
def _tanh(node: Node, x: Complex) -> Complex:
    a, b = x
    t, u = node.emit(ops.tanh(a)), node.emit(ops.tan(b))
    one = node.number(1.0, F64)
    return _divide(node, (t, u), (one, node.emit(ops.multiply(t, u))))


@_function("chlo.square")
def _square(node: Node, x: Complex) -> Complex:
    return _multiply(node, x, x)


@_function("tan")
@_function("chlo.tan")
def _tan(node: Node, x: Complex) -> Complex:
    """Returns -i tanh(i x)."""
    return _times_minus_i(node, _tanh(node, _times_i(node, x)))


@_function("chlo.sinh")
def _sinh(node: Node, x: Complex) -> Complex:
    return _times_minus_i(node, _sine(node, _times_i(node, x)))


@_function("chlo.cosh")
def _cosh(node: Node, x: Complex) -> Complex:
    return _cosine(node, _times_i(node, x))


@_function("sign")
def _sign(node: Node, x: Complex) -> Complex:
    size = _magnitude(node, x)
    is_zero = ops.equal(size, 0.0)
    real, imaginary = (ops.where(is_zero, 0.0, ops.divide(part, size)) for part in x)
    return real, imaginary


def _times_i(node: Node, x: Complex) -> Complex:
    return node.emit(ops.negative(x[1])), x[0]


def _times_minus_i(node: Node, x: Complex) -> Complex:
    return x[1], node.emit(ops.negative(x[0]))


@_function("chlo.asinh")
def _asinh(node: Node, x: Complex) -> Complex:
    """Returns -i asin(i x)."""
    return _times_minus_i(node, _asin(node, _times_i(node, x)))


@_function("chlo.asin")
def _asin(node: Node, x: Complex) -> Complex:
    """Returns the arcsine.  Source: Hull, Fairgrieve and Tang, Implementing the complex arcsine and arccosine, 1997."""
    real, size = _inverse_parts(node, x)
    angle = node.emit(ops.atan2(x[0], real))
    return angle, ops.where(_is_negative(x[1]), ops.negative(size), size)


@_function("chlo.acos")
def _acos(node: Node, x: Complex) -> Complex:
    real, size = _inverse_parts(node, x)
    return ops.atan2(real, x[0]), ops.where(_is_negative(x[1]), size, ops.negative(size))


@_function("chlo.acosh")
def _acosh(node: Node, x: Complex) -> Complex:
    real, size = _inverse_parts(node, x)
    angle = node.emit(ops.atan2(real, x[0]))
    return size, ops.where(_is_negative(x[1]), ops.negative(angle), angle)


def _inverse_parts(node: Node, z: Complex) -> Complex:
    """Return sqrt(a^2 - x^2) and acosh(a), where x is the real part of z, and a is half of |z + 1| + |z - 1|.

    asin(z) has the real part atan2(x, first result), and its imaginary part has the magnitude of the second result.
    """
    x, y = z
    size = node.emit(ops.abs(x))
    r = _magnitude(node, (node.emit(ops.add(size, 1.0)), y))
    s = _magnitude(node, (node.emit(ops.subtract(size, 1.0)), y))
    a = node.emit(ops.multiply(ops.add(r, s), 0.5))
    square = node.emit(ops.multiply(y, y))
    # a - 1, without cancellation
    left = ops.divide(square, ops.add(r, ops.add(size, 1.0)))
    right_near = ops.divide(square, ops.add(s, ops.subtract(1.0, size)))
    right_far = ops.add(s, ops.subtract(size, 1.0))
    right = node.emit(ops.where(ops.less(size, 1.0), right_near, right_far))
    excess = node.emit(ops.multiply(ops.add(left, right), 0.5))
    acosh = node.emit(ops.log1p(ops.add(excess, ops.sqrt(ops.multiply(excess, ops.add(a, 1.0))))))
    # a^2 - x^2 = (a + |x|) (a - |x|), and a - |x| without cancellation
    gap_near = ops.multiply(ops.add(left, ops.add(s, ops.subtract(1.0, size))), 0.5)
    gap_far = ops.multiply(ops.add(left, ops.divide(square, ops.add(s, ops.subtract(size, 1.0)))), 0.5)
    gap = node.emit(ops.where(ops.less_equal(size, 1.0), gap_near, gap_far))
    side = node.emit(ops.sqrt(ops.multiply(ops.add(a, size), gap)))
    return side, acosh


@_function("chlo.atan")
def _atan(node: Node, x: Complex) -> Complex:
    """Returns -i atanh(i x)."""
    return _times_minus_i(node, _atanh(node, _times_i(node, x)))


@_function("chlo.atanh")
def _atanh(node: Node, x: Complex) -> Complex:
    a, b = x
    below = node.emit(ops.subtract(1.0, a))
    square = node.emit(ops.multiply(b, b))
    size = ops.add(ops.multiply(below, below), square)
    real = ops.multiply(ops.log1p(ops.divide(ops.multiply(a, 4.0), size)), 0.25)
    rest = ops.subtract(ops.multiply(below, ops.add(a, 1.0)), square)
    return node.emit(real), node.emit(ops.multiply(ops.atan2(ops.multiply(b, 2.0), rest), 0.5))


# ---- parts, conversions and comparisons ----


@converts_complex("abs")
def _abs(node: Node) -> Expr:
    dtype = node.result_dtype()
    return node.cast(_magnitude(node, _wide(node, 0)), dtype)


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
    """Return the first elements of the last axis."""
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
