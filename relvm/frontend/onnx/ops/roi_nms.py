"""Regions of interest: RoiAlign, MaxRoiPool, NonMaxSuppression."""

from __future__ import annotations

import math

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmArgumentError, RelvmUnsupportedError
from relvm.frontend.onnx.dynamic_sizes import scalar
from relvm.frontend.onnx.ops.gather_scatter_topk import find_true, unravel_indices
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr, input_tensor, shaped_input
from relvm.ir.dtypes import F32, I64
from relvm.ir.expr import Expr, constant
from relvm.ir.symbolic import product


@converts("RoiAlign")
def _roi_align(node: OnnxNode) -> Expr:
    """Pools regions of interest by interpolation.

    Before opset 16, the center of the first element is at coordinate 0.
    """
    moved = node.attribute("coordinate_transformation_mode", "half_pixel" if node.opset >= 16 else "output_half_pixel")
    if moved not in ("half_pixel", "output_half_pixel"):
        raise RelvmUnsupportedError(f"coordinate_transformation_mode {moved!r} is not supported")
    if not math.isfinite(node.attribute("spatial_scale", 1.0)):
        raise RelvmArgumentError(f"spatial_scale is {node.attribute('spatial_scale')}, expected a number")
    return ops.roi_align(
        *(node.tensor(i) for i in range(3)),
        size=(node.attribute("output_height", 1), node.attribute("output_width", 1)),
        mode=node.attribute("mode", "avg"),
        samples=node.attribute("sampling_ratio", 0),
        scale=node.attribute("spatial_scale", 1.0),
        half_pixel=moved == "half_pixel",
    )


@converts("MaxRoiPool")
def _max_roi_pool(node: OnnxNode) -> Expr:
    """Pools regions of interest by maximum.  A region is a row of five numbers: an image's index, and coordinates."""
    rows = shaped_input(node, 1)
    rows = TensorExpr(node, node.graph.with_shape(rows.expr, (rows.shape[0], 5)))
    images = rows.select(0, 1).cast(I64)
    regions = rows.apply(ops.slice, begin=(1,), end=(5,), axes=(1,))
    scale = node.attribute("spatial_scale", 1.0)
    return ops.roi_max_pool(
        node.tensor(0), regions.expr, images.expr, size=tuple(node.attribute("pooled_shape")), scale=scale
    )


@converts("NonMaxSuppression")
def _non_max_suppression(node: OnnxNode) -> Expr:
    """Returns a row (image, class, box) for each selected box."""
    boxes, scores = input_tensor(node, 0), shaped_input(node, 1)
    limit = scalar(node, 2) if node.has(2) else _number(node, np.int64(0))
    overlap = scalar(node, 3) if node.has(3) else _number(node, np.float32(0))
    threshold = scalar(node, 4) if node.has(4) else _number(node, np.float32(np.nan))
    centred = bool(node.attribute("center_point_box", 0))
    left = boxes.apply(
        ops.non_max_suppression, scores, limit.cast(I64), overlap.cast(F32), threshold.cast(F32), centred=centred
    )
    flat = left.reshape(product(scores.shape))
    found, count = find_true(flat.apply(ops.greater_equal, 0))
    image, kind, _ = unravel_indices(found, scores.shape)
    columns = [column.reshape(count, 1) for column in (image, kind, flat.apply(ops.gather, found, axis=0))]
    return columns[0].apply(ops.concat, *columns[1:], axis=1).expr


def _number(node: OnnxNode, value: np.generic) -> TensorExpr:
    return TensorExpr(node, constant(value))
