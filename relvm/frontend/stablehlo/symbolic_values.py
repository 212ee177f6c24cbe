"""Elements of integer tensors that are known when a program is imported, as numbers or as expressions of sizes.

Programs with unknown dimensions compute shapes with operations on small integer tensors.  The elements of such a tensor
are computed here from those of the operands.  An element that is known only at run time becomes a new dimension
variable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.stablehlo.program import Elements, Operation, Tensor, Value
from relvm.ir.builder import Builder
from relvm.ir.dtypes import I64
from relvm.ir.expr import Constant, Expr, Shape
from relvm.ir.symbolic import AnyDim, ComplexDimError, dim_op
from relvm.ir.types import ShapeType

_LARGEST = 64  # elements of a tensor whose elements are followed

Sizes = tuple[AnyDim, ...]


class Emitter(Protocol):
    """The part of the importer that computes sizes at run time."""

    builder: Builder

    def emit(self, expr: Expr, name: str | None = None) -> Expr: ...

    def new_dims(self, stem: str, count: int) -> tuple[AnyDim, ...]: ...


class SymbolicValues:
    """The known elements of values."""

    def __init__(self, importer: Emitter) -> None:
        self.importer = importer
        self._operations: dict[Value, tuple[Operation, Mapping[Value, Expr]]] = {}
        self._known: dict[Expr, Sizes | None] = {}
        self._sizes: dict[Expr, Sizes] = {}

    def define(self, operation: Operation, values: Mapping[Value, Expr]) -> None:
        """Record that `operation` computes its results, so that `elements` can compute their elements.

        values: the values that the operation can use.
        """
        if operation.name in _RULES:
            for result in operation.results:
                self._operations[result] = operation, values

    def know(self, expr: Expr, elements: Sizes) -> None:
        """Record the elements of an integer tensor."""
        self._known[expr] = elements

    def elements(self, value: Value, values: Mapping[Value, Expr]) -> Sizes | None:
        """Return the elements of an integer tensor as numbers and expressions of sizes, or None if they are unknown."""
        expr = values.get(value)
        if expr is None:
            return None
        if isinstance(expr, Constant) and expr.value.size <= _LARGEST and expr.value.dtype.kind in "iub":
            return tuple(int(item) for item in expr.value.reshape(-1).tolist())
        if expr not in self._known:
            self._known[expr] = None  # a cycle cannot occur, but a deep chain is evaluated only once
            self._known[expr] = self._evaluate(value)
        return self._known[expr]

    def _evaluate(self, value: Value) -> Sizes | None:
        found = self._operations.get(value)
        count = _count(value)
        if found is None or count is None:
            return None
        operation, values = found
        if operation.name == "stablehlo.get_dimension_size":
            operand = values[operation.operands[0]].tensor_type
            axis = operation.attributes.get("dimension")
            return None if operand.shape is None or not isinstance(axis, int) else (operand.shape[axis],)
        if operation.name == "stablehlo.constant":
            attribute = operation.attributes.get("value")
            if not isinstance(attribute, Elements) or attribute.array.dtype.kind not in "iub":
                return None
            return tuple(map(int, np.broadcast_to(attribute.array, _shape(value)).reshape(-1).tolist()))
        operands = [self.elements(operand, values) for operand in operation.operands]
        leaves = [
            self.sizes(operand, values) if known is None and _can_be_size(operand) else known
            for operand, known in zip(operation.operands, operands, strict=True)
        ]
        if any(leaf is None for leaf in leaves):
            return None
        try:
            return _RULES[operation.name](operation, [leaf for leaf in leaves if leaf is not None])
        except (ComplexDimError, ZeroDivisionError, ValueError):
            return None

    def sizes(self, value: Value, values: Mapping[Value, Expr]) -> Sizes:
        """Return the elements of an integer tensor as sizes.

        An element that is not known becomes a new dimension variable, which gets its value at run time.

        Raises
        ------
        RelvmUnsupportedError
            The number of elements is not known.
        """
        known = self.elements(value, values)
        if known is not None:
            return known
        expr = values[value]
        count = _count(value)
        if count is None:
            raise RelvmUnsupportedError(f"sizes of the type {value.type} are not supported")
        if expr not in self._sizes:
            self._sizes[expr] = self.bind(expr, count)
        return self._sizes[expr]

    def bind(self, expr: Expr, count: int) -> Sizes:
        """Return new dimension variables whose values are the elements of a tensor at run time."""
        importer = self.importer
        vector = expr if expr.element_type == I64 else importer.emit(ops.cast(expr, to="i64"))
        if vector.tensor_type.shape != (count,):
            vector = importer.emit(ops.reshape(vector, Shape((count,))))
        shape = importer.emit(ops.tensor_to_shape(vector))
        sizes = importer.new_dims("size", count)
        importer.builder.match_cast(shape, ShapeType(sizes), "sizes")
        return sizes


def _can_be_size(value: Value) -> bool:
    """Return whether a tensor is a small tensor of integers."""
    type_ = value.type
    is_integer = isinstance(type_, Tensor) and str(type_.element) in ("i32", "i64", "ui32", "ui64", "index")
    return is_integer and _count(value) is not None


def _shape(value: Value) -> tuple[int, ...]:
    assert isinstance(value.type, Tensor)
    return tuple(dim or 0 for dim in value.type.shape or ())


def _count(value: Value) -> int | None:
    """Return the number of elements of a small tensor, or None if it is unknown or large."""
    type_ = value.type
    if not isinstance(type_, Tensor) or type_.shape is None or None in type_.shape:
        return None
    count = int(np.prod([dim or 0 for dim in type_.shape], dtype=object))
    return count if count <= _LARGEST else None


def _same(operation: Operation, operands: list[Sizes]) -> Sizes:
    return operands[0]


def _broadcast(operation: Operation, operands: list[Sizes]) -> Sizes | None:
    (values,) = operands
    return values * (_count(operation.results[0]) or 0) if len(values) == 1 else None


def _concatenated(operation: Operation, operands: list[Sizes]) -> Sizes | None:
    is_vector = isinstance(operation.results[0].type, Tensor) and len(_shape(operation.results[0])) == 1
    return tuple(item for operand in operands for item in operand) if is_vector else None


def _sliced(operation: Operation, operands: list[Sizes]) -> Sizes | None:
    starts, limits, strides = (
        operation.attributes.get(f"{name}s") for name in ("start_indice", "limit_indice", "stride")
    )
    if not (starts and limits and strides) or len(starts) != 1:
        return None
    return operands[0][starts[0] : limits[0] : strides[0]]


def _elementwise(function: Callable[[AnyDim, AnyDim], AnyDim]) -> Callable[[Operation, list[Sizes]], Sizes]:
    return lambda operation, operands: tuple(function(x, y) for x, y in zip(*operands, strict=True))


def _quotient(x: AnyDim, y: AnyDim) -> AnyDim:
    """Return x // y.  For sizes, which are not negative, this is the division of StableHLO, which rounds toward zero.

    Raise ValueError if an operand is a negative number, or if y is 0.
    """
    if any(isinstance(each, int) and each < 0 for each in (x, y)) or y == 0:
        raise ValueError
    return dim_op("floordiv", x, y)


def _remainder(x: AnyDim, y: AnyDim) -> AnyDim:
    if any(isinstance(each, int) and each < 0 for each in (x, y)) or y == 0:
        raise ValueError
    return dim_op("mod", x, y)


_RULES: dict[str, Callable[..., Any]] = {
    "stablehlo.constant": _same,
    "stablehlo.get_dimension_size": _same,
    "stablehlo.convert": _same,
    "stablehlo.reshape": _same,
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.concatenate": _concatenated,
    "stablehlo.slice": _sliced,
    "stablehlo.add": _elementwise(lambda x, y: x + y),
    "stablehlo.subtract": _elementwise(lambda x, y: x - y),
    "stablehlo.multiply": _elementwise(lambda x, y: x * y),
    "stablehlo.divide": _elementwise(_quotient),
    "stablehlo.remainder": _elementwise(_remainder),
    "stablehlo.maximum": _elementwise(lambda x, y: dim_op("max", x, y)),
    "stablehlo.minimum": _elementwise(lambda x, y: dim_op("min", x, y)),
}
