"""Matrix product and gather of blockwise quantized weights, with a scale and zero point per block.

Domain: com.microsoft.
"""

from __future__ import annotations

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmShapeError, RelvmUnsupportedError, counted
from relvm.frontend.onnx.ops.quantized import repeat_per_block
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr, input_tensor, shaped_input
from relvm.ir.dtypes import F32, U8
from relvm.ir.expr import Expr, constant
from relvm.ops.blockwise_quant_matmul import BITS, pack_block_values, pack_blocks

_MICROSOFT = "com.microsoft"
_INT8_LEVEL = 4  # the value of accuracy_level that allows activations of 8 bits


@converts("MatMulNBits", domain=_MICROSOFT)
def _matmul_bits(node: OnnxNode) -> Expr:
    """Takes a, the weights (of shape (columns, blocks, bytes of a block)), scales, zero points (packed or of the dtype
    of a), and a bias.  With accuracy_level 4, a is rounded to 8 bits, block by block.  Otherwise, all arithmetic is in
    f32.
    """
    columns, depth, block = (node.attribute(name) for name in ("N", "K", "block_size"))
    bits = node.attribute("bits", 4)
    if node.has(4):
        raise RelvmUnsupportedError("the input g_idx is not supported")
    if bits not in BITS:
        raise RelvmUnsupportedError(f"bits is {bits}, expected one of {', '.join(map(str, BITS))}")
    if (
        not all(isinstance(size, int) and size > 0 for size in (columns, depth, block))
        or block % (32 // bits)
        or depth % 8
    ):
        raise RelvmUnsupportedError(
            f"K is {depth}, N is {columns} and block_size is {block}; they must be positive, K a multiple of 8, and"
            f" block_size a multiple of {32 // bits}"
        )
    blocks = -(-depth // block)
    packed = _array_of_size(node, 1, "the weights", columns * blocks * block * bits // 8).reshape(columns, -1)
    scales = _array_of_size(node, 2, "the scales", columns * blocks).reshape(columns, blocks)
    numbers = pack_blocks(_unpack_rows(packed, bits)[:, :depth].T, bits, block)
    factors, zeros = (
        constant(pack_block_values(np.ascontiguousarray(values.T)))
        for values in (scales.astype(np.float32), _zeros(node, columns, blocks, bits))
    )
    a, own = shaped_input(node, 0).cast(F32), node.type(0).known_dtype
    a = TensorExpr(node, node.graph.with_shape(a.expr, (*a.shape[:-1], depth)))
    matrix = (constant(numbers), factors, zeros)
    sizes = {"columns": columns, "bits": bits, "block": block}
    if node.attribute("accuracy_level", 0) == _INT8_LEVEL:
        result = a.apply(ops.quantize_blocks, block=block).apply(ops.matmul_blockwise_int8, *matrix, **sizes)
    else:
        result = a.apply(ops.matmul_blockwise_quant, *matrix, **sizes)
    return (result + input_tensor(node, 5).cast(F32) if node.has(5) else result).cast(own).expr


def _zeros(node: OnnxNode, columns: int, blocks: int, bits: int) -> np.ndarray:
    """Return the zero points (input 3) of a MatMulNBits as an array of shape (columns, blocks).

    If input 3 is omitted, every zero point is 2^(bits - 1), the middle of the range of the weights.
    """
    if not node.has(3):
        return np.full((columns, blocks), 2 ** (bits - 1), np.uint8)
    given = node.known_array(3, "the zero points")
    if given.dtype != np.uint8:
        return _array_of_size(node, 3, "the zero points", columns * blocks).reshape(columns, blocks).astype(np.float32)
    rows = _array_of_size(node, 3, "the zero points", columns * -(-blocks * bits // 8)).reshape(columns, -1)
    return _unpack_rows(rows, bits)[:, :blocks]


def _array_of_size(node: OnnxNode, index: int, what: str, size: int) -> np.ndarray:
    array = node.known_array(index, what)
    if array.size != size:
        raise RelvmShapeError(f"{what} have {counted(array.size, 'element')}, expected {size}")
    return array


def _unpack_rows(rows: np.ndarray, bits: int) -> np.ndarray:
    """Unpack a matrix of bytes, in which each row contains integers of `bits` bits.

    The lowest bits of a byte contain the first integer.
    """
    if rows.dtype != np.uint8:
        raise RelvmFormatError(f"packed numbers have dtype {rows.dtype}, expected uint8")
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return ((rows[..., None] >> shifts) & np.uint8(2**bits - 1)).reshape(len(rows), -1)


@converts("GatherBlockQuantized", domain=_MICROSOFT)
def _gather_blocks(node: OnnxNode) -> Expr:
    """Takes data, indices, scales and zero points.

    u8 data is packed along the last axis.  Only gathered elements are dequantized.  An index that is out of
    range yields zeros.
    """
    data, places, scales = shaped_input(node, 0), input_tensor(node, 1), shaped_input(node, 2)
    rank, own, bits = len(data.shape), data.dtype, node.attribute("bits", 4)
    axis, along = node.axis(0, rank, "gather_axis"), node.axis(1, rank, "quantize_axis")
    block, packed = node.attribute("block_size", 128), own == U8 and bits < 8
    if not own.is_integer or axis == along or block < 1 or bits not in BITS or (packed and axis == rank - 1):
        raise RelvmUnsupportedError(
            f"data of dtype {own} with bits {bits}, block_size {block}, gather_axis {axis} and quantize_axis {along}"
            " is not supported"
        )
    if len(scales.shape) != rank or scales.shape[axis] != data.shape[axis]:
        raise RelvmShapeError(
            f"scales is {scales.type}, expected rank {rank}, and along axis {axis} the same size as data, {data.type}"
        )
    size = data.shape[axis]
    if not isinstance(size, int):
        raise RelvmUnsupportedError(f"the size of axis {axis} must be known, got {data.type}")
    is_valid = places.apply(ops.less, size).apply(ops.logical_and, places.apply(ops.greater_equal, -size))
    rows = is_valid.where(places, 0)
    numbers, scales = (values.apply(ops.gather, rows, axis=axis) for values in (data, scales))
    numbers = _unpack_last_axis(numbers, bits) if packed else numbers
    behind = along + places.type.known_rank - 1 if along > axis else along
    middle: TensorExpr | float = 2.0 ** (bits - 1) if own == U8 else 0.0
    if node.has(3):
        zeros = shaped_input(node, 3).apply(ops.gather, rows, axis=axis)
        zeros = _unpack_last_axis(zeros, bits) if packed else zeros
        if zeros.shape[-1] != scales.shape[-1]:
            zeros = zeros.apply(ops.slice, begin=(0,), end=(scales.shape[-1],), axes=(len(zeros.shape) - 1,))
        middle = TensorExpr(node, repeat_per_block(node, zeros.cast(F32).expr, numbers.type, behind, block))
    factors = TensorExpr(node, repeat_per_block(node, scales.cast(F32).expr, numbers.type, behind, block))
    shown = is_valid.reshape(*(1,) * axis, *places.shape, *(1,) * (rank - 1 - axis))
    return shown.where((numbers.cast(F32) - middle) * factors, 0.0).cast(scales.dtype).expr


def _unpack_last_axis(x: TensorExpr, bits: int) -> TensorExpr:
    """Unpack a tensor of bytes along its last axis.  Each byte contains integers of `bits` bits.

    The lowest bits of a byte contain the first integer.
    """
    *before, count = x.shape
    shifts = constant(np.arange(0, 8, bits, dtype=np.uint8))
    numbers = x.apply(ops.expand_dims, axes=(len(x.shape),)).apply(ops.shift_right, shifts)
    return numbers.apply(ops.bitwise_and, 2**bits - 1).reshape(*before, count * (8 // bits))
