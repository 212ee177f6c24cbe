"""The promotion of dtypes in PyTorch.

Source: PyTorch's documentation, tensor_attributes, "Type Promotion"; c10/core/ScalarType.cpp.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from relvm.ir.dtypes import BF16, BOOL, F16, F32, F64, I16, I32, I64, U8, DType
from relvm.ir.expr import Expr
from relvm.ir.symbolic import Dim
from relvm.ir.types import PrimType, TensorType

_FLOATS = (F16, F32, F64)
DEFAULT_FLOAT = F32  # torch.get_default_dtype()


def common_dtype(x: DType, y: DType) -> DType:
    """Return the dtype to which two dtypes are promoted."""
    if x == y or y == BOOL:
        return x
    if x == BOOL:
        return y
    if x.is_float != y.is_float:
        return x if x.is_float else y
    if x.is_float:
        if {x, y} == {F16, BF16}:
            return F32
        return max(x, y, key=lambda dtype: dtype.bits)
    if x.is_signed == y.is_signed:
        return max(x, y, key=lambda dtype: dtype.bits)
    signed, unsigned = (x, y) if x.is_signed else (y, x)
    if unsigned == U8:
        return I16 if signed.bits == 8 else signed
    return {16: I32, 32: I64}.get(unsigned.bits, signed) if signed.bits <= unsigned.bits else signed


def promoted_dtype(values: Iterable[Any]) -> DType:
    """Return the dtype to which tensors and numbers are promoted.

    Tensors of rank 1 and more decide, unless a tensor of rank 0 is of a higher kind (bool, integer, float).  Numbers
    count only if they are of a higher kind than all tensors.
    """
    groups: dict[int, DType] = {}  # of tensors of rank 1 and more, of tensors of rank 0, and of numbers
    for value in values:
        priority, dtype = _priority(value)
        groups[priority] = common_dtype(groups[priority], dtype) if priority in groups else dtype
    result: DType | None = None
    for _, dtype in sorted(groups.items()):
        if result is None or _kind(dtype) > _kind(result):
            result = dtype
    assert result is not None
    return result


def _priority(value: Any) -> tuple[int, DType]:
    match value:
        case Expr(type=TensorType() as type_):
            return (1 if type_.rank == 0 else 0), type_.known_dtype
        case Expr(type=PrimType(dtype)):
            return 2, DEFAULT_FLOAT if dtype == F64 else dtype
        case bool():
            return 2, BOOL
        case int() | Dim():
            return 2, I64
    return 2, DEFAULT_FLOAT


def _kind(dtype: DType) -> int:
    return 2 if dtype.is_float else 1 if dtype.is_integer else 0
