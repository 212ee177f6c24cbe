"""Kernels for linear systems: triangular solves, and Cholesky, LU and QR decompositions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from relvm.data_classes import value_record
from relvm.frontend.common.kernel_numbers import (
    conjugate,
    difference,
    eliminate_column,
    load,
    magnitude,
    product,
    quotient,
    real,
    square_root,
    squared,
    store,
)
from relvm.frontend.common.kernel_parts import buffers, copy, index_of, larger, loops, size
from relvm.ir.dtypes import I64
from relvm.ir.kernel_def import KernelDef
from relvm.ir.loop_ir import Buffer, Literal, Scalar, select
from relvm.ir.symbolic import dim_op
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder


@value_record
class TriangularSystem:
    """The form of a triangular system, and how its matrix is read.

    Attributes
    ----------
    is_lower
        Whether the lower triangle of the matrix is read, otherwise the upper one.  The rest is not read.
    is_left
        Whether the matrix is on the left of the unknown matrix.
    has_unit_diagonal
        Whether the elements of the diagonal are taken to be 1 instead of being read.
    is_transposed, is_conjugated
        Whether the matrix is replaced by its transpose, and whether by its complex conjugate.
    """

    is_lower: bool
    is_left: bool
    has_unit_diagonal: bool
    is_transposed: bool
    is_conjugated: bool


def triangular_solve_kernel(
    name: str, matrix: Sequence[TensorType], right_side: Sequence[TensorType], system: TriangularSystem
) -> KernelDef:
    """Return the kernel that solves triangular systems by substitution, one for each position along the batch axes.

    The matrices are in the last two axes of the operands.

    matrix, right_side: the types of a float tensor, or of the real and the imaginary part of a complex one.

    Notes
    -----
    Source: StableHLO triangular_solve.
    """
    k = KernelBuilder()
    a, b, outs = buffers("a", matrix), buffers("b", right_side), buffers("out", right_side, is_output=True)
    swaps_matrix = system.is_transposed == system.is_left
    is_forward = system.is_lower != swaps_matrix
    batch, rows, columns = outs[0].shape[:-2], *outs[0].shape[-2:]
    if not system.is_left:
        rows, columns = columns, rows
    count = size(rows)

    def elements(
        tensor: Sequence[Buffer], place: Sequence[Scalar], row: Scalar, column: Scalar, *, swaps: bool
    ) -> list[Scalar]:
        at = (*place, column, row) if swaps else (*place, row, column)
        return [part[at] for part in tensor]

    def coefficient(place: Sequence[Scalar], row: Scalar, column: Scalar) -> list[Scalar]:
        found = elements(a, place, row, column, swaps=swaps_matrix)
        return conjugate(found) if system.is_conjugated else found

    with loops(k, (*batch, columns)) as (*place, column), k.loop(count, name="step") as step:
        row = k.let("row", step if is_forward else count - 1 - step)
        totals = [k.variable("total", x) for x in elements(b, place, row, column, swaps=not system.is_left)]
        with k.loop(step, name="known") as number:
            known = k.let("at", number if is_forward else count - 1 - number)
            found = elements(outs, place, known, column, swaps=not system.is_left)
            terms = product(k, coefficient(place, row, known), found)
            for total, term in zip(totals, terms, strict=True):
                k.assign(total, total - term)
        values: Sequence[Scalar] = totals
        if not system.has_unit_diagonal:
            values = quotient(k, totals, coefficient(place, row, row))
        for out, value in zip(outs, values, strict=True):
            k.store(out, (*place, row, column) if system.is_left else (*place, column, row), value)
    return KernelDef(name, (*a, *b), tuple(outs), k.finish())


def cholesky_kernel(name: str, matrix: Sequence[TensorType], *, is_lower: bool) -> KernelDef:
    """Return the kernel that decomposes Hermitian positive definite matrices, in the last two axes of its operand.

    The first result is a triangular matrix with zeros in the other triangle.  Its elements are NaN if the matrix is not
    positive definite.  The last result, of i64, is then the position of the first pivot that is not positive, counted
    from 1.  Otherwise, it is 0.

    matrix: the types of a float tensor, or of the real and the imaginary part of a complex one.
    is_lower: whether to read the lower triangle, and return L with L L* = a.  Otherwise, the kernel reads the upper
    triangle, and returns U with U* U = a.

    Notes
    -----
    Source: StableHLO cholesky, LAPACK potrf.
    """
    k = KernelBuilder()
    a, outs = buffers("a", matrix), buffers("out", matrix, is_output=True)
    failures = Buffer("failures", I64, outs[0].shape[:-2], True)
    count, zero = size(outs[0].shape[-1]), real(Literal(0.0, outs[0].dtype), outs)

    def at(place: Sequence[Scalar], row: Scalar, column: Scalar) -> tuple[Scalar, ...]:
        return (*place, row, column) if is_lower else (*place, column, row)

    with loops(k, outs[0].shape[:-2]) as place:
        failed = k.variable("failed", Literal(0, I64))
        with k.loop(count, name="row") as row:
            with k.loop(row, name="column") as column:
                totals = [k.variable("total", part) for part in load(a, at(place, row, column))]
                with k.loop(column, name="known") as known:
                    x, y = load(outs, at(place, row, known)), load(outs, at(place, column, known))
                    terms = product(k, x, conjugate(y)) if is_lower else product(k, conjugate(y), x)
                    for total, term in zip(totals, terms, strict=True):
                        k.assign(total, total - term)
                divisor = k.let("divisor", outs[0][at(place, column, column)])
                store(k, outs, at(place, row, column), [total / divisor for total in totals])
                store(k, outs, at(place, column, row), zero)
            total = k.variable("total", a[0][at(place, row, row)])
            with k.loop(row, name="known") as known:
                k.assign(total, total - squared(load(outs, at(place, row, known))))
            with k.branch((total > zero[0]).logical_not().logical_and(failed.eq(0))):
                k.assign(failed, row + 1)
            store(k, outs, at(place, row, row), real(square_root(total), outs))
        k.store(failures, tuple(place), failed)
        with k.branch(failed.ne(0)), k.loop(count, name="row") as row, k.loop(row + 1, name="column") as column:
            store(k, outs, at(place, row, column), [Literal(math.nan, out.dtype) for out in outs])
    return KernelDef(name, tuple(a), (*outs, failures), k.finish())


def householder_kernel(name: str, matrix: Sequence[TensorType]) -> KernelDef:
    """Return the kernel of a QR decomposition by Householder reflections, of the matrices in the last two axes.

    The results are packed as in LAPACK.  The first result is a matrix with R in the upper triangle, and the reflectors
    below it, without their first element, which is 1.  The second result is a vector of the factors of the reflectors.
    For a complex matrix, each result consists of two tensors: the real and the imaginary part.

    matrix: the types of a float tensor, or of the real and the imaginary part of a complex one.

    Notes
    -----
    Source: LAPACK, geqr2.
    """
    k = KernelBuilder()
    a, outs, taus = _factored(k, matrix)
    with loops(k, outs[0].shape[:-2]) as place, k.loop(size(taus[0].shape[-1]), name="step") as step:
        _eliminate_step(k, outs, taus, place, step)
    return KernelDef(name, tuple(a), (*outs, *taus), k.finish())


def _factored(k: KernelBuilder, matrix: Sequence[TensorType]) -> tuple[list[Buffer], list[Buffer], list[Buffer]]:
    """Return the buffers of a matrix, of its packed QR decomposition and of the factors of the reflectors.

    The decomposition begins as a copy of the matrix.   matrix: as for `householder_kernel`.
    """
    shape = matrix[0].known_shape
    factor = [TensorType(each.dtype, (*shape[:-2], dim_op("min", shape[-2], shape[-1]))) for each in matrix]
    a, outs, taus = buffers("a", matrix), buffers("out", matrix, is_output=True), buffers("tau", factor, is_output=True)
    for source, out in zip(a, outs, strict=True):
        copy(k, source, out)
    return a, outs, taus


def _eliminate_step(
    k: KernelBuilder, outs: Sequence[Buffer], taus: Sequence[Buffer], place: Sequence[Scalar], step: Scalar
) -> None:
    """Eliminate the elements of column `step` below the diagonal by a reflection."""
    rows, columns = (size(extent) for extent in outs[0].shape[-2:])
    found = eliminate_column(k, outs, place, step, step, taus)
    with k.loop(columns, start=step + 1, name="column") as column:
        _reflect(k, outs, place, step, rows, column, conjugate(found.tau))
    store(k, outs, (*place, step, step), real(found.beta, outs))


def pivoted_householder_kernel(name: str, matrix: Sequence[TensorType], pivots: TensorType) -> KernelDef:
    """Return the kernel of a QR decomposition by Householder reflections that exchanges columns.

    The results are a packed matrix, the order of the columns, and the factors.  The packed matrix and the factors are
    those of `householder_kernel` for the matrix with its columns in this order.  Columns are counted from 1.  The
    columns whose input pivots are not 0 come first.  Then each step takes the remaining column of the greatest norm.

    matrix: as for `householder_kernel`.   pivots: the type of a vector of i64, with an element for each column.

    Notes
    -----
    Source: LAPACK, geqp3.
    """
    k = KernelBuilder()
    a, outs, taus = _factored(k, matrix)
    (given,) = buffers("pivots", [pivots])
    order = Buffer("order", I64, outs[0].shape[:-2] + outs[0].shape[-1:], True)
    rows, columns = (size(extent) for extent in outs[0].shape[-2:])
    zero = Literal(0.0, outs[0].dtype)

    def exchange(place: Sequence[Scalar], first: Scalar, second: Scalar) -> None:
        held = k.let("held", order[(*place, first)])
        k.store(order, (*place, first), order[(*place, second)])
        k.store(order, (*place, second), held)
        for out in outs:
            with k.loop(rows, name="row") as row:
                element = k.let("element", out[(*place, row, first)])
                k.store(out, (*place, row, first), out[(*place, row, second)])
                k.store(out, (*place, row, second), element)

    with loops(k, outs[0].shape[:-2]) as place:
        with k.loop(columns, name="column") as column:
            k.store(order, (*place, column), column + 1)
        fixed = k.variable("fixed", Literal(0, I64))  # the number of columns that come first
        with k.loop(columns, name="column") as column, k.branch(given[(*place, column)].ne(0)):
            front = k.let("front", fixed)
            with k.branch((front >= 0).logical_and(front < column)):
                exchange(place, front, column)
            k.assign(fixed, front + 1)
        with k.loop(size(taus[0].shape[-1]), name="step") as step:
            with k.branch(step >= fixed):
                unit = k.variable("unit", zero)
                with k.loop(rows, start=step, name="row") as row, k.loop(columns, start=step, name="column") as column:
                    for out in outs:
                        k.assign(unit, larger(unit, magnitude(out[(*place, row, column)])))
                divisor = k.let("divisor", select(unit > zero, unit, Literal(1.0, unit.dtype)))
                pivot, greatest = k.variable("pivot", step), k.variable("greatest", zero)
                with k.loop(columns, start=step, name="column") as column:
                    total = k.variable("total", zero)
                    with k.loop(rows, start=step, name="row") as row:
                        k.assign(total, total + squared([x / divisor for x in load(outs, (*place, row, column))]))
                    with k.branch(total > greatest):
                        k.assign(greatest, total)
                        k.assign(pivot, column)
                chosen = k.let("chosen", pivot)
                with k.branch((chosen > step).logical_and(chosen < columns)):
                    exchange(place, step, chosen)
            _eliminate_step(k, outs, taus, place, step)
    return KernelDef(name, (*a, given), (*outs, order, *taus), k.finish())


def reflections_kernel(
    name: str,
    matrix: Sequence[TensorType],
    factors: Sequence[TensorType],
    target: Sequence[TensorType],
    *,
    is_adjoint: bool,
) -> KernelDef:
    """Return the kernel of the product Q c, or Q* c, where Q is the product of the reflections of `householder_kernel`.

    matrix, factors: the types of the packed matrix and of the vector of factors, as for `householder_kernel`.
    target: the types of c.

    Notes
    -----
    Source: LAPACK, orm2r.
    """
    k = KernelBuilder()
    a, taus, c = buffers("a", matrix), buffers("tau", factors), buffers("c", target)
    outs = buffers("out", target, is_output=True)
    rows, columns = (size(extent) for extent in outs[0].shape[-2:])
    count = size(taus[0].shape[-1])
    for source, out in zip(c, outs, strict=True):
        copy(k, source, out)
    with loops(k, outs[0].shape[:-2]) as place, k.loop(count, name="number") as number:
        step = k.let("step", number if is_adjoint else count - 1 - number)
        tau = load(taus, (*place, step))
        tau = [k.let("tau", part) for part in (conjugate(tau) if is_adjoint else tau)]
        with k.branch((step >= 0).logical_and(step < count)), k.loop(columns, name="column") as column:
            _reflect(k, outs, place, step, rows, column, tau, a)
    return KernelDef(name, (*a, *taus, *c), tuple(outs), k.finish())


def _reflect(
    k: KernelBuilder,
    tensor: Sequence[Buffer],
    place: Sequence[Scalar],
    step: Scalar,
    rows: Scalar,
    column: Scalar,
    tau: Sequence[Scalar],
    reflectors: Sequence[Buffer] | None = None,
) -> None:
    """Multiply a column by the reflection I - tau v v*, whose vector v is below the diagonal of column `step`.

    reflectors: the tensor that contains v, by default `tensor` itself.
    """
    vectors = tensor if reflectors is None else reflectors
    totals = [k.variable("total", part[(*place, step, column)]) for part in tensor]
    with k.loop(rows, start=step + 1, name="row") as row:
        v = [part[(*place, row, step)] for part in vectors]
        terms = product(k, conjugate(v), [part[(*place, row, column)] for part in tensor])
        for total, term in zip(totals, terms, strict=True):
            k.assign(total, total + term)
    change = [k.let("change", part) for part in product(k, tau, totals)]
    for part, each in zip(tensor, change, strict=True):
        k.store(part, (*place, step, column), part[(*place, step, column)] - each)
    with k.loop(rows, start=step + 1, name="row") as row:
        at = (*place, row, column)
        terms = product(k, [part[(*place, row, step)] for part in vectors], change)
        for part, term in zip(tensor, terms, strict=True):
            k.store(part, at, part[at] - term)


def householder_product_kernel(name: str, matrix: Sequence[TensorType], factors: Sequence[TensorType]) -> KernelDef:
    """Return the kernel of the product of the reflections that `householder_kernel` returns: the columns of Q.

    matrix, factors: the types of the packed matrix and of the vector of factors, as for `householder_kernel`.

    Notes
    -----
    Source: LAPACK, org2r.
    """
    k = KernelBuilder()
    a, taus = buffers("a", matrix), buffers("tau", factors)
    outs = buffers("out", matrix, is_output=True)
    dtype = outs[0].dtype
    rows, columns = (size(extent) for extent in outs[0].shape[-2:])
    zero, one = (Literal(value, dtype) for value in (0.0, 1.0))
    count = size(taus[0].shape[-1])
    with loops(k, outs[0].shape[:-2]) as place:
        with k.loop(rows, name="row") as row, k.loop(columns, name="column") as column:
            k.store(outs[0], (*place, row, column), select(row.eq(column), one, zero))
            for out in outs[1:]:
                k.store(out, (*place, row, column), zero)
        with k.loop(count, name="number") as number:
            step = k.let("step", count - 1 - number)
            tau = [k.let("tau", part[(*place, step)]) for part in taus]
            with k.loop(columns, start=step, name="column") as column:
                _reflect(k, outs, place, step, rows, column, tau, a)
    return KernelDef(name, (*a, *taus), tuple(outs), k.finish())


def lu_kernel(name: str, matrix: Sequence[TensorType]) -> KernelDef:
    """Return the kernel that decomposes matrices, in the last two axes of its operand, into P L U with row exchanges.

    The four results are:

    - L and U in one matrix, without the unit diagonal of L
    - for each step of the elimination, the row with which the row of the same number was exchanged, counted from 0
    - for each row of P^T a, its row in the operand
    - the sign of the permutation

    matrix: the types of a float tensor, or of the real and the imaginary part of a complex one.

    Notes
    -----
    Source: LAPACK getrf: Gaussian elimination with partial pivoting.
    """
    k = KernelBuilder()
    a, lu = buffers("a", matrix), buffers("lu", matrix, is_output=True)
    dtype, (*batch, rows, columns) = a[0].dtype, a[0].shape
    lu = [Buffer(each.name, dtype, a[0].shape, True) for each in lu]
    count = dim_op("min", rows, columns)
    pivots, order = Buffer("pivots", I64, (*batch, count), True), Buffer("order", I64, (*batch, rows), True)
    signs = Buffer("signs", dtype, tuple(batch), True)
    for source, target in zip(a, lu, strict=True):
        copy(k, source, target)
    height, width, zero = size(rows), size(columns), Literal(0.0, dtype)

    def length(at: Sequence[Scalar]) -> Scalar:
        total = magnitude(lu[0][tuple(at)])
        for part in lu[1:]:
            total = total + magnitude(part[tuple(at)])
        return total

    with loops(k, batch) as place:
        sign = k.variable("sign", Literal(1, dtype))
        with k.loop(height, name="row") as row:
            k.store(order, (*place, row), row)
        with k.loop(size(count), name="i") as i:
            pivot, largest = k.variable("pivot", i), k.variable("largest", length((*place, i, i)))
            with k.loop(height, start=i + 1, name="row") as row:
                found = k.let("found", length((*place, row, i)))
                with k.branch(found > largest):
                    k.assign(pivot, row)
                    k.assign(largest, found)
            k.store(pivots, (*place, i), pivot)
            with k.branch(pivot.ne(i)):
                k.assign(sign, -sign)
                kept = k.let("kept", order[(*place, i)])
                k.store(order, (*place, i), order[(*place, pivot)])
                k.store(order, (*place, pivot), kept)
                with k.loop(width, name="j") as j:
                    for part in lu:
                        held = k.let("held", part[(*place, i, j)])
                        k.store(part, (*place, i, j), part[(*place, pivot, j)])
                        k.store(part, (*place, pivot, j), held)
            divisor = [k.let("divisor", part) for part in load(lu, (*place, i, i))]
            is_regular = k.let("is_regular", length((*place, i, i)).ne(zero))
            with k.loop(height, start=i + 1, name="row") as row, k.branch(is_regular):
                factor = quotient(k, load(lu, (*place, row, i)), divisor)
                factor = [k.let("factor", part) for part in factor]
                store(k, lu, (*place, row, i), factor)
                with k.loop(width, start=i + 1, name="j") as j:
                    at = (*place, row, j)
                    store(k, lu, at, difference(load(lu, at), product(k, factor, load(lu, (*place, i, j)))))
        k.store(signs, tuple(place), sign)
    return KernelDef(name, tuple(a), (*lu, pivots, order, signs), k.finish())


def exchanges_kernel(name: str, pivots: TensorType, order: TensorType) -> KernelDef:
    """Return the kernel that computes the order of the rows of matrices after exchanges.

    Its result is the third one of `lu_kernel`.

    pivots: the type of the exchanges: the number of the row with which each row is exchanged, counted from 1.
    order: the type of the result.

    Notes
    -----
    Source: LAPACK, laswp.
    """
    k = KernelBuilder()
    exchanges = buffers("pivots", [pivots])[0]
    out = buffers("order", [order], is_output=True)[0]
    rows = size(out.shape[-1])
    with loops(k, out.shape[:-1]) as place:
        with k.loop(rows, name="row") as row:
            k.store(out, (*place, row), row)
        with k.loop(size(exchanges.shape[-1]), name="step") as step:
            other = k.let("other", index_of(exchanges[(*place, step)]) - 1)
            kept = k.let("kept", out[(*place, step)])
            k.store(out, (*place, step), out[(*place, other)])
            k.store(out, (*place, other), kept)
    return KernelDef(name, (exchanges,), (out,), k.finish())


def tridiagonal_solve_kernel(
    name: str, diagonals: Sequence[TensorType], right_side: Sequence[TensorType]
) -> tuple[KernelDef, tuple[TensorType, ...]]:
    """Return the kernel that solves tridiagonal systems, and the types of its results.

    It eliminates with row exchanges.  Its operands are the elements below the diagonal, of which the first is not read,
    the diagonal, the elements above it, of which the last is not read, and the right sides.  Its results are the
    solution, and for each system the number, counted from 1, of the first row whose pivot is 0, or 0 if there is none
    (i64).  The other outputs are working memory.

    diagonals: the types of a diagonal: a float tensor, or the real and the imaginary part of a complex one.
    right_side: the types of the right sides, which are columns.

    Notes
    -----
    Source: LAPACK, gtsv.
    """
    k = KernelBuilder()
    lower, middle, upper = (buffers(each, diagonals) for each in ("lower", "middle", "upper"))
    b, x = buffers("b", right_side), buffers("x", right_side, is_output=True)
    dtype, shape = x[0].dtype, x[0].shape[:-1]
    count, columns = (size(extent) for extent in x[0].shape[-2:])
    failures = Buffer("failures", I64, shape[:-1], True)
    # Row i of the eliminated matrix has the elements d[i], e[i] and f[i] in the columns i, i + 1 and i + 2.
    d, e, f = ([Buffer(f"{name}{i}", dtype, shape, True) for i in range(len(x))] for name in ("d", "e", "f"))
    null = real(Literal(0.0, dtype), x)

    def length(number: Sequence[Scalar]) -> Scalar:
        total = magnitude(number[0])
        for part in number[1:]:
            total = total + magnitude(part)
        return total

    for source, target in zip((*b, *middle, *upper), (*x, *d, *e), strict=True):
        copy(k, source, target)
    with loops(k, shape[:-1]) as place:
        k.store(failures, tuple(place), Literal(0, I64))
        with k.loop(count, name="row") as row:
            store(k, f, (*place, row), null)
        with k.branch(count > 0):
            store(k, e, (*place, count - 1), null)
        with k.loop(count - 1, name="row") as row:
            here, after = (*place, row), (*place, row + 1)
            below = [k.let("below", part[after]) for part in lower]
            pivot, beside = ([k.let("x", part[here]) for part in each] for each in (d, e))
            diagonal, behind = ([k.let("x", part[after]) for part in each] for each in (d, e))
            is_kept = k.let("is_kept", length(pivot) >= length(below))

            def chosen(first: Sequence[Scalar], second: Sequence[Scalar], is_kept: Scalar = is_kept) -> list[Scalar]:
                return [k.let("x", select(is_kept, p, q)) for p, q in zip(first, second, strict=True)]

            top, other = chosen(pivot, below), chosen(below, pivot)
            is_null = k.let("is_null", length(top).eq(Literal(0.0, dtype)))
            one = real(Literal(1.0, dtype), x)
            divisor = [k.let("x", select(is_null, p, q)) for p, q in zip(one, top, strict=True)]
            factor = [k.let("factor", part) for part in quotient(k, other, divisor)]
            across, rest = chosen(beside, diagonal), chosen(diagonal, beside)
            last, under = chosen(null, behind), chosen(behind, null)
            store(k, d, here, top)
            store(k, e, here, across)
            store(k, f, here, last)
            store(k, d, after, difference(rest, product(k, factor, across)))
            store(k, e, after, difference(under, product(k, factor, last)))
            with k.loop(columns, name="column") as column:
                first, second = (*here, column), (*after, column)
                p, q = ([k.let("x", part[at]) for part in x] for at in (first, second))
                upper_side, lower_side = chosen(p, q), chosen(q, p)
                store(k, x, first, upper_side)
                store(k, x, second, difference(lower_side, product(k, factor, upper_side)))
        with k.loop(count, name="number") as number:
            row = k.let("row", count - 1 - number)
            with k.branch((row >= 0).logical_and(row < count)):
                here = (*place, row)
                pivot = [k.let("x", part[here]) for part in d]
                with k.branch(length(pivot).eq(Literal(0.0, dtype))):
                    k.store(failures, tuple(place), row + 1)
                with k.loop(columns, name="column") as column:
                    totals = [k.variable("total", part[(*here, column)]) for part in x]
                    for distance, factors in ((1, e), (2, f)):
                        with k.branch(row + distance < count):
                            term = product(k, load(factors, here), load(x, (*place, row + distance, column)))
                            for total, part in zip(totals, term, strict=True):
                                k.assign(total, total - part)
                    store(k, x, (*here, column), quotient(k, totals, pivot))
    vector = TensorType(dtype, right_side[0].known_shape[:-1])
    types = (*right_side, TensorType(I64, right_side[0].known_shape[:-2]), *[vector] * (3 * len(x)))
    return KernelDef(name, (*lower, *middle, *upper, *b), (*x, failures, *d, *e, *f), k.finish()), types
