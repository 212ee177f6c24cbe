"""Non-maximum suppression."""

from __future__ import annotations

import numpy as np

from relvm.errors import RelvmArgumentError
from relvm.ir.dtypes import F32, I64
from relvm.ir.loop_ir import Address, Literal, Scalar, as_scalar, maximum, minimum, select
from relvm.ir.operator import expect, op
from relvm.ir.type_rules import expect_equal_dims, expect_tensor
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import CustomKernel, parallel_loop_nest
from relvm.ops.sort_topk import check_positions, numpy_top_positions, packed_position, sort_key, unpack_positions

_SCORES = 512  # scores that are compared with the threshold together
_SELECTED = 64  # selected boxes that are compared with a box together


def _numpy_corners(box: np.ndarray, centred: bool) -> tuple:
    """Return the lower and the upper bound of a box along each of its two axes.

    centred: whether `box` contains the center and the side lengths, instead of two opposite corners.
    """
    if centred:
        half = box[2:] / np.float32(2)
        return (box[0] - half[0], box[0] + half[0]), (box[1] - half[1], box[1] + half[1])
    return tuple((min(box[i], box[i + 2]), max(box[i], box[i + 2])) for i in (0, 1))


def _numpy_intersection_over_union(first: tuple, second: tuple) -> np.float32:
    sides = [min(a[1], b[1]) - max(a[0], b[0]) for a, b in zip(first, second, strict=True)]
    areas = [(box[0][1] - box[0][0]) * (box[1][1] - box[1][0]) for box in (first, second)]
    if min(*sides, *areas) <= 0:
        return np.float32(0)
    common = sides[0] * sides[1]
    return common / (areas[0] + areas[1] - common)


def _numpy_non_max_suppression(boxes, scores, limit, overlap, threshold, *, centred: bool) -> np.ndarray:
    result = np.full(scores.shape, -1, np.int64)
    order = numpy_top_positions(scores, scores.shape, axis=2, largest=True)
    for image, kind in np.ndindex(scores.shape[:2]):
        chosen: list[int] = []
        for at in order[image, kind]:
            above = np.isnan(threshold) or scores[image, kind, at] > threshold
            if len(chosen) >= limit or not above:
                continue
            corners = _numpy_corners(boxes[image, at], centred)
            others = (_numpy_corners(boxes[image, other], centred) for other in chosen)
            if not any(
                (part := _numpy_intersection_over_union(corners, other)) > 0 and part > overlap for other in others
            ):
                chosen.append(at)
        result[image, kind, : len(chosen)] = chosen
    return result


def _non_max_suppression(k: KernelBuilder, inputs, outputs, *, centred: bool) -> None:
    """Generate the kernel of `non_max_suppression`, which works in place in the rows of the result.

    A row first contains the boxes above the threshold, as results of `packed_position`, and is sorted.  The loop over
    these boxes stores the position of each selected box behind that of the last one, where it replaces a box that the
    loop has passed.
    """
    (boxes, scores, limit, overlap, threshold), (out,) = inputs, outputs
    images, kinds, count = scores.shape
    size, zero, least = as_scalar(count, I64), Literal(0, I64), threshold[()]

    def corners(image: Scalar, at: Scalar) -> list[tuple[Scalar, Scalar]]:
        box = [k.let("box", boxes[image, at, i]) for i in range(4)]
        pairs: list[tuple[Scalar, Scalar]] = []
        for first, second in zip(box[:2], box[2:], strict=True):
            low, high = minimum(first, second), maximum(first, second)
            if centred:
                low, high = first - second / 2, first + second / 2
            pairs.append((k.let("low", low), k.let("high", high)))
        return pairs

    check_positions(k, "non_max_suppression", size)
    with parallel_loop_nest(k, [images, kinds], size * 64) as (image, kind):
        start = k.let("start", (image * as_scalar(kinds, I64) + kind) * size)
        left, chosen = k.variable("left", zero), k.variable("chosen", zero)

        def is_above(n: Scalar) -> Scalar:
            return (scores.flat(start + n) > least).logical_or(least.ne(least))

        with k.loop((size + (_SCORES - 1)) / _SCORES, name="part") as part:
            first = k.let("first", part * _SCORES)
            end = k.let("end", minimum(size, first + _SCORES))
            above = k.variable("above", zero)
            with k.loop(end, start=first, name="n", simd=True, reduce=[("add", above)]) as n:
                k.assign(above, above + is_above(n).to(I64))
            with k.branch(above > 0), k.loop(end, start=first, name="n") as n, k.branch(is_above(n)):
                k.store(out, (start + left,), packed_position(sort_key(scores.flat(start + n), True), n))
                k.assign(left, left + 1)
        k.invoke("rvm_sort_i64", values=Address(out, start), count=left)
        unpack_positions(k, out, start, left)
        with k.loop(select(chosen < limit[()], left, zero), name="n") as n:
            at = k.let("at", out.flat(start + n))
            hidden, one = k.variable("hidden", zero), corners(image, at)
            blocks = k.let("blocks", (chosen + (_SELECTED - 1)) / _SELECTED)
            with k.loop(select(hidden.eq(0), blocks, zero), name="block") as block:
                first = k.let("first", block * _SELECTED)
                end = k.let("end", minimum(chosen, first + _SELECTED))
                with k.loop(end, start=first, name="m", simd=True, reduce=[("add", hidden)]) as m:
                    part = _intersection_over_union(k, one, corners(image, k.let("other", out.flat(start + m))))
                    k.assign(hidden, hidden + (part > 0).logical_and(part > overlap[()]).to(I64))
            with k.branch(hidden.eq(0)):
                k.store(out, (start + chosen,), at)
                k.assign(chosen, chosen + 1)
        with k.loop(size, start=chosen, name="n", simd=True) as n:
            k.store(out, (start + n,), -1)


def _intersection_over_union(k: KernelBuilder, first, second) -> Scalar:
    sides = [k.let("side", minimum(a[1], b[1]) - maximum(a[0], b[0])) for a, b in zip(first, second, strict=True)]
    areas = [k.let("area", (box[0][1] - box[0][0]) * (box[1][1] - box[1][0])) for box in (first, second)]
    some = [value > 0 for value in (*sides, *areas)]
    common = k.let("common", sides[0] * sides[1])
    all_ = some[0].logical_and(some[1]).logical_and(some[2]).logical_and(some[3])
    return k.let("part", select(all_, common / (areas[0] + areas[1] - common), Literal(0.0, F32)))


@op("non_max_suppression", numpy=_numpy_non_max_suppression, lower=CustomKernel(_non_max_suppression))
def non_max_suppression(
    boxes: TensorType,
    scores: TensorType,
    limit: TensorType,
    overlap: TensorType,
    threshold: TensorType,
    *,
    centred: bool = False,
) -> TensorType:
    """Non-maximum suppression: for each image and class, the boxes that do not overlap a selected box of higher score.

    boxes: an f32 tensor of shape (images, n, 4).  A box consists of two opposite corners or, if `centred` is set, of
    the center and the side lengths.
    scores: an f32 tensor of shape (images, classes, n).  If boxes have equal scores, the one with the lowest index is
    selected first.
    limit: an i64 tensor of rank 0, the maximum number of boxes to select for each image and class.
    overlap: an f32 tensor of rank 0.  Two boxes overlap if their intersection over union is greater than this
    number and than 0.
    threshold: an f32 tensor of rank 0.  Only boxes with a greater score are selected.  If it is NaN, any score
    suffices.
    centred: whether boxes are given by center and side lengths.
    Result: an i64 tensor with the shape of `scores`.  Each row contains the indices of the selected boxes, the best
    first, and is filled up with -1.
    Raises RelvmTypeError if an argument has another dtype or rank.  Raises RelvmArgumentError if `centred` is not a
    bool.  Raises RelvmShapeError if boxes and scores differ in the number of images or boxes, or a box does not have 4
    numbers.  At run time, it also raises RelvmShapeError if there are more than 2^32 boxes.
    Source: ONNX NonMaxSuppression-11.

    Examples:

        >>> run(
        ...     "non_max_suppression(boxes, scores, limit, overlap, threshold)",
        ...     boxes=[[[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.9], [5.0, 5.0, 6.0, 6.0]]],
        ...     scores=[[[0.8, 0.9, 0.3]]],
        ...     limit=3,
        ...     overlap=0.5,
        ...     threshold=0.0,
        ... )
        [[[ 1  2 -1]]]
    """
    given = {"boxes": boxes, "scores": scores, "limit": limit, "overlap": overlap}
    expected = (F32, 3), (F32, 3), (I64, 0), (F32, 0), (F32, 0)
    for (name, type_), (dtype, rank) in zip([*given.items(), ("threshold", threshold)], expected, strict=True):
        expect_tensor("non_max_suppression", **{name: type_})
        fits = type_.dtype == dtype and type_.rank in (None, rank)
        expect(fits, "non_max_suppression: {} is {}, expected {} of rank {}", name, type_, dtype, rank)
    is_bool = isinstance(centred, bool)
    expect(is_bool, "non_max_suppression: centred is {!r}, expected a bool", centred, error=RelvmArgumentError)
    if scores.shape is None:
        return TensorType(I64, None, 3)
    if boxes.shape is not None:
        expect_equal_dims(
            "non_max_suppression", "numbers of images in scores and boxes differ", scores.shape[0], boxes.shape[0]
        )
        expect_equal_dims(
            "non_max_suppression", "numbers of boxes in scores and boxes differ", scores.shape[2], boxes.shape[1]
        )
        expect_equal_dims("non_max_suppression", "a box must consist of 4 numbers", 4, boxes.shape[2])
    return TensorType(I64, scores.shape)
