"""Matrix product with a constant, blockwise quantized matrix.  Each column has a scale and a zero point for each block
of rows.

The quantized matrix stays packed in memory, in panels.  A panel is a group of adjacent columns.  The kernel dequantizes
one panel at a time, when the product reads the panel.
"""

from __future__ import annotations

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmShapeError
from relvm.ir.dtypes import F32, I32, I64, U8
from relvm.ir.loop_ir import Buffer, Literal, Operation, Scalar
from relvm.ir.operator import expect, op
from relvm.ir.symbolic import known_size, product
from relvm.ir.type_rules import expect_tensor
from relvm.ir.types import TensorType
from relvm.kernels.epilogue import Epilogue
from relvm.kernels.flop_count import matrix_operations
from relvm.kernels.gemm.gemm import Lhs, PackOnTheFly, gemm, panel_width
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import Contraction
from relvm.ops.matmul import two_loops

BITS = (2, 4, 8)


def pack_blocks(numbers: np.ndarray, bits: int) -> np.ndarray:
    """Pack a matrix of integers in [0, 2 ** bits) for argument `b` of `matmul_blockwise_quant`.

    Groups of adjacent columns form panels.  The last panel is padded with zeros.

    The result is a u8 array of shape (panels, depth * bits / 8, width), where `width` is the number of columns of a
    panel.

    numbers: the matrix, of shape (depth, columns).  The depth must be a multiple of 8 / bits, the number of integers
    that fit in a byte.
    """
    count = 8 // bits
    parts = numbers.astype(np.uint8).reshape(-1, count, numbers.shape[1])
    bytes_ = np.bitwise_or.reduce([parts[:, i] << (bits * i) for i in range(count)])
    groups, columns = bytes_.shape
    width = panel_width(columns)
    panels = -(-columns // width)
    filled = np.zeros((groups, panels * width), np.uint8)
    filled[:, :columns] = bytes_
    return np.ascontiguousarray(filled.reshape(groups, panels, width).swapaxes(0, 1))


def pack_block_values(values: np.ndarray, panels: np.ndarray) -> np.ndarray:
    """Pad `values` with columns of zeros, so that they cover the last panel of the packed matrix, too.

    values: the scales or the zero points, of shape (blocks, columns).
    panels: the packed matrix, as returned by `pack_blocks`.
    """
    filled = np.zeros((values.shape[0], panels.shape[0] * panels.shape[2]), values.dtype)
    filled[:, : values.shape[1]] = values
    return filled


def _matmul_blockwise_quant(k: KernelBuilder, inputs, result: Epilogue, *, columns: int, bits: int, block: int) -> None:
    a, b, scales, zeros = inputs
    _, groups, width = b.shape
    depth, stride, nothing = a.shape[-1], scales.shape[1], Literal(0, I64)
    left = Lhs(a, nothing, Literal(depth, I64), Literal(1, I64))
    sizes = (k.size((product(a.shape[:-1]),)), Literal(columns, I64), Literal(depth, I64))
    right = _dequantize_on_the_fly(k, b, scales, zeros, (groups, width, stride), bits, block)

    def counters(i: Scalar, j: Scalar) -> tuple[Scalar, ...]:
        return (i, j) if len(a.shape) > 1 else (j,)

    gemm(k, (), sizes, width, result, lambda place: (left, right, counters))


def _dequantize_on_the_fly(
    k: KernelBuilder, b: Buffer, scales: Buffer, zeros: Buffer, sizes: tuple[int, int, int], bits: int, block: int
) -> PackOnTheFly:
    groups, width, stride = sizes
    count = 8 // bits

    def fill(panel: Buffer, first: Scalar, span: Scalar, column: Scalar, _: Scalar, pitch: Scalar) -> None:
        start = k.let("start", column * groups + first / count * width)
        with k.loop(span / count, name="g") as g:
            row = k.let("row", g * count)
            at = k.let("at", (first + row) / block * stride + column)
            with k.loop(width, name="j", simd=True) as j:
                byte = k.let("byte", b.flat(start + g * width + j).to(I32))
                scale = k.let("scale", scales.flat(at + j))
                zero = k.let("zero", zeros.flat(at + j).to(F32))
                for i in range(count):
                    moved = Operation("shr", (byte, Literal(bits * i, I32)), I32) if i else byte
                    number = Operation("and", (moved, Literal(2**bits - 1, I32)), I32)
                    k.store(panel, ((row + i) * pitch + j,), (number.to(F32) - zero) * scale)

    return PackOnTheFly(fill)


def _numpy_matmul_blockwise_quant(
    a: np.ndarray, b: np.ndarray, scales: np.ndarray, zeros: np.ndarray, *, columns: int, bits: int, block: int
) -> np.ndarray:
    panels, groups, width = b.shape
    bytes_ = b.swapaxes(0, 1).reshape(groups, 1, panels * width)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)[:, None]
    numbers = ((bytes_ >> shifts) & np.uint8(2**bits - 1)).reshape(-1, panels * width)
    of_rows = np.arange(len(numbers)) // block
    matrix = (numbers.astype(np.float32) - zeros[of_rows].astype(np.float32)) * scales[of_rows]
    return np.matmul(a, matrix[:, :columns])


@op(
    "matmul_blockwise_quant",
    numpy=_numpy_matmul_blockwise_quant,
    lower=Contraction(_matmul_blockwise_quant, two_loops, matrix_operations),
)
def matmul_blockwise_quant(
    a: TensorType, b: TensorType, scales: TensorType, zeros: TensorType, *, columns: int, bits: int, block: int
) -> TensorType:
    """The product of a and the dequantized matrix (q - zero) * scale.  q is a quantized matrix of shape (k, columns).
    Each column of q is divided into blocks of `block` elements, and each block has a scale and a zero point.

    a: an f32 tensor of shape (..., k).
    b: a u8 tensor of shape (panels, k * bits / 8, width), the result of `pack_blocks` for q.  A panel consists of
    `width` adjacent columns of q.  The last panel is padded with zeros.
    scales: the scales, an f32 tensor of shape (k / block rounded up, panels * width).
    zeros: the zero points, a u8 or f32 tensor of the same shape as `scales`.
    columns: the number of columns of q, in ((panels - 1) * width, panels * width].
    bits: the number of bits of an element of q, 2, 4 or 8.
    block: the number of elements of a block, a multiple of 8 / bits.
    Result: an f32 tensor of shape (..., columns).
    Raises RelvmTypeError if an argument has another dtype or rank, or b, scales or zeros have unknown dimensions.
    Raises RelvmShapeError if the shapes do not fit together.  Raises RelvmArgumentError if `columns`, `bits` or `block`
    is invalid.
    Source: MatMulNBits of ONNX Runtime.
    """
    name = "matmul_blockwise_quant"
    expect_tensor(name, a=a, b=b, scales=scales, zeros=zeros)
    expect(a.dtype == F32 and a.rank != 0, "{}: a is {}, expected f32 of rank at least 1", name, a)
    expect(bits in BITS, "{}: bits is {!r}, expected one of {}", name, bits, BITS, error=RelvmArgumentError)
    is_block = isinstance(block, int) and block > 0 and block * bits % 8 == 0
    expect(
        is_block,
        "{}: block is {!r}, but a block of {}-bit elements must fill whole bytes",
        name,
        block,
        bits,
        error=RelvmArgumentError,
    )
    for parameter, type_, dtypes, rank in (
        ("b", b, (U8,), 3),
        ("scales", scales, (F32,), 2),
        ("zeros", zeros, (U8, F32), 2),
    ):
        known = all(isinstance(dim, int) for dim in type_.shape or ())
        right = type_.dtype in dtypes and known and type_.rank in (None, rank)
        wanted = " or ".join(dtype.name for dtype in dtypes)
        expect(
            right, "{}: {} is {}, expected {} of rank {} with known dimensions", name, parameter, type_, wanted, rank
        )
    if b.shape is None or scales.shape is None or zeros.shape is None:
        return TensorType(F32, None, a.rank)
    panels, groups, width = map(known_size, b.shape)
    fits = isinstance(columns, int) and (panels - 1) * width < columns <= panels * width
    message = "{}: columns is {!r}, expected more than {} and at most {}"
    expect(fits, message, name, columns, (panels - 1) * width, panels * width, error=RelvmArgumentError)
    depth = groups * 8 // bits
    blocks = (-(-depth // block), panels * width)
    message = "{}: scales is {} and zeros is {}, expected shape [{}, {}] (blocks, columns)"
    same = scales.shape == zeros.shape == blocks
    expect(same, message, name, scales, zeros, *blocks, error=RelvmShapeError)
    if a.shape is None:
        return TensorType(F32, None, a.rank)
    expect(
        a.shape[-1] == depth, "{}: a has {} columns, but b has {} rows", name, a.shape[-1], depth, error=RelvmShapeError
    )
    return TensorType(F32, (*a.shape[:-1], columns))
