"""Fourier transforms whose axis or lengths are only known at run time.  Their matrices are computed at run time."""

from __future__ import annotations

import math

import relvm.ops as ops
from relvm.errors import RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.onnx.dynamic_axes import merge_around_axis, nonnegative_axes
from relvm.frontend.onnx.dynamic_sizes import assert_all_false, dims_as_tensor, iota, run_time_sizes, scalar, size_of
from relvm.frontend.onnx.ops.slice import dynamic_slice
from relvm.frontend.onnx.registry import OnnxNode
from relvm.frontend.onnx.tensor_expr import TensorExpr, input_tensor
from relvm.ir.dtypes import F64, I64, DType
from relvm.ir.symbolic import AnyDim, dim_op

MAX_LENGTH = 4096  # limit on the transform length, because a matrix has length^2 entries


def transform(
    x: TensorExpr, axis: TensorExpr, length: AnyDim | None, parts: int, *, inverse: bool, onesided: bool
) -> TensorExpr:
    """Compute a DFT of x along one axis.  The shape of x must be known.

    The last axis of x contains the real part and, for complex numbers, the imaginary part.

    axis: i64[1], the axis to transform.
    length: the length of the transform.  The default is the size n of the axis, or 2 * (n - 1) for the inverse of a
    onesided spectrum.
    parts: the size of the last axis of x: 1 for real numbers, 2 for complex ones.
    inverse: whether to compute the inverse DFT.
    onesided: whether the spectrum contains only the first half of the frequencies.
    """
    node, rank = x.node, len(x.shape)
    axis = nonnegative_axes(axis, rank)
    assert_all_false(
        axis.apply(ops.equal, rank - 1), "transforms along the last axis, which holds the real and imaginary parts"
    )
    before, size, behind = merge_around_axis(x, axis).shape
    dims = (before, size, behind // parts, parts)
    halved = inverse and onesided
    if halved and parts == 1:
        raise RelvmShapeError("a onesided inverse transform requires a complex input, got a real one")
    if length is None:
        length = 2 * (size - 1) if halved else size
    kept = dim_op("min", size, length // 2 + 1 if halved else length)
    matrix, count, found = (_onesided_inverse_matrix if halved else _dft_matrix)(
        node, kept, length, parts, onesided, inverse, x.dtype
    )
    rows = dynamic_slice(x.reshape(*dims).apply(ops.transpose, perm=(0, 2, 1, 3)), 2, 0, kept)
    result = rows.reshape(before, dims[2], kept * parts).apply(ops.matmul, matrix)
    result = result.reshape(before, dims[2], count, found).apply(ops.transpose, perm=(0, 2, 1, 3))
    chosen = iota(node, rank - 1).apply(ops.equal, axis)
    sizes = run_time_sizes(chosen.where(dims_as_tensor(node, [count]), dims_as_tensor(node, x.shape[:-1])))
    return result.reshape(*sizes, found)


def short_time_transform(x: TensorExpr, parts: int, *, onesided: bool) -> TensorExpr:
    """Compute a short-time Fourier transform: split x into frames, and return the spectrum of each frame.

    x has the shape (batch, n, parts).  The result has the shape (batch, frames, frequencies, 2).  The step, the frame
    length and the window are inputs of the node.

    parts: 1 for a real signal, 2 for a complex one.   onesided: whether to return only the first half of each spectrum.
    """
    node, (batch, size, _) = x.node, x.shape
    step = scalar(node, 1).cast(I64)
    assert_all_false(step < 1, "frame steps below 1")
    length = size_of(node, 3, "frame_length") if node.has(3) else node.known_shape(2).tensor_type.known_shape[0]
    room = dims_as_tensor(node, [size]) - dims_as_tensor(node, [length])
    assert_all_false(room < 0, "frames longer than the signal")
    (many,) = run_time_sizes(room / step + 1)
    rows = x.apply(ops.gather, iota(node, many, 1) * step + iota(node, length), axis=1)
    if node.has(2):
        rows = rows * TensorExpr(node, node.graph.with_shape(input_tensor(node, 2).expr, (length,))).reshape(length, 1)
    matrix, count, found = _dft_matrix(node, length, length, parts, onesided, False, x.dtype)
    return rows.reshape(batch, many, length * parts).apply(ops.matmul, matrix).reshape(batch, many, count, found)


def _dft_matrix(
    node: OnnxNode, size: AnyDim, length: AnyDim, parts: int, onesided: bool, inverse: bool, dtype: DType
) -> tuple[TensorExpr, AnyDim, int]:
    """Return the matrix of a DFT or inverse DFT, the number of frequencies, and the number of parts of a result, 2.

    The product of a signal and the matrix is the result of the transform.  The matrix has the shape (size * parts,
    frequencies * 2), because the result has a real and an imaginary part for each frequency.

    size: the number of elements of the signal.
    length: the length of the transform.
    parts: 1 for a real signal, 2 for a complex one.
    onesided: whether the result contains only the first half of the frequencies.
    inverse: whether the transform is the inverse DFT.
    dtype: the dtype of the matrix.
    """
    if onesided and parts == 2:
        raise RelvmUnsupportedError("onesided requires a real signal, got a complex one")
    count = length // 2 + 1 if onesided else length
    real, imaginary = _complex_exponentials(node, length, size, count, 1 if inverse else -1)
    if inverse:
        whole = dims_as_tensor(node, [length]).cast(F64)
        real, imaginary = real / whole, imaginary / whole
    rows = [_side_by_side(real, imaginary), _side_by_side(imaginary.apply(ops.negative), real)][:parts]
    rows = [row.reshape(size, 1, count * 2) for row in rows]
    matrix = rows[0].apply(ops.concat, *rows[1:], axis=1)
    return matrix.reshape(size * parts, count * 2).cast(dtype), count, 2


def _onesided_inverse_matrix(
    node: OnnxNode, size: AnyDim, length: AnyDim, parts: int, onesided: bool, inverse: bool, dtype: DType
) -> tuple[TensorExpr, AnyDim, int]:
    """Return the matrix of an inverse DFT of a onesided spectrum, the length of the result, and its number of parts, 1.

    The product of the spectrum and the matrix is the signal.  The matrix has the shape (size * 2, length * 1), because
    the elements of the signal are real.  A onesided spectrum lacks the second half of the frequencies.  To replace
    them, each given frequency counts twice, except the first and, for an even length, the last.

    size: the number of given frequencies.
    length: the length of the transform.
    parts: always 2, because the spectrum is complex.
    onesided, inverse: always true.
    dtype: the dtype of the matrix.
    """
    assert onesided and inverse
    real, imaginary = _complex_exponentials(node, length, size, length, 1)
    whole = dims_as_tensor(node, [length])
    alone = (iota(node, size, 1) * 2).apply(ops.modulo, whole).apply(ops.equal, 0)
    weight = (2 - alone.cast(F64)) / whole.cast(F64)
    rows = [(wave * weight).reshape(size, 1, length) for wave in (real, imaginary.apply(ops.negative))]
    return rows[0].apply(ops.concat, rows[1], axis=1).reshape(size * parts, length).cast(dtype), length, 1


def _side_by_side(first: TensorExpr, second: TensorExpr) -> TensorExpr:
    return first.apply(ops.expand_dims, axes=(2,)).apply(ops.concat, second.apply(ops.expand_dims, axes=(2,)), axis=2)


def _complex_exponentials(
    node: OnnxNode, length: AnyDim, rows: AnyDim, columns: AnyDim, direction: int
) -> tuple[TensorExpr, TensorExpr]:
    """Return the matrix of exp(direction * 2j * pi * row * column / length) for each row and column.

    The result is two tensors of type f64[rows, columns]: the real part and the imaginary part of the matrix.

    direction: -1 for a DFT, 1 for an inverse DFT.
    """
    whole = dims_as_tensor(node, [length])
    assert_all_false(
        (whole < 1).apply(ops.logical_or, whole > MAX_LENGTH), f"transform lengths outside [1, {MAX_LENGTH}]"
    )
    turns = (iota(node, rows, 1) * iota(node, columns)).apply(ops.modulo, whole)
    angle = turns.cast(F64) * (2 * math.pi * direction) / whole.cast(F64)
    return angle.apply(ops.cos), angle.apply(ops.sin)
