"""Attention and encoder layers of nn.Transformer as single operators, which PyTorch uses in inference."""

from __future__ import annotations

import math

import relvm.ops as ops
from relvm.frontend.torch.ops.normalization import layer_norm
from relvm.frontend.torch.ops.products import matmul
from relvm.frontend.torch.ops.shapes import sliced, transposed
from relvm.frontend.torch.registry import Node, converter_for, converts, known_int, shape_of
from relvm.ir.dtypes import BOOL
from relvm.ir.expr import Expr


def _linear(node: Node, x: Expr, weight: Expr, bias: Expr) -> Expr:
    product = node.emit(matmul(node, x, node.emit(ops.transpose(weight, perm=(1, 0)))))
    return node.emit(ops.add(product, bias))


@converts("_native_multi_head_attention")
def _native_multi_head_attention(
    node: Node,
    query: Expr,
    key: Expr,
    value: Expr,
    embed_dim: int,
    num_head: int,
    qkv_weight: Expr,
    qkv_bias: Expr,
    proj_weight: Expr,
    proj_bias: Expr,
    mask: Expr | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Expr, Expr | None]:
    """Computes attention of several heads.  The result for a query whose keys are all masked is NaN."""
    width = known_int(embed_dim, "the size of the embedding") // num_head
    dtype = query.known_element_type
    heads = []
    for number, x in enumerate((query, key, value)):
        begin, end = number * embed_dim, (number + 1) * embed_dim
        weight, bias = (node.emit(sliced(node, each, 0, begin, end)) for each in (qkv_weight, qkv_bias))
        projected = _linear(node, node.wide(x), node.wide(weight), node.wide(bias))
        split = node.reshaped(projected, (*shape_of(x)[:2], num_head, width))
        heads.append(node.emit(transposed(split, (0, 2, 1, 3))))
    q, k, v = heads
    scores = node.emit(ops.multiply(matmul(node, q, node.emit(transposed(k, (0, 1, 3, 2)))), 1 / math.sqrt(width)))
    if mask is not None:
        if mask_type == 1:  # a mask of keys: (batch, keys)
            mask = node.reshaped(mask, (shape_of(mask)[0], 1, 1, shape_of(mask)[1]))
        scores = node.emit(ops.where(node.cast(mask, BOOL), -math.inf, scores))
    weights = node.emit(ops.softmax(scores, axis=3))
    found = node.emit(transposed(node.emit(matmul(node, weights, v)), (0, 2, 1, 3)))
    merged = node.reshaped(found, (*shape_of(query)[:2], embed_dim))
    result = node.cast(_linear(node, merged, node.wide(proj_weight), node.wide(proj_bias)), dtype)
    if not need_weights:
        return result, None
    return result, (ops.mean(weights, axes=(1,)) if average_attn_weights else weights)


@converts("_transformer_encoder_layer_fwd")
def _transformer_encoder_layer(
    node: Node,
    src: Expr,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Expr,
    qkv_bias: Expr,
    proj_weight: Expr,
    proj_bias: Expr,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Expr,
    norm_bias_1: Expr,
    norm_weight_2: Expr,
    norm_bias_2: Expr,
    ffn_weight_1: Expr,
    ffn_bias_1: Expr,
    ffn_weight_2: Expr,
    ffn_bias_2: Expr,
    mask: Expr | None = None,
    mask_type: int | None = None,
) -> Expr:
    """Computes an encoder layer.  The result for a query whose keys are all masked is NaN."""

    def normalized(x: Expr, weight: Expr, bias: Expr) -> Expr:
        return node.emit(layer_norm(node, x, 1, weight, bias, eps)[0])

    def attended(x: Expr) -> Expr:
        found, _ = _native_multi_head_attention(
            *(node, x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask),
            need_weights=False,
            mask_type=mask_type,
        )
        return found

    def expanded(x: Expr) -> Expr:
        hidden = _linear(node, x, node.wide(ffn_weight_1), node.wide(ffn_bias_1))
        gelu = converter_for("aten.gelu.default")
        assert gelu is not None
        hidden = node.emit(gelu(node, hidden) if use_gelu else ops.relu(hidden))
        return _linear(node, hidden, node.wide(ffn_weight_2), node.wide(ffn_bias_2))

    x = node.emit(node.wide(src))
    steps = ((attended, norm_weight_1, norm_bias_1), (expanded, norm_weight_2, norm_bias_2))
    for step, weight, bias in steps:
        if norm_first:
            x = node.emit(ops.add(x, step(normalized(x, weight, bias))))
        else:
            x = normalized(node.emit(ops.add(x, step(x))), weight, bias)
    return node.cast(x, src.known_element_type)
