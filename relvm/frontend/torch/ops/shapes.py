"""Operators that move elements: views, slices, padding, concatenation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

import relvm.ops as ops
from relvm.data_classes import value_record
from relvm.errors import RelvmFormatError, RelvmUnsupportedError, counted, shortened
from relvm.frontend.common.indexed_kernels import slice_kernel
from relvm.frontend.common.moving import padded, padded_dynamically
from relvm.frontend.torch.complex_numbers import is_complex_tensor
from relvm.frontend.torch.registry import Node, axes_of, axis_of, converts, known_int, refuses, shape_of, tensor_names
from relvm.ir.dtypes import BOOL, I64, DType
from relvm.ir.expr import Expr, Shape, constant
from relvm.ir.symbolic import AnyDim, dim_op, exact_quotient, is_never_negative, product
from relvm.ir.types import TensorType

_FAR = 1 << 31


def _rank(x: Expr) -> int:
    return len(shape_of(x))


def resolved_shape(node: Node, x: Expr, size: Sequence[AnyDim]) -> tuple[AnyDim, ...]:
    """Return a shape for the elements of x.  One size can be -1."""
    sizes = list(size)
    unknown = [i for i, dim in enumerate(sizes) if dim == -1]
    if len(unknown) > 1:
        raise RelvmFormatError(f"the size {list(size)} has several entries that are -1")
    if unknown:
        total = product(shape_of(x))
        others = product([dim for i, dim in enumerate(sizes) if i != unknown[0]])
        names = node.output_names()
        declared = node.importer.declared_shape(node.graph, names[0])[unknown[0]] if len(names) == 1 else None
        if declared is not None:
            sizes[unknown[0]] = declared
        elif others == 0:
            raise RelvmFormatError(f"the size {list(size)} is ambiguous")
        else:
            exact = exact_quotient(total, others)
            sizes[unknown[0]] = total // others if exact is None else exact
    return tuple(sizes)


@converts("view", "_unsafe_view", "unsafe_view", view=True)
def _view(node: Node, self: Expr, size: Sequence[AnyDim]) -> Expr:
    return ops.reshape(self, Shape(resolved_shape(node, self, size)))


@converts("reshape", may_view=True)
def _reshape(node: Node, self: Expr, shape: Sequence[AnyDim]) -> Expr:
    return ops.reshape(self, Shape(resolved_shape(node, self, shape)))


@converts("_reshape_alias", may_view=True)
def _reshape_alias(node: Node, self: Expr, size: Sequence[AnyDim], stride: Any) -> Expr:
    return ops.reshape(self, Shape(resolved_shape(node, self, size)))


@converts("view_as", "reshape_as", may_view=True)
def _view_as(node: Node, self: Expr, other: Expr) -> Expr:
    return ops.reshape(self, Shape(shape_of(other)))


@converts("view.dtype", view=True)
def _view_dtype(node: Node, self: Expr, dtype: DType) -> Expr:
    source = self.known_element_type
    if source == dtype:
        return self
    if source.bits != dtype.bits or dtype == BOOL:
        raise RelvmUnsupportedError(f"a view of {source} as {dtype} is not supported")
    return ops.bit_cast(self, to=dtype.name)


@converts("flatten.using_ints", may_view=True)
def _flatten(node: Node, self: Expr, start_dim: int = 0, end_dim: int = -1) -> Expr:
    shape = shape_of(self)
    if not shape:
        return ops.reshape(self, Shape((1,)))
    start, end = axis_of(start_dim, len(shape)), axis_of(end_dim, len(shape))
    return ops.reshape(self, Shape((*shape[:start], product(shape[start : end + 1]), *shape[end + 1 :])))


@converts("ravel", may_view=True)
def _ravel(node: Node, self: Expr) -> Expr:
    return ops.reshape(self, Shape((product(shape_of(self)),)))


@converts("unflatten.int", view=True)
def _unflatten(node: Node, self: Expr, dim: int, sizes: Sequence[AnyDim]) -> Expr:
    shape, dim = shape_of(self), axis_of(dim, _rank(self))
    found = list(sizes)
    if -1 in found:
        at = found.index(-1)
        found[at] = node.exact_quotient(shape[dim], product([s for s in found if s != -1]), "the size")
    return ops.reshape(self, Shape((*shape[:dim], *found, *shape[dim + 1 :])))


@converts("permute", view=True)
def _permute(node: Node, self: Expr, dims: Sequence[int]) -> Expr:
    rank = _rank(self)
    return transposed(self, [axis_of(axis, rank) for axis in dims]) if rank else self


def transposed(x: Expr, order: Sequence[int]) -> Expr:
    """Return x with its axes in another order.  Return x itself if the order is the same."""
    return x if list(order) == list(range(len(order))) else ops.transpose(x, perm=tuple(order))


def moved(x: Expr, source: int, target: int) -> Expr:
    """Return x with an axis moved to another position."""
    order = [axis for axis in range(_rank(x)) if axis != source]
    order.insert(target, source)
    return transposed(x, order)


@converts("transpose.int", "swapaxes", "swapdims", view=True)
def _transpose(
    node: Node, self: Expr, dim0: int = 0, dim1: int = 1, axis0: int | None = None, axis1: int | None = None
) -> Expr:
    rank = _rank(self)
    if rank == 0:
        return self
    order = list(range(rank))
    a, b = (axis_of(axis, rank) for axis in (dim0 if axis0 is None else axis0, dim1 if axis1 is None else axis1))
    order[a], order[b] = order[b], order[a]
    return transposed(self, order)


@converts("t", "numpy_T", "matrix_H", "mT", "mH", "adjoint", view=True)
def _t(node: Node, self: Expr) -> Expr:
    rank = _rank(self)
    if rank < 2:
        return self
    if node.node.target.endswith("numpy_T.default"):
        return transposed(self, range(rank)[::-1])
    return transposed(self, [*range(rank - 2), rank - 1, rank - 2])


@converts("movedim.int", "moveaxis.int", view=True)
def _movedim(node: Node, self: Expr, source: int, destination: int) -> Expr:
    rank = _rank(self)
    return moved(self, axis_of(source, rank), axis_of(destination, rank)) if rank else self


@converts("movedim.intlist", "moveaxis.intlist", view=True)
def _movedims(node: Node, self: Expr, source: Sequence[int], destination: Sequence[int]) -> Expr:
    rank = _rank(self)
    pairs = sorted((axis_of(b, rank), axis_of(a, rank)) for a, b in zip(source, destination, strict=True))
    order = [axis for axis in range(rank) if axis not in [a for _, a in pairs]]
    for target, axis in pairs:
        order.insert(target, axis)
    return transposed(self, order) if rank else self


@converts("expand", view=True)
def _expand(node: Node, self: Expr, size: Sequence[AnyDim], implicit: bool = False) -> Expr:
    shape = shape_of(self)
    extra = len(size) - len(shape)
    target = [shape[i - extra] if dim == -1 and i >= extra else dim for i, dim in enumerate(size)]
    return ops.broadcast_to(self, Shape(tuple(target)))


@converts("expand_as", view=True)
def _expand_as(node: Node, self: Expr, other: Expr) -> Expr:
    return ops.broadcast_to(self, Shape(shape_of(other)))


@converts("broadcast_to", view=True)
def _broadcast_to(node: Node, self: Expr, size: Sequence[AnyDim]) -> Expr:
    return _expand(node, self, size)


@converts("squeeze", "squeeze.dim", "squeeze.dims", view=True)
def _squeeze(node: Node, self: Expr, dim: int | Sequence[int] | None = None) -> Expr:
    shape = shape_of(self)
    axes = range(len(shape)) if dim is None else axes_of(dim, len(shape)) if dim != () else ()
    kept = tuple(size for axis, size in enumerate(shape) if axis not in axes or size != 1)
    return ops.reshape(self, Shape(kept))


@converts("unsqueeze", view=True)
def _unsqueeze(node: Node, self: Expr, dim: int) -> Expr:
    rank = _rank(self) + 1
    return ops.expand_dims(self, axes=(axis_of(dim, rank),))


def _bound(node: Node, size: AnyDim, bound: AnyDim | None, default: AnyDim) -> AnyDim:
    """Return a bound of a slice as a position in [0, size]."""
    if bound is None:
        return default
    if isinstance(bound, int):
        if isinstance(size, int):
            return max(0, min(size, bound + size if bound < 0 else bound))
        if bound >= _FAR:
            return size
        if bound < 0:
            return dim_op("max", size + bound, 0)
        return dim_op("min", size, bound) if bound else 0
    if isinstance(size, int) and size == 0:
        return 0
    if not is_never_negative(bound):
        is_negative = -dim_op("floordiv", bound, 1 << 62)  # 1 or 0
        bound = dim_op("max", bound + size * is_negative, 0)
    return dim_op("min", size, bound)


def sliced(
    node: Node,
    x: Expr,
    axis: int,
    start: AnyDim | None,
    end: AnyDim | None,
    step: int = 1,
    declared: AnyDim | None = None,
) -> Expr:
    """Return x[start:end:step] along an axis.

    start, end: numbers as in Python, or sizes.
    declared: the size of the result, if the program states it.
    """
    if (start is None or isinstance(start, int)) and (end is None or isinstance(end, int)):
        begin, stop = start or 0, _FAR if end is None else end
        if begin == 0 and stop >= _FAR and step == 1:
            return x
        return ops.slice(x, begin=(begin,), end=(stop,), axes=(axis,), steps=(step,))
    shape = shape_of(x)
    size = shape[axis]
    low, high = _bound(node, size, start, 0), _bound(node, size, end, size)
    count = high - low if step == 1 else (high - low + step - 1) // step
    if not is_never_negative(count):
        count = dim_op("max", count, 0) if declared is None else declared
    result = TensorType(x.known_element_type, (*shape[:axis], count, *shape[axis + 1 :]))
    starts = node.vector([low if i == axis else 0 for i in range(len(shape))])
    strides = node.vector([step if i == axis else 1 for i in range(len(shape))])
    kernel = slice_kernel(node.kernel_name("slice"), x.tensor_type, starts.tensor_type, strides.tensor_type, result)
    return node.call_kernel(kernel, [node.emit(x), starts, strides], [result])


@converts("slice.Tensor", view=True)
def _slice(node: Node, self: Expr, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Expr:
    axis = axis_of(dim, _rank(self))
    declared = node.importer.declared_shape(node.graph, node.output_names()[0])
    known = declared[axis] if len(declared) == _rank(self) else None
    return sliced(node, self, axis, start, end, known_int(step, "step"), known)


@converts("slice_copy.Tensor")
def _slice_copy(node: Node, self: Expr, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Expr:
    return _slice(node, self, dim, start, end, step)


@converts("narrow", view=True)
def _narrow(node: Node, self: Expr, dim: int, start: AnyDim, length: AnyDim) -> Expr:
    axis = axis_of(dim, _rank(self))
    if isinstance(start, int) and start < 0:
        start = shape_of(self)[axis] + start
    return sliced(node, self, axis, start, start + length)


def selected(node: Node, x: Expr, axis: int, index: Any) -> Expr:
    """Return the slice of x at a position of an axis, without the axis."""
    if isinstance(index, int):
        end = index + 1 if index != -1 else _FAR
        part = node.emit(ops.slice(x, begin=(index,), end=(end,), axes=(axis,)))
        shape = shape_of(x)
        return ops.reshape(part, Shape((*shape[:axis], *shape[axis + 1 :])))
    return ops.gather(x, node.number(index, I64), axis=axis)


@converts("select.int", view=True)
def _select(node: Node, self: Expr, dim: int, index: Any) -> Expr:
    return selected(node, self, axis_of(dim, _rank(self)), index)


@converts("select_copy.int")
def _select_copy(node: Node, self: Expr, dim: int, index: Any) -> Expr:
    return _select(node, self, dim, index)


@converts("unbind.int", view=True)
def _unbind(node: Node, self: Expr, dim: int = 0) -> tuple[Expr, ...]:
    axis = axis_of(dim, _rank(self))
    size = known_int(shape_of(self)[axis], "the size of the axis")
    return tuple(selected(node, self, axis, i) for i in range(size))


def _parts(node: Node, x: Expr, axis: int, sizes: Sequence[AnyDim]) -> tuple[Expr, ...]:
    found = []
    start: AnyDim = 0
    for size in sizes:
        end = start + size
        found.append(sliced(node, x, axis, start, end))
        start = end
    return tuple(found)


@converts("split.Tensor", "split.default", view=True)
def _split(node: Node, self: Expr, split_size: AnyDim | Sequence[AnyDim], dim: int = 0) -> tuple[Expr, ...]:
    axis = axis_of(dim, _rank(self))
    if isinstance(split_size, tuple):
        return _parts(node, self, axis, split_size)
    return _equal_parts(node, self, axis, split_size, len(node.output_names()))  # type: ignore[arg-type]


def _equal_parts(node: Node, x: Expr, axis: int, step: AnyDim, count: int) -> tuple[Expr, ...]:
    """Split x along an axis into `count` parts of the size `step`, of which the last can be smaller.

    The program states the number of parts.  If sizes are symbolic, this number is checked at run time.
    """
    size = shape_of(x)[axis]
    if not isinstance(size, int) or not isinstance(step, int):
        message = "the tensor has {} parts, but the program was exported for {}"
        node.importer.require("equal", -(-size // step), count, message)
    if count == 1:
        return (x,)
    return tuple(sliced(node, x, axis, i * step, size if i == count - 1 else (i + 1) * step) for i in range(count))


@converts("split_with_sizes", "split.sizes", view=True)
def _split_with_sizes(
    node: Node, self: Expr, split_sizes: Sequence[AnyDim] = (), dim: int = 0, split_size: Any = None
) -> tuple[Expr, ...]:
    return _parts(node, self, axis_of(dim, _rank(self)), split_size if split_size is not None else split_sizes)


@converts("split_copy.Tensor", "split_with_sizes_copy")
def _split_copy(
    node: Node, self: Expr, split_size: Any = None, dim: int = 0, split_sizes: Any = None
) -> tuple[Expr, ...]:
    return _split(node, self, tuple(split_sizes) if split_sizes is not None else split_size, dim)


@converts("chunk", view=True)
def _chunk(node: Node, self: Expr, chunks: int, dim: int = 0) -> tuple[Expr, ...]:
    axis = axis_of(dim, _rank(self))
    step = (shape_of(self)[axis] + chunks - 1) // chunks
    return _equal_parts(node, self, axis, step, len(node.output_names()))


@converts("tensor_split.sections", view=True)
def _tensor_split(node: Node, self: Expr, sections: AnyDim, dim: int = 0) -> tuple[Expr, ...]:
    axis = axis_of(dim, _rank(self))
    size, count = known_int(shape_of(self)[axis], "the size of the axis"), known_int(sections, "sections")
    step, rest = divmod(size, count)
    return _parts(node, self, axis, [step + (i < rest) for i in range(count)])


@converts("tensor_split.indices", view=True)
def _tensor_split_at(node: Node, self: Expr, indices: Sequence[AnyDim], dim: int = 0) -> tuple[Expr, ...]:
    axis = axis_of(dim, _rank(self))
    bounds = [0, *indices, None]
    return tuple(sliced(node, self, axis, low, high) for low, high in pairwise(bounds))


@converts("cat", "concat", "concatenate")
def _cat(node: Node, tensors: Sequence[Expr], dim: int = 0) -> Expr:
    """Skips empty tensors of rank 1, as in PyTorch."""
    dtype = node.out_dtype()
    rank = len(node.importer.declared_shape(node.graph, node.output_names()[0]))
    kept = [x for x in tensors if not (shape_of(x) == (0,) and rank != 1)]
    if not kept:
        return node.cast(tensors[0], dtype)
    return concatenated(node, [node.cast(x, dtype) for x in kept], axis_of(dim, rank))


def concatenated(node: Node, xs: Sequence[Expr], axis: int) -> Expr:
    """Concatenate tensors along an axis."""
    return xs[0] if len(xs) == 1 else ops.concat(*xs, axis=axis)


@converts("stack")
def _stack(node: Node, tensors: Sequence[Expr], dim: int = 0) -> Expr:
    axis = axis_of(dim, _rank(tensors[0]) + 1)
    dtype = node.out_dtype()
    return concatenated(node, [node.emit(ops.expand_dims(node.cast(x, dtype), axes=(axis,))) for x in tensors], axis)


@converts("hstack")
def _hstack(node: Node, tensors: Sequence[Expr]) -> Expr:
    xs = [node.reshaped(x, (1,)) if not shape_of(x) else x for x in tensors]
    return concatenated(node, [node.cast(x, node.out_dtype()) for x in xs], 0 if _rank(xs[0]) == 1 else 1)


@converts("vstack")
def _vstack(node: Node, tensors: Sequence[Expr]) -> Expr:
    xs = [node.reshaped(x, (1, product(shape_of(x)))) if _rank(x) < 2 else x for x in tensors]
    return concatenated(node, [node.cast(x, node.out_dtype()) for x in xs], 0)


@converts("row_stack")
def _row_stack(node: Node, tensors: Sequence[Expr]) -> Expr:
    return _vstack(node, tensors)


@converts("column_stack")
def _column_stack(node: Node, tensors: Sequence[Expr]) -> Expr:
    xs = [node.reshaped(x, (product(shape_of(x)), 1)) if _rank(x) < 2 else x for x in tensors]
    return concatenated(node, [node.cast(x, node.out_dtype()) for x in xs], 1)


@converts("dstack")
def _dstack(node: Node, tensors: Sequence[Expr]) -> Expr:
    xs = []
    for x in tensors:
        shape = shape_of(x) if _rank(x) > 1 else (1, product(shape_of(x)))
        xs.append(node.cast(node.reshaped(x, (*shape, 1) if len(shape) < 3 else shape), node.out_dtype()))
    return concatenated(node, xs, 2)


def _split_along(name: str, axis: int) -> None:
    @converts(f"{name}.int", view=True)
    def convert(node: Node, self: Expr, sections: AnyDim) -> tuple[Expr, ...]:
        return _tensor_split(node, self, sections, min(axis, _rank(self) - 1))

    @converts(f"{name}.array", view=True)
    def convert_at(node: Node, self: Expr, indices: Sequence[AnyDim]) -> tuple[Expr, ...]:
        return _tensor_split_at(node, self, indices, min(axis, _rank(self) - 1))


for _name, _axis in (("vsplit", 0), ("hsplit", 1), ("dsplit", 2)):
    _split_along(_name, _axis)


@converts("diff")
def _diff(
    node: Node, self: Expr, n: int = 1, dim: int = -1, prepend: Expr | None = None, append: Expr | None = None
) -> Expr:
    axis = axis_of(dim, _rank(self))
    given = [x for x in (prepend, self, append) if x is not None]
    x = concatenated(node, [node.cast(each, node.out_dtype()) for each in given], axis)
    for _ in range(n):
        x = node.emit(x)
        high, low = node.emit(sliced(node, x, axis, 1, None)), node.emit(sliced(node, x, axis, 0, -1))
        x = ops.not_equal(high, low) if x.known_element_type.is_bool else ops.subtract(high, low)
    return x


@converts("flip")
def _flip(node: Node, self: Expr, dims: Sequence[int]) -> Expr:
    axes = axes_of(tuple(dims), _rank(self)) if dims else ()
    if not axes or not shape_of(self):
        return self
    count = len(axes)
    return ops.slice(self, begin=(-1,) * count, end=(-_FAR,) * count, axes=axes, steps=(-1,) * count)


@converts("fliplr")
def _fliplr(node: Node, self: Expr) -> Expr:
    return _flip(node, self, (1,))


@converts("flipud")
def _flipud(node: Node, self: Expr) -> Expr:
    return _flip(node, self, (0,))


@converts("rot90")
def _rot90(node: Node, self: Expr, k: int = 1, dims: Sequence[int] = (0, 1)) -> Expr:
    rank = _rank(self)
    a, b = (axis_of(axis, rank) for axis in dims)
    order = list(range(rank))
    order[a], order[b] = order[b], order[a]
    match k % 4:
        case 1:
            return ops.transpose(_flip(node, self, (b,)), perm=tuple(order))
        case 2:
            return _flip(node, self, (a, b))
        case 3:
            return ops.transpose(_flip(node, self, (a,)), perm=tuple(order))
    return self


@converts("roll")
def _roll(node: Node, self: Expr, shifts: Sequence[AnyDim], dims: Sequence[int] = ()) -> Expr:
    shape = shape_of(self)
    if not dims:
        flat = node.reshaped(self, (product(shape),))
        return ops.reshape(_rolled(node, flat, shifts[0], 0), Shape(shape))
    result = self
    for shift, dim in zip(shifts, dims, strict=True):
        result = node.emit(_rolled(node, result, shift, axis_of(dim, len(shape))))
    return result


def _shifted_spectrum(name: str, *, inverse: bool) -> None:
    @converts(name)
    def convert(node: Node, self: Expr, dim: int | Sequence[int] | None = None) -> Expr:
        axes = axes_of(dim, _rank(self))
        sizes = [shape_of(self)[axis] for axis in axes]
        return _roll(node, self, [(size + 1) // 2 if inverse else size // 2 for size in sizes], axes) if axes else self


_shifted_spectrum("fft_fftshift", inverse=False)
_shifted_spectrum("fft_ifftshift", inverse=True)


def _rolled(node: Node, x: Expr, shift: AnyDim, axis: int) -> Expr:
    size = shape_of(x)[axis]
    if size == 0 or shift == 0:
        return x
    cut = (size - shift) % size
    if cut == 0:
        return x
    return ops.concat(sliced(node, x, axis, cut, None), sliced(node, x, axis, 0, cut), axis=axis)


@converts("repeat")
def _repeat(node: Node, self: Expr, repeats: Sequence[AnyDim]) -> Expr:
    return repeated(node, self, repeats)


def repeated(node: Node, x: Expr, repeats: Sequence[AnyDim]) -> Expr:
    """Return copies of x side by side.   repeats: the number of copies along each axis."""
    shape = (*(1,) * (len(repeats) - _rank(x)), *shape_of(x))
    spread = [item for pair in zip((1,) * len(shape), shape, strict=True) for item in pair]
    wide = [item for pair in zip(repeats, shape, strict=True) for item in pair]
    large = node.broadcast(node.reshaped(x, spread), wide)
    return ops.reshape(large, Shape(tuple(count * size for count, size in zip(repeats, shape, strict=True))))


@converts("tile")
def _tile(node: Node, self: Expr, dims: Sequence[AnyDim]) -> Expr:
    return repeated(node, self, (*(1,) * (_rank(self) - len(dims)), *dims))


@converts("repeat_interleave.self_int")
def _repeat_interleave(
    node: Node, self: Expr, repeats: AnyDim, dim: int | None = None, *, output_size: Any = None
) -> Expr:
    x = node.reshaped(self, (product(shape_of(self)),)) if dim is None else self
    if not shape_of(x):
        x = node.reshaped(x, (1,))
    axis = axis_of(dim or 0, _rank(x))
    shape = shape_of(x)
    spread = node.emit(ops.expand_dims(x, axes=(axis + 1,)))
    wide = node.broadcast(spread, (*shape[: axis + 1], repeats, *shape[axis + 1 :]))
    return ops.reshape(wide, Shape((*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :])))


def _padding_of(pad: Sequence[AnyDim], rank: int) -> tuple[list[AnyDim], list[AnyDim]]:
    """Return the padding before and after each axis.   pad: pairs for the last axes, the last axis first."""
    low: list[AnyDim] = [0] * rank
    high: list[AnyDim] = [0] * rank
    for i in range(len(pad) // 2):
        low[rank - 1 - i], high[rank - 1 - i] = pad[2 * i], pad[2 * i + 1]
    return low, high


@converts("constant_pad_nd")
def _constant_pad(node: Node, self: Expr, pad: Sequence[AnyDim], value: Any = 0) -> Expr:
    rank = _rank(self)
    low, high = _padding_of(pad, rank)
    fill = node.number(value, self.known_element_type)
    numbers = [size for size in (*low, *high) if isinstance(size, int)]
    if len(numbers) == 2 * rank:
        return padded(node.emit, self, fill, numbers[:rank], numbers[rank:], [0] * rank)
    if not all(map(is_never_negative, (*low, *high))):
        return padded_dynamically(node, node.emit(self), fill, low, high, [0] * rank)
    x = self
    for axis, counts in enumerate(zip(low, high, strict=True)):
        before, after = (node.broadcast(fill, (*shape_of(x)[:axis], n, *shape_of(x)[axis + 1 :])) for n in counts)
        x = node.emit(ops.concat(before, x, after, axis=axis))
    return x


@converts("pad")
def _pad(node: Node, self: Expr, pad: Sequence[AnyDim], mode: str = "constant", value: Any = None) -> Expr:
    if mode == "constant":
        return _constant_pad(node, self, pad, 0 if value is None else value)
    return _pad_with_elements(node, self, pad, {"replicate": "edge", "circular": "wrap"}.get(mode, mode))


def _pad_with_elements(node: Node, x: Expr, pad: Sequence[AnyDim], mode: str) -> Expr:
    """Return x padded with its own elements.  A negative number removes elements.

    mode: reflect, edge or wrap.
    """
    low, high = _padding_of(pad, _rank(x))
    if all(isinstance(size, int) and size >= 0 for size in (*low, *high)):
        return ops.pad(x, pads=tuple(size for size in (*low, *high) if isinstance(size, int)), mode=mode)
    for axis, (before, after) in enumerate(zip(low, high, strict=True)):
        if before == 0 and after == 0:
            continue
        size = shape_of(x)[axis]
        last = node.number(size - 1, I64)
        at = ops.subtract(ops.iota(Shape((before + size + after,))), node.number(before, I64))
        if mode == "wrap":  # only the elements that remain are repeated
            first, removed = dim_op("max", -before, 0), dim_op("max", -after, 0)
            start, kept = node.number(first, I64), node.number(size - first - removed, I64)
            at = ops.add(ops.modulo(ops.subtract(at, start), kept), start)
        elif mode == "edge":
            at = ops.minimum(ops.maximum(at, 0), last)
        else:  # at most one reflection at each end, because padding is shorter than the axis
            at = ops.subtract(last, ops.abs(ops.subtract(last, ops.abs(at))))
        x = node.emit(ops.gather(x, node.emit(at), axis=axis))
    return x


@converts("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def _reflection_pad(node: Node, self: Expr, padding: Sequence[AnyDim]) -> Expr:
    return _pad_with_elements(node, self, padding, "reflect")


@converts("replication_pad1d", "replication_pad2d", "replication_pad3d")
def _replication_pad(node: Node, self: Expr, padding: Sequence[AnyDim]) -> Expr:
    return _pad_with_elements(node, self, padding, "edge")


@converts("_pad_circular")
def _pad_circular(node: Node, self: Expr, pad: Sequence[AnyDim]) -> Expr:
    return _pad_with_elements(node, self, pad, "wrap")


@converts("resize")
def _resize(node: Node, self: Expr, size: Sequence[AnyDim]) -> Expr:
    """Supported only if the new number of elements is not larger."""
    old, new = product(shape_of(self)), product(tuple(size))
    if not isinstance(old, int) or not isinstance(new, int) or new > old:
        raise RelvmUnsupportedError("resize to more elements is not supported")
    flat = node.reshaped(self, (old,))
    return ops.reshape(node.emit(sliced(node, flat, 0, 0, new)), Shape(tuple(size)))


# ---- views with given strides ----


@value_record
class Layout:
    """The positions of the elements of a tensor in PyTorch's memory, in elements.

    shape: the size of each axis.
    strides: the distance of neighboring elements along each axis.
    offset: the position of the first element.
    """

    shape: tuple[AnyDim, ...]
    strides: tuple[AnyDim, ...]
    offset: AnyDim

    def storage_order(self) -> list[int] | None:
        """Return the axes from the largest to the smallest stride if the elements are dense in memory, otherwise None.

        Axes of size 1 come first.
        """
        order: list[int] = []
        rest = [axis for axis, size in enumerate(self.shape) if size != 1]
        expected: AnyDim = 1
        while rest:
            found = next((axis for axis in reversed(rest) if self.strides[axis] == expected), None)
            if found is None:
                return None
            rest.remove(found)
            order.insert(0, found)
            expected = expected * (self.shape[found] or 1)
        return [axis for axis, size in enumerate(self.shape) if size == 1] + order


def layout_of(node: Node, name: str) -> Layout:
    """Return the layout that PyTorch recorded for a tensor.

    Raises
    ------
    RelvmUnsupportedError
        A size or a stride is not known.
    """
    meta = node.graph.tensors[name]
    shape, strides = (
        tuple(node.importer.declared_dim(each) for each in meta.get(key) or ()) for key in ("sizes", "strides")
    )
    offset = node.importer.declared_dim(meta["storage_offset"])
    if offset is None or None in shape or None in strides:
        raise RelvmUnsupportedError(f"the strides of {shortened(name)} are known only at run time")
    return Layout(tuple(d for d in shape if d is not None), tuple(d for d in strides if d is not None), offset)


def in_storage_order(node: Node, x: Expr, layout: Layout, name: str) -> tuple[Expr, list[int]]:
    """Return the elements of x in the order of PyTorch's memory, as a vector, and the axes in this order.

    name: the name of x for the message.

    Raises
    ------
    RelvmUnsupportedError
        The memory contains elements that x does not have, or x contains elements several times.
    """
    order = layout.storage_order()
    if order is None:
        raise RelvmUnsupportedError(
            f"the strides of {shortened(name)}, {list(layout.strides)}, are not those of a dense tensor of shape"
            f" {list(layout.shape)}"
        )
    return node.reshaped(node.emit(transposed(x, order)), (product(shape_of(x)),)), order


def strided_positions(node: Node, layout: Layout, size: AnyDim) -> Expr:
    """Return the position in memory of each element of a tensor with the given layout.

    size: the number of elements in memory.

    Raises
    ------
    RelvmUnsupportedError
        A position is outside the memory.
    """
    numbers = [each for each in (*layout.shape, *layout.strides, layout.offset) if isinstance(each, int)]
    rank = len(layout.shape)
    if len(numbers) == 2 * rank + 1 and isinstance(size, int):
        found = np.full(numbers[:rank], numbers[-1], np.int64)
        for axis, (count, step) in enumerate(zip(numbers[:rank], numbers[rank:-1], strict=True)):
            found += (np.arange(count) * step).reshape([-1 if i == axis else 1 for i in range(rank)])
        if found.size and not 0 <= found.min() <= found.max() < size:
            raise RelvmUnsupportedError(
                f"the view reads the positions {found.min()} to {found.max()} of a tensor of {counted(size, 'element')}"
            )
        return constant(found)
    positions = node.full(layout.offset, layout.shape, I64)
    for axis, (extent, stride) in enumerate(zip(layout.shape, layout.strides, strict=True)):
        steps = node.emit(ops.multiply(ops.iota(Shape((extent,))), node.number(stride, I64)))
        column = node.reshaped(steps, (extent, *[1] * (rank - 1 - axis)))
        positions = node.emit(ops.add(positions, column))
    return positions


@converts("as_strided", "as_strided_copy", may_view=True)
def _as_strided(
    node: Node, self: Expr, size: Sequence[AnyDim], stride: Sequence[AnyDim], storage_offset: AnyDim | None = None
) -> Expr:
    """Reads the memory of a tensor whose elements are dense in memory, or of which the tensor is a view."""
    (name,) = tensor_names(node.arguments()["self"])
    own = layout_of(node, name)
    wanted = Layout(tuple(size), tuple(stride), own.offset if storage_offset is None else storage_offset)
    if wanted == own:
        return self
    base, base_name = (self, name) if is_complex_tensor(node.graph, name) else node.importer.base_of(name)
    memory = layout_of(node, base_name)
    flat, _ = in_storage_order(node, base, memory, base_name)
    total = product(memory.shape)
    wanted = replace(wanted, offset=wanted.offset - memory.offset)
    if wanted.offset == 0 and product(wanted.shape) == total and wanted.storage_order() == list(range(len(size))):
        return ops.reshape(flat, Shape(wanted.shape))
    return ops.gather(flat, strided_positions(node, wanted, total), axis=0)


@converts("unfold", view=True)
def _unfold(node: Node, self: Expr, dimension: int, size: int, step: int) -> Expr:
    shape = shape_of(self)
    if not shape:
        return node.reshaped(self, (1,)) if size == 1 else self
    axis = axis_of(dimension, len(shape))
    count = dim_op("floordiv", shape[axis] - size, step) + 1
    starts = node.emit(ops.multiply(ops.iota(Shape((count,))), step))
    positions = node.emit(ops.add(node.reshaped(starts, (count, 1)), np.arange(size)))
    windows = node.emit(ops.gather(self, positions, axis=axis))
    return moved(windows, axis + 1, len(shape))


@converts("diagonal", "diagonal_copy", "linalg_diagonal", view=True)
def _diagonal(node: Node, self: Expr, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Expr:
    return diagonal(node, self, offset, dim1, dim2)


def diagonal(node: Node, x: Expr, offset: int, dim1: int, dim2: int) -> Expr:
    """Return x with axes dim1 and dim2 replaced by their diagonal, which becomes the last axis."""
    shape = shape_of(x)
    a, b = axis_of(dim1, len(shape)), axis_of(dim2, len(shape))
    rows, columns = shape[a], shape[b]
    count = dim_op("max", dim_op("min", rows + min(offset, 0), columns - max(offset, 0)), 0)
    order = [axis for axis in range(len(shape)) if axis not in (a, b)]
    rest = [shape[axis] for axis in order]
    flat = node.reshaped(node.emit(transposed(x, [*order, a, b])), (*rest, rows * columns))
    first: AnyDim = -min(offset, 0) * columns + max(offset, 0)
    steps = ops.multiply(ops.iota(Shape((count,))), node.number(columns + 1, I64))
    return ops.gather(flat, node.emit(ops.add(steps, node.number(first, I64))), axis=len(rest))


def _triangle(node: Node, x: Expr, diagonal: AnyDim, *, lower: bool) -> Expr:
    shape = shape_of(x)
    rows = node.reshaped(node.emit(ops.iota(Shape((shape[-2],)))), (shape[-2], 1))
    columns = node.emit(ops.iota(Shape((shape[-1],))))
    limit = ops.add(rows, node.number(diagonal, I64))
    inside = ops.less_equal(columns, limit) if lower else ops.greater_equal(columns, limit)
    return ops.where(inside, x, node.number(0, x.known_element_type))


@converts("tril")
def _tril(node: Node, self: Expr, diagonal: AnyDim = 0) -> Expr:
    return _triangle(node, self, diagonal, lower=True)


@converts("triu")
def _triu(node: Node, self: Expr, diagonal: AnyDim = 0) -> Expr:
    return _triangle(node, self, diagonal, lower=False)


@converts("diag_embed")
def _diag_embed(node: Node, self: Expr, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Expr:
    shape = shape_of(self)
    size = shape[-1] + abs(offset)
    wide = node.emit(ops.expand_dims(self, axes=(len(shape),)))
    rows = node.reshaped(node.emit(ops.iota(Shape((shape[-1],)))), (shape[-1], 1))
    columns = node.emit(ops.iota(Shape((size,))))
    row_shift, column_shift = max(-offset, 0), max(offset, 0)
    inside = ops.equal(ops.add(rows, column_shift), columns)
    square = node.emit(ops.where(inside, wide, node.number(0, self.known_element_type)))
    if offset:  # add rows before or after
        rank = len(shape) + 1
        before, after = [0] * rank, [0] * rank
        before[rank - 2], after[rank - 2] = row_shift, column_shift
        square = node.emit(ops.pad(square, pads=(*before, *after)))
    rank = len(shape) + 1
    a, b = axis_of(dim1, rank), axis_of(dim2, rank)
    order: list[int] = list(range(rank - 2))
    for target, source in sorted(((a, rank - 2), (b, rank - 1))):
        order.insert(target, source)
    return transposed(square, order)


@converts("diag")
def _diag(node: Node, self: Expr, diagonal: int = 0) -> Expr:
    return _diag_embed(node, self, diagonal) if _rank(self) == 1 else _diagonal(node, self, diagonal)


@converts("pixel_shuffle")
def _pixel_shuffle(node: Node, self: Expr, upscale_factor: int) -> Expr:
    *batch, channels, height, width = shape_of(self)
    r, n = upscale_factor, len(batch)
    features = node.exact_quotient(channels, r * r, "the number of channels")
    split = node.reshaped(self, (*batch, features, r, r, height, width))
    order = (*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    return ops.reshape(node.emit(ops.transpose(split, perm=order)), Shape((*batch, features, height * r, width * r)))


@converts("pixel_unshuffle")
def _pixel_unshuffle(node: Node, self: Expr, downscale_factor: int) -> Expr:
    *batch, channels, height, width = shape_of(self)
    r, n = downscale_factor, len(batch)
    rows, columns = (node.exact_quotient(size, r, "a size") for size in (height, width))
    split = node.reshaped(self, (*batch, channels, rows, r, columns, r))
    order = (*range(n + 1), n + 2, n + 4, n + 1, n + 3)
    return ops.reshape(node.emit(ops.transpose(split, perm=order)), Shape((*batch, channels * r * r, rows, columns)))


@converts("channel_shuffle", "native_channel_shuffle")
def _channel_shuffle(node: Node, self: Expr, groups: int) -> Expr:
    batch, channels, *rest = shape_of(self)
    each = node.exact_quotient(channels, groups, "the number of channels")
    split = node.reshaped(self, (batch, groups, each, *rest))
    order = (0, 2, 1, *range(3, len(rest) + 3))
    return ops.reshape(node.emit(ops.transpose(split, perm=order)), Shape((batch, channels, *rest)))


@converts("meshgrid", "meshgrid.indexing", may_view=True)
def _meshgrid(node: Node, tensors: Sequence[Expr], *, indexing: str = "ij") -> tuple[Expr, ...]:
    sizes = [product(shape_of(x)) for x in tensors]
    order = list(range(len(sizes)))
    if indexing == "xy" and len(sizes) >= 2:
        order[0], order[1] = 1, 0
    shape = [sizes[i] for i in order]
    found = []
    for i, x in enumerate(tensors):
        ones: list[AnyDim] = [1] * len(sizes)
        ones[order.index(i)] = sizes[i]
        found.append(node.broadcast(node.reshaped(x, ones), shape))
    return tuple(found)


@converts("broadcast_tensors")
def _broadcast_tensors(node: Node, tensors: Sequence[Expr]) -> tuple[Expr, ...]:
    return tuple(node.broadcast(x, node.out_shape(i)) for i, x in enumerate(tensors))


def _at_least(rank: int, *names: str) -> None:
    @converts(*names, may_view=True)
    def convert(node: Node, self: Expr) -> Expr:
        shape = shape_of(self)
        if len(shape) >= rank:
            return self
        if rank == 3 and len(shape) == 2:
            return node.reshaped(self, (*shape, 1))
        if rank == 3 and len(shape) == 1:
            return node.reshaped(self, (1, *shape, 1))
        return node.reshaped(self, (*(1,) * (rank - len(shape)), *shape))


_at_least(1, "atleast_1d")
_at_least(2, "atleast_2d")
_at_least(3, "atleast_3d")


refuses(
    "nested, sparse and quantized tensors are not supported",
    *("to_sparse", "_nested_tensor_from_mask", "quantize_per_tensor", "_to_sparse", "sparse_coo_tensor", "to_dense"),
)
