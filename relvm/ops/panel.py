"""The loop nest of matrix products, which convolutions share: blocked so that a C compiler keeps a tile in registers.

The right matrix is copied, a panel of DEPTH rows and COLUMNS columns at a time, to where it is read in order from the
first cache; a tile of ROWS rows of the result is added up beside it.  The order of additions is that of the plain
loops.
Source: Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008.
"""

from __future__ import annotations

from collections.abc import Callable

from relvm.ir.dtypes import I64
from relvm.lir.kernel import Buffer, KernelBuilder, Literal, Local, Scalar, Select

ROWS, COLUMNS, DEPTH = 8, 32, 128

# fill(panel, first_row, rows, first_column, columns): writes panel[r * COLUMNS + c], the element of the right matrix at
# (first_row + r, first_column + c), for r < rows and c < COLUMNS; what it writes for c >= columns is not used.
Fill = Callable[[Buffer, Local, Local, Local, Local], None]


def matrix_product(
    k: KernelBuilder,
    sizes: tuple[Scalar, Scalar, Scalar],
    left: Callable[[Scalar, Scalar], Scalar],
    fill: Fill,
    out: Buffer,
    start: Scalar,
) -> None:
    """`out.flat[start + i * columns + j]` = the sum over p of `left(i, p) * right(p, j)`.

    sizes: rows, columns, depth.  fill: how the right matrix is read.
    """
    rows, columns, depth = sizes
    panel = k.allocate("panel", out.dtype, (DEPTH * COLUMNS,))
    tile = k.allocate("tile", out.dtype, (ROWS * COLUMNS,))
    with k.loop(_blocks(columns, COLUMNS), name="block") as block:
        column = k.declare("column", block * COLUMNS)
        width = k.declare("width", _smaller(columns - column, COLUMNS))
        with k.loop(Select(depth > 0, _blocks(depth, DEPTH), Literal(1, I64)), name="chunk") as chunk:
            first = k.declare("first", chunk * DEPTH)
            span = k.declare("span", _smaller(depth - first, DEPTH))
            fill(panel, first, span, column, width)

            def add_tile(row: Local, count: int) -> None:
                """Adds to `count` rows of the result what this panel contributes."""
                with k.loop(count * COLUMNS, name="e", simd=True) as e:
                    k.store(tile, (e,), 0)
                with k.branch(chunk > 0), k.loop(count, name="r") as r, k.loop(width, name="j", simd=True) as j:
                    k.store(tile, (r * COLUMNS + j,), out.flat(start + (row + r) * columns + column + j))
                with k.loop(span, name="p") as p, k.loop(count, name="r") as r:
                    factor = k.declare("factor", left(row + r, first + p))
                    with k.loop(COLUMNS, name="j", simd=True) as j:
                        here = r * COLUMNS + j
                        k.store(tile, (here,), tile[here] + factor * panel[p * COLUMNS + j])
                with k.loop(count, name="r") as r, k.loop(width, name="j", simd=True) as j:
                    k.store(out, (start + (row + r) * columns + column + j,), tile[r * COLUMNS + j])

            with k.loop(rows / ROWS, name="group") as group:
                add_tile(k.declare("row", group * ROWS), ROWS)
            with k.loop(rows, start=rows / ROWS * ROWS, name="row") as row:
                add_tile(row, 1)


def fill_from_rows(k: KernelBuilder, x: Buffer, start: Scalar, columns: Scalar) -> Fill:
    """The right matrix is a row-major one of `columns` columns in x, from flat position `start` on."""

    def fill(panel: Buffer, first: Local, span: Local, column: Local, width: Local) -> None:
        with k.loop(span, name="p") as p:
            source = k.declare("source", start + (first + p) * columns + column)
            with k.loop(width, name="j", simd=True) as j:
                k.store(panel, (p * COLUMNS + j,), x.flat(source + j))
            _clear(k, panel, p, width)

    return fill


def fill_from_columns(k: KernelBuilder, x: Buffer, start: Scalar, depth: Scalar) -> Fill:
    """The right matrix is the transpose of a row-major one of `depth` columns in x, from flat position `start` on."""

    def fill(panel: Buffer, first: Local, span: Local, column: Local, width: Local) -> None:
        with k.loop(width, name="j") as j:
            source = k.declare("source", start + (column + j) * depth + first)
            with k.loop(span, name="p", simd=True) as p:
                k.store(panel, (p * COLUMNS + j,), x.flat(source + p))
        with k.loop(span, name="p") as p:
            _clear(k, panel, p, width)

    return fill


def _clear(k: KernelBuilder, panel: Buffer, row: Local, width: Local) -> None:
    """Nothing reads these columns' results, but adding up what the stack holds may be slow, as denormal numbers are."""
    with k.loop(COLUMNS, start=width, name="j", simd=True) as j:
        k.store(panel, (row * COLUMNS + j,), 0)


def _blocks(size: Scalar, block: int) -> Scalar:
    return (size + (block - 1)) / block


def _smaller(size: Scalar, limit: int) -> Scalar:
    return Select(size < limit, size, Literal(limit, I64))
