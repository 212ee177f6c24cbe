"""The part of the importer that the converters of equations use."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

import relvm.ops as ops
from relvm.frontend.jax.avals import type_of_aval
from relvm.frontend.stablehlo.importer import Importer
from relvm.frontend.stablehlo.program import Program
from relvm.ir.expr import Expr, Shape, Tuple, TupleItem, constant
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import TensorType, TupleType, Type


class JaxprContext(Importer):
    """The import of one jaxpr.

    dims: the dimensions of the names in symbolic shapes.
    """

    def __init__(self, program: Program, dims: dict[str, AnyDim]) -> None:
        super().__init__(program)
        self.dims = dims

    @abstractmethod
    def inline(self, jaxpr: Any, operands: Sequence[Expr]) -> list[Expr]:
        """Import the equations of a jaxpr here, and return its results.

        jaxpr: a closed jaxpr, or a jaxpr without constants.
        """

    @abstractmethod
    def call_jaxpr(self, name: str, jaxpr: Any, operands: Sequence[Expr]) -> list[Expr]:
        """Call a jaxpr, which becomes a private function of the module, and return its results.

        If the program has symbolic sizes, the jaxpr is inlined instead.
        """

    def type_of_value(self, aval: Any) -> Type:
        """Return the type of an abstract value of JAX."""
        return type_of_aval(aval, self.dims)

    def with_type(self, value: Expr, type_: Type) -> Expr:
        """Return a value with the sizes of a type.  Sizes that may differ are compared at run time."""
        if isinstance(type_, TensorType):
            return self.with_shape(value, type_.known_shape)
        if not isinstance(type_, TupleType) or value.type == type_:
            return value
        parts = tuple(self.with_type(part, each) for part, each in zip(self.fields(value), type_.fields, strict=True))
        return Tuple(parts, type=type_)

    def fields(self, value: Expr) -> tuple[Expr, ...]:
        """Return the items of a tuple."""
        if isinstance(value, Tuple):
            return value.fields
        assert isinstance(value.type, TupleType)
        return tuple(self.emit(TupleItem(value, i, type=type_)) for i, type_ in enumerate(value.type.fields))

    def emit_zeros(self, type_: Type) -> Expr:
        """Return zeros of a type."""
        if isinstance(type_, TupleType):
            return Tuple(tuple(self.emit_zeros(each) for each in type_.fields), type=type_)
        assert isinstance(type_, TensorType)
        zero = constant(np.zeros((), type_.known_dtype.numpy))
        return self.emit(ops.broadcast_to(zero, Shape(type_.known_shape)), "zeros")

    def results(self, value: Expr, count: int) -> list[Expr]:
        """Return the values that `as_result` has combined.   count: their number."""
        return [self.emit(value)] if count == 1 else list(self.fields(self.emit(value)))
