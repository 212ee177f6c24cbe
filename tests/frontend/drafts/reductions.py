"""Drafts of operators along axes: reductions, sums, orders, and the choice of elements by their values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from frontend.drafts.draft import DTYPES, MOVED, Draft


def reduction(draft: Draft, dtypes: tuple[str, ...] = DTYPES, first_opset: int = 18, highest: float = 4) -> None:
    """Draw a reduction of a nonempty tensor, because ONNX Runtime does not reduce empty tensors without axes.

    first_opset: the first opset in which the axes are an input.
    highest: the limit of the elements.
    """
    shape = draft.positive_shape()
    draft.tensor(shape, draft.one_of(*dtypes), 1, highest)
    axes = draft.axes(shape, draft.number(1, max(len(shape), 1)))
    if axes:
        draft.list_of("axes", first_opset, axes)
    draft.attributes["keepdims"] = draft.number(0, 1)


def position(draft: Draft) -> None:
    shape = draft.positive_shape(1)
    draft.tensor(shape, draft.one_of(*DTYPES), 0, 3)
    draft.attributes.update(axis=draft.axis(shape), keepdims=draft.number(0, 1))
    if draft.opset >= 12:
        draft.attributes["select_last_index"] = draft.number(0, 1)


def along_an_axis(draft: Draft) -> None:
    shape = draft.shape(1)
    draft.tensor(shape, draft.one_of("float32", "float64") if draft.opset >= 13 else "float32")
    draft.attributes["axis"] = draft.axis(shape)


def largest(draft: Draft) -> None:
    shape = draft.positive_shape(1)
    axis, dtype = draft.axis(shape), draft.one_of(*DTYPES) if draft.opset >= 11 else "float32"
    count = int(np.prod(shape))
    draft.arrays.append(draft.random.permutation(count).astype(dtype).reshape(shape))
    draft.list_of("k", 10, [draft.number(0, shape[axis])])
    if isinstance(count := draft.attributes.get("k"), list):
        draft.attributes["k"] = count[0]
    draft.attributes["axis"] = axis
    if draft.opset >= 11:
        draft.attributes["largest"] = draft.number(0, 1)
    draft.outputs = 2


def summed_up(draft: Draft) -> None:
    shape = draft.shape(1)
    draft.tensor(shape, draft.one_of(*DTYPES))
    draft.arrays.append(np.array(draft.axis(shape), draft.one_of("int32", "int64")))
    draft.attributes.update(exclusive=draft.number(0, 1), reverse=draft.number(0, 1))


def positions_of_nonzeros(draft: Draft) -> None:
    draft.tensor(draft.shape(1), draft.one_of(*MOVED), 0, 2)


def compressed(draft: Draft) -> None:
    shape = draft.positive_shape(1)
    draft.tensor(shape, draft.one_of(*MOVED))
    length = int(np.prod(shape))
    if draft.number(0, 1):
        draft.attributes["axis"] = draft.axis(shape)
        length = shape[draft.attributes["axis"]]
    draft.arrays.append(draft.random.integers(0, 2, draft.number(1, length)).astype(bool))


def different_elements(draft: Draft) -> None:
    shape = draft.positive_shape(1)
    draft.tensor(shape, draft.one_of("float32", "float64", "int64", "int8"), 0, 3)
    draft.arrays[0] = np.floor(draft.arrays[0]).astype(draft.arrays[0].dtype)
    draft.attributes["sorted"] = 1
    if draft.number(0, 1):
        draft.attributes["axis"] = draft.axis(shape)
    draft.outputs = draft.number(1, 4)


def divided_by_deviation(draft: Draft) -> None:
    shape = [size + 1 for size in draft.positive_shape(2)]
    draft.arrays.append(draft.random.standard_normal(shape).astype(np.float32))
    draft.attributes["axes"] = draft.axes(shape, draft.number(1, len(shape)))


REDUCTIONS = ("Mean", "Max", "Min", "SumSquare", "L1", "L2")

DRAFTS: dict[str, Callable[[Draft], None]] = {
    **{f"Reduce{name}": reduction for name in REDUCTIONS},
    "ReduceProd": partial(reduction, highest=1.5),
    "ReduceSum": partial(reduction, first_opset=13),
    **dict.fromkeys(("ReduceLogSum", "ReduceLogSumExp"), partial(reduction, dtypes=("float32", "float64"))),
    **dict.fromkeys(("ArgMax", "ArgMin"), position),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax", "LpNormalization"), along_an_axis),
    "Compress": compressed,
    "CumProd": summed_up,
    "CumSum": summed_up,
    "MeanVarianceNormalization": divided_by_deviation,
    "NonZero": positions_of_nonzeros,
    "TopK": largest,
    "Unique": different_elements,
}
