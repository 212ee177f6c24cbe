"""Base classes of the importers of programs and of their nodes: bindings, checked shapes and unused names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import relvm.ops as ops
from relvm.ir.builder import Builder
from relvm.ir.dtypes import I64
from relvm.ir.expr import Constant, DimValue, Expr, Shape, TupleItem, Var, constant
from relvm.ir.kernel_def import KernelDef
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import TensorType, TupleType


class ModuleContext(ABC):
    """The import of a program as a module.

    builder: the builder of the module.
    """

    def __init__(self) -> None:
        self.builder = Builder()
        self._names = Counter[str]()

    @abstractmethod
    def place_of_node(self) -> str:
        """Return a description of the node that is being imported, for the error messages of run-time checks."""

    def emit(self, expr: Expr, name: str | None = None) -> Expr:
        """Bind an expression to a variable, and return the variable.  Return a variable or a constant unchanged."""
        return expr if isinstance(expr, Var | Constant) else self.builder.emit(expr, name)

    def with_shape(self, value: Expr, shape: Iterable[AnyDim]) -> Expr:
        """Return a tensor with the given shape.  The shape is checked at run time if it is not known."""
        shape = tuple(shape)
        type_ = value.tensor_type
        if type_.shape == shape:
            return value
        return self.builder.match_cast(value, TensorType(type_.dtype, shape), where=self.place_of_node())

    def items_of_kernel(self, kernel: KernelDef, args: Sequence[Expr], results: Sequence[TensorType]) -> list[Expr]:
        """Add a kernel to the module, call it, and return its results, of which there are several."""
        self.builder.kernel(kernel)
        call = self.emit(self.builder.call_kernel(kernel.name, *args, result=TupleType(tuple(results))))
        return [self.emit(TupleItem(call, i, type=type_)) for i, type_ in enumerate(results)]

    def unique_name(self, name: str) -> str:
        """Return an unused name of a function, a kernel or a dimension variable."""
        self._names[name] += 1
        count = self._names[name] - 1
        return self.unique_name(f"{name}_{count}") if count else name


class KernelContext(Protocol):
    """The part of an importer that converters of several front ends need to call kernels."""

    def emit(self, expr: Expr) -> Expr:
        """Bind an expression to a variable, and return the variable."""

    def unique_name(self, name: str) -> str:
        """Return an unused name of a kernel."""

    def items_of_kernel(self, kernel: KernelDef, args: Sequence[Expr], results: Sequence[TensorType]) -> list[Expr]:
        """Add a kernel to the module, call it, and return its results, of which there are several."""


class NodeContext:
    """A node that is being converted.

    importer: the importer, to which the converter adds bindings.
    """

    importer: ModuleContext

    def emit(self, expr: Expr, name: str | None = None) -> Expr:
        """Bind an expression to a variable, and return the variable.  Return a variable or a constant unchanged."""
        return self.importer.emit(expr, name)

    def items(self, value: Expr) -> tuple[Expr, ...]:
        """Return the items of a tuple as variables."""
        assert isinstance(value.type, TupleType)
        return tuple(self.emit(TupleItem(value, i, type=type_)) for i, type_ in enumerate(value.type.fields))

    def reshaped(self, x: Expr, shape: Sequence[AnyDim]) -> Expr:
        """Return x in another shape.  Return x itself if it has this shape."""
        shape = tuple(shape)
        return x if x.tensor_type.shape == shape else self.emit(ops.reshape(x, Shape(shape)))

    def broadcast(self, x: Expr, shape: Sequence[AnyDim]) -> Expr:
        """Return x broadcast to a shape.  Return x itself if it has this shape."""
        shape = tuple(shape)
        return x if x.tensor_type.shape == shape else self.emit(ops.broadcast_to(x, Shape(shape)))

    def vector(self, sizes: Sequence[AnyDim]) -> Expr:
        """Return sizes, which can be symbolic, as a vector of i64."""
        if all(isinstance(size, int) for size in sizes):
            return constant(list(sizes), I64)
        parts = [ops.to_tensor(DimValue(size), dtype="i64") for size in sizes]
        rows = [self.reshaped(self.emit(part), (1,)) for part in parts]
        return rows[0] if len(rows) == 1 else self.emit(ops.concat(*rows, axis=0))

    def call_kernel(self, kernel: KernelDef, args: Sequence[Expr], results: Sequence[TensorType]) -> Any:
        """Add a kernel to the module and call it.  Return its result, or a tuple of its results."""
        builder = self.importer.builder
        builder.kernel(kernel)
        if len(results) == 1:
            return builder.call_kernel(kernel.name, *args, result=results[0])
        return self.items(builder.call_kernel(kernel.name, *args, result=TupleType(tuple(results))))
