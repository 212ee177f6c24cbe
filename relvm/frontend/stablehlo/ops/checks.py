"""Checks of results: the custom calls `check.expect_eq` and its kin, which test programs contain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmUnsupportedError, shortened
from relvm.frontend.stablehlo.complex_numbers import parts
from relvm.frontend.stablehlo.ops.complex_math import constant_of
from relvm.frontend.stablehlo.ops.elementwise import unified
from relvm.frontend.stablehlo.ops.lapack import lapack_routine
from relvm.frontend.stablehlo.ops.linear_systems import householder_product, qr_decomposition
from relvm.frontend.stablehlo.ops.regions import dynamic_reduce_window
from relvm.frontend.stablehlo.program import Elements, Operation, Symbol
from relvm.frontend.stablehlo.registry import Node, converts, converts_complex, refuses_some
from relvm.ir.dtypes import F32, I8, U8
from relvm.ir.expr import BuiltinCall, Expr, String
from relvm.ir.types import VOID, TupleType

_DEFAULT_TOLERANCE = 1e-4
_DEFAULT_ULPS = 3
_MOST_ULPS = (1 << 64) - 1


@refuses_some("custom_call")
def _unknown_target(operation: Operation) -> str:
    target = _target(operation)
    is_known = target in _CALLS or target in _CHECKS or lapack_routine(target)
    return "" if is_known else f"custom calls of {shortened(target)} are not supported"


def _target(operation: Operation) -> str:
    """Return the name of the function that a custom call calls."""
    target = operation.attributes.get("call_target_name")
    return str(target.name if isinstance(target, Symbol) else target)


@converts("custom_call")
@converts_complex("custom_call")
def _custom_call(node: Node) -> Any:
    """Supports only the checks of `check`, and calls that JAX writes: assertions on shapes, windows, QR and LAPACK."""
    node = _without_shapes(node)
    target = _target(node.operation)
    convert = _CALLS.get(target) or lapack_routine(target)
    return convert(node) if convert else _check(node, target, *_operands(node))


def _without_shapes(node: Node) -> Node:
    """Return a call without the operands that are the shapes of its results, which JAX adds if they are not known."""
    indices = node.attribute("indices_of_shape_operands")
    if not isinstance(indices, tuple):
        return node
    return replace(node, operands=[each for i, each in enumerate(node.operands) if i not in indices])


def _shape_assertion(node: Node) -> tuple[Expr, ...]:
    """Convert a check of sizes that JAX exports.  It fails at run time with the message that the program states."""
    message = str(node.attribute("error_message", "the sizes of the arguments do not fit"))
    where = String(f"{node.operation.place}: shape_assertion: {message.partition(' Using the following')[0]}")
    node.importer.builder.emit(BuiltinCall("assert", (node.operands[0], where), type=VOID))
    return ()


@converts_complex("check.expect_eq", "check.expect_close", "check.expect_almost_eq")
@converts("check.expect_eq", "check.expect_close", "check.expect_almost_eq")
def _expect(node: Node) -> Expr | tuple[Expr, ...]:
    """Compares the first operand with the expected value, the second operand."""
    return _check(node, node.operation.name, *_operands(node))


def _operands(node: Node) -> list[Expr]:
    node.expect_operands(2)
    is_complex = any(isinstance(operand.type, TupleType) for operand in node.operands)
    return list(node.operands) if is_complex else unified(node)


@converts_complex("check.expect_eq_const", "check.expect_almost_eq_const", "check.eq", "check.almost_eq")
@converts("check.expect_eq_const", "check.expect_almost_eq_const", "check.eq", "check.almost_eq")
def _expect_constant(node: Node) -> Expr | tuple[Expr, ...]:
    """Compares the operand with the expected value, an attribute."""
    value = node.attribute("value")
    if not isinstance(value, Elements):
        raise RelvmFormatError(f"the value is {value!r}, expected dense elements")
    return _check(node, node.operation.name, node.operands[0], constant_of(node, value))


def _check(node: Node, name: str, found: Expr, expected: Expr) -> Expr | tuple[Expr, ...]:
    """Emit a check that `found` equals `expected`: tensors, or complex tensors as pairs of their parts.

    name: the name of the check, which selects the comparison.  Return the result of the operation, or () if the
    operation has none.
    """
    if not isinstance(found.type, TupleType) or not isinstance(expected.type, TupleType):
        return _check_real(node, name, found, expected)
    pairs = zip(parts(node, found), parts(node, expected), (" (real part)", " (imaginary part)"), strict=True)
    results = [_check_real(node, name, x, y, which) for x, y, which in pairs]
    if not node.operation.results:
        return ()
    first, second = results
    assert isinstance(first, Expr) and isinstance(second, Expr)
    return ops.logical_and(node.emit(first), node.emit(second))


def _check_real(node: Node, name: str, found: Expr, expected: Expr, which: str = "") -> Expr | tuple[Expr, ...]:
    """Emit a check that fails at run time and names the first element that differs."""
    node.expect_operands(1, 2)
    if found.type != expected.type:
        raise RelvmFormatError(f"the operands have the types {found.type} and {expected.type}")
    found, expected = (_computable(node, each) for each in (found, expected))
    differs = node.emit(_CHECKS[name](node, found, expected), "differs")
    shown = [node.cast(each, F32) if each.known_element_type.is_narrow_float else each for each in (found, expected)]
    where = String(f"{node.operation.place}: {name}{which}")
    node.importer.builder.emit(BuiltinCall("check_elements", (differs, *shown, where), type=VOID))
    if not node.operation.results:
        return ()
    return ops.equal(node.emit(ops.sum(ops.cast(differs, to="i64"))), 0)


def _computable(node: Node, x: Expr) -> Expr:
    """Convert integers of less than 8 bits to integers of 8 bits.  Return any other tensor unchanged."""
    dtype = x.known_element_type
    return node.cast(x, I8 if dtype.is_signed else U8) if dtype.is_integer and dtype.bits < 8 else x


def _unequal(node: Node, x: Expr, y: Expr) -> Expr:
    """Return a bool tensor that is true where x and y differ.  All NaNs are equal, and so are the two zeros."""
    if not x.known_element_type.is_float:
        return ops.not_equal(x, y)
    if x.known_element_type.is_narrow_float:
        x, y = node.cast(x, F32), node.cast(y, F32)
    return ops.logical_and(ops.not_equal(x, y), ops.logical_not(_both_nan(node, x, y)))


def _both_nan(node: Node, x: Expr, y: Expr) -> Expr:
    if x.known_element_type.is_narrow_float:
        x, y = node.cast(x, F32), node.cast(y, F32)
    return ops.logical_and(ops.not_equal(x, x), ops.not_equal(y, y))


def _far(node: Node, x: Expr, y: Expr) -> Expr:
    """Return a bool tensor that is true where the difference of x and y exceeds the tolerance."""
    tolerance = node.attribute("tolerance", _DEFAULT_TOLERANCE)
    if not isinstance(tolerance, float):
        raise RelvmFormatError(f"the tolerance is {tolerance!r}, expected a float")
    if not x.known_element_type.is_float:
        return ops.not_equal(x, y)
    same = ops.logical_not(_unequal(node, x, y))
    if x.known_element_type.is_narrow_float:
        x, y = node.cast(x, F32), node.cast(y, F32)
    is_near = ops.less_equal(ops.abs(ops.subtract(x, y)), tolerance)
    return ops.logical_not(ops.logical_or(is_near, same))


def _many_ulps(node: Node, x: Expr, y: Expr) -> Expr:
    """Return a bool tensor that is true where the number of floats from x to y is outside the limits.

    This number is infinite if only one of x and y is finite.
    """
    least, most = node.integer("min_ulp_difference", 0), node.integer("max_ulp_difference", _DEFAULT_ULPS)
    dtype = x.known_element_type
    if not dtype.is_float:
        return ops.not_equal(x, y)
    if dtype.bits < 16:
        raise RelvmUnsupportedError(f"elements of the type {dtype} are not supported")
    signed, unsigned = f"i{dtype.bits}", f"u{dtype.bits}"
    ordered = []
    for each in (x, y):
        bits = node.emit(ops.bit_cast(each, to=signed))
        magnitude = ops.bitwise_and(bits, (1 << (dtype.bits - 1)) - 1)
        ordered.append(node.emit(ops.where(ops.less(bits, 0), ops.negative(magnitude), magnitude)))
    first, second = ordered
    span = ops.subtract(ops.maximum(first, second), ops.minimum(first, second))
    ulps = node.emit(ops.bit_cast(span, to=unsigned))
    wide = [node.cast(each, F32) if dtype.is_narrow_float else each for each in (x, y)]
    finite = ops.logical_and(ops.is_finite(wide[0]), ops.is_finite(wide[1]))
    limit = (1 << dtype.bits) - 1
    outside = ops.greater(ulps, min(most % (_MOST_ULPS + 1), limit))
    if least:
        outside = ops.logical_or(outside, ops.less(ulps, min(least % (_MOST_ULPS + 1), limit)))
    same = ops.logical_not(_unequal(node, x, y)) if least == 0 else ops.equal(ulps, 0)
    return ops.logical_and(ops.logical_not(ops.logical_and(finite, ops.logical_not(outside))), ops.logical_not(same))


_CALLS: dict[str, Callable[[Node], Any]] = {
    "shape_assertion": _shape_assertion,
    "stablehlo.dynamic_reduce_window": dynamic_reduce_window,
    "Qr": qr_decomposition,
    "ProductOfElementaryHouseholderReflectors": householder_product,
}
_CHECKS = {
    "check.eq": _unequal,
    "check.almost_eq": _far,
    "check.expect_eq": _unequal,
    "check.expect_eq_const": _unequal,
    "check.expect_almost_eq": _far,
    "check.expect_almost_eq_const": _far,
    "check.expect_close": _many_ulps,
}
