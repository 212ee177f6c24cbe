"""Kernels for linear systems: triangular solves, and Cholesky, LU and QR decompositions."""

from __future__ import annotations

from collections.abc import Sequence

from relvm.data_classes import value_record
from relvm.frontend.common.kernel_parts import buffer, buffers, copy, loops, size
from relvm.ir.dtypes import I64
from relvm.ir.kernel_def import KernelDef
from relvm.ir.loop_ir import Buffer, Literal, Operation, Scalar, select
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
        return [found[0], -found[1]] if system.is_conjugated and len(found) == 2 else found

    with loops(k, (*batch, columns)) as (*place, column), k.loop(count, name="step") as step:
        row = k.let("row", step if is_forward else count - 1 - step)
        totals = [k.variable("total", x) for x in elements(b, place, row, column, swaps=not system.is_left)]
        with k.loop(step, name="known") as number:
            known = k.let("at", number if is_forward else count - 1 - number)
            found = elements(outs, place, known, column, swaps=not system.is_left)
            terms = _product(k, coefficient(place, row, known), found)
            for total, term in zip(totals, terms, strict=True):
                k.assign(total, total - term)
        values: Sequence[Scalar] = totals
        if not system.has_unit_diagonal:
            values = _quotient(k, totals, coefficient(place, row, row))
        for out, value in zip(outs, values, strict=True):
            k.store(out, (*place, row, column) if system.is_left else (*place, column, row), value)
    return KernelDef(name, (*a, *b), tuple(outs), k.finish())


def _product(k: KernelBuilder, x: Sequence[Scalar], y: Sequence[Scalar]) -> list[Scalar]:
    if len(x) == 1:
        return [x[0] * y[0]]
    (a, b), (c, d) = ([k.let("part", part) for part in number] for number in (x, y))
    return [a * c - b * d, a * d + b * c]


def _quotient(k: KernelBuilder, x: Sequence[Scalar], y: Sequence[Scalar]) -> list[Scalar]:
    if len(x) == 1:
        return [x[0] / y[0]]
    c, d = (k.let("part", part) for part in y)
    square = k.let("square", c * c + d * d)
    return [part / square for part in _product(k, x, [c, -d])]


def cholesky_kernel(name: str, matrix: TensorType, *, is_lower: bool) -> KernelDef:
    """Return the kernel that decomposes symmetric positive definite matrices, in the last two axes of its operand.

    The result is a triangular matrix with zeros in the other triangle.  Its elements are NaN if the matrix is not
    positive definite.

    is_lower: read the lower triangle, and return L with L Lᵀ = a.  Otherwise read the upper triangle, and return U with
        Uᵀ U = a.

    Notes
    -----
    Source: StableHLO cholesky.
    """
    k = KernelBuilder()
    (a,), (out,) = buffers("a", [matrix]), buffers("out", [matrix], is_output=True)
    count, zero = size(out.shape[-1]), Literal(0, I64)

    def at(place: Sequence[Scalar], row: Scalar, column: Scalar) -> tuple[Scalar, ...]:
        return (*place, row, column) if is_lower else (*place, column, row)

    with loops(k, out.shape[:-2]) as place, k.loop(count, name="row") as row:
        with k.loop(row, name="column") as column:
            total = k.variable("total", a[at(place, row, column)])
            with k.loop(column, name="known") as known:
                k.assign(total, total - out[at(place, row, known)] * out[at(place, column, known)])
            k.store(out, at(place, row, column), total / out[at(place, column, column)])
            k.store(out, at(place, column, row), zero.to(out.dtype))
        total = k.variable("total", a[at(place, row, row)])
        with k.loop(row, name="known") as known:
            k.assign(total, total - out[at(place, row, known)] * out[at(place, row, known)])
        k.store(out, at(place, row, row), Operation("sqrt", (total,), out.dtype))
    return KernelDef(name, (a,), (out,), k.finish())


def householder_kernel(name: str, matrix: Sequence[TensorType]) -> KernelDef:
    """Return the kernel of a QR decomposition by Householder reflections, of the matrices in the last two axes.

    The results are packed as in LAPACK.  The first result is a matrix with R in the upper triangle, and the reflectors
    below it, without their first element, which is 1.  The second result is a vector of the factors of the reflectors.
    For a complex matrix, each result consists of two tensors: the real and the imaginary part.

    matrix: the types of a float tensor, or of the real and the imaginary part of a complex one.

    Notes
    -----
    Source: LAPACK, geqr2 and larfg.
    """
    k = KernelBuilder()
    shape = matrix[0].known_shape
    count = dim_op("min", shape[-2], shape[-1])
    factor = [TensorType(each.dtype, (*shape[:-2], count)) for each in matrix]
    a = buffers("a", matrix)
    outs, taus = buffers("out", matrix, is_output=True), buffers("tau", factor, is_output=True)
    dtype, is_complex = outs[0].dtype, len(a) == 2
    rows, columns = (size(extent) for extent in outs[0].shape[-2:])
    zero, one = (Literal(value, dtype) for value in (0.0, 1.0))
    for source, out in zip(a, outs, strict=True):
        with loops(k, out.shape) as at:
            k.store(out, at, source[at])
    with loops(k, outs[0].shape[:-2]) as place, k.loop(size(taus[0].shape[-1]), name="step") as step:
        below = k.variable("below", zero)  # the sum of the squares under the diagonal
        with k.loop(rows, start=step + 1, name="row") as row:
            for out in outs:
                element = k.let("element", out[(*place, row, step)])
                k.assign(below, below + element * element)
        alpha = [k.let("alpha", out[(*place, step, step)]) for out in outs]
        imaginary = alpha[1] * alpha[1] if is_complex else zero
        is_reflected = k.let("is_reflected", (below + imaginary) > zero)
        norm = k.let("norm", Operation("sqrt", (alpha[0] * alpha[0] + imaginary + below,), dtype))
        beta = k.let("beta", select(is_reflected, select(alpha[0] < zero, norm, -norm), alpha[0]))
        divisor = k.let("divisor", select(is_reflected, beta, one))
        tau = [k.let("tau", select(is_reflected, (beta - alpha[0]) / divisor, zero))]
        tau += [k.let("tau", select(is_reflected, -alpha[1] / divisor, zero))] if is_complex else []
        for factors, value in zip(taus, tau, strict=True):
            k.store(factors, (*place, step), value)
        with k.branch(is_reflected):
            scale = [alpha[0] - beta, *alpha[1:]]
            with k.loop(rows, start=step + 1, name="row") as row:
                at = (*place, row, step)
                parts = [k.let("part", out[at]) for out in outs]
                for out, part in zip(outs, _quotient(k, parts, scale), strict=True):
                    k.store(out, at, part)
            conjugate = [tau[0], -tau[1]] if is_complex else tau
            with k.loop(columns, start=step + 1, name="column") as column:
                _reflect(k, outs, place, step, rows, column, conjugate)
        k.store(outs[0], (*place, step, step), beta)
        if is_complex:
            k.store(outs[1], (*place, step, step), zero)
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
        conjugate = [v[0], -v[1]] if len(v) == 2 else v
        terms = _product(k, conjugate, [part[(*place, row, column)] for part in tensor])
        for total, term in zip(totals, terms, strict=True):
            k.assign(total, total + term)
    change = [k.let("change", part) for part in _product(k, tau, totals)]
    for part, each in zip(tensor, change, strict=True):
        k.store(part, (*place, step, column), part[(*place, step, column)] - each)
    with k.loop(rows, start=step + 1, name="row") as row:
        at = (*place, row, column)
        terms = _product(k, [part[(*place, row, step)] for part in vectors], change)
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


def _size_of(x: Scalar) -> Scalar:
    return Operation("abs", (x,), x.dtype)


def lu_kernel(name: str, matrix: TensorType) -> KernelDef:
    """Return the kernel that decomposes matrices, in the last two axes of its operand, into P L U with row exchanges.

    The four results are:

    - L and U in one matrix, without the unit diagonal of L
    - for each step of the elimination, the row with which the row of the same number was exchanged, counted from 0
    - for each row of P^T a, its row in the operand
    - the sign of the permutation

    Notes
    -----
    Source: LAPACK getrf: Gaussian elimination with partial pivoting.
    """
    k = KernelBuilder()
    a = buffer("a", matrix)
    batch, rows, columns = a.shape[:-2], a.shape[-2], a.shape[-1]
    count = dim_op("min", rows, columns)
    lu = Buffer("lu", a.dtype, a.shape, True)
    pivots, order = Buffer("pivots", I64, (*batch, count), True), Buffer("order", I64, (*batch, rows), True)
    signs = Buffer("signs", a.dtype, batch, True)
    copy(k, a, lu)
    height, width, zero = size(rows), size(columns), Literal(0, I64)
    with loops(k, batch) as place:
        sign = k.variable("sign", Literal(1, a.dtype))
        with k.loop(height, name="row") as row:
            k.store(order, (*place, row), row)
        with k.loop(size(count), name="i") as i:
            pivot, largest = k.variable("pivot", i), k.variable("largest", _size_of(lu[(*place, i, i)]))
            with k.loop(height, start=i + 1, name="row") as row:
                found = k.let("found", _size_of(lu[(*place, row, i)]))
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
                    held = k.let("held", lu[(*place, i, j)])
                    k.store(lu, (*place, i, j), lu[(*place, pivot, j)])
                    k.store(lu, (*place, pivot, j), held)
            divisor = k.let("divisor", lu[(*place, i, i)])
            with k.loop(height, start=i + 1, name="row") as row, k.branch(divisor.ne(zero.to(a.dtype))):
                factor = k.let("factor", lu[(*place, row, i)] / divisor)
                k.store(lu, (*place, row, i), factor)
                with k.loop(width, start=i + 1, name="j") as j:
                    k.store(lu, (*place, row, j), lu[(*place, row, j)] - factor * lu[(*place, i, j)])
        k.store(signs, tuple(place), sign)
    return KernelDef(name, (a,), (lu, pivots, order, signs), k.finish())
