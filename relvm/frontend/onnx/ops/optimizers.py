"""Optimizer steps (domain ai.onnx.preview.training): Adagrad, Adam, Momentum.

The inputs are the learning rate, the number of previous steps, and then all tensors, all gradients, and all states of
each kind.  The outputs are in the same order: the tensors, then the states of each kind.
"""

from __future__ import annotations

from collections.abc import Callable

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmUnsupportedError, counted
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr, input_tensor
from relvm.ir.expr import Expr

_TRAINING = "ai.onnx.preview.training"


def _update_tensors(node: OnnxNode, kinds: int, step: Callable[..., tuple[TensorExpr, ...]]) -> tuple[Expr, ...]:
    """Apply an optimizer step to each tensor.  Return all updated tensors, then all updated states of each kind.

    kinds: the number of kinds of inputs.  Each tensor has one input of each kind: itself, its gradient and its states.
    step: a function that is called as step(rate, time, tensor, gradient, state...), and returns the updated tensor and
    states.
    """
    count, rest = divmod(len(node.inputs) - 2, kinds)
    if rest or count < 1:
        raise RelvmFormatError(f"got {counted(len(node.inputs), 'input')}, expected 2 plus {kinds} for each tensor")
    results = []
    for i in range(count):
        x, *others = (input_tensor(node, 2 + kind * count + i) for kind in range(kinds))
        rate, time = (input_tensor(node, at).reshape().cast(x.dtype) for at in (0, 1))
        results.append(step(rate, time, x, *others))
    return tuple(term_.expr for kind in zip(*results, strict=True) for term_ in kind)


@converts("Adagrad", domain=_TRAINING)
def _adagrad(node: OnnxNode) -> tuple[Expr, ...]:
    decay, norm = node.attribute("decay_factor", 0.0), node.attribute("norm_coefficient", 0.0)
    epsilon = node.attribute("epsilon", 1e-6)

    def step(
        rate: TensorExpr, time: TensorExpr, x: TensorExpr, gradient: TensorExpr, squares: TensorExpr
    ) -> tuple[TensorExpr, ...]:
        gradient = x * norm + gradient
        squares = squares + gradient * gradient
        rate = rate / (time * decay + 1)
        return x - rate * gradient / (squares.apply(ops.sqrt) + epsilon), squares

    return _update_tensors(node, 3, step)


@converts("Adam", domain=_TRAINING)
def _adam(node: OnnxNode) -> tuple[Expr, ...]:
    """Updates tensors by Adam, with bias correction of the moving averages, which start at 0."""
    alpha, beta = node.attribute("alpha", 0.9), node.attribute("beta", 0.999)
    norm, after = node.attribute("norm_coefficient", 0.0), node.attribute("norm_coefficient_post", 0.0)
    epsilon = node.attribute("epsilon", 1e-6)

    def step(
        rate: TensorExpr, time: TensorExpr, x: TensorExpr, gradient: TensorExpr, mean: TensorExpr, squares: TensorExpr
    ) -> tuple[TensorExpr, ...]:
        gradient = x * norm + gradient
        mean = mean * alpha + gradient * (1 - alpha)
        squares = squares * beta + gradient * gradient * (1 - beta)
        first, second = (1 - _powered(time, base) for base in (alpha, beta))
        rate = (time > 0).where(rate * second.apply(ops.sqrt) / first, rate)
        return (x - rate * (mean / (squares.apply(ops.sqrt) + epsilon))) * (1 - after), mean, squares

    return _update_tensors(node, 4, step)


def _powered(time: TensorExpr, base: float) -> TensorExpr:
    return TensorExpr(time.node, time.operand(base)).apply(ops.power, time)


@converts("Momentum", domain=_TRAINING)
def _momentum(node: OnnxNode) -> tuple[Expr, ...]:
    """Updates tensors by momentum.  In the first step, the gradient has the weight 1 instead of beta."""
    alpha, beta, norm = (node.attribute(name) for name in ("alpha", "beta", "norm_coefficient"))
    mode = node.attribute("mode")
    if mode not in ("standard", "nesterov"):
        raise RelvmUnsupportedError(f"mode {mode!r} is not supported")

    def step(
        rate: TensorExpr, time: TensorExpr, x: TensorExpr, gradient: TensorExpr, momentum: TensorExpr
    ) -> tuple[TensorExpr, ...]:
        gradient = x * norm + gradient
        momentum = momentum * alpha + (time > 0).where(TensorExpr(node, time.operand(beta)), 1) * gradient
        moved = momentum if mode == "standard" else gradient + momentum * alpha
        return x - rate * moved, momentum

    return _update_tensors(node, 3, step)
