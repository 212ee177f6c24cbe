"""Coordinates of a resized axis in the input, and interpolation weights of the elements near them.

Source of every formula: ONNX Resize-19 and its reference, onnx/reference/ops/op_resize.py.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

import relvm.ops as ops
from relvm.data_classes import record
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.onnx.dynamic_sizes import dims_as_tensor, run_time_sizes
from relvm.frontend.onnx.dynamic_sizes import iota as numbered
from relvm.frontend.onnx.registry import OnnxNode
from relvm.frontend.onnx.tensor_expr import TensorExpr
from relvm.ir.dtypes import F32, F64, I64, U8
from relvm.ir.expr import constant
from relvm.ir.symbolic import AnyDim

NEAREST_MODES = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@record
class Quotient:
    """A scale that is only known at run time, as a fraction of two tensors of type f64[1].

    If the scale is close to a simple fraction, the numerator and the denominator are whole numbers.
    """

    numerator: TensorExpr
    denominator: TensorExpr

    @property
    def is_one(self) -> TensorExpr:
        return self.numerator.apply(ops.equal, self.denominator)


Scale = Fraction | Quotient
Roi = tuple[Fraction | TensorExpr, Fraction | TensorExpr]  # start and end, relative to the length of the axis
LARGEST_DENOMINATOR = 4096  # the largest denominator of a fraction that counts as simple


def nearest_fraction(scale: TensorExpr) -> Quotient:
    """Return the fraction with the smallest denominator that rounds to `scale`.

    If no denominator up to LARGEST_DENOMINATOR suffices, return scale / 1.

    scale: a tensor of type f32[1].
    """
    node, own = scale.node, scale.cast(F64)
    denominators = (numbered(node, LARGEST_DENOMINATOR) + 1).cast(F64)
    numerators = (own * denominators).apply(ops.round)
    found = (numerators / denominators).cast(F32).apply(ops.equal, scale)
    place = found.cast(U8).apply(ops.argmax, axis=0, keepdims=True)
    exists = found.apply(ops.gather, place, axis=0)
    numerator, denominator = (numbers.apply(ops.gather, place, axis=0) for numbers in (numerators, denominators))
    return Quotient(exists.where(numerator, own), exists.where(denominator, 1))


@record
class ResizeAxis:
    """An axis that a node resizes from `dim` to `size` elements.

    scale: the scale that the node specifies, or None for size / dim.
    roi: the start and the end of the region of interest, as numbers or as tensors of type f64[1].
    """

    node: OnnxNode
    dim: AnyDim
    size: AnyDim
    scale: Scale | None
    roi: Roi

    def dim_as_f64(self, dim: AnyDim) -> TensorExpr:
        """Convert a dimension, which can be symbolic, to a tensor of type f64[1]."""
        return dims_as_tensor(self.node, [dim]).cast(F64)

    @property
    def last(self) -> TensorExpr:
        return self.dim_as_f64(self.dim) - 1

    def divided_by_scale(self, x: TensorExpr) -> TensorExpr:
        """Return x / scale.  To avoid rounding the scale, compute x * denominator / numerator."""
        if self.scale is not None:
            return x * self.scale.denominator / self.scale.numerator
        return x * self.dim_as_f64(self.dim) / self.dim_as_f64(self.size)


def input_coordinates(axis: ResizeAxis, coordinate_mode: str) -> TensorExpr:
    """Return the coordinate in the input of each output position, as a tensor of type f64[size].

    In the mode align_corners, the output length in the formula is `dim * scale` without rounding, as in ONNX's
    reference and test cases.  In the mode tf_half_pixel_for_nn, an axis that keeps its size is unchanged.

    coordinate_mode: the attribute coordinate_transformation_mode.
    """
    place = numbered(axis.node, axis.size).cast(F64)
    length = axis.dim_as_f64(axis.size)
    match coordinate_mode:
        case "asymmetric":
            return axis.divided_by_scale(place)
        case "half_pixel":
            return axis.divided_by_scale(place + 0.5) - 0.5
        case "tf_half_pixel_for_nn":
            shifted = axis.divided_by_scale(place + 0.5)
            if isinstance(axis.scale, Fraction):
                return shifted
            same = length.apply(ops.equal, axis.dim_as_f64(axis.dim)) if axis.scale is None else axis.scale.is_one
            return same.where(place, shifted)
        case "pytorch_half_pixel":
            return (length > 1).where(axis.divided_by_scale(place + 0.5) - 0.5, 0)
        case "half_pixel_symmetric":
            middle = axis.dim_as_f64(axis.dim) / 2
            offset = middle - axis.divided_by_scale(length) / 2
            return offset + axis.divided_by_scale(place + 0.5) - 0.5
        case "align_corners":
            exact = length
            if axis.scale is not None:
                exact = axis.dim_as_f64(axis.dim) * axis.scale.numerator / axis.scale.denominator
            return exact.apply(ops.equal, 1).where(0, place * axis.last / (exact - 1))
        case "tf_crop_and_resize":
            start, end, whole = _scale_to_integers(axis.roi)
            inside = (place * (end - start) + (length - 1) * start) * axis.last / ((length - 1) * whole)
            return (length > 1).where(inside, axis.last * (start + end) / (2 * whole))
    raise RelvmUnsupportedError(f"coordinate_transformation_mode {coordinate_mode!r} is not supported")


def _scale_to_integers(roi: Roi) -> tuple[float | Fraction | TensorExpr, float | Fraction | TensorExpr, float]:
    """Multiply the start and the end of a region of interest by a factor.  Return both products and the factor.

    If both ends are known, the factor is their common denominator, so that the products are whole numbers.  Coordinates
    halfway between elements or on the edge are then exact.  If an end is not known, the factor is 1.
    """
    start, end = roi
    if not isinstance(start, Fraction) or not isinstance(end, Fraction):
        return start, end, 1.0
    whole = math.lcm(start.denominator, end.denominator)
    return float(start * whole), float(end * whole), float(whole)


def nearest_positions(axis: ResizeAxis, coordinates: TensorExpr, nearest_mode: str | None) -> TensorExpr:
    """Return the index of the element nearest to each coordinate, as a tensor of type i64[size].

    coordinates: the result of `input_coordinates`.
    nearest_mode: the attribute, or None before opset 11.  With None, coordinates are rounded up if the axis shrinks,
    otherwise down.
    """
    match nearest_mode:
        case None:
            assert axis.scale is not None
            if isinstance(axis.scale, Fraction):
                chosen = coordinates.apply(ops.ceil if axis.scale < 1 else ops.floor)
            else:
                shrinks = axis.scale.numerator < axis.scale.denominator
                chosen = shrinks.where(coordinates.apply(ops.ceil), coordinates.apply(ops.floor))
        case "round_prefer_floor":
            chosen = (coordinates - 0.5).apply(ops.ceil)
        case "round_prefer_ceil":
            chosen = (coordinates + 0.5).apply(ops.floor)
        case "floor":
            chosen = coordinates.apply(ops.floor)
        case _:
            chosen = coordinates.apply(ops.ceil)
    return _clamped(axis, chosen).cast(I64)


def interpolation_table(
    node: OnnxNode, axis: ResizeAxis, coordinates: TensorExpr, mode: str
) -> tuple[TensorExpr, TensorExpr]:
    """Return, for each output position, the indices and the weights of the input elements near its coordinate.

    The results are two tensors of type f64[taps, size].  Indices can be out of range.  The weights of an output
    position have the sum 1.  If the node sets antialias, the filter of a shrinking axis is widened by the ratio of the
    sizes.

    coordinates: the result of `input_coordinates`.   mode: linear or cubic.
    """
    reach = 1 if mode == "linear" else 2
    shrink = _shrink_factor(axis) if node.attribute("antialias", 0) else 1.0
    base = coordinates.apply(ops.floor)
    if isinstance(shrink, TensorExpr):
        half = (TensorExpr(node, shrink.operand(reach)) / shrink).apply(ops.ceil).cast(I64)
        (taps,) = run_time_sizes(half * 2)
        steps = (numbered(node, taps) - (half - 1)).cast(F64).reshape(taps, 1)
    else:
        taps = 2 * math.ceil(reach / shrink)
        node.graph.file.count(taps * 8, node.here)
        steps = TensorExpr(node, constant(np.arange(taps, dtype=np.float64).reshape(taps, 1) - (taps // 2 - 1)))
    indices = base + steps
    distance = (indices - coordinates).apply(ops.abs) * shrink
    if mode == "linear":
        weights = (1 - distance).apply(ops.relu)
    else:
        weights = _cubic(distance, node.attribute("cubic_coeff_a", -0.75))
    if node.attribute("exclude_outside", 0):
        outside = (indices < 0).apply(ops.logical_or, indices > axis.last)
        weights = outside.where(0, weights)
    elif not isinstance(shrink, TensorExpr) and shrink == 1.0:
        return indices, weights
    return indices, weights / weights.sum((0,))


def _shrink_factor(axis: ResizeAxis) -> float | TensorExpr:
    """Return the scale of an axis if it is below 1, otherwise 1."""
    match axis.scale:
        case Fraction():
            return min(1.0, float(axis.scale))
        case Quotient(numerator=numerator, denominator=denominator):
            return (numerator / denominator).apply(ops.minimum, 1)
    if isinstance(axis.dim, int) and isinstance(axis.size, int):
        return min(1.0, axis.size / axis.dim)
    return (axis.dim_as_f64(axis.size).apply(ops.maximum, 1) / axis.dim_as_f64(axis.dim)).apply(ops.minimum, 1)


def _cubic(distance: TensorExpr, a: float) -> TensorExpr:
    """Return the weights of elements at the given distances, by Keys' cubic convolution with the coefficient `a`.

    The weight is one polynomial up to the distance 1, another up to 2, and 0 beyond.
    """
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return (distance < 1).where(near, (distance < 2).where(far, 0))


def clamp_indices(axis: ResizeAxis, table: tuple[TensorExpr, TensorExpr]) -> tuple[TensorExpr, TensorExpr]:
    """Replace indices that are out of range by the nearest valid index.  table: from `interpolation_table`."""
    indices, weights = table
    return _clamped(axis, indices).cast(I64), weights


def _clamped(axis: ResizeAxis, positions: TensorExpr) -> TensorExpr:
    return positions.apply(ops.clip, min=0).apply(ops.minimum, axis.last)
