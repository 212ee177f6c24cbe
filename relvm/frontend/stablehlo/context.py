"""The part of the importer that converters use."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.common.node_context import ModuleContext
from relvm.frontend.stablehlo.element_types import dtype_of_element
from relvm.frontend.stablehlo.program import (
    AnyType,
    Block,
    Elements,
    ElementType,
    Operation,
    Program,
    Tensor,
    TupleOf,
    Value,
)
from relvm.frontend.stablehlo.symbolic_values import SymbolicValues
from relvm.ir.expr import Expr, Shape, constant
from relvm.ir.symbolic import AnyDim, dim_var
from relvm.ir.types import TensorType, TupleType, Type


class ImportContext(ModuleContext):
    """The import of one program.

    symbolic: the elements of integer tensors that are known as numbers or sizes.
    operation: the operation that is being converted, or None.
    inlines_all: whether all functions are inlined where they are called.
    """

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program
        self.symbolic = SymbolicValues(self)
        self.operation: Operation | None = None
        self.inlines_all = False

    def place_of_node(self) -> str:
        return "" if self.operation is None else f"{self.operation.place}: {self.operation.name}"

    @abstractmethod
    def import_block(self, block: Block, values: dict[Value, Expr]) -> list[Expr]:
        """Import the operations of a block, and return the values that it returns.

        values: the values that the block can use.  The results of its operations are added.
        """

    @abstractmethod
    def call(self, name: str, args: list[Expr]) -> tuple[Expr, ...]:
        """Call a function of the program, and return its results."""

    @contextmanager
    def inlining(self) -> Iterator[None]:
        """A context manager in which all functions are inlined where they are called."""
        before, self.inlines_all = self.inlines_all, True
        try:
            yield
        finally:
            self.inlines_all = before

    def new_dims(self, stem: str, count: int) -> tuple[AnyDim, ...]:
        """Return new dimension variables."""
        return tuple(dim_var(self.unique_name(f"{stem}_dim")) for _ in range(count))

    def constant(self, elements: Elements) -> Expr:
        """Return the tensor of a constant.  If `elements` has one element for all positions, it is broadcast."""
        array = elements.array
        shape = tuple(dim or 0 for dim in elements.type.shape or ())
        tensor = constant(np.ascontiguousarray(array).reshape(array.shape))
        if array.shape == shape:
            return tensor
        return self.emit(ops.broadcast_to(tensor, Shape(shape)))

    def type_of(self, type_: AnyType, stem: str = "") -> Type:
        """Return the type of a value.

        stem: for a parameter, the beginning of the names of the variables for its unknown dimensions.  For other
        values, it is empty, and a type with unknown dimensions has no shape.
        """
        if isinstance(type_, TupleOf):
            return TupleType(tuple(self.type_of(item, stem) for item in type_.items))
        if isinstance(type_, Tensor) and isinstance(type_.element, ElementType) and type_.element.is_complex:
            part = self.type_of(Tensor(type_.element.part, type_.shape), stem)
            return TupleType((part, part))
        if not isinstance(type_, Tensor):
            raise RelvmUnsupportedError(f"values of the type {type_} are not supported")
        dtype = dtype_of_element(type_.element)
        if type_.shape is None:
            raise RelvmUnsupportedError(f"the type {type_} has no known rank")
        if not stem and None in type_.shape:
            return TensorType(dtype, None, len(type_.shape))
        return TensorType(
            dtype,
            tuple(
                dim_var(self.unique_name(f"{stem}_dim{axis}")) if dim is None else dim
                for axis, dim in enumerate(type_.shape)
            ),
        )
