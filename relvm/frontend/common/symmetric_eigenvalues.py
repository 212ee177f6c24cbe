"""Kernels for the eigenvalues of Hermitian matrices, and for singular values.  They compute in f64.

Both reduce a matrix by Householder reflections, to a real tridiagonal or bidiagonal matrix, and then diagonalize it by
implicit QL or QR iterations.  The vectors are rows of matrices until the end, so that rotations have contiguous memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from relvm.data_classes import value_record
from relvm.frontend.common.kernel_numbers import (
    conjugate,
    copy_reflection,
    difference,
    eliminate,
    eliminate_column,
    hypotenuse,
    load,
    magnitude,
    multiply_reflections,
    named,
    negate_row,
    product,
    real,
    reflect_columns,
    reflect_row,
    rotate_rows,
    scaled,
    square_root,
    store,
    with_sign,
)
from relvm.frontend.common.kernel_parts import buffers, larger, loops, size
from relvm.ir.dtypes import F64, I64
from relvm.ir.kernel_def import KernelDef
from relvm.ir.loop_ir import Buffer, Literal, Local, Scalar, select
from relvm.ir.symbolic import AnyDim, as_var, dim_op, evaluate_with
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder

EPSILON = 2.0**-52
_ITERATIONS = 40  # limit on the iterations, for each eigenvalue
_LEAST, _GREATEST = 1e-100, 1e100  # a matrix is scaled if its greatest element is outside of this range
_ZERO, _ONE = (Literal(value, F64) for value in (0.0, 1.0))


@value_record
class Decomposition:
    """A kernel that decomposes matrices, and the types of its results.

    Only the first `count` results are of use.  The others are memory in which the kernel computes.
    """

    kernel: KernelDef
    types: tuple[TensorType, ...]
    count: int


def decomposition(kernel: KernelDef, matrix: Sequence[TensorType], memory: Sequence[Buffer]) -> Decomposition:
    """Return the decomposition of matrices by a kernel.

    matrix: the types of the inputs of the kernel.   memory: outputs that are not results, and follow the results.
    """
    pairs = zip(kernel.inputs[0].shape, matrix[0].known_shape, strict=True)
    sizes = {as_var(own): size for own, size in pairs if not isinstance(own, int)}
    types = tuple(
        TensorType(each.dtype, tuple(evaluate_with(dim, sizes.get) for dim in each.shape)) for each in kernel.outputs
    )
    return Decomposition(kernel, types, len(kernel.outputs) - len(memory))


def result(name: str, shape: Sequence[AnyDim], parts: int = 1) -> list[Buffer]:
    """Return the buffers of a result: one for each of the `parts` parts of its numbers."""
    return [Buffer(f"{name}{part}" if parts > 1 else name, F64, tuple(shape), True) for part in range(parts)]


def scale_of(k: KernelBuilder, matrix: Sequence[Buffer], place: Sequence[Scalar]) -> Scalar:
    """Return the number by which a matrix is divided so that squares of its elements neither overflow nor vanish.

    It is NaN if an element is NaN or infinite, so that all results are NaN.
    """
    greatest, rest = k.variable("greatest", _ZERO), k.variable("rest", _ZERO)
    with loops(k, matrix[0].shape[-2:]) as (row, column):
        for part in matrix:
            found = k.let("found", magnitude(part[(*place, row, column)]))
            with k.branch(found > greatest):
                k.assign(greatest, found)
            k.assign(rest, rest + found * _ZERO)  # NaN if an element is NaN or infinite
    usual = (greatest.eq(_ZERO)).logical_or((greatest >= _LEAST).logical_and(greatest <= _GREATEST))
    return k.let("scale", select(usual, _ONE, greatest) + rest)


def fail_if_nan(k: KernelBuilder, place: Sequence[Scalar], scale: Scalar, failures: Buffer, count: Scalar) -> None:
    """If `scale`, the result of `scale_of`, is NaN, store in `failures` that all `count` values are missing."""
    with k.branch(scale.ne(scale)):
        k.store(failures, tuple(place), count)


def _divide(k: KernelBuilder, matrix: Sequence[Buffer], place: Sequence[Scalar], scale: Scalar) -> None:
    with loops(k, matrix[0].shape[-2:]) as at:
        store(k, matrix, (*place, *at), [part / scale for part in load(matrix, (*place, *at))])


def hermitian_kernel(name: str, matrix: Sequence[TensorType], *, is_lower: bool, has_vectors: bool) -> Decomposition:
    """Return the kernel for the eigenvalues and eigenvectors of Hermitian matrices, in the last two axes.

    Its results are the eigenvalues in ascending order, the eigenvectors as columns if `has_vectors`, and for each
    matrix the number of eigenvalues that were not found (i64), which is 0 except for matrices with NaN or infinity.

    matrix: the types of an f64 tensor, or of the real and the imaginary part of a complex one.
    is_lower: whether the lower triangle is read, otherwise the upper one.  The rest is not read.

    Notes
    -----
    Source: LAPACK, sytd2 and steqr.
    """
    k = KernelBuilder()
    a = buffers("a", matrix)
    *batch, dim, _ = a[0].shape
    parts, count = len(a), size(dim)
    (values,) = result("values", (*batch, dim))
    failures = Buffer("failures", I64, tuple(batch), True)
    vectors = result("vectors", (*batch, dim, dim), parts) if has_vectors else []
    work, rows = (result(each, (*batch, dim, dim), parts) for each in ("work", "rows"))
    v, q, taus = (result(each, (*batch, dim), parts) for each in ("v", "q", "tau"))
    diagonal, beside = (result(each, (*batch, dim))[0] for each in ("diagonal", "beside"))
    with loops(k, batch) as place:
        with loops(k, (dim, dim)) as (row, column):
            is_read = k.let("is_read", (row >= column) if is_lower else (row <= column))
            first, second = select(is_read, row, column), select(is_read, column, row)
            first, second = k.let("first", first), k.let("second", second)
            value = [
                k.let("element", select(is_read, part[(*place, row, column)], part[(*place, column, row)]))
                for part in a
            ]
            value = [value[0], *(select(row.eq(column), _ZERO, select(is_read, part, -part)) for part in value[1:])]
            store(k, work, (*place, row, column), value)
        scale = scale_of(k, work, place)
        _divide(k, work, place, scale)
        _tridiagonalize(k, work, place, (v, q, taus), beside)
        with k.loop(count, name="row") as row:
            k.store(diagonal, (*place, row), work[0][(*place, row, row)])
        if has_vectors:
            multiply_reflections(k, work, place, taus, v, rows)
        _diagonalize_tridiagonal(k, place, diagonal, beside, rows if has_vectors else [], failures)
        fail_if_nan(k, place, scale, failures, count)
        _sort(k, place, diagonal, beside, count, descending=False)
        with k.loop(count, name="row") as row:
            at = k.let("at", beside[(*place, row)].to(I64))
            with k.branch((at >= 0).logical_and(at < count)):
                k.store(values, (*place, row), diagonal[(*place, at)] * scale)
                if has_vectors:
                    with k.loop(count, name="column") as column:
                        store(k, vectors, (*place, column, row), load(rows, (*place, at, column)))
    memory = [*work, *rows, *v, *q, *taus, diagonal, beside]
    outputs = (values, *vectors, failures, *memory)
    return decomposition(KernelDef(name, tuple(a), outputs, k.finish()), matrix, memory)


def tridiagonal_kernel(name: str, matrix: Sequence[TensorType], *, is_lower: bool) -> Decomposition:
    """Return the kernel of the real tridiagonal form of Hermitian matrices, in the last two axes.

    Its results are those of LAPACK: a packed matrix, the diagonal, the elements beside the diagonal, and the factors of
    the reflections.  The triangle of the packed matrix that is read contains the diagonal, the elements beside it, and
    the vectors of the reflections.

    matrix: the types of an f64 tensor, or of the real and the imaginary part of a complex one.
    is_lower: whether the lower triangle is read, otherwise the upper one.  The rest is returned unchanged.

    Notes
    -----
    Source: LAPACK, sytd2.  The upper triangle, with rows and columns in reverse order, is a lower one.
    """
    k = KernelBuilder()
    a = buffers("a", matrix)
    *batch, dim, _ = a[0].shape
    parts, count = len(a), size(dim)
    shorter = dim_op("max", dim_op("sub", dim, 1), 0)
    outs, factors = result("out", (*batch, dim, dim), parts), result("factors", (*batch, shorter), parts)
    (diagonal,), (others,) = result("diagonal", (*batch, dim)), result("others", (*batch, shorter))
    work = result("work", (*batch, dim, dim), parts)
    v, q, taus = (result(each, (*batch, dim), parts) for each in ("v", "q", "tau"))
    (beside,) = result("beside", (*batch, dim))

    def turned(i: Scalar, length: Scalar) -> Scalar:
        return i if is_lower else length - 1 - i

    with loops(k, batch) as place:
        with loops(k, (dim, dim)) as (row, column), k.branch(row >= column):
            value = load(a, (*place, turned(row, count), turned(column, count)))
            value = named(k, "x", [value[0], *(select(row.eq(column), _ZERO, part) for part in value[1:])])
            store(k, work, (*place, row, column), value)
            store(k, work, (*place, column, row), conjugate(value))
        scale = scale_of(k, work, place)
        _divide(k, work, place, scale)
        _tridiagonalize(k, work, place, (v, q, taus), beside)
        with loops(k, (dim, dim)) as (row, column):
            at = (*place, turned(row, count), turned(column, count))
            with k.branch(row < column):
                store(k, outs, at, load(a, at))
            with k.branch(row.eq(column)):
                middle = k.let("middle", work[0][(*place, row, column)] * scale)
                store(k, outs, at, real(middle, outs))
                k.store(diagonal, (*place, turned(row, count)), middle)
            with k.branch(row.eq(column + 1)):
                store(k, outs, at, real(beside[(*place, column)] * scale, outs))
            with k.branch(row > column + 1):
                store(k, outs, at, load(work, (*place, row, column)))
        with k.loop(size(shorter), name="i") as i, k.branch(i < count):
            target = turned(i, size(shorter))
            k.store(others, (*place, target), beside[(*place, i)] * scale)
            store(k, factors, (*place, target), load(taus, (*place, i)))
    memory = [*work, *v, *q, *taus, beside]
    outputs = (*outs, diagonal, others, *factors, *memory)
    return decomposition(KernelDef(name, tuple(a), outputs, k.finish()), matrix, memory)


def _tridiagonalize(
    k: KernelBuilder,
    a: Sequence[Buffer],
    place: Sequence[Scalar],
    memory: tuple[Sequence[Buffer], Sequence[Buffer], Sequence[Buffer]],
    beside: Buffer,
) -> None:
    """Reduce a Hermitian matrix to a real tridiagonal one.

    The reflections are stored below the diagonal, without their first element.

    memory: buffers for the vector of a reflection, for another vector, and for the factors of all reflections.
    beside: the buffer for the elements beside the diagonal.
    """
    v, q, taus = memory
    count = size(a[0].shape[-1])
    with k.loop(count - 1, name="step") as step:
        found = eliminate_column(k, a, place, step, step + 1, taus)
        k.store(beside, (*place, step), found.beta)
        copy_reflection(k, a, place, step, step + 1, v)
        correction = k.variable("correction", _ZERO)  # conj(tau) v* p, a real number
        with k.loop(count, start=step + 1, name="row") as row:  # p = tau A v
            totals = [k.variable("total", _ZERO) for _ in a]
            with k.loop(count, start=step + 1, name="column", simd=True) as column:
                terms = product(k, load(a, (*place, row, column)), load(v, (*place, column)))
                for total, term in zip(totals, terms, strict=True):
                    k.assign(total, total + term)
            p = named(k, "p", product(k, found.tau, totals))
            store(k, q, (*place, row), p)
            across = named(k, "across", product(k, conjugate(load(v, (*place, row))), p))
            k.assign(correction, correction + product(k, conjugate(found.tau), across)[0])
        half = k.let("half", correction * 0.5)
        with k.loop(count, start=step + 1, name="row") as row:  # q = p - v half
            at = (*place, row)
            store(k, q, at, difference(load(q, at), scaled(load(v, at), half)))
        with k.loop(count, start=step + 1, name="row") as row:  # A - v q* - q v*
            x, y = named(k, "x", load(v, (*place, row))), named(k, "y", load(q, (*place, row)))
            with k.loop(count, start=step + 1, name="column") as column:
                first = product(k, x, conjugate(load(q, (*place, column))))
                second = product(k, y, conjugate(load(v, (*place, column))))
                at = (*place, row, column)
                store(k, a, at, difference(difference(load(a, at), first), second))


def _diagonalize_tridiagonal(
    k: KernelBuilder, place: Sequence[Scalar], d: Buffer, e: Buffer, rows: Sequence[Buffer], failures: Buffer
) -> None:
    """Diagonalize a real symmetric tridiagonal matrix by implicit QL iterations with Wilkinson's shift.

    d, e: the diagonal, and the elements beside it.
    rows: a matrix whose rows are rotated in the same way, or an empty sequence.
    """
    count = size(d.shape[-1])
    with k.branch(count > 0):
        k.store(e, (*place, count - 1), _ZERO)
    first = k.variable("begin", Literal(0, I64))
    with k.loop(count * _ITERATIONS, name="iteration"), k.branch(first < count):
        low = k.let("low", first)
        with k.branch((low >= 0).logical_and(low < count)):
            end = k.variable("end", count - 1)
            with k.loop(count - 1, start=low, name="number") as number:
                i = k.let("i", count - 2 - number + low)
                with k.branch((i >= 0).logical_and(i < count - 1)):
                    sizes = magnitude(d[(*place, i)]) + magnitude(d[(*place, i + 1)])
                    with k.branch(magnitude(e[(*place, i)]) <= sizes * EPSILON):
                        k.assign(end, i)
            high = k.let("high", end)
            with k.branch(high.eq(low)):
                k.assign(first, low + 1)
            with k.branch((high > low).logical_and(high < count)):
                _ql_step(k, place, d, e, rows, low, high)
    k.store(failures, tuple(place), count - first)


def _ql_step(
    k: KernelBuilder, place: Sequence[Scalar], d: Buffer, e: Buffer, rows: Sequence[Buffer], low: Scalar, high: Scalar
) -> None:
    """Apply one QL iteration to the rows `low` to `high`."""

    def at(buffer: Buffer, i: Scalar) -> Scalar:
        return buffer[(*place, i)]

    gap = k.let("gap", (at(d, low + 1) - at(d, low)) / (at(e, low) * 2.0))
    root = k.let("root", hypotenuse(gap, _ONE))
    g = k.variable("g", at(d, high) - at(d, low) + at(e, low) / (gap + with_sign(root, gap)))
    s, c, p = (k.variable(name, value) for name, value in (("s", _ONE), ("c", _ONE), ("p", _ZERO)))
    is_whole = k.variable("is_whole", Literal(1, I64))
    with k.loop(high - low, name="number") as number:
        i = k.let("i", high - 1 - number)
        with k.branch((i >= 0).logical_and(i < size(d.shape[-1]) - 1)), k.branch(is_whole.eq(1)):
            f, b = k.let("f", s * at(e, i)), k.let("b", c * at(e, i))
            r = k.let("r", hypotenuse(f, g))
            k.store(e, (*place, i + 1), r)
            with k.branch(r.eq(_ZERO)):
                k.store(d, (*place, i + 1), at(d, i + 1) - p)
                k.store(e, (*place, high), _ZERO)
                k.assign(is_whole, 0)
            with k.branch(r.ne(_ZERO)):
                k.assign(s, f / r)
                k.assign(c, g / r)
                k.assign(g, at(d, i + 1) - p)
                t = k.let("t", (at(d, i) - g) * s + c * b * 2.0)
                k.assign(p, s * t)
                k.store(d, (*place, i + 1), g + p)
                k.assign(g, c * t - b)
                if rows:
                    turn = k.let("cosine", c), k.let("sine", -s)
                    rotate_rows(k, rows, place, (i, i + 1), turn)
    with k.branch(is_whole.eq(1)):
        k.store(d, (*place, low), at(d, low) - p)
        k.store(e, (*place, low), g)
        k.store(e, (*place, high), _ZERO)


def _sort(
    k: KernelBuilder, place: Sequence[Scalar], values: Buffer, order: Buffer, count: Scalar, *, descending: bool
) -> None:
    """Store in `order`, a buffer of f64, the positions of the values in ascending or descending order."""
    with k.loop(count, name="number") as number:
        rank = k.variable("rank", Literal(0, I64))
        value = k.let("value", values[(*place, number)])
        with k.loop(count, name="other") as other:
            found = values[(*place, other)]
            precedes = found > value if descending else found < value
            is_before = precedes.logical_or(found.eq(value).logical_and(other < number))
            k.assign(rank, rank + select(is_before, Literal(1, I64), Literal(0, I64)))
        ranked = k.let("ranked", rank)
        with k.branch((ranked >= 0).logical_and(ranked < count)):
            k.store(order, (*place, ranked), number.to(F64))


def singular_value_kernel(
    name: str, matrix: Sequence[TensorType], *, has_vectors: bool, is_full: bool
) -> Decomposition:
    """Return the kernel of the singular value decomposition U S V* of matrices, in the last two axes.

    Its results are the singular values in descending order, U and V* if `has_vectors`, and for each matrix the number
    of singular values that were not found (i64), which is 0 except for matrices with NaN or infinity.

    matrix: the types of an f64 tensor, or of the real and the imaginary part of a complex one.  The last two dimensions
        are known, unless they are equal.
    is_full: whether U and V* are square.  Otherwise, they have only as many columns or rows as there are singular
        values.

    Notes
    -----
    Source: LAPACK, gebd2, and LINPACK, svdc.
    """
    k = KernelBuilder()
    a = buffers("a", matrix)
    *batch, height, width = a[0].shape
    if matrix[0].known_shape[-1] == matrix[0].known_shape[-2]:
        height = width
    is_wide = isinstance(height, int) and isinstance(width, int) and height < width
    tall, short = (width, height) if is_wide else (height, width)
    columns = tall if is_full else short
    parts, count = len(a), size(short)
    (values,) = result("values", (*batch, short))
    failures = Buffer("failures", I64, tuple(batch), True)
    left = result("left", (*batch, height, height if is_full else short), parts) if has_vectors else []
    right = result("right", (*batch, width if is_full else short, width), parts) if has_vectors else []
    work = result("work", (*batch, tall, short), parts)
    v, sums = result("v", (*batch, tall), parts), result("sums", (*batch, short), parts)
    w, row_taus, column_taus = (result(each, (*batch, short), parts) for each in ("w", "row_tau", "column_tau"))
    d, e, order = (result(each, (*batch, short))[0] for each in ("d", "e", "order"))
    first, second = result("first", (*batch, columns, tall), parts), result("second", (*batch, short, short), parts)
    with loops(k, batch) as place:
        scale = scale_of(k, a, place)
        with loops(k, (tall, short)) as (row, column):
            at = (*place, column, row) if is_wide else (*place, row, column)
            store(k, work, (*place, row, column), [part / scale for part in load(a, at)])
        _bidiagonalize(k, work, place, (v, w, sums), (column_taus, row_taus), (d, e))
        if has_vectors:
            _accumulate(k, work, place, (v, w), (column_taus, row_taus), (first, second))
        _diagonalize_bidiagonal(k, place, (d, e), (first, second) if has_vectors else ([], []), failures)
        fail_if_nan(k, place, scale, failures, count)
        _sort(k, place, d, order, count, descending=True)
        with k.loop(count, name="row") as row:
            found = k.let("found", order[(*place, row)].to(I64))
            with k.branch((found >= 0).logical_and(found < count)):
                k.store(values, (*place, row), d[(*place, found)] * scale)
                if has_vectors:
                    target, other = (right, left) if is_wide else (left, right)
                    for source, to, is_column in ((first, target, not is_wide), (second, other, is_wide)):
                        with k.loop(size(source[0].shape[-1]), name="column") as column:
                            at = (*place, column, row) if is_column else (*place, row, column)
                            store(k, to, at, load(source, (*place, found, column)))
        if has_vectors and is_full:
            with k.loop(size(tall), start=count, name="row") as row, k.loop(size(tall), name="column") as column:
                at = (*place, row, column) if is_wide else (*place, column, row)
                store(k, right if is_wide else left, at, load(first, (*place, row, column)))
    vectors = [*first, *second] if has_vectors else []
    memory = [*work, *v, *w, *sums, *row_taus, *column_taus, d, e, order, *vectors]
    outputs = (values, *left, *right, failures, *memory)
    return decomposition(KernelDef(name, tuple(a), outputs, k.finish()), matrix, memory)


_Parts = Sequence[Buffer]


def _bidiagonalize(
    k: KernelBuilder,
    a: _Parts,
    place: Sequence[Scalar],
    memory: tuple[_Parts, _Parts, _Parts],
    factors: tuple[_Parts, _Parts],
    diagonals: tuple[Buffer, Buffer],
) -> None:
    """Reduce a matrix with at least as many rows as columns to a real upper bidiagonal one.

    The reflections of columns are stored below the diagonal and those of rows behind the bidiagonal, without their
    first elements.

    memory: buffers for the vectors of a reflection of columns and of rows, and for sums of columns.
    factors: the factors of the reflections of columns and of rows.
    diagonals: the diagonal, and the elements above it.
    """
    v, w, sums = memory
    column_taus, row_taus = factors
    d, e = diagonals
    rows, columns = size(a[0].shape[-2]), size(a[0].shape[-1])
    with k.loop(columns, name="step") as step:
        found = eliminate_column(k, a, place, step, step, column_taus)
        k.store(d, (*place, step), found.beta)
        copy_reflection(k, a, place, step, step, v)
        reflect_columns(k, a, place, step + 1, v, step, conjugate(found.tau), sums)
        with k.branch(step < columns - 1):
            found = eliminate(k, a, partial(_at, place, step), step + 1, columns, conjugates=True)
            k.store(e, (*place, step), found.beta)
            store(k, row_taus, (*place, step), found.tau)
            _copy_row(k, a, place, step, w, step + 1)
            with k.loop(rows, start=step + 1, name="row") as row:
                reflect_row(k, a, place, row, w, step + 1, found.tau, conjugates=False)


def _at(place: Sequence[Scalar], row: Scalar, column: Scalar) -> Sequence[Scalar]:
    return (*place, row, column)


def _copy_row(k: KernelBuilder, matrix: _Parts, place: Sequence[Scalar], row: Scalar, v: _Parts, start: Scalar) -> None:
    """Copy the vector of a reflection from a row to `v`.   start: the column of its first element, which is 1."""
    with k.loop(size(matrix[0].shape[-1]), start=start, name="column") as column:
        value = load(matrix, (*place, row, column))
        one = real(_ONE, matrix)
        store(k, v, (*place, column), [select(column.eq(start), x, y) for x, y in zip(one, value, strict=True)])


def _accumulate(
    k: KernelBuilder,
    a: _Parts,
    place: Sequence[Scalar],
    memory: tuple[_Parts, _Parts],
    factors: tuple[_Parts, _Parts],
    products: tuple[_Parts, _Parts],
) -> None:
    """Compute U, transposed, and V*, which are products of the reflections of `_bidiagonalize`.

    memory: buffers for the vectors of a reflection of columns and of rows.
    factors: the factors of the reflections of columns and of rows.
    products: the buffers of the results.
    """
    (v, w), (column_taus, row_taus), (left, right) = memory, factors, products
    columns = size(a[0].shape[-1])
    for matrix in (left, right):
        with loops(k, matrix[0].shape[-2:]) as (row, column):
            store(k, matrix, (*place, row, column), real(select(row.eq(column), _ONE, _ZERO), a))
    with k.loop(columns, name="number") as number:
        step = k.let("step", columns - 1 - number)
        with k.branch((step >= 0).logical_and(step < columns)):
            copy_reflection(k, a, place, step, step, v)
            tau = named(k, "tau", load(column_taus, (*place, step)))
            with k.loop(size(left[0].shape[-2]), start=step, name="row") as row:
                reflect_row(k, left, place, row, v, step, tau, conjugates=True)
            with k.branch(step < columns - 1):
                _copy_row(k, a, place, step, w, step + 1)
                tau = named(k, "tau", conjugate(load(row_taus, (*place, step))))
                with k.loop(columns, start=step + 1, name="row") as row:
                    reflect_row(k, right, place, row, w, step + 1, tau, conjugates=False)


def _diagonalize_bidiagonal(
    k: KernelBuilder,
    place: Sequence[Scalar],
    diagonals: tuple[Buffer, Buffer],
    matrices: tuple[_Parts, _Parts],
    failures: Buffer,
) -> None:
    """Diagonalize a real upper bidiagonal matrix by implicit QR iterations.  No diagonal element of the result is
    negative.

    diagonals: the diagonal, and the elements above it.
    matrices: U, transposed, and V*, whose rows are rotated in the same way, or empty sequences.
    """
    d, e = diagonals
    _, right = matrices
    count = size(d.shape[-1])
    with k.branch(count > 0):
        k.store(e, (*place, count - 1), _ZERO)
    norm = k.variable("norm", _ZERO)
    with k.loop(count, name="i") as i:
        k.assign(norm, larger(norm, magnitude(d[(*place, i)]) + magnitude(e[(*place, i)])))
    tiny = k.let("tiny", norm * (EPSILON / 2))
    last = k.variable("last", count - 1)
    with k.loop(count * _ITERATIONS, name="iteration"), k.branch(last >= 0):
        high = k.let("high", last)
        with k.branch((high >= 0).logical_and(high < count)):
            begin = k.variable("begin", Literal(0, I64))  # the first row of the block that ends at `high`
            zero = k.variable("zero", Literal(-1, I64))  # the last row of the block whose diagonal element is 0
            with k.loop(high, name="i") as i:
                sizes = magnitude(d[(*place, i)]) + magnitude(d[(*place, i + 1)])
                limit = larger(sizes * EPSILON, Literal(1e-290, F64))
                with k.branch(magnitude(e[(*place, i)]) <= limit):
                    k.store(e, (*place, i), _ZERO)
                    k.assign(begin, i + 1)
            with k.loop(high + 1, start=begin, name="i") as i, k.branch(magnitude(d[(*place, i)]) <= tiny):
                k.assign(zero, i)
            low = k.let("low", begin)
            null = k.let("null", zero)
            with k.branch(low.eq(high)):
                with k.branch(d[(*place, high)] < _ZERO):
                    k.store(d, (*place, high), -d[(*place, high)])
                    if right:
                        negate_row(k, right, place, high)
                k.assign(last, high - 1)
            with k.branch((low >= 0).logical_and(low < high)):
                with k.branch(null.eq(high)):
                    _chase_up(k, place, diagonals, right, low, high)
                with k.branch((null >= 0).logical_and(null < high)):
                    _chase_down(k, place, diagonals, matrices[0], null, high)
                with k.branch(null < 0):
                    _qr_step(k, place, diagonals, matrices, low, high)
    k.store(failures, tuple(place), last + 1)


def _turn(k: KernelBuilder, f: Scalar, g: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """Return the cosine and the sine of the rotation of the vector (f, g) to (r, 0), and r."""
    r = k.let("r", hypotenuse(f, g))
    is_null = k.let("is_null", r.eq(_ZERO))
    return k.let("c", select(is_null, _ONE, f / r)), k.let("s", select(is_null, _ZERO, g / r)), r


def _chase_up(
    k: KernelBuilder,
    place: Sequence[Scalar],
    diagonals: tuple[Buffer, Buffer],
    right: _Parts,
    low: Scalar,
    high: Scalar,
) -> None:
    """Rotate columns so that the element above the last diagonal element, which is 0, also becomes 0."""
    d, e = diagonals
    k.store(d, (*place, high), _ZERO)
    f = k.variable("f", e[(*place, high - 1)])
    k.store(e, (*place, high - 1), _ZERO)
    with k.loop(high - low, name="number") as number:
        j = k.let("j", high - 1 - number)
        with k.branch((j >= low).logical_and(j >= 0).logical_and(j < high)):
            c, s, r = _turn(k, d[(*place, j)], f)
            k.store(d, (*place, j), r)
            with k.branch((j > low).logical_and(j >= 1)):
                before = k.let("before", e[(*place, j - 1)])
                k.assign(f, -s * before)
                k.store(e, (*place, j - 1), c * before)
            if right:
                rotate_rows(k, right, place, (j, high), (c, s))


def _chase_down(
    k: KernelBuilder,
    place: Sequence[Scalar],
    diagonals: tuple[Buffer, Buffer],
    left: _Parts,
    null: Scalar,
    high: Scalar,
) -> None:
    """Given that the diagonal element in row `null` is 0, rotate rows so that the element to its right becomes 0."""
    d, e = diagonals
    k.store(d, (*place, null), _ZERO)
    f = k.variable("f", e[(*place, null)])
    k.store(e, (*place, null), _ZERO)
    with k.loop(high + 1, start=null + 1, name="j") as j:
        c, s, r = _turn(k, d[(*place, j)], f)
        k.store(d, (*place, j), r)
        with k.branch(j < high):
            beside = k.let("beside", e[(*place, j)])
            k.assign(f, -s * beside)
            k.store(e, (*place, j), c * beside)
        if left:
            rotate_rows(k, left, place, (j, null), (c, s))


def _qr_step(
    k: KernelBuilder,
    place: Sequence[Scalar],
    diagonals: tuple[Buffer, Buffer],
    matrices: tuple[_Parts, _Parts],
    low: Scalar,
    high: Scalar,
) -> None:
    """Apply one QR iteration to the rows `low` to `high`, with the shift of the last two rows."""
    d, e = diagonals
    left, right = matrices

    def at(buffer: Buffer, i: Scalar) -> Scalar:
        return buffer[(*place, i)]

    before = k.let("before", high - 1)
    with k.branch((before >= 0).logical_and(before < high)):
        sizes = [at(d, high), at(d, before), at(e, before), at(d, low), at(e, low)]
        total: Scalar = magnitude(sizes[0])
        for each in sizes[1:]:
            total = total + magnitude(each)
        scale = k.let("scale", total)
        sp, spm1, epm1, sk, ek = (k.let("part", each / scale) for each in sizes)
        b = k.let("b", ((spm1 + sp) * (spm1 - sp) + epm1 * epm1) * 0.5)
        c = k.let("c", (sp * epm1) * (sp * epm1))
        root = k.let("root", square_root(b * b + c))
        sum_ = k.let("sum", b + with_sign(root, b))
        shift = k.let("shift", select(sum_.eq(_ZERO), _ZERO, c / sum_))
        f: Local = k.variable("f", (sk + sp) * (sk - sp) + shift)
        g: Local = k.variable("g", sk * ek)
        with k.loop(high, start=low, name="j") as j:
            cosine, sine, r = _turn(k, f, g)
            with k.branch((j > low).logical_and(j >= 1)):
                k.store(e, (*place, j - 1), r)
            x, y, z = (k.let("x", each) for each in (at(d, j), at(e, j), at(d, j + 1)))
            k.assign(f, cosine * x + sine * y)
            next_e = k.let("next_e", cosine * y - sine * x)
            k.assign(g, sine * z)
            next_d = k.let("next_d", cosine * z)
            if right:
                rotate_rows(k, right, place, (j, j + 1), (cosine, sine))
            cosine, sine, r = _turn(k, f, g)
            k.store(d, (*place, j), r)
            k.assign(f, cosine * next_e + sine * next_d)
            k.store(d, (*place, j + 1), cosine * next_d - sine * next_e)
            after = k.let("after", at(e, j + 1))
            k.assign(g, sine * after)
            with k.branch(j + 1 < high):
                k.store(e, (*place, j + 1), cosine * after)
            k.store(e, (*place, j), f)
            if left:
                rotate_rows(k, left, place, (j, j + 1), (cosine, sine))
