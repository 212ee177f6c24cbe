"""The converter of Conv."""

from __future__ import annotations

import relvm.ops as ops
from relvm.frontend.onnx.ops.qdq_fusion import convolution_of_bytes
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.sliding_window import (
    expect_kernel_shape,
    pad_if_symbolic,
    padding_of,
    strides_and_dilations,
)
from relvm.frontend.onnx.tensor_expr import TensorExpr
from relvm.ir.expr import Expr


@converts("Conv")
def _conv(node: OnnxNode) -> Expr:
    spatial = node.type(0).known_rank - 2
    result = convolution_of_bytes(node) or node.emit(_convolution(node, spatial))
    if not node.has(2):
        return result
    channels = result.tensor_type.known_shape[1]
    bias = node.graph.with_shape(node.tensor(2), (channels,))
    per_channel = ops.reshape(bias, node.shape([channels, *[1] * spatial]))
    return ops.add(result, node.emit(per_channel))


def _convolution(node: OnnxNode, spatial: int) -> Expr:
    x, w, groups = node.tensor(0), node.tensor(1), node.integer("group", 1, least=1)
    strides, dilations = strides_and_dilations(node, spatial)
    filters, *rest = w.tensor_type.known_shape
    expect_kernel_shape(node, rest[1:])
    if not isinstance(filters, int) and groups > 1:
        group_size = node.graph.variable_of(node.exact_quotient(filters, groups, "filters"))
        w = node.graph.with_shape(w, (group_size * groups, *rest))
    wide, pads = pad_if_symbolic(
        TensorExpr(node, x), padding_of(node, w.tensor_type.known_shape[2:], strides, dilations), 0
    )
    return ops.conv(wide.expr, w, strides=strides, pads=pads, dilations=dilations, groups=groups)
