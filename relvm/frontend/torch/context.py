"""The part of the importer that converters use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import relvm.ops as ops
from relvm.frontend.torch.program import Graph, GraphNode, Program
from relvm.ir.builder import Builder
from relvm.ir.dtypes import DType
from relvm.ir.expr import BuiltinCall, Constant, DimValue, Expr, String, Var
from relvm.ir.operator import SizeClaim
from relvm.ir.symbolic import AnyDim, dim_var
from relvm.ir.types import VOID, TensorType


class ImportContext(ABC):
    """The import of one program.

    builder: the builder of the module.
    node: the node that is being converted, or None.
    here: the beginning of messages about the node.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.builder = Builder()
        self.node: GraphNode | None = None
        self.here = program.place
        self._names = Counter[str]()

    @abstractmethod
    def declared_shape(self, graph: Graph, name: str) -> tuple[AnyDim | None, ...]:
        """Return the declared shape of a tensor, with None for each size that is not known yet."""

    @abstractmethod
    def mutate(self, name: str, value: Expr) -> None:
        """Replace the elements of a tensor, and of all tensors that share its memory, by those of `value`."""

    @abstractmethod
    def run_graph(self, graph: Graph, args: Sequence[Any]) -> list[Any]:
        """Import a graph that is an argument of a node, and return its results.

        args: the values of its inputs.
        """

    def emit(self, expr: Expr, name: str | None = None) -> Expr:
        """Bind an expression to a variable, and return the variable.  Return a variable or a constant unchanged."""
        return expr if isinstance(expr, Var | Constant) else self.builder.emit(expr, name)

    def cast(self, x: Expr, dtype: DType) -> Expr:
        """Return a tensor converted to a dtype.  Return it unchanged if it has this dtype."""
        if x.known_element_type == dtype:
            return x
        if isinstance(x, Constant) and x.value.size == 1 and not (x.known_element_type.is_float and dtype.is_integer):
            return Constant(_frozen(x, dtype))
        return self.emit(ops.cast(x, to=dtype.name))

    def with_shape(self, value: Expr, shape: Iterable[AnyDim]) -> Expr:
        """Return a tensor with the given shape.  The shape is checked at run time if it is not known."""
        shape = tuple(shape)
        type_ = value.tensor_type
        if type_.shape == shape:
            return value
        return self.builder.match_cast(value, TensorType(type_.dtype, shape), where=self.here)

    def require(self, relation: str, left: AnyDim, right: AnyDim, message: str) -> None:
        """Check a relation of two sizes, when the program is imported if possible, otherwise at run time.

        relation, left, right, message: the fields of SizeClaim.

        Raises
        ------
        RelvmShapeError
            The relation is false for all values of the sizes.
        """
        claim = SizeClaim(relation, left, right, f"{self.here}: {message}")
        if claim.needs_check():
            args = (DimValue(left), DimValue(right), String(claim.message))
            self.builder.emit(BuiltinCall(f"check_{relation}", args, type=VOID))

    def new_dim(self, stem: str, *, signed: bool = False) -> AnyDim:
        """Return a new dimension variable."""
        return dim_var(self.unique_name(stem), signed=signed)

    def unique_name(self, name: str) -> str:
        """Return an unused name of a function, a kernel or a dimension variable."""
        self._names[name] += 1
        count = self._names[name] - 1
        return self.unique_name(f"{name}_{count}") if count else name


def _frozen(x: Constant, dtype: DType) -> Any:
    array = x.value.astype(dtype.numpy)
    array.flags.writeable = False
    return array
