"""Kernels for linear systems: triangular solves, and Cholesky, LU and QR decompositions."""

from __future__ import annotations

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
from relvm.frontend.common.kernel_parts import buffers, copy, loops, size
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

    The result is a triangular matrix with zeros in the other triangle.  Its elements are NaN if the matrix is not
    positive definite.

    matrix: the types of a float tensor, or of the real and the imaginary part of a complex one.
    is_lower: read the lower triangle, and return L with L L* = a.  Otherwise read the upper triangle, and return U with
        U* U = a.

    Notes
    -----
    Source: StableHLO cholesky.
    """
    k = KernelBuilder()
    a, outs = buffers("a", matrix), buffers("out", matrix, is_output=True)
    count, zero = size(outs[0].shape[-1]), real(Literal(0.0, outs[0].dtype), outs)

    def at(place: Sequence[Scalar], row: Scalar, column: Scalar) -> tuple[Scalar, ...]:
        return (*place, row, column) if is_lower else (*place, column, row)

    with loops(k, outs[0].shape[:-2]) as place, k.loop(count, name="row") as row:
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
        store(k, outs, at(place, row, row), real(square_root(total), outs))
    return KernelDef(name, tuple(a), tuple(outs), k.finish())


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
    shape = matrix[0].known_shape
    count = dim_op("min", shape[-2], shape[-1])
    factor = [TensorType(each.dtype, (*shape[:-2], count)) for each in matrix]
    a = buffers("a", matrix)
    outs, taus = buffers("out", matrix, is_output=True), buffers("tau", factor, is_output=True)
    rows, columns = (size(extent) for extent in outs[0].shape[-2:])
    for source, out in zip(a, outs, strict=True):
        copy(k, source, out)
    with loops(k, outs[0].shape[:-2]) as place, k.loop(size(taus[0].shape[-1]), name="step") as step:
        found = eliminate_column(k, outs, place, step, step, taus)
        with k.loop(columns, start=step + 1, name="column") as column:
            _reflect(k, outs, place, step, rows, column, conjugate(found.tau))
        store(k, outs, (*place, step, step), real(found.beta, outs))
    return KernelDef(name, tuple(a), (*outs, *taus), k.finish())


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
