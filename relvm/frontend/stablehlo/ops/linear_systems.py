"""Triangular solves, and Cholesky and QR decompositions."""

from __future__ import annotations

from collections.abc import Sequence

from relvm.errors import RelvmFormatError, RelvmTypeError
from relvm.frontend.common.linear_systems import (
    TriangularSystem,
    cholesky_kernel,
    householder_kernel,
    householder_product_kernel,
    triangular_solve_kernel,
)
from relvm.frontend.stablehlo.complex_numbers import flattened_parts, regrouped
from relvm.frontend.stablehlo.registry import Node, converts, converts_complex
from relvm.ir.dtypes import F32, F64
from relvm.ir.expr import Expr
from relvm.ir.types import TensorType


@converts("triangular_solve")
@converts_complex("triangular_solve")
def _triangular_solve(node: Node) -> Expr:
    """Solves the system by substitution.  The other triangle of the matrix is not read."""
    transposition = node.word("transpose_a", ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))
    system = TriangularSystem(
        is_lower=node.flag("lower"),
        is_left=node.flag("left_side"),
        has_unit_diagonal=node.flag("unit_diagonal"),
        is_transposed=transposition != "NO_TRANSPOSE",
        is_conjugated=transposition == "ADJOINT",
    )
    return solved_triangular(node, system)


def solved_triangular(node: Node, system: TriangularSystem) -> Expr:
    """Return the solution of triangular systems.  The operands are the matrices and the right sides."""
    node.expect_operands(2)
    matrix, right_side = ([_computable(node, x) for x in flattened_parts(node, [operand])] for operand in node.operands)
    shape, target = matrix[0].tensor_type.known_shape, right_side[0].tensor_type.known_shape
    if len(shape) < 2 or len(shape) != len(target) or len(matrix) != len(right_side):
        raise RelvmFormatError(f"the operands have the types {_types(matrix)} and {_types(right_side)}")
    rows = target[-2] if system.is_left else target[-1]
    _expect_square(node, matrix[0])
    size = shape[-1] if isinstance(shape[-1], int) else rows
    expected = (*target[:-2], size, size)
    matrix = [node.importer.with_shape(x, expected) for x in matrix]
    right_side = [
        node.importer.with_shape(x, (*target[:-2], size, target[-1]) if system.is_left else (*target[:-1], size))
        for x in right_side
    ]
    types = [x.tensor_type for x in right_side]
    name = node.importer.unique_name("triangular_solve")
    kernel = triangular_solve_kernel(name, [x.tensor_type for x in matrix], types, system)
    found = node.as_tuple(node.call_kernel(kernel, [*matrix, *right_side], types))
    return regrouped(node, [node.operation.results[0].type], [_rounded(node, x) for x in found])[0]


@converts("cholesky")
@converts_complex("cholesky")
def _cholesky(node: Node) -> Expr:
    """Returns a triangular matrix with zeros in the other triangle, or NaN if the operand is not positive definite."""
    node.expect_operands(1)
    matrix = [_computable(node, x) for x in flattened_parts(node, node.operands)]
    found = [_rounded(node, x) for x in decomposed_by_cholesky(node, matrix, is_lower=node.flag("lower"))]
    return regrouped(node, [node.operation.results[0].type], found)[0]


def decomposed_by_cholesky(node: Node, matrix: list[Expr], *, is_lower: bool) -> list[Expr]:
    """Return the parts of the triangular factor of matrices.   matrix: their parts.

    That of complex numbers is computed in f64, as other functions of complex numbers are.
    """
    _expect_square(node, matrix[0])
    dtype = matrix[0].known_element_type
    wide = [node.cast(x, F64) for x in matrix] if len(matrix) == 2 else matrix
    types = [x.tensor_type for x in wide]
    kernel = cholesky_kernel(node.importer.unique_name("cholesky"), types, is_lower=is_lower)
    return [node.cast(node.emit(x), dtype) for x in node.as_tuple(node.call_kernel(kernel, wide, types))]


def qr_decomposition(node: Node) -> tuple[Expr, ...]:
    """Convert the custom call `Qr`, which JAX writes for the decomposition by Householder reflections."""
    node.expect_operands(1)
    matrix = [_computable(node, x) for x in flattened_parts(node, node.operands)]
    types = [x.tensor_type for x in matrix]
    kernel = householder_kernel(node.importer.unique_name("qr"), types)
    factor = [TensorType(each.dtype, kernel.outputs[-1].shape) for each in types]
    found = node.as_tuple(node.call_kernel(kernel, matrix, [*types, *factor]))
    return tuple(regrouped(node, [value.type for value in node.operation.results], found))


def householder_product(node: Node) -> Expr:
    """Convert the custom call `ProductOfElementaryHouseholderReflectors`, which JAX writes for the factor Q."""
    node.expect_operands(2)
    matrix, factors = ([_computable(node, x) for x in flattened_parts(node, [each])] for each in node.operands)
    types = [x.tensor_type for x in matrix]
    name = node.importer.unique_name("householder_product")
    kernel = householder_product_kernel(name, types, [x.tensor_type for x in factors])
    found = node.as_tuple(node.call_kernel(kernel, [*matrix, *factors], types))
    return regrouped(node, [node.operation.results[0].type], found)[0]


def _expect_square(node: Node, x: Expr) -> None:
    shape = x.tensor_type.known_shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise RelvmFormatError(f"expected square matrices, got the type {x.type}")


def _computable(node: Node, x: Expr) -> Expr:
    """Return x in f32 or f64, the dtypes that the kernels of this module support."""
    dtype = x.known_element_type
    if not dtype.is_float:
        raise RelvmTypeError(f"expected floats or complex numbers, got {dtype}")
    return node.cast(x, F32) if dtype.is_narrow_float else x


def _rounded(node: Node, x: Expr) -> Expr:
    return node.cast(x, node.dtype()) if isinstance(node.operands[0].type, type(x.type)) else x


def _types(xs: Sequence[Expr]) -> str:
    return ", ".join(str(x.type) for x in xs)
