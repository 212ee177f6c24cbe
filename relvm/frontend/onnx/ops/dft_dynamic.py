"""Fourier transforms whose axis or lengths only the machine knows: it computes their matrices."""

from __future__ import annotations

import math

import relvm.ops as ops
from relvm.errors import RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.onnx.dynamic_axes import along, counted
from relvm.frontend.onnx.dynamic_sizes import none_of, numbers_of, places, run_time_sizes, scalar, size_of
from relvm.frontend.onnx.ops.slice import part
from relvm.frontend.onnx.registry import Node
from relvm.frontend.onnx.tensor_expr import Term, term
from relvm.ir.dtypes import F64, I64, DType
from relvm.ir.symbolic import AnyDim, dim_op

LONGEST = 4096  # a matrix is as large as the square of the length


def transform(x: Term, axis: Term, length: AnyDim | None, parts: int, *, inverse: bool, onesided: bool) -> Term:
    """A DFT of x, of known sizes, whose last axis is that of its parts.

    axis: i64[1], another axis.   length: None: that of the axis, or what the half of a spectrum stands for.
    """
    node, rank = x.node, len(x.shape)
    axis = counted(axis, rank)
    none_of(axis.apply(ops.equal, rank - 1), "axes of a transform that are that of the parts")
    before, size, behind = along(x, axis).shape
    dims = (before, size, behind // parts, parts)
    halved = inverse and onesided
    if halved and parts == 1:
        raise RelvmShapeError("the frequencies of an inverse transform that is onesided must be complex")
    if length is None:
        length = 2 * (size - 1) if halved else size
    kept = dim_op("min", size, length // 2 + 1 if halved else length)
    made, count, found = (_of_half if halved else _of_whole)(node, kept, length, parts, onesided, inverse, x.type.dtype)
    rows = part(x.reshape(*dims).apply(ops.transpose, perm=(0, 2, 1, 3)), 2, 0, kept)
    result = rows.reshape(before, dims[2], kept * parts).apply(ops.matmul, made)
    result = result.reshape(before, dims[2], count, found).apply(ops.transpose, perm=(0, 2, 1, 3))
    chosen = places(node, rank - 1).apply(ops.equal, axis)
    sizes = run_time_sizes(chosen.chosen(numbers_of(node, [count]), numbers_of(node, x.shape[:-1])))
    return result.reshape(*sizes, found)


def frames(x: Term, parts: int, *, onesided: bool) -> Term:
    """The transforms of a STFT: x is (batch, n, parts); the step, the length of a frame and its window are inputs."""
    node, (batch, size, _) = x.node, x.shape
    step = scalar(node, 1).cast(I64)
    none_of(step < 1, "steps below 1")
    length = size_of(node, 3, "the length of a frame") if node.has(3) else node.known_shape(2).type.shape[0]
    room = numbers_of(node, [size]) - numbers_of(node, [length])
    none_of(room < 0, "frames longer than the signal")
    (many,) = run_time_sizes(room / step + 1)
    rows = x.apply(ops.gather, places(node, many, 1) * step + places(node, length), axis=1)
    if node.has(2):
        rows = rows * Term(node, node.graph.checked(term(node, 2).expr, (length,))).reshape(length, 1)
    made, count, found = _of_whole(node, length, length, parts, onesided, False, x.type.dtype)
    return rows.reshape(batch, many, length * parts).apply(ops.matmul, made).reshape(batch, many, count, found)


def _of_whole(
    node: Node, size: AnyDim, length: AnyDim, parts: int, onesided: bool, inverse: bool, dtype: DType
) -> tuple[Term, AnyDim, int]:
    """The matrix that takes `size` elements to frequencies, (size * parts, count * 2), their count, and 2."""
    if onesided and parts == 2:
        raise RelvmUnsupportedError("onesided is for real signals: a complex one has no half that says all")
    count = length // 2 + 1 if onesided else length
    real, imaginary = _wave(node, length, size, count, 1 if inverse else -1)
    if inverse:
        whole = numbers_of(node, [length]).cast(F64)
        real, imaginary = real / whole, imaginary / whole
    rows = [_side_by_side(real, imaginary), _side_by_side(imaginary.apply(ops.negative), real)][:parts]
    rows = [row.reshape(size, 1, count * 2) for row in rows]
    matrix = rows[0].apply(ops.concat, *rows[1:], axis=1)
    return matrix.reshape(size * parts, count * 2).cast(dtype), count, 2


def _of_half(
    node: Node, size: AnyDim, length: AnyDim, parts: int, onesided: bool, inverse: bool, dtype: DType
) -> tuple[Term, AnyDim, int]:
    """The same from `size` frequencies of the first half back to a real signal: (size * 2, length), and 1.  All but the
    first and the last of an even length stand for two."""
    assert onesided and inverse
    real, imaginary = _wave(node, length, size, length, 1)
    whole = numbers_of(node, [length])
    alone = (places(node, size, 1) * 2).apply(ops.modulo, whole).apply(ops.equal, 0)
    weight = (2 - alone.cast(F64)) / whole.cast(F64)
    rows = [(wave * weight).reshape(size, 1, length) for wave in (real, imaginary.apply(ops.negative))]
    return rows[0].apply(ops.concat, rows[1], axis=1).reshape(size * parts, length).cast(dtype), length, 1


def _side_by_side(first: Term, second: Term) -> Term:
    return first.apply(ops.expand_dims, axes=(2,)).apply(ops.concat, second.apply(ops.expand_dims, axes=(2,)), axis=2)


def _wave(node: Node, length: AnyDim, rows: AnyDim, columns: AnyDim, direction: int) -> tuple[Term, Term]:
    """exp(direction * 2j * pi * row * column / length), its real and its imaginary part: f64[rows, columns]."""
    whole = numbers_of(node, [length])
    none_of((whole < 1).apply(ops.logical_or, whole > LONGEST), f"lengths of a transform outside [1, {LONGEST}]")
    turns = (places(node, rows, 1) * places(node, columns)).apply(ops.modulo, whole)
    angle = turns.cast(F64) * (2 * math.pi * direction) / whole.cast(F64)
    return angle.apply(ops.cos), angle.apply(ops.sin)
