"""An MLIR program in memory.  Both readers, of the text form and of portable artifacts, create this form.

Attributes are plain Python values, so that converters need not know how an attribute was written:

    integer, float, bool, string     int, float, bool, str
    unit attribute                   True
    enumeration, such as `LT`        str
    array, array<i64: ...>           tuple
    dictionary                       dict
    dense elements                   Elements
    symbol, @name                    Symbol
    type                             a type of this file
    structure, #stablehlo.gather<>   dict, which `operations.flattened` merges into the attributes of the operation
    anything else                    Opaque
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any

import numpy as np

from relvm.data_classes import dataclass, record, value_record
from relvm.errors import RelvmFormatError, counted

# ---- types ----


@value_record
class ElementType:
    """A type of elements: `f32`, `i1`, `ui8`, `index`, `complex<f32>` and so on."""

    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def is_complex(self) -> bool:
        return self.name.startswith("complex<")

    @property
    def part(self) -> ElementType:
        """The type of the two parts of a complex number."""
        return ElementType(self.name.removeprefix("complex<").removesuffix(">"))


@value_record
class QuantizedType:
    """A quantized type of elements: `!quant.uniform<storage:expressed, scale:zero_point>`.

    An element q of the storage type stands for the number (q - zero_point) * scale.

    axis: the axis along which the scales and zero points vary, or None if there is a single scale.
    minimum, maximum: the range of the storage type.
    """

    storage: ElementType
    expressed: ElementType
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int | None
    minimum: int
    maximum: int

    def __str__(self) -> str:
        return f"!quant.uniform<{self.storage}:{self.expressed}>"


@value_record
class Tensor:
    """The type of a tensor.

    shape: the dimensions, of which unknown ones are None, or None if the rank is unknown.
    """

    element: ElementType | QuantizedType
    shape: tuple[int | None, ...] | None

    def __str__(self) -> str:
        if self.shape is None:
            return f"tensor<*x{self.element}>"
        dims = "".join(f"{'?' if dim is None else dim}x" for dim in self.shape)
        return f"tensor<{dims}{self.element}>"


@value_record
class TupleOf:
    """The type of a tuple."""

    items: tuple[AnyType, ...]

    def __str__(self) -> str:
        return f"tuple<{', '.join(map(str, self.items))}>"


@value_record
class FunctionOf:
    """The type of a function."""

    inputs: tuple[AnyType, ...]
    results: tuple[AnyType, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.inputs))}) -> ({', '.join(map(str, self.results))})"


@value_record
class Token:
    """The type of a token, which orders side effects."""

    def __str__(self) -> str:
        return "!stablehlo.token"


@value_record
class Opaque:
    """A type or an attribute that the reader does not interpret.   text: the text, or a description of it."""

    text: str

    def __str__(self) -> str:
        return self.text


AnyType = ElementType | QuantizedType | Tensor | TupleOf | FunctionOf | Token | Opaque

# ---- attributes ----


@value_record
class Symbol:
    """A reference to a function: `@name`."""

    name: str


@record
class Elements:
    """Dense elements.

    type: the type of the tensor.
    array: the elements in an array of this shape.  A narrow type has a dtype of ml_dtypes.
    """

    type: Tensor
    array: np.ndarray


Attributes = dict[str, Any]

# ---- operations ----


@dataclass(eq=False)
class Value:
    """A result of an operation, or an argument of a block.   name: the name in the text, without %, or ""."""

    type: AnyType
    name: str = ""


@dataclass(eq=False)
class Operation:
    """An operation.

    name: the name with its dialect, such as `stablehlo.add`.  Operations of the versioned dialect have the names of
    StableHLO.
    place: the position in the file: `FILE:LINE:COLUMN`, or `FILE: offset N`.
    location: the location that the file records for the operation, such as a line of a Python program, or "".
    """

    name: str
    place: str
    operands: tuple[Value, ...] = ()
    results: tuple[Value, ...] = ()
    attributes: Attributes = field(default_factory=dict)
    regions: tuple[Region, ...] = ()
    location: str = ""


@dataclass(eq=False)
class Block:
    """A block: operations in order."""

    arguments: tuple[Value, ...]
    operations: list[Operation]


@dataclass(eq=False)
class Region:
    """A region: its blocks, of which a StableHLO program has at most one."""

    blocks: list[Block]


@dataclass(eq=False)
class Function:
    """A function of a program.

    is_private: whether only the program itself calls the function.
    """

    name: str
    type: FunctionOf
    body: Block
    is_private: bool
    place: str
    argument_attributes: tuple[Attributes, ...] = ()
    result_attributes: tuple[Attributes, ...] = ()


@dataclass(eq=False)
class Program:
    """A program.

    place: the name of the file, for messages.
    functions: the functions, by name.
    platform_index: the value of the argument `_platform_index` of `main`, if JAX exported the program for several
    platforms.
    """

    place: str
    functions: dict[str, Function]
    platform_index: int | None = None


def program_of(module: Operation, place: str) -> Program:
    """Return the program that the operation `module`, a builtin.module, contains.

    Raises
    ------
    RelvmFormatError
        The module is malformed.
    """
    functions: dict[str, Function] = {}
    for operation in _operations(module):
        if operation.name in ("builtin.module", "module"):
            functions.update(program_of(operation, place).functions)
            continue
        if operation.name != "func.func":
            continue
        function = _function_of(operation)
        if function is None:
            continue
        if function.name in functions:
            raise RelvmFormatError(f"{operation.place}: two functions are named {function.name}")
        functions[function.name] = function
    return Program(place, functions)


def _operations(module: Operation) -> Iterator[Operation]:
    for region in module.regions:
        for block in region.blocks:
            yield from block.operations


def _function_of(operation: Operation) -> Function | None:
    """Return the function that a func.func operation defines, or None if it only declares it."""
    attributes = operation.attributes
    name, type_ = attributes.get("sym_name"), attributes.get("function_type")
    if not isinstance(name, str) or not isinstance(type_, FunctionOf):
        raise RelvmFormatError(f"{operation.place}: func.func: expected the attributes sym_name and function_type")
    blocks = [block for region in operation.regions for block in region.blocks]
    if not blocks:
        return None
    if len(blocks) != 1:
        raise RelvmFormatError(f"{operation.place}: function {name} has {counted(len(blocks), 'block')}, expected 1")
    (body,) = blocks
    types = tuple(argument.type for argument in body.arguments)
    if types != type_.inputs:
        raise RelvmFormatError(
            f"{operation.place}: function {name} has the type {type_}, but its body has arguments of the types"
            f" ({', '.join(map(str, types))})"
        )
    return Function(
        name,
        type_,
        body,
        attributes.get("sym_visibility") == "private",
        operation.place,
        _dictionaries(attributes.get("arg_attrs")),
        _dictionaries(attributes.get("res_attrs")),
    )


def _dictionaries(attribute: Any) -> tuple[Attributes, ...]:
    if not isinstance(attribute, tuple):
        return ()
    return tuple(item if isinstance(item, dict) else {} for item in attribute)
