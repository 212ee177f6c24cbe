"""Loss functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import relvm.ops as ops
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.torch.ops.activations import softplus
from relvm.frontend.torch.ops.reductions import log_softmax
from relvm.frontend.torch.registry import Node, converts, shape_of
from relvm.ir.dtypes import I64
from relvm.ir.expr import Expr, Shape
from relvm.ir.symbolic import AnyDim, product


def reduced(node: Node, losses: Expr, reduction: int) -> Expr:
    """Return the losses themselves if `reduction` is 0, their mean if it is 1, or their sum if it is 2."""
    losses = node.emit(losses)
    if reduction == 0 or not shape_of(losses):
        return losses
    return ops.mean(losses) if reduction == 1 else ops.sum(losses)


def _declare(name: str, function: Callable[..., Expr]) -> None:
    @converts(name)
    def convert(node: Node, self: Expr, target: Expr, reduction: int = 1, **parameters: Any) -> Expr:
        x, y = (node.emit(node.wide(node.cast(each, node.out_dtype()))) for each in (self, target))
        return reduced(node, function(node, x, y, **parameters), reduction)


def _squared(node: Node, x: Expr, y: Expr) -> Expr:
    difference = node.emit(ops.subtract(x, y))
    return ops.multiply(difference, difference)


def _smooth_l1(node: Node, x: Expr, y: Expr, beta: float = 1.0) -> Expr:
    size = node.emit(ops.abs(ops.subtract(x, y)))
    if beta == 0:
        return size
    near = ops.divide(ops.multiply(ops.multiply(size, size), 0.5), beta)
    return ops.where(ops.less(size, beta), near, ops.subtract(size, 0.5 * beta))


def _huber(node: Node, x: Expr, y: Expr, delta: float = 1.0) -> Expr:
    size = node.emit(ops.abs(ops.subtract(x, y)))
    near = ops.multiply(ops.multiply(size, size), 0.5)
    return ops.where(ops.less_equal(size, delta), near, ops.multiply(ops.subtract(size, 0.5 * delta), delta))


def _kl_div(node: Node, x: Expr, y: Expr, log_target: bool = False) -> Expr:
    if log_target:
        return ops.multiply(ops.exp(y), ops.subtract(y, x))
    entropy = ops.where(ops.equal(y, 0), 0, ops.multiply(y, ops.log(y)))
    return ops.subtract(entropy, ops.multiply(y, x))


def _soft_margin(node: Node, x: Expr, y: Expr) -> Expr:
    return softplus(node, ops.negative(ops.multiply(x, y)))


_declare("mse_loss", _squared)
_declare("l1_loss", lambda node, x, y: ops.abs(ops.subtract(x, y)))
_declare("smooth_l1_loss", _smooth_l1)
_declare("huber_loss", _huber)
_declare("kl_div", _kl_div)
_declare("soft_margin_loss", _soft_margin)


@converts("binary_cross_entropy")
def _binary_cross_entropy(node: Node, self: Expr, target: Expr, weight: Expr | None = None, reduction: int = 1) -> Expr:
    x, y = node.emit(node.wide(self)), node.emit(node.wide(target))
    hit = ops.maximum(ops.log(x), -100.0)
    miss = ops.maximum(ops.log1p(ops.negative(x)), -100.0)
    losses = ops.subtract(ops.multiply(ops.subtract(y, 1.0), miss), ops.multiply(y, hit))
    return reduced(node, losses if weight is None else ops.multiply(losses, weight), reduction)


@converts("binary_cross_entropy_with_logits")
def _binary_cross_entropy_with_logits(
    node: Node, self: Expr, target: Expr, weight: Expr | None = None, pos_weight: Expr | None = None, reduction: int = 1
) -> Expr:
    x, y = node.emit(node.wide(self)), node.emit(node.wide(node.cast(target, self.known_element_type)))
    rest = softplus(node, ops.negative(x))
    if pos_weight is not None:
        rest = ops.multiply(rest, ops.add(ops.multiply(ops.subtract(node.wide(pos_weight), 1.0), y), 1.0))
    losses = ops.add(ops.subtract(x, ops.multiply(x, y)), rest)
    return reduced(node, losses if weight is None else ops.multiply(losses, weight), reduction)


def negative_log_likelihood(
    node: Node, x: Expr, target: Expr, weight: Expr | None, reduction: int, ignore_index: int
) -> tuple[Expr, Expr]:
    """Return the loss and the total weight.

    x: logarithms of probabilities, of shape (classes), (batch, classes) or (batch, classes, ...).
    """
    x = node.emit(node.wide(x))
    dtype, rank = x.known_element_type, len(shape_of(x))
    axis = 0 if rank == 1 else 1
    target = node.cast(target, I64)
    kept = node.emit(ops.not_equal(target, ignore_index))
    classes = node.emit(ops.where(kept, target, 0))
    wide = node.emit(ops.expand_dims(classes, axes=(axis,)))
    found = node.emit(ops.squeeze(ops.gather_elements(x, wide, axis=axis), axes=(axis,)))
    scale = node.cast(kept, dtype)
    if weight is not None:
        scale = node.emit(ops.multiply(scale, ops.gather(node.cast(weight, dtype), classes, axis=0)))
    losses = node.emit(ops.where(kept, ops.negative(ops.multiply(found, scale)), 0))
    total = node.emit(ops.sum(scale)) if shape_of(scale) else scale
    if reduction == 0:
        return losses, node.number(0, dtype) if rank > 1 else total
    whole = ops.sum(losses) if shape_of(losses) else losses
    return (ops.divide(whole, total) if reduction == 1 else whole), total


@converts("nll_loss_forward", "nll_loss2d_forward")
def _nll_loss_forward(
    node: Node, self: Expr, target: Expr, weight: Expr | None, reduction: int, ignore_index: int
) -> tuple[Expr, Expr]:
    return negative_log_likelihood(node, self, target, weight, reduction, ignore_index)


@converts("nll_loss", "nll_loss2d", "nll_loss_nd")
def _nll_loss(
    node: Node, self: Expr, target: Expr, weight: Expr | None = None, reduction: int = 1, ignore_index: int = -100
) -> Expr:
    return negative_log_likelihood(node, self, target, weight, reduction, ignore_index)[0]


@converts("cross_entropy_loss")
def _cross_entropy(
    node: Node,
    self: Expr,
    target: Expr,
    weight: Expr | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Expr:
    axis = 0 if len(shape_of(self)) == 1 else 1
    logs = node.emit(log_softmax(node, self, axis))
    if label_smoothing:
        raise RelvmUnsupportedError("label_smoothing is supported only after run_decompositions()")
    if target.known_element_type.is_float:
        y = node.wide(target)
        losses: Expr = ops.negative(ops.multiply(logs, y))
        if weight is not None:
            shape: list[AnyDim] = [1] * len(shape_of(self))
            shape[axis] = shape_of(weight)[0]
            losses = ops.multiply(losses, node.reshaped(node.wide(weight), shape))
        losses = node.emit(ops.sum(losses, axes=(axis,)))
        if reduction == 1:
            count = product([size for at, size in enumerate(shape_of(self)) if at != axis])
            return ops.divide(
                ops.sum(losses) if shape_of(losses) else losses, node.number(count, logs.known_element_type)
            )
        return reduced(node, losses, reduction)
    return negative_log_likelihood(node, logs, target, weight, reduction, ignore_index)[0]


@converts("multi_margin_loss")
def _multi_margin_loss(
    node: Node, self: Expr, target: Expr, p: Any = 1, margin: Any = 1, weight: Expr | None = None, reduction: int = 1
) -> Expr:
    x = node.emit(node.wide(self))
    if len(shape_of(x)) == 1:
        x, target = node.reshaped(x, (1, *shape_of(x))), node.reshaped(target, (1,))
        result = node.emit(_multi_margin_loss(node, x, target, p, margin, weight, reduction))
        return node.reshaped(result, ()) if shape_of(result) else result
    if not shape_of(target):
        target = node.reshaped(target, (1,))
    rows, classes = shape_of(x)
    column = node.reshaped(target, (rows, 1))
    own = node.emit(ops.gather_elements(x, column, axis=1))
    gap = node.emit(ops.maximum(ops.add(ops.subtract(x, own), float(margin)), 0.0))
    gap = ops.multiply(gap, gap) if p == 2 else gap
    if weight is not None:
        gap = ops.multiply(gap, node.reshaped(node.emit(ops.gather(weight, target, axis=0)), (rows, 1)))
    others = ops.not_equal(ops.iota(Shape((classes,))), column)
    total = ops.sum(ops.where(others, gap, 0), axes=(1,))
    return reduced(node, ops.divide(total, node.number(classes, x.known_element_type)), reduction)
