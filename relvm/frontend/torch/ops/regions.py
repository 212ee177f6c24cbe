"""Operators of torchvision on boxes and regions of images."""

from __future__ import annotations

import numpy as np

import relvm.ops as ops
from relvm.frontend.common.deformable_convolution import deformable_convolution
from relvm.frontend.torch.ops.indexing import flat_positions
from relvm.frontend.torch.ops.shapes import selected, sliced
from relvm.frontend.torch.registry import Node, converts, known_int, shape_of
from relvm.ir.dtypes import F32, I64
from relvm.ir.expr import Expr


@converts("torchvision.nms.default")
def _nms(node: Node, dets: Expr, scores: Expr, iou_threshold: float) -> Expr:
    """Returns the boxes that do not overlap a selected box of higher score.  Computes in f32."""
    count = shape_of(dets)[0]
    boxes = node.reshaped(node.cast(dets, F32), (1, count, 4))
    rows = node.reshaped(node.cast(scores, F32), (1, 1, count))
    numbers = (node.number(count, I64), node.number(iou_threshold, F32), node.number(float("nan"), F32))
    chosen = node.reshaped(node.emit(ops.non_max_suppression(boxes, rows, *numbers)), (count,))
    return ops.gather(chosen, flat_positions(node, ops.greater_equal(chosen, 0)), axis=0)


@converts("torchvision._cuda_version.default")
def _cuda_version(node: Node) -> int:
    """Returns -1, which states that there is no CUDA."""
    return -1


def _regions(node: Node, x: Expr, rois: Expr) -> tuple[Expr, Expr, Expr]:
    """Return images in f32 if they are narrower, the corners of regions, and the image that each region is in."""
    images = node.emit(node.wide(x))
    rows = node.cast(rois, images.known_element_type)
    number = node.cast(node.emit(selected(node, rows, 1, 0)), I64)
    return images, node.emit(sliced(node, rows, 1, 1, 5)), number


@converts("torchvision.roi_align.default")
def _roi_align(
    node: Node,
    input: Expr,
    rois: Expr,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Expr:
    """Resamples regions by bilinear interpolation.  The package torchvision defines this operator."""
    size = (known_int(pooled_height, "pooled_height"), known_int(pooled_width, "pooled_width"))
    samples = max(sampling_ratio, 0)
    return ops.roi_align(
        *_regions(node, input, rois), size=size, samples=samples, scale=float(spatial_scale), half_pixel=aligned
    )


@converts("torchvision.ps_roi_align.default")
def _ps_roi_align(
    node: Node,
    input: Expr,
    rois: Expr,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> tuple[Expr, None]:
    """Computes only the first result.  The package torchvision defines this operator."""
    height, width = known_int(pooled_height, "pooled_height"), known_int(pooled_width, "pooled_width")
    bins = height * width
    count = node.exact_quotient(shape_of(input)[1], bins, "the number of channels")
    size, samples = (height, width), max(sampling_ratio, 0)
    resampled = ops.roi_align(*_regions(node, input, rois), size=size, samples=samples, scale=float(spatial_scale))
    regions = shape_of(rois)[0]
    flat = node.reshaped(node.emit(resampled), (regions, count, bins * bins))
    own = node.emit(ops.gather(flat, np.arange(bins) * (bins + 1), axis=2))  # bin i of the channels of bin i
    return node.reshaped(own, (regions, count, height, width)), None


@converts("torchvision.roi_pool.default")
def _roi_pool(
    node: Node, input: Expr, rois: Expr, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Expr, None]:
    """Computes only the first result, the largest elements.  The package torchvision defines this operator."""
    size = (known_int(pooled_height, "pooled_height"), known_int(pooled_width, "pooled_width"))
    return ops.roi_max_pool(*_regions(node, input, rois), size=size, scale=float(spatial_scale)), None


@converts("torchvision.deform_conv2d.default")
def _deform_conv2d(
    node: Node,
    input: Expr,
    weight: Expr,
    offset: Expr,
    mask: Expr,
    bias: Expr,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Expr:
    """Needs a number of channels that is known when the program is imported."""
    known_int(shape_of(input)[1], "the number of channels")
    x, filters, offsets, factors, start = (node.emit(node.wide(each)) for each in (input, weight, offset, mask, bias))
    result = deformable_convolution(
        node.emit,
        x,
        filters,
        offsets,
        factors if use_mask else None,
        strides=(stride_h, stride_w),
        dilations=(dilation_h, dilation_w),
        pads=(pad_h, pad_w),
        groups=groups,
        offset_groups=offset_groups,
    )
    return ops.add(result, node.reshaped(start, (shape_of(start)[0], 1, 1)))
