"""Fused attention.  The kernel computes the scores in blocks of limited size, instead of the whole matrix of scores."""

from __future__ import annotations

import math

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmShapeError
from relvm.ir.dtypes import F32, I64
from relvm.ir.loop_ir import Address, Buffer, Literal, Scalar, as_scalar, minimum
from relvm.ir.operator import expect, op
from relvm.ir.symbolic import AnyDim, format_dim, known_size, product
from relvm.ir.type_rules import broadcast_dims, expect_bool, expect_equal_dims, expect_tensor
from relvm.ir.types import TensorType
from relvm.kernels.epilogue import Epilogue
from relvm.kernels.gemm.gemm import batch_indices
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import Contraction, strides_of
from relvm.ops.matmul import batch_start, one_loop_per_axis
from relvm.tables import kernel_constant

MOST = 256  # limit on the width of queries and values, because a block of rows is stored on the stack
ABSENT = ("nan", "zero", "no_nan")
_ROWS, _KEYS, _PANEL = (kernel_constant(f"ATTENTION_{name}") for name in ("ROWS", "KEYS", "PANEL"))
_STEP = kernel_constant("TILE_STEP")

Shape = tuple[AnyDim, ...]


def _attention(
    k: KernelBuilder, inputs, result: Epilogue, *, scale: float, hidden: float, absent: str, transposed: bool
) -> None:
    """Generate the kernel of `attention`, for each batch element and each block of rows of q."""
    q, key, v, allowed, bias = inputs
    batch, (rows, width) = result.shape[:-2], result.shape[-2:]
    depth, width = known_size(q.shape[-1]), known_size(width)
    columns = -(-width // _STEP) * _STEP
    keys, high = as_scalar(v.shape[-2], I64), as_scalar(rows, I64)
    blocks = (high + (_ROWS - 1)) / _ROWS
    zero = Literal(0, I64)
    most_rows, most_keys = _block_size(rows, _ROWS, 1), _block_size(v.shape[-2], _KEYS, _PANEL)
    with k.parallel(blocks * k.size(batch), (keys + 1) * (_ROWS * (depth + width) // 4)) as (first, last):
        scores = k.allocate("scores", F32, (most_rows * most_keys,))
        out = k.allocate("tile", F32, (most_rows * columns,))
        panel = k.allocate("panel", F32, (depth * _block_size(v.shape[-2], _PANEL, _STEP),))
        copy = scores if columns == width else k.allocate("copy", F32, (most_keys * columns,))
        with k.loop(last, start=first, name="block") as block:
            place = batch_indices(k, block / blocks, batch)
            row = k.let("row", block % blocks * _ROWS)
            count = k.let("count", minimum(high - row, _ROWS))

            def at(x: Buffer, of_row: Scalar) -> Address:
                return Address(x, k.let("start", batch_start(place, batch, x.shape) + of_row))

            masks: dict[str, Address | Scalar] = {}
            for name, mask in (("allowed", allowed), ("bias", bias)):
                of_row, of_key = (
                    Literal(0, I64) if stride == 0 else as_scalar(stride, I64) for stride in _mask_strides(mask)
                )
                masks[name] = at(mask, row * of_row)
                masks[f"{name}_row_stride"], masks[f"{name}_column_stride"] = of_row, of_key
            k.invoke(
                "rvm_attention",
                rows=count,
                keys=keys,
                depth=depth,
                width=width,
                q=at(q, row * depth),
                k=at(key, zero),
                k_row_stride=1 if transposed else depth,
                k_column_stride=keys if transposed else 1,
                v=at(v, zero),
                **masks,
                scale=Literal(scale, F32),
                hidden=Literal(hidden, F32),
                absent=kernel_constant(f"ATTENTION_{absent.upper()}"),
                scores=Address(scores, zero),
                panel=Address(panel, zero),
                copy=Address(copy, zero),
                out=Address(out, zero),
            )
            with k.loop(count, name="r") as r:
                i = k.let("i", row + r)
                with k.loop(width, name="j", simd=True) as j:
                    result.store(k, (*place, i, j), out[r * columns + j])


def _block_size(size: AnyDim, maximum: int, step: int) -> int:
    """Return the block size for `size` elements: `size` rounded up to a multiple of `step`, but at most `maximum`.

    If `size` is symbolic, return `maximum`.
    """
    return min(maximum, -(-max(size, 1) // step) * step) if isinstance(size, int) else maximum


def _mask_strides(mask: Buffer) -> tuple[AnyDim, AnyDim]:
    """Return the strides of `mask` along its last two axes, which are those of the queries and of the keys.

    The stride of a broadcast axis is 0.
    """
    shape = (1, 1, *mask.shape)
    *_, of_row, of_key = (0 if dim == 1 else step for dim, step in zip(shape, strides_of(shape), strict=True))
    return of_row, of_key


def _numpy_attention(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    allowed: np.ndarray,
    bias: np.ndarray,
    *,
    scale: float,
    hidden: float,
    absent: str,
    transposed: bool,
) -> np.ndarray:
    scores = np.matmul(q, k if transposed else np.swapaxes(k, -1, -2)) * np.float32(scale) + bias
    scores = np.where(allowed, scores, np.float32(hidden))
    largest = np.max(scores, axis=-1, keepdims=True, initial=-np.inf)
    powers = np.exp(scores - largest)
    shares = powers / np.sum(powers, axis=-1, keepdims=True)
    if absent != "nan":
        is_replaced = np.isnan(shares) if absent == "no_nan" else largest == -np.inf
        shares = np.where(is_replaced, np.float32(0), shares)
    return np.matmul(shares, v)


def _operations(q: Shape, k: Shape, v: Shape, allowed: Shape, bias: Shape, out: Shape, **attributes) -> AnyDim:
    """Return the number of operations: those of the two matrix products, and 8 for each score.

    The 8 are a multiplication by `scale`, an addition of `bias`, a selection by `allowed`, and 5 for the softmax.
    """
    scores = product(out[:-1]) * v[-2]
    return scores * (2 * q[-1] + 2 * out[-1] + 8)


@op("attention", numpy=_numpy_attention, lower=Contraction(_attention, one_loop_per_axis, _operations))
def attention(
    q: TensorType,
    k: TensorType,
    v: TensorType,
    allowed: TensorType,
    bias: TensorType,
    *,
    scale: float = 1.0,
    hidden: float = -math.inf,
    absent: str = "nan",
    transposed: bool = False,
) -> TensorType:
    """Scaled dot-product attention: softmax(scores) v, for each batch element.  Where the mask `allowed` is true, the
    score of a query and a key is their dot product, multiplied by `scale`, plus `bias`.  Elsewhere, the score is
    `hidden`.

    q: the queries, an f32 tensor of shape (..., m, d).
    k: the keys, an f32 tensor of shape (..., n, d), or (..., d, n) if `transposed`.
    v: the values, an f32 tensor of shape (..., n, e).  d and e must be known numbers in [1, 256].
    allowed: a bool tensor.
    bias: an f32 tensor.
    `allowed` and `bias` broadcast to the shape of the scores, (..., m, n).  The leading axes of q, k and v broadcast
    with one another.
    absent: what to do if the softmax weights of a query are NaN.  The weights are NaN if all scores of the query are
    -inf, or if a score is NaN or +inf.  With "nan", the weights stay NaN.  With "zero", the weights become 0 if all
    scores are -inf, but otherwise stay NaN.  With "no_nan", each NaN becomes 0.  If there are no keys, the result is 0
    in all three cases.
    Result: an f32 tensor of shape (..., m, e).  With more than 320 keys, the exponentials of the scores are multiplied
    by v first, and the products are divided by the sum of the exponentials at the end.  The products can therefore
    overflow if elements of v exceed 1e30.  Scores that are more than 69.3 below the largest one of their query
    count as -inf.  This changes the result only if an element of v is greater than 1e22, or infinite, because 0
    times infinity is NaN.
    Raises RelvmTypeError if an argument has another dtype or rank.  Raises RelvmShapeError if dimensions are not
    provably equal, do not broadcast, or are out of range.  Raises RelvmArgumentError if `absent` has another value.
    Source: Vaswani and others, Attention is all you need, 2017; ONNX Attention-23.

    Examples:

        >>> run(
        ...     "attention(q, k, v, allowed, bias, scale=1.0)",
        ...     q=[[1.0, 0.0]],
        ...     k=[[1.0, 0.0], [0.0, 1.0]],
        ...     v=[[1.0], [3.0]],
        ...     allowed=True,
        ...     bias=0.0,
        ... )
        [[1.538]]
    """
    name = "attention"
    expect_tensor(name, q=q, k=k, v=v, bias=bias)
    expect_bool(name, allowed=allowed)
    for parameter, type_ in (("q", q), ("k", k), ("v", v), ("bias", bias)):
        expect(type_.dtype == F32, "{}: {} has dtype {}, expected f32", name, parameter, type_.dtype)
    message = "{}: absent is {!r}, expected one of {}"
    expect(absent in ABSENT, message, name, absent, ", ".join(ABSENT), error=RelvmArgumentError)
    for parameter, type_ in (("q", q), ("k", k), ("v", v)):
        deep = type_.rank is None or type_.rank >= 2
        expect(deep, "{}: {} has rank {}, expected at least 2", name, parameter, type_.rank)
    if None in (q.shape, k.shape, v.shape, allowed.shape, bias.shape):
        ranks = [type_.rank for type_ in (q, k, v) if type_.rank is not None]
        return TensorType(F32, None, max(ranks) if len(ranks) == 3 else None)
    *batch_k, keys, depth = (*k.known_shape[:-2], *(k.known_shape[:-3:-1] if transposed else k.known_shape[-2:]))
    for parameter, size in (("a query", q.known_shape[-1]), ("a value", v.known_shape[-1])):
        fits = isinstance(size, int) and 1 <= size <= MOST
        message = "{}: {} has {} elements, expected a known number in [1, {}]"
        expect(fits, message, name, parameter, format_dim(size), MOST, error=RelvmShapeError)
    expect_equal_dims(name, "numbers of elements of a query and of a key differ", q.known_shape[-1], depth)
    expect_equal_dims(name, "numbers of keys and values differ", keys, v.known_shape[-2])
    batch = broadcast_dims(name, (q.known_shape[:-2], tuple(batch_k), v.known_shape[:-2]))
    scores = (*batch, q.known_shape[-2], keys)
    for parameter, type_ in (("allowed", allowed), ("bias", bias)):
        same = broadcast_dims(name, (scores, type_.known_shape)) == scores
        message = "{}: {} is {}, which cannot be broadcast to the scores, {}"
        expect(same, message, name, parameter, type_, TensorType(F32, scores), error=RelvmShapeError)
    return TensorType(F32, (*batch, q.known_shape[-2], v.known_shape[-1]))
