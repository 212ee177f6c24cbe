"""The registry of converters, and the node that a converter receives."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from relvm.data_classes import value_record
from relvm.errors import (
    RelvmArgumentError,
    RelvmFormatError,
    RelvmShapeError,
    RelvmUnsupportedError,
    counted,
    shortened,
)
from relvm.frontend.onnx.context import ImportContext
from relvm.frontend.onnx.converter_modules import CONVERTER_MODULES
from relvm.frontend.onnx.values import HostValue
from relvm.frontend.onnx_messages import ATTRIBUTE_TYPES, Message, attribute_value
from relvm.ir.expr import Constant, Expr, Shape, TupleItem
from relvm.ir.operator import SizeClaim
from relvm.ir.symbolic import AnyDim, exact_quotient
from relvm.ir.types import TensorType, TupleType

Converter = Callable[["OnnxNode"], Any]

_converters: dict[tuple[str, str], Converter] = {}


MAX_RANK_SPLITS = 5  # each split may double the size of the program


class RankSplit(Exception):
    """Raised by a converter if the rank of the node's outputs depends on a condition known only at run time.

    The importer then imports all later nodes twice: once for a true condition, and once for a false one.

    cond: the condition, an expression.
    branches: two functions that import the node, for a true and for a false condition.  Each takes the context of its
    branch, and returns the values of the node's outputs.
    """

    def __init__(self, cond: Expr, branches: tuple[Callable[[ImportContext], list[Any]], ...]) -> None:
        self.cond = cond
        self.branches = branches


def converts(*op_types: str, domain: str = "") -> Callable[[Converter], Converter]:
    """Return a decorator that registers a function as the converter of the given ONNX operators.

    A converter takes a node, and returns the value of its output, or a tuple if the node has several outputs.  A value
    is an expression, or a HostValue, which is a tensor whose elements are known at import time.
    """

    def declare(function: Converter) -> Converter:
        for op_type in op_types:
            assert (domain, op_type) not in _converters, f"{op_type} has two converters"
            _converters[domain, op_type] = function
        return function

    return declare


def converter_for(domain: str, op_type: str) -> Converter | None:
    """Return the converter of an operator, or None.  Import the module that declares it, if it was not imported yet."""
    if (domain, op_type) not in _converters:
        module = CONVERTER_MODULES.get(_full_name(domain, op_type))
        if module:
            importlib.import_module(module)
    return _converters.get((domain, op_type))


def supported_operators() -> list[str]:
    """Return the names of the supported operators."""
    return sorted(CONVERTER_MODULES.keys() | {_full_name(*operator) for operator in _converters})


def _full_name(domain: str, op_type: str) -> str:
    return f"{domain}.{op_type}" if domain else op_type


@value_record
class OnnxNode:
    """An ONNX node that is being converted.

    graph: the context of the graph, to which the converter adds bindings.
    proto: the NodeProto.
    opset: the opset version of the node's domain.
    here: the beginning of error messages, which names the model, the node, the operator and the opset.
    inputs: the values of the inputs, with None for an omitted input.
    """

    graph: ImportContext
    proto: Message
    opset: int
    here: str
    inputs: list[Expr | HostValue | None]

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return an attribute as a Python value: strings as str, tensors as arrays, graphs unchanged.

        default: the result if the node does not have the attribute.
        """
        for attribute in self.proto.attribute:
            if attribute.name == name:
                value = attribute_value(attribute)
                if attribute.type == ATTRIBUTE_TYPES["TENSOR"]:
                    return self.graph.file.array(value, f"{self.here}: attribute {name}")
                try:
                    if attribute.type == ATTRIBUTE_TYPES["STRINGS"]:
                        return [text.decode() for text in value]
                    return value.decode() if isinstance(value, bytes) else value
                except UnicodeDecodeError:
                    raise RelvmFormatError(f"{self.here}: attribute {name} is not valid UTF-8") from None
        return default

    def integer(self, name: str, default: int | None = None, *, least: int, most: int | None = None) -> int:
        """Return the attribute `name`, an integer.  Raise RelvmArgumentError if it is less than `least` or more than
        `most`.

        default: the value if the attribute is missing.
        most: None stands for any integer.
        """
        value = self.attribute(name, default)
        if value < least or (most is not None and value > most):
            limit = f"an integer of at least {least}" if most is None else f"{least} to {most}"
            raise RelvmArgumentError(f"{name} is {value}, expected {limit}")
        return value

    def integers(self, name: str, count: int, default: int, *, least: int | None = None) -> tuple[int, ...]:
        """Return the attribute `name`, a list of integers.

        Raise RelvmArgumentError if it does not have `count` integers, or if one is less than `least`.

        default: the value of each integer if the attribute is missing.
        least: None stands for any integer.
        """
        values = tuple(self.attribute(name, (default,) * count))
        if len(values) != count:
            raise RelvmArgumentError(f"{name} is {list(values)}, expected {counted(count, 'integer')}")
        if least is not None and any(value < least for value in values):
            raise RelvmArgumentError(f"{name} is {list(values)}, expected values of at least {least}")
        return values

    def number_array(self, name: str) -> np.ndarray | None:
        """Return an attribute, a list of numbers or a tensor, as an array, or None if the node does not have it.

        For a long list, this takes much less time and memory than `attribute`.
        """
        for attribute in self.proto.attribute:
            if attribute.name == name:
                if attribute.type == ATTRIBUTE_TYPES["INTS"]:
                    return np.array(attribute.ints, np.int64)
                if attribute.type == ATTRIBUTE_TYPES["FLOATS"]:
                    return np.array(attribute.floats, np.float32)
        return self.attribute(name)

    def string_indices(self, name: str, names: Sequence[str]) -> np.ndarray:
        """Return the index in `names` of each string of the attribute `name`.

        Return an empty array if the node does not have the attribute.  Raise RelvmUnsupportedError if a string is not
        in `names`.
        """
        numbers = {text.encode(): number for number, text in enumerate(names)}
        for attribute in self.proto.attribute:
            if attribute.name == name:
                try:
                    return np.fromiter(map(numbers.__getitem__, attribute.strings), np.uint8, len(attribute.strings))
                except KeyError as error:
                    text = shortened(error.args[0].decode(errors="replace"))
                    raise RelvmUnsupportedError(f"mode {text!r} in {name} is not supported") from None
        return np.empty(0, np.uint8)

    def require_equal(self, left: AnyDim, right: AnyDim, message: str) -> None:
        """Check that two sizes are equal, at import time if possible, otherwise at run time.

        message: the error message, in which {} stands twice: first for `left`, then for `right`.
        """
        self.graph.require(SizeClaim("equal", left, right, f"{self.here}: {message}"))

    def require_at_most(self, left: AnyDim, right: AnyDim, message: str) -> None:
        """Check that `left <= right`, at import time if possible, otherwise at run time.

        message: the error message, in which {} stands twice: first for `left`, then for `right`.
        """
        self.graph.require(SizeClaim("at_most", left, right, f"{self.here}: {message}"))

    def exact_quotient(self, dim: AnyDim, divisor: int, what: str) -> AnyDim:
        """Return `dim / divisor`, and check that the division has no remainder.

        The check is made at import time if possible, otherwise at run time.

        what: a description of `dim` for the error message, such as "channels".

        Raises
        ------
        RelvmShapeError
            The division has a remainder for all values of the dimension variables of `dim`.
        """
        exact = exact_quotient(dim, divisor)
        if exact is None and isinstance(dim, int):
            raise RelvmShapeError(f"{dim} {what}, expected a multiple of {divisor}")
        if exact is None:
            exact = dim // divisor
            self.require_equal(dim, exact * divisor, f"{{}} {what}, expected a multiple of {divisor} such as {{}}")
        return exact

    def axis(self, default: int, rank: int, name: str = "axis", end: int = 0) -> int:
        """Return the attribute `name`, an axis of a tensor of rank `rank`, as a non-negative integer.

        Raise RelvmShapeError if the axis is out of range.

        default: the value if the attribute is missing.
        end: 1 if the attribute may also be `rank`, the position after the last axis, otherwise 0.
        """
        axis = self.attribute(name, default)
        if not -rank <= axis < rank + end:
            raise RelvmShapeError(f"{name} is {axis}, which is outside [-{rank}, {rank + end})")
        return axis + rank if axis < 0 else axis

    def expect_rank(self, index: int, rank: int, what: str) -> None:
        """Raise RelvmShapeError if input `index` does not have rank `rank`.

        what: the name of the input, for the message.
        """
        found = self.type(index)
        if found.rank != rank:
            raise RelvmShapeError(f"{what} is {found}, expected rank {rank}")

    def has(self, index: int) -> bool:
        """Return whether the node has the optional input `index`."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def value(self, index: int) -> Expr | HostValue:
        """Return input `index`.  Raise RelvmFormatError if it is missing."""
        value = self.inputs[index] if index < len(self.inputs) else None
        if value is None:
            raise RelvmFormatError(f"{self.here}: input {index} is missing")
        return value

    def tensor(self, index: int) -> Expr:
        """Return input `index` as an expression.  A HostValue, whose elements are known at import time, is converted.

        Raise RelvmFormatError if the input is missing.
        """
        return self.graph.tensor(self.value(index))

    def tensors(self) -> list[Expr]:
        return [self.tensor(i) for i in range(len(self.inputs))]

    def type(self, index: int) -> TensorType:
        """Return the type of input `index`, which must be a tensor.

        Raise RelvmUnsupportedError if its rank or dtype is unknown.
        """
        found = self.tensor(index).type
        if not isinstance(found, TensorType) or found.rank is None or found.dtype is None:
            raise RelvmUnsupportedError(f"{self.here}: input {index} has type {found}, expected a known rank")
        return found

    def known_shape(self, index: int) -> Expr:
        """Return input `index` as a tensor expression whose sizes all have names.

        If the sizes are only known at run time, each size becomes a new dimension variable.  Raise
        RelvmUnsupportedError if the rank is not known.
        """
        self.type(index)
        return self.graph.known_shape(self.tensor(index))

    def known_array(self, index: int, what: str) -> np.ndarray:
        """Return the elements of input `index` as a NumPy array.

        Raise RelvmUnsupportedError if they are not known at import time.

        what: a description of the input for error messages.
        """
        value = self.inputs[index]
        match value:
            case Constant(value=array):
                return array
            case HostValue(array=array) if not value.is_symbolic:
                return array.astype(np.int64)
        raise RelvmUnsupportedError(f"{self.here}: {what} must be known when the model is imported")

    def dims(self, index: int, what: str) -> list[AnyDim]:
        """Return the elements of input `index`, a tensor of integers, as a list of dimensions, which can be symbolic.

        Raise RelvmUnsupportedError if they are not known at import time, and RelvmShapeError if the rank is above 1.

        what: a description of the input for error messages.
        """
        match self.inputs[index]:
            case HostValue(array=array) | Constant(value=array) if array.ndim > 1:
                raise RelvmShapeError(f"{what} has shape {array.shape}, expected rank 0 or 1")
            case HostValue(array=array):
                return [dim if not isinstance(dim, np.integer) else int(dim) for dim in array.reshape(-1)]
            case Constant(value=array):
                return [int(dim) for dim in array.reshape(-1)]
        raise RelvmUnsupportedError(
            f"{self.here}: {what} must be constant or computed from dimensions when the model is imported"
        )

    def emit(self, expr: Expr) -> Expr:
        """Bind an intermediate result to a variable and return the variable."""
        return self.graph.emit(expr, self.proto.output[0])

    def fields(self, value: Expr) -> list[Expr]:
        """Bind each field of the tuple `value` to a variable.  Return the variables."""
        assert isinstance(value.type, TupleType)
        return [self.emit(TupleItem(value, i, type=type_)) for i, type_ in enumerate(value.type.fields)]

    def shape(self, dims: Iterable[AnyDim]) -> Shape:
        return Shape(tuple(dims))
