"""Operators that create, copy and convert tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.torch.registry import Node, Number, converts, known_int, shape_of
from relvm.ir.dtypes import F64, I64, U8, DType
from relvm.ir.expr import Constant, Expr, Shape, constant
from relvm.ir.symbolic import AnyDim, Dim


@converts(
    *("clone", "contiguous", "lift_fresh_copy", "lift_fresh", "lift", "alias_copy", "detach_copy"),
    *("type_as", "view_copy", "expand_copy", "_to_copy", "to.dtype_layout", "to.device", "to.other", "to.dtype"),
)
def _copy(node: Node, self: Expr | Number, *args: Any, **kwargs: Any) -> Expr:
    if not isinstance(self, Expr):  # functions that torch.vmap expands convert numbers
        return node.number(self, node.out_dtype())
    name = node.node.target
    if "view_copy" in name or "expand_copy" in name:
        return (
            ops.broadcast_to(self, Shape(node.out_shape()))
            if "expand" in name
            else ops.reshape(self, Shape(node.out_shape()))
        )
    return converted(node, self, node.out_dtype())


@converts("prims.convert_element_type.default")
def _convert_element_type(node: Node, a: Expr, dtype: DType) -> Expr:
    return converted(node, a, dtype)


def converted(node: Node, x: Expr, dtype: DType) -> Expr:
    """Return x converted to `dtype` by the rules of C, as PyTorch does.

    The result for a float that an integer dtype cannot represent is undefined.  For u8, it is the lower bits.
    """
    source = x.known_element_type
    if source.is_float and dtype.is_integer and dtype.bits < 32:
        return node.cast(node.emit(ops.cast(node.wide(x), to="i32" if dtype != U8 else "i64")), dtype)
    return node.cast(x, dtype)


@converts("detach", "alias", view=True)
def _alias(node: Node, self: Expr) -> Expr:
    return self


@converts("copy")
def _copy_from(node: Node, self: Expr, src: Expr, non_blocking: bool = False) -> Expr:
    x = converted(node, src, self.known_element_type)
    return ops.broadcast_to(x, Shape(shape_of(self)))


@converts("fill.Scalar", "fill.Tensor", "full_like")
def _fill(node: Node, self: Expr, value: Any = None, fill_value: Any = None, dtype: Any = None) -> Expr:
    return node.full(value if fill_value is None else fill_value, shape_of(self), node.out_dtype())


def _constant_like(value: int, *names: str) -> None:
    @converts(*names)
    def convert(node: Node, self: Expr, dtype: Any = None) -> Expr:
        return node.full(value, shape_of(self), node.out_dtype())


_constant_like(0, "zeros_like", "zero", "empty_like")
_constant_like(1, "ones_like")


def _constant_of(value: int, *names: str) -> None:
    @converts(*names)
    def convert(node: Node, size: Sequence[AnyDim], dtype: Any = None) -> Expr:
        return node.full(value, size, node.out_dtype())


_constant_of(0, "zeros", "empty.memory_format", "zeros.names")
_constant_of(1, "ones")


@converts("empty_permuted", "empty_strided", "new_empty_strided")
def _empty(node: Node, *args: Any, **kwargs: Any) -> Expr:
    """Returns zeros."""
    return node.full(0, node.out_shape(), node.out_dtype())


def _new(value: int, *names: str) -> None:
    @converts(*names)
    def convert(node: Node, self: Expr, size: Sequence[AnyDim], dtype: Any = None) -> Expr:
        return node.full(value, size, node.out_dtype())


_new(0, "new_zeros", "new_empty")
_new(1, "new_ones")


@converts("new_full")
def _new_full(node: Node, self: Expr, size: Sequence[AnyDim], fill_value: Any, dtype: Any = None) -> Expr:
    return node.full(fill_value, size, node.out_dtype())


@converts("full")
def _full(node: Node, size: Sequence[AnyDim], fill_value: Any, dtype: Any = None) -> Expr:
    return node.full(fill_value, size, node.out_dtype())


@converts("scalar_tensor")
def _scalar_tensor(node: Node, s: Any, dtype: Any = None) -> Expr:
    return node.number(s, node.out_dtype())


@converts("arange", "arange.start", "arange.start_step")
def _arange(node: Node, start: Any = 0, end: Any = None, step: Any = 1, dtype: Any = None) -> Expr:
    dtype = node.out_dtype()
    if node.node.target.endswith("arange.default"):
        start, end = 0, start if end is None else end
    numbers = [start, end, step]
    if all(type(number) in (int, float) for number in numbers):
        computed = np.int64 if all(isinstance(number, int) for number in numbers) else np.float64
        count = (
            len(np.arange(start, end, step, dtype=computed))
            if computed is np.int64
            else max(0, int(np.ceil((end - start) / step)))
        )
        if count <= 1 << 16:
            values = np.asarray(start, computed) + np.arange(count) * np.asarray(step, computed)
            return constant(values.astype(dtype.numpy))
        return _sequence(node, start, count, step, dtype)
    if not all(isinstance(number, int | Dim) for number in numbers):
        return _sequence_of_floats(node, [node.emit(node.number(number, F64)) for number in numbers], dtype)
    (size,) = node.importer.declared_shape(node.graph, node.output_names()[0])
    if size is None:
        size = (end - start + step - 1) // step if isinstance(step, int) and step > 0 else None
    if size is None:
        raise RelvmUnsupportedError("arange with a step that is computed is not supported")
    return _sequence(node, start, size, step, dtype)


def _sequence_of_floats(node: Node, numbers: Sequence[Expr], dtype: DType) -> Expr:
    """Return the numbers from start to end by a step.   numbers: the start, the end and the step, of f64."""
    from relvm.frontend.torch.ops.indexing import as_dim

    start, end, step = numbers
    (size,) = node.importer.declared_shape(node.graph, node.output_names()[0])
    if size is None:
        count = node.emit(ops.ceil(ops.divide(ops.subtract(end, start), step)))
        size = as_dim(node, node.cast(node.emit(ops.maximum(count, 0.0)), I64))
    places = node.cast(node.emit(ops.iota(Shape((size,)))), F64)
    return node.cast(node.emit(ops.add(start, ops.multiply(places, step))), dtype)


def _sequence(node: Node, start: Any, count: AnyDim, step: Any, dtype: DType) -> Expr:
    """Return the numbers start, start + step and so on."""
    numbers = node.emit(ops.iota(Shape((count,))))
    if any(isinstance(number, float) for number in (start, step)):
        numbers = node.cast(numbers, dtype) if dtype.bits == 64 else node.emit(ops.cast(numbers, to="f64"))
    kind = numbers.known_element_type
    if step != 1:
        numbers = ops.multiply(numbers, node.number(step, kind))
    if start != 0:
        numbers = ops.add(numbers, node.number(start, kind))
    return node.cast(node.emit(numbers), dtype)


@converts("linspace")
def _linspace(node: Node, start: Any, end: Any, steps: AnyDim, dtype: Any = None) -> Expr:
    count, dtype = known_int(steps, "steps"), node.out_dtype()
    if isinstance(start, Expr) or isinstance(end, Expr):
        raise RelvmUnsupportedError("linspace with tensors is not supported")
    computed = np.float64 if dtype.bits == 64 or dtype.is_integer else np.float32
    if count == 1:
        return constant(np.array([start]).astype(dtype.numpy))
    step = computed((float(end) - float(start)) / (count - 1)) if count else computed(0)
    at = np.arange(count)
    values = np.where(at < count // 2, computed(start) + step * at, computed(end) - step * (count - 1 - at))
    return constant(values.astype(computed).astype(dtype.numpy))


@converts("logspace")
def _logspace(node: Node, start: Any, end: Any, steps: AnyDim, base: float = 10.0, dtype: Any = None) -> Expr:
    count, dtype = known_int(steps, "steps"), node.out_dtype()
    values = np.power(float(base), np.linspace(float(start), float(end), count))
    return constant(values.astype(dtype.numpy))


@converts("eye", "eye.m")
def _eye(node: Node, n: AnyDim, m: AnyDim | None = None, dtype: Any = None) -> Expr:
    rows, columns = n, n if m is None else m
    at = node.reshaped(node.emit(ops.iota(Shape((rows,)))), (rows, 1))
    return node.cast(node.emit(ops.equal(at, ops.iota(Shape((columns,))))), node.out_dtype())


@converts("fft_fftfreq", "fft_rfftfreq")
def _frequencies(node: Node, n: int, d: float = 1.0, dtype: Any = None) -> Expr:
    find = np.fft.rfftfreq if "rfftfreq" in node.node.target else np.fft.fftfreq
    return constant(find(known_int(n, "n"), d).astype(node.out_dtype().numpy))


def _triangle_positions(*names: str, lower: bool) -> None:
    @converts(*names)
    def convert(node: Node, row: AnyDim, col: AnyDim, offset: int = 0, dtype: Any = None) -> Expr:
        rows, columns = known_int(row, "row"), known_int(col, "col")
        found = (np.tril_indices if lower else np.triu_indices)(rows, offset, columns)
        return constant(np.stack(found).astype(node.out_dtype().numpy))


_triangle_positions("tril_indices", lower=True)
_triangle_positions("triu_indices", lower=False)


@converts("numel")
def _numel(node: Node, self: Expr) -> Expr:
    return node.number(_count(shape_of(self)), I64)


def _count(shape: Sequence[AnyDim]) -> AnyDim:
    result: AnyDim = 1
    for size in shape:
        result = result * size
    return result


@converts("_shape_as_tensor")
def _shape_as_tensor(node: Node, self: Expr) -> Expr:
    return node.vector(shape_of(self))


def known_array(x: Expr) -> np.ndarray | None:
    """Return the elements of a constant, or None if x is computed."""
    return x.value if isinstance(x, Constant) else None
