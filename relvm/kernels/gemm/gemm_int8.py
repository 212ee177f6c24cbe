"""Matrix products of bytes with zero points (csrc/codegen/gemm_int8.h).

They are computed as products of signed and unsigned bytes:

    sum of (a - a_zero) (b - b_zero) = sum of a b - a_zero * (sum of b) - b_zero * (sum of a) + depth * a_zero * b_zero

If the bytes have the wrong signedness, their highest bit is inverted.  This shifts the bytes and their zero point by
128.  All results are exact modulo 2^32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relvm.data_classes import value_record
from relvm.ir.dtypes import I8, I32, I64, U8, U32, DType
from relvm.ir.loop_ir import Buffer, Literal, Operation, Scalar, as_scalar, select
from relvm.ir.symbolic import AnyDim
from relvm.kernels.gemm.gemm import LhsInt8, PackOnTheFly
from relvm.kernels.kernel_builder import KernelBuilder

WORD = 4  # bytes in a word
_HIGH_BITS = 0x80808080
_SHIFT = 128


@value_record
class Signs:
    """The conversion of the bytes of two matrices before they are multiplied.

    left, right: the number added to each element of the left and of the right matrix: 0, 128 or -128.
    left_is_signed: whether the left bytes are signed after the conversion.  The right bytes have the other signedness.
    """

    left: int
    right: int
    left_is_signed: bool

    @property
    def flip(self) -> int:
        """A mask of the bits that are inverted in each word (four bytes) of the left matrix."""
        return _HIGH_BITS if self.left else 0


def choose_signs(left: DType, right: DType) -> Signs:
    """Return the conversion after which the bytes of one matrix are signed and those of the other are unsigned.

    left, right: the dtypes of the matrices, i8 or u8.
    """
    if left == U8:
        return Signs(0, -_SHIFT if right == U8 else 0, left_is_signed=False)
    return Signs(0, 0, left_is_signed=True) if right == U8 else Signs(_SHIFT, 0, left_is_signed=False)


@value_record
class ZeroPoints:
    """The zero points and sums of two matrices after the conversion by `Signs`.

    left(row): the i32 zero point of a row of the left matrix.  `left` is None if all its zero points are 0.
    right(column): the i32 zero point of a column of the right matrix.  `right` is None if all its zero points are 0.
    row_sum(row): the sum of a row of the left matrix.
    column_sum(first, column): the sum of column `column` of the panel (a group of columns) that begins with column
    `first`.  If the panel is copied in chunks of rows, this is the sum over the current chunk.
    """

    left: Callable[[Scalar], Scalar] | None
    right: Callable[[Scalar], Scalar] | None
    row_sum: Callable[[Scalar], Scalar]
    column_sum: Callable[[Scalar, Scalar], Scalar]


def int8_lhs(k: KernelBuilder, x: Buffer, start: Scalar, depth: Scalar, signs: Signs, zeros: ZeroPoints) -> LhsInt8:
    """Return the left matrix of a product of bytes.

    The matrix is stored row by row, from flat position `start` of `x` on.

    depth: the number of bytes in a row.
    signs: the conversion of the bytes.
    zeros: the zero points of both matrices.
    """

    def begin(row: Scalar, after_first: Scalar | None) -> Callable[[Scalar, Scalar], Scalar]:
        left = None if zeros.left is None else zeros.left(row)
        once: Scalar | None = None
        if zeros.right is not None:
            total = zeros.row_sum(row)
            once = k.let("once", -total if left is None else depth.to(I32) * left - total)

        def term(first: Scalar, column: Scalar) -> Scalar:
            value: Scalar = Literal(0, I32)
            if left is not None:
                value = -(left * zeros.column_sum(first, column))
            if once is not None and zeros.right is not None:
                whole = zeros.right(first + column) * once
                value = value + (whole if after_first is None else select(after_first, Literal(0, I32), whole))
            return value

        return term

    return LhsInt8(x, start, depth, depth, signs.flip, signs.left_is_signed, begin)


def sum_row(k: KernelBuilder, x: Buffer, start: Scalar, depth: Scalar, shift: int) -> Scalar:
    """Generate code that sums `depth` bytes of `x`, from flat position `start` on.  Return the variable with the sum.

    shift: a number that is added to each byte before the sum.
    """
    total = k.variable("total", Literal(0, I32))
    with k.loop(depth, name="p", simd=True, reduce=[("add", total)]) as p:
        k.assign(total, total + x.flat(start + p).to(I32))
    return k.let("row_sum", total + depth.to(I32) * shift) if shift else total


def word_count(depth: AnyDim) -> Scalar:
    """Return the number of four-byte words that hold a row of `depth` bytes."""
    return Literal(-(-depth // 4), I64) if isinstance(depth, int) else (as_scalar(depth, I64) + 3) / 4


def unsigned_flip_mask(dtype: DType) -> int:
    """Return the bits to invert in a word of four bytes, so that bytes of type `dtype` become unsigned."""
    return _HIGH_BITS if dtype == I8 else 0


def unsigned_zero_point(k: KernelBuilder, dtype: DType, zero: Scalar) -> Scalar:
    """Return the zero point of bytes after their conversion to unsigned.

    dtype, zero: the dtype and the zero point of the bytes before the conversion.
    """
    return k.let("zero", zero.to(I32) + (_SHIFT if dtype == I8 else 0))


def padding_word(k: KernelBuilder, zero: Scalar) -> Scalar:
    """Return a word of four bytes that are all equal to the zero point `zero`."""
    return k.let("pad_word", word_of([zero] * WORD))


def word_of(elements: Sequence[Scalar]) -> Scalar:
    """Return a word of the low bytes of the four i32 scalars `elements`.  The first is in the lowest bits."""
    word, *others = (element.to(U8).to(U32) for element in elements)
    for position, byte in enumerate(others, start=1):
        moved = Operation("shl", (byte, Literal(8 * position, U32)), U32)
        word = Operation("or", (word, moved), U32)
    return word.to(I32)


def pack_words(
    k: KernelBuilder, x: Buffer, start: Scalar, sizes: tuple[Scalar, Scalar], width: int, shift: int, sums: Buffer
) -> PackOnTheFly:
    """Return a right matrix of words, whose panels are packed from a row-major matrix of bytes at run time.

    A word consists of four bytes of a column.  A panel is a group of adjacent columns.  The matrix of bytes begins at
    flat position `start` of `x`.

    sizes: the number of rows and of columns of the matrix of bytes.
    width: the number of columns of a panel.
    shift: the number to add to each byte.
    sums: an array of `width` elements, in which the kernel stores the sums of the panel's columns.
    """
    depth, columns = sizes

    def fill(panel: Buffer, first: Scalar, span: Scalar, column: Scalar, count: Scalar, pitch: Scalar) -> None:
        with k.loop(width, name="j", simd=True) as j:
            k.store(sums, (j,), 0)
        with k.loop(span, name="p") as p:
            row = k.let("row", (first + p) * 4)
            sources = [k.let("source", start + (row + i) * columns + column) for i in range(4)]

            def write(element: Callable[[int, Scalar], Scalar]) -> None:
                with k.loop(count, name="j", simd=True) as j:
                    elements = [k.let("b", element(i, x.flat(sources[i] + j).to(I32) + shift)) for i in range(4)]
                    k.store(panel, (p * pitch + j,), word_of(elements))
                    k.store(sums, (j,), sums[j] + (elements[0] + elements[1] + (elements[2] + elements[3])))

            with k.branch(row + 4 <= depth):
                write(lambda i, value: value)
            with k.branch(row + 4 > depth):
                write(lambda i, value: select(row + i < depth, value, Literal(0, I32)))
            with k.loop(pitch, start=count, name="j", simd=True) as j:
                k.store(panel, (p * pitch + j,), 0)

    return PackOnTheFly(fill)
