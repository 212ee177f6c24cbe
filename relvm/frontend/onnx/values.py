"""Values of an ONNX graph during import."""

from __future__ import annotations

import numpy as np

from relvm.data_classes import record
from relvm.ir.dtypes import BOOL, I32, I64, DType
from relvm.ir.expr import Expr
from relvm.ir.symbolic import Dim

SIZE_LIMIT = 1024  # larger tensors are data, not shapes
HOST_DTYPES = (I64, I32, BOOL)


@record
class HostValue:
    """An integer or bool tensor whose elements are known at import time: numbers, or symbolic dimensions.

    array: the elements, in a NumPy array of dtype object.  Each is an int, a bool, or a Dim.
    dtype: the dtype of the tensor, one of HOST_DTYPES.
    """

    array: np.ndarray
    dtype: DType

    @property
    def is_symbolic(self) -> bool:
        return any(isinstance(element, Dim) for element in self.array.reshape(-1))


Value = Expr | HostValue  # an atom, or a tensor known at import time


@record
class Dequantized:
    """A record of how a tensor was dequantized: as (bytes - zero) * scale.

    bytes: the quantized tensor, of dtype i8 or u8.
    axis: the axis along which the scale varies, or None if there is a single scale.
    scale: an f32 tensor, with a single element or one element for each position along `axis`.
    zero: the zero point for all elements, or one for each position along `axis`.  It has the dtype of `bytes`.
    """

    bytes: Expr
    scale: Expr
    zero: Expr
    axis: int | None
