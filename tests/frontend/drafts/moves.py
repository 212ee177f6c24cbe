"""Drafts of operators that move elements, or make tensors of given sizes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from frontend.drafts.draft import DTYPES, MOVED, Draft
from onnx import TensorProto, numpy_helper


def moved(draft: Draft) -> None:
    draft.tensor(draft.shape(), draft.one_of(*MOVED))


def part_of_shape(draft: Draft) -> None:
    moved(draft)
    if draft.opset >= 15:
        draft.attributes.update(start=draft.number(-5, 5), end=draft.number(-5, 5))


def flattened(draft: Draft) -> None:
    shape = draft.shape(1)
    draft.tensor(shape, draft.one_of(*MOVED))
    draft.attributes["axis"] = draft.axis(shape)


def transposed(draft: Draft) -> None:
    moved(draft)
    assert draft.arrays[0] is not None
    if draft.arrays[0].ndim:
        draft.attributes["perm"] = [int(axis) for axis in draft.random.permutation(draft.arrays[0].ndim)]


def joined(draft: Draft) -> None:
    shape, dtype = draft.shape(1), draft.one_of(*MOVED)
    axis = draft.axis(shape)
    for _ in range(draft.number(1, 3)):
        shape[axis] = draft.number(0, 3)
        draft.tensor(shape, dtype)
    draft.attributes["axis"] = axis


def reshaped(draft: Draft) -> None:
    shape = draft.positive_shape()
    draft.tensor(shape, draft.one_of(*MOVED))
    rest = int(np.prod(shape))
    first = draft.one_of(*(size for size in range(1, rest + 1) if rest % size == 0))
    draft.numbers(*draft.one_of((first, rest // first), (1, rest), (rest,), (-1, first), (first, -1, 1)))


def expanded(draft: Draft) -> None:
    shape = draft.shape()
    draft.tensor(draft.broadcast(shape), draft.one_of(*MOVED))
    draft.numbers(*([2] * draft.number(0, 1)), *shape)


def tiled(draft: Draft) -> None:
    shape = draft.shape(1)
    draft.tensor(shape, draft.one_of(*MOVED))
    draft.numbers(*(draft.number(0, 3) for _ in shape))


def with_new_axes(draft: Draft) -> None:
    shape = draft.shape()
    draft.tensor(shape, draft.one_of(*MOVED))
    draft.list_of("axes", 13, draft.axes([*shape, 1, 1], 2))


def without_axes(draft: Draft) -> None:
    draft.tensor([2, 1, draft.number(0, 3), 1], draft.one_of(*MOVED))
    draft.list_of("axes", 13, draft.one_of([1], [3], [1, 3], *(([-1], [-3, -1]) if draft.opset >= 13 else ())))


def in_parts(draft: Draft) -> None:
    shape = draft.shape(1)
    axis = draft.axis(shape)
    draft.attributes["axis"] = axis
    if draft.number(0, 2):
        parts = [draft.number(0, 3), draft.number(0, 3)]
        shape[axis] = sum(parts)
        draft.tensor(shape, draft.one_of(*MOVED))
        draft.list_of("split", 13, parts)
    elif draft.opset < 18:
        shape[axis] = 4
        draft.tensor(shape, draft.one_of(*MOVED))
    else:
        shape[axis] = draft.number(1, 5)
        draft.tensor(shape, draft.one_of(*MOVED))
        draft.attributes["num_outputs"] = 2
    draft.outputs = 2


def sliced(draft: Draft) -> None:
    shape = draft.shape(1)
    draft.tensor(shape, draft.one_of(*MOVED))
    axis, ends = draft.axis(shape), (-(2**63), -9, -2, -1, 0, 1, 2, 9, 2**62)
    draft.list_of("starts", 10, [draft.one_of(*ends)])
    draft.list_of("ends", 10, [draft.one_of(*ends)])
    draft.list_of("axes", 10, [axis])
    if draft.opset >= 10:
        draft.numbers(draft.one_of(1, 2, -1, -3))


def margin(draft: Draft) -> None:
    shape = draft.positive_shape(1)
    mode = draft.one_of("constant", "edge", "reflect", *(["wrap"] if draft.opset >= 19 else []))
    dtype = draft.one_of(*DTYPES) if draft.opset >= 13 else draft.one_of("float32", "float64")
    draft.tensor(shape, dtype)
    draft.list_of("pads", 11, [draft.number(0, min(2, size - 1)) for size in shape * 2])
    draft.attributes["mode"] = mode
    if mode == "constant" and draft.number(0, 1):
        if draft.opset >= 11:
            draft.arrays.append(np.array(3, dtype))
        else:
            draft.attributes["value"] = 3.0


def gathered(draft: Draft) -> None:
    shape = draft.positive_shape(1)
    axis = draft.axis(shape)
    draft.tensor(shape, draft.one_of(*MOVED))
    low = -shape[axis] if draft.opset >= 11 else 0
    draft.arrays.append(
        draft.random.integers(low, shape[axis], draft.shape(0, 2)).astype(draft.one_of("int32", "int64"))
    )
    draft.attributes["axis"] = axis


def gathered_elements(draft: Draft) -> None:
    shape = draft.positive_shape(1)
    axis = draft.axis(shape)
    draft.tensor(shape, draft.one_of(*MOVED))
    sizes = [draft.number(0, size) for size in shape]
    draft.arrays.append(draft.random.integers(-shape[axis], shape[axis], sizes))
    draft.attributes["axis"] = axis


def gathered_parts(draft: Draft) -> None:
    shape = draft.positive_shape(1)
    draft.tensor(shape, draft.one_of(*MOVED))
    batch = draft.number(0, len(shape) - 1) if draft.opset >= 12 else 0
    if batch:
        draft.attributes["batch_dims"] = batch
    depth = draft.number(1, len(shape) - batch)
    count = [*shape[:batch], *draft.shape(0, 2)]
    columns = [draft.random.integers(-size, size, count) for size in shape[batch : batch + depth]]
    draft.known.add(1)
    draft.arrays.append(np.stack(columns, axis=-1))


def scattered(draft: Draft) -> None:
    shape = draft.positive_shape(1)
    axis = draft.axis(shape)
    dtype = draft.one_of(*MOVED)
    draft.tensor(shape, dtype)
    sizes = [draft.number(0, size) for size in shape]
    sizes[axis] = min(sizes[axis], 1)  # a position is written once
    low = -shape[axis] if draft.opset >= 11 else 0
    draft.arrays.append(draft.random.integers(low, shape[axis], sizes))
    draft.tensor(sizes, dtype)
    draft.attributes["axis"] = axis


def combined(draft: Draft) -> None:
    """Draw a ScatterElements node that combines elements, from the opset on that can."""
    shape = draft.positive_shape(1)
    axis, dtype = draft.axis(shape), draft.one_of("float32", "float64", "int32", "int64")
    if draft.opset < 16 or draft.number(0, 1):
        scattered(draft)
        return
    draft.tensor(shape, dtype)
    sizes = [draft.number(0, size) for size in shape]
    draft.arrays.append(draft.random.integers(-shape[axis], shape[axis], sizes))
    draft.tensor(sizes, dtype, 1)
    draft.attributes.update(axis=axis, reduction=draft.one_of("add", "mul"))
    if draft.opset >= 18:
        draft.attributes["reduction"] = draft.one_of("add", "mul", "min", "max")


def scattered_parts(draft: Draft) -> None:
    shape, dtype = draft.positive_shape(1), draft.one_of("float32", "float64", "int32", "int64")
    draft.tensor(shape, dtype)
    depth = draft.number(1, len(shape))
    places = [tuple(place) for place in np.ndindex(*shape[:depth])]
    chosen = draft.random.permutation(len(places))[: draft.number(1, 3)]
    draft.known.add(1)
    draft.arrays.append(np.array([places[i] for i in chosen], np.int64))
    draft.tensor([len(chosen), *shape[depth:]], dtype, 1)
    if draft.opset >= 16:
        draft.attributes["reduction"] = draft.one_of("none", "add", "mul")


def triangle(draft: Draft) -> None:
    draft.tensor(draft.shape(2), draft.one_of("float32", "float64", "int64", "bool"))
    if draft.number(0, 1):
        draft.arrays.append(np.array(draft.number(-5, 5), np.int64))
    draft.attributes["upper"] = draft.number(0, 1)


def image(draft: Draft) -> None:
    draft.tensor([draft.number(0, 2), 4, 2 * draft.number(0, 2), 4], draft.one_of("float32", "float64"))
    draft.attributes["blocksize"] = 2


def image_of_channels(draft: Draft) -> None:
    image(draft)
    if draft.opset >= 11:
        draft.attributes["mode"] = draft.one_of("DCR", "CRD")


def ones_at_positions(draft: Draft) -> None:
    depth, shape = draft.number(1, 5), draft.shape(0, 3)
    low = -depth - 1 if draft.opset >= 11 else 0
    draft.arrays.append(draft.random.integers(low, depth + 2, shape))
    draft.arrays.append(np.array(depth if draft.number(0, 1) else [depth], np.int64))
    draft.tensor([2], draft.one_of("float32", "int64", "int32"))
    draft.attributes["axis"] = draft.number(-1, len(shape)) if draft.opset >= 11 else draft.number(0, len(shape))


def diagonal(draft: Draft) -> None:
    draft.tensor(draft.shape(2, 2), draft.one_of(*MOVED))
    draft.attributes["k"] = draft.number(-4, 4)
    if draft.number(0, 1):
        draft.attributes["dtype"] = draft.one_of(TensorProto.FLOAT, TensorProto.INT64, TensorProto.UINT8)


def filled(draft: Draft) -> None:
    draft.numbers(*draft.shape())
    if draft.number(0, 3):
        value = np.array([draft.number(0, 3)], draft.one_of(*MOVED))
        draft.attributes["value"] = numpy_helper.from_array(value)


def counted(draft: Draft) -> None:
    dtype = draft.one_of("float32", "float64", "int32", "int64", "int16")
    start, step = draft.number(-5, 5), draft.one_of(-3, -1, 1, 2)
    limit = start + step * draft.number(-1, 5) + draft.one_of(0, 0, step // abs(step))
    draft.arrays += [np.array(value, dtype) for value in (start, limit, step)]


def reversed_parts(draft: Draft) -> None:
    time, batch = draft.number(1, 4), draft.number(1, 4)
    time_axis = draft.number(0, 1)
    shape = [time, batch] if time_axis == 0 else [batch, time]
    draft.tensor([*shape, *draft.shape(0, 2)], draft.one_of(*MOVED))
    draft.arrays.append(draft.random.integers(1, time + 1, batch))
    draft.attributes.update(time_axis=time_axis, batch_axis=1 - time_axis)


def centered(draft: Draft) -> None:
    shape = draft.positive_shape(1)
    draft.tensor(shape, draft.one_of(*DTYPES))
    axes = draft.axes(shape, draft.number(1, len(shape)))
    draft.numbers(*(draft.number(0, 6) for _ in axes))
    draft.attributes["axes"] = axes


def item_of_sequence(draft: Draft) -> None:
    some_items(draft)
    draft.arrays.append(np.array(draft.number(-draft.sequence, draft.sequence - 1), np.int64))


def some_items(draft: Draft) -> None:
    dtype, draft.sequence = draft.one_of(*MOVED), draft.number(1, 3)
    for _ in range(draft.sequence):
        draft.tensor(draft.shape(), dtype)


def inserted_item(draft: Draft) -> None:
    some_items(draft)
    assert draft.arrays[0] is not None
    draft.tensor(draft.shape(), draft.arrays[0].dtype.name)
    draft.arrays.append(np.array(draft.number(-draft.sequence, draft.sequence), np.int64))


def items_of_one_shape(draft: Draft) -> None:
    dtype, shape, draft.sequence = draft.one_of(*MOVED), draft.shape(1), draft.number(1, 3)
    for _ in range(draft.sequence):
        draft.tensor(shape, dtype)
    draft.attributes.update(axis=draft.axis(shape), new_axis=draft.number(0, 1))


def split_to_items(draft: Draft) -> None:
    shape = draft.positive_shape(1)
    draft.tensor(shape, draft.one_of(*MOVED))
    axis = draft.axis(shape)
    draft.attributes["axis"] = axis
    match draft.number(0, 2):
        case 0:
            draft.attributes["keepdims"] = draft.number(0, 1)
        case 1:
            draft.arrays.append(np.array(draft.number(1, 3), np.int64))
        case 2:
            first = draft.number(0, shape[axis])
            draft.numbers(first, shape[axis] - first)


def written_rows(draft: Draft) -> None:
    """Draw an update of a cache along its second last axis."""
    batch, heads, length, width = 2, draft.number(1, 2), draft.number(2, 5), draft.number(1, 3)
    rows, mode = draft.number(1, length), draft.one_of("linear", "circular")
    draft.tensor([batch, heads, length, width])
    draft.tensor([batch, heads, rows, width])
    if draft.number(0, 1):
        last = length - 1 if mode == "circular" else length - rows
        draft.arrays.append(draft.random.integers(0, last + 1, batch))
    draft.attributes["mode"] = mode


DRAFTS: dict[str, Callable[[Draft], None]] = {
    **dict.fromkeys(("Identity", "Size"), moved),
    "CenterCropPad": centered,
    "Concat": joined,
    "ConcatFromSequence": items_of_one_shape,
    "ConstantOfShape": filled,
    "DepthToSpace": image_of_channels,
    "Expand": expanded,
    "EyeLike": diagonal,
    "Flatten": flattened,
    "Gather": gathered,
    "GatherElements": gathered_elements,
    "GatherND": gathered_parts,
    "OneHot": ones_at_positions,
    "Pad": margin,
    "Range": counted,
    "Reshape": reshaped,
    "ReverseSequence": reversed_parts,
    "Scatter": scattered,
    "ScatterElements": combined,
    "ScatterND": scattered_parts,
    "SequenceAt": item_of_sequence,
    "SequenceErase": item_of_sequence,
    "SequenceInsert": inserted_item,
    "SequenceLength": some_items,
    "Shape": part_of_shape,
    "Slice": sliced,
    "SpaceToDepth": image,
    "Split": in_parts,
    "SplitToSequence": split_to_items,
    "Squeeze": without_axes,
    "TensorScatter": written_rows,
    "Tile": tiled,
    "Transpose": transposed,
    "Trilu": triangle,
    "Unsqueeze": with_new_axes,
}
