"""The registry of converters, and the operation that a converter receives."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

import numpy as np

import relvm.ops as relvm_ops
from relvm.data_classes import value_record
from relvm.errors import RelvmFormatError, RelvmUnsupportedError, counted
from relvm.frontend.common.node_context import NodeContext
from relvm.frontend.stablehlo import ops
from relvm.frontend.stablehlo.context import ImportContext
from relvm.frontend.stablehlo.element_types import dtype_of_element
from relvm.frontend.stablehlo.program import Block, Elements, Operation, Tensor, Value
from relvm.ir.dtypes import F32, I8, U8, DType
from relvm.ir.expr import Constant, Expr, constant
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import TensorType

Converter = Callable[["Node"], Any]

_converters: dict[str, Converter] = {}
_complex_converters: dict[str, Converter] = {}
_REFUSED: dict[str, str] = {}
_refusals: dict[str, Callable[[Operation], str]] = {}


def converts(*names: str) -> Callable[[Converter], Converter]:
    """Return a decorator that registers a function as the converter of operations.

    A converter takes a node, and returns the value of its result, or a tuple of values if it has several results.

    names: the names of the operations.  The dialect is `stablehlo` if a name has none.
    """

    return _declares(_converters, names)


def converts_complex(*names: str) -> Callable[[Converter], Converter]:
    """Return a decorator that registers a function as the converter of operations on complex numbers.

    names: as for `converts`.
    """

    return _declares(_complex_converters, names)


def _declares(converters: dict[str, Converter], names: tuple[str, ...]) -> Callable[[Converter], Converter]:
    def declare(function: Converter) -> Converter:
        for name in map(_full_name, names):
            assert name not in converters, f"{name} has two converters"
            converters[name] = function
        return function

    return declare


def _full_name(name: str) -> str:
    return name if "." in name else f"stablehlo.{name}"


def complex_converter_for(name: str) -> Converter | None:
    """Return the converter of an operation on complex numbers, or None."""
    return _complex_converters.get(name)


def refuses(reason: str, *names: str) -> None:
    """State why operations are not supported.   names: as for `converts`."""
    _REFUSED.update((_full_name(name), reason) for name in names)


def refuses_some(name: str) -> Callable[[Callable[[Operation], str]], Callable[[Operation], str]]:
    """Return a decorator that registers a function that states why an operation `name` is not supported.

    The function returns "" if the operation has a converter that supports it.   name: as for `converts`.
    """

    def declare(function: Callable[[Operation], str]) -> Callable[[Operation], str]:
        _refusals[_full_name(name)] = function
        return function

    return declare


def import_converters() -> None:
    """Import every module of relvm.frontend.stablehlo.ops, so that all converters are registered."""
    for module in pkgutil.iter_modules(ops.__path__, f"{ops.__name__}."):
        importlib.import_module(module.name)


def converter_for(name: str) -> Converter | None:
    """Return the converter that is registered for an operation, or None."""
    return _converters.get(name)


def reason_for_refusal(operation: Operation) -> str:
    """Return why an operation is not supported, or "" if no reason is stated."""
    if operation.name in _refusals:
        return _refusals[operation.name](operation)
    return _REFUSED.get(operation.name, "")


def supported_operations() -> list[str]:
    """Return the names of the supported operations."""
    return sorted(_converters)


def refused_operations() -> dict[str, str]:
    """Return the names of operations that are refused, with the reasons."""
    return dict(sorted(_REFUSED.items()))


@value_record
class Node(NodeContext):
    """An operation that is being converted.

    importer: the importer, to which the converter adds bindings.
    operation: the operation.
    operands: the values of the operands.
    values: the values of the block that contains the operation, which nested blocks can use.
    """

    importer: ImportContext
    operation: Operation
    operands: list[Expr]
    values: dict[Value, Expr]

    # ---- attributes ----

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return an attribute, or `default` if the operation does not have it."""
        return self.operation.attributes.get(name, default)

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an integer attribute.  Raise RelvmFormatError if it is missing and `default` is None."""
        value = self.attribute(name, default)
        if not isinstance(value, int):
            raise RelvmFormatError(f"expected the integer attribute {name}, got {value!r}")
        return int(value)

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.attribute(name, default)
        if not isinstance(value, bool):
            raise RelvmFormatError(f"expected the attribute {name} to be true or false, got {value!r}")
        return value

    def word(self, name: str, choices: tuple[str, ...], default: str = "") -> str:
        """Return an attribute that is an enumeration.  Raise RelvmFormatError if it is none of `choices`."""
        value = self.attribute(name, default)
        if value not in choices:
            raise RelvmFormatError(f"attribute {name} is {value!r}, expected one of {', '.join(choices)}")
        return value

    def integers(self, name: str, count: int | None = None, default: int | None = None) -> tuple[int, ...]:
        """Return an attribute that is a list of integers.

        count: the number that is required, or None for any number.
        default: the value of all `count` integers if the attribute is missing, or None if it is required.  If `count`
        is None, a missing attribute is an empty list.
        """
        value = self.attribute(name)
        if value is None and (default is not None or count is None):
            return (default or 0,) * (count or 0)
        if not isinstance(value, tuple) or not all(isinstance(item, int) for item in value):
            raise RelvmFormatError(f"expected the attribute {name} to be a list of integers, got {value!r}")
        if count is not None and len(value) != count:
            raise RelvmFormatError(f"attribute {name} has {counted(len(value), 'integer')}, expected {count}")
        return tuple(map(int, value))

    def padding(self, name: str, rank: int) -> tuple[tuple[int, int], ...]:
        """Return an attribute with the padding before and after each axis, or zeros if it is missing."""
        value = self.attribute(name)
        if value is None:
            return ((0, 0),) * rank
        rows = value.array if isinstance(value, Elements) else np.array(value)
        if rows.ndim == 0:
            rows = np.broadcast_to(rows, (rank, 2))
        if rows.shape != (rank, 2) or rows.dtype.kind not in "iu":
            raise RelvmFormatError(f"attribute {name} has shape {list(rows.shape)}, expected [{rank}, 2]")
        return tuple((int(low), int(high)) for low, high in rows.tolist())

    # ---- types ----

    def type(self, index: int = 0) -> TensorType:
        """Return the type of an operand, which must be a tensor of known dtype and shape."""
        type_ = self.operands[index].type
        if not isinstance(type_, TensorType) or type_.dtype is None or type_.shape is None:
            raise RelvmUnsupportedError(f"operand {index} has type {type_}, expected a tensor of known rank")
        return type_

    def shape(self, index: int = 0) -> tuple[AnyDim, ...]:
        """Return the shape of an operand."""
        return self.type(index).known_shape

    def dtype(self, index: int = 0) -> DType:
        """Return the dtype of an operand."""
        return self.type(index).known_dtype

    def declared(self, index: int = 0) -> Tensor:
        """Return the declared type of a result, which must be a tensor."""
        results = self.operation.results
        type_ = results[index].type if index < len(results) else None
        if not isinstance(type_, Tensor):
            raise RelvmFormatError(f"result {index} has type {type_}, expected a tensor")
        return type_

    def result_dtype(self, index: int = 0) -> DType:
        """Return the dtype of a result."""
        return dtype_of_element(self.declared(index).element)

    def static_shape(self, index: int = 0) -> tuple[int, ...]:
        """Return the declared shape of a result.  Raise RelvmUnsupportedError if a dimension is not known."""
        shape = self.declared(index).shape
        if shape is None or any(dim is None for dim in shape):
            raise RelvmUnsupportedError(f"the result has type {self.declared(index)}, expected known dimensions")
        return tuple(dim for dim in shape if dim is not None)

    def expect_operands(self, *counts: int) -> None:
        """Raise RelvmFormatError if the number of operands is none of `counts`."""
        if len(self.operands) not in counts:
            expected = " or ".join([*map(str, counts[:-1]), counted(counts[-1], "operand")])
            raise RelvmFormatError(f"expected {expected}, got {len(self.operands)}")

    def block(self, index: int, count: int | None = None) -> Block:
        """Return the block of a region.  Raise RelvmFormatError if it does not have `count` arguments.

        count: the number of arguments, or None for any number.
        """
        regions = self.operation.regions
        if index >= len(regions) or len(regions[index].blocks) != 1:
            raise RelvmFormatError(f"expected region {index} to consist of one block")
        block = regions[index].blocks[0]
        if count is not None and len(block.arguments) != count:
            raise RelvmFormatError(f"region {index} has {counted(len(block.arguments), 'argument')}, expected {count}")
        return block

    # ---- expressions ----

    def cast(self, x: Expr, dtype: DType) -> Expr:
        """Return x converted to a dtype.  Return x itself if it has this dtype."""
        return x if x.element_type == dtype else self.emit(relvm_ops.cast(x, to=dtype.name))

    @staticmethod
    def as_tuple(value: Any) -> tuple[Expr, ...]:
        return value if isinstance(value, tuple) else (value,)

    def elements(self, index: int) -> tuple[AnyDim, ...] | None:
        """Return the elements of an operand, a small integer tensor, if they are known when the program is imported."""
        return self.importer.symbolic.elements(self.operation.operands[index], self.values)

    def sizes(self, index: int) -> tuple[AnyDim, ...]:
        """Return the elements of an operand, a small integer tensor, as sizes.

        A size that is known only at run time becomes a new dimension variable.
        """
        return self.importer.symbolic.sizes(self.operation.operands[index], self.values)

    def number(self, value: float, dtype: DType) -> Constant:
        """Return a constant of rank 0."""
        return constant(np.asarray(value).astype(dtype.numpy))

    def rounded(self, function: Callable[..., Expr], *args: Expr) -> Expr:
        """Return `function(*args)`, computed in f32 and rounded if the arguments are narrower floats.

        Every operation of StableHLO rounds its result to its own type.  Integers of less than 8 bits are computed in
        8 bits, of which the lower ones are kept.
        """
        dtype = args[0].known_element_type
        computed = F32 if dtype.is_narrow_float else dtype
        if dtype.is_integer and dtype.bits < 8:
            computed = I8 if dtype.is_signed else U8
        if computed == dtype:
            return self.emit(function(*args))
        wide = [self.cast(arg, computed) if arg.known_element_type == dtype else arg for arg in args]
        result = self.emit(function(*wide))
        return self.cast(result, dtype) if result.element_type == computed else result
