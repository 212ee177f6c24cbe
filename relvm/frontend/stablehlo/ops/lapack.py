"""Custom calls of LAPACK, which JAX writes for decompositions and linear systems on CPUs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmUnsupportedError, counted
from relvm.frontend.common import decompositions
from relvm.frontend.common.linear_systems import TriangularSystem, lu_kernel
from relvm.frontend.stablehlo.complex_numbers import flattened_parts, is_complex, real_type, regrouped
from relvm.frontend.stablehlo.element_types import dtype_of_element
from relvm.frontend.stablehlo.ops.linear_systems import (
    decomposed_by_cholesky,
    householder_product,
    pivoted_qr_decomposition,
    qr_decomposition,
    reflected,
    setting,
    solved_triangular,
    solved_tridiagonal,
)
from relvm.frontend.stablehlo.program import Tensor
from relvm.frontend.stablehlo.registry import Node
from relvm.ir.dtypes import I64
from relvm.ir.expr import Expr
from relvm.ir.types import TensorType

_TARGET = re.compile(r"lapack_[sdcz]([a-z]+[0-9]?)_ffi")


def lapack_routine(target: str) -> Callable[[Node], tuple[Expr, ...]] | None:
    """Return the converter of a custom call, or None if it is no supported call of LAPACK."""
    found = _TARGET.fullmatch(target)
    return _ROUTINES.get(found[1]) if found else None


def _letter(node: Node, name: str, choices: str) -> str:
    """Return a setting of a call that is a letter."""
    value = setting(node, name)
    if not 0 < value < 128 or chr(value) not in choices:
        raise RelvmUnsupportedError(f"{name} is {value}, expected one of {', '.join(choices)}")
    return chr(value)


def _matrix(node: Node, index: int = 0) -> list[Expr]:
    return flattened_parts(node, [node.operands[index]])


def _results(node: Node, flat: Sequence[Expr | None]) -> tuple[Expr, ...]:
    """Return the results of a call from their parts.  None stands for a part without defined elements, and becomes 0.

    Integers are converted to the declared dtypes.  An unknown dimension of a part without defined elements is that of
    the first operand.
    """
    given = _matrix(node)[0].tensor_type.known_shape
    declared = [node.declared(i) for i in range(len(node.operation.results))]
    parts: list[Tensor] = []
    for type_ in declared:
        parts += [real_type(type_)] * (2 if is_complex(type_) else 1)
    if len(parts) != len(flat):
        raise RelvmFormatError(f"expected results of {counted(len(flat), 'tensor')}, got {len(parts)}")
    found = []
    for type_, value in zip(parts, flat, strict=True):
        dtype = dtype_of_element(type_.element)
        if value is None:
            shape = tuple(given[i] if dim is None else dim for i, dim in enumerate(type_.shape or ()))
            value = node.broadcast(node.number(0, dtype), shape)
        found.append(node.cast(node.emit(value), dtype))
    return tuple(regrouped(node, declared, found))


def _or_undefined(parts: Sequence[Expr], count: int) -> list[Expr | None]:
    """Return the parts of a result, or `count` parts without defined elements if it was not computed."""
    return list(parts) if parts else [None] * count


def _syevd(node: Node) -> tuple[Expr, ...]:
    node.expect_operands(1)
    has_vectors = _letter(node, "mode", "NV") == "V"
    matrix = _matrix(node)
    is_lower = _letter(node, "uplo", "LU") == "L"
    values, vectors, failures = decompositions.eigh(node.importer, matrix, is_lower=is_lower, has_vectors=has_vectors)
    return _results(node, [*_or_undefined(vectors, len(matrix)), values, failures])


def _gesdd(node: Node) -> tuple[Expr, ...]:
    node.expect_operands(1)
    mode, matrix = _letter(node, "mode", "ASN"), _matrix(node)
    values, left, right, failures = decompositions.svd(
        node.importer, matrix, has_vectors=mode != "N", is_full=mode == "A"
    )
    first, second, third = (_or_undefined(each, len(matrix)) for each in ([], left, right))
    return _results(node, [*first, values, *second, *third, failures])


def _geev(node: Node) -> tuple[Expr, ...]:
    node.expect_operands(1)
    has_left, has_right = (_letter(node, name, "NV") == "V" for name in ("compute_left", "compute_right"))
    values, left, right, failures = decompositions.eig(
        node.importer, _matrix(node), has_left=has_left, has_right=has_right
    )
    return _results(node, [*values, *_or_undefined(left, 2), *_or_undefined(right, 2), failures])


def _gees(node: Node) -> tuple[Expr, ...]:
    """The call also returns the number of eigenvalues that were sorted, which is 0."""
    node.expect_operands(1)
    has_vectors, matrix = _letter(node, "mode", "NV") == "V", _matrix(node)
    _letter(node, "sort", "N")
    triangle, vectors, values, failures = decompositions.schur(node.importer, matrix, has_vectors=has_vectors)
    return _results(node, [*triangle, *_or_undefined(vectors, len(matrix)), *values, None, failures])


def _gehrd(node: Node) -> tuple[Expr, ...]:
    node.expect_operands(1)
    matrix = _matrix(node)
    if (setting(node, "low"), setting(node, "high")) != (1, matrix[0].tensor_type.known_shape[-1]):
        raise RelvmUnsupportedError("a Hessenberg form of a part of a matrix is not supported")
    packed, factors = decompositions.hessenberg(node.importer, matrix)
    return _results(node, [*packed, *factors, None])


def _sytrd(node: Node) -> tuple[Expr, ...]:
    node.expect_operands(1)
    is_lower = _letter(node, "uplo", "LU") == "L"
    packed, diagonal, beside, factors = decompositions.tridiagonal(node.importer, _matrix(node), is_lower=is_lower)
    return _results(node, [*packed, diagonal, beside, *factors, None])


def _gtsv(node: Node) -> tuple[Expr, ...]:
    """The call also returns the eliminated diagonals, which JAX does not use."""
    solution, failures = solved_tridiagonal(node)
    return _results(node, [*[None] * (3 * len(solution)), *solution, failures])


def _ormqr(node: Node) -> tuple[Expr, ...]:
    return (reflected(node),)


def _potrf(node: Node) -> tuple[Expr, ...]:
    node.expect_operands(1)
    is_lower = _letter(node, "uplo", "LU") == "L"
    return _results(node, decomposed_by_cholesky(node, _matrix(node), is_lower=is_lower))


def _getrf(node: Node) -> tuple[Expr, ...]:
    node.expect_operands(1)
    matrix = _matrix(node)
    types = [x.tensor_type for x in matrix]
    *batch, rows, columns = types[0].known_shape
    if not isinstance(rows, int) or not isinstance(columns, int):
        raise RelvmUnsupportedError(f"matrices of the type {types[0]}: expected known sizes")
    results = [
        *types,
        TensorType(I64, (*batch, min(rows, columns))),
        TensorType(I64, (*batch, rows)),
        TensorType(types[0].dtype, tuple(batch)),
    ]
    *lu, pivots, _, _ = node.call_kernel(lu_kernel(node.importer.unique_name("lu"), types), matrix, results)
    return _results(node, [*lu, node.emit(ops.add(pivots, 1)), None])


def _trsm(node: Node) -> tuple[Expr, ...]:
    node.expect_operands(2)
    transposition = _letter(node, "trans_x", "NTC")
    system = TriangularSystem(
        is_lower=_letter(node, "uplo", "LU") == "L",
        is_left=_letter(node, "side", "LR") == "L",
        has_unit_diagonal=_letter(node, "diag", "NU") == "U",
        is_transposed=transposition != "N",
        is_conjugated=transposition == "C",
    )
    return (solved_triangular(node, system),)


def _orgqr(node: Node) -> tuple[Expr, ...]:
    return (householder_product(node),)


_ROUTINES = {
    **dict.fromkeys(("syevd", "heevd"), _syevd),
    **dict.fromkeys(("gesdd", "gesvd"), _gesdd),
    "geev": _geev,
    "gees": _gees,
    "gehrd": _gehrd,
    "potrf": _potrf,
    "getrf": _getrf,
    "trsm": _trsm,
    "geqrf": qr_decomposition,
    "geqp3": pivoted_qr_decomposition,
    "gtsv": _gtsv,
    **dict.fromkeys(("sytrd", "hetrd"), _sytrd),
    **dict.fromkeys(("ormqr", "unmqr"), _ormqr),
    **dict.fromkeys(("orgqr", "ungqr"), _orgqr),
}
