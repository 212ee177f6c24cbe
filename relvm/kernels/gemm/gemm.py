"""Loop nest of matrix products, blocked for registers and caches.  Convolutions use it, too.

The right matrix is processed in panels of columns.  A panel is packed at compile time, copied at run time so that its
elements are contiguous, or read in place (`Prepacked`, `PackOnTheFly`, `RowMajor`).  For each panel, tiles of ROWS rows
of the result are accumulated in registers (csrc/codegen/gemm_f32.h).  The order of additions is the same as in a simple
loop over the depth (the summed axis).
Source: Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from relvm.data_classes import value_record
from relvm.ir.dtypes import BOOL, I64
from relvm.ir.loop_ir import Address, Buffer, Literal, Scalar, constant_value, maximum, minimum, select
from relvm.ir.symbolic import AnyDim
from relvm.kernels.epilogue import Epilogue
from relvm.kernels.fused_expr import NotFusable
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import clip_to_block, size_of_block
from relvm.tables import kernel_constant

ROWS = kernel_constant("TILE_ROWS")
_BYTE_ROWS = kernel_constant("BYTE_TILE_ROWS")
DEPTH = 512  # rows of a panel, at most
_MAX_WORDS = 1280  # maximum number of rows of words that are copied at once, because a panel is on the C stack
STEP = kernel_constant("TILE_STEP")
_TILE = kernel_constant("TRANSPOSED_TILE")
WIDTHS = tuple(range(kernel_constant("PANEL_WIDTH"), 0, -STEP))  # possible numbers of columns of a panel
_MIN_ROWS = 24 * ROWS  # minimum number of rows in a part; each part copies the panel, which takes as long as 12 rows

Counters = Callable[..., tuple[Scalar, ...]]


def panel_width(columns: object) -> int:
    """Return the panel width for a matrix with `columns` columns: the number of adjacent columns that are packed
    together.

    The panel width is the smallest element of WIDTHS that is large enough for all columns, otherwise the largest
    element.  Narrow panels are slow, because a tile then has fewer independent sums than the processor can compute at
    a time, and the left matrix is read once for each panel.  A last panel with few columns costs less: only the vectors
    that have columns are computed.
    """
    if not isinstance(columns, int) or columns <= 0:
        return WIDTHS[0]
    return min((width for width in WIDTHS if width >= columns), default=WIDTHS[0])


def run_time_panel_width(k: KernelBuilder, columns: object) -> int:
    """Return the panel width for a matrix with `columns` columns that is packed at run time.

    A panel consists of adjacent columns that are packed together.  The result is `panel_width`, or the smallest width
    if the kernel should use little memory (`k.is_compact`).
    """
    return WIDTHS[-1] if k.is_compact else panel_width(columns)


@value_record
class Lhs:
    """The left matrix: the element at (row, column) is `buffer.flat[start + row * row_step + column * column_step]`."""

    buffer: Buffer
    start: Scalar
    row_step: Scalar
    column_step: Scalar

    def position(self, row: Scalar, column: Scalar) -> Scalar:
        return self.start + row * self.row_step + column * self.column_step

    def element(self, row: Scalar, column: Scalar) -> Scalar:
        return self.buffer.flat(self.position(row, column))


@value_record
class LhsInt8:
    """A left matrix of bytes with contiguous rows.

    The element at (row, column) is `buffer.flat[start + row * row_step + column]`.  The product processes four columns
    of the left matrix at a time, as one word.  The depth of the product is therefore counted in words of four bytes,
    and the elements of the right matrix are words (csrc/codegen/gemm_int8.h).

    depth: the length of a row in bytes.
    flip: a mask of the bits that are inverted in each word before the product.
    is_signed: whether the bytes are signed after this inversion.  The bytes of the right matrix have the other
    signedness.
    begin(row, after_first): generates the code that is needed once for row `row`, and returns a function
    correction(first, column).

    The result of correction(first, column) is a scalar that is added to an element of the product, because of the zero
    points.  The element is in row `row`, and in column `column` of the panel (a group of adjacent columns) that begins
    at column `first`.

    If the depth is divided into chunks, each chunk adds a correction.  `after_first` is then a condition that holds for
    every chunk except the first.  The value None stands for False.
    """

    buffer: Buffer
    start: Scalar
    row_step: Scalar
    depth: Scalar
    flip: int
    is_signed: bool
    begin: Callable[[Scalar, Scalar | None], Callable[[Scalar, Scalar], Scalar]]

    def position(self, row: Scalar, column: Scalar) -> Scalar:
        return self.start + row * self.row_step + column


@value_record
class Prepacked:
    """A right matrix that is packed at compile time (relvm/kernels/gemm/packing.py).

    The matrix is divided into panels.  Each panel is a group of adjacent columns, which is stored row by row.  The last
    panel can be narrower than the others.
    """

    buffer: Buffer
    start: Scalar


@value_record
class RowMajor:
    """A right matrix whose rows are contiguous, and follow each other.

    As an operand of `gemm`, it is read in place.  The number of its columns must then be a multiple of STEP.  Reading
    in place is faster than copying if the left matrix has so few rows that each element of the right matrix is used in
    a single tile.
    """

    buffer: Buffer
    start: Scalar


@value_record
class PackOnTheFly:
    """A right matrix that is copied panel by panel at run time.  A panel is a group of adjacent columns.

    fill(panel, first_row, rows, first_column, columns, pitch): generates code that copies the element at (first_row +
    r, first_column + c) to panel[r * pitch + c], for r < rows and c < columns.  The elements for columns <= c < pitch
    are not used.
    rows: the matrix, if it is row-major.  The first tile of a panel then copies it while it computes, unless the panel
    is narrower than the others.  This takes less time than `fill`, which waits for the memory.
    """

    fill: Callable[[Buffer, Scalar, Scalar, Scalar, Scalar, Scalar], None]
    rows: RowMajor | None = None


def gemm(
    k: KernelBuilder,
    batch: Sequence[AnyDim],
    sizes: tuple[Scalar, Scalar, Scalar],
    width: int,
    result: Epilogue,
    operands: Callable[[tuple[Scalar, ...]], tuple[Lhs | LhsInt8, Prepacked | RowMajor | PackOnTheFly, Counters]],
    line: int | None = None,
    tile_rows: int = ROWS,
) -> None:
    """Generate a batch of matrix products, and pass each element of a product to the epilogue `result`.

    batch: the batch dimensions.
    sizes: the number of rows and of columns of a product, and the depth, which is the number of summed products.  If
    the left matrix consists of bytes, the depth is in words of four bytes.
    width: the number of columns of a panel.  A panel is the part of the right matrix that is processed at a time.
    operands(indices): returns `left`, `right` and `counters` for the product at `indices` in the batch.  `left` and
    `right` are the matrices.  counters(i, j) returns the indices at which the epilogue stores element (i, j).  The
    classes of `left` and `right` must be the same for all products.
    line: None, or a number of columns.  The columns are then divided into lines of this length, and counters(i, n, j)
    returns the indices for row i and column j of line n.
    tile_rows: the number of rows of a tile.  It is at most ROWS, or `byte_tile_rows` if the left matrix consists of
    bytes.
    """
    rows, columns, depth = sizes
    blocks, groups = _block_count(columns, width), _block_count(rows, tile_rows)
    panels = blocks * k.size(tuple(batch))
    least = minimum(groups, _MIN_ROWS // tile_rows)
    with k.parallel(panels * groups, depth * width, least=least) as (first, last):
        tile = k.allocate("tile", result.dtype, (_max_tile_rows(rows, tile_rows) * width,))
        with k.loop((last - 1) / groups + 1, start=first / groups, name="number") as number:
            tiles = clip_to_block(k, first, last, number, groups)
            column = k.let("column", number % blocks * width)
            left, right, counters = operands(batch_indices(k, number / blocks, batch))
            count = k.let("width", size_of_block(columns, column, width))
            pitch: Scalar = Literal(width, I64)
            if constant_value(columns) is None:
                pitch = k.let("pitch", round_up(count, STEP))
            stride = None if isinstance(right, Prepacked) else columns if isinstance(right, RowMajor) else pitch
            source = None
            if isinstance(right, PackOnTheFly) and isinstance(left, Lhs) and tile.dtype.name == "f32":
                source = right.rows
            product = _PanelMatmul(
                k,
                rows,
                columns,
                column,
                count,
                left,
                width,
                stride,
                tile,
                result,
                counters,
                tiles,
                tile_rows,
                line,
                source,
            )
            if isinstance(right, Prepacked):
                start = k.let("at_panel", right.start + column * depth)
                product.write(Literal(0, I64), depth, right.buffer, start, None, None)
            elif isinstance(right, RowMajor):
                product.write(Literal(0, I64), depth, right.buffer, right.start + column, None, None)
            else:
                _write_copied(k, product, right, depth, pitch)


def _write_copied(k: KernelBuilder, product: _PanelMatmul, right: PackOnTheFly, depth: Scalar, pitch: Scalar) -> None:
    """Generate code that copies one panel of `right`, and multiplies the left matrix by this panel.

    A panel is a group of adjacent columns.

    product: the generator of the product of the left matrix and the panel.
    depth: the number of rows of the panel.  If it is large or unknown, the panel is copied and multiplied in chunks of
    DEPTH rows, because the copy is on the C stack.
    pitch: the distance of the rows of the copy in elements.
    """
    deep, width, result = constant_value(depth), product.width, product.result
    if deep is not None and deep <= (_MAX_WORDS if isinstance(product.left, LhsInt8) else DEPTH):
        panel = k.allocate("panel", result.dtype, (max(deep, 1) * width,))
        zero = k.let("from", Literal(0, I64))
        span = k.let("span", depth)
        product.fill(right, panel, zero, span, pitch)
        product.write(zero, span, panel, Literal(0, I64), None, None)
        return
    if result.partial is None:
        raise NotFusable
    panel = k.allocate("panel", result.dtype, (DEPTH * width,))
    with k.loop(select(depth > 0, _block_count(depth, DEPTH), Literal(1, I64)), name="chunk") as chunk:
        zero = k.let("from", chunk * DEPTH)
        span = k.let("span", minimum(depth - zero, DEPTH))
        product.fill(right, panel, zero, span, pitch)
        product.write(zero, span, panel, Literal(0, I64), chunk > 0, zero + span < depth)


def batch_indices(k: KernelBuilder, number: Scalar, batch: Sequence[AnyDim]) -> tuple[Scalar, ...]:
    """Return the indices of matrix `number` of a batch along the batch dimensions `batch`.

    number: the row-major index of the matrix in the batch.
    """
    inner_indices: list[Scalar] = []
    for extent in reversed(batch[1:]):
        inner_indices.insert(0, k.let("place", number % k.size((extent,))))
        number = k.let("number", number / k.size((extent,)))
    return (number, *inner_indices) if batch else ()


@value_record
class _PanelMatmul:
    """The generator of the product of the left matrix and one panel of the right matrix.

    A panel is a group of adjacent columns.

    rows: the number of rows of the left matrix.
    columns: the number of columns of the right matrix.
    column: the first column of the panel.
    count: the number of columns of the panel.
    left: the left matrix.
    width: the number of columns of a panel, except that the last panel can be narrower.
    tile: the array for a tile of the product.
    result: the epilogue that receives each element of the product.
    counters: the function that returns the indices at which the epilogue stores an element (see `gemm`).
    source: the right matrix, if the first tile copies a panel of it (see PackOnTheFly), otherwise None.
    """

    k: KernelBuilder
    rows: Scalar
    columns: Scalar
    column: Scalar
    count: Scalar
    left: Lhs | LhsInt8
    width: int
    pitch: Scalar | None  # the distance of the rows of a panel; None if a narrow last panel is packed without gaps
    tile: Buffer
    result: Epilogue
    counters: Counters
    tiles: tuple[Scalar, Scalar]  # the range [first, end) of tiles to compute
    tile_rows: int
    line: int | None  # the length of a line of columns (see gemm)
    source: RowMajor | None

    def fill(self, right: PackOnTheFly, panel: Buffer, first: Scalar, span: Scalar, pitch: Scalar) -> None:
        """Generate code that copies rows [first, first + span) of `right` to the panel, unless the first tile does."""
        with self.k.branch(self._is_copied_by_tile(self.count).logical_not()):
            right.fill(panel, first, span, self.column, self.count, pitch)

    def _is_copied_by_tile(self, columns: Scalar) -> Scalar:
        """Return whether the first tile copies the panel, if the panel has `columns` columns.

        A tile reads whole vectors, so it does not read the last columns of `source` in place, unless they fill their
        vectors.
        """
        known, size = constant_value(self.columns), constant_value(columns)
        if self.source is None or (size is not None and size % STEP):
            return Literal(False, BOOL)
        if size is not None or (known is not None and known % STEP == 0):
            return Literal(True, BOOL)
        return columns.eq(self.width)

    def write(
        self,
        first: Scalar,
        span: Scalar,
        right: Buffer,
        start: Scalar,
        after_first: Scalar | None,
        before_last: Scalar | None,
    ) -> None:
        """Generate the product of the left matrix and rows [first, first + span) of the panel.

        The panel is a group of adjacent columns of the right matrix.  Its row `first` begins at `right.flat[start]`.
        If the panel is divided into several chunks of rows, each chunk adds its product to partial sums in memory.

        after_first: whether an earlier chunk has stored partial sums.  None stands for False.
        before_last: whether a later chunk follows, so that the sums are not final.  None stands for False.
        """
        k, (low, high) = self.k, self.tiles

        def tile(row: Scalar, count: Scalar) -> None:
            self._tile(row, count, first, span, right, start, after_first, before_last)

        for_each_tile(k, self.rows, self.tile_rows, (low, high), tile)

    def _tile(
        self,
        row: Scalar,
        count: Scalar,
        first: Scalar,
        span: Scalar,
        right: Buffer,
        start: Scalar,
        after_first: Scalar | None,
        before_last: Scalar | None,
    ) -> None:
        k, width, tile, partial = self.k, self.width, self.tile, self.result.partial
        if self.line is None:
            self.result.prefetch(k, self.counters(row, self.column), count, self.count)
        if after_first is not None and partial is not None:
            sums_buffer = partial.buffer
            with k.branch(after_first):
                self._for_each_element(
                    row, count, lambda at, sum_position: k.store(tile, (at,), sums_buffer.flat(sum_position))
                )
        left = self.left
        if isinstance(left, Lhs) and tile.dtype.name == "f32":
            adds = Literal(0, I64) if after_first is None else after_first
            a = Address(left.buffer, left.position(row, first))

            def add(columns: Scalar) -> None:
                name, operands = self._right_operands(row, first, span, right, start, columns)
                k.invoke(
                    name,
                    rows=count,
                    columns=columns,
                    depth=span,
                    a=a,
                    a_row_stride=left.row_step,
                    a_column_stride=left.column_step,
                    tile=Address(tile, Literal(0, I64)),
                    tile_stride=width,
                    accumulates=adds,
                    **operands,
                )

            self._for_each_width(add)
        elif isinstance(left, LhsInt8):
            self._int8_tile(left, row, count, first, span, right, start, after_first)
        else:
            self._plain_tile(left, row, count, first, span, right, start, after_first)
        if before_last is None or partial is None:
            self._store_results(row, count)
            return
        out = partial.buffer
        with k.branch(before_last):
            self._for_each_element(row, count, lambda at, sum_position: k.store(out, (sum_position,), tile[at]))
        with k.branch(before_last.logical_not()):
            self._store_results(row, count)

    def _right_operands(
        self, row: Scalar, first: Scalar, span: Scalar, right: Buffer, start: Scalar, columns: Scalar
    ) -> tuple[str, dict[str, Scalar | Address | int]]:
        """Return the name of the micro-kernel for a tile of f32, and its arguments for the right matrix.

        If there are several panels, the processor loads the next one while it computes the tiles of this one, a part
        for each tile.

        row: the first row of the tile.
        first, span, right, start: the arguments of `write`.
        columns: the number of columns of the panel.
        """
        group, known, parts = row / self.tile_rows, constant_value(self.columns), self.width // STEP
        panel, pitch = Address(right, start), self._row_stride(columns)
        is_copied = self._is_copied_by_tile(columns)
        if self.source is not None and constant_value(is_copied) != 0:
            at = self.source.start + first * self.columns + self.column
            part = group - self.tiles[0] - 1
            return "rvm_panel_tile_f32", {
                "b": Address(self.source.buffer, at),
                "b_stride": self.columns,
                "copies": is_copied.logical_and(group.eq(self.tiles[0])),
                "panel": panel,
                "panel_stride": pitch,
                "loads_next": part < (parts if known is None or known > self.width else 0),
                "next": Address(self.source.buffer, at + self.width + part * STEP),
            }
        if self.pitch is None and (known is None or known > self.width):  # the next panel follows in memory
            ahead = start + span * self.width + group % parts * (span * STEP)
            return "rvm_streamed_tile_f32", {"b": panel, "b_stride": pitch, "ahead": Address(right, ahead)}
        return "rvm_tile_f32", {"b": panel, "b_stride": pitch}

    def _int8_tile(
        self,
        left: LhsInt8,
        row: Scalar,
        count: Scalar,
        first: Scalar,
        span: Scalar,
        right: Buffer,
        start: Scalar,
        after_first: Scalar | None,
    ) -> None:
        k, width, tile = self.k, self.width, self.tile
        with k.loop(count, name="r") as r:
            term = left.begin(k.let("i", row + r), after_first)
            with k.loop(self.count, name="j", simd=True) as j:
                at, value = r * width + j, term(self.column, j)
                before = None if after_first is None else select(after_first, tile[at], Literal(0, tile.dtype))
                k.store(tile, (at,), value if before is None else before + value)
        depth = k.let("bytes", minimum(span * 4, left.depth - first * 4))
        a = Address(left.buffer, left.position(row, first * 4))

        def add(columns: Scalar) -> None:
            k.invoke(
                "rvm_tile_bytes",
                rows=count,
                columns=columns,
                depth=depth,
                a=a,
                a_stride=left.row_step,
                flip=left.flip,
                a_is_signed=int(left.is_signed),
                b=Address(right, start),
                b_stride=self._row_stride(columns),
                tile=Address(tile, Literal(0, I64)),
                tile_stride=width,
            )

        self._for_each_width(add)

    def _row_stride(self, columns: Scalar) -> Scalar:
        """Return the distance of the rows of a panel with `columns` columns, in elements."""
        return columns if self.pitch is None else self.pitch

    def _for_each_width(self, body: Callable[[Scalar], None]) -> None:
        """Generate code for a panel by calling body(columns) with the number of its columns.

        If the number can only have two values, there is a branch for each, so that the C compiler knows the number.
        """
        known = constant_value(self.columns)
        last = 0 if known is None else known % self.width
        if known is None or last == 0 or known <= self.width:
            body(self.count)
            return
        k, width = self.k, Literal(self.width, I64)
        is_full = k.let("is_full", self.count.eq(width))
        with k.branch(is_full):
            body(width)
        with k.branch(is_full.logical_not()):
            body(Literal(last, I64))

    def _plain_tile(
        self,
        left: Lhs,
        row: Scalar,
        count: Scalar,
        first: Scalar,
        span: Scalar,
        right: Buffer,
        start: Scalar,
        after_first: Scalar | None,
    ) -> None:
        k, width, tile = self.k, self.width, self.tile

        def clear() -> None:
            with k.loop(count * width, name="e", simd=True) as e:
                k.store(tile, (e,), 0)

        if after_first is None:
            clear()
        else:
            with k.branch(after_first.logical_not()):
                clear()

        with k.loop(span, name="p") as p, k.loop(count, name="r") as r:
            factor = k.let("factor", left.element(row + r, first + p))
            with k.loop(self.count, name="j", simd=True) as j:
                here = r * width + j
                position = start + p * self._row_stride(self.count) + j
                k.store(tile, (here,), tile[here] + factor * right.flat(position))

    def _store_results(self, row: Scalar, count: Scalar) -> None:
        def store(r: Scalar, column: Scalar, counters: tuple[Scalar, ...]) -> None:
            self.result.store(self.k, counters, self.tile[r * self.width + column])

        self._for_each_position(row, count, store)

    def _for_each_position(
        self, row: Scalar, count: Scalar, body: Callable[[Scalar, Scalar, tuple[Scalar, ...]], None]
    ) -> None:
        """Generate loops over the first `count` rows of the tile, with the code that `body` generates for an element.

        body(row, column, counters): receives the position of the element in the tile, and the indices at which the
        epilogue stores it.
        row: the row of the product that is in the first row of the tile.
        """
        k = self.k
        with k.loop(count, name="r") as r:
            i = k.let("i", row + r)
            if self.line is None:
                with k.loop(self.count, name="j", simd=True) as j:
                    body(r, j, self.counters(i, self.column + j))
            else:
                with (
                    _lines_of_panel(k, self.line, self.column, self.count) as (number, place, low, size),
                    k.loop(size, name="j", simd=True) as j,
                ):
                    body(r, low + j, self.counters(i, number, place + j))

    def _for_each_element(self, row: Scalar, count: Scalar, body: Callable[[Scalar, Scalar], None]) -> None:
        """Generate loops over the first `count` rows of the tile, with the code that `body` generates for an element.

        body(tile_position, sum_position): receives the flat positions of the element in the tile and in the partial
        sums.
        row: the row of the product that is in the first row of the tile.
        """
        self._for_each_position(
            row,
            count,
            lambda r, column, counters: body(r * self.width + column, self.result.partial_position(counters)),
        )


@contextmanager
def _lines_of_panel(
    k: KernelBuilder, line: int, column: Scalar, count: Scalar
) -> Iterator[tuple[Scalar, Scalar, Scalar, Scalar]]:
    """A context manager that opens a loop over the lines of a panel, whose columns are divided into lines.

    It yields four scalars: the number of the line; the first column of this line that is in the panel, as an index in
    the line; the same column as an index in the panel; and the number of columns of the line that are in the panel.

    line: the length of a line.
    column, count: the first column of the panel, and the number of its columns.
    """
    with k.loop((column + count - 1) / line + 1, start=column / line, name="line") as number:
        low = k.let("low", maximum(number * line - column, 0))
        place = k.let("place", column + low - number * line)
        yield number, place, low, k.let("size", minimum(line - place, count - low))


def pack_from_row_major(k: KernelBuilder, x: Buffer, start: Scalar, columns: Scalar) -> PackOnTheFly:
    """Return a right matrix whose panels (groups of adjacent columns) are copied from a row-major matrix at run time.

    The row-major matrix begins at flat position `start` of `x` and has `columns` columns.
    """

    def fill(panel: Buffer, first: Scalar, span: Scalar, column: Scalar, count: Scalar, pitch: Scalar) -> None:
        with k.loop(span, name="p") as p:
            source = k.let("source", start + (first + p) * columns + column)
            copy_run(k, panel, p * pitch, x, source, Literal(0, I64), count)
        clear_padding_columns(k, panel, span, count, pitch)

    return PackOnTheFly(fill, RowMajor(x, start))


def pack_from_column_major(k: KernelBuilder, x: Buffer, start: Scalar, depth: Scalar) -> PackOnTheFly:
    """Return a right matrix whose panels (groups of adjacent columns) are copied from a column-major matrix at run
    time.

    The column-major matrix begins at flat position `start` of `x`.

    depth: the length of a column.
    """

    def copy_columns(panel: Buffer, at: Scalar, pitch: Scalar, source: Scalar, columns: Scalar, rows: Scalar) -> None:
        with k.loop(columns, name="j") as j:
            begin = k.let("begin", source + j * depth)
            with k.loop(rows, name="p", simd=True) as p:
                k.store(panel, (at + p * pitch + j,), x.flat(begin + p))

    def fill(panel: Buffer, first: Scalar, span: Scalar, column: Scalar, count: Scalar, pitch: Scalar) -> None:
        source = k.let("source", start + column * depth + first)
        if x.dtype.bits != 32:
            copy_columns(panel, Literal(0, I64), pitch, source, count, span)
            clear_padding_columns(k, panel, span, count, pitch)
            return
        tile = k.allocate("transposed", x.dtype, (_TILE * _TILE,))
        with (
            k.loop(_block_count(count, _TILE), name="group") as group,
            k.loop(_block_count(span, _TILE), name="block") as block,
        ):
            j, p = group * _TILE, block * _TILE
            columns, rows = k.let("columns", minimum(count - j, _TILE)), k.let("rows", minimum(span - p, _TILE))
            begin, at = k.let("begin", source + j * depth + p), k.let("at", p * pitch + j)
            is_whole = k.let("is_whole", columns.eq(_TILE).logical_and(rows.eq(_TILE)))
            with k.branch(is_whole):
                k.invoke(
                    "rvm_transposed_tile", tile=Address(tile, Literal(0, I64)), x=Address(x, begin), x_stride=depth
                )
                with k.loop(_TILE, name="r") as r, k.loop(_TILE, name="c", simd=True) as c:
                    k.store(panel, (at + r * pitch + c,), tile[r * _TILE + c])
            with k.branch(is_whole.logical_not()):
                copy_columns(panel, at, pitch, begin, columns, rows)
        clear_padding_columns(k, panel, span, count, pitch)

    return PackOnTheFly(fill)


def copy_run(
    k: KernelBuilder, panel: Buffer, to: Scalar, x: Buffer, source: Scalar, first: Scalar, end: Scalar
) -> None:
    """Generate code that copies part of a row to a panel (a group of columns): `panel[to + j] = x[source + j]` for
    first <= j < end."""
    if x.dtype.bits == 8:  # too few elements for the C compiler's vectors
        k.invoke("rvm_copy_bytes", dst=Address(panel, to + first), src=Address(x, source + first), bytes=end - first)
        return
    with k.loop(end, start=first, name="j", simd=True) as j:
        k.store(panel, (to + j,), x.flat(source + j))


def clear_padding_columns(k: KernelBuilder, panel: Buffer, rows: Scalar, count: Scalar, pitch: Scalar) -> None:
    """Generate code that sets columns [count, pitch) of a panel to 0.

    A panel is a copy of adjacent columns of a matrix.

    rows: the number of rows of the panel.
    pitch: the distance of these rows in elements, at most the largest of WIDTHS.

    The results of these columns are not used, but uninitialized memory can contain denormal numbers, which are slow to
    add.
    """
    padding = k.let("padding", minimum(pitch - count, WIDTHS[0]))  # min: an upper bound that a compiler sees
    with k.branch(padding > 0), k.loop(rows, name="p") as p, k.loop(padding, name="j", simd=True) as j:
        k.store(panel, (p * pitch + count + j,), 0)


def byte_tile_rows(k: KernelBuilder) -> int:
    """Return the number of rows of a tile of a product of bytes.

    It is larger than for other products, because an AMX unit multiplies 16 rows at a time, and takes as long to start
    as for some 100 of its products.  It is ROWS if the kernel should use little memory (`k.is_compact`).
    """
    return ROWS if k.is_compact else _BYTE_ROWS


def _max_tile_rows(rows: Scalar, tile_rows: int) -> int:
    """Return the maximum number of rows in a tile, at least 1, for a product with `rows` rows."""
    known = constant_value(rows)
    return tile_rows if known is None else min(tile_rows, max(known, 1))


def for_each_tile(
    k: KernelBuilder, rows: Scalar, size: int, tiles: tuple[Scalar, Scalar], body: Callable[[Scalar, Scalar], None]
) -> None:
    """Generate code for a range of tiles by calling `body` with the first row of a tile and the number of its rows.

    If the number of rows is known, full tiles and the last one have code of their own, in which the number of rows is a
    constant.

    rows: the number of rows, which are divided into tiles of `size` rows.
    tiles: the range [first, end) of tiles.
    """
    low, high = tiles
    known = constant_value(rows)
    if known is None or known % size == 0 or known < size:
        with k.loop(high, start=low, name="group") as group:
            row = k.let("row", group * size)
            body(row, k.let("rows", size_of_block(rows, row, size)))
        return
    with k.loop(minimum(high, known // size), start=low, name="group") as group:
        body(k.let("row", group * size), Literal(size, I64))
    with k.branch(high > known // size):
        body(Literal(known - known % size, I64), Literal(known % size, I64))


def round_up(size: Scalar, block: int) -> Scalar:
    """Return the smallest multiple of `block` that is at least `size`."""
    return _block_count(size, block) * block


def _block_count(size: Scalar, block: int) -> Scalar:
    return (size + (block - 1)) / block
