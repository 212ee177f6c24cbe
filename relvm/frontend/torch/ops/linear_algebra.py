"""Decompositions of matrices and linear systems."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmUnsupportedError
from relvm.frontend.common.linear_systems import (
    TriangularSystem,
    cholesky_kernel,
    exchanges_kernel,
    householder_kernel,
    householder_product_kernel,
    lu_kernel,
    triangular_solve_kernel,
)
from relvm.frontend.torch.ops.control_flow import check_true
from relvm.frontend.torch.ops.products import matmul
from relvm.frontend.torch.ops.shapes import diagonal
from relvm.frontend.torch.registry import Node, converts, known_int, refuses, shape_of
from relvm.ir.dtypes import F64, I32, I64, DType
from relvm.ir.expr import Expr, Shape, Tuple
from relvm.ir.symbolic import AnyDim, dim_op
from relvm.ir.types import TensorType, TupleType


def _swapped(x: Expr) -> Expr:
    rank = len(shape_of(x))
    return ops.transpose(x, perm=(*range(rank - 2), rank - 1, rank - 2))


def _cholesky(node: Node, x: Expr, upper: bool) -> tuple[Expr, Expr]:
    """Return the triangular factor and the failures (see `cholesky_kernel`)."""
    kernel = cholesky_kernel(node.kernel_name("cholesky"), [x.tensor_type], is_lower=not upper)
    types = [x.tensor_type, TensorType(I64, shape_of(x)[:-2])]
    factor, failures = node.call_kernel(kernel, [node.emit(x)], types)
    return factor, failures


def _diagonal_of(node: Node, x: Expr) -> Expr:
    rank = len(shape_of(x))
    return node.emit(diagonal(node, x, 0, rank - 2, rank - 1))


def _singular(node: Node, lu: Expr) -> Expr:
    """Return the position, counted from 1, of the first pivot that is 0, or 0 if there is none."""
    flags = node.emit(ops.cast(ops.equal(_diagonal_of(node, lu), 0), to="i64"))
    if shape_of(flags)[-1] == 0:
        return node.full(0, shape_of(flags)[:-1], I32)
    found = ops.add(ops.argmax(flags, axis=-1), 1)
    return node.cast(node.emit(ops.multiply(found, ops.max(flags, axes=(-1,)))), I32)


@converts("linalg_cholesky_ex")
def _cholesky_ex(node: Node, self: Expr, *, upper: bool = False, check_errors: bool = False) -> tuple[Expr, Expr]:
    """Returns NaN if the matrix is not positive definite."""
    factor, failures = _cholesky(node, self, upper)
    return factor, node.cast(node.emit(failures), I32)


@converts("cholesky", "linalg_cholesky")
def _cholesky_of(node: Node, self: Expr, upper: bool = False) -> Expr:
    return _cholesky(node, self, upper)[0]


def solved_triangular(
    node: Node, a: Expr, b: Expr, *, upper: bool, left: bool = True, unit: bool = False, transposed: bool = False
) -> Expr:
    """Return the solution x of a x = b, or x a = b if not `left`, for triangular matrices."""
    from relvm.ir.type_rules import broadcast_dims

    batch = broadcast_dims("solve", (shape_of(a)[:-2], shape_of(b)[:-2]))
    a, b = node.broadcast(a, (*batch, *shape_of(a)[-2:])), node.broadcast(b, (*batch, *shape_of(b)[-2:]))
    system = TriangularSystem(
        is_lower=not upper, is_left=left, has_unit_diagonal=unit, is_transposed=transposed, is_conjugated=False
    )
    name = node.kernel_name("triangular_solve")
    kernel = triangular_solve_kernel(name, [a.tensor_type], [b.tensor_type], system)
    return node.call_kernel(kernel, [node.emit(a), node.emit(b)], [b.tensor_type])


@converts("linalg_solve_triangular")
def _solve_triangular(
    node: Node, self: Expr, B: Expr, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Expr:
    return solved_triangular(node, self, B, upper=upper, left=left, unit=unitriangular)


@converts("triangular_solve")
def _triangular_solve(
    node: Node, self: Expr, A: Expr, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Expr, Expr]:
    solution = solved_triangular(node, A, self, upper=upper, unit=unitriangular, transposed=transpose)
    return solution, node.broadcast(A, (*shape_of(solution)[:-2], *shape_of(A)[-2:]))


@converts("cholesky_solve")
def _cholesky_solve(node: Node, self: Expr, input2: Expr, upper: bool = False) -> Expr:
    first = node.emit(solved_triangular(node, input2, self, upper=upper, transposed=upper))
    return solved_triangular(node, input2, first, upper=upper, transposed=not upper)


@converts("cholesky_inverse")
def _cholesky_inverse(node: Node, self: Expr, upper: bool = False) -> Expr:
    return _cholesky_solve(node, _identity(node, self), self, upper)


def _identity(node: Node, x: Expr) -> Expr:
    size = shape_of(x)[-1]
    rows = node.reshaped(node.emit(ops.iota(Shape((size,)))), (size, 1))
    square = node.cast(node.emit(ops.equal(rows, ops.iota(Shape((size,))))), x.known_element_type)
    return node.broadcast(square, shape_of(x))


def decomposed(node: Node, a: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    """Return the four results of `lu_kernel` for matrices: L and U, exchanges, the order of the rows, and signs."""
    type_ = a.tensor_type
    *batch, rows, columns = shape_of(a)
    count: AnyDim = min(known_int(rows, "the size of a matrix"), known_int(columns, "the size of a matrix"))
    types = [
        type_,
        TensorType(I64, (*batch, count)),
        TensorType(I64, (*batch, rows)),
        TensorType(type_.dtype, tuple(batch)),
    ]
    return node.call_kernel(lu_kernel(node.kernel_name("lu"), [type_]), [node.emit(a)], types)


def _gathered_rows(node: Node, x: Expr, order: Expr) -> Expr:
    """Return the rows of matrices in another order."""
    shape = shape_of(x)
    column = node.reshaped(order, (*shape_of(order), 1))
    return node.emit(ops.gather_elements(x, node.broadcast(column, shape), axis=len(shape) - 2))


def _solved(node: Node, lu: Expr, order: Expr, b: Expr, *, left: bool = True, transposed: bool = False) -> Expr:
    """Return the solution x of linear systems a x = b, or x a = b if not `left`.

    lu, order: the decomposition of their matrices (see `decomposed`).
    transposed: whether the matrices are transposed.
    """
    from relvm.ir.type_rules import broadcast_dims

    if not left:  # x a = b is the transpose of a^T x^T = b^T
        found = _solved(node, lu, order, node.emit(_swapped(b)), transposed=not transposed)
        return _swapped(node.emit(found))
    batch = broadcast_dims("solve", (shape_of(lu)[:-2], shape_of(b)[:-2]))
    b = node.broadcast(b, (*batch, *shape_of(b)[-2:]))
    order = node.broadcast(order, (*batch, shape_of(order)[-1]))
    if transposed:
        upper = node.emit(solved_triangular(node, lu, b, upper=True, transposed=True))
        lower = node.emit(solved_triangular(node, lu, upper, upper=False, unit=True, transposed=True))
        return _gathered_rows(node, lower, _inverse_order(node, order))
    lower = node.emit(solved_triangular(node, lu, _gathered_rows(node, b, order), upper=False, unit=True))
    return solved_triangular(node, lu, lower, upper=True)


def _inverse_order(node: Node, order: Expr) -> Expr:
    """Return the inverse permutations."""
    shape = shape_of(order)
    numbers = node.broadcast(node.emit(ops.iota(Shape((shape[-1],)))), shape)
    return node.emit(ops.scatter_elements(order, order, numbers, axis=len(shape) - 1))


def _order_of_rows(node: Node, pivots: Expr, rows: AnyDim) -> Expr:
    """Return the order of rows (see `decomposed`) after the exchanges that LAPACK states, counted from 1."""
    result = TensorType(I64, (*shape_of(pivots)[:-1], rows))
    kernel = exchanges_kernel(node.kernel_name("exchanges"), pivots.tensor_type, result)
    return node.emit(node.call_kernel(kernel, [node.emit(pivots)], [result]))


def inverse(node: Node, a: Expr) -> tuple[Expr, Expr]:
    """Return the inverses of matrices, and for each one the position of the first pivot that is 0, or 0."""
    lu, _, order, _ = decomposed(node, a)
    return _solved(node, lu, order, _identity(node, a)), _singular(node, lu)


@converts("linalg_inv_ex")
def _inv_ex(node: Node, A: Expr, *, check_errors: bool = False) -> tuple[Expr, Expr]:
    """Returns infinity or NaN in some elements if the matrix is singular."""
    return inverse(node, A)


@converts("linalg_inv", "inverse")
def _inv(node: Node, A: Expr | None = None, self: Expr | None = None) -> Expr:
    matrix = A if A is not None else self
    if matrix is None:
        raise RelvmFormatError("expected a matrix")
    return inverse(node, matrix)[0]


def _is_vector(a: Expr, b: Expr) -> bool:
    """Return whether the right side of systems is a batch of vectors."""
    return len(shape_of(b)) == 1 or (len(shape_of(a)) - 1 == len(shape_of(b)) and shape_of(b) == shape_of(a)[:-1])


@converts("_linalg_solve_ex")
def _solve_ex(node: Node, A: Expr, B: Expr, *, left: bool = True, check_errors: bool = False) -> tuple[Any, ...]:
    lu, pivots, order, _ = decomposed(node, A)
    is_vector = left and _is_vector(A, B)
    right = node.reshaped(B, (*shape_of(B), 1)) if is_vector else B
    x = node.emit(_solved(node, lu, order, right, left=left))
    x = node.reshaped(x, shape_of(x)[:-1]) if is_vector else x
    return x, lu, node.cast(node.emit(ops.add(pivots, 1)), I32), _singular(node, lu)


@converts("linalg_solve")
def _solve(node: Node, A: Expr, B: Expr, *, left: bool = True) -> Expr:
    return _solve_ex(node, A, B, left=left)[0]


@converts("linalg_lu_factor_ex")
def _lu_factor_ex(node: Node, A: Expr, *, pivot: bool = True, check_errors: bool = False) -> tuple[Expr, ...]:
    if not pivot:
        raise RelvmUnsupportedError("decompositions without exchanges of rows (pivot is false) are not supported")
    lu, pivots, _, _ = decomposed(node, A)
    return lu, node.cast(node.emit(ops.add(pivots, 1)), I32), _singular(node, lu)


@converts("linalg_lu_factor")
def _lu_factor(node: Node, A: Expr, *, pivot: bool = True) -> tuple[Expr, ...]:
    return _lu_factor_ex(node, A, pivot=pivot)[:2]


@converts("linalg_lu")
def _lu(node: Node, A: Expr, *, pivot: bool = True) -> tuple[Expr, Expr, Expr]:
    if not pivot:
        raise RelvmUnsupportedError("decompositions without exchanges of rows (pivot is false) are not supported")
    lu, _, order, _ = decomposed(node, A)
    return _permutation(node, order, A.known_element_type), *_triangles(node, lu)


@converts("lu_unpack")
def _lu_unpack(
    node: Node, LU_data: Expr, LU_pivots: Expr, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Expr, ...]:
    dtype = LU_data.known_element_type
    empty = node.full(0, (0,), dtype)
    order = _order_of_rows(node, LU_pivots, shape_of(LU_data)[-2]) if unpack_pivots else None
    matrix = empty if order is None else _permutation(node, order, dtype)
    return matrix, *(_triangles(node, LU_data) if unpack_data else (empty, empty))


@converts("linalg_lu_solve")
def _linalg_lu_solve(node: Node, LU: Expr, pivots: Expr, B: Expr, *, left: bool = True, adjoint: bool = False) -> Expr:
    order = _order_of_rows(node, pivots, shape_of(LU)[-2])
    return _solved(node, LU, order, B, left=left, transposed=adjoint)


@converts("lu_solve")
def _lu_solve(node: Node, self: Expr, LU_data: Expr, LU_pivots: Expr) -> Expr:
    return _linalg_lu_solve(node, LU_data, LU_pivots, self)


def _permutation(node: Node, order: Expr, dtype: DType) -> Expr:
    """Return the matrices P of P L U.   order: the order of the rows (see `decomposed`)."""
    rows = shape_of(order)[-1]
    numbers = node.reshaped(node.emit(ops.iota(Shape((rows,)))), (rows, 1))
    wide = node.reshaped(order, (*shape_of(order)[:-1], 1, rows))
    return node.cast(node.emit(ops.equal(numbers, wide)), dtype)


def _triangles(node: Node, lu: Expr) -> tuple[Expr, Expr]:
    """Return the matrices L and U, which are stored in one matrix."""
    rows, columns = shape_of(lu)[-2:]
    count = min(known_int(rows, "the size of a matrix"), known_int(columns, "the size of a matrix"))
    lower = node.emit(ops.slice(lu, begin=(0,), end=(count,), axes=(-1,)))
    upper = node.emit(ops.slice(lu, begin=(0,), end=(count,), axes=(-2,)))
    dtype = lu.known_element_type
    at_row, at_column = _numbers(node, lower)
    below = node.cast(node.emit(ops.equal(at_row, at_column)), dtype)
    left = ops.where(ops.greater(at_row, at_column), lower, below)
    at_row, at_column = _numbers(node, upper)
    return left, ops.where(ops.less_equal(at_row, at_column), upper, node.number(0, dtype))


def _numbers(node: Node, x: Expr) -> tuple[Expr, Expr]:
    """Return the row numbers and the column numbers of matrices, as tensors that broadcast to their shape."""
    rows, columns = shape_of(x)[-2:]
    return node.reshaped(node.emit(ops.iota(Shape((rows,)))), (rows, 1)), node.emit(ops.iota(Shape((columns,))))


def _diagonal_product(node: Node, lu: Expr, signs: Expr) -> Expr:
    rank = len(shape_of(lu))
    values = node.emit(diagonal(node, lu, 0, rank - 2, rank - 1))
    return ops.multiply(ops.prod(values, axes=(rank - 2,)), signs)


@converts("_linalg_det")
def _linalg_det(node: Node, A: Expr) -> tuple[Expr, Expr, Expr]:
    lu, pivots, _, signs = decomposed(node, A)
    return _diagonal_product(node, lu, signs), lu, node.cast(node.emit(ops.add(pivots, 1)), I32)


@converts("linalg_det", "det")
def _det(node: Node, A: Expr | None = None, self: Expr | None = None) -> Expr:
    matrix = A if A is not None else self
    if matrix is None:
        raise RelvmFormatError("expected a matrix")
    return _linalg_det(node, matrix)[0]


@converts("_linalg_slogdet")
def _linalg_slogdet(node: Node, A: Expr) -> tuple[Expr, ...]:
    lu, pivots, _, signs = decomposed(node, A)
    rank = len(shape_of(A))
    values = node.emit(diagonal(node, lu, 0, rank - 2, rank - 1))
    sign = ops.where(ops.greater(values, 0), 1, ops.where(ops.less(values, 0), -1, ops.multiply(values, 0)))
    total = ops.multiply(ops.prod(sign, axes=(rank - 2,)), signs)
    size = ops.sum(ops.log(ops.abs(values)), axes=(rank - 2,))
    return total, size, lu, node.cast(node.emit(ops.add(pivots, 1)), I32)


@converts("linalg_slogdet", "slogdet")
def _slogdet(node: Node, A: Expr | None = None, self: Expr | None = None) -> tuple[Expr, ...]:
    matrix = A if A is not None else self
    if matrix is None:
        raise RelvmFormatError("expected a matrix")
    return _linalg_slogdet(node, matrix)[:2]


@converts("linalg_matrix_power")
def _matrix_power(node: Node, self: Expr, n: int) -> Expr:
    if n < 0:
        self, n = node.emit(inverse(node, self)[0]), -n
    if n == 0:
        return _identity(node, self)
    result: Expr | None = None
    power = self
    while n:
        if n & 1:
            result = power if result is None else node.emit(matmul(node, result, power))
        n >>= 1
        if n:
            power = node.emit(matmul(node, power, power))
    assert result is not None
    return result


@converts("linalg_cross")
def _cross(node: Node, self: Expr, other: Expr, *, dim: int = -1) -> Expr:
    from relvm.ir.type_rules import broadcast_dims

    shape = broadcast_dims("cross", (shape_of(self), shape_of(other)))
    x, y = (node.broadcast(node.cast(each, node.out_dtype()), shape) for each in (self, other))

    def rolled(v: Expr, by: int) -> Expr:
        from relvm.ir.expr import constant

        return node.emit(ops.gather(v, constant(np.roll(np.arange(3, dtype=np.int64), -by)), axis=dim % len(shape)))

    first = ops.multiply(rolled(x, 1), rolled(y, 2))
    return ops.subtract(first, ops.multiply(rolled(x, 2), rolled(y, 1)))


@converts("cross")
def _cross_of(node: Node, self: Expr, other: Expr, dim: int | None = None) -> Expr:
    if dim is None:
        dim = next(axis for axis, size in enumerate(shape_of(self)) if size == 3)
    return _cross(node, self, other, dim=dim)


@converts("_cdist_forward", "cdist")
def _cdist(node: Node, x1: Expr, x2: Expr, p: float = 2.0, compute_mode: Any = None) -> Expr:
    from relvm.frontend.torch.ops.reductions import vector_norm

    rank = max(len(shape_of(x1)), len(shape_of(x2)))
    *first, rows, width = shape_of(x1)
    *second, columns, _ = shape_of(x2)
    left, right = node.reshaped(x1, (*first, rows, 1, width)), node.reshaped(x2, (*second, 1, columns, width))
    return vector_norm(node, node.emit(ops.subtract(node.wide(left), node.wide(right))), p, (rank,), False)


@converts("_pdist_forward", "pdist")
def _pdist(node: Node, self: Expr, p: float = 2.0) -> Expr:
    from relvm.frontend.torch.ops.reductions import vector_norm
    from relvm.ir.expr import constant

    rows = known_int(shape_of(self)[0], "the number of rows")
    first, second = (constant(at.astype(np.int64)) for at in np.triu_indices(rows, 1))
    x = node.emit(node.wide(self))
    difference = ops.subtract(ops.gather(x, first, axis=0), ops.gather(x, second, axis=0))
    return vector_norm(node, node.emit(difference), p, (1,), False)


@converts("_linalg_check_errors")
def _check_errors(node: Node, info: Expr, api_name: str, *, is_matrix: bool) -> tuple[Expr, ...]:
    """Ends the run with an error if a decomposition has failed."""
    total = node.emit(ops.max(node.cast(info, I64))) if shape_of(info) else node.cast(info, I64)
    check_true(node, node.emit(ops.to_scalar(node.emit(ops.equal(total, 0)))), f"{api_name}: a matrix is singular")
    return ()


def _packed(node: Node, a: Expr) -> tuple[Expr, Expr]:
    """Return the QR decomposition of matrices, packed as in LAPACK, and the factors of the reflections."""
    x = node.emit(a)
    kernel = householder_kernel(node.kernel_name("qr"), [x.tensor_type])
    *batch, rows, columns = shape_of(x)
    factors = TensorType(x.known_element_type, (*batch, dim_op("min", rows, columns)))
    packed, tau = node.call_kernel(kernel, [x], [x.tensor_type, factors])
    return packed, tau


def _reflections(node: Node, packed: Expr, tau: Expr, columns: AnyDim) -> Expr:
    """Return the first columns of the product of reflections, which are in the columns of `packed`."""
    *batch, rows, width = shape_of(packed)
    if columns != width:
        width = known_int(width, "the number of columns of a matrix")
        columns = known_int(columns, "the number of rows of a matrix")
        if columns > width:
            zeros = node.full(0, (*batch, rows, columns - width), packed.known_element_type)
            packed = node.emit(ops.concat(packed, zeros, axis=-1))
        else:
            packed = node.emit(ops.slice(packed, begin=(0,), end=(columns,), axes=(-1,)))
    types = [packed.tensor_type]
    kernel = householder_product_kernel(node.kernel_name("householder_product"), types, [tau.tensor_type])
    return node.call_kernel(kernel, [packed, node.emit(tau)], types)


@converts("geqrf")
def _geqrf(node: Node, self: Expr) -> tuple[Expr, Expr]:
    return _packed(node, self)


@converts("linalg_householder_product")
def _householder_product(node: Node, input: Expr, tau: Expr) -> Expr:
    return _reflections(node, node.emit(input), tau, shape_of(input)[-1])


@converts("ormqr")
def _ormqr(node: Node, self: Expr, input2: Expr, input3: Expr, left: bool = True, transpose: bool = False) -> Expr:
    q = node.emit(_reflections(node, node.emit(self), input2, shape_of(self)[-2]))
    q = node.emit(_swapped(q)) if transpose else q
    return matmul(node, q, input3) if left else matmul(node, input3, q)


def _qr(node: Node, a: Expr, mode: str) -> tuple[Expr, Expr]:
    packed, tau = _packed(node, a)
    rows, columns = shape_of(a)[-2:]
    kept = rows if mode == "complete" else dim_op("min", rows, columns)
    upper = packed if kept == rows else node.emit(ops.slice(packed, begin=(0,), end=(kept,), axes=(-2,)))
    at_row, at_column = _numbers(node, upper)
    r = ops.where(ops.less_equal(at_row, at_column), upper, node.number(0, a.known_element_type))
    if mode == "r":
        return node.full(0, (0,), a.known_element_type), r
    return _reflections(node, packed, tau, kept), r


@converts("linalg_qr")
def _linalg_qr(node: Node, A: Expr, mode: str = "reduced") -> tuple[Expr, Expr]:
    """Uses Householder reflections, as LAPACK."""
    return _qr(node, A, mode)


@converts("qr")
def _qr_of(node: Node, self: Expr, some: bool = True) -> tuple[Expr, Expr]:
    return _qr(node, self, "reduced" if some else "complete")


_EXPONENTIAL_TERMS = 18  # for 16 digits of matrices with norms up to 1


@converts("linalg_matrix_exp", "matrix_exp")
def _matrix_exp(node: Node, self: Expr) -> Expr:
    """Evaluates a Taylor polynomial in f64 for the matrix divided by a power of 2, and squares the result."""
    builder = node.importer.builder
    if shape_of(self)[-1] == 0:
        return self
    a = node.emit(node.cast(self, F64))
    dtype = a.known_element_type
    norms = ops.max(ops.sum(ops.abs(a), axes=(-1,)))
    limit = node.emit(ops.ceil(ops.divide(ops.log(ops.clip(norms, min=1.0)), math.log(2))))
    scaled = node.emit(ops.divide(a, ops.power(node.number(2.0, dtype), limit)))
    identity = _identity(node, a)
    total = identity
    for k in range(_EXPONENTIAL_TERMS, 0, -1):
        term = node.emit(matmul(node, scaled, total))
        total = node.emit(ops.add(identity, ops.divide(term, float(k))))
    scalar = TensorType(dtype, ())

    def loop(recurse: Expr, k: Expr, power: Expr) -> Expr:
        go = builder.emit(ops.to_scalar(builder.emit(ops.less(k, limit))))

        def again() -> Expr:
            square = builder.emit(matmul(node, power, power))
            return builder.call(recurse, builder.emit(ops.add(k, 1.0)), square)

        return builder.if_(go, again, lambda: Tuple((k, power)))

    names = [("k", scalar), ("power", total.tensor_type)]
    state = TupleType((scalar, total.tensor_type))
    function = builder.local_function(names, loop, state, name="squares", recursive=True)
    return node.items(builder.call(function, node.number(0, dtype), total))[1]


refuses("decompositions into L D L^T are not supported", "linalg_ldl_factor_ex", "linalg_ldl_solve")
