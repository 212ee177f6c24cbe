"""Discrete Fourier transforms in O(n log n) time and O(n) memory.

A kernel computes the transforms of rows by Stockham's algorithm: one pass for each factor of the length, between two
arrays, without a bit reversal.  If the length has a large prime factor, the transform is a convolution, which is
computed with transforms whose length is a power of 2 (Bluestein's algorithm).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import relvm.ops as ops
from relvm.frontend.common.kernel_numbers import Number, named, product, store
from relvm.frontend.common.kernel_parts import buffers, loops
from relvm.frontend.common.node_context import KernelContext
from relvm.ir.dtypes import DType
from relvm.ir.expr import Expr, constant
from relvm.ir.kernel_def import KernelDef
from relvm.ir.loop_ir import Buffer, Literal, Scalar
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder

Complex = tuple[Expr, Expr]

_LARGEST_PRIME = 61  # a transform with a larger prime factor is a convolution


def fourier_transform(
    importer: KernelContext, real: Expr, imaginary: Expr | None, length: int, *, inverse: bool
) -> Complex:
    """Return the real and the imaginary part of the transform of the last axis.

    real, imaginary: tensors of f32 or f64, in which the transform is computed.  None stands for zeros.
    length: the size of the last axis.
    inverse: whether to compute the inverse transform, which is divided by the length.
    """
    return _transform(importer, real, imaginary, length, 1 if inverse else -1, 1 / max(length, 1) if inverse else 1.0)


def inverse_real_transform(importer: KernelContext, real: Expr, imaginary: Expr, length: int) -> Expr:
    """Return the inverse transform of the first half of the spectrum of a real signal, along the last axis.

    real, imaginary: tensors with a last axis of the size length // 2 + 1.   length: the length of the result.
    """
    axis, dtype = len(real.tensor_type.known_shape) - 1, real.known_element_type
    given = length // 2 + 1
    positions = np.arange(length)
    order = constant(np.where(positions < given, positions, length - positions))
    signs = constant(np.where(positions < given, 1, -1).astype(dtype.numpy))
    whole = [importer.emit(ops.gather(part, order, axis=axis)) for part in (real, imaginary)]
    conjugated = importer.emit(ops.multiply(whole[1], signs))
    return fourier_transform(importer, whole[0], conjugated, length, inverse=True)[0]


def roots_of_unity(turns: np.ndarray, length: int) -> np.ndarray:
    """Return exp(2 pi i turns / length).   turns: integers, of which the sign is the direction."""
    length = max(length, 1)
    turns = turns % length
    quarters = (8 * turns + length) // (2 * length)  # the nearest quarter of a turn, so that the angle is small
    angle = np.pi / 2 * ((4 * turns - quarters * length) / length)
    return (np.cos(angle) + 1j * np.sin(angle)) * np.array([1, 1j, -1, -1j])[quarters % 4]


def _transform(
    importer: KernelContext, real: Expr, imaginary: Expr | None, length: int, sign: int, scale: float
) -> Complex:
    """Return the transform of the last axis, multiplied by `scale`.

    sign: the sign of the angles: -1 for the transform, 1 for its inverse.
    """
    factors = _factors(length)
    if max(factors, default=1) > _LARGEST_PRIME:
        return _convolved(importer, real, imaginary, length, sign, scale)
    dtype = real.known_element_type
    parts = [real] if imaginary is None else [real, imaginary]
    type_ = real.tensor_type
    name = importer.unique_name("fft" if sign < 0 else "inverse_fft")
    kernel = _stockham_kernel(name, [type_] * len(parts), length, factors, sign, scale)
    roots = roots_of_unity(sign * np.arange(length), length)
    args = [*parts, *(constant(part.astype(dtype.numpy)) for part in (roots.real, roots.imag))]
    first, second, *_ = importer.items_of_kernel(kernel, args, (type_, type_, *[TensorType(dtype, (length,))] * 2))
    return first, second


def _factors(length: int) -> list[int]:
    """Return the factor of each pass, in order: primes above 5, then 5, 4, 3 and 2."""
    found, factor = [], 4
    while length > 1:
        if factor * factor > length and factor > 4:
            factor = length
        if length % factor == 0:
            found.append(factor)
            length //= factor
        else:
            factor = {4: 2, 2: 3, 3: 5}.get(factor, factor + 2)
    return sorted(found, reverse=True)


def _stockham_kernel(
    name: str, types: Sequence[TensorType], length: int, factors: Sequence[int], sign: int, scale: float
) -> KernelDef:
    """Return the kernel of the transforms of rows.

    Its inputs are the real part of the rows, the imaginary part if there is one, and both parts of the powers of the
    root of unity.  Its outputs are the two parts of the result, and memory for a row.

    types: the types of the parts of the rows.
    factors: the factor of each pass, in order.  Their product is the length.
    sign: the sign of the angle of the root of unity.
    scale: a factor of the result.
    """
    k = KernelBuilder()
    dtype = types[0].known_dtype
    x, outs = buffers("x", types), buffers("out", [types[0]] * 2, is_output=True)
    batch = x[0].shape[:-1]
    outs = [Buffer(each.name, dtype, x[0].shape, True) for each in outs]
    roots = [Buffer(each, dtype, (length,)) for each in ("cosines", "sines")]
    memory = [Buffer(each, dtype, (length,), True) for each in ("memory0", "memory1")]
    with loops(k, batch) as place:
        source, stride, rest = (x, place), 1, length
        if not factors:
            with k.loop(length, name="i") as i:
                store(k, outs, (*place, i), [*(part[(*place, i)] for part in x), Literal(0.0, dtype)][:2])
        for number, factor in enumerate(factors):
            to_result = (len(factors) - 1 - number) % 2 == 0
            target = (outs, place) if to_result else (memory, ())
            rest //= factor
            row = _Pass(k, dtype, factor, rest, stride, roots, scale if number == len(factors) - 1 else 1.0)
            if factor <= 5:
                row.unrolled(source, target, sign)
            else:
                row.looped(source, target, length)
            source, stride = target, stride * factor
    return KernelDef(name, (*x, *roots), (*outs, *memory), k.finish())


_Row = tuple[Sequence[Buffer], Sequence[Scalar]]  # the parts of a matrix, and the position of one of its rows


class _Pass:
    """A pass of Stockham's algorithm:  y[q + s (r p + j)] = w^(s p j) sum over k of x[q + s (p + m k)] v^(j k).

    w and v are the roots of unity of the whole length and of r.

    factor, rest, stride: r, m and s.
    scale: a factor of the result.
    """

    def __init__(
        self, k: KernelBuilder, dtype: DType, factor: int, rest: int, stride: int, roots: Sequence[Buffer], scale: float
    ) -> None:
        self.k = k
        self.dtype = dtype
        self.factor, self.rest, self.stride = factor, rest, stride
        self.roots = roots
        self.scale = scale

    def load(self, row: _Row, at: Scalar) -> list[Scalar]:
        """Return the real and the imaginary part of the number at position `at` of a row.

        The imaginary part is 0 if the row has only real parts.
        """
        parts, place = row
        return [*(part[(*place, at)] for part in parts), Literal(0.0, self.dtype)][:2]

    def unrolled(self, source: _Row, target: _Row, sign: int) -> None:
        """Emit the pass for a small factor, without loops over j and k."""
        k, r, m, s = self.k, self.factor, self.rest, self.stride
        small = roots_of_unity(sign * np.arange(r), r) * self.scale
        with k.loop(m, name="p") as p:
            turns = [named(k, "turn", [part[(p * (s * j),)] for part in self.roots]) for j in range(1, r)]
            with k.loop(s, name="q") as q:
                x = [named(k, "x", self.load(source, q + (p + m * i) * s)) for i in range(r)]
                for j in range(r):
                    total = self.combination(x, [complex(small[i * j % r]) for i in range(r)])
                    value = product(k, turns[j - 1], named(k, "total", total)) if j and m > 1 else total
                    store(k, target[0], (*target[1], q + (p * r + j) * s), value)

    def combination(self, x: Sequence[Number], factors: Sequence[complex]) -> list[Scalar]:
        """Return the sum of the products of numbers and constants, without products with 0, 1 and -1."""
        terms: list[list[Scalar]] = [[], []]
        for (real, imaginary), factor in zip(x, factors, strict=True):
            for part, terms_of_part in enumerate(terms):
                first, second = (factor.real, -factor.imag) if part == 0 else (factor.imag, factor.real)
                for value, weight in ((real, first), (imaginary, second)):
                    if weight:
                        terms_of_part.append(value if weight == 1 else -value if weight == -1 else value * weight)
        return [self.sum(each) for each in terms]

    def sum(self, terms: Sequence[Scalar]) -> Scalar:
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total

    def looped(self, source: _Row, target: _Row, length: int) -> None:
        """Emit the pass for a large factor."""
        k, r, m, s = self.k, self.factor, self.rest, self.stride
        with k.loop(m, name="p") as p, k.loop(r, name="j") as j:
            with k.loop(s, name="q") as q:
                store(k, target[0], (*target[1], q + (p * r + j) * s), [Literal(0.0, self.dtype)] * 2)
            with k.loop(r, name="i") as i:
                at = k.let("at", (p * j * s + i * j * (length // r)) % length)
                with k.branch((at >= 0).logical_and(at < length)):
                    weight = named(k, "weight", [part[(at,)] * self.scale for part in self.roots])
                    with k.loop(s, name="q") as q:
                        terms = product(k, weight, self.load(source, q + (p + i * m) * s))
                        place = (*target[1], q + (p * r + j) * s)
                        sums = [part[place] + term for part, term in zip(target[0], terms, strict=True)]
                        store(k, target[0], place, sums)


def _convolved(
    importer: KernelContext, real: Expr, imaginary: Expr | None, length: int, sign: int, scale: float
) -> Complex:
    """Return the transform of the last axis by Bluestein's algorithm."""
    emit, dtype, rank = importer.emit, real.known_element_type, len(real.tensor_type.known_shape)
    size = 1 << (2 * length - 2).bit_length()
    chirp = roots_of_unity(sign * (np.arange(length, dtype=object) ** 2 % (2 * length)).astype(np.int64), 2 * length)
    kernel = np.zeros(size, np.complex128)
    kernel[:length] = chirp.conj()
    kernel[size - length + 1 :] = chirp[:0:-1].conj()

    def scaled(x: tuple[Expr, Expr | None], factors: np.ndarray) -> Complex:
        first, second = (constant(part.astype(dtype.numpy)) for part in (factors.real, factors.imag))
        if x[1] is None:
            return emit(ops.multiply(x[0], first)), emit(ops.multiply(x[0], second))
        return (
            emit(ops.subtract(ops.multiply(x[0], first), ops.multiply(x[1], second))),
            emit(ops.add(ops.multiply(x[0], second), ops.multiply(x[1], first))),
        )

    pads = (0,) * (2 * rank - 1) + (size - length,)
    padded = [emit(ops.pad(part, pads=pads)) for part in scaled((real, imaginary), chirp)]
    spectrum = _transform(importer, padded[0], padded[1], size, -1, 1.0)
    found = _transform(importer, *scaled(spectrum, np.fft.fft(kernel)), size, 1, 1 / size)
    taken = [emit(ops.slice(x, begin=(0,), end=(length,), axes=(rank - 1,))) for x in found]
    return scaled((taken[0], taken[1]), chirp * scale)
