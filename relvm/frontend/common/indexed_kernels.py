"""Kernels that read and write at computed positions: general gather and scatter, and slices at run-time positions."""

from __future__ import annotations

from collections.abc import Sequence

from relvm.data_classes import value_record
from relvm.errors import RelvmShapeError
from relvm.frontend.common.kernel_parts import buffer, buffers, clamped, copy, index_of, is_inside, loops, size
from relvm.frontend.common.scalar_code import ScalarFunction
from relvm.ir.dtypes import BOOL, I64
from relvm.ir.kernel_def import KernelDef
from relvm.ir.loop_ir import Buffer, Literal, Operation, Scalar
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder


@value_record
class GatherDimensions:
    """The dimension numbers of a gather.

    Attributes
    ----------
    offset_dims
        The axes of the result that run over a slice.  The others run over the indices.
    collapsed_slice_dims
        The axes of the operand whose slices have size 1 and are not in the result.
    operand_batching_dims, start_indices_batching_dims
        Batch axes of the operand, and the corresponding batch axes of the indices.  A slice is read at the same
        position along both.
    start_index_map
        For each component of an index vector, the axis of the operand that it positions.
    index_vector_dim
        The axis of the indices that contains an index vector, or their rank if an index is a scalar.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...]
    start_indices_batching_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    index_vector_dim: int


def gather_shape(
    x: TensorType, indices: TensorType, dims: GatherDimensions, slice_sizes: Sequence[AnyDim]
) -> tuple[AnyDim, ...]:
    """Return the shape of the result of a gather.  Raise RelvmShapeError if the dimension numbers do not fit."""
    rank, index_shape = len(x.known_shape), indices.known_shape
    vector = dims.index_vector_dim
    dropped = {*dims.collapsed_slice_dims, *dims.operand_batching_dims}
    count = index_shape[vector] if vector < len(index_shape) else 1
    batch = [size for axis, size in enumerate(index_shape) if axis != vector]
    offsets = [size for axis, size in enumerate(slice_sizes) if axis not in dropped]
    result_rank = len(batch) + len(offsets)
    is_valid = (
        len(slice_sizes) == rank
        and 0 <= vector <= len(index_shape)
        and count == len(dims.start_index_map)
        and len(dims.offset_dims) == len(offsets)
        and len(dims.operand_batching_dims) == len(dims.start_indices_batching_dims)
        and _are_axes(dims.offset_dims, result_rank)
        and _are_axes((*dims.collapsed_slice_dims, *dims.operand_batching_dims), rank)
        and _are_axes(dims.start_index_map, rank)
        and _are_axes(dims.start_indices_batching_dims, len(index_shape))
        and vector not in dims.start_indices_batching_dims
    )
    if not is_valid:
        raise RelvmShapeError(f"the dimension numbers do not fit an operand {x} and indices {indices}: {dims}")
    for axis, length in enumerate(slice_sizes):
        extent = x.known_shape[axis]
        if isinstance(length, int) and isinstance(extent, int) and not 0 <= length <= extent:
            raise RelvmShapeError(f"slice_sizes[{axis}] is {length}, expected 0 to {extent}")
        if axis in dropped and isinstance(length, int) and length > 1:
            raise RelvmShapeError(f"slice_sizes[{axis}] is {length}, expected at most 1 for an axis that is removed")
    parts, rest = iter(offsets), iter(batch)
    return tuple(next(parts) if axis in dims.offset_dims else next(rest) for axis in range(result_rank))


def _are_axes(axes: Sequence[int], rank: int) -> bool:
    return len(set(axes)) == len(axes) and all(0 <= axis < rank for axis in axes)


def gather_kernel(
    name: str,
    x: TensorType,
    indices: TensorType,
    result: TensorType,
    dims: GatherDimensions,
    slice_sizes: Sequence[AnyDim],
) -> KernelDef:
    """Return the kernel of a gather: slices of x at positions that `indices` contains.

    A position is clamped so that the slice is inside x.   result: the type of the result (`gather_shape`).

    Notes
    -----
    Source: StableHLO gather.
    """
    k = KernelBuilder()
    source, positions, out = buffer("x", x), buffer("indices", indices), buffer("out", result, is_output=True)
    batch_axes = [axis for axis in range(len(out.shape)) if axis not in dims.offset_dims]
    dropped = {*dims.collapsed_slice_dims, *dims.operand_batching_dims}
    offset_axes = [axis for axis in range(len(source.shape)) if axis not in dropped]
    lengths: list[Scalar] = [
        size(out.shape[dims.offset_dims[offset_axes.index(axis)]]) if axis in offset_axes else Literal(1, I64)
        for axis in range(len(source.shape))
    ]
    with loops(k, [out.shape[axis] for axis in batch_axes]) as batch:
        starts = _starts(k, source, positions, batch, dims, lengths)
        with loops(k, [out.shape[axis] for axis in sorted(dims.offset_dims)]) as offsets:
            offset_of = dict(zip(offset_axes, offsets, strict=True))
            at = tuple(start + offset_of[axis] if axis in offset_of else start for axis, start in enumerate(starts))
            place = dict(zip(batch_axes, batch, strict=True)) | dict(
                zip(sorted(dims.offset_dims), offsets, strict=True)
            )
            k.store(out, tuple(place[axis] for axis in range(len(out.shape))), source[at])
    return KernelDef(name, (source, positions), (out,), k.finish())


def _starts(
    k: KernelBuilder,
    source: Buffer,
    positions: Buffer,
    batch: Sequence[Scalar],
    dims: GatherDimensions,
    lengths: Sequence[Scalar],
) -> list[Scalar]:
    """Return the position of a slice along each axis of `source`, clamped so that the slice is inside the source.

    positions: the buffer of the indices.
    batch: the position along the axes of the indices other than `dims.index_vector_dim`.
    lengths: the sizes of the slice.
    """
    starts: list[Scalar] = [Literal(0, I64)] * len(source.shape)
    for component, axis in enumerate(dims.start_index_map):
        index = index_of(positions[_index_place(batch, component, dims.index_vector_dim, len(positions.shape))])
        starts[axis] = k.let("start", clamped(index, size(source.shape[axis]) - lengths[axis]))
    for axis, other in zip(dims.operand_batching_dims, dims.start_indices_batching_dims, strict=True):
        starts[axis] = batch[other - (other > dims.index_vector_dim)]
    return starts


def _index_place(batch: Sequence[Scalar], component: int, vector_axis: int, rank: int) -> tuple[Scalar, ...]:
    """Return the position of one component of an index vector in the tensor of indices, which has rank `rank`.

    batch: the position along all axes except `vector_axis`, the axis along which the index vectors lie.  If
    `vector_axis` is `rank`, there is no such axis, and an index vector has one component.
    """
    place = list(batch)
    if vector_axis < rank:
        place.insert(vector_axis, Literal(component, I64))
    return tuple(place)


@value_record
class ScatterDimensions:
    """The dimension numbers of a scatter.

    Attributes
    ----------
    update_window_dims
        The axes of the updates that run over a window.  The others run over the indices.
    inserted_window_dims
        The axes of the operand that the window does not have.
    input_batching_dims, scatter_indices_batching_dims
        Batch axes of the operand, and the corresponding batch axes of the indices.  An update is applied at the same
        position along both.
    scatter_dims_to_operand_dims
        For each component of an index vector, the axis of the operand that it positions.
    index_vector_dim
        The axis of the indices that contains an index vector, or their rank if an index is a scalar.
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    input_batching_dims: tuple[int, ...]
    scatter_indices_batching_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    index_vector_dim: int


def check_scatter(x: TensorType, indices: TensorType, updates: TensorType, dims: ScatterDimensions) -> None:
    """Raise RelvmShapeError if the dimension numbers of a scatter do not fit the types."""
    rank, index_shape, update_rank = len(x.known_shape), indices.known_shape, len(updates.known_shape)
    vector = dims.index_vector_dim
    count = index_shape[vector] if vector < len(index_shape) else 1
    batch = [extent for axis, extent in enumerate(index_shape) if axis != vector]
    dropped = (*dims.inserted_window_dims, *dims.input_batching_dims)
    update_batch = [extent for axis, extent in enumerate(updates.known_shape) if axis not in dims.update_window_dims]
    is_valid = (
        0 <= vector <= len(index_shape)
        and count == len(dims.scatter_dims_to_operand_dims)
        and _are_axes(dims.update_window_dims, update_rank)
        and _are_axes(dropped, rank)
        and _are_axes(dims.scatter_dims_to_operand_dims, rank)
        and _are_axes(dims.scatter_indices_batching_dims, len(index_shape))
        and vector not in dims.scatter_indices_batching_dims
        and len(dims.input_batching_dims) == len(dims.scatter_indices_batching_dims)
        and len(dims.update_window_dims) == rank - len(dropped)
        and len(update_batch) == len(batch)
        and all(
            one == other or not isinstance(one, int) or not isinstance(other, int)
            for one, other in zip(update_batch, batch, strict=True)
        )
    )
    if not is_valid:
        raise RelvmShapeError(
            f"the dimension numbers do not fit an operand {x}, indices {indices} and updates {updates}: {dims}"
        )


def scatter_kernel(
    name: str,
    xs: Sequence[TensorType],
    indices: TensorType,
    updates: Sequence[TensorType],
    dims: ScatterDimensions,
    combine: ScalarFunction,
) -> KernelDef:
    """Return the kernel of a scatter: copies of `xs` in which elements are combined with updates.

    A window of updates that is not entirely inside the operands is ignored.  Updates are applied in row-major order.

    combine: computes new elements from the elements of all operands, then those of all updates.

    Notes
    -----
    Source: StableHLO scatter.  The specification ignores only the elements outside of the operands.  XLA and JAX
    (GatherScatterMode.FILL_OR_DROP) ignore the whole window, so that programs of JAX need this.
    """
    k = KernelBuilder()
    sources, positions = buffers("x", xs), buffer("indices", indices)
    changes, outs = buffers("updates", updates), buffers("out", xs, is_output=True)
    for source, out in zip(sources, outs, strict=True):
        copy(k, source, out)
    first, change = outs[0], changes[0]
    batch_axes = [axis for axis in range(len(change.shape)) if axis not in dims.update_window_dims]
    dropped = {*dims.inserted_window_dims, *dims.input_batching_dims}
    window_axes = [axis for axis in range(len(first.shape)) if axis not in dropped]
    with loops(k, [change.shape[axis] for axis in batch_axes]) as batch:
        starts: list[Scalar] = [Literal(0, I64)] * len(first.shape)
        for component, axis in enumerate(dims.scatter_dims_to_operand_dims):
            place = _index_place(batch, component, dims.index_vector_dim, len(positions.shape))
            starts[axis] = k.let("start", index_of(positions[place]))
        for axis, other in zip(dims.input_batching_dims, dims.scatter_indices_batching_dims, strict=True):
            starts[axis] = batch[other - (other > dims.index_vector_dim)]
        window_dims = sorted(dims.update_window_dims)
        lengths = dict(zip(window_axes, (change.shape[axis] for axis in window_dims), strict=True))
        inside: Scalar = Literal(True, BOOL)
        for axis, (start, extent) in enumerate(zip(starts, first.shape, strict=True)):
            length = size(lengths[axis]) if axis in lengths else Literal(1, I64)
            inside = inside.logical_and(start >= 0).logical_and(start <= size(extent) - length)
        with k.branch(inside), loops(k, [change.shape[axis] for axis in window_dims]) as offsets:
            offset_of = dict(zip(window_axes, offsets, strict=True))
            at = tuple(start + offset_of[axis] if axis in offset_of else start for axis, start in enumerate(starts))
            places = dict(zip(batch_axes, batch, strict=True)) | dict(zip(window_dims, offsets, strict=True))
            place = tuple(places[axis] for axis in range(len(change.shape)))
            results = combine(k, *(out[at] for out in outs), *(change[place] for change in changes))
            for out, result in zip(outs, results, strict=True):
                k.store(out, at, result)
    return KernelDef(name, (*sources, positions, *changes), tuple(outs), k.finish())


def dynamic_slice_kernel(name: str, x: TensorType, starts: Sequence[TensorType], result: TensorType) -> KernelDef:
    """Return the kernel that reads a slice of x at a position, which is clamped so that the slice is inside x.

    starts: the types of the positions, one tensor of rank 0 for each axis.
    """
    k = KernelBuilder()
    source, out = buffer("x", x), buffer("out", result, is_output=True)
    indices = [buffer(f"start{axis}", type_) for axis, type_ in enumerate(starts)]
    first = [
        k.let("first", clamped(index_of(index[()]), size(extent) - size(length)))
        for index, extent, length in zip(indices, source.shape, out.shape, strict=True)
    ]
    with loops(k, out.shape) as at:
        k.store(out, at, source[tuple(start + i for start, i in zip(first, at, strict=True))])
    return KernelDef(name, (source, *indices), (out,), k.finish())


def dynamic_update_slice_kernel(
    name: str, x: TensorType, update: TensorType, starts: Sequence[TensorType]
) -> KernelDef:
    """Return the kernel that replaces a slice of x at a position, which is clamped so that the slice is inside x.

    starts: the types of the positions, one tensor of rank 0 for each axis.
    """
    k = KernelBuilder()
    source, change, out = buffer("x", x), buffer("update", update), buffer("out", x, is_output=True)
    indices = [buffer(f"start{axis}", type_) for axis, type_ in enumerate(starts)]
    copy(k, source, out)
    first = [
        k.let("first", clamped(index_of(index[()]), size(extent) - size(length)))
        for index, extent, length in zip(indices, out.shape, change.shape, strict=True)
    ]
    with loops(k, change.shape) as at:
        k.store(out, tuple(start + i for start, i in zip(first, at, strict=True)), change[at])
    return KernelDef(name, (source, change, *indices), (out,), k.finish())


def slice_kernel(name: str, x: TensorType, starts: TensorType, strides: TensorType, result: TensorType) -> KernelDef:
    """Return the kernel that reads every strides[axis]-th element of x from the position starts[axis] on.

    starts, strides: the types of vectors with one element for each axis.
    result: the type of the result, which determines the number of elements to read along each axis.
    """
    k = KernelBuilder()
    source, first, step = buffer("x", x), buffer("starts", starts), buffer("strides", strides)
    out = buffer("out", result, is_output=True)
    with loops(k, out.shape) as at:
        place = tuple(index_of(first[axis]) + i * index_of(step[axis]) for axis, i in enumerate(at))
        k.store(out, at, source[place])
    return KernelDef(name, (source, first, step), (out,), k.finish())


def pad_kernel(
    name: str, x: TensorType, value: TensorType, low: TensorType, interior: TensorType, result: TensorType
) -> KernelDef:
    """Return the kernel that pads x: low[axis] elements before it, and interior[axis] between its elements.

    value: the type of the element that is added, a tensor of rank 0.
    low, interior: the types of vectors with one element for each axis.
    result: the type of the result.  The elements after those of x are padding, too.
    """
    k = KernelBuilder()
    source, added, before, between = (
        buffer("x", x),
        buffer("value", value),
        buffer("low", low),
        buffer("interior", interior),
    )
    out = buffer("out", result, is_output=True)
    with loops(k, out.shape) as at:
        inside: Scalar = Literal(True, BOOL)
        place: list[Scalar] = []
        for axis, i in enumerate(at):
            position = k.let("position", i - index_of(before[axis]))
            step = k.let("step", index_of(between[axis]) + 1)
            index = k.let("index", Operation("floordiv", (position, step), I64))
            inside = inside.logical_and((index * step).eq(position)).logical_and(is_inside(index, source.shape[axis]))
            place.append(index)
        element = k.variable("element", added[()])
        with k.branch(inside):
            k.assign(element, source[tuple(place)])
        k.store(out, at, element)
    return KernelDef(name, (source, added, before, between), (out,), k.finish())
