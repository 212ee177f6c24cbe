"""Cumulative sums, products, minima, maxima, and logarithms of sums of exponentials."""

from __future__ import annotations

import relvm.ops as ops
from relvm.frontend.common.window_kernels import cumulative_kernel
from relvm.frontend.stablehlo.context import ImportContext
from relvm.ir.dtypes import F32
from relvm.ir.expr import Expr

_SUMS = {"add": ops.cumsum, "multiply": ops.cumprod}
_KERNELS = {"maximum": "max", "minimum": "min", "logaddexp": "logaddexp"}
CUMULATIVE = frozenset((*_SUMS, *_KERNELS))


def emit_cumulative(importer: ImportContext, x: Expr, function: str, axis: int, *, reverse: bool) -> Expr:
    """Emit a cumulative operation along an axis, and return its result, of the type of x.

    Floats narrower than f32 are combined in f32, and each result is rounded once.  From the first NaN on, all results
    are NaN.

    function: one of CUMULATIVE.   reverse: whether the operation begins with the last element.
    """
    dtype = x.known_element_type
    wide = importer.emit(ops.cast(x, to=F32.name)) if dtype.is_narrow_float else x
    if function in _SUMS:
        found = importer.emit(_SUMS[function](wide, axis=axis, reverse=reverse))
    else:
        name = importer.unique_name(f"cumulative_{function}")
        kernel = cumulative_kernel(name, wide.tensor_type, axis, reverse, _KERNELS[function])
        importer.builder.kernel(kernel)
        found = importer.builder.call_kernel(kernel.name, wide, result=wide.tensor_type)
    return importer.emit(ops.cast(found, to=dtype.name)) if dtype.is_narrow_float else found
