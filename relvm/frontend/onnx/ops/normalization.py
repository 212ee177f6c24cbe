"""Normalization, composed of means, differences, squares and roots.  Operator fusion joins them into one kernel."""

from __future__ import annotations

import relvm.ops as ops
from relvm.errors import RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.onnx.ops.if_ import unless_empty
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr, input_tensor, per_channel
from relvm.ir.dtypes import F64, DType
from relvm.ir.expr import Expr
from relvm.ir.symbolic import product


def center(x: TensorExpr, axes: tuple[int, ...]) -> tuple[TensorExpr, TensorExpr, TensorExpr]:
    """Return the mean of x along `axes`, x minus the mean, and the variance."""
    mean = x.mean(axes)
    centered = x - mean
    return mean, centered, (centered * centered).mean(axes)


def inverse_deviation(variance: TensorExpr, epsilon: float) -> TensorExpr:
    """Return 1 / sqrt(variance + epsilon)."""
    return (variance + epsilon).apply(ops.sqrt).apply(ops.reciprocal)


def _stash_and_compute_dtypes(node: OnnxNode, own: DType) -> tuple[DType, DType]:
    """Return the dtype that the attribute stash_type names, and the dtype in which to compute.

    The dtype in which to compute is f64 if stash_type or the dtype of the input is f64, otherwise it is the dtype of
    stash_type.

    own: the dtype of the input.
    """
    stash = node.graph.element_type(node.attribute("stash_type", 1), "stash_type")
    if not stash.is_float:
        raise RelvmUnsupportedError(f"stash_type is {stash}, expected a float dtype")
    return stash, F64 if F64 in (stash, own) else stash


@converts("BatchNormalization")
def _batch_normalization(node: OnnxNode) -> Expr | tuple[Expr, ...]:
    """Multiplies by a scale and adds a shift for each channel.

    The scale and the shift become constants if all inputs except x are constants.
    """
    if node.attribute("spatial", 1) != 1:
        raise RelvmUnsupportedError("spatial=0 is not supported")
    x, epsilon = input_tensor(node, 0), node.attribute("epsilon", 1e-5)
    own, rank = node.type(0).known_dtype, node.type(0).known_rank
    scale, bias, mean, variance = (per_channel(node, i, rank) for i in range(1, 5))
    running: tuple[Expr, ...] = ()
    if node.attribute("training_mode", 0):
        kept, momentum = (mean, variance), node.attribute("momentum", 0.9)
        mean, _, variance = center(x, (0, *range(2, rank)))
        channels = input_tensor(node, 1).shape
        found = (each.cast(kept[0].dtype) for each in (mean, variance))
        means = ((old * momentum + new * (1 - momentum)) for old, new in zip(kept, found, strict=True))
        running = tuple(each.reshape(*channels).expr for each in means)
    factor = scale.cast(variance.dtype) * inverse_deviation(variance, epsilon)
    shift = bias.cast(mean.dtype) - mean * factor
    return ((x * factor.cast(own) + shift.cast(own)).expr, *running)


@converts("InstanceNormalization")
def _instance_normalization(node: OnnxNode) -> Expr:
    x, rank = input_tensor(node, 0), node.type(0).known_rank
    for index, name in ((1, "scales"), (2, "biases")):
        node.expect_rank(index, 1, name)
        node.require_equal(
            x.shape[1], input_tensor(node, index).shape[0], f"expected {{}} {name}, one for each channel, got {{}}"
        )
    _, centered, variance = center(x, tuple(range(2, rank)))
    factor = per_channel(node, 1, rank) * inverse_deviation(variance, node.attribute("epsilon", 1e-5))
    return (centered * factor + per_channel(node, 2, rank)).expr


@converts("GroupNormalization")
def _group_normalization(node: OnnxNode) -> Expr:
    """Normalizes groups of channels.

    There is one scale and one bias for each group before opset 21, and for each channel since opset 21.
    """
    x, shape = input_tensor(node, 0), node.type(0).shape
    groups = node.attribute("num_groups")
    if shape is None:
        raise RelvmUnsupportedError(f"GroupNormalization requires a known shape, got {x.type}")
    if groups < 1:
        raise RelvmShapeError(f"num_groups is {groups}, expected at least 1")
    in_group = node.exact_quotient(shape[1], groups, "channels")
    _, wide = _stash_and_compute_dtypes(node, node.type(0).known_dtype) if node.opset >= 21 else (None, x.dtype)
    grouped = x.cast(wide).reshape(shape[0], groups, in_group, *shape[2:])
    _, centered, variance = center(grouped, tuple(range(2, len(shape) + 1)))
    normal = centered * inverse_deviation(variance, node.attribute("epsilon", 1e-5))
    rank = len(shape)
    if node.opset < 21:
        normal = normal * per_channel(node, 1, rank + 1) + per_channel(node, 2, rank + 1)
        return normal.reshape(*shape).expr
    normal = normal.reshape(*shape).cast(x.dtype)
    return (normal * per_channel(node, 1, rank) + per_channel(node, 2, rank)).expr


@converts("LayerNormalization")
def _layer_normalization(node: OnnxNode) -> tuple[Expr, Expr, Expr]:
    x, own = input_tensor(node, 0), node.type(0).known_dtype
    stash, wide = _stash_and_compute_dtypes(node, own)
    mean, centered, variance = center(x.cast(wide), axes_from(node))
    inverse = inverse_deviation(variance, node.attribute("epsilon", 1e-5))
    result = (centered * inverse).cast(own) * input_tensor(node, 1)
    if node.has(2):
        result = result + input_tensor(node, 2)
    return result.expr, mean.cast(stash).expr, inverse.cast(stash).expr


@converts("RMSNormalization")
def _rms_normalization(node: OnnxNode) -> Expr:
    x, own = input_tensor(node, 0), node.type(0).known_dtype
    _, wide = _stash_and_compute_dtypes(node, own)
    x = x.cast(wide)
    inverse = inverse_deviation((x * x).mean(axes_from(node)), node.attribute("epsilon", 1e-5))
    return ((x * inverse).cast(own) * input_tensor(node, 1)).expr


def axes_from(node: OnnxNode) -> tuple[int, ...]:
    """Return the axes of input 0 along which the node normalizes: the attribute `axis`, and all axes after it."""
    rank = node.type(0).known_rank
    return tuple(range(node.axis(-1, rank), rank))


@converts("MeanVarianceNormalization")
def _mean_variance_normalization(node: OnnxNode) -> Expr:
    """Subtracts the mean, and divides by the standard deviation plus an epsilon.

    ONNX's function body for this operator adds the same epsilon.
    """
    _, centered, variance = center(input_tensor(node, 0), tuple(node.attribute("axes", [0, 2, 3])))
    return (centered / (variance.apply(ops.sqrt) + 1e-9)).expr


@converts("LpNormalization")
def _lp_normalization(node: OnnxNode) -> Expr:
    """Divides each vector along the axis by its norm.  If the norm is 0, the result is zeros."""
    x, p, axes = input_tensor(node, 0), node.attribute("p", 2), (node.attribute("axis", -1),)
    if p not in (1, 2):
        raise RelvmUnsupportedError(f"p is {p}, expected 1 or 2")
    norm = x.apply(ops.abs).sum(axes) if p == 1 else (x * x).sum(axes).apply(ops.sqrt)
    return norm.apply(ops.equal, 0).where(0, x / norm).expr


_MAX_CHANNELS = 2**20  # limit on the channels in one window of an LRN


@converts("LRN")
def _local_response(node: OnnxNode) -> Expr:
    """Computes x / (bias + alpha * mean)^beta, where mean is the mean square of `size` neighboring channels."""
    shape, size = node.type(0).shape, node.attribute("size")
    if shape is None:
        raise RelvmUnsupportedError(f"LRN requires a known shape, got {node.type(0)}")
    if not 1 <= size <= _MAX_CHANNELS:
        raise RelvmUnsupportedError(f"size is {size}, expected 1 to {_MAX_CHANNELS}")
    return unless_empty(node, product(shape[1:]), _local_response_of_elements)


def _local_response_of_elements(node: OnnxNode) -> Expr:
    x, shape, size = input_tensor(node, 0), node.type(0).known_shape, node.attribute("size")
    squares = (x * x).reshape(shape[0], 1, shape[1], product(shape[2:]))
    before = (size - 1) // 2
    pads = (before, 0, size - 1 - before, 0)
    means = squares.apply(ops.average_pool, kernel=(size, 1), pads=pads, count_include_pad=True).reshape(*shape)
    base = means * node.attribute("alpha", 1e-4) + node.attribute("bias", 1.0)
    return (x / base.power(node.attribute("beta", 0.75))).expr
