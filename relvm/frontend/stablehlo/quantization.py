"""Quantized types: a tensor of a quantized type is a tensor of its storage type.

Operations that only move elements work on the storage type.  Arithmetic converts its operands to the expressed type,
and quantizes its results.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.stablehlo.element_types import dtype_of_element
from relvm.frontend.stablehlo.program import AnyType, Operation, QuantizedType, Tensor, Value
from relvm.frontend.stablehlo.registry import Converter, Node
from relvm.ir.expr import Expr, constant

# Operations that move elements, and those whose regions contain the arithmetic.
_ON_STORAGE = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("broadcast", "broadcast_in_dim", "case", "composite", "concatenate", "constant", "dynamic_broadcast_in_dim"),
        *("dynamic_gather", "dynamic_pad", "dynamic_reshape", "dynamic_slice", "dynamic_update_slice", "gather"),
        *("get_dimension_size", "get_tuple_element", "if", "map", "optimization_barrier", "pad", "real_dynamic_slice"),
        *("reduce", "reduce_window", "reshape", "reverse", "scatter", "select", "select_and_scatter", "slice", "sort"),
        *("transpose", "tuple", "uniform_dequantize", "uniform_quantize", "while"),
    )
) | {"func.call"}


def needs_expressed_types(operation: Operation) -> bool:
    """Return whether an operation has operands or results of quantized types, and computes with their elements."""
    types = [value.type for value in (*operation.operands, *operation.results)]
    return any(quantized_element(type_) for type_ in types) and operation.name not in _ON_STORAGE


def quantized_element(type_: AnyType) -> QuantizedType | None:
    """Return the quantized type of the elements of a tensor, or None."""
    return type_.element if isinstance(type_, Tensor) and isinstance(type_.element, QuantizedType) else None


def convert_with_expressed_types(node: Node, convert: Converter) -> tuple[Expr, ...]:
    """Convert an operation on quantized types: dequantize the operands, convert the operation, quantize the results."""
    operation = node.operation
    operands = [dequantized(node, x, value.type) for x, value in zip(node.operands, operation.operands, strict=True)]
    results = tuple(Value(_expressed(value.type), value.name) for value in operation.results)
    found: Any = convert(Node(node.importer, replace(operation, results=results), operands, node.values))
    values = found if isinstance(found, tuple) else (found,)
    return tuple(quantized(node, node.emit(x), value.type) for x, value in zip(values, operation.results, strict=True))


def _expressed(type_: AnyType) -> AnyType:
    element = quantized_element(type_)
    return replace(type_, element=element.expressed) if element and isinstance(type_, Tensor) else type_


def dequantized(node: Node, x: Expr, type_: AnyType) -> Expr:
    """Return (q - zero_point) * scale for the elements q of a quantized tensor, or another tensor unchanged."""
    element = quantized_element(type_)
    if element is None:
        return x
    dtype = dtype_of_element(element.expressed)
    real = node.cast(x, dtype)
    if any(element.zero_points):
        real = node.rounded(ops.subtract, real, _parameter(node, x, element, element.zero_points))
    return node.rounded(ops.multiply, real, _parameter(node, x, element, element.scales))


def quantized(node: Node, x: Expr, type_: AnyType) -> Expr:
    """Return the elements of a tensor in a quantized type: x / scale + zero_point, rounded to even and clamped.

    Return a tensor of another type unchanged.
    """
    element = quantized_element(type_)
    if element is None:
        return x
    storage = dtype_of_element(element)
    if not storage.is_integer:
        raise RelvmUnsupportedError(f"quantized types with the storage type {element.storage} are not supported")
    real = node.rounded(ops.divide, x, _parameter(node, x, element, element.scales))
    moved = node.rounded(ops.round, real)
    if any(element.zero_points):
        moved = node.rounded(ops.add, moved, _parameter(node, x, element, element.zero_points))
    if element.maximum >= 1 << 24:
        from relvm.frontend.stablehlo.ops.elementwise import converted

        return node.emit(converted(node, moved, storage))
    low, high = float(element.minimum), float(element.maximum)
    return node.cast(node.rounded(lambda y: ops.minimum(ops.maximum(y, low), high), moved), storage)


def _parameter(node: Node, x: Expr, element: QuantizedType, values: tuple[float, ...]) -> Expr:
    """Return scales or zero points as a tensor that broadcasts to the shape of x."""
    dtype = dtype_of_element(element.expressed)
    if element.axis is None:
        return node.number(values[0], dtype)
    rank = len(x.tensor_type.known_shape)
    shape = [1] * rank
    if not 0 <= element.axis < rank:
        raise RelvmUnsupportedError(f"the quantized axis is {element.axis}, but the tensor has rank {rank}")
    shape[element.axis] = len(values)
    return constant(np.array(values).astype(dtype.numpy).reshape(shape))
