"""Conversion of convolutions of quantized tensors to integer convolutions."""

from __future__ import annotations

import numpy as np

import relvm.ops as ops
from relvm.frontend.onnx.registry import OnnxNode
from relvm.frontend.onnx.sliding_window import expect_kernel_shape, padding_of, strides_and_dilations
from relvm.ir.expr import Constant, Expr, constant


def integer_convolution(node: OnnxNode, x: Expr, w: Expr, x_zero: Expr | None, w_zero: Expr | None) -> Expr | None:
    """Return the convolution of x - x_zero and w - w_zero as i32, with the node's attributes.

    Return None if the operator conv_integer cannot compute it.  The weights must be constant, and must fit i8 after
    their zero point is subtracted.  The zero point of x must have rank 0, and the padding must be known.
    """
    groups = node.integer("group", 1, least=1)
    weights = _signed_weights(w, w_zero)
    if weights is None:
        return None
    spatial = weights.ndim - 2
    strides, dilations = strides_and_dilations(node, spatial)
    expect_kernel_shape(node, weights.shape[2:])
    pads = padding_of(node, weights.shape[2:], strides, dilations)
    zero = constant(np.zeros((), x.known_element_type.numpy)) if x_zero is None else x_zero
    if zero.tensor_type.rank != 0 or not all(isinstance(pad, int) for pad in pads):
        return None
    return ops.conv_integer(x, constant(weights), zero, strides=strides, pads=pads, dilations=dilations, groups=groups)


def _signed_weights(w: Expr, zero: Expr | None) -> np.ndarray | None:
    """Return the weights w - zero as an i8 array, or None if they are not constant or do not fit i8.

    zero: one zero point for all filters, or one for each filter.  None means 0.
    """
    if not isinstance(w, Constant) or not (zero is None or isinstance(zero, Constant)) or w.value.size == 0:
        return None
    shifted = w.value.astype(np.int32)
    if zero is not None:
        shifted = shifted - zero.value.astype(np.int32).reshape(-1, *[1] * (shifted.ndim - 1))
    return shifted.astype(np.int8) if shifted.min() >= -128 and shifted.max() <= 127 else None
