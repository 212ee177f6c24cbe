"""Where the places of a resized axis lie along the input, and the weights of the elements near them.

Source of every formula: ONNX Resize-19 and its reference, onnx/reference/ops/op_resize.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.onnx.registry import Node
from relvm.frontend.onnx.terms import Term
from relvm.ir.dims import AnyDim
from relvm.ir.dtypes import F64, I64
from relvm.ir.expr import constant

NEAREST_MODES = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@dataclass(frozen=True)
class Axis:
    """An axis of `dim` elements that becomes one of `size`.  scale: as stated; None: size / dim."""

    node: Node
    dim: AnyDim
    size: AnyDim
    scale: Fraction | None
    roi: tuple[float, float]

    def number(self, dim: AnyDim) -> Term:
        """A dimension as f64[1]."""
        if isinstance(dim, int):
            return Term(self.node, constant(np.array([dim], np.float64)))
        shape = Term(self.node, self.node.emit(ops.shape_to_tensor(self.node.shape([dim]))))
        return shape.cast(F64)

    @property
    def last(self) -> Term:
        return self.number(self.dim) - 1

    def divided_by_scale(self, x: Term) -> Term:
        """x / scale, as a product and a quotient of whole numbers."""
        if self.scale is not None:
            return x * self.scale.denominator / self.scale.numerator
        return x * self.number(self.dim) / self.number(self.size)


def places_on(axis: Axis, how: str) -> Term:
    """The coordinate in the input of each place of the result: f64[size].  how: coordinate_transformation_mode.

    In align_corners the length is `dim * scale`, not rounded, as in ONNX's reference and its test cases.  In
    tf_half_pixel_for_nn an axis that keeps its size is left as it is.
    """
    place = Term(axis.node, axis.node.emit(ops.iota(axis.node.shape([axis.size])))).cast(F64)
    length = axis.number(axis.size)
    match how:
        case "asymmetric":
            return axis.divided_by_scale(place)
        case "half_pixel":
            return axis.divided_by_scale(place + 0.5) - 0.5
        case "tf_half_pixel_for_nn":
            shifted = axis.divided_by_scale(place + 0.5)
            return shifted if axis.scale else length.apply(ops.equal, axis.number(axis.dim)).chosen(place, shifted)
        case "pytorch_half_pixel":
            return (length > 1).chosen(axis.divided_by_scale(place + 0.5) - 0.5, 0)
        case "half_pixel_symmetric":
            middle = axis.number(axis.dim) / 2
            offset = middle - axis.divided_by_scale(length) / 2
            return offset + axis.divided_by_scale(place + 0.5) - 0.5
        case "align_corners":
            exact = length if axis.scale is None else axis.number(axis.dim) * float(axis.scale)
            return exact.apply(ops.equal, 1).chosen(0, place * axis.last / (exact - 1))
        case "tf_crop_and_resize":
            start, end = axis.roi
            inside = place * (axis.last * (end - start)) / (length - 1) + axis.last * start
            return (length > 1).chosen(inside, axis.last * ((start + end) / 2))
    raise RelvmUnsupportedError(f"coordinate_transformation_mode {how!r} is not supported")


def nearest_positions(axis: Axis, places: Term, how: str) -> Term:
    """The element at each place: i64[size].  how: one of NEAREST_MODES."""
    assert how in NEAREST_MODES
    match how:
        case "round_prefer_floor":
            chosen = (places - 0.5).apply(ops.ceil)
        case "round_prefer_ceil":
            chosen = (places + 0.5).apply(ops.floor)
        case "floor":
            chosen = places.apply(ops.floor)
        case "ceil":
            chosen = places.apply(ops.ceil)
    return _clamped(axis, chosen).cast(I64)


def table(node: Node, axis: Axis, places: Term, mode: str) -> tuple[Term, Term]:
    """The elements near each place, also such as lie outside, and their weights: f64[taps, size], of sum 1.

    mode: linear or cubic.  With antialias the weights of an axis that shrinks are stretched over as many elements as
    become one.
    """
    reach, shrink = (1 if mode == "linear" else 2), 1.0
    if node.attribute("antialias", 0):
        shrink = min(1.0, _known_scale(axis))
    taps = 2 * math.ceil(reach / shrink)
    base = places.apply(ops.floor)
    steps = Term(node, constant(np.arange(taps, dtype=np.float64).reshape(taps, 1) - (taps // 2 - 1)))
    indices = base + steps
    distance = (indices - places).apply(ops.abs) * shrink
    if mode == "linear":
        weights = (1 - distance).apply(ops.relu)
    else:
        weights = _cubic(distance, node.attribute("cubic_coeff_a", -0.75))
    if node.attribute("exclude_outside", 0):
        outside = (indices < 0).apply(ops.logical_or, indices > axis.last)
        weights = outside.chosen(0, weights)
    elif shrink == 1.0:
        return indices, weights
    return indices, weights / weights.sum((0,))


def _known_scale(axis: Axis) -> float:
    if axis.scale is not None:
        return float(axis.scale)
    if isinstance(axis.dim, int) and isinstance(axis.size, int):
        return axis.size / axis.dim
    raise RelvmUnsupportedError(f"antialias from size {axis.dim} to {axis.size}: the scale must be known")


def _cubic(distance: Term, a: float) -> Term:
    """Keys' piecewise polynomial of the distance: one up to 1, another up to 2, then 0."""
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return (distance < 1).chosen(near, (distance < 2).chosen(far, 0))


def clamped_table(axis: Axis, made: tuple[Term, Term]) -> tuple[Term, Term]:
    """The same with the nearest element in the place of each that lies outside."""
    indices, weights = made
    return _clamped(axis, indices).cast(I64), weights


def _clamped(axis: Axis, positions: Term) -> Term:
    return positions.apply(ops.clip, min=0).apply(ops.minimum, axis.last)
