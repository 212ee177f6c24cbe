"""Quantization that is simulated with floats."""

from __future__ import annotations

from typing import Any

import relvm.ops as ops
from relvm.frontend.torch.registry import Node, axis_of, converts, shape_of
from relvm.ir.expr import Expr


def _quantized(node: Node, x: Expr, scale: Any, zero: Any, low: int, high: int) -> tuple[Expr, Expr]:
    """Return x rounded to the quantized numbers, and whether each of its elements is between their limits."""
    wide = node.emit(node.wide(x))
    dtype = wide.known_element_type
    step, origin = node.emit(node.number(scale, dtype)), node.emit(node.number(zero, dtype))
    inverse = ops.divide(node.number(1, dtype), step)
    level = node.emit(ops.add(ops.round(ops.multiply(wide, inverse)), origin))
    # The order of the arguments makes NaN the lower limit.
    inside = ops.logical_and(ops.greater_equal(level, low), ops.less_equal(level, high))
    clamped = ops.where(ops.greater(level, low), ops.minimum(level, high), node.number(low, dtype))
    return node.cast(node.emit(ops.multiply(ops.subtract(clamped, origin), step)), x.known_element_type), inside


@converts("fake_quantize_per_tensor_affine", "fake_quantize_per_tensor_affine.tensor_qparams")
def _per_tensor(node: Node, self: Expr, scale: Any, zero_point: Any, quant_min: int, quant_max: int) -> Expr:
    return _quantized(node, self, _scalar(node, scale), _scalar(node, zero_point), quant_min, quant_max)[0]


@converts("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams")
def _per_tensor_if_enabled(
    node: Node,
    self: Expr,
    scale: Expr,
    zero_point: Expr,
    fake_quant_enabled: Expr,
    quant_min: int,
    quant_max: int,
) -> tuple[Expr, Expr]:
    enabled = node.emit(ops.not_equal(node.reshaped(fake_quant_enabled, ()), 0))
    found, inside = _quantized(node, self, _scalar(node, scale), _scalar(node, zero_point), quant_min, quant_max)
    return ops.where(enabled, found, self), ops.logical_or(inside, ops.logical_not(enabled))


@converts("fake_quantize_per_tensor_affine_cachemask")
def _per_tensor_with_mask(
    node: Node, self: Expr, scale: float, zero_point: int, quant_min: int, quant_max: int
) -> tuple[Expr, Expr]:
    return _quantized(node, self, scale, zero_point, quant_min, quant_max)


@converts("fake_quantize_per_channel_affine_cachemask")
def _per_channel_with_mask(
    node: Node, self: Expr, scale: Expr, zero_point: Expr, axis: int, quant_min: int, quant_max: int
) -> tuple[Expr, Expr]:
    rank = len(shape_of(self))
    after = (1,) * (rank - 1 - axis_of(axis, rank))
    step, origin = (node.reshaped(each, (*shape_of(each), *after)) for each in (scale, zero_point))
    return _quantized(node, self, step, origin, quant_min, quant_max)


@converts("fake_quantize_per_channel_affine")
def _per_channel(
    node: Node, self: Expr, scale: Expr, zero_point: Expr, axis: int, quant_min: int, quant_max: int
) -> Expr:
    return _per_channel_with_mask(node, self, scale, zero_point, axis, quant_min, quant_max)[0]


def _scalar(node: Node, value: Any) -> Any:
    return node.reshaped(value, ()) if isinstance(value, Expr) else value
