"""Eigenvalues, singular values, and the norms, ranks and pseudoinverses of matrices that are computed from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmFormatError
from relvm.frontend.common import decompositions
from relvm.frontend.torch.complex_numbers import ComplexTensor
from relvm.frontend.torch.ops.linear_algebra import inverse
from relvm.frontend.torch.ops.products import matmul
from relvm.frontend.torch.ops.reductions import vector_norm
from relvm.frontend.torch.registry import (
    Node,
    axes_of,
    axis_of,
    converts,
    converts_complex,
    known_int,
    shape_of,
)
from relvm.ir.dtypes import I64
from relvm.ir.expr import Expr

Tensor = Expr | ComplexTensor
_Parts = list[Expr]


def _parts(node: Node, x: Tensor) -> _Parts:
    """Return a real tensor as one part, and a complex one as its real and its imaginary part."""
    return [node.emit(part) for part in ([x.real, x.imaginary] if isinstance(x, ComplexTensor) else [x])]


def _whole(parts: _Parts) -> Tensor:
    return ComplexTensor(*parts) if len(parts) == 2 else parts[0]


def _nothing(node: Node, like: _Parts) -> Tensor:
    """Return the empty tensor that stands for vectors that are not computed."""
    return _whole([node.full(0, (0,), part.known_element_type) for part in like])


def _product(node: Node, x: _Parts, y: _Parts) -> _Parts:
    """Return the product of matrices.   x, y: both real, or both complex."""

    def product(i: int, j: int) -> Expr:
        return node.emit(matmul(node, x[i], y[j]))

    if len(x) == 1:
        return [product(0, 0)]
    real, imaginary = ops.subtract(product(0, 0), product(1, 1)), ops.add(product(0, 1), product(1, 0))
    return [node.emit(real), node.emit(imaginary)]


# ---- decompositions ----


def _nan_where_failed(node: Node, parts: Sequence[Expr], failures: Expr) -> _Parts:
    """Return tensors whose elements are NaN in the matrices or vectors that were not found.

    failures: the number of values that were not found, for each matrix.
    """
    failed = node.emit(ops.not_equal(failures, 0))
    batch = shape_of(failures)
    found = []
    for part in parts:
        column = node.reshaped(failed, (*batch, *[1] * (len(shape_of(part)) - len(batch))))
        found.append(node.emit(ops.where(column, node.number(math.nan, part.known_element_type), part)))
    return found


def _eigh(node: Node, matrix: _Parts, triangle: str, *, has_vectors: bool) -> tuple[Expr, _Parts]:
    """Return the eigenvalues and the eigenvectors of Hermitian matrices.   triangle: "L" or "U", which is read."""
    values, vectors, failures = decompositions.eigh(
        node.importer, matrix, is_lower=triangle.upper() == "L", has_vectors=has_vectors
    )
    values, *vectors = _nan_where_failed(node, [values, *vectors], failures)
    return values, vectors


def _svd(node: Node, matrix: _Parts, *, has_vectors: bool, is_full: bool = False) -> tuple[_Parts, Expr, _Parts]:
    """Return U, the singular values and V*."""
    values, left, right, failures = decompositions.svd(node.importer, matrix, has_vectors=has_vectors, is_full=is_full)
    values, *vectors = _nan_where_failed(node, [values, *left, *right], failures)
    return vectors[: len(left)], values, vectors[len(left) :]


@converts("_linalg_eigh")
@converts_complex("_linalg_eigh")
def _linalg_eigh(node: Node, A: Tensor, UPLO: str = "L", compute_v: bool = True) -> tuple[Tensor, ...]:
    """Returns NaN if an eigenvalue was not found."""
    matrix = _parts(node, A)
    values, vectors = _eigh(node, matrix, UPLO, has_vectors=compute_v)
    return values, _whole(vectors) if compute_v else _nothing(node, matrix)


@converts("linalg_eigh")
@converts_complex("linalg_eigh")
def _eigh_of(node: Node, self: Tensor, UPLO: str = "L") -> tuple[Tensor, ...]:
    """Returns NaN if an eigenvalue was not found."""
    return _linalg_eigh(node, self, UPLO)


@converts("linalg_eigvalsh")
@converts_complex("linalg_eigvalsh")
def _eigvalsh(node: Node, self: Tensor, UPLO: str = "L") -> Expr:
    """Returns NaN if an eigenvalue was not found."""
    return _eigh(node, _parts(node, self), UPLO, has_vectors=False)[0]


@converts("_linalg_svd")
@converts_complex("_linalg_svd")
def _linalg_svd(
    node: Node, A: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None
) -> tuple[Tensor, ...]:
    """Returns NaN if a singular value was not found."""
    matrix = _parts(node, A)
    left, values, right = _svd(node, matrix, has_vectors=compute_uv, is_full=full_matrices)
    if not compute_uv:
        return _nothing(node, matrix), values, _nothing(node, matrix)
    return _whole(left), values, _whole(right)


@converts("linalg_svd")
@converts_complex("linalg_svd")
def _svd_of(node: Node, A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> tuple[Tensor, ...]:
    """Returns NaN if a singular value was not found."""
    return _linalg_svd(node, A, full_matrices)


@converts("linalg_svdvals")
@converts_complex("linalg_svdvals")
def _svdvals(node: Node, A: Tensor, *, driver: str | None = None) -> Expr:
    """Returns NaN if a singular value was not found."""
    return _svd(node, _parts(node, A), has_vectors=False)[1]


@converts("linalg_eig")
@converts_complex("linalg_eig")
def _linalg_eig(node: Node, self: Tensor) -> tuple[ComplexTensor, ComplexTensor]:
    """Returns NaN if an eigenvalue was not found."""
    values, _, vectors, failures = decompositions.eig(node.importer, _parts(node, self), has_left=False, has_right=True)
    values, vectors = (_nan_where_failed(node, each, failures) for each in (values, vectors))
    return ComplexTensor(*values), ComplexTensor(*vectors)


@converts("linalg_eigvals", "_linalg_eigvals")
@converts_complex("linalg_eigvals", "_linalg_eigvals")
def _linalg_eigvals(node: Node, self: Tensor) -> ComplexTensor:
    """Returns NaN if an eigenvalue was not found."""
    _, _, values, failures = decompositions.schur(node.importer, _parts(node, self), has_vectors=False)
    return ComplexTensor(*_nan_where_failed(node, values, failures))


# ---- ranks and pseudoinverses ----


def _limit(node: Node, values: Expr, size: Any, atol: Any, rtol: Any) -> Expr:
    """Return the limit at or below which a singular value counts as 0, with a last axis of size 1.

    values: the absolute values, in the last axis.   size: the larger size of the matrices.
    atol, rtol: the absolute and the relative tolerance, or None.
    """
    dtype = values.known_element_type
    epsilon = np.finfo(dtype.numpy).eps * known_int(size, "the size of a matrix")

    def column(tolerance: Any) -> Expr:
        found = node.number(tolerance, dtype)
        return node.reshaped(found, (*shape_of(found), 1)) if shape_of(found) else found

    absolute = column(0.0 if atol is None else atol)
    if rtol is not None:
        relative = column(rtol)
    elif atol is None:
        relative = node.number(epsilon, dtype)
    else:
        relative = node.emit(ops.where(ops.greater(absolute, 0), node.number(0, dtype), node.number(epsilon, dtype)))
    greatest = node.emit(ops.max(values, axes=(len(shape_of(values)) - 1,), keepdims=True))
    return node.emit(ops.maximum(absolute, node.emit(ops.multiply(relative, greatest))))


def _pinv(node: Node, self: Tensor, atol: Any, rtol: Any, hermitian: bool) -> Tensor:
    matrix = _parts(node, self)
    *batch, rows, columns = shape_of(matrix[0])
    if rows == 0 or columns == 0:
        return _whole([node.full(0, (*batch, columns, rows), part.known_element_type) for part in matrix])
    if hermitian:
        values, vectors = _eigh(node, matrix, "L", has_vectors=True)
        sizes = node.emit(ops.abs(values))
        left, right = vectors, decompositions.adjoint(node.importer, vectors)
    else:
        first, values, last = _svd(node, matrix, has_vectors=True)
        sizes = values
        left, right = decompositions.adjoint(node.importer, last), decompositions.adjoint(node.importer, first)
    size = rows if rows == columns else max(known_int(each, "the size of a matrix") for each in (rows, columns))
    kept = ops.greater(sizes, _limit(node, sizes, size, atol, rtol))
    inverses = node.emit(ops.where(kept, ops.reciprocal(values), node.number(0, values.known_element_type)))
    inverses = node.reshaped(inverses, (*shape_of(inverses)[:-1], 1, shape_of(inverses)[-1]))
    scaled = [node.emit(ops.multiply(part, inverses)) for part in left]
    return _whole(_product(node, scaled, right))


@converts("linalg_pinv.atol_rtol_tensor", "linalg_pinv.atol_rtol_float")
@converts_complex("linalg_pinv.atol_rtol_tensor", "linalg_pinv.atol_rtol_float")
def _pinv_of(node: Node, self: Tensor, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    return _pinv(node, self, atol, rtol, hermitian)


@converts("linalg_pinv", "linalg_pinv.rcond_tensor", "pinverse")
@converts_complex("linalg_pinv", "linalg_pinv.rcond_tensor", "pinverse")
def _pinv_by_condition(node: Node, self: Tensor, rcond: Any = 1e-15, hermitian: bool = False) -> Tensor:
    return _pinv(node, self, 0.0, rcond, hermitian)


def _rank(node: Node, matrix: _Parts, atol: Any, rtol: Any, hermitian: bool) -> Expr:
    *batch, rows, columns = shape_of(matrix[0])
    if rows == 0 or columns == 0:
        return node.full(0, batch, I64)
    if hermitian:
        sizes = node.emit(ops.abs(_eigh(node, matrix, "L", has_vectors=False)[0]))
    else:
        sizes = _svd(node, matrix, has_vectors=False)[1]
    size = rows if rows == columns else max(known_int(each, "the size of a matrix") for each in (rows, columns))
    kept = node.emit(ops.greater(sizes, _limit(node, sizes, size, atol, rtol)))
    return ops.sum(node.cast(kept, I64), axes=(len(shape_of(kept)) - 1,))


@converts("linalg_matrix_rank.atol_rtol_float")
@converts_complex("linalg_matrix_rank.atol_rtol_float")
def _rank_of(node: Node, self: Tensor, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Expr:
    return _rank(node, _parts(node, self), atol, rtol, hermitian)


@converts("linalg_matrix_rank.atol_rtol_tensor")
@converts_complex("linalg_matrix_rank.atol_rtol_tensor")
def _rank_of_input(node: Node, input: Tensor, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Expr:
    return _rank(node, _parts(node, input), atol, rtol, hermitian)


@converts("linalg_matrix_rank")
@converts_complex("linalg_matrix_rank")
def _rank_by_tolerance(node: Node, self: Tensor, tol: Any, hermitian: bool = False) -> Expr:
    return _rank(node, _parts(node, self), tol, 0.0, hermitian)


@converts("linalg_matrix_rank.tol_tensor")
@converts_complex("linalg_matrix_rank.tol_tensor")
def _rank_by_tolerances(node: Node, input: Tensor, tol: Any, hermitian: bool = False) -> Expr:
    return _rank(node, _parts(node, input), tol, 0.0, hermitian)


# ---- norms ----


def _matrix_norm(node: Node, x: Expr, order: Any, axes: Sequence[int], keepdim: bool) -> Expr:
    """Return the norm of matrices.

    order: "fro", "nuc", or a number: 2 and -2 for singular values, 1 and -1 for sums of columns, and the infinities for
        sums of rows.
    axes: the axes of the rows and of the columns.
    """
    rank = len(shape_of(x))
    row, column = (axis_of(axis, rank) for axis in axes)
    if row == column:
        raise RelvmFormatError(f"the axis {row} is both that of the rows and that of the columns")
    if order == "fro":
        return vector_norm(node, x, 2, tuple(sorted((row, column))), keepdim)
    others = [axis for axis in range(rank) if axis not in (row, column)]
    matrices = node.emit(ops.transpose(x, perm=(*others, row, column)))
    count = len(others)
    is_largest = order == "nuc" or order > 0
    if order in ("nuc", 2, -2):
        values = _svd(node, [matrices], has_vectors=False)[1]
    elif abs(order) in (1, math.inf):
        summed = count if abs(order) == 1 else count + 1
        values = node.emit(ops.sum(ops.abs(matrices), axes=(summed,)))
    else:
        raise RelvmFormatError(f"the order of a norm of matrices is {order}, expected 1, 2, inf, or a negated one")
    reduce = ops.sum if order == "nuc" else (ops.max if is_largest else ops.min)
    found = node.emit(reduce(values, axes=(count,)))
    if keepdim:
        shape = shape_of(x)
        found = node.reshaped(found, tuple(1 if axis in (row, column) else shape[axis] for axis in range(rank)))
    return found


@converts("linalg_matrix_norm", "linalg_matrix_norm.str_ord")
def _linalg_matrix_norm(
    node: Node, self: Expr, ord: Any = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Expr:
    return _matrix_norm(node, node.cast(self, node.out_dtype()), ord, dim, keepdim)


@converts("linalg_norm", "linalg_norm.ord_str")
def _linalg_norm(
    node: Node, self: Expr, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Expr:
    x = node.wide(node.cast(self, node.out_dtype()))
    rank = len(shape_of(x))
    axes = (dim,) if isinstance(dim, int) else dim
    if ord is not None and (len(axes) if axes is not None else rank) == 2:
        return _matrix_norm(node, x, ord, axes or (0, 1), keepdim)
    return vector_norm(node, x, 2 if ord is None else ord, axes_of(axes, rank), keepdim)


@converts("nuclear_norm", "nuclear_norm.dim")
def _nuclear_norm(node: Node, self: Expr, dim: Sequence[int] = (-2, -1), keepdim: bool = False) -> Expr:
    return _matrix_norm(node, self, "nuc", dim, keepdim)


@converts("frobenius_norm.dim")
def _frobenius_norm(node: Node, self: Expr, dim: Sequence[int], keepdim: bool = False) -> Expr:
    return vector_norm(node, self, 2, axes_of(tuple(dim), len(shape_of(self))), keepdim)


@converts("linalg_cond", "linalg_cond.p_str")
def _cond(node: Node, self: Expr, p: Any = None) -> Expr:
    """Returns infinity if the matrix is singular, except for the orders 2 and -2, which use singular values."""
    count = len(shape_of(self)) - 2
    if p in (None, 2, -2):
        values = _svd(node, [node.emit(self)], has_vectors=False)[1]
        greatest, least = node.emit(ops.max(values, axes=(count,))), node.emit(ops.min(values, axes=(count,)))
        return ops.divide(least, greatest) if p == -2 else ops.divide(greatest, least)
    inverted, singular = inverse(node, self)
    axes = (count, count + 1)
    norms = [node.emit(_matrix_norm(node, node.emit(each), p, axes, False)) for each in (self, inverted)]
    infinity = node.number(math.inf, self.known_element_type)
    return ops.where(ops.greater(singular, 0), infinity, ops.multiply(*norms))
