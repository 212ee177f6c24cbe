"""Matrix products with a constant, blockwise quantized matrix.  Each column has a scale and a zero point for each block
of rows.

The quantized matrix stays packed in memory, in panels.  A panel is a group of adjacent columns.  The operators:

    matmul_blockwise_quant  f32 arithmetic.  The kernel dequantizes one panel at a time, when the product reads the
                            panel.  A product of few rows dequantizes numbers in registers instead.
    quantize_blocks         quantizes the left matrix to 8 bits, block by block.
    matmul_blockwise_int8   the product of this matrix and the packed one: integer arithmetic within a block.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmShapeError
from relvm.ir.dtypes import F32, I32, I64, U8
from relvm.ir.loop_ir import Address, Buffer, Literal, Scalar, minimum
from relvm.ir.operator import expect, op
from relvm.ir.symbolic import AnyDim, known_size, product
from relvm.ir.type_rules import expect_tensor
from relvm.ir.types import TensorType
from relvm.kernels.epilogue import Epilogue
from relvm.kernels.flop_count import one_per_element
from relvm.kernels.gemm.gemm import Lhs, PackOnTheFly, gemm
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import Contraction, CustomKernel, clip_to_block, size_of_block
from relvm.ops.matmul import two_loops
from relvm.tables import kernel_constant

BITS = (2, 4, 8)
_ROWS = kernel_constant("QUANTIZED_ROWS")
WIDTH = kernel_constant("PANEL_WIDTH")
_FEW_ROWS = 12  # more rows use each dequantized number often enough to store it in a panel (measured)
_MIN_TILES = 8  # minimum number of tiles in a part; the tiles of a panel share its numbers in a cache
_WORD = 32  # bits
_SMALLEST = np.float32(2.0**-100)  # a block of smaller elements counts as zeros


def pack_blocks(numbers: np.ndarray, bits: int, block: int) -> np.ndarray:
    """Pack a matrix of integers in [0, 2 ** bits) for argument `b` of `matmul_blockwise_quant`.

    Groups of WIDTH adjacent columns form panels.  The last panel is padded with columns of zeros, and the last block
    with rows of zeros.  csrc/codegen/gemm_quantized.h describes the words.

    The result is an i32 array of shape (panels, blocks * block * bits / 32, WIDTH).

    numbers: the matrix, of shape (depth, columns).
    block: the number of rows of a block, a multiple of 32 / bits.
    """
    depth, columns = numbers.shape
    padded = np.zeros((-(-depth // block) * block, -(-columns // WIDTH) * WIDTH), np.uint8)
    padded[:depth, :columns] = numbers
    parts = padded.reshape(-1, 8 // bits, 4, padded.shape[1])
    bytes_ = np.bitwise_or.reduce([parts[:, i] << (bits * i) for i in range(8 // bits)])
    words = np.ascontiguousarray(bytes_.swapaxes(1, 2)).view("<i4")[..., 0]
    return np.ascontiguousarray(words.reshape(len(words), padded.shape[1] // WIDTH, WIDTH).swapaxes(0, 1)).astype(
        np.int32, copy=False
    )


def _unpack_blocks(b: np.ndarray, bits: int) -> np.ndarray:
    """Reverse `pack_blocks`.  The result is a u8 array of shape (rows, panels * WIDTH), with all padding."""
    panels, words, width = b.shape
    columns = panels * width
    rows = np.ascontiguousarray(b.swapaxes(0, 1)).astype("<i4", copy=False).reshape(words, columns, 1)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)[:, None, None]
    numbers = (rows.view(np.uint8).swapaxes(1, 2)[:, None] >> shifts) & np.uint8(2**bits - 1)
    return numbers.reshape(words * (_WORD // bits), columns)


def pack_block_values(values: np.ndarray) -> np.ndarray:
    """Pack the scales or the zero points for `matmul_blockwise_quant`.

    The result has shape (panels, blocks, WIDTH).  The last panel is padded with zeros.

    values: an array of shape (blocks, columns).
    """
    blocks, columns = values.shape
    padded = np.pad(values, ((0, 0), (0, -columns % WIDTH)))
    return np.ascontiguousarray(padded.reshape(blocks, -(-columns // WIDTH), WIDTH).swapaxes(0, 1))


def _unpack_block_values(values: np.ndarray) -> np.ndarray:
    """Reverse `pack_block_values`, with the padding, and convert the values to f32."""
    panels, blocks, width = values.shape
    return values.swapaxes(0, 1).reshape(blocks, panels * width).astype(np.float32)


def _for_each_tile(
    k: KernelBuilder,
    a: Buffer,
    panels: AnyDim,
    columns: int,
    work: int,
    result: Epilogue,
    write: Callable[[Scalar, Scalar, Scalar, Address], None],
) -> None:
    """Generate a product as a loop over tiles of at most _ROWS rows and WIDTH columns, which threads share.

    a: the left matrix, of shape (..., depth).
    work: the time of a tile, in eighths of a nanosecond.
    write(panel, row, size, tile): generates code that computes the tile of `size` rows, from `row` on.
    """
    rows = k.size((product(a.shape[:-1]),))
    groups = k.let("groups", (rows + (_ROWS - 1)) / _ROWS)
    with (
        k.parallel(groups * panels, work, least=minimum(groups, _MIN_TILES)) as (first, last),
        k.loop((last - 1) / groups + 1, start=first / groups, name="panel") as panel,
    ):
        tile = k.allocate("tile", F32, (_ROWS * WIDTH,))
        column = k.let("column", panel * WIDTH)
        count = k.let("width", minimum(columns - column, WIDTH))
        low, high = clip_to_block(k, first, last, panel, groups)
        with k.loop(high, start=low, name="group") as group:
            row = k.let("row", group * _ROWS)
            size = k.let("size", size_of_block(rows, row, _ROWS))
            write(panel, row, size, Address(tile, Literal(0, I64)))
            with k.loop(size, name="r") as r, k.loop(count, name="j", simd=True) as j:
                counters = (row + r, column + j) if len(a.shape) > 1 else (column + j,)
                result.store(k, counters, tile[r * WIDTH + j])


def _panel_arguments(
    inputs: list[Buffer], panel: Scalar, bits: int, block: int
) -> dict[str, Address | Scalar | AnyDim | int]:
    """Return the arguments of micro-kernels that describe a panel."""
    _, b, scales, zeros = inputs
    block_values = known_size(scales.shape[1]) * WIDTH
    return {
        "bits": bits,
        "block": block,
        "b": Address(b, panel * (known_size(b.shape[1]) * WIDTH)),
        "scales": Address(scales, panel * block_values),
        "zeros": Address(zeros, panel * block_values),
        "zeros_are_bytes": int(zeros.dtype == U8),
    }


def _matmul_blockwise_quant(k: KernelBuilder, inputs, result: Epilogue, *, columns: int, bits: int, block: int) -> None:
    a, b, _, _ = inputs
    depth, nothing = a.shape[-1], Literal(0, I64)
    left = Lhs(a, nothing, Literal(depth, I64), Literal(1, I64))
    rows = k.size((product(a.shape[:-1]),))

    def fill(panel: Buffer, first: Scalar, span: Scalar, column: Scalar, _: Scalar, pitch: Scalar) -> None:
        k.invoke(
            "rvm_dequantized_panel_f32",
            panel=Address(panel, nothing),
            first=first,
            count=span,
            **_panel_arguments(inputs, column / WIDTH, bits, block),
        )

    def write(panel: Scalar, row: Scalar, size: Scalar, tile: Address) -> None:
        k.invoke(
            "rvm_quantized_tile_f32",
            rows=size,
            depth=depth,
            a=Address(a, row * depth),
            a_stride=depth,
            tile=tile,
            **_panel_arguments(inputs, panel, bits, block),
        )

    def counters(i: Scalar, j: Scalar) -> tuple[Scalar, ...]:
        return (i, j) if len(a.shape) > 1 else (j,)

    few = k.let("few", rows <= _FEW_ROWS)
    with k.branch(few):
        _for_each_tile(k, a, b.shape[0], columns, depth * WIDTH // 4, result, write)
    with k.branch(few.logical_not()):
        sizes = (rows, Literal(columns, I64), Literal(depth, I64))
        gemm(k, (), sizes, WIDTH, result, lambda place: (left, PackOnTheFly(fill), counters))


def _numpy_matmul_blockwise_quant(
    a: np.ndarray, b: np.ndarray, scales: np.ndarray, zeros: np.ndarray, *, columns: int, bits: int, block: int
) -> np.ndarray:
    numbers = _unpack_blocks(b, bits)[: a.shape[-1]].astype(np.float32)
    rows = np.arange(len(numbers)) // block
    matrix = (numbers - _unpack_block_values(zeros)[rows]) * _unpack_block_values(scales)[rows]
    return np.matmul(a, matrix[:, :columns])


def _product_operations(*shapes: tuple[AnyDim, ...], columns: int, bits: int, block: int) -> AnyDim:
    """Return the number of operations of a product, including those of the padding of the last block."""
    return 2 * product(shapes[-1]) * (known_size(shapes[1][1]) * _WORD // bits)


@op(
    "matmul_blockwise_quant",
    numpy=_numpy_matmul_blockwise_quant,
    lower=Contraction(_matmul_blockwise_quant, two_loops, _product_operations),
)
def matmul_blockwise_quant(
    a: TensorType, b: TensorType, scales: TensorType, zeros: TensorType, *, columns: int, bits: int, block: int
) -> TensorType:
    """The product of a and the dequantized matrix (q - zero) * scale.  q is a quantized matrix of shape (k, columns).
    Each column of q is divided into blocks of `block` elements, and each block has a scale and a zero point.

    a: an f32 tensor of shape (..., k).
    b: an i32 tensor of shape (panels, k * bits / 32, 64), the result of `pack_blocks` for q.  A panel consists of 64
    adjacent columns of q.  In this shape, k is rounded up to a multiple of `block`.
    scales: the scales, an f32 tensor of shape (panels, k / block rounded up, 64), the result of `pack_block_values`.
    zeros: the zero points, a u8 or f32 tensor of the same shape as `scales`, the result of `pack_block_values`.
    columns: the number of columns of q, in ((panels - 1) * 64, panels * 64].
    bits: the number of bits of an element of q, 2, 4 or 8.
    block: the number of elements of a block, a multiple of 32 / bits.
    Result: an f32 tensor of shape (..., columns).
    Raises RelvmTypeError if an argument has another dtype or rank, or b, scales or zeros have unknown dimensions.
    Raises RelvmShapeError if the shapes do not fit together.  Raises RelvmArgumentError if `columns`, `bits` or `block`
    is invalid.
    Source: MatMulNBits of ONNX Runtime.
    """
    name = "matmul_blockwise_quant"
    expect_tensor(name, a=a, b=b, scales=scales, zeros=zeros)
    expect(a.dtype == F32 and a.rank != 0, "{}: a is {}, expected f32 of rank at least 1", name, a)
    blocks = _expect_panels(name, b, scales, zeros, columns, bits, block)
    if a.shape is None or blocks is None:
        return TensorType(F32, None, a.rank)
    depth = a.shape[-1]
    low, high = (blocks - 1) * block + 1 if blocks else 0, blocks * block
    fits = isinstance(depth, int) and low <= depth <= high
    message = "{}: a has {} columns, but b is packed for {} to {} rows"
    expect(fits, message, name, depth, low, high, error=RelvmShapeError)
    return TensorType(F32, (*a.shape[:-1], columns))


def _expect_panels(
    name: str, b: TensorType, scales: TensorType, zeros: TensorType, columns: int, bits: int, block: int
) -> int | None:
    """Check the arguments of operator `name` that describe a packed matrix.  Return the number of its blocks, or None
    if a shape is unknown."""
    expect(bits in BITS, "{}: bits is {!r}, expected one of {}", name, bits, BITS, error=RelvmArgumentError)
    is_block = isinstance(block, int) and block > 0 and block * bits % _WORD == 0
    message = "{}: block is {!r}, but a block of {}-bit elements must be a positive multiple of {}"
    expect(is_block, message, name, block, bits, _WORD // bits, error=RelvmArgumentError)
    for parameter, type_, dtypes in (("b", b, (I32,)), ("scales", scales, (F32,)), ("zeros", zeros, (U8, F32))):
        known = all(isinstance(dim, int) for dim in type_.shape or ())
        right = type_.dtype in dtypes and known and type_.rank in (None, 3)
        wanted = " or ".join(dtype.name for dtype in dtypes)
        expect(right, "{}: {} is {}, expected {} of rank 3 with known dimensions", name, parameter, type_, wanted)
    if b.shape is None or scales.shape is None or zeros.shape is None:
        return None
    panels, words, width = map(known_size, b.shape)
    expect(width == WIDTH, "{}: b has panels of {} columns, expected {}", name, width, WIDTH, error=RelvmShapeError)
    fits = isinstance(columns, int) and (panels - 1) * width < columns <= panels * width
    message = "{}: columns is {!r}, expected more than {} and at most {}"
    expect(fits, message, name, columns, (panels - 1) * width, panels * width, error=RelvmArgumentError)
    block_words = block * bits // _WORD
    message = "{}: b has {} words in a column, expected a multiple of {} (a block)"
    expect(words % block_words == 0, message, name, words, block_words, error=RelvmShapeError)
    blocks = (panels, words // block_words, width)
    message = "{}: scales is {} and zeros is {}, expected shape [{}, {}, {}] (panels, blocks, columns)"
    same = scales.shape == zeros.shape == blocks
    expect(same, message, name, scales, zeros, *blocks, error=RelvmShapeError)
    return blocks[1]


def _quantize_blocks(k: KernelBuilder, inputs: list[Buffer], outputs: list[Buffer], *, block: int) -> None:
    (x,), (words,) = inputs, outputs
    depth, size = x.shape[-1], words.shape[-1]
    rows = k.size((product(x.shape[:-1]),))
    with k.parallel(rows, depth) as (first, last), k.loop(last, start=first, name="row") as row:
        k.invoke(
            "rvm_quantized_row_int8",
            words=Address(words, row * size),
            x=Address(x, row * depth),
            depth=depth,
            block=block,
        )


def _numpy_quantize_blocks(x: np.ndarray, *, block: int) -> np.ndarray:
    *shape, depth = x.shape
    blocks = -(-depth // block)
    padded = np.zeros((*shape, blocks * block), np.float32)
    padded[..., :depth] = x
    values = padded.reshape(*shape, blocks, block)
    largest = np.abs(values).max(-1, initial=0)  # NaN if an element is NaN
    is_finite, is_zero = np.isfinite(largest), largest < _SMALLEST
    used = is_finite & ~is_zero
    most = np.where(used, largest, np.float32(1))
    scales = np.where(used, most / np.float32(127), np.where(is_finite, np.float32(0), np.float32(np.nan)))
    factors = np.where(used, np.float32(127) / most, np.float32(0))
    bytes_ = np.rint(np.where(used[..., None], values, 0) * factors[..., None]).astype(np.int8)
    sums = bytes_.sum(-1, dtype=np.int32)
    words = bytes_.reshape(*shape, blocks * block).view("<i4").astype(np.int32, copy=False)
    return np.concatenate([words, scales.astype(np.float32).view(np.int32), sums], -1)


@op("quantize_blocks", numpy=_numpy_quantize_blocks, lower=CustomKernel(_quantize_blocks, one_per_element))
def quantize_blocks(x: TensorType, *, block: int) -> TensorType:
    """The rows of x quantized to signed bytes, block by block, for `matmul_blockwise_int8`.

    A row of the result contains the bytes of its blocks, four in a word, then the bits of the f32 scale of each block,
    then the sum of the bytes of each block.  Let m be the largest absolute value of a block.  The scale is m / 127, and
    the bytes are x * (127 / m), rounded to the nearest integers, ties to even.  If m is less than 2^-100, the scale and
    the bytes are 0.  If m is infinite or an element is NaN, the scale is NaN and the bytes are 0.

    x: an f32 tensor of shape (..., k), whose last dimension is known.
    block: the number of elements of a block, a positive multiple of 4.  The last block is padded with zeros.
    Result: an i32 tensor of shape (..., blocks * (block / 4 + 2)), where blocks is k / block rounded up.
    Raises RelvmTypeError if x has another dtype or rank 0.  Raises RelvmShapeError if k is unknown.  Raises
    RelvmArgumentError if `block` is invalid.
    Source: MatMulNBits of ONNX Runtime with accuracy level 4.
    """
    name = "quantize_blocks"
    expect_tensor(name, x=x)
    expect(x.dtype == F32 and x.rank != 0, "{}: x is {}, expected f32 of rank at least 1", name, x)
    is_block = isinstance(block, int) and block > 0 and block % 4 == 0
    message = "{}: block is {!r}, expected a positive multiple of 4"
    expect(is_block, message, name, block, error=RelvmArgumentError)
    if x.shape is None:
        return TensorType(I32, None, x.rank)
    depth = x.shape[-1]
    expect(isinstance(depth, int), "{}: x is {}, expected a known last dimension", name, x, error=RelvmShapeError)
    return TensorType(I32, (*x.shape[:-1], -(-known_size(depth) // block) * (block // 4 + 2)))


def _matmul_blockwise_int8(k: KernelBuilder, inputs, result: Epilogue, *, columns: int, bits: int, block: int) -> None:
    a, b, scales, _ = inputs
    size, blocks = a.shape[-1], known_size(scales.shape[1])

    def write(panel: Scalar, row: Scalar, count: Scalar, tile: Address) -> None:
        k.invoke(
            "rvm_quantized_tile_int8",
            rows=count,
            blocks=blocks,
            a=Address(a, row * size),
            a_stride=size,
            tile=tile,
            **_panel_arguments(inputs, panel, bits, block),
        )

    _for_each_tile(k, a, b.shape[0], columns, blocks * block * WIDTH // 12, result, write)


def _numpy_matmul_blockwise_int8(
    a: np.ndarray, b: np.ndarray, scales: np.ndarray, zeros: np.ndarray, *, columns: int, bits: int, block: int
) -> np.ndarray:
    numbers = _unpack_blocks(b, bits).astype(np.int32)
    factors, middles = _unpack_block_values(scales), _unpack_block_values(zeros)
    blocks, rows = len(factors), np.ascontiguousarray(a.reshape(math.prod(a.shape[:-1]), a.shape[-1]))
    words, a_scales, sums = np.split(rows, [blocks * (block // 4), blocks * (block // 4 + 1)], -1)
    bytes_ = np.ascontiguousarray(words).astype("<i4", copy=False).view(np.int8).astype(np.int32)
    a_scales = np.ascontiguousarray(a_scales).view(np.float32)
    result = np.zeros((len(rows), factors.shape[1]), np.float32)
    for i in range(blocks):
        part = slice(i * block, (i + 1) * block)
        dots = (bytes_[:, part] @ numbers[part]).astype(np.float32)
        result += (dots - middles[i] * sums[:, i : i + 1].astype(np.float32)) * (factors[i] * a_scales[:, i : i + 1])
    return result[:, :columns].reshape(*a.shape[:-1], columns)


@op(
    "matmul_blockwise_int8",
    numpy=_numpy_matmul_blockwise_int8,
    lower=Contraction(_matmul_blockwise_int8, two_loops, _product_operations),
)
def matmul_blockwise_int8(
    a: TensorType, b: TensorType, scales: TensorType, zeros: TensorType, *, columns: int, bits: int, block: int
) -> TensorType:
    """The product of a result of `quantize_blocks` and the dequantized matrix (q - zero) * scale.  q is a quantized
    matrix of shape (k, columns).

    An element of the result is the sum over all blocks, in order, of (dot - zero * sum) * (scale * scale_a).  dot is
    the sum of the products of the bytes of a block of `a` and a block of q, an integer modulo 2^32.  `sum` is the sum
    of the bytes of the block of `a`, and scale_a is its scale.  Each operation on floats is rounded to f32, so all
    processors give the same result.

    a: an i32 tensor of shape (..., blocks * (block / 4 + 2)), the result of `quantize_blocks` with the same block.
    b, scales, zeros, columns, bits, block: as in `matmul_blockwise_quant`.
    Result: an f32 tensor of shape (..., columns).
    Raises RelvmTypeError if an argument has another dtype or rank, or b, scales or zeros have unknown dimensions.
    Raises RelvmShapeError if the shapes do not fit together.  Raises RelvmArgumentError if `columns`, `bits` or `block`
    is invalid.
    Source: MatMulNBits of ONNX Runtime with accuracy level 4.
    """
    name = "matmul_blockwise_int8"
    expect_tensor(name, a=a, b=b, scales=scales, zeros=zeros)
    expect(a.dtype == I32 and a.rank != 0, "{}: a is {}, expected i32 of rank at least 1", name, a)
    blocks = _expect_panels(name, b, scales, zeros, columns, bits, block)
    if a.shape is None or blocks is None:
        return TensorType(F32, None, a.rank)
    message = "{}: a has rows of {} words, expected {} for {} blocks of {} elements"
    wanted = blocks * (block // 4 + 2)
    expect(a.shape[-1] == wanted, message, name, a.shape[-1], wanted, blocks, block, error=RelvmShapeError)
    return TensorType(F32, (*a.shape[:-1], columns))
