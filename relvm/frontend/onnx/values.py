"""Values of an ONNX graph while it is imported."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relvm.ir.dtypes import DType
from relvm.ir.expr import Expr
from relvm.ir.symbolic import Dim

SIZE_LIMIT = 1024  # elements: what is larger is data, not a shape


@dataclass(frozen=True, eq=False)
class HostValue:
    """An integer tensor that is known at import time, as a NumPy array of objects.

    array: dtype object, elements int, bool or Dim.   dtype: the tensor's: i64, i32 or bool.
    """

    array: np.ndarray
    dtype: DType

    @property
    def is_symbolic(self) -> bool:
        return any(isinstance(element, Dim) for element in self.array.reshape(-1))


Value = Expr | HostValue  # an atom, or a tensor that is known at import time


@dataclass(frozen=True, eq=False)
class Dequantized:
    """(bytes - zero) * scale.   scale: f32, one number or, where axis is not None, one for each place of that axis.
    zero: of the dtype and as many."""

    bytes: Expr
    scale: Expr
    zero: Expr
    axis: int | None
