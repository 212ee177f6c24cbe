"""The loop nest of matrix products, which convolutions share: blocked for registers and caches.

The right matrix is taken a panel of some columns at a time, from where it lies ready (packed) or copied to where it is
read in order; a tile of ROWS rows of the result is added up beside it in registers (csrc/codegen/gemm_f32.h).  The
order of additions is that of the plain loops.
Source: Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relvm.ir.dtypes import BOOL, I64
from relvm.ir.symbolic import AnyDim
from relvm.kernels.epilogue import Epilogue
from relvm.kernels.fused_expr import NotFusable
from relvm.kernels.loop_ir import Address, Buffer, KernelBuilder, Literal, Local, Scalar, Select, Size, Unary, minimum
from relvm.kernels.lowering_rules import clip

ROWS, DEPTH = 6, 512
_MAX_WORDS = 1280  # of a column of a right matrix of words that is copied at once: a panel is on the C stack
WIDTHS = (64, 48, 32, 16)  # columns of a panel
STEP = 16  # what the columns of a tile are filled up to, at most
_MIN_TILES = 24  # of a part of a panel, which each part copies for itself: that takes as long as 2 of them

Counters = Callable[[Scalar, Scalar], tuple[Scalar, ...]]


def panel_width(columns: object) -> int:
    """The width of panels for so many columns, the one that leaves the least room unused."""
    if not isinstance(columns, int) or columns <= 0:
        return WIDTHS[0]
    return min(WIDTHS, key=lambda width: (-(-columns // width) * width, -width))


def copied_width(k: KernelBuilder, columns: object) -> int:
    """The same where panels are copied: the least where they are to take little memory."""
    return WIDTHS[-1] if k.is_compact else panel_width(columns)


@dataclass(frozen=True)
class Lhs:
    """The left matrix: buffer.flat[start + row * row_step + column * column_step]."""

    buffer: Buffer
    start: Scalar
    row_step: Scalar
    column_step: Scalar

    def position(self, row: Scalar, column: Scalar) -> Scalar:
        return self.start + row * self.row_step + column * self.column_step

    def element(self, row: Scalar, column: Scalar) -> Scalar:
        return self.buffer.flat(self.position(row, column))


@dataclass(frozen=True)
class LhsInt8:
    """A left matrix of bytes, of rows that lie in memory: column c of a row is buffer.flat[start + row * row_step + c].

    The product goes four columns at a time: its depth is counted in words, and the right matrix is of words, as
    csrc/codegen/gemm_int8.h says.

    depth: of the rows, in bytes.   flip: which bits of four bytes are inverted before they are multiplied.   is_signed:
    they are signed then, and the right matrix is not; else the other way round.
    begin(row, goes_on): gives, for a row, a function of the panel's first column and of a column counted from there:
    what is added to that sum of products for the rows of the right matrix that the panel holds, and, where `goes_on` is
    None or does not hold, for all of them.
    """

    buffer: Buffer
    start: Scalar
    row_step: Scalar
    depth: Scalar
    flip: int
    is_signed: bool
    begin: Callable[[Local, Scalar | None], Callable[[Local, Local], Scalar]]

    def position(self, row: Scalar, column: Scalar) -> Scalar:
        return self.start + row * self.row_step + column


@dataclass(frozen=True)
class Prepacked:
    """A right matrix that lies in panels, the last of the columns that are left, each row by row: what
    packing.py makes."""

    buffer: Buffer
    start: Scalar


@dataclass(frozen=True)
class PackOnTheFly:
    """A right matrix that is copied: fill(panel, first_row, rows, first_column, columns) writes panel[r * width + c],
    the element at (first_row + r, first_column + c), for r < rows and c < columns; what it writes for columns <= c <
    width is not used."""

    fill: Callable[[Buffer, Local, Local, Local, Local], None]


def gemm(
    k: KernelBuilder,
    batch: Sequence[AnyDim],
    sizes: tuple[Scalar, Scalar, Scalar],
    width: int,
    result: Epilogue,
    operands: Callable[[tuple[Scalar, ...]], tuple[Lhs | LhsInt8, Prepacked | PackOnTheFly, Counters]],
) -> None:
    """Hands `result` the sum over p of left(i, p) * right(p, j) for the element at counters(i, j), for each place of a
    batch.

    sizes: rows, columns, depth, which is in words where the left matrix is of bytes.   operands: left, right and
    counters at a place of the batch; they are of the same kinds at all places.
    """
    rows, columns, depth = sizes
    blocks, groups = _blocks(columns, width), _blocks(rows, ROWS)
    panels = blocks * k.size(tuple(batch))
    least = minimum(groups, _MIN_TILES)
    with k.parallel(panels * groups, depth * width, least=least) as (first, last):
        tile = k.allocate("tile", result.dtype, (_most_rows(rows) * width,))
        with k.loop((last - 1) / groups + 1, start=first / groups, name="number") as number:
            tiles = clip(k, first, last, number, groups)
            column = k.let("column", number % blocks * width)
            left, right, counters = operands(batch_place(k, number / blocks, batch))
            count = k.let("width", minimum(columns - column, width))
            known = _known(columns)
            narrow = None if known is None else known % width
            is_packed = isinstance(right, Prepacked)
            product = _PanelMatmul(
                k, rows, column, count, left, width, narrow, is_packed, tile, result, counters, tiles
            )
            if isinstance(right, Prepacked):
                start = k.let("at_panel", right.start + column * depth)
                product.write(Literal(0, I64), depth, right.buffer, start, None, None)
            else:
                _write_copied(k, product, right, depth)


def _write_copied(k: KernelBuilder, product: _PanelMatmul, right: PackOnTheFly, depth: Scalar) -> None:
    """Write a product whose right panels are copied, in chunks if they may be deep."""
    deep, width, result = _known(depth), product.width, product.result
    if deep is not None and deep <= (_MAX_WORDS if isinstance(product.left, LhsInt8) else DEPTH):
        panel = k.allocate("panel", result.dtype, (max(deep, 1) * width,))
        zero = k.let("from", Literal(0, I64))
        span = k.let("span", depth)
        right.fill(panel, zero, span, product.column, product.count)
        product.write(zero, span, panel, Literal(0, I64), None, None)
        return
    if result.partial is None:
        raise NotFusable
    panel = k.allocate("panel", result.dtype, (DEPTH * width,))
    with k.loop(Select(depth > 0, _blocks(depth, DEPTH), Literal(1, I64)), name="chunk") as chunk:
        zero = k.let("from", chunk * DEPTH)
        span = k.let("span", minimum(depth - zero, DEPTH))
        right.fill(panel, zero, span, product.column, product.count)
        product.write(zero, span, panel, Literal(0, I64), chunk > 0, zero + span < depth)


def batch_place(k: KernelBuilder, number: Scalar, batch: Sequence[AnyDim]) -> tuple[Scalar, ...]:
    """The place in a batch that has this number."""
    place: list[Scalar] = []
    for extent in reversed(batch[1:]):
        place.insert(0, k.let("place", number % k.size((extent,))))
        number = k.let("number", number / k.size((extent,)))
    return (number, *place) if batch else ()


@dataclass(frozen=True)
class _PanelMatmul:
    """One panel of the right matrix times all rows of the left."""

    k: KernelBuilder
    rows: Scalar
    column: Local
    count: Local
    left: Lhs | LhsInt8
    width: int
    last: int | None  # columns of the last panel, 0 where it is a whole one; None: not known
    is_packed: bool  # rows of the panel are as long as it has columns, which are known; else `width`
    tile: Buffer
    result: Epilogue
    counters: Counters
    tiles: tuple[Scalar, Scalar]  # from which to which, of ROWS rows each

    def write(
        self, first: Scalar, span: Scalar, right: Buffer, start: Scalar, goes_on: Scalar | None, is_part: Scalar | None
    ) -> None:
        """Takes `span` rows of the panel from `first` on, which lie at right.flat[start].

        goes_on: whether the tile goes on from what was kept.  is_part: whether it is kept for more to come.
        """
        k, rows = self.k, _known(self.rows)

        def tiles(row: Scalar, count: int) -> None:
            self._tile(k.let("row", row), count, first, span, right, start, goes_on, is_part)

        low, high = self.tiles
        full = self.rows / ROWS
        if rows is None or rows >= ROWS:
            with k.loop(minimum(high, full), start=low, name="group") as group:
                tiles(group * ROWS, ROWS)
        if rows is not None:
            if rows % ROWS:
                with k.branch(high > full):
                    tiles(Literal(rows - rows % ROWS, I64), rows % ROWS)
            return
        rest = k.let("rest", Select(high > full, self.rows % ROWS, Literal(0, I64)))
        for count in (4, 2, 1):  # 5 rows are 4 and 1, 3 are 2 and 1
            with k.branch((rest % (2 * count) >= count) if count < 4 else rest >= count):
                tiles(self.rows - (rest % (2 * count) if count < 4 else rest), count)

    def _tile(
        self,
        row: Local,
        count: int,
        first: Scalar,
        span: Scalar,
        right: Buffer,
        start: Scalar,
        goes_on: Scalar | None,
        is_part: Scalar | None,
    ) -> None:
        k, width, tile, partial = self.k, self.width, self.tile, self.result.partial
        if goes_on is not None and partial is not None:
            kept = partial.buffer
            with k.branch(goes_on):
                self._each(row, count, lambda at, place: k.store(tile, (at,), kept.flat(place)))
        left = self.left
        if isinstance(left, Lhs) and tile.dtype.name == "f32":
            adds = Literal(0, I64) if goes_on is None else goes_on
            a, to_tile = Address(left.buffer, left.position(row, first)), Address(tile, Literal(0, I64))
            steps = left.row_step, left.column_step

            def add(columns: int) -> None:
                where = (a, *steps, Address(right, start), self._row_of(columns), to_tile, width, adds)
                k.invoke("rvm_tile_f32", count, columns, span, *where)

            self._in_columns(add)
        elif isinstance(left, LhsInt8):
            self._tile_of_bytes(left, row, count, first, span, right, start, goes_on)
        else:
            self._plain_tile(left, row, count, first, span, right, start, goes_on)
        if is_part is None or partial is None:
            self._finish(row, count)
            return
        out = partial.buffer
        with k.branch(is_part):
            self._each(row, count, lambda at, place: k.store(out, (place,), tile[at]))
        with k.branch(Unary("!", is_part, BOOL)):
            self._finish(row, count)

    def _tile_of_bytes(
        self,
        left: LhsInt8,
        row: Local,
        count: int,
        first: Scalar,
        span: Scalar,
        right: Buffer,
        start: Scalar,
        goes_on: Scalar | None,
    ) -> None:
        k, width, tile = self.k, self.width, self.tile
        with k.loop(count, name="r") as r:
            term = left.begin(k.let("i", row + r), goes_on)
            with k.loop(self.count, name="j", simd=True) as j:
                at, value = r * width + j, term(self.column, j)
                before = None if goes_on is None else Select(goes_on, tile[at], Literal(0, tile.dtype))
                k.store(tile, (at,), value if before is None else before + value)
        depth = k.let("bytes", minimum(span * 4, left.depth - first * 4))
        a, to_tile = Address(left.buffer, left.position(row, first * 4)), Address(tile, Literal(0, I64))
        how = left.row_step, left.flip, int(left.is_signed)

        def add(columns: int) -> None:
            where = (Address(right, start), self._row_of(columns), to_tile, width)
            k.invoke("rvm_tile_bytes", count, columns, depth, a, *how, *where)

        self._in_columns(add)

    def _row_of(self, columns: int) -> int:
        """From one row of the panel to the next, where it has so many columns."""
        return columns if self.is_packed else self.width

    def _in_columns(self, body: Callable[[int], None]) -> None:
        """body(columns) for the number of columns, which is rounded up where that of the last panel is not known."""
        if self.last is not None:
            widths = {self.width, self.last} if self.last else {self.width}
        else:
            widths = {width for width in WIDTHS if width <= self.width}
        for width in sorted(widths):
            smaller_ones = [other for other in widths if other < width]
            above = self.count > max(smaller_ones) if smaller_ones else None
            below = self.count <= width if width < self.width else None
            bounds = [bound for bound in (above, below) if bound is not None]
            if not bounds:
                body(width)
                continue
            with self.k.branch(bounds[0] if len(bounds) == 1 else bounds[0].logical_and(bounds[1])):
                body(width)

    def _plain_tile(
        self,
        left: Lhs,
        row: Local,
        count: int,
        first: Scalar,
        span: Scalar,
        right: Buffer,
        start: Scalar,
        goes_on: Scalar | None,
    ) -> None:
        k, width, tile = self.k, self.width, self.tile

        def clear() -> None:
            with k.loop(count * width, name="e", simd=True) as e:
                k.store(tile, (e,), 0)

        if goes_on is None:
            clear()
        else:
            with k.branch(Unary("!", goes_on, BOOL)):
                clear()

        def add(columns: int) -> None:
            with k.loop(span, name="p") as p, k.loop(count, name="r") as r:
                factor = k.let("factor", left.element(row + r, first + p))
                with k.loop(columns, name="j", simd=True) as j:
                    here, place = r * width + j, start + p * self._row_of(columns) + j
                    k.store(tile, (here,), tile[here] + factor * right.flat(place))

        if self.is_packed:
            self._in_columns(add)
        else:
            add(width)

    def _finish(self, row: Local, count: int) -> None:
        k = self.k
        with k.loop(count, name="r") as r:
            i = k.let("i", row + r)
            with k.loop(self.count, name="j", simd=True) as j:
                self.result.store(k, self.counters(i, self.column + j), self.tile[r * self.width + j])

    def _each(self, row: Local, count: int, body: Callable[[Scalar, Scalar], None]) -> None:
        """body(position in the tile, position of the place of the result)."""
        k = self.k
        with k.loop(count, name="r") as r, k.loop(self.count, name="j", simd=True) as j:
            place = self.result.partial_position(self.counters(row + r, self.column + j))
            body(r * self.width + j, place)


def fill_from_rows(k: KernelBuilder, x: Buffer, start: Scalar, columns: Scalar, width: int) -> PackOnTheFly:
    """The right matrix is a row-major one of `columns` columns in x, from flat position `start` on."""

    def fill(panel: Buffer, first: Local, span: Local, column: Local, count: Local) -> None:
        with k.loop(span, name="p") as p:
            source = k.let("source", start + (first + p) * columns + column)
            copy_run(k, panel, p * width, x, source, Literal(0, I64), count)
        clear_rest(k, panel, span, count, width)

    return PackOnTheFly(fill)


def fill_from_columns(k: KernelBuilder, x: Buffer, start: Scalar, depth: Scalar, width: int) -> PackOnTheFly:
    """The right matrix is the transpose of a row-major one of `depth` columns in x, from flat position `start` on."""

    def fill(panel: Buffer, first: Local, span: Local, column: Local, count: Local) -> None:
        with k.loop(count, name="j") as j:
            source = k.let("source", start + (column + j) * depth + first)
            with k.loop(span, name="p", simd=True) as p:
                k.store(panel, (p * width + j,), x.flat(source + p))
        clear_rest(k, panel, span, count, width)

    return PackOnTheFly(fill)


def copy_run(
    k: KernelBuilder, panel: Buffer, to: Scalar, x: Buffer, source: Scalar, first: Scalar, end: Scalar
) -> None:
    """panel[to + j] = x[source + j] for first <= j < end."""
    if x.dtype.bits == 8:  # too few for the C compiler's vectors
        k.invoke("rvm_copy_bytes", Address(panel, to + first), Address(x, source + first), end - first)
        return
    with k.loop(end, start=first, name="j", simd=True) as j:
        k.store(panel, (to + j,), x.flat(source + j))


def clear_rest(k: KernelBuilder, panel: Buffer, rows: Scalar, count: Scalar, width: int) -> None:
    """Nothing reads the results of the columns from `count` on, but adding up what the stack holds may be slow, as
    denormal numbers are."""
    with (
        k.branch(count < width),
        k.loop(rows, name="p") as p,
        k.loop(width, start=count, name="j", simd=True) as j,
    ):
        k.store(panel, (p * width + j,), 0)


def _known(size: Scalar) -> int | None:
    """A size that is a number."""
    match size:
        case Literal(value=int() as value) | Size(dim=int() as value):
            return value
    return None


def _most_rows(rows: Scalar) -> int:
    """Of a tile, at least one: none is an array without elements."""
    known = _known(rows)
    return ROWS if known is None else min(ROWS, max(known, 1))


def _blocks(size: Scalar, block: int) -> Scalar:
    return (size + (block - 1)) / block
