"""Elements of integer tensors that are known when a program is imported, as numbers or as expressions of sizes.

Programs with unknown dimensions compute shapes with operations on small integer tensors.  The elements of such a tensor
are computed here from those of the operands.  An element that is known only at run time becomes a new dimension
variable.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.stablehlo.program import Elements, Operation, Tensor, Value
from relvm.ir.builder import Builder
from relvm.ir.dtypes import I64
from relvm.ir.expr import Constant, Expr, Shape
from relvm.ir.symbolic import AnyDim, ComplexDimError, dim_op, is_never_negative, known_sizes
from relvm.ir.types import ShapeType

_LARGEST = 64  # elements of a tensor whose elements are followed

Sizes = tuple[AnyDim, ...]
# How an integer is computed: the name of an operation, or the direction of a comparison, and the trees of its operands.
# The tree of a known number is a tuple of this number.
Tree = tuple[Any, ...]


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
        self._trees: dict[Expr, Tree] = {}
        self._sizes: dict[Expr, Sizes] = {}

    def define(self, operation: Operation, values: Mapping[Value, Expr]) -> None:
        """Record that `operation` computes its results, so that `elements` can compute their elements.

        values: the values that the operation can use.
        """
        if operation.name in _FOLLOWED:
            for result in operation.results:
                self._operations[result] = operation, values

    def follow(self, operation: Operation, values: Mapping[Value, Expr]) -> None:
        """Compute the elements of the result of an imported operation if those of the operands are known.

        This must be done directly after the import of the operation.  If the function that contains it is inlined
        again, its values get other elements.  Operations outside of the function find the elements only by the
        expression of the result.

        values: the values that the operation can use, and its result.
        """
        name = operation.name.removeprefix("stablehlo.")
        if len(operation.results) != 1 or (
            not (operation.name in _RULES or operation.name in _SOURCES or name in _TREES)
        ):
            return
        result = values.get(operation.results[0])
        if result is None or result in self._known:
            return
        if operation.name in _SOURCES:
            self._known[result] = _source_elements(operation, values)
            return
        known = [self._elements_of(values.get(operand)) for operand in operation.operands]
        elements = None
        if operation.name in _RULES and None not in known and _count(operation.results[0]) is not None:
            with suppress(ComplexDimError, ZeroDivisionError, ValueError):
                elements = _RULES[operation.name](operation, known)
        trees = [self._tree(values.get(operand)) for operand in operation.operands]
        if name in _TREES and all(trees) and not all(isinstance(item, int) for item in elements or (None,)):
            name = str(operation.attributes.get("comparison_direction")) if name == "compare" else name
            tree = (name, *trees)
            rounded = _rounded_down(tree)
            if rounded is not None:
                elements = (rounded,)
            elif elements is None or name in _ROUNDING or any(isinstance(each[0], str) for each in trees if each):
                self._trees[result] = tree
        if elements is not None:
            self._known[result] = elements

    def _elements_of(self, expr: Expr | None) -> Sizes | None:
        """Return the elements of an integer tensor if they have been computed."""
        if isinstance(expr, Constant) and expr.value.size <= _LARGEST and expr.value.dtype.kind in "iub":
            return tuple(int(item) for item in expr.value.reshape(-1).tolist())
        return None if expr is None else self._known.get(expr)

    def _tree(self, expr: Expr | None) -> Tree | None:
        """Return how a tensor of one element is computed, or its element."""
        if expr is not None and expr in self._trees:
            return self._trees[expr]
        elements = self._elements_of(expr)
        return elements if elements is not None and len(elements) == 1 else None

    def is_size(self, expr: Expr) -> bool:
        """Return whether a tensor is known to contain a size that is not a constant."""
        return any(not isinstance(item, int) for item in self._elements_of(expr) or ())

    def know(self, expr: Expr, elements: Sizes) -> None:
        """Record the elements of an integer tensor."""
        self._known[expr] = elements

    def elements(self, value: Value, values: Mapping[Value, Expr]) -> Sizes | None:
        """Return the elements of an integer tensor as numbers and expressions of sizes, or None if they are unknown."""
        expr = values.get(value)
        if expr is None:
            return None
        if isinstance(expr, Constant):
            return self._elements_of(expr)
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
        if operation.name in _SOURCES:
            return _source_elements(operation, values)
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


def is_small_integer(value: Value) -> bool:
    """Return whether a value is a small tensor of integers or bools, whose elements can be followed."""
    return _can_be_size(value) or (
        isinstance(value.type, Tensor) and str(value.type.element) == "i1" and bool(_count(value))
    )


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


def _source_elements(operation: Operation, values: Mapping[Value, Expr]) -> Sizes | None:
    """Return the elements of a constant or of a size, or None if they are not integers or not known."""
    if operation.name == "stablehlo.get_dimension_size":
        operand = values[operation.operands[0]].tensor_type
        axis = operation.attributes.get("dimension")
        return None if operand.shape is None or not isinstance(axis, int) else (operand.shape[axis],)
    (value,) = operation.results
    attribute = operation.attributes.get("value")
    if not isinstance(attribute, Elements) or attribute.array.dtype.kind not in "iub" or _count(value) is None:
        return None
    return tuple(map(int, np.broadcast_to(attribute.array, _shape(value)).reshape(-1).tolist()))


def _same(operation: Operation, operands: list[Sizes]) -> Sizes:
    return operands[0]


def _broadcast(operation: Operation, operands: list[Sizes]) -> Sizes | None:
    (values,) = operands
    return values * (_count(operation.results[0]) or 0) if len(values) == 1 else None


def _concatenated(operation: Operation, operands: list[Sizes]) -> Sizes | None:
    """Return the elements of a concatenation along the first axis."""
    if operation.attributes.get("dimension") != 0:
        return None
    return tuple(item for operand in operands for item in operand)


def _sliced(operation: Operation, operands: list[Sizes]) -> Sizes | None:
    starts, limits, strides = (
        operation.attributes.get(f"{name}s") for name in ("start_indice", "limit_indice", "stride")
    )
    if not (starts and limits and strides) or len(starts) != 1:
        return None
    return operands[0][starts[0] : limits[0] : strides[0]]


def _elementwise(function: Callable[[AnyDim, AnyDim], AnyDim]) -> Callable[[Operation, list[Sizes]], Sizes]:
    return lambda operation, operands: tuple(function(x, y) for x, y in zip(*operands, strict=True))


def _rounded_down(tree: Tree) -> AnyDim | None:
    """Return the quotient or the remainder that `tree` computes, or None if it does not match.

    JAX computes them for expressions of sizes, which can be negative, by operations that round toward zero.  The
    divisor is a positive number.
    """
    match tree:
        case (
            "select",
            ("and", ("NE", ("sign", (x,)), (1,)), ("NE", ("remainder", (x2,), (int(y),)), (0,))),
            ("subtract", ("divide", (x3,), (int(y3),)), (1,)),
            ("divide", (x4,), (int(y4),)),
        ) if y > 0 and x == x2 == x3 == x4 and y == y3 == y4:
            return dim_op("floordiv", x, y)
        case (
            "select",
            ("and", ("NE", ("LT", ("remainder", (x,), (int(y),)) as found, (0,)), (0,)), ("NE", found2, (0,))),
            ("add", found3, (int(y2),)),
            found4,
        ) if y > 0 and y == y2 and found == found2 == found3 == found4:
            return dim_op("mod", x, y)
    return None


def _quotient(x: AnyDim, y: AnyDim) -> AnyDim:
    """Return the quotient of StableHLO, which rounds toward zero.  An expression of unknown sign counts as positive.

    Raise ValueError if an operand is a negative number, or if y is 0.
    """
    if any(isinstance(each, int) and each < 0 for each in (x, y)) or y == 0:
        raise ValueError
    return -dim_op("floordiv", -x, y) if is_never_negative(-x) else dim_op("floordiv", x, y)


def _remainder(x: AnyDim, y: AnyDim) -> AnyDim:
    """Return the remainder of StableHLO, which has the sign of x, under the conditions of `_quotient`."""
    if any(isinstance(each, int) and each < 0 for each in (x, y)) or y == 0:
        raise ValueError
    return -dim_op("mod", -x, y) if is_never_negative(-x) else dim_op("mod", x, y)


def _compared(operation: Operation, operands: list[Sizes]) -> Sizes | None:
    """Return the result of a comparison of numbers, as 0 and 1, or None for expressions of sizes."""
    compare = _COMPARISONS.get(str(operation.attributes.get("comparison_direction")))
    numbers = [item for operand in operands for item in operand]
    if compare is None or not all(isinstance(item, int) for item in numbers):
        return None
    return tuple(int(compare(x, y)) for x, y in zip(*operands, strict=True))


def _selected(operation: Operation, operands: list[Sizes]) -> Sizes | None:
    """Return the elements that known numbers select, or None if expressions of sizes select them."""
    conditions, yes, no = operands
    if len(conditions) == 1:
        conditions = conditions * len(yes)
    if not all(isinstance(item, int) for item in conditions):
        return None
    return tuple(x if item else y for item, x, y in zip(conditions, yes, no, strict=True))


def _signs(operation: Operation, operands: list[Sizes]) -> Sizes | None:
    numbers = known_sizes(operands[0])
    return None if numbers is None else tuple((x > 0) - (x < 0) for x in numbers)


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}
_SOURCES = frozenset(("stablehlo.constant", "stablehlo.get_dimension_size"))
# The operations of which JAX composes a division that rounds down.
_TREES = frozenset(("add", "and", "compare", "divide", "remainder", "select", "sign", "subtract"))
_ROUNDING = ("divide", "remainder")  # their elements are not known if an operand is negative
_RULES: dict[str, Callable[..., Any]] = {
    "stablehlo.convert": _same,
    "stablehlo.reshape": _same,
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.concatenate": _concatenated,
    "stablehlo.slice": _sliced,
    "stablehlo.add": _elementwise(lambda x, y: x + y),
    "stablehlo.subtract": _elementwise(lambda x, y: x - y),
    "stablehlo.multiply": _elementwise(lambda x, y: x * y),
    "stablehlo.compare": _compared,
    "stablehlo.select": _selected,
    "stablehlo.sign": _signs,
    "stablehlo.divide": _elementwise(_quotient),
    "stablehlo.remainder": _elementwise(_remainder),
    "stablehlo.maximum": _elementwise(lambda x, y: dim_op("max", x, y)),
    "stablehlo.minimum": _elementwise(lambda x, y: dim_op("min", x, y)),
}
_FOLLOWED = _RULES.keys() | _SOURCES
