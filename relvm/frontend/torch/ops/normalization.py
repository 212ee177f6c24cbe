"""Normalization layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import relvm.ops as ops
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.torch.ops.reductions import vector_norm
from relvm.frontend.torch.registry import Node, axis_of, converts, shape_of
from relvm.ir.expr import Expr, Shape
from relvm.ir.symbolic import AnyDim, product


def _per_channel(node: Node, x: Expr, rank: int, dtype: Any) -> Expr:
    """Reshape a vector with one element for each channel, to broadcast to (batch, channels, ...) of rank `rank`."""
    return node.reshaped(node.cast(x, dtype), (shape_of(x)[0], *(1,) * (rank - 2)))


def _moments(node: Node, x: Expr, axes: tuple[int, ...]) -> tuple[Expr, Expr, Expr]:
    """Return the mean, the distances from the mean and the variance along axes, which remain with size 1."""
    mean = node.emit(ops.mean(x, axes=axes, keepdims=True))
    distance = node.emit(ops.subtract(x, mean))
    return mean, distance, node.emit(ops.mean(ops.multiply(distance, distance), axes=axes, keepdims=True))


def _inverse_root(node: Node, variance: Expr, eps: float) -> Expr:
    return node.emit(ops.reciprocal(ops.sqrt(ops.add(variance, float(eps)))))


def _affine(node: Node, x: Expr, weight: Expr | None, bias: Expr | None, shape: Sequence[AnyDim]) -> Expr:
    """Return x * weight + bias, with the weight and the bias reshaped to `shape`.  Either can be None."""
    dtype = x.known_element_type
    if weight is not None:
        x = ops.multiply(x, node.reshaped(node.cast(weight, dtype), shape))
    if bias is not None:
        x = ops.add(x, node.reshaped(node.cast(bias, dtype), shape))
    return x


def layer_norm(
    node: Node, x: Expr, count: int, weight: Expr | None, bias: Expr | None, eps: float
) -> tuple[Expr, Expr, Expr]:
    """Normalize the last `count` axes.  Return the result, the mean and the inverse deviation."""
    x = node.emit(node.wide(x))
    rank = len(shape_of(x))
    axes = tuple(range(rank - count, rank))
    mean, distance, variance = _moments(node, x, axes)
    inverse = _inverse_root(node, variance, eps)
    return _affine(node, ops.multiply(distance, inverse), weight, bias, shape_of(x)[rank - count :]), mean, inverse


@converts("layer_norm")
def _layer_norm(
    node: Node,
    input: Expr,
    normalized_shape: Sequence[AnyDim],
    weight: Expr | None = None,
    bias: Expr | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Expr:
    return layer_norm(node, input, len(normalized_shape), weight, bias, eps)[0]


@converts("native_layer_norm")
def _native_layer_norm(
    node: Node, input: Expr, normalized_shape: Sequence[AnyDim], weight: Expr | None, bias: Expr | None, eps: float
) -> tuple[Expr, Expr, Expr]:
    return layer_norm(node, input, len(normalized_shape), weight, bias, eps)


@converts("rms_norm", "_fused_rms_norm")
def _rms_norm(
    node: Node, input: Expr, normalized_shape: Sequence[AnyDim], weight: Expr | None = None, eps: float | None = None
) -> tuple[Expr, ...]:
    import numpy as np

    dtype = input.known_element_type
    x = node.emit(node.wide(input))
    rank, count = len(shape_of(x)), len(normalized_shape)
    default = {"f16": 2.0**-10, "bf16": 2.0**-7}.get(dtype.name) or float(np.finfo(dtype.numpy).eps)
    if dtype.is_narrow_float:
        default = float(np.finfo(np.float32).eps)
    square = ops.mean(ops.multiply(x, x), axes=tuple(range(rank - count, rank)), keepdims=True)
    inverse = _inverse_root(node, square, default if eps is None else eps)
    result = _affine(node, ops.multiply(x, inverse), weight, None, shape_of(x)[rank - count :])
    return (result, inverse)[: max(len(node.output_names()), 1)]


def group_norm(
    node: Node, x: Expr, groups: int, weight: Expr | None, bias: Expr | None, eps: float
) -> tuple[Expr, Expr, Expr]:
    """Normalize groups of channels.  Return the result, the mean and the inverse deviation."""
    x = node.emit(node.wide(x))
    batch, channels, *rest = shape_of(x)
    each = node.exact_quotient(channels, groups, "the number of channels")
    split = node.reshaped(x, (batch, groups, product((each, *rest))))
    mean, distance, variance = _moments(node, split, (2,))
    inverse = _inverse_root(node, variance, eps)
    result = node.emit(ops.reshape(node.emit(ops.multiply(distance, inverse)), Shape((batch, channels, *rest))))
    scaled = _affine(node, result, weight, bias, (channels, *(1,) * len(rest)))
    return scaled, node.reshaped(mean, (batch, groups)), node.reshaped(inverse, (batch, groups))


@converts("group_norm")
def _group_norm(
    node: Node,
    input: Expr,
    num_groups: int,
    weight: Expr | None = None,
    bias: Expr | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Expr:
    return group_norm(node, input, num_groups, weight, bias, eps)[0]


@converts("native_group_norm")
def _native_group_norm(
    node: Node,
    input: Expr,
    weight: Expr | None,
    bias: Expr | None,
    N: AnyDim,
    C: AnyDim,
    HxW: AnyDim,
    group: int,
    eps: float,
) -> tuple[Expr, Expr, Expr]:
    return group_norm(node, input, group, weight, bias, eps)


def _normalized(
    node: Node, x: Expr, weight: Expr | None, bias: Expr | None, mean: Expr, variance: Expr, eps: float
) -> Expr:
    """Return a batch that is normalized by a mean and a variance for each channel."""
    x = node.emit(node.wide(x))
    rank, dtype = len(shape_of(x)), x.known_element_type
    shift, scale = (_per_channel(node, each, rank, dtype) for each in (mean, variance))
    centered = ops.multiply(ops.subtract(x, shift), _inverse_root(node, scale, eps))
    return _affine(node, centered, weight, bias, (shape_of(x)[1], *(1,) * (rank - 2)))


def _batch_moments(node: Node, x: Expr) -> tuple[Expr, Expr, AnyDim]:
    """Return the mean and the variance of each channel, and the number of elements of a channel."""
    x = node.emit(node.wide(x))
    shape = shape_of(x)
    axes = (0, *range(2, len(shape)))
    mean, _, variance = _moments(node, x, axes)
    count = product([shape[axis] for axis in axes])
    return node.reshaped(mean, (shape[1],)), node.reshaped(variance, (shape[1],)), count


def _blended(node: Node, old: Expr, new: Expr, momentum: float) -> Expr:
    dtype = old.known_element_type
    new = node.cast(new, dtype)
    return ops.add(ops.multiply(new, float(momentum)), ops.multiply(old, 1 - float(momentum)))


def _unbiased(node: Node, variance: Expr, count: AnyDim) -> Expr:
    number = node.number(count, variance.known_element_type)
    return ops.multiply(variance, ops.divide(number, ops.subtract(number, 1.0)))


def _trained(
    node: Node,
    x: Expr,
    weight: Expr | None,
    bias: Expr | None,
    running_mean: Expr | None,
    running_var: Expr | None,
    momentum: float,
    eps: float,
) -> tuple[Expr, Expr, Expr, Expr | None, Expr | None]:
    """Return the result, the mean, the inverse deviation, and the new running mean and variance."""
    mean, variance, count = _batch_moments(node, x)
    result = _normalized(node, x, weight, bias, mean, variance, eps)
    new_mean = None if running_mean is None else _blended(node, running_mean, mean, momentum)
    new_var = None if running_var is None else _blended(node, running_var, _unbiased(node, variance, count), momentum)
    return result, mean, _inverse_root(node, variance, eps), new_mean, new_var


@converts("batch_norm")
def _batch_norm(
    node: Node,
    input: Expr,
    weight: Expr | None,
    bias: Expr | None,
    running_mean: Expr | None,
    running_var: Expr | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = False,
) -> Expr:
    """In training, it updates the running mean and variance in place."""
    return _native_batch_norm(node, input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


@converts("_native_batch_norm_legit", "native_batch_norm", "_batch_norm_with_update", "cudnn_batch_norm")
def _native_batch_norm(
    node: Node,
    input: Expr,
    weight: Expr | None,
    bias: Expr | None,
    running_mean: Expr | None,
    running_var: Expr | None,
    training: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> tuple[Expr, Expr, Expr]:
    """In training, it updates the running mean and variance in place."""
    if not training:
        return _inference(node, input, weight, bias, running_mean, running_var, eps)
    result, saved, inverse, mean, variance = _trained(
        node, input, weight, bias, running_mean, running_var, momentum, eps
    )
    result = node.emit(result)
    if mean is not None and variance is not None:
        node.update("running_mean", mean)
        node.update("running_var", variance)
    return result, saved, inverse


def _inference(
    node: Node, x: Expr, weight: Expr | None, bias: Expr | None, mean: Expr | None, variance: Expr | None, eps: float
) -> tuple[Expr, Expr, Expr]:
    if mean is None or variance is None:
        raise RelvmUnsupportedError("inference without a running mean and variance is not supported")
    result = _normalized(node, x, weight, bias, mean, variance, eps)
    empty = node.full(0, (0,), node.wide(x).known_element_type)
    return result, empty, empty


@converts("_native_batch_norm_legit.no_stats")
def _batch_norm_without_statistics(
    node: Node, input: Expr, weight: Expr | None, bias: Expr | None, training: bool, momentum: float, eps: float
) -> tuple[Expr, Expr, Expr]:
    return _trained(node, input, weight, bias, None, None, momentum, eps)[:3]


@converts("_native_batch_norm_legit_no_training", "_batch_norm_no_update")
def _batch_norm_in_inference(
    node: Node,
    input: Expr,
    weight: Expr | None,
    bias: Expr | None,
    running_mean: Expr | None,
    running_var: Expr | None,
    momentum: float,
    eps: float,
) -> tuple[Any, ...]:
    found = _inference(node, input, weight, bias, running_mean, running_var, eps)
    return (*found, *(None,) * max(len(node.output_names()) - 3, 0))


@converts("_native_batch_norm_legit_functional", "_batch_norm_with_update_functional")
def _functional_batch_norm(
    node: Node,
    input: Expr,
    weight: Expr | None,
    bias: Expr | None,
    running_mean: Expr,
    running_var: Expr,
    training: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> tuple[Any, ...]:
    if not training:
        return (*_inference(node, input, weight, bias, running_mean, running_var, eps), running_mean, running_var)
    found = _trained(node, input, weight, bias, running_mean, running_var, momentum, eps)
    if "_batch_norm_with_update_functional" in node.node.target:
        return (*found[:3], node.full(0, node.out_shape(3), node.out_dtype(3)), *found[3:])
    return found


@converts("instance_norm")
def _instance_norm(
    node: Node,
    input: Expr,
    weight: Expr | None,
    bias: Expr | None,
    running_mean: Expr | None,
    running_var: Expr | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = False,
) -> Expr:
    if not use_input_stats:
        return _batch_norm(node, input, weight, bias, running_mean, running_var, False, momentum, eps)
    if running_mean is not None:
        raise RelvmUnsupportedError("instance_norm that updates a running mean is not supported")
    x = node.emit(node.wide(input))
    shape = shape_of(x)
    _, distance, variance = _moments(node, x, tuple(range(2, len(shape))))
    result = ops.multiply(distance, _inverse_root(node, variance, eps))
    return _affine(node, result, weight, bias, (shape[1], *(1,) * (len(shape) - 2)))


@converts("renorm")
def _renorm(node: Node, self: Expr, p: Any, dim: int, maxnorm: Any) -> Expr:
    from relvm.frontend.torch.ops.reductions import vector_norm
    from relvm.frontend.torch.registry import axis_of

    x = node.emit(node.wide(self))
    rank = len(shape_of(x))
    axes = tuple(axis for axis in range(rank) if axis != axis_of(dim, rank))
    norm = node.emit(vector_norm(node, x, p, axes, True))
    factor = ops.multiply(ops.reciprocal(ops.add(norm, 1e-7)), float(maxnorm))
    return ops.multiply(x, ops.where(ops.greater(norm, float(maxnorm)), factor, 1))


def _norm_except(node: Node, x: Expr, order: Any, dim: int) -> Expr:
    """Return the norm along all axes except `dim`, which stay with the size 1.   dim: -1 for the norm of all of x."""
    rank = len(shape_of(x))
    kept = -1 if dim == -1 else axis_of(dim, rank)
    axes = tuple(axis for axis in range(rank) if axis != kept)
    norm = vector_norm(node, x, order, axes, True)
    return ops.reshape(node.emit(norm), Shape(())) if dim == -1 else norm


@converts("norm_except_dim")
def _norm_except_dim(node: Node, v: Expr, pow: int = 2, dim: int = 0) -> Expr:
    return _norm_except(node, node.emit(node.wide(v)), pow, dim)


@converts("_weight_norm")
def _weight_norm(node: Node, v: Expr, g: Expr, dim: int = 0) -> Expr:
    x, scale = node.emit(node.wide(v)), node.emit(node.wide(g))
    return ops.multiply(x, ops.divide(scale, _norm_except(node, x, 2, dim)))
