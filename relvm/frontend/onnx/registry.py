"""The table of converters, and what a converter is given."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from relvm.errors import RelvmFormatError, RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.onnx import ops
from relvm.frontend.onnx.context import ImportContext
from relvm.frontend.onnx.values import HostValue
from relvm.ir.expr import Constant, Expr, Shape
from relvm.ir.operator import SizeClaim
from relvm.ir.symbolic import AnyDim, exact_quotient
from relvm.ir.types import TensorType

Converter = Callable[["OnnxNode"], Any]

_converters: dict[tuple[str, str], Converter] = {}


MAX_RANK_SPLITS = 5  # each may double the program


class RankSplit(Exception):
    """A node gives tensors of one rank or of another: what follows is imported behind each of two ways.

    cond: an expression.  ways: of where it holds and where it does not, each gives the node's values in a graph.
    """

    def __init__(self, cond: Expr, ways: tuple[Callable[[ImportContext], list[Any]], ...]) -> None:
        self.cond = cond
        self.ways = ways


def converts(*op_types: str, domain: str = "") -> Callable[[Converter], Converter]:
    """Declares the converter of ONNX operators: it gives an expression, a host value, or a tuple of them."""

    def declare(function: Converter) -> Converter:
        for op_type in op_types:
            assert (domain, op_type) not in _converters, f"{op_type} has two converters"
            _converters[domain, op_type] = function
        return function

    return declare


def import_converters() -> None:
    """Import every module of relvm.frontend.onnx.ops, each of which declares converters."""
    for module in pkgutil.walk_packages(ops.__path__, f"{ops.__name__}."):
        importlib.import_module(module.name)


def converter_for(domain: str, op_type: str) -> Converter | None:
    """The converter of an operator; None where there is none."""
    return _converters.get((domain, op_type))


def supported() -> list[str]:
    """The names of the operators that can be imported."""
    return sorted(f"{domain}.{name}" if domain else name for domain, name in _converters)


@dataclass(frozen=True)
class OnnxNode:
    """One node: its inputs' values (None: left out), its attributes, and the graph that it is emitted into.

    here: for messages: the model, the node, the operator and the opset.
    """

    graph: ImportContext
    proto: Any
    opset: int
    here: str
    inputs: list[Expr | HostValue | None]

    def attribute(self, name: str, default: Any = None) -> Any:
        """The attribute as a Python value: text as str, tensors as arrays, graphs as they are."""
        from onnx import helper

        for attribute in self.proto.attribute:
            if attribute.name == name:
                value = helper.get_attribute_value(attribute)
                if attribute.type == attribute.TENSOR:
                    return self.graph.file.array(value, f"{self.here}: attribute {name}")
                if attribute.type == attribute.STRINGS:
                    return [text.decode() for text in value]
                return value.decode() if isinstance(value, bytes) else value
        return default

    def require_equal(self, left: AnyDim, right: AnyDim, message: str) -> None:
        """Check that two sizes are equal: now, or when the model runs.  message: with two {}, which are the sizes."""
        self.graph.require(SizeClaim("equal", left, right, f"{self.here}: {message}"))

    def require_at_most(self, left: AnyDim, right: AnyDim, message: str) -> None:
        """The same of `left <= right`."""
        self.graph.require(SizeClaim("at_most", left, right, f"{self.here}: {message}"))

    def exact_quotient(self, dim: AnyDim, divisor: int, what: str) -> AnyDim:
        """`dim / divisor`, which must have no remainder.  what: the name of what is divided, as in "channels".

        Raises
        ------
        RelvmShapeError
            There is a remainder for every value of the dimension.
        """
        exact = exact_quotient(dim, divisor)
        if exact is None:
            exact = dim // divisor
            self.require_equal(dim, exact * divisor, f"{{}} {what}, expected a multiple of {divisor}, as {{}} is")
        return exact

    def axis(self, default: int, rank: int, name: str = "axis", end: int = 0) -> int:
        """The attribute, an axis of a tensor of that rank, counted from 0.  end: how many places behind the last axis
        it may name; RelvmShapeError where it is outside."""
        axis = self.attribute(name, default)
        if not -rank <= axis < rank + end:
            raise RelvmShapeError(f"{name} is {axis}, outside [-{rank}, {rank + end})")
        return axis + rank if axis < 0 else axis

    def has(self, index: int) -> bool:
        """Whether the optional input is there."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def tensor(self, index: int) -> Expr:
        """Input `index` as a tensor expression; RelvmFormatError where it is missing."""
        if not self.has(index):
            raise RelvmFormatError(f"{self.here}: input {index} is missing")
        return self.graph.tensor(self.inputs[index])

    def tensors(self) -> list[Expr]:
        return [self.tensor(i) for i in range(len(self.inputs))]

    def type(self, index: int) -> TensorType:
        """The type of input `index`, whose rank and dtype are known."""
        found = self.tensor(index).type
        if not isinstance(found, TensorType) or found.rank is None or found.dtype is None:
            raise RelvmUnsupportedError(f"{self.here}: input {index} has type {found}: its rank must be known")
        return found

    def known_shape(self, index: int) -> Expr:
        """Input `index`, its sizes named where only the machine knows them; its rank is known."""
        self.type(index)
        return self.graph.known_shape(self.tensor(index))

    def known(self, index: int, what: str) -> np.ndarray:
        """Input `index` as an array of numbers known at compile time."""
        value = self.inputs[index]
        match value:
            case Constant(value=array):
                return array
            case HostValue(array=array) if not value.is_symbolic:
                return array.astype(np.int64)
        raise RelvmUnsupportedError(f"{self.here}: {what} must be known when the model is imported")

    def dims(self, index: int, what: str) -> list[AnyDim]:
        """Input `index`, a list of dimensions, symbolic ones included."""
        match self.inputs[index]:
            case HostValue(array=array) | Constant(value=array) if array.ndim > 1:
                raise RelvmShapeError(f"{what}: numbers of shape {array.shape}, expected a list of them")
            case HostValue(array=array):
                return [dim if not isinstance(dim, np.integer) else int(dim) for dim in array.reshape(-1)]
            case Constant(value=array):
                return [int(dim) for dim in array.reshape(-1)]
        raise RelvmUnsupportedError(
            f"{self.here}: {what} must be known, or made of dimensions, when the model is imported"
        )

    def emit(self, expr: Expr) -> Expr:
        """A variable bound to an intermediate result."""
        return self.graph.emit(expr, self.proto.output[0])

    def shape(self, dims: list[AnyDim]) -> Shape:
        return Shape(tuple(dims))
