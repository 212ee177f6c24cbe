"""Kernels for linear systems: triangular solves and Cholesky decompositions."""

from __future__ import annotations

from collections.abc import Sequence

from relvm.data_classes import value_record
from relvm.frontend.common.kernel_parts import buffers, loops, size
from relvm.ir.dtypes import I64
from relvm.ir.kernel_def import KernelDef
from relvm.ir.loop_ir import Buffer, Literal, Operation, Scalar
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
