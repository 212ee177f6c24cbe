"""Time steps of recurrent kernels.

This module divides the sequences into batches, and generates the product of the states and the recurrent weights r.
All sequences of a batch go through a step together, so that r is read only once for each step.  Batches are
independent.  Threads divide the batches and the directions among themselves.  If all sequences form one batch, threads
divide the columns of r at each step.

Current states are stored in the memory of the final states.  The products of a step are stored on the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from relvm.data_classes import value_record
from relvm.ir.dtypes import F32, I64
from relvm.ir.loop_ir import Address, Buffer, Literal, Scalar, maximum, minimum, select
from relvm.ir.symbolic import known_size
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.tables import kernel_constant

# value of the attribute `direction` -> for each direction of the network, whether it runs backward
DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}

_ROWS = 4  # maximum sequences in a batch: as fast as TILE_ROWS rows, but gives more batches
_COLUMNS, _STEP = 64, kernel_constant("TILE_STEP")  # a tile has at most _COLUMNS columns, a multiple of _STEP


@value_record
class SequenceStep:
    """One step of a sequence.

    n: the index of the sequence.
    at_x: the flat position in x where the input of this step begins.
    at_h: the flat position of the sequence's state in the buffers of the initial and the current states.
    at_y: the flat position in y where the output of this step begins.
    at_sums: the flat position of the sequence's row in `SequenceBatch.sums`.
    """

    n: Scalar
    at_x: Scalar
    at_h: Scalar
    at_y: Scalar
    at_sums: Scalar


@value_record
class SequenceBatch:
    """A batch of adjacent sequences in one direction, at step `t`.

    first: the index of the first sequence.
    count: the number of sequences in the batch.
    counts: the possible values of `count`.
    at_h: the flat position of the first sequence's state in the buffers of states.
    sizes: the total number of sequences, and the number of directions.
    lengths: the lengths of all sequences, or None if all have the same number of steps.
    r: the recurrent weights.
    sums: the results of the matrix products with r in this step, with a row for each sequence.
    is_only_batch: whether all sequences are in this batch.  If so, threads divide the columns of its matrix products.
    """

    k: KernelBuilder
    direction: int
    t: Scalar
    first: Scalar
    count: Scalar
    counts: range
    at_h: Scalar
    sizes: tuple[Scalar, int]  # number of all sequences, number of directions
    lengths: Buffer | None
    r: Buffer
    sums: Buffer
    is_only_batch: bool

    @contextmanager
    def each_sequence(self) -> Iterator[SequenceStep]:
        """A context manager that opens a loop over all sequences of the batch, and yields step t of a sequence.

        This includes sequences that end before step t.
        """
        k, (batch, directions), (_, hidden, width) = self.k, self.sizes, self.r.shape
        with k.loop(self.count, name="row") as row:
            n = k.let("n", self.first + row)
            at_x = k.let("at_x", ((self.t * batch + n) * directions + self.direction) * width)
            at_y = k.let("at_y", ((self.t * directions + self.direction) * batch + n) * hidden)
            at_h, at_sums = k.let("at_h", self.at_h + row * hidden), k.let("at_sums", row * width)
            yield SequenceStep(n, at_x, at_h, at_y, at_sums)

    @contextmanager
    def each_active_sequence(self) -> Iterator[SequenceStep]:
        """A context manager that opens a loop over the sequences of the batch that have a step t, and yields this
        step."""
        with self.each_sequence() as row:
            lengths = self.lengths
            with nullcontext() if lengths is None else self.k.branch(self.t < lengths[row.n].to(I64)):
                yield row

    def multiply(self, left: Buffer, start: Scalar, step: int, first: int, columns: int) -> None:
        """Generate code that multiplies a matrix by columns [first, first + columns) of the recurrent weights `r`.

        The product is stored in the same columns of `sums`.  The matrix has a row for each sequence.  Its first row
        begins at position `start` of `left`, and the distance between rows is `step` elements.
        """
        k = self.k
        for count in self.counts:
            with nullcontext() if len(self.counts) == 1 else k.branch(self.count.eq(count)):
                if self.sums.dtype != F32:
                    with k.loop(count, name="row") as row:
                        self._multiply_plainly(left, k.let("at", start + row * step), row, first, columns)
                elif count == 1 or columns < _STEP:
                    for n in range(count):
                        self._multiply_row(left, start + n * step, n, first, columns)
                else:
                    self._multiply_tiles(count, left, start, step, first, columns)

    def _multiply_tiles(self, count: int, left: Buffer, start: Scalar, step: int, first: int, columns: int) -> None:
        """Generate code that multiplies a matrix by columns of the recurrent weights `r`, one tile at a time.

        The width of each tile is a multiple of _STEP.  The last tile can therefore overlap the previous one.

        count: the number of sequences of the batch, which is the number of rows of the matrix.
        left: the buffer of the matrix.
        start: the position in `left` at which the first row of the matrix begins.
        step: the distance between the rows of the matrix.
        first, columns: the first of the columns of `r` to multiply by, and their number.
        """
        k, r, (_, hidden, width) = self.k, self.r, map(known_size, self.r.shape)

        def tile(column: Scalar, wide: int) -> None:
            k.invoke(
                "rvm_tile_f32",
                rows=count,
                columns=wide,
                depth=hidden,
                a=Address(left, start),
                a_row_stride=step,
                a_column_stride=1,
                b=Address(r, column + self.direction * hidden * width),
                b_stride=width,
                tile=Address(self.sums, column),
                tile_stride=width,
                accumulates=0,
            )

        full, rest = columns // _COLUMNS * _COLUMNS, columns % _COLUMNS // _STEP * _STEP
        part = self._thread_range(full // _COLUMNS, hidden * _COLUMNS * count // 8)
        with part as (low, high), k.loop(high, start=low, name="panel") as panel:
            tile(k.let("column", panel * _COLUMNS + first), _COLUMNS)
        if rest:
            tile(Literal(first + full, I64), rest)
        if columns % _STEP:
            tile(Literal(first + columns - _STEP, I64), _STEP)

    def _multiply_row(self, left: Buffer, start: Scalar, row: int, first: int, columns: int) -> None:
        """Generate code that multiplies one row of a matrix by columns of the recurrent weights `r`.

        row: the index of the row in the product.
        left: the buffer of the matrix that is multiplied.
        start: the position in `left` at which the row of the matrix begins.
        first, columns: the first of the columns of `r` to multiply by, and their number.
        """
        k, r, (_, hidden, width) = self.k, self.r, map(known_size, self.r.shape)
        with self._thread_range(-(-columns // _COLUMNS), hidden * _COLUMNS // 8) as (low, high):
            column = k.let("column", low * _COLUMNS + first)
            k.invoke(
                "rvm_gemv_f32",
                columns=minimum(high * _COLUMNS, columns) + first - column,
                depth=hidden,
                a=Address(left, start),
                b=Address(r, column + self.direction * hidden * width),
                b_stride=width,
                sums=Address(self.sums, column + row * width),
                accumulates=0,
            )

    def _multiply_plainly(self, left: Buffer, start: Scalar, row: Scalar, first: int, columns: int) -> None:
        """Like `_multiply_row`, in plain loops, for elements of other dtypes than f32.

        row: the index of the row in the product.  The other parameters are those of `_multiply_row`.
        """
        k, r, sums, (_, hidden, width) = self.k, self.r, self.sums, map(known_size, self.r.shape)
        at_sums = k.let("at_sums", row * width + first)
        with self._thread_range(-(-columns // _COLUMNS), hidden * _COLUMNS // 4) as (low, high):
            begin, end = low * _COLUMNS, k.let("end", minimum(high * _COLUMNS, columns))
            with k.loop(end, start=begin, name="j", simd=True) as j:
                k.store(sums, (at_sums + j,), 0)
            with k.loop(hidden, name="p") as p:
                factor = k.let("factor", left.flat(start + p))
                at_r = k.let("at_r", (p + self.direction * hidden) * width + first)
                with k.loop(end, start=begin, name="j", simd=True) as j:
                    k.store(sums, (at_sums + j,), sums[at_sums + j] + factor * r.flat(at_r + j))

    @contextmanager
    def _thread_range(self, count: int, work: int) -> Iterator[tuple[Scalar, Scalar]]:
        """A context manager that yields the bounds of the range to process, a part of [0, count).

        If this is the only batch, a parallel loop is opened, and the range is the part of one thread.  Otherwise it is
        the whole range, because threads divide the batches.

        work: the approximate time of one iteration, in eighths of a nanosecond.
        """
        if self.is_only_batch:
            with self.k.parallel(count, work) as part:
                yield part
            return
        yield Literal(0, I64), Literal(count, I64)


def generate_steps(
    k: KernelBuilder,
    op: str,
    x: Buffer,
    r: Buffer,
    states: list[tuple[Buffer, Buffer]],
    lengths: Buffer,
    y: Buffer,
    direction: str,
    step: Callable[[SequenceBatch], None],
) -> None:
    """Generate all steps of the recurrent operator `op`.  The elements of y after the end of a sequence become 0.

    x, r, lengths, direction: the arguments of the operator.
    y: the buffer for the outputs of all steps.
    states: for each state, a pair: the buffer of the initial state, and the buffer of the current and final state.
    step: a function that generates one step of a batch.  It computes the next states, and writes y for the sequences
    that have this step.
    """
    steps, batch = (k.size((dim,)) for dim in x.shape[:2])
    all_steps = lengths.shape == (0,)
    if not all_steps:
        with k.loop(batch, name="n") as n:
            length = k.let("length", lengths[n].to(I64))
            outside = (length < 0).logical_or(length > steps)
            k.fail(outside, "SHAPE_ERROR", f"{op}: a sequence has %lld steps, expected 0 to %lld", length, steps)
    generator = _StepGenerator(
        k, (steps, batch), r, states, None if all_steps else lengths, y, DIRECTIONS[direction], step
    )
    sequences = x.shape[1]
    counts = _batch_sizes(sequences)
    if known_size(r.shape[0]) > 1 or (isinstance(sequences, int) and sequences > _ROWS):
        generator.write_all_batches(counts)
        return
    if isinstance(sequences, int):
        generator.write_single_batch(counts)
        return
    with k.branch(batch <= _ROWS):
        generator.write_single_batch(counts)
    with k.branch(batch > _ROWS):
        generator.write_all_batches(counts[1:])  # each batch has at least two sequences


def _batch_sizes(sequences: object) -> range:
    """Return the possible batch sizes for `sequences` sequences.

    The sequences are divided into as few batches as possible, of sizes as equal as possible.  If the number of
    sequences is not a known integer, return all sizes up to the maximum.
    """
    if not isinstance(sequences, int):
        return range(1, _ROWS + 1)
    groups = max(1, -(-sequences // _ROWS))
    return range(sequences // groups, -(-sequences // groups) + 1)


@value_record
class _StepGenerator:
    """Generator of the code for all steps of all sequences.

    sizes: the number of steps, and the number of sequences.
    r: the recurrent weights.
    states: for each state, a pair: the buffer of the initial state, and the buffer of the current and final state.
    lengths: the lengths of the sequences, or None if all sequences have all steps.
    y: the buffer for the outputs of all steps.
    backwards: for each direction, whether it runs backward.
    step: a function that generates one step of a batch.
    """

    k: KernelBuilder
    sizes: tuple[Scalar, Scalar]
    r: Buffer
    states: list[tuple[Buffer, Buffer]]
    lengths: Buffer | None
    y: Buffer
    backwards: tuple[bool, ...]
    step: Callable[[SequenceBatch], None]

    def write_single_batch(self, counts: range) -> None:
        """Generate the steps of a network with one direction and few sequences, which form a single batch.

        counts: the possible numbers of sequences.
        """
        zero = self.k.let("first", Literal(0, I64))
        self._write_batch(0, zero, self.sizes[1], counts, self._allocate_sums(counts), is_only_batch=True)

    def write_all_batches(self, counts: range) -> None:
        """Generate a parallel loop over the batches of all directions.

        counts: the possible numbers of sequences in a batch.
        """
        k, (steps, batch), (directions, hidden, width) = self.k, self.sizes, map(known_size, self.r.shape)
        groups = (batch + (_ROWS - 1)) / _ROWS
        with k.parallel(groups * directions, steps * (hidden * width // 2)) as (low, high):
            sums = self._allocate_sums(counts)
            with k.loop(high, start=low, name="number") as number:
                first = k.let("first", number % groups * batch / groups)
                count = k.let("count", (number % groups + 1) * batch / groups - first)
                for direction in range(directions):
                    with nullcontext() if directions == 1 else k.branch((number / groups).eq(direction)):
                        self._write_batch(direction, first, count, counts, sums, is_only_batch=False)

    def _allocate_sums(self, counts: range) -> Buffer:
        return self.k.allocate("sums", self.y.dtype, (max(1, counts[-1]) * known_size(self.r.shape[2]),))

    def _write_batch(
        self, direction: int, first: Scalar, count: Scalar, counts: range, sums: Buffer, *, is_only_batch: bool
    ) -> None:
        k, (steps, batch), lengths = self.k, self.sizes, self.lengths
        directions, hidden, _ = map(known_size, self.r.shape)
        at_h = k.let("at_h", (first + batch * direction) * hidden)
        longest = k.variable("longest", steps if lengths is None else Literal(0, I64))
        with k.loop(count, name="row") as row:
            length = k.let("length", steps if lengths is None else lengths[first + row].to(I64))
            if lengths is not None:
                k.assign(longest, maximum(longest, length))
            at = k.let("at", at_h + row * hidden)
            for start, state_buffer in self.states:
                with k.loop(hidden, name="j", simd=True) as j:
                    k.store(
                        state_buffer, (at + j,), select(length > 0, start.flat(at + j), Literal(0, state_buffer.dtype))
                    )
            with k.loop(steps, start=length, name="t") as t:
                at_y = k.let("at_y", ((t * directions + direction) * batch + first + row) * hidden)
                with k.loop(hidden, name="j", simd=True) as j:
                    k.store(self.y, (at_y + j,), 0)
        with k.loop(longest, name="i") as i:
            t = k.let("t", longest - 1 - i if self.backwards[direction] else i)
            sizes = (batch, directions)
            self.step(
                SequenceBatch(k, direction, t, first, count, counts, at_h, sizes, lengths, self.r, sums, is_only_batch)
            )
