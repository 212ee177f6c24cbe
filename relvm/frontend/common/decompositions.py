"""Eigenvalues, singular values, and Schur and Hessenberg forms of tensors of matrices.

The matrices are in the last two axes.  A complex tensor is a sequence of its real and its imaginary part, and a real
tensor a sequence of one.  The kernels compute in f64, and the results are rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmUnsupportedError
from relvm.frontend.common.eigenvalues import eigenvector_kernel, hessenberg_kernel, schur_kernel
from relvm.frontend.common.node_context import ModuleContext
from relvm.frontend.common.symmetric_eigenvalues import (
    Decomposition,
    hermitian_kernel,
    singular_value_kernel,
    tridiagonal_kernel,
)
from relvm.ir.dtypes import F64
from relvm.ir.expr import Expr
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import TensorType

Parts = list[Expr]


def eigh(
    importer: ModuleContext, matrix: Sequence[Expr], *, is_lower: bool, has_vectors: bool
) -> tuple[Expr, Parts, Expr]:
    """Return the results of `hermitian_kernel`: the eigenvalues, the eigenvectors, and the numbers of missing
    eigenvalues.

    Without `has_vectors`, the list of the eigenvectors is empty.
    """
    matrix = _matrices(importer, matrix, is_square=True)
    name = importer.unique_name("eigh")
    found = hermitian_kernel(name, _types(matrix), is_lower=is_lower, has_vectors=has_vectors)
    values, *vectors, failures = _decomposed(importer, found, matrix)
    return values, vectors, failures


def svd(
    importer: ModuleContext, matrix: Sequence[Expr], *, has_vectors: bool, is_full: bool
) -> tuple[Expr, Parts, Parts, Expr]:
    """Return the results of `singular_value_kernel`: the singular values, U, V*, and the numbers of missing singular
    values.

    U and V* are lists of the parts of a complex matrix, or of one matrix.  Without `has_vectors`, they are empty.
    """
    matrix = _matrices(importer, matrix, is_square=False)
    shape = matrix[0].tensor_type.known_shape
    if shape[-1] != shape[-2] and not all(isinstance(dim, int) for dim in shape[-2:]):
        raise RelvmUnsupportedError(f"singular values of matrices of the type {matrix[0].type}: expected known sizes")
    name = importer.unique_name("svd")
    found = singular_value_kernel(name, _types(matrix), has_vectors=has_vectors, is_full=is_full)
    values, *vectors, failures = _decomposed(importer, found, matrix)
    half = len(vectors) // 2
    return values, vectors[:half], vectors[half:], failures


def schur(importer: ModuleContext, matrix: Sequence[Expr], *, has_vectors: bool) -> tuple[Parts, Parts, Parts, Expr]:
    """Return the results of `schur_kernel`: T, Z, the eigenvalues, and the numbers of missing eigenvalues.

    Without `has_vectors`, the list for Z is empty.
    """
    matrix = _matrices(importer, matrix, is_square=True)
    found = schur_kernel(importer.unique_name("schur"), _types(matrix), has_vectors=has_vectors)
    *results, failures = _decomposed(importer, found, matrix)
    count = len(matrix)
    return results[:count], results[count:-2], results[-2:], failures


def eig(
    importer: ModuleContext, matrix: Sequence[Expr], *, has_left: bool, has_right: bool
) -> tuple[Parts, Parts, Parts, Expr]:
    """Return the results of `eigenvector_kernel`, the last of which are the numbers of missing eigenvalues.

    The others are the eigenvalues, the left and the right eigenvectors, each as a real and an imaginary part.  The list
    is empty for eigenvectors that are not computed.
    """
    matrix = _matrices(importer, matrix, is_square=True)
    found = eigenvector_kernel(importer.unique_name("eig"), _types(matrix), has_left=has_left, has_right=has_right)
    *results, failures = _decomposed(importer, found, matrix)
    left = results[2:4] if has_left else []
    return results[:2], left, results[2 + len(left) :], failures


def hessenberg(importer: ModuleContext, matrix: Sequence[Expr]) -> tuple[Parts, Parts]:
    """Return the packed matrix and the factors of `hessenberg_kernel`."""
    matrix = _matrices(importer, matrix, is_square=True)
    found = hessenberg_kernel(importer.unique_name("hessenberg"), _types(matrix))
    results = _decomposed(importer, found, matrix)
    return results[: len(matrix)], results[len(matrix) :]


def tridiagonal(importer: ModuleContext, matrix: Sequence[Expr], *, is_lower: bool) -> tuple[Parts, Expr, Expr, Parts]:
    """Return the results of `tridiagonal_kernel`: the packed matrix, the diagonal, the elements beside it, and the
    factors.
    """
    matrix = _matrices(importer, matrix, is_square=True)
    found = tridiagonal_kernel(importer.unique_name("tridiagonal"), _types(matrix), is_lower=is_lower)
    results = _decomposed(importer, found, matrix)
    count = len(matrix)
    return results[:count], results[count], results[count + 1], results[count + 2 :]


def adjoint(importer: ModuleContext, matrix: Sequence[Expr]) -> Parts:
    """Return the conjugate transpose of matrices: one tensor, or the real and the imaginary part of complex ones."""
    rank = len(matrix[0].tensor_type.known_shape)
    axes = (*range(rank - 2), rank - 1, rank - 2)
    real, *imaginary = [importer.emit(ops.transpose(part, perm=axes)) for part in matrix]
    return [real, *(importer.emit(ops.negative(part)) for part in imaginary)]


def square_size(matrix: Sequence[Expr]) -> AnyDim:
    """Return the number of columns of square matrices, or the number of rows if only this is known.

    Raises
    ------
    RelvmFormatError
        The tensors have fewer than two axes, or the numbers of rows and columns are known and differ.
    """
    type_ = matrix[0].tensor_type
    sizes = type_.known_shape[-2:]
    known = {size for size in sizes if isinstance(size, int)}
    if len(sizes) < 2 or len(known) == 2:
        raise RelvmFormatError(f"expected square matrices, got the type {type_}")
    return known.pop() if known else sizes[-1]


def square(importer: ModuleContext, matrix: Sequence[Expr]) -> Parts:
    """Return square matrices whose numbers of rows and columns are the same dimension.

    If it is not known whether they are equal, this is checked at run time.   The errors are those of `square_size`.
    """
    size = square_size(matrix)
    return [importer.with_shape(x, (*x.tensor_type.known_shape[:-2], size, size)) for x in matrix]


def _matrices(importer: ModuleContext, matrix: Sequence[Expr], *, is_square: bool) -> Parts:
    type_ = matrix[0].tensor_type
    if len(type_.known_shape) < 2 or not type_.known_dtype.is_float:
        raise RelvmFormatError(f"expected matrices of floats or complex numbers, got the type {type_}")
    return square(importer, matrix) if is_square else list(matrix)


def _types(matrix: Sequence[Expr]) -> list[TensorType]:
    return [TensorType(F64, x.tensor_type.known_shape) for x in matrix]


def _decomposed(importer: ModuleContext, found: Decomposition, matrix: Sequence[Expr]) -> Parts:
    """Call a kernel, and return its results.  The floats have the dtype of the matrix."""
    dtype = matrix[0].known_element_type
    args = [x if dtype == F64 else importer.emit(ops.cast(x, to=F64.name)) for x in matrix]
    items = importer.items_of_kernel(found.kernel, args, found.types)[: found.count]
    is_rounded = [each.known_element_type == F64 and dtype != F64 for each in items]
    return [
        importer.emit(ops.cast(each, to=dtype.name)) if rounds else each
        for each, rounds in zip(items, is_rounded, strict=True)
    ]
