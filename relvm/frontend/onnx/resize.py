"""Resize and Upsample: axis by axis, each place of the result a weighted sum of elements of the input.

Where along the input the places lie, and the weights, are computed by operators on f64 vectors: constants that are
folded where the sizes are known, and small computations at run time where they are symbolic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.onnx.registry import Node, converts
from relvm.frontend.onnx.sampling import NEAREST_MODES, Axis, clamped_table, nearest_positions, places_on, table
from relvm.frontend.onnx.terms import Term, term
from relvm.ir.dims import AnyDim
from relvm.ir.expr import Expr


@dataclass(frozen=True)
class _Target:
    """One axis to resize.  size: of the result.  scale: as stated; None where the size is stated instead."""

    axis: int
    size: AnyDim
    scale: Fraction | None
    roi: tuple[float, float]


@converts("Upsample")
def _upsample(node: Node) -> Expr:
    """Places lie at place / scale, as in a Resize before opset 11."""
    scales = node.attribute("scales") if node.opset < 9 else node.known(1, "the scales of an Upsample").tolist()
    return _resized(node, _by_scales(node, list(range(node.type(0).rank)), scales), "asymmetric", None)


@converts("Resize")
def _resize(node: Node) -> Expr:
    if node.opset < 11:
        scales = node.known(1, "the scales of a Resize").tolist()
        return _resized(node, _by_scales(node, list(range(node.type(0).rank)), scales), "asymmetric", None)
    rank = node.type(0).rank
    axes = [axis % rank for axis in node.attribute("axes", list(range(rank)))]
    by_scales, by_sizes = (node.has(i) and not _is_empty(node, i) for i in (2, 3))
    if by_scales == by_sizes:
        raise RelvmFormatError(f"a Resize takes scales or sizes, this has {'both' if by_scales else 'neither'}")
    how = node.attribute("coordinate_transformation_mode", "half_pixel")
    roi = _roi(node, axes) if how == "tf_crop_and_resize" else [(0.0, 1.0)] * len(axes)
    if by_scales:
        targets = _by_scales(node, axes, node.known(2, "the scales of a Resize").tolist(), roi)
    else:
        targets = _by_sizes(node, axes, node.dims(3, "the sizes of a Resize"), roi)
    return _resized(node, targets, how, node.attribute("nearest_mode", "round_prefer_floor"))


def _is_empty(node: Node, index: int) -> bool:
    return node.type(index).shape == (0,)


def _roi(node: Node, axes: list[int]) -> list[tuple[float, float]]:
    bounds = node.known(1, "the roi of a Resize").reshape(-1).tolist()
    if len(bounds) != 2 * len(axes):
        raise RelvmShapeError(f"a roi of {len(bounds)} numbers for {len(axes)} axes, expected two for each")
    return list(zip(bounds[: len(axes)], bounds[len(axes) :], strict=True))


def _shape(node: Node) -> tuple[AnyDim, ...]:
    shape = node.type(0).shape
    if shape is None:
        raise RelvmUnsupportedError(f"{node.proto.op_type} of a tensor of type {node.type(0)}: its shape must be known")
    return shape


def _by_scales(node: Node, axes: list[int], scales: list[float], roi: list | None = None) -> list[_Target]:
    """The size is the dimension times the scale, rounded down."""
    if len(scales) != len(axes) or any(scale <= 0 for scale in scales):
        raise RelvmShapeError(f"scales are {scales}, expected {len(axes)} numbers above 0")
    targets = []
    for axis, scale, part in zip(axes, scales, roi or [(0.0, 1.0)] * len(axes), strict=True):
        ratio = _ratio(scale)
        size = _shape(node)[axis] * ratio.numerator // ratio.denominator
        targets.append(_Target(axis, size, ratio, part))
    return targets


def _ratio(scale: float) -> Fraction:
    """What an f32 stands for: the short fraction that rounds to it, such as 3 / 5, or else its own value."""
    short = Fraction(scale).limit_denominator(4096)
    return short if np.float32(float(short)) == np.float32(scale) else Fraction(scale)


def _by_sizes(node: Node, axes: list[int], sizes: list[AnyDim], roi: list) -> list[_Target]:
    if len(sizes) != len(axes):
        raise RelvmShapeError(f"{len(sizes)} sizes for {len(axes)} axes")
    policy = node.attribute("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return [_Target(axis, size, None, part) for axis, size, part in zip(axes, sizes, roi, strict=True)]
    if policy not in ("not_larger", "not_smaller"):
        raise RelvmUnsupportedError(f"keep_aspect_ratio_policy {policy!r} is not supported")
    dims = [_shape(node)[axis] for axis in axes]
    if not all(isinstance(dim, int) for dim in (*dims, *sizes)) or 0 in dims:
        raise RelvmUnsupportedError(f"keep_aspect_ratio_policy {policy} from sizes {dims} to {sizes}")
    ratios = [Fraction(size, dim) for size, dim in zip(sizes, dims, strict=True)]
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    half = Fraction(1, 2)
    rows = zip(axes, dims, roi, strict=True)
    return [_Target(axis, math.floor(dim * scale + half), scale, part) for axis, dim, part in rows]


def _resized(node: Node, targets: list[_Target], how: str, nearest: str | None) -> Expr:
    """how: the coordinate transformation mode.  nearest: the nearest mode; None, before opset 11: the element after
    where an axis shrinks, else the one before."""
    x, shape, mode = term(node, 0), _shape(node), node.attribute("mode", "nearest")
    if mode not in ("nearest", "linear", "cubic"):
        raise RelvmUnsupportedError(f"mode {mode!r} is not supported")
    own = x.type.dtype
    if mode == "nearest" and nearest not in (None, *NEAREST_MODES):
        raise RelvmUnsupportedError(f"nearest_mode {nearest!r} is not supported")
    crops = how == "tf_crop_and_resize"
    changed = [t for t in targets if crops or (t.size != shape[t.axis] if t.scale is None else t.scale != 1)]
    if mode != "nearest" and not own.is_float:
        raise RelvmUnsupportedError(f"mode {mode} of {own}: how it rounds is not defined")
    outside: list[tuple[int, Term]] = []
    for target in sorted(changed, key=lambda target: -target.axis):
        rounding = nearest or ("ceil" if target.scale < 1 else "floor")
        repeats = _repeats(shape[target.axis], target, how, rounding) if mode == "nearest" else None
        if repeats is not None:
            x = _repeated(x, target.axis, repeats)
            continue
        axis = Axis(node, shape[target.axis], target.size, target.scale, target.roi)
        places = places_on(axis, how)
        if crops:
            outside.append((target.axis, (places < 0).apply(ops.logical_or, places > axis.last)))
        if mode == "nearest":
            positions = nearest_positions(axis, places, rounding)
            x = x.apply(ops.gather, positions, axis=target.axis)
            continue
        indices, weights = clamped_table(axis, table(node, axis, places, mode))
        x = x.apply(ops.resample, indices, weights.cast(x.type.dtype), axis=target.axis)
    value = node.attribute("extrapolation_value", 0.0)
    for axis, mask in outside:
        after = tuple(range(1, len(shape) - axis))
        x = mask.apply(ops.expand_dims, axes=after).chosen(value, x)
    return x.expr


def _repeats(dim: AnyDim, target: _Target, how: str, rounding: str) -> int | None:
    """How often each element is simply repeated; None where it is not so."""
    by_floor = how == "asymmetric" and rounding == "floor"
    by_middle = how in ("half_pixel", "half_pixel_symmetric") and rounding.startswith("round")
    if target.scale is None:
        known = isinstance(dim, int) and isinstance(target.size, int) and dim > 0 and target.size % dim == 0
        count = target.size // dim if known else None
    else:
        count = target.scale.numerator if target.scale.denominator == 1 else None
    return count if (by_floor or by_middle) and count and target.size == dim * count else None


def _repeated(x: Term, axis: int, count: int) -> Term:
    shape = x.shape
    spread = x.apply(ops.expand_dims, axes=(axis + 1,))
    dims = [*shape[: axis + 1], count, *shape[axis + 1 :]]
    spread = spread.apply(ops.broadcast_to, x.node.shape(dims))
    return spread.reshape(*shape[:axis], shape[axis] * count, *shape[axis + 1 :])
