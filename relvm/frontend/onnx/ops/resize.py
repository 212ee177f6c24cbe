"""Resize and Upsample, axis by axis: each output element is a weighted sum of input elements.

The input coordinates and the weights are computed by operators on f64 vectors.  They are folded to constants if the
sizes are known, and computed at run time if the sizes are symbolic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

import relvm.ops as ops
from relvm.data_classes import record
from relvm.errors import RelvmFormatError, RelvmShapeError, RelvmUnsupportedError, counted
from relvm.frontend.onnx.dynamic_sizes import assert_all_false, dims_as_tensor, is_known, run_time_sizes, sizes_of
from relvm.frontend.onnx.ops.if_ import if_then_else
from relvm.frontend.onnx.ops.resize_coordinates import (
    LARGEST_DENOMINATOR,
    NEAREST_MODES,
    Quotient,
    ResizeAxis,
    Roi,
    Scale,
    clamp_indices,
    input_coordinates,
    interpolation_table,
    nearest_fraction,
    nearest_positions,
)
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr, input_tensor
from relvm.ir.dtypes import F32, F64, I64, DType
from relvm.ir.expr import Expr
from relvm.ir.operator import Operator
from relvm.ir.symbolic import AnyDim
from relvm.ir.type_rules import expect_axes

_WHOLE = (Fraction(0), Fraction(1))  # the default region of interest (roi): the whole axis


@record
class _Target:
    """One axis to resize.

    axis: the index of the axis.
    size: the size of the axis in the result.
    scale: the scale that the node specifies, or None if the node specifies the size instead.
    roi: the region of interest.
    may_be_unchanged: whether the size can, at run time, be equal to that of the input.
    """

    axis: int
    size: AnyDim
    scale: Scale | None
    roi: Roi
    may_be_unchanged: bool = False


@converts("Upsample")
def _upsample(node: OnnxNode) -> Expr:
    """Maps each output position to the input position `position / scale`, as Resize does before opset 11."""
    axes = list(range(node.type(0).known_rank))
    if node.opset < 9:
        targets = _by_numbers(node, axes, node.attribute("scales"), [_WHOLE] * len(axes))
    else:
        targets = _by_scales(node, 1, axes, [_WHOLE] * len(axes))
    return _resize_axes(node, targets, "asymmetric", None)


@converts("Resize")
def _resize(node: OnnxNode) -> Expr:
    rank = node.type(0).known_rank
    if node.opset < 11:
        return _resize_axes(node, _by_scales(node, 1, list(range(rank)), [_WHOLE] * rank), "asymmetric", None)
    axes = list(expect_axes("Resize", tuple(node.attribute("axes", range(rank))), rank))
    by_scales, by_sizes = (node.has(i) and not _is_empty(node, i) for i in (2, 3))
    if by_scales == by_sizes:
        raise RelvmFormatError(f"expected either scales or sizes, got {'both' if by_scales else 'neither'}")
    coordinate_mode = node.attribute("coordinate_transformation_mode", "half_pixel")
    roi = _roi(node, axes) if coordinate_mode == "tf_crop_and_resize" else [_WHOLE] * len(axes)
    targets = _by_scales(node, 2, axes, roi) if by_scales else _by_sizes(node, axes, roi)
    return _resize_axes(node, targets, coordinate_mode, node.attribute("nearest_mode", "round_prefer_floor"))


def _is_empty(node: OnnxNode, index: int) -> bool:
    return node.type(index).shape == (0,)


def _input_elements(node: OnnxNode, index: int, count: int, dtype: DType) -> list[TensorExpr]:
    """Return the elements of input `index`, which are only known at run time, as `count` tensors of shape (1,)."""
    numbers = TensorExpr(node, node.graph.with_shape(node.tensor(index), (count,))).cast(dtype)
    return [numbers.apply(ops.slice, begin=(i,), end=(i + 1,)) for i in range(count)]


def _roi(node: OnnxNode, axes: list[int]) -> list[Roi]:
    bounds: Sequence[Fraction | TensorExpr]
    if not is_known(node, 1):
        bounds = _input_elements(node, 1, 2 * len(axes), F64)
    else:
        known = node.known_array(1, "roi").astype(np.float64)
        if not np.isfinite(known).all():
            raise RelvmShapeError(f"roi is {known.tolist()}, expected finite numbers")
        bounds = [_as_fraction(bound) for bound in known.reshape(-1).tolist()]
    if len(bounds) != 2 * len(axes):
        raise RelvmShapeError(f"roi has {counted(len(bounds), 'element')}, expected 2 for each of {len(axes)} axes")
    return list(zip(bounds[: len(axes)], bounds[len(axes) :], strict=True))


def _shape(node: OnnxNode) -> tuple[AnyDim, ...]:
    shape = node.type(0).shape
    if shape is None:
        raise RelvmUnsupportedError(f"the shape of the input must be known, got {node.type(0)}")
    return shape


def _by_scales(node: OnnxNode, index: int, axes: list[int], roi: list) -> list[_Target]:
    """Return the axes to resize by the scales in input `index`.

    The size of a resized axis is its size in the input times its scale, rounded down.

    axes: the indices of the axes.   roi: the region of interest of each axis.
    """
    if is_known(node, index):
        return _by_numbers(node, axes, node.known_array(index, "scales").tolist(), roi)
    targets = []
    for axis, scale, part in zip(axes, _input_elements(node, index, len(axes), F32), roi, strict=True):
        assert_all_false((scale > 0).apply(ops.logical_not), "scales not greater than 0")
        size = _size_at_run_time(node, _shape(node)[axis], scale)
        targets.append(_Target(axis, size, nearest_fraction(scale), part, may_be_unchanged=True))
    return targets


def _size_at_run_time(node: OnnxNode, dim: AnyDim, scale: TensorExpr | np.float32) -> AnyDim:
    """Compute a resized dimension at run time, as ONNX Runtime does: dim * scale in f32, rounded down."""
    (size,) = run_time_sizes((dims_as_tensor(node, [dim]).cast(F32) * scale).apply(ops.floor).cast(I64))
    return size


def _by_numbers(node: OnnxNode, axes: list[int], scales: list[float], roi: list) -> list[_Target]:
    if len(scales) != len(axes) or any(scale <= 0 for scale in scales):
        raise RelvmShapeError(f"scales is {scales}, expected {len(axes)} positive numbers")
    targets = []
    for axis, scale, part in zip(axes, scales, roi, strict=True):
        ratio, dim = _as_fraction(scale), _shape(node)[axis]
        if isinstance(dim, int):
            size: AnyDim = int(np.float32(dim) * np.float32(scale))
        elif _is_exact(scale):
            size = dim * ratio.numerator // ratio.denominator
        else:
            size = _size_at_run_time(node, dim, np.float32(scale))
        targets.append(_Target(axis, size, ratio, part))
    return targets


def _is_exact(scale: float) -> bool:
    """Return whether the product of `scale` and any size up to 2^14 is exact in f32."""
    top, bottom = Fraction(scale).as_integer_ratio()
    return top <= 1 << 10 and bottom <= 1 << 10


def _as_fraction(scale: float) -> Fraction:
    """Convert a scale to a fraction.

    If a simple fraction such as 3 / 5 rounds to the scale in f32, return this fraction, otherwise the exact value.
    """
    short = Fraction(scale).limit_denominator(LARGEST_DENOMINATOR)
    return short if np.float32(float(short)) == np.float32(scale) else Fraction(scale)


def _by_sizes(node: OnnxNode, axes: list[int], roi: list) -> list[_Target]:
    sizes = sizes_of(node, 3, "sizes", len(axes))
    if len(sizes) != len(axes):
        raise RelvmShapeError(f"sizes has {counted(len(sizes), 'element')}, expected {len(axes)}, one for each axis")
    policy = node.attribute("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        late = not is_known(node, 3)
        return [_Target(axis, size, None, part, late) for axis, size, part in zip(axes, sizes, roi, strict=True)]
    if policy not in ("not_larger", "not_smaller"):
        raise RelvmUnsupportedError(f"keep_aspect_ratio_policy {policy!r} is not supported")
    dims = [_shape(node)[axis] for axis in axes]
    if 0 in dims:
        raise RelvmUnsupportedError(
            f"keep_aspect_ratio_policy {policy} is not supported for an axis of size 0: {dims} to {sizes}"
        )
    pairs = zip(dims, sizes, strict=True)
    known = [(dim, size) for dim, size in pairs if isinstance(dim, int) and isinstance(size, int)]
    if len(known) < len(axes):
        return _by_common_scale(node, axes, dims, sizes, roi, ops.argmin if policy == "not_larger" else ops.argmax)
    ratios = [Fraction(size, dim) for dim, size in known]
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    half = Fraction(1, 2)
    rows = zip(axes, known, roi, strict=True)
    return [_Target(axis, math.floor(dim * scale + half), scale, part) for axis, (dim, _), part in rows]


def _by_common_scale(
    node: OnnxNode, axes: list[int], dims: list[AnyDim], sizes: list[AnyDim], roi: list, choose: Operator
) -> list[_Target]:
    """Return the axes to resize, all by the same scale, which keeps the aspect ratio.

    Each requested size implies a scale.  The smallest or the largest of these scales is used.  The resulting sizes are
    rounded to the nearest integer, and halves are rounded up.

    axes, dims, sizes, roi: the index, the dimension, the requested size and the region of interest of each axis.
    choose: the operator argmin for the smallest scale, or argmax for the largest.
    """
    old, new = dims_as_tensor(node, dims), dims_as_tensor(node, sizes)
    assert_all_false(old < 1, "axes of size 0, which have no aspect ratio")
    place = (new.cast(F64) / old.cast(F64)).apply(choose, axis=0, keepdims=True)
    above, below = (numbers.apply(ops.gather, place, axis=0) for numbers in (new, old))
    wanted = run_time_sizes((old * above * 2 + below) / (below * 2))
    scale = Quotient(above.cast(F64), below.cast(F64))
    rows = zip(axes, wanted, roi, strict=True)
    return [_Target(axis, size, scale, part, may_be_unchanged=True) for axis, size, part in rows]


def _resize_axes(node: OnnxNode, targets: list[_Target], coordinate_mode: str, nearest_mode: str | None) -> Expr:
    """Resize the axes in `targets`.

    coordinate_mode: the attribute coordinate_transformation_mode.
    nearest_mode: the attribute, or None before opset 11.
    """
    x, shape, mode = input_tensor(node, 0), _shape(node), node.attribute("mode", "nearest")
    if mode not in ("nearest", "linear", "cubic"):
        raise RelvmUnsupportedError(f"mode {mode!r} is not supported")
    own = x.dtype
    if mode == "nearest" and nearest_mode not in (None, *NEAREST_MODES):
        raise RelvmUnsupportedError(f"nearest_mode {nearest_mode!r} is not supported")
    crops = coordinate_mode == "tf_crop_and_resize"
    changed = [t for t in targets if crops or (t.size != shape[t.axis] if t.scale is None else t.scale != 1)]
    if mode != "nearest" and not own.is_float:
        raise RelvmUnsupportedError(
            f"mode {mode} is not supported for dtype {own}, because ONNX does not define the rounding; cast x to f32"
        )
    outside: list[tuple[int, TensorExpr]] = []
    for target in sorted(changed, key=lambda target: -target.axis):
        repeats = (
            _repeat_count(shape[target.axis], target, coordinate_mode, nearest_mode) if mode == "nearest" else None
        )
        if repeats is not None:
            x = _repeated(x, target.axis, repeats)
            continue
        axis = ResizeAxis(node, shape[target.axis], target.size, target.scale, target.roi)
        if mode != "nearest" and not crops and target.may_be_unchanged:
            x = _resample_if_changed(
                axis,
                x,
                target.axis,
                lambda axis, x, at: _interpolate(axis, input_coordinates(axis, coordinate_mode), x, at, mode),
            )
            continue
        coordinates = input_coordinates(axis, coordinate_mode)
        if crops:
            outside.append((target.axis, (coordinates < 0).apply(ops.logical_or, coordinates > axis.last)))
        if mode == "nearest":
            positions = nearest_positions(axis, coordinates, nearest_mode)
            x = x.apply(ops.gather, positions, axis=target.axis)
            continue
        x = _interpolate(axis, coordinates, x, target.axis, mode)
    value = node.attribute("extrapolation_value", 0.0)
    for at, mask in outside:
        after = tuple(range(1, len(shape) - at))
        x = mask.apply(ops.expand_dims, axes=after).where(value, x)
    return x.expr


def _interpolate(axis: ResizeAxis, coordinates: TensorExpr, x: TensorExpr, at: int, mode: str) -> TensorExpr:
    indices, weights = clamp_indices(axis, interpolation_table(axis.node, axis, coordinates, mode))
    return x.apply(ops.interpolate, indices, weights.cast(x.dtype), axis=at)


def _resample_if_changed(
    axis: ResizeAxis, x: TensorExpr, at: int, resample: Callable[[ResizeAxis, TensorExpr, int], TensorExpr]
) -> TensorExpr:
    """Resample x along the axis with index `at`, unless the size of the axis turns out at run time to be unchanged.

    axis: the size and scale of the axis.   resample: a function that resamples x, called as resample(axis, x, at).
    """
    node, shape = axis.node, x.shape
    assert not isinstance(axis.scale, Fraction), "a scale that is known"
    same = (
        axis.dim_as_f64(axis.size).apply(ops.equal, axis.dim_as_f64(axis.dim))
        if axis.scale is None
        else axis.scale.is_one
    )
    merged = if_then_else(
        node,
        same.reshape().expr,
        lambda inner: x.expr,
        lambda inner: resample(replace(axis, node=inner), TensorExpr(inner, x.expr), at).expr,
    )
    return TensorExpr(node, node.graph.with_shape(merged, (*shape[:at], axis.size, *shape[at + 1 :])))


def _repeat_count(dim: AnyDim, target: _Target, coordinate_mode: str, nearest_mode: str | None) -> int | None:
    """Return how often a resize in mode nearest repeats each element along an axis.

    Return None if the resize does not repeat all elements equally often.

    dim: the size of the axis.
    coordinate_mode: the attribute coordinate_transformation_mode.
    nearest_mode: the attribute, or None before opset 11.
    """
    by_floor = coordinate_mode == "asymmetric" and nearest_mode in ("floor", None)
    by_middle = coordinate_mode in ("half_pixel", "half_pixel_symmetric") and (nearest_mode or "").startswith("round")
    scale, size, count = target.scale, target.size, None
    if isinstance(scale, Fraction) and scale.denominator == 1:
        count = scale.numerator
    elif scale is None and isinstance(dim, int) and isinstance(size, int) and dim > 0 and size % dim == 0:
        count = size // dim
    return count if (by_floor or by_middle) and count and size == dim * count else None


def _repeated(x: TensorExpr, axis: int, count: int) -> TensorExpr:
    shape = x.shape
    spread = x.apply(ops.expand_dims, axes=(axis + 1,))
    dims = [*shape[: axis + 1], count, *shape[axis + 1 :]]
    spread = spread.apply(ops.broadcast_to, x.node.shape(dims))
    return spread.reshape(*shape[:axis], shape[axis] * count, *shape[axis + 1 :])
