"""Tensors of one element as scalars, which loops count with and lists are indexed by."""

from __future__ import annotations

import relvm.ops as ops
from relvm.errors import RelvmShapeError
from relvm.frontend.onnx.context import ImportContext
from relvm.frontend.onnx.values import HostValue
from relvm.ir.expr import Constant, DimValue, Expr, Shape, prim
from relvm.ir.symbolic import AnyDim, Dim


def scalar_of(graph: ImportContext, value: Expr | HostValue) -> Expr:
    """The element of a tensor of one element, as a scalar: bool or i64."""
    match value:
        case Constant(value=array) | HostValue(array=array) if array.size != 1:
            raise RelvmShapeError(f"a tensor of shape {list(array.shape)}, expected one element")
        case Constant(value=array):
            return prim(array.item())
        case HostValue(array=array):
            return scalar_of_dim(array.reshape(-1)[0])
    tensor = value if value.type.rank == 0 else graph.emit(ops.reshape(value, Shape(())), "scalar")
    return graph.emit(ops.to_scalar(tensor), "scalar")


def scalar_of_dim(dim: AnyDim) -> Expr:
    return DimValue(dim) if isinstance(dim, Dim) else prim(int(dim))
