"""Triangular solves, and Cholesky and QR decompositions."""

from __future__ import annotations

from collections.abc import Sequence

from relvm.errors import RelvmFormatError, RelvmTypeError
from relvm.frontend.common.decompositions import adjoint, square, square_size
from relvm.frontend.common.linear_systems import (
    TriangularSystem,
    cholesky_kernel,
    householder_kernel,
    householder_product_kernel,
    pivoted_householder_kernel,
    reflections_kernel,
    triangular_solve_kernel,
    tridiagonal_solve_kernel,
)
from relvm.frontend.stablehlo.complex_numbers import flattened_parts, regrouped
from relvm.frontend.stablehlo.registry import Node, converts, converts_complex
from relvm.ir.dtypes import F32, F64, I64
from relvm.ir.expr import Expr
from relvm.ir.symbolic import dim_op
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
    known = square_size(matrix)
    size = known if isinstance(known, int) else rows
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
    *parts, _ = decomposed_by_cholesky(node, matrix, is_lower=node.flag("lower"))
    return regrouped(node, [node.operation.results[0].type], [_rounded(node, x) for x in parts])[0]


def decomposed_by_cholesky(node: Node, matrix: list[Expr], *, is_lower: bool) -> list[Expr]:
    """Return the parts of the triangular factor of matrices, and the failures (see `cholesky_kernel`).

    matrix: the parts of the matrices.

    The factor of complex matrices is computed in f64, like all functions of complex numbers.
    """
    matrix = square(node.importer, matrix)
    dtype = matrix[0].known_element_type
    wide = [node.cast(x, F64) for x in matrix] if len(matrix) == 2 else matrix
    types = [x.tensor_type for x in wide]
    kernel = cholesky_kernel(node.importer.unique_name("cholesky"), types, is_lower=is_lower)
    *parts, failures = node.call_kernel(kernel, wide, [*types, TensorType(I64, types[0].known_shape[:-2])])
    return [*(node.cast(node.emit(x), dtype) for x in parts), failures]


def qr_decomposition(node: Node) -> tuple[Expr, ...]:
    """Convert the custom call `Qr`, which JAX writes for the decomposition by Householder reflections."""
    node.expect_operands(1)
    matrix = [_computable(node, x) for x in flattened_parts(node, node.operands)]
    types = [x.tensor_type for x in matrix]
    *batch, rows, columns = types[0].known_shape
    kernel = householder_kernel(node.importer.unique_name("qr"), types)
    factor = [TensorType(each.dtype, (*batch, dim_op("min", rows, columns))) for each in types]
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


def pivoted_qr_decomposition(node: Node) -> tuple[Expr, ...]:
    """Convert a call of `geqp3`, whose operands are the matrices and the pivots."""
    node.expect_operands(2)
    matrix = [_computable(node, x) for x in flattened_parts(node, node.operands[:1])]
    pivots = node.emit(node.cast(node.operands[1], I64))
    types = [x.tensor_type for x in matrix]
    *batch, rows, columns = types[0].known_shape
    kernel = pivoted_householder_kernel(node.importer.unique_name("qr"), types, pivots.tensor_type)
    factor = [TensorType(each.dtype, (*batch, dim_op("min", rows, columns))) for each in types]
    found = list(node.as_tuple(node.call_kernel(kernel, [*matrix, pivots], [*types, pivots.tensor_type, *factor])))
    found[len(types)] = node.cast(node.emit(found[len(types)]), node.operands[1].known_element_type)
    return tuple(regrouped(node, [value.type for value in node.operation.results], found))


def reflected(node: Node) -> Expr:
    """Convert a call of `ormqr`, whose operands are the reflections, their factors and the matrices to reflect."""
    node.expect_operands(3)
    matrix, factors, target = ([_computable(node, x) for x in flattened_parts(node, [each])] for each in node.operands)
    is_left, is_adjoint = (bool(setting(node, name)) for name in ("left", "transpose"))
    target = target if is_left else adjoint(node.importer, target)
    types = [x.tensor_type for x in target]
    kernel = reflections_kernel(
        node.importer.unique_name("reflections"),
        [x.tensor_type for x in matrix],
        [x.tensor_type for x in factors],
        types,
        is_adjoint=is_adjoint == is_left,  # c Q is the adjoint of Q* c*
    )
    found = [node.emit(x) for x in node.as_tuple(node.call_kernel(kernel, [*matrix, *factors, *target], types))]
    found = found if is_left else adjoint(node.importer, found)
    return regrouped(node, [node.operation.results[0].type], found)[0]


def solved_tridiagonal(node: Node) -> tuple[list[Expr], Expr]:
    """Return the parts of the solution of tridiagonal systems, and the first row with a pivot of 0 for each system.

    The operands are the three diagonals and the right sides.  `tridiagonal_solve_kernel` describes the results.
    """
    node.expect_operands(4)
    *diagonals, right_side = ([_computable(node, x) for x in flattened_parts(node, [each])] for each in node.operands)
    types = [x.tensor_type for x in right_side]
    name = node.importer.unique_name("tridiagonal_solve")
    kernel, results = tridiagonal_solve_kernel(name, [x.tensor_type for x in diagonals[0]], types)
    operands = [part for each in (*diagonals, right_side) for part in each]
    found = node.as_tuple(node.call_kernel(kernel, operands, results))
    return list(found[: len(types)]), found[len(types)]


def setting(node: Node, name: str) -> int:
    """Return a setting of a call of LAPACK."""
    settings = node.attribute("mhlo.backend_config", node.attribute("backend_config"))
    value = settings.get(name) if isinstance(settings, dict) else None
    if not isinstance(value, int):
        raise RelvmFormatError(f"expected the integer {name} in the attribute backend_config, got {settings!r}")
    return value


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
