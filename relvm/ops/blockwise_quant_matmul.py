"""Matrix product with a constant, blockwise quantized matrix.  Each column has a scale and a zero point for each block
of rows.

The quantized matrix stays packed in memory, in panels.  A panel is a group of adjacent columns.  The kernel dequantizes
one panel at a time, when the product reads the panel.  A product of few rows dequantizes numbers in registers instead.
"""

from __future__ import annotations

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmShapeError
from relvm.ir.dtypes import F32, I64, U8
from relvm.ir.loop_ir import Address, Buffer, Literal, Scalar, minimum
from relvm.ir.operator import expect, op
from relvm.ir.symbolic import known_size, product
from relvm.ir.type_rules import expect_tensor
from relvm.ir.types import TensorType
from relvm.kernels.epilogue import Epilogue
from relvm.kernels.flop_count import matrix_operations
from relvm.kernels.gemm.gemm import Lhs, PackOnTheFly, gemm
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import Contraction, size_of_block
from relvm.ops.matmul import two_loops
from relvm.tables import kernel_constant

BITS = (2, 4, 8)
_ROWS = kernel_constant("QUANTIZED_ROWS")
WIDTH = kernel_constant("PANEL_WIDTH")
_FEW_ROWS = 12  # more rows use each dequantized number often enough to store it in a panel (measured)


def pack_blocks(numbers: np.ndarray, bits: int) -> np.ndarray:
    """Pack a matrix of integers in [0, 2 ** bits) for argument `b` of `matmul_blockwise_quant`.

    Groups of WIDTH adjacent columns form panels.  The last panel is padded with zeros.  A byte contains adjacent
    numbers of a column, the first in its lowest bits.  csrc/codegen/gemm_quantized.h describes the order of the bytes.

    The result is a u8 array of shape (panels, depth * bits / 8, WIDTH).

    numbers: the matrix, of shape (depth, columns).  The depth must be a multiple of 8 / bits, the number of integers
    that fit in a byte.
    """
    count = 8 // bits
    parts = numbers.astype(np.uint8).reshape(-1, count, numbers.shape[1])
    bytes_ = np.bitwise_or.reduce([parts[:, i] << (bits * i) for i in range(count)])
    panels = _in_words(_pad_columns(bytes_)).reshape(len(bytes_), -1, WIDTH)
    return np.ascontiguousarray(panels.swapaxes(0, 1))


def pack_block_values(values: np.ndarray) -> np.ndarray:
    """Pad `values` with columns of zeros, so that they cover the last panel of the packed matrix, too.

    If the values are bytes, they get the order of the bytes of a packed matrix.

    values: the scales or the zero points, of shape (blocks, columns).
    """
    padded = _pad_columns(values)
    return _in_words(padded) if values.dtype == np.uint8 else padded


def _pad_columns(values: np.ndarray) -> np.ndarray:
    return np.pad(values, ((0, 0), (0, -values.shape[1] % WIDTH)))


def _in_words(bytes_: np.ndarray) -> np.ndarray:
    """Reorder the bytes of each panel, so that a word of four bytes has one from each quarter of the panel."""
    return bytes_.reshape(len(bytes_), -1, 4, WIDTH // 4).swapaxes(2, 3).reshape(bytes_.shape)


def _from_words(bytes_: np.ndarray) -> np.ndarray:
    """Reverse `_in_words`."""
    return bytes_.reshape(len(bytes_), -1, WIDTH // 4, 4).swapaxes(2, 3).reshape(bytes_.shape)


def _matmul_blockwise_quant(k: KernelBuilder, inputs, result: Epilogue, *, columns: int, bits: int, block: int) -> None:
    a, b, scales, zeros = inputs
    depth, nothing = a.shape[-1], Literal(0, I64)
    left = Lhs(a, nothing, Literal(depth, I64), Literal(1, I64))
    rows = k.size((product(a.shape[:-1]),))
    sizes = (rows, Literal(columns, I64), Literal(depth, I64))

    def panel_arguments(column: Scalar) -> dict[str, Address | Scalar | int]:
        return {
            "bits": bits,
            "b": Address(b, column * b.shape[1]),
            "scales": Address(scales, column),
            "zeros": Address(zeros, column),
            "zeros_are_bytes": int(zeros.dtype == U8),
            "block_groups": block * bits // 8,
            "block_stride": scales.shape[1],
        }

    def fill(panel: Buffer, first: Scalar, span: Scalar, column: Scalar, _: Scalar, pitch: Scalar) -> None:
        k.invoke(
            "rvm_dequantized_panel_f32",
            panel=Address(panel, nothing),
            first=first * bits / 8,
            groups=span * bits / 8,
            **panel_arguments(column),
        )

    def counters(i: Scalar, j: Scalar) -> tuple[Scalar, ...]:
        return (i, j) if len(a.shape) > 1 else (j,)

    def multiply_few_rows() -> None:
        with k.parallel(b.shape[0], rows * (2 * depth * WIDTH)) as (begin, end):
            tile = k.allocate("tile", F32, (_ROWS * WIDTH,))
            with k.loop(end, start=begin, name="panel") as panel:
                column = k.let("column", panel * WIDTH)
                count = k.let("width", minimum(columns - column, WIDTH))

                with k.loop((rows + (_ROWS - 1)) / _ROWS, name="group") as group:
                    row = k.let("row", group * _ROWS)
                    size = k.let("size", size_of_block(rows, row, _ROWS))
                    k.invoke(
                        "rvm_quantized_tile_f32",
                        rows=size,
                        groups=b.shape[1],
                        a=Address(a, row * depth),
                        a_stride=depth,
                        tile=Address(tile, nothing),
                        **panel_arguments(column),
                    )
                    with k.loop(size, name="r") as r, k.loop(count, name="j", simd=True) as j:
                        result.store(k, counters(row + r, column + j), tile[r * WIDTH + j])

    few = k.let("few", rows <= _FEW_ROWS)
    with k.branch(few):
        multiply_few_rows()
    with k.branch(few.logical_not()):
        gemm(k, (), sizes, WIDTH, result, lambda place: (left, PackOnTheFly(fill), counters))


def _numpy_matmul_blockwise_quant(
    a: np.ndarray, b: np.ndarray, scales: np.ndarray, zeros: np.ndarray, *, columns: int, bits: int, block: int
) -> np.ndarray:
    panels, groups, width = b.shape
    bytes_ = _from_words(b.swapaxes(0, 1).reshape(groups, panels * width))[:, None]
    zeros = _from_words(zeros) if zeros.dtype == np.uint8 else zeros
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
    b: a u8 tensor of shape (panels, k * bits / 8, 64), the result of `pack_blocks` for q.  A panel consists of 64
    adjacent columns of q.  The last panel is padded with zeros.
    scales: the scales, an f32 tensor of shape (k / block rounded up, panels * 64), the result of `pack_block_values`.
    zeros: the zero points, a u8 or f32 tensor of the same shape as `scales`, the result of `pack_block_values`.
    columns: the number of columns of q, in ((panels - 1) * 64, panels * 64].
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
    expect(width == WIDTH, "{}: b has panels of {} columns, expected {}", name, width, WIDTH, error=RelvmShapeError)
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
