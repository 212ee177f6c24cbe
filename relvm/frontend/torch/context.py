"""The part of the importer that converters use."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import relvm.ops as ops
from relvm.frontend.common.node_context import ModuleContext
from relvm.frontend.torch.program import Graph, GraphNode, Program
from relvm.ir.dtypes import BOOL, F32, F64, I64, DType
from relvm.ir.expr import BuiltinCall, Constant, DimValue, Expr, PrimCall, String, prim
from relvm.ir.operator import SizeClaim
from relvm.ir.symbolic import AnyDim, dim_var
from relvm.ir.types import VOID, PrimType

_LARGEST_F8 = 448.0  # of float8_e4m3fn


class ImportContext(ModuleContext):
    """The import of one program.

    node: the node that is being converted, or None.
    here: the beginning of messages about the node.
    """

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program
        self.node: GraphNode | None = None
        self.here = program.place
        self._file = os.path.basename(program.place)

    @abstractmethod
    def declared_shape(self, graph: Graph, name: str) -> tuple[AnyDim | None, ...]:
        """Return the declared shape of a tensor, with None for each size that is not known yet."""

    @abstractmethod
    def declared_dim(self, size: Any) -> AnyDim | None:
        """Return a declared size, stride or offset, or None if a symbol in it has no value yet."""

    @abstractmethod
    def base_of(self, name: str) -> tuple[Expr, str]:
        """Return the tensor that a tensor is a view of, and the name of that tensor.

        A tensor that is not a view is returned itself.
        """

    @abstractmethod
    def mutate(self, name: str, value: Expr) -> None:
        """Replace the elements of a tensor, and of all tensors that share its memory, by those of `value`."""

    @abstractmethod
    def run_graph(self, graph: Graph, args: Sequence[Any]) -> list[Any]:
        """Import a graph that is an argument of a node, and return its results.

        args: the values of its inputs.
        """

    def place_of_node(self) -> str:
        return self.stored(self.here)

    def stored(self, place: str) -> str:
        """Return a place as it is stored in the module: without the folder of the file, which can differ."""
        return self._file + place.removeprefix(self.program.place) if place.startswith(self.program.place) else place

    def cast(self, x: Expr, dtype: DType) -> Expr:
        """Return a tensor converted to a dtype.  Return it unchanged if it has this dtype.

        Numbers that are too large for float8_e4m3fn become the largest one, as in PyTorch.
        """
        if x.known_element_type == dtype:
            return x
        if dtype.name == "f8e4m3fn":
            x = self.emit(ops.clip(self.cast(x, F32), min=-_LARGEST_F8, max=_LARGEST_F8))
        if isinstance(x, Constant) and x.value.size == 1 and not (x.known_element_type.is_float and dtype.is_integer):
            return Constant(_frozen(x, dtype))
        return self.emit(ops.cast(x, to=dtype.name))

    def require(self, relation: str, left: AnyDim, right: AnyDim, message: str) -> None:
        """Check a relation of two sizes, when the program is imported if possible, otherwise at run time.

        relation, left, right, message: the fields of SizeClaim.

        Raises
        ------
        RelvmShapeError
            The relation is false for all values of the sizes.
        """
        claim = SizeClaim(relation, left, right, f"{self.place_of_node()}: {message}")
        if claim.needs_check():
            args = (DimValue(left), DimValue(right), String(claim.message))
            self.builder.emit(BuiltinCall(f"check_{relation}", args, type=VOID))

    def require_true(self, value: Expr, message: str) -> None:
        """Check a scalar that is not a constant at run time: it must be true, or must not be 0."""
        assert isinstance(value.type, PrimType)
        if value.type.dtype != BOOL:
            zero = prim(0.0 if value.type.dtype == F64 else 0)
            value = self.emit(PrimCall("ne", (value, zero)))
        dim = self.new_dim("holds", signed=True)
        self.builder.match_cast(self.emit(PrimCall("i64", (value,))), PrimType(I64, dim))
        self.require("at_most", 1, dim, message.replace("{", "(").replace("}", ")") + " (expected {}, got {})")

    def new_dim(self, stem: str, *, signed: bool = False) -> AnyDim:
        """Return a new dimension variable."""
        return dim_var(self.unique_name(stem), signed=signed)


def _frozen(x: Constant, dtype: DType) -> Any:
    array = x.value.astype(dtype.numpy)
    array.flags.writeable = False
    return array
