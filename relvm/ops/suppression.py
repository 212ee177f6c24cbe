"""Boxes that overlap with better ones, left out."""

from __future__ import annotations

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmIndexError
from relvm.ir.dtypes import F32, I64
from relvm.ir.operator import expect, op
from relvm.ir.types import TensorType
from relvm.lir.kernel import KernelBuilder, Literal, Scalar, Select, as_scalar
from relvm.ops.lowering import Loops, part_loops
from relvm.ops.rules import expect_equal_dims, expect_tensor


def _numpy_corners(box: np.ndarray, centred: bool) -> tuple:
    """Along both axes, the lower and the higher end."""
    if centred:
        half = box[2:] / np.float32(2)
        return (box[0] - half[0], box[0] + half[0]), (box[1] - half[1], box[1] + half[1])
    return tuple((min(box[i], box[i + 2]), max(box[i], box[i + 2])) for i in (0, 1))


def _numpy_overlap(first: tuple, second: tuple) -> np.float32:
    """The part of both boxes' area that is common."""
    sides = [min(a[1], b[1]) - max(a[0], b[0]) for a, b in zip(first, second, strict=True)]
    areas = [(box[0][1] - box[0][0]) * (box[1][1] - box[1][0]) for box in (first, second)]
    if min(*sides, *areas) <= 0:
        return np.float32(0)
    common = sides[0] * sides[1]
    return common / (areas[0] + areas[1] - common)


def _numpy_suppress_overlaps(boxes, scores, order, limit, overlap, threshold, *, centred: bool) -> np.ndarray:
    result = np.full(scores.shape, -1, np.int64)
    for image, kind in np.ndindex(scores.shape[:2]):
        chosen: list[int] = []
        for at in order[image, kind]:
            if not 0 <= at < scores.shape[2]:
                raise RelvmIndexError(f"suppress_overlaps: box {at} is outside of {scores.shape[2]}")
            above = np.isnan(threshold) or scores[image, kind, at] > threshold
            if len(chosen) >= limit or not above:
                continue
            corners = _numpy_corners(boxes[image, at], centred)
            others = (_numpy_corners(boxes[image, other], centred) for other in chosen)
            if not any((part := _numpy_overlap(corners, other)) > 0 and part > overlap for other in others):
                chosen.append(at)
        result[image, kind, : len(chosen)] = chosen
    return result


def _suppress_overlaps(k: KernelBuilder, inputs, outputs, *, centred: bool) -> None:
    """The boxes chosen so far stand in the result itself."""
    (boxes, scores, order, limit, overlap, threshold), (out,) = inputs, outputs
    images, kinds, count = scores.shape
    size = as_scalar(count, I64)
    with k.loop(k.size(order.shape), name="n") as n:
        at = k.declare("at", order.flat(n))
        message = "suppress_overlaps: box %lld is outside of %lld"
        k.fail((at < 0).either(at >= size), "INDEX_ERROR", message, at, size)

    def corners(image: Scalar, at: Scalar) -> list[tuple[Scalar, Scalar]]:
        box = [k.declare("box", boxes[image, at, i]) for i in range(4)]
        pairs = []
        for first, second in zip(box[:2], box[2:], strict=True):
            low, high = _smaller(first, second), _larger(first, second)
            if centred:
                low, high = first - second / 2, first + second / 2
            pairs.append((k.declare("low", low), k.declare("high", high)))
        return pairs

    with part_loops(k, [images, kinds], size * 64) as (image, kind):
        start = k.declare("start", (image * as_scalar(kinds, I64) + kind) * size)
        chosen = k.declare("chosen", Literal(0, I64))
        with k.loop(size, name="n", simd=True) as n:
            k.store(out, (start + n,), -1)
        with k.loop(size, name="n") as n:
            at = k.declare("at", order.flat(start + n))
            least = threshold[()]
            above = (scores.flat(start + at) > least).either(least.differs(least))
            with k.branch((chosen < limit[()]).both(above)):
                hidden = k.declare("hidden", Literal(0, I64))
                one = corners(image, at)
                with k.loop(chosen, name="m") as m:
                    other = corners(image, k.declare("other", out.flat(start + m)))
                    part = _overlap(k, one, other)
                    k.assign(hidden, Select((part > 0).both(part > overlap[()]), Literal(1, I64), hidden))
                with k.branch(hidden.equals(0)):
                    k.store(out, (start + chosen,), at)
                    k.assign(chosen, chosen + 1)


def _overlap(k: KernelBuilder, first, second) -> Scalar:
    sides = [k.declare("side", _smaller(a[1], b[1]) - _larger(a[0], b[0])) for a, b in zip(first, second, strict=True)]
    areas = [k.declare("area", (box[0][1] - box[0][0]) * (box[1][1] - box[1][0])) for box in (first, second)]
    some = [value > 0 for value in (*sides, *areas)]
    common = k.declare("common", sides[0] * sides[1])
    all_ = some[0].both(some[1]).both(some[2]).both(some[3])
    return k.declare("part", Select(all_, common / (areas[0] + areas[1] - common), Literal(0.0, F32)))


def _smaller(x: Scalar, y: Scalar) -> Scalar:
    return Select(x < y, x, y)


def _larger(x: Scalar, y: Scalar) -> Scalar:
    return Select(x > y, x, y)


@op("suppress_overlaps", numpy=_numpy_suppress_overlaps, lower=Loops(_suppress_overlaps))
def suppress_overlaps(
    boxes: TensorType,
    scores: TensorType,
    order: TensorType,
    limit: TensorType,
    overlap: TensorType,
    threshold: TensorType,
    *,
    centred: bool = False,
) -> TensorType:
    """Of each image and kind, the boxes that are looked at one after the other and do not overlap with one chosen
    before.

    boxes: f32(images, n, 4): two opposite corners, or where `centred` is set the centre and the sides.   scores:
    f32(images, kinds, n).   order: i64, of the shape of scores: the boxes in the order in which they are looked at.
    limit: i64[]: how many are chosen at most.   overlap: f32[]: a box overlaps with another where the common part of
    the area of both is more than that.   threshold: f32[]: a box whose score is not above it is not chosen; NaN: none
    is left out.   Result: i64, the shape of scores: the boxes chosen, in order, then -1.
    Raises RelvmTypeError: other dtypes or ranks.  RelvmArgumentError: `centred` is no bool.  RelvmShapeError: numbers
    that differ.  At run time RelvmIndexError: no such box.   Source: ONNX NonMaxSuppression-11.
    """
    given = {"boxes": boxes, "scores": scores, "order": order, "limit": limit, "overlap": overlap}
    wanted = (F32, 3), (F32, 3), (I64, 3), (I64, 0), (F32, 0), (F32, 0)
    for (name, type_), (dtype, rank) in zip([*given.items(), ("threshold", threshold)], wanted, strict=True):
        expect_tensor("suppress_overlaps", **{name: type_})
        fits = type_.dtype == dtype and type_.rank in (None, rank)
        expect(fits, "suppress_overlaps: {} is {}, expected {} of rank {}", name, type_, dtype, rank)
    is_bool = isinstance(centred, bool)
    expect(is_bool, "suppress_overlaps: centred is {!r}, expected a bool", centred, error=RelvmArgumentError)
    if scores.shape is None:
        return TensorType(I64, None, 3)
    for axis, (first, second) in enumerate(zip(scores.shape, order.shape or scores.shape, strict=True)):
        expect_equal_dims("suppress_overlaps", f"dimension {axis} of scores and order differs", first, second)
    if boxes.shape is not None:
        expect_equal_dims("suppress_overlaps", "the numbers of images differ", scores.shape[0], boxes.shape[0])
        expect_equal_dims("suppress_overlaps", "the numbers of boxes differ", scores.shape[2], boxes.shape[1])
        expect_equal_dims("suppress_overlaps", "a box is not four numbers", 4, boxes.shape[2])
    return TensorType(I64, scores.shape)
