"""Attention and rotary embeddings, composed of matrix products, masks and a softmax."""

from __future__ import annotations

import functools
import math

import relvm.ops as ops
from relvm.errors import RelvmArgumentError, RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.onnx.broadcasting import broadcast_input
from relvm.frontend.onnx.dynamic_sizes import dim_as_operand, iota
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr, input_tensor, shaped_input
from relvm.ir.dtypes import BOOL, F32, I64
from relvm.ir.expr import Expr
from relvm.ir.symbolic import AnyDim, difference, dim_op, known_size


@converts("SwiGLU")
def _swiglu(node: OnnxNode) -> Expr:
    a, b, alpha = input_tensor(node, 0), input_tensor(node, 1), node.attribute("alpha", 1.0)
    return (a * (a if alpha == 1.0 else a * alpha).apply(ops.sigmoid) * b).expr


@converts("RotaryEmbedding")
def _rotary_embedding(node: OnnxNode) -> Expr:
    """Rotates pairs of elements of each head by an angle that depends on the position in the sequence.

    A pair is one element of the first half and one of the second, or two adjacent elements if `interleaved` is set.  If
    `rotary_embedding_dim` is not 0, only the first `rotary_embedding_dim` elements are rotated.
    """
    x, flat = shaped_input(node, 0), node.type(0).known_rank == 3
    shape = x.shape
    if len(shape) not in (3, 4):
        raise RelvmShapeError(f"X is {x.type}, expected rank 3 or 4")
    x = split_heads(x, node.attribute("num_heads", 0)) if flat else x
    size = x.shape[3]
    rotated_size = node.attribute("rotary_embedding_dim", 0) or size
    is_odd = isinstance(rotated_size, int) and (rotated_size % 2 or rotated_size < 1)
    if is_odd or (isinstance(size, int) and isinstance(rotated_size, int) and rotated_size > size):
        raise RelvmUnsupportedError(
            f"rotary_embedding_dim is {rotated_size}, expected an even number that does not exceed the head size {size}"
        )
    node.require_at_most(rotated_size, size, "rotary_embedding_dim is {}, which exceeds the head size {}")
    half = node.exact_quotient(rotated_size, 2, "rotated elements")
    cos, sin = (_angles(node, i) for i in (1, 2))
    cos = TensorExpr(node, node.graph.with_shape(cos.expr, (*cos.shape[:-1], half)))
    sin = TensorExpr(node, node.graph.with_shape(sin.expr, cos.shape))
    result = rotate_pairs(x, cos, sin, rotated_size, bool(node.attribute("interleaved", 0)))
    return (merge_heads(result).reshape(*shape) if flat else result).expr


def rotate_pairs(
    x: TensorExpr, cos: TensorExpr, sin: TensorExpr, rotated_size: AnyDim, interleaved: bool
) -> TensorExpr:
    """Rotate the first `rotated_size` elements of each head in pairs.

    A pair is two adjacent elements if `interleaved` is true.  Otherwise it is one element of the first half of these
    elements and one of the second half.

    x: a tensor of shape (batch, heads, length, size).
    cos, sin: the cosines and sines of the angles, which broadcast to the shape (batch, heads, length, rotated_size /
    2).
    rotated_size: an integer, or the size of a head.
    """
    batch, heads, length, size = x.shape
    half = x.node.exact_quotient(rotated_size, 2, "rotated elements")
    parts = x
    if rotated_size != size:
        parts = x.apply(ops.slice, begin=(0,), end=(known_size(rotated_size),), axes=(3,))
    # The two elements of a pair lie along axis 4 or axis 3.
    axis, pairs = (4, (half, 2)) if interleaved else (3, (2, half))
    parts = parts.reshape(batch, heads, length, *pairs)
    first, second = (
        parts.apply(ops.slice, begin=(i,), end=(i + 1,), axes=(axis,)).reshape(batch, heads, length, half)
        for i in (0, 1)
    )
    real, imaginary = (
        part.apply(ops.expand_dims, axes=(axis,)) for part in (cos * first - sin * second, sin * first + cos * second)
    )
    result = real.apply(ops.concat, imaginary, axis=axis).reshape(batch, heads, length, rotated_size)
    if rotated_size == size:
        return result
    rest = x.apply(ops.slice, begin=(known_size(rotated_size),), end=(2**63 - 1,), axes=(3,))
    return result.apply(ops.concat, rest, axis=3)


def _angles(node: OnnxNode, index: int) -> TensorExpr:
    """Return the cosines or sines of the angles for each position.   index: the input that contains them.

    The result has the shape (batch, 1, length, n / 2), where n is the number of rotated elements of a head.
    """
    table = shaped_input(node, index)
    if node.has(3):
        table = table.apply(ops.gather, input_tensor(node, 3), axis=0)
    return table.apply(ops.expand_dims, axes=(1,))


def split_heads(x: TensorExpr, count: AnyDim) -> TensorExpr:
    """Split the last axis of x into `count` heads: (batch, length, count * size) -> (batch, count, length, size)."""
    batch, length, width = x.shape
    if not isinstance(count, int) or count < 1 or (isinstance(width, int) and width % count):
        raise RelvmShapeError(f"cannot split {x.type} into {count} heads")
    size = x.node.exact_quotient(width, count, "columns of all heads")
    return x.reshape(batch, length, count, size).apply(ops.transpose, perm=(0, 2, 1, 3))


def merge_heads(x: TensorExpr) -> TensorExpr:
    """Merge the heads of x into one axis: (batch, heads, length, size) -> (batch, length, heads * size)."""
    batch, heads, length, size = x.shape
    return x.apply(ops.transpose, perm=(0, 2, 1, 3)).reshape(batch, length, heads * size)


@converts("Attention")
def _attention(node: OnnxNode) -> tuple[Expr, ...]:
    """Computes softmax(q * k' * scale + mask) * v for each head.

    Several heads of q can share one head of k and v.  The result is zero for a query if all its keys are masked.  Types
    narrower than f32 are computed as f32.
    """
    q, k, v = (shaped_input(node, i) for i in range(3))
    own = [x.dtype for x in (q, v)]
    q, k, v = map(widen, (q, k, v))
    flat = len(q.shape) == 3
    if flat:
        counts = (node.attribute(name, 0) for name in ("q_num_heads", "kv_num_heads", "kv_num_heads"))
        q, k, v = (split_heads(x, count) for x, count in zip((q, k, v), counts, strict=True))
        k = TensorExpr(node, node.graph.with_shape(k.expr, (*k.shape[:3], q.shape[3])))
    past: AnyDim = 0
    if node.has(4):
        past = shaped_input(node, 4).shape[2]
        k, v = (widen(input_tensor(node, i)).apply(ops.concat, new, axis=2) for i, new in ((4, k), (5, v)))
    scale = node.attribute("scale")
    if scale is None:
        if q.shape[3] == 0:
            raise RelvmShapeError(f"Q is {node.type(0)}, expected heads of at least one element")
        size = dim_as_operand(node, q.shape[3])
        scale = 1 / (math.sqrt(size) if isinstance(size, int) else size.cast(q.dtype).apply(ops.sqrt))
    outputs = [attention_scores(q, k) * scale]
    cap = node.attribute("softcap", 0.0)
    outputs.append((outputs[0] / cap).apply(ops.tanh) * cap if cap > 0 else outputs[0])
    outputs.append(_apply_mask(node, outputs[1], past))
    wide = outputs[2]
    if node.attribute("softmax_precision"):
        precision = node.graph.element_type(node.attribute("softmax_precision"), "softmax_precision")
        if not precision.is_float:
            raise RelvmArgumentError(f"softmax_precision is {precision}, expected a floating-point type")
        wide = wide.cast(precision)
    outputs.append((wide.apply(ops.softmax, axis=-1) if wide is outputs[1] else softmax_or_zeros(wide)).cast(q.dtype))
    result = weight_values(outputs[3], v)
    shown = outputs[node.integer("qk_matmul_output_mode", 0, least=0, most=3)]
    result = merge_heads(result) if flat else result
    return tuple(x.cast(own[i]).expr for x, i in ((result, 0), (k, 0), (v, 1), (shown, 0)))


def widen(x: TensorExpr) -> TensorExpr:
    return x.cast(F32) if x.dtype.is_narrow_float else x


def _query_heads_per_key_head(q: TensorExpr, k: TensorExpr) -> AnyDim:
    """Return how many query heads share each key head.  The heads are axis 1 of q and of k."""
    many, few = q.shape[1], k.shape[1]
    if many == few:
        return 1
    is_known = isinstance(many, int) and isinstance(few, int)
    if few == 0 or (is_known and many % few):
        raise RelvmShapeError(
            f"the number of query heads, {many}, must be a multiple of the number of key/value heads, {few}"
        )
    count = dim_op("floordiv", many, few)
    q.node.require_equal(many, few * count, "{} query heads, expected a multiple of the key/value heads such as {}")
    return count


def attention_scores(q: TensorExpr, k: TensorExpr) -> TensorExpr:
    count = _query_heads_per_key_head(q, k)
    if count == 1:
        return q.apply(ops.matmul, k, transpose_b=True)
    batch, heads, length, size = q.shape
    grouped = q.reshape(batch, k.shape[1], count, length, size)
    scores = grouped.apply(ops.matmul, k.apply(ops.expand_dims, axes=(2,)), transpose_b=True)
    return scores.reshape(batch, heads, length, k.shape[2])


def weight_values(weights: TensorExpr, v: TensorExpr) -> TensorExpr:
    count = _query_heads_per_key_head(weights, v)
    if count == 1:
        return weights.apply(ops.matmul, v)
    batch, heads, length, many = weights.shape
    grouped = weights.reshape(batch, v.shape[1], count, length, many)
    return grouped.apply(ops.matmul, v.apply(ops.expand_dims, axes=(2,))).reshape(batch, heads, length, v.shape[3])


def _apply_mask(node: OnnxNode, scores: TensorExpr, past: AnyDim) -> TensorExpr:
    """Add the node's mask, if it has one, to the scores.  Set the scores of masked keys to -inf.

    past: the number of keys that precede the first query.
    """
    allowed = _position_masks(node, scores.shape[2], scores.shape[3], past)
    if node.has(3):
        mask = _extend_mask(shaped_input(node, 3), scores.shape[3])
        mask = TensorExpr(node, broadcast_input(node, mask.expr, (*scores.shape[:3], mask.shape[-1])))
        if mask.type.dtype == BOOL:
            allowed.append(mask)
        else:
            scores = scores + mask.cast(scores.dtype)
    if not allowed:
        return scores
    every = functools.reduce(lambda one, other: one.apply(ops.logical_and, other), allowed)
    return every.where(scores, -math.inf)


def _position_masks(node: OnnxNode, queries: AnyDim, keys: AnyDim, past: AnyDim) -> list[TensorExpr]:
    """Return the masks that depend only on positions: the causal mask, the window mask, and the padding mask.

    The padding mask hides the keys after the valid length of a sequence (the input nonpad_kv_seqlen).

    A mask is a bool tensor.  A query may attend to a key only if all masks are true for this pair.

    queries, keys: the number of queries and of keys.   past: the number of keys that precede the first query.
    """
    key, place = iota(node, keys), iota(node, queries, 1)
    allowed = []
    if past != 0:
        place = place + dim_as_operand(node, past)
    if node.has(6):
        valid = input_tensor(node, 6).cast(I64).apply(ops.expand_dims, axes=(1, 2, 3))
        place = place + (valid - dim_as_operand(node, queries))
        allowed.append(key < valid)
    left, right = (node.attribute(f"{side}_window_size", -1) for side in ("left", "right"))
    if left >= 0:
        allowed.append(key.apply(ops.greater_equal, place - left))
    if node.attribute("is_causal", 0):
        right = 0
    if right >= 0:
        allowed.append(key.apply(ops.less_equal, place if right == 0 else place + right))
    return allowed


def _extend_mask(mask: TensorExpr, keys: AnyDim) -> TensorExpr:
    """Extend the last axis of a mask to the number of keys if it is shorter.  The additional keys are masked."""
    missing = difference(keys, mask.shape[-1])
    if missing is None or missing <= 0:
        return mask
    hidden = False if mask.type.dtype == BOOL else -math.inf
    return mask.apply(ops.pad, pads=(*[0] * (2 * len(mask.shape) - 1), missing), value=hidden)


def softmax_or_zeros(scores: TensorExpr) -> TensorExpr:
    """Return the softmax of each row, or zeros if the whole row is -inf."""
    largest = scores.apply(ops.max, axes=(-1,), keepdims=True)
    return largest.apply(ops.equal, -math.inf).where(0, scores.apply(ops.softmax, axis=-1))
