"""Attention operators written by ONNX Runtime's optimizer and model builder (domain com.microsoft).

Source: ONNX Runtime, docs/ContribOperators.md and contrib_ops/cpu/bert.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.onnx.dynamic_sizes import dim_as_operand, iota, run_time_sizes, scalar
from relvm.frontend.onnx.ops.attention import (
    attention_scores,
    merge_heads,
    rotate_pairs,
    split_heads,
    weight_values,
    widen,
)
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr, input_tensor, shaped_input
from relvm.ir.dtypes import I64
from relvm.ir.expr import Expr
from relvm.ir.symbolic import AnyDim, difference, dim_op, known_sizes

_MICROSOFT = "com.microsoft"


def _reject(node: OnnxNode, inputs: dict[int, str], attributes: tuple[str, ...] = ()) -> None:
    found = [name for index, name in inputs.items() if node.has(index)]
    found += [name for name in attributes if node.attribute(name, 0)]
    if found:
        raise RelvmUnsupportedError(f"{', '.join(found)} is not supported")


@converts("Attention", domain=_MICROSOFT)
def _attention(node: OnnxNode) -> tuple[Expr, ...]:
    """Takes x, the concatenated weights of q, k and v, their biases, a mask, past keys and values, and a bias that is
    added to the scores.
    """
    _reject(node, {6: "past_sequence_length"}, ("do_rotary", "past_present_share_buffer"))
    x, weights, own = widen(shaped_input(node, 0)), widen(shaped_input(node, 1)), node.type(0).known_dtype
    width = weights.shape[1]
    sizes = node.attribute("qkv_hidden_sizes") or ([width // 3] * 3 if isinstance(width, int) else [])
    if sum(sizes) != width:
        raise RelvmShapeError(f"the weights have {width} columns, expected the sum of the hidden sizes {sizes}")
    whole = x.apply(ops.matmul, weights)
    whole = whole + widen(input_tensor(node, 2)) if node.has(2) else whole
    q, k, v = (split_heads(part, node.attribute("num_heads", 0)) for part in _split_columns(whole, sizes))
    past: AnyDim = 0
    if node.has(4):
        before = widen(shaped_input(node, 4))
        past = before.shape[3]
        k, v = (before.select(i, 0).apply(ops.concat, new, axis=2) for i, new in enumerate((k, v)))
    result = _attend(node, (q, k, v), past, mask=3, bias=5)
    made = merge_heads(result).cast(own).expr
    if not any(node.proto.output[1:]):
        return (made,)
    present = [each.apply(ops.expand_dims, axes=(0,)) for each in (k, v)]
    return made, present[0].apply(ops.concat, present[1], axis=0).cast(own).expr


@converts("MultiHeadAttention", domain=_MICROSOFT)
def _multi_head_attention(node: OnnxNode) -> tuple[Expr, ...]:
    """Takes q, k and v, their biases, a mask, a bias that is added to the scores, and past keys and values.

    A single tensor can contain k and v, or all of q, k and v.
    """
    _reject(node, {8: "past_sequence_length", 9: "cache_indirection"})
    own, count = node.type(0).known_dtype, node.attribute("num_heads", 0)
    q, k, v = _unpack_qkv(node)
    if node.has(3):
        sizes = [each.shape[1] * each.shape[3] if len(each.shape) == 4 else each.shape[2] for each in (q, k, v)]
        known = known_sizes(sizes)
        if known is None:
            raise RelvmUnsupportedError(f"the widths of the biases must be known, got {', '.join(map(str, sizes))}")
        biases = _split_columns(widen(input_tensor(node, 3)), known)
        q, k, v = (
            each + (bias if len(each.shape) == 3 else bias.reshape(each.shape[1], 1, each.shape[3]))
            for each, bias in zip((q, k, v), biases, strict=True)
        )
    q, k, v = (split_heads(each, count) if len(each.shape) == 3 else each for each in (q, k, v))
    past: AnyDim = 0
    if node.has(6):
        before = [widen(shaped_input(node, index)) for index in (6, 7)]
        past = before[0].shape[2]
        k, v = (old.apply(ops.concat, new, axis=2) for old, new in zip(before, (k, v), strict=True))
    result = _attend(node, (q, k, v), past, mask=4, bias=5)
    return merge_heads(result).cast(own).expr, k.cast(own).expr, v.cast(own).expr


def _unpack_qkv(node: OnnxNode) -> tuple[TensorExpr, TensorExpr, TensorExpr]:
    """Return q, k and v of a MultiHeadAttention, from one, two or three of its inputs.

    Each of q, k and v has the shape (batch, length, width) or (batch, heads, length, size).
    """
    q = widen(shaped_input(node, 0))
    if len(q.shape) == 5:
        first, second, third = _split_packed(q, 3)
        return first, second, third
    k = widen(shaped_input(node, 1))
    if len(k.shape) == 5:
        first, second = _split_packed(k, 2)
        return q, first, second
    return q, k, widen(shaped_input(node, 2))


def _split_packed(packed: TensorExpr, count: int) -> list[TensorExpr]:
    """Split a tensor that contains q, k and v, or only k and v.

    packed: a tensor of shape (batch, length, heads, count, size).
    count: 3 for q, k and v, or 2 for k and v.  Each result has the shape (batch, heads, length, size).
    """
    return [packed.select(i, 3).apply(ops.transpose, perm=(0, 2, 1, 3)) for i in range(count)]


def _split_columns(x: TensorExpr, sizes: Sequence[int]) -> list[TensorExpr]:
    """Split x along its last axis into tensors of the given sizes."""
    ends = np.cumsum(sizes).tolist()
    pairs = zip(ends, sizes, strict=True)
    return [x.apply(ops.slice, begin=(end - size,), end=(end,), axes=(len(x.shape) - 1,)) for end, size in pairs]


def _scale(node: OnnxNode, q: TensorExpr) -> float:
    scale, size = node.attribute("scale", 0.0), q.shape[3]
    if scale:
        return scale
    if not isinstance(size, int):
        raise RelvmUnsupportedError(f"the head size must be known if scale is absent, got {size}")
    return 1 / math.sqrt(size)


def _attend(
    node: OnnxNode, qkv: tuple[TensorExpr, TensorExpr, TensorExpr], past: AnyDim, mask: int, bias: int
) -> TensorExpr:
    """Return softmax(q * k' * scale + bias + mask) * v.

    qkv: the tensors q, k and v.
    past: the number of keys that precede the first query.
    mask, bias: the indices of the optional inputs of the node that contain the mask and the bias.
    """
    q, k, v = qkv
    scores = attention_scores(q, k) * _scale(node, q)
    if node.has(bias):
        scores = scores + widen(input_tensor(node, bias))
    queries, keys = scores.shape[2:]
    if node.has(mask):
        seen = _attention_mask(node, mask, queries, keys)
        scores = scores + (1 - seen.cast(scores.dtype)) * node.attribute("mask_filter_value", -10000.0)
    if node.attribute("unidirectional", 0):
        scores = _causal_mask(node, queries, keys, past).where(scores, -math.inf)
    return weight_values(scores.apply(ops.softmax, axis=-1), v)


def _causal_mask(node: OnnxNode, queries: AnyDim, keys: AnyDim, past: AnyDim) -> TensorExpr:
    """Return a bool tensor that is true where a query may attend to a key: at its own position and before.

    The last query may attend to all keys, even if there are more keys than queries, as in ONNX Runtime.

    past: the number of keys that precede the first query.   Result: a tensor of shape (queries, keys).
    """
    query = iota(node, queries, 1)
    place = query if past == 0 else query + dim_as_operand(node, past)
    seen = iota(node, keys).apply(ops.less_equal, place)
    surplus = difference(keys, dim_op("add", past, queries))
    if surplus is not None and surplus <= 0:
        return seen
    is_last = (query + 1).apply(ops.greater_equal, dim_as_operand(node, queries))
    return seen.apply(ops.logical_or, is_last)


def _attention_mask(node: OnnxNode, index: int, queries: AnyDim, keys: AnyDim) -> TensorExpr:
    """Convert the mask, input `index`, to a bool tensor that is true where a query may attend to a key.

    The result broadcasts to the shape (batch, heads, queries, keys).
    """
    mask = shaped_input(node, index)
    match len(mask.shape):
        case 1:
            if node.type(index).known_shape[0] != node.type(0).known_shape[0]:
                raise RelvmUnsupportedError(
                    f"mask has type {mask.type}, expected a tensor with the sequence length of each batch element"
                )
            lengths = mask.cast(I64).apply(ops.expand_dims, axes=(1, 2, 3))
            return iota(node, 1, 1, 1, keys) < lengths
        case 2 | 3 as rank:
            mask = TensorExpr(node, node.graph.with_shape(mask.expr, (*mask.shape[:-1], keys)))
            return mask.apply(ops.expand_dims, axes=(1, 2) if rank == 2 else (1,)).apply(ops.greater, 0)
    raise RelvmUnsupportedError(f"a mask of type {mask.type} is not supported for {queries} queries")


@converts("RotaryEmbedding", domain=_MICROSOFT)
def _rotary_embedding(node: OnnxNode) -> Expr:
    """Takes x, positions, and tables with the cosines and sines for each position.

    The positions are either a position for each element of each sequence, or one start position for all sequences.
    """
    if node.attribute("scale", 1.0) != 1.0 or node.attribute("is_packed_batching", 0):
        raise RelvmUnsupportedError("scale and is_packed_batching are not supported")
    x, at, flat = shaped_input(node, 0), shaped_input(node, 1).cast(I64), node.type(0).known_rank == 3
    shape, rotated_size = x.shape, _rotated_size(node, 2)
    if flat:
        count = node.attribute("num_heads", 0) or shape[2] // rotated_size
        x = split_heads(x, count)
    if at.shape == (1,):
        at = (at + iota(node, x.shape[2])).apply(ops.expand_dims, axes=(0,))
    cos, sin = (_angles(input_tensor(node, index), at) for index in (2, 3))
    result = rotate_pairs(x, cos, sin, rotated_size, bool(node.attribute("interleaved", 0)))
    return (merge_heads(result).reshape(*shape) if flat else result).expr


def _rotated_size(node: OnnxNode, index: int) -> int:
    half = node.type(index).known_shape[1]
    if not isinstance(half, int):
        raise RelvmUnsupportedError(f"the number of angles in the tables must be known, got {half}")
    return 2 * half


def _angles(table: TensorExpr, at: TensorExpr) -> TensorExpr:
    """Return the rows of `table` at the positions `at`.  A row contains the cosines or sines of the angles of a
    position.

    The result has the shape (batch, 1, length, n), where n is the number of columns of the table.
    """
    return table.apply(ops.gather, at, axis=0).apply(ops.expand_dims, axes=(1,))


@converts("GroupQueryAttention", domain=_MICROSOFT)
def _group_query_attention(node: OnnxNode) -> tuple[Expr, Expr, Expr]:
    """Takes q, k and v (or all three packed in q), past keys and values, the total length of each sequence minus 1, the
    maximum total length, tables of cosines and sines, positions, and a bias that is added to the scores.

    The new keys and values of each sequence are written behind its past ones.  The cache can have more positions than
    are in use.
    """
    _reject(node, {11: "head_sink", 12: "k_scale", 13: "v_scale"}, ("smooth_softmax", "qk_output"))
    own = node.type(0).known_dtype
    q, k, v = _grouped_heads(node)
    batch, _, length, _ = q.shape
    ends = shaped_input(node, 5).cast(I64).reshape(batch) + 1
    starts = (ends - dim_as_operand(node, length)).apply(ops.maximum, 0)
    at = starts.apply(ops.expand_dims, axes=(1,)) + iota(node, length)
    if node.attribute("do_rotary", 0):
        rotated_size = _rotated_size(node, 7)
        own_places = input_tensor(node, 9).cast(I64) if node.has(9) else at
        cos, sin = (_angles(widen(input_tensor(node, index)), own_places) for index in (7, 8))
        q, k = (rotate_pairs(x, cos, sin, rotated_size, bool(node.attribute("rotary_interleaved", 0))) for x in (q, k))
    total = run_time_sizes(scalar(node, 6))[0]
    k, v = (_update_cache(node, index, new, (starts, at), total) for index, new in ((3, k), (4, v)))
    scores = attention_scores(q, k) * _scale(node, q)
    cap = node.attribute("softcap", 0.0)
    scores = (scores / cap).apply(ops.tanh) * cap if cap > 0 else scores
    if node.has(10):
        scores = scores + widen(input_tensor(node, 10))
    key, place = iota(node, k.shape[2]), at.apply(ops.expand_dims, axes=(1, 3))
    seen = key.apply(ops.less_equal, place)
    window = node.attribute("local_window_size", -1)
    if window >= 0:
        seen = seen.apply(ops.logical_and, key.apply(ops.greater, place - window))
    result = weight_values(seen.where(scores, -math.inf).apply(ops.softmax, axis=-1), v)
    return merge_heads(result).cast(own).expr, k.cast(own).expr, v.cast(own).expr


def _grouped_heads(node: OnnxNode) -> tuple[TensorExpr, TensorExpr, TensorExpr]:
    """Return q, k and v of a GroupQueryAttention, each of shape (batch, heads, length, size)."""
    counts = [node.attribute(name, 0) for name in ("num_heads", "kv_num_heads", "kv_num_heads")]
    if node.has(1):
        parts = [widen(shaped_input(node, index)) for index in range(3)]
    else:
        whole = widen(shaped_input(node, 0))
        width, every = whole.shape[2], sum(counts)
        if not isinstance(width, int) or every < 1 or width % every:
            raise RelvmShapeError(f"cannot split {whole.type} into {counts} heads")
        parts = _split_columns(whole, [count * (width // every) for count in counts])
    q, k, v = (split_heads(part, count) for part, count in zip(parts, counts, strict=True))
    return q, k, v


def _update_cache(
    node: OnnxNode, index: int, new: TensorExpr, where: tuple[TensorExpr, TensorExpr], total: AnyDim
) -> TensorExpr:
    """Return the updated cache of keys or values.

    For each sequence, the cache contains the past keys or values, from input `index`, followed by the new ones.  Unused
    positions are zero.

    new: the new keys or values.
    where: the number of past keys of each sequence, and the positions in the cache at which the new keys or values are
    written.
    total: the minimum number of positions in the cache.
    """
    (starts, at), (batch, heads, length, size) = where, new.shape
    zeros, capacity = TensorExpr(node, new.operand(0)), total
    if node.has(index):
        past = widen(shaped_input(node, index))
        capacity = dim_op("max", past.shape[2], total)
        is_past = iota(node, past.shape[2], 1) < starts.apply(ops.expand_dims, axes=(1, 2, 3))
        rest = zeros.apply(ops.broadcast_to, node.shape([batch, heads, capacity - past.shape[2], size]))
        kept = is_past.where(past, 0).apply(ops.concat, rest, axis=2)
    else:
        kept = zeros.apply(ops.broadcast_to, node.shape([batch, heads, capacity, size]))
    at = at.apply(ops.expand_dims, axes=(1, 3)).apply(ops.broadcast_to, node.shape([batch, heads, length, size]))
    return kept.apply(ops.scatter_elements, at, new, axis=2)
