"""Products with weights of few bits, of which a block of rows has a scale and a zero point (domain com.microsoft)."""

from __future__ import annotations

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.onnx.generation import shaped
from relvm.frontend.onnx.registry import Node, converts
from relvm.frontend.onnx.terms import Term, term
from relvm.ir.dtypes import F32
from relvm.ir.expr import Expr, constant
from relvm.ops.block_product import BITS, pack_block_values, pack_blocks

_MICROSOFT = "com.microsoft"


@converts("MatMulNBits", domain=_MICROSOFT)
def _matmul_bits(node: Node) -> Expr:
    """a, the weights (columns, blocks, bytes of a block), scales, zero points: packed, or of the dtype of a; a bias."""
    columns, depth, block = (node.attribute(name) for name in ("N", "K", "block_size"))
    bits = node.attribute("bits", 4)
    if node.has(4) or bits not in BITS:
        raise RelvmUnsupportedError(f"g_idx, or bits of {bits}: not supported")
    if not all(isinstance(size, int) and size > 0 for size in (columns, depth, block)) or block % 8 or depth % 8:
        raise RelvmUnsupportedError(f"K {depth}, N {columns} and block_size {block}: expected multiples of 8 of K")
    blocks = -(-depth // block)
    packed = _of_size(node, 1, "the weights", columns * blocks * block * bits // 8).reshape(columns, -1)
    scales = _of_size(node, 2, "the scales", columns * blocks).reshape(columns, blocks)
    numbers = pack_blocks(_unpacked(packed, bits)[:, :depth].T, bits)
    scales, zeros = (
        constant(pack_block_values(np.ascontiguousarray(values.T), numbers))
        for values in (scales.astype(np.float32), _zeros(node, columns, blocks, bits))
    )
    a, own = shaped(node, 0).cast(F32), node.type(0).dtype
    a = Term(node, node.graph.checked(a.expr, (*a.shape[:-1], depth)))
    result = a.apply(ops.matmul_blocks, constant(numbers), scales, zeros, columns=columns, bits=bits, block=block)
    return (result + term(node, 5).cast(F32) if node.has(5) else result).cast(own).expr


def _zeros(node: Node, columns: int, blocks: int, bits: int) -> np.ndarray:
    """The zero points, (columns, blocks); where there are none they are in the middle."""
    if not node.has(3):
        return np.full((columns, blocks), 2 ** (bits - 1), np.uint8)
    given = node.known(3, "the zero points")
    if given.dtype != np.uint8:
        return _of_size(node, 3, "the zero points", columns * blocks).reshape(columns, blocks).astype(np.float32)
    rows = _of_size(node, 3, "the zero points", columns * -(-blocks * bits // 8)).reshape(columns, -1)
    return _unpacked(rows, bits)[:, :blocks]


def _of_size(node: Node, index: int, what: str, size: int) -> np.ndarray:
    array = node.known(index, what)
    if array.size != size:
        raise RelvmShapeError(f"{what} are {array.size} elements, expected {size}")
    return array


def _unpacked(rows: np.ndarray, bits: int) -> np.ndarray:
    """The numbers in rows of bytes, the lowest bits first."""
    if rows.dtype != np.uint8:
        raise RelvmFormatError(f"packed numbers are {rows.dtype}, expected uint8")
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return ((rows[..., None] >> shifts) & np.uint8(2**bits - 1)).reshape(len(rows), -1)
