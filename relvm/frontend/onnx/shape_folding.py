"""Shape folding: evaluation of shape arithmetic at import time.

A host value is an integer or bool tensor known at import time: a NumPy array of objects, each an int, a bool or a
symbolic dimension.  The rules below compute with dimensions as with numbers, because dimensions support Python
arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relvm.errors import RelvmIndexError, RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.onnx.model_checker import plain_domain
from relvm.frontend.onnx.registry import OnnxNode
from relvm.frontend.onnx.values import HOST_DTYPES, SIZE_LIMIT, HostValue
from relvm.ir.dtypes import BOOL, I32, I64, DType
from relvm.ir.expr import Constant
from relvm.ir.symbolic import AnyDim, Dim, dim_op, product
from relvm.ir.types import TensorType
from relvm.ir.value_ranges import range_of

_rules: dict[str, Callable[..., Any]] = {}


def evaluate(node: OnnxNode) -> HostValue | None:
    """Evaluate a node of shape arithmetic at import time.  Return None if that is not possible.

    The node must be a Shape, or have a HostValue as an input: an integer or bool tensor that is computed at import
    time, whose elements may be symbolic dimensions.  A node with only Constants as inputs is folded later.
    """
    if plain_domain(node.proto.domain):
        return None
    if node.proto.op_type == "Shape":
        return _shape(node)
    rule = _rules.get(node.proto.op_type)
    if rule is None or not any(isinstance(value, HostValue) for value in node.inputs):
        return None
    arrays = [_as_host(value) for value in node.inputs]
    if any(array is None for array, value in zip(arrays, node.inputs, strict=True) if value is not None):
        return None
    try:
        result = rule(node, *arrays)
    except RelvmUnsupportedError:  # too large for a dimension: compute it at run time
        return None
    if result is None:
        return None
    array, dtype = result if isinstance(result, tuple) else (result, _dtype_of(node, 0))
    array = np.asarray(array, dtype=object)
    return HostValue(array, dtype) if dtype in HOST_DTYPES and array.size <= SIZE_LIMIT else None


def _dtype_of(node: OnnxNode, index: int) -> DType:
    value = node.inputs[index]
    return value.dtype if isinstance(value, HostValue) else node.type(index).known_dtype


def _as_host(value: Any) -> np.ndarray | None:
    match value:
        case HostValue(array=array):
            return array
        case Constant(value=array) if array.dtype.kind in "biu" and array.size <= SIZE_LIMIT:
            return array.astype(object)
    return None


def _shape(node: OnnxNode) -> HostValue | None:
    x = node.inputs[0]
    type_ = None if isinstance(x, HostValue) else node.tensor(0).type
    shape = x.array.shape if isinstance(x, HostValue) else type_.shape if isinstance(type_, TensorType) else None
    if shape is None:
        return None
    start, end = node.attribute("start", 0), node.attribute("end", None)
    dims = np.empty(len(shape), dtype=object)
    dims[:] = shape
    return HostValue(dims[start:end], I64)


def _rule(name: str) -> Callable[[Callable], Callable]:
    def declare(function: Callable) -> Callable:
        _rules[name] = function
        return function

    return declare


@_rule("Identity")
def _identity(node: OnnxNode, x: np.ndarray) -> np.ndarray:
    return x


@_rule("Cast")
def _cast(node: OnnxNode, x: np.ndarray) -> Any:
    dtype = node.graph.element_type(node.attribute("to"), "Cast")
    return (x, dtype) if dtype in (I64, I32) else None


@_rule("Concat")
def _concat(node: OnnxNode, *xs: np.ndarray) -> np.ndarray:
    return np.concatenate(xs, axis=node.attribute("axis"))


@_rule("Slice")
def _slice(node: OnnxNode, x: np.ndarray, *bounds: np.ndarray | None) -> np.ndarray | None:
    if node.opset < 10:
        given = [node.attribute(name) for name in ("starts", "ends", "axes")]
    else:
        if any(isinstance(b, Dim) for array in bounds if array is not None for b in array.reshape(-1)):
            return None
        given = list(bounds)
    starts, ends, axes, steps = [*given, None, None][:4]
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    for each in zip(starts, ends, axes, steps, strict=True):
        start, end, axis, step = map(int, each)
        x = np.take(x, list(slice_range(x.shape[axis], start, end, step)), axis)
    return x


INT_MAX = (2**31 - 1, 2**63 - 1)  # ends of a Slice that mean "to the end"


def slice_range(size: int, start: int, end: int, step: int) -> range:
    """Return the positions that a Slice selects along an axis of `size` elements.

    Negative bounds count from the end of the axis.  Bounds are then clamped to the axis (ONNX Slice-13).  If `end` is
    the largest i32 or i64, the slice extends to the last element, or to the first if `step` is negative, as in ONNX
    Runtime.
    """
    if step == 0:
        raise RelvmShapeError("a step must not be 0")
    to_the_end = end in INT_MAX
    start, end = (bound + size if bound < 0 else bound for bound in (start, end))
    if step > 0:
        return range(min(max(start, 0), size), size if to_the_end else min(max(end, 0), size), step)
    return range(min(max(start, 0), size - 1), -1 if to_the_end else min(max(end, -1), size - 1), step)


@_rule("Gather")
def _gather(node: OnnxNode, x: np.ndarray, indices: np.ndarray) -> np.ndarray | None:
    if any(isinstance(i, Dim) for i in indices.reshape(-1)):
        return None
    try:
        return np.take(x, indices.astype(np.int64), axis=node.attribute("axis", 0))
    except IndexError as error:
        raise RelvmIndexError(str(error)) from None


@_rule("Squeeze")
def _squeeze(node: OnnxNode, x: np.ndarray, axes: np.ndarray | None = None) -> np.ndarray:
    chosen = node.attribute("axes") if axes is None else axes
    return x.squeeze(None if chosen is None else tuple(int(axis) for axis in np.reshape(chosen, -1)))


@_rule("Unsqueeze")
def _unsqueeze(node: OnnxNode, x: np.ndarray, axes: np.ndarray | None = None) -> np.ndarray:
    chosen = node.attribute("axes") if axes is None else axes
    return np.expand_dims(x, tuple(int(axis) for axis in np.reshape(chosen, -1)))


@_rule("Add")
def _add(node: OnnxNode, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x + y


@_rule("Sub")
def _sub(node: OnnxNode, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x - y


@_rule("Neg")
def _neg(node: OnnxNode, x: np.ndarray) -> np.ndarray:
    return -x


@_rule("Mul")
def _mul(node: OnnxNode, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x * y


@_rule("Div")
def _div(node: OnnxNode, x: np.ndarray, y: np.ndarray) -> np.ndarray | None:
    if any(isinstance(divisor, Dim) or divisor == 0 for divisor in y.reshape(-1)):
        return None
    return np.vectorize(truncated_quotient, otypes=[object])(x, y)


def truncated_quotient(dividend: AnyDim, divisor: int) -> AnyDim:
    """Return dividend / divisor, rounded toward zero, as ONNX divides integers."""
    if divisor < 0:
        return -truncated_quotient(dividend, -divisor)
    if range_of(dividend, {}).low >= 0:
        return dividend // divisor
    return dim_op("max", dividend, 0) // divisor - dim_op("max", -dividend, 0) // divisor


@_rule("ReduceProd")
def _reduce_prod(node: OnnxNode, x: np.ndarray, axes: np.ndarray | None = None) -> np.ndarray | None:
    """Return the product of all elements of a vector, such as the number of elements of a shape."""
    chosen = node.attribute("axes") if axes is None else axes
    if x.ndim != 1 or node.attribute("noop_with_empty_axes") or (chosen is not None and len(chosen) != 1):
        return None
    total = np.empty((1,) if node.attribute("keepdims", 1) else (), dtype=object)
    total[...] = product(x)
    return total


@_rule("Min")
def _min(node: OnnxNode, *xs: np.ndarray) -> np.ndarray:
    return _extreme("min", xs)


@_rule("Max")
def _max(node: OnnxNode, *xs: np.ndarray) -> np.ndarray:
    return _extreme("max", xs)


def _extreme(function: str, xs: tuple[np.ndarray, ...]) -> np.ndarray:
    result = xs[0]
    for x in xs[1:]:
        result = np.vectorize(lambda a, b: dim_op(function, a, b), otypes=[object])(result, x)
    return result


@_rule("Equal")
def _equal(node: OnnxNode, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, DType] | None:
    """Compare the elements of x and y, which can be symbolic dimensions.

    Return None if a result is not known at import time, because it depends on the values of dimension variables.  A
    comparison of a dimension with -1, for example, has a known result, because no dimension is negative.
    """
    x, y = np.broadcast_arrays(x, y)
    result = np.empty(x.shape, dtype=object)
    for at, pair in enumerate(zip(x.flat, y.flat, strict=True)):
        apart = dim_op("sub", *pair)
        found = range_of(apart, {})
        if found.low <= 0 <= found.high and apart != 0:
            return None
        result.flat[at] = apart == 0
    return result, BOOL


@_rule("Where")
def _where(node: OnnxNode, cond: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, DType] | None:
    cond, x, y = np.broadcast_arrays(cond, x, y)
    return np.where(cond.astype(bool), x, y), _dtype_of(node, 1)


@_rule("Reshape")
def _reshape(node: OnnxNode, x: np.ndarray, shape: np.ndarray | None = None) -> np.ndarray | None:
    wanted = node.attribute("shape") if shape is None else shape
    if any(isinstance(dim, Dim) for dim in wanted) or 0 in list(wanted):
        return None
    return x.reshape([int(dim) for dim in wanted])
