"""The class of invalid operator calls, and types for writing them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from relvm.errors import RelvmTypeError
from relvm.ir.dtypes import ALL_DTYPES
from relvm.ir.symbolic import AnyDim, Dim, dim_var
from relvm.ir.types import ShapeType, TensorType, Type


@dataclass(frozen=True, eq=False)
class Mistake:
    """A call that the type rule of an operator rejects.  message: a part of the error message."""

    op: str
    types: tuple[Type, ...]
    message: str
    error: type[Exception] = RelvmTypeError
    attributes: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        args = [*map(str, self.types), *(f"{name}={value}" for name, value in self.attributes.items())]
        return f"{self.op}({', '.join(args)})"


_variables: dict[str, Dim] = {}


def _dims(text: str) -> tuple[AnyDim, ...]:
    parts = text.replace(",", " ").split()
    return tuple(int(p) if p.lstrip("-").isdigit() else _variables.setdefault(p, dim_var(p)) for p in parts)


def tensor(dtype: str, dims: str = "") -> TensorType:
    return TensorType(ALL_DTYPES[dtype], _dims(dims))


def shape(dims: str = "") -> ShapeType:
    return ShapeType(_dims(dims))


F32, UNTYPED = tensor("f32", "3, 4"), TensorType(None, (3,))
