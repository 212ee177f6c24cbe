"""Conversion of tensors of one element to scalars, for use as loop counters and list indices."""

from __future__ import annotations

from collections.abc import Collection

import relvm.ops as ops
from relvm.errors import RelvmShapeError, RelvmTypeError
from relvm.frontend.onnx.context import ImportContext
from relvm.frontend.onnx.values import HostValue
from relvm.ir.dtypes import I32, I64, DType
from relvm.ir.expr import Constant, DimValue, Expr, Shape, prim
from relvm.ir.symbolic import AnyDim, Dim


def scalar_of(graph: ImportContext, value: Expr | HostValue, what: str, dtypes: Collection[DType] = (I32, I64)) -> Expr:
    """Convert a tensor of one element to a scalar, of type bool for a bool tensor, otherwise of type i64.

    Parameters
    ----------
    value
        The tensor.
    what
        A description of `value`, with which error messages begin.
    dtypes
        The dtypes that `value` may have: bool or integer dtypes.

    Raises
    ------
    RelvmTypeError
        `value` is not a tensor of one of `dtypes`.
    RelvmShapeError
        The tensor does not have exactly one element.
    """
    dtype = value.dtype if isinstance(value, HostValue) else getattr(value.type, "dtype", None)
    if dtype not in dtypes:
        got = dtype if isinstance(value, HostValue) else value.type
        raise RelvmTypeError(f"{what} is {got}, expected a tensor of {' or '.join(map(str, dtypes))}")
    match value:
        case Constant(value=array) | HostValue(array=array) if array.size != 1:
            raise RelvmShapeError(f"{what} has shape {list(array.shape)}, expected one element")
        case Constant(value=array):
            return prim(array.item())
        case HostValue(array=array):
            return scalar_of_dim(array.reshape(-1)[0])
    tensor = value if value.tensor_type.rank == 0 else graph.emit(ops.reshape(value, Shape(())), "scalar")
    return graph.emit(ops.to_scalar(tensor), "scalar")


def scalar_of_dim(dim: AnyDim) -> Expr:
    return DimValue(dim) if isinstance(dim, Dim) else prim(int(dim))
