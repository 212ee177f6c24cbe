"""Window functions and Fourier transforms.  A short transform is a product with a matrix of sines and cosines."""

from __future__ import annotations

import math

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.common.fourier import fourier_transform, inverse_real_transform
from relvm.frontend.onnx.dynamic_sizes import dim_as_operand, iota, scalar, size_of
from relvm.frontend.onnx.ops.dft_dynamic import MAX_LENGTH, short_time_transform, transform
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr, input_tensor, shaped_input
from relvm.ir.dtypes import F64, I64, DType
from relvm.ir.expr import Constant, Expr, constant
from relvm.ir.symbolic import dim_op

_LONGEST_PRODUCT = 256  # the length up to which a transform is a product with a matrix
_LONGEST_TRANSFORM = 1 << 24  # limit on the length, because the powers of a root of unity are constants

# A window is the sum of factor[i] * cos(i * t), where t runs through one period.
_WINDOWS = {
    "HannWindow": (0.5, -0.5),
    "HammingWindow": (25 / 46, -21 / 46),
    "BlackmanWindow": (0.42, -0.5, 0.08),
}


@converts(*_WINDOWS)
def _window(node: OnnxNode) -> Expr:
    """Computes a periodic or a symmetric window.

    In a symmetric window, the last element equals the first.  A periodic window of n elements is a symmetric window of
    n + 1 elements without its last element.
    """
    size = size_of(node, 0, "the window size")
    dtype = node.graph.element_type(node.attribute("output_datatype", 1), node.proto.op_type)
    steps = dim_as_operand(node, size if node.attribute("periodic", 1) else size - 1)
    steps = steps.cast(F64) if isinstance(steps, TensorExpr) else steps
    angle = iota(node, size).cast(F64) * (2 * math.pi) / steps
    first, *factors = _WINDOWS[node.proto.op_type]
    total = TensorExpr(node, angle.operand(first))
    for i, factor in enumerate(factors, 1):
        total = total + (angle * i).apply(ops.cos) * factor
    return total.cast(dtype).expr


@converts("DFT")
def _dft(node: OnnxNode) -> Expr:
    """Transforms one axis.  The last axis contains the real part and, for complex numbers, the imaginary part.

    The length can be up to 16777216 if it is known at import time, and up to 4096 if it is known only at run time.
    """
    x = TensorExpr(node, node.known_shape(0))
    rank, inverse, onesided = len(x.shape), bool(node.attribute("inverse", 0)), bool(node.attribute("onesided", 0))
    if node.opset >= 20 and node.has(2):
        given = node.tensor(2)
        axis = given.value.item() if isinstance(given, Constant) else None
    else:
        axis = node.attribute("axis", 1) if node.opset < 20 else -2
    if axis == -1 or (axis is not None and not -rank <= axis < rank - 1):
        raise RelvmShapeError(
            f"axis {axis} is invalid for a signal of rank {rank}, whose last axis holds the real and imaginary parts"
        )
    if axis is None or not _is_constant_or_omitted(node, 1) or not isinstance(x.shape[axis], int):
        at = input_tensor(node, 2).reshape(1) if axis is None else TensorExpr(node, constant(np.array([axis])))
        length = size_of(node, 1, "dft_length") if node.has(1) else None
        return transform(x, at.cast(I64), length, _parts_of_element(x), inverse=inverse, onesided=onesided).expr
    axis %= rank
    size, parts = x.shape[axis], _parts_of_element(x)
    length = int(node.known_array(1, "dft_length").item()) if node.has(1) else None
    if length is None:
        length = 2 * (size - 1) if inverse and onesided else size
    _expect_length(length, _LONGEST_TRANSFORM)
    if length > _LONGEST_PRODUCT:
        return _fast_transform(x, axis, length, inverse=inverse, onesided=onesided).expr
    build = _onesided_inverse_matrix if inverse and onesided else _dft_matrix
    matrix = build(length, size, parts, x.dtype, onesided=onesided, inverse=inverse)
    kept, _, *result = matrix.shape
    node.graph.file.count(matrix.nbytes, node.here)
    order = (*(i for i in range(rank - 1) if i != axis), axis, rank - 1)
    rows = x.apply(ops.slice, begin=(0,), end=(kept,), axes=(axis,)).apply(ops.transpose, perm=order)
    dims = rows.shape[:-2]
    matrix = matrix.reshape(kept * parts, -1)
    rows = rows.reshape(*dims, kept * parts).apply(ops.matmul, constant(matrix))
    back = tuple(order.index(i) for i in range(rank))
    return rows.reshape(*dims, *result).apply(ops.transpose, perm=back).expr


@converts("STFT")
def _stft(node: OnnxNode) -> Expr:
    """Computes a convolution whose filters are the rows of the DFT matrix, each multiplied by the window.

    If the frame step or the frame length is only known at run time, it gathers the frames and multiplies them by the
    DFT matrix instead.
    """
    x = TensorExpr(node, node.known_shape(0))
    if len(x.shape) == 2:  # ONNX Runtime accepts real signals without the last axis
        x = x.reshape(*x.shape, 1)
    if len(x.shape) != 3:
        raise RelvmShapeError(f"signal has rank {len(x.shape)}, expected 2 or 3")
    parts, onesided = _parts_of_element(x), bool(node.attribute("onesided", 1))
    if node.has(2):
        node.expect_rank(2, 1, "window")
    length = shaped_input(node, 2).shape[0] if not node.has(3) else 1
    if not _is_constant_or_omitted(node, 1) or not _is_constant_or_omitted(node, 3) or not isinstance(length, int):
        return short_time_transform(x, parts, onesided=onesided).expr
    step = int(node.known_array(1, "frame_step").item())
    if node.has(3):
        length = int(node.known_array(3, "frame_length").item())
    matrix = _dft_matrix(length, length, parts, x.dtype, onesided=onesided, inverse=False)
    count = matrix.shape[2]
    node.graph.file.count(matrix.nbytes, node.here)
    filters = TensorExpr(node, constant(matrix.transpose(2, 3, 1, 0).reshape(count * 2, parts, length)))
    if node.has(2):
        filters = filters * input_tensor(node, 2)
    spectra = x.apply(ops.transpose, perm=(0, 2, 1)).apply(ops.conv, filters, strides=(step,))
    batch, _, many = spectra.shape
    return spectra.apply(ops.transpose, perm=(0, 2, 1)).reshape(batch, many, count, 2).expr


def _is_constant_or_omitted(node: OnnxNode, index: int) -> bool:
    return not node.has(index) or isinstance(node.inputs[index], Constant)


def _parts_of_element(x: TensorExpr) -> int:
    """Return the size of the last axis of a signal: 1 for real numbers, 2 for complex ones."""
    if x.shape[-1] not in (1, 2):
        raise RelvmShapeError(f"signal has type {x.type}, expected a last dimension of 1 or 2")
    return x.shape[-1]


def _fast_transform(x: TensorExpr, axis: int, length: int, *, inverse: bool, onesided: bool) -> TensorExpr:
    """Transform one axis, as DFT does, in f64, in O(n log n) time.   length: the length of the transform."""
    node, rank, parts = x.node, len(x.shape), _parts_of_element(x)
    _expect_onesided(parts, onesided=onesided, inverse=inverse)
    halved = inverse and onesided
    needed = length // 2 + 1 if halved else length
    order = (rank - 1, *(i for i in range(rank - 1) if i != axis), axis)
    rows = x.apply(ops.slice, begin=(0,), end=(needed,), axes=(axis,)).apply(ops.transpose, perm=order).cast(F64)
    missing = needed - rows.shape[-1]
    rows = rows.apply(ops.pad, pads=(*[0] * (2 * rank - 1), missing)) if missing else rows
    dims = rows.shape[1:-1]
    real, *imaginary = (rows.select(part, 0).expr for part in range(parts))
    if halved:
        found = [inverse_real_transform(node.graph, real, imaginary[0], length)]
    else:
        imaginary_part = imaginary[0] if imaginary else None
        found = list(fourier_transform(node.graph, real, imaginary_part, length, inverse=inverse))
    results = [TensorExpr(node, each).reshape(1, *dims, length) for each in found]
    result = results[0].apply(ops.concat, *results[1:], axis=0) if len(results) > 1 else results[0]
    if onesided and not inverse:
        result = result.apply(ops.slice, begin=(0,), end=(length // 2 + 1,), axes=(rank - 1,))
    back = tuple(order.index(i) for i in range(rank))
    return result.cast(x.dtype).apply(ops.transpose, perm=back)


def _expect_length(length: int, limit: int) -> None:
    if not 1 <= length <= limit:
        raise RelvmUnsupportedError(f"a Fourier transform of {length} elements is not supported: expected 1 to {limit}")


def _expect_onesided(parts: int, *, onesided: bool, inverse: bool) -> None:
    """Check that a onesided transform has a real signal, and an inverse one a complex spectrum."""
    if onesided and inverse and parts == 1:
        raise RelvmShapeError("a onesided inverse transform requires a complex input, got a real one")
    if onesided and not inverse and parts == 2:
        raise RelvmUnsupportedError("onesided requires a real signal, got a complex one")


def _dft_matrix(length: int, size: int, parts: int, dtype: DType, *, onesided: bool, inverse: bool) -> np.ndarray:
    """Return the matrix of a DFT or inverse DFT, of shape (elements, parts, frequencies, 2).

    The product of a signal of shape (elements, parts) and the matrix is the spectrum, of shape (frequencies, 2).  The
    last axis of the signal and of the spectrum contains the real and the imaginary part.  A real signal has only the
    real part.

    length: the length of the transform.
    size: the number of elements of the signal, of which at most `length` are used.
    parts: 1 for a real signal, 2 for a complex one.
    onesided: whether the result contains only the first half of the frequencies.
    inverse: whether the transform is the inverse DFT.
    dtype: the dtype of the matrix.

    Raises
    ------
    RelvmUnsupportedError
        The matrix would be too large, or `onesided` is set for a complex signal.
    """
    _expect_onesided(parts, onesided=onesided, inverse=inverse)
    count = length // 2 + 1 if onesided else length
    wave = _complex_exponentials(length, min(size, length), count, 1 if inverse else -1) / (length if inverse else 1)
    real = np.stack((wave.real, wave.imag), axis=-1)
    imaginary = np.stack((-wave.imag, wave.real), axis=-1)
    return np.stack((real, imaginary)[:parts], axis=1).astype(dtype.numpy)


def _onesided_inverse_matrix(
    length: int, size: int, parts: int, dtype: DType, *, onesided: bool, inverse: bool
) -> np.ndarray:
    """Return the matrix of an inverse DFT from the first half of a spectrum to a real signal.

    Its shape is (frequencies, 2, length, 1).  To replace the missing second half of the spectrum, each frequency counts
    twice, except the first and, for an even length, the last.

    length: the length of the transform.
    size: the number of given frequencies.
    parts: the size of the last axis of the spectrum, which must be 2 (real and imaginary part).
    dtype: the dtype of the matrix.
    onesided, inverse: always true.
    """
    _expect_onesided(parts, onesided=onesided, inverse=inverse)
    wave = _complex_exponentials(length, min(size, length // 2 + 1), length, 1) / length
    both = (np.arange(len(wave)) * 2 % length != 0)[:, None] + 1
    return (np.stack((wave.real, -wave.imag), axis=1) * both[:, None])[..., None].astype(dtype.numpy)


def _complex_exponentials(length: int, rows: int, columns: int, direction: int) -> np.ndarray:
    """Return the matrix of exp(direction * 2j * pi * row * column / length) for each row and column.

    direction: -1 for a DFT, 1 for an inverse DFT.
    """
    _expect_length(length, MAX_LENGTH)
    turns = np.outer(np.arange(rows), np.arange(columns)) % length  # large angles would lose precision
    return np.exp(direction * 2j * np.pi * turns / length)


@converts("MelWeightMatrix")
def _mel_weight_matrix(node: OnnxNode) -> Expr:
    """Computes a matrix in which each column is a triangular filter.

    A filter rises from 0 at its lower edge to 1 at its center, and falls to 0 at its upper edge.  The edges are equally
    spaced on the mel scale and rounded down to bins of the spectrum.  Source:
    onnx/reference/ops/op_mel_weight_matrix.py.
    """
    bands, length = size_of(node, 0, "num_mel_bins"), size_of(node, 1, "dft_length")
    rate, lowest, highest = (scalar(node, i).cast(F64) for i in (2, 3, 4))
    low, high = (2595 / math.log(10) * (edge / 700).apply(ops.log1p) for edge in (lowest, highest))
    count = dim_as_operand(node, bands + 2)
    step = (high - low) / (count.cast(F64) if isinstance(count, TensorExpr) else count)
    mels = iota(node, bands + 2).cast(F64) * step + low
    frequencies = 700 * ((mels * (math.log(10) / 2595)).apply(ops.exp) - 1)
    bins = dim_as_operand(node, length + 1)
    bins = bins.cast(F64) if isinstance(bins, TensorExpr) else bins
    edges = (frequencies * bins / rate).apply(ops.floor)
    left, centre, right = (edges.apply(ops.gather, iota(node, bands) + i, axis=0) for i in range(3))
    at = iota(node, dim_op("floordiv", length, 2) + 1, 1).cast(F64)
    rising, falling = centre - left, right - centre
    up = ((at - left) / rising.apply(ops.maximum, 1)).apply(ops.relu)
    up = rising.apply(ops.equal, 0).where(1, up)
    weights = (at > centre).where(((right - at) / falling.apply(ops.maximum, 1)).apply(ops.relu), up)
    dtype = node.graph.element_type(node.attribute("output_datatype", 1), "MelWeightMatrix")
    outside = (at < left).apply(ops.logical_or, at > right)
    return outside.where(0, weights).cast(dtype).expr
