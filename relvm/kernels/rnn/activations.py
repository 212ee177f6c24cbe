"""Activation functions of recurrent networks, for scalars of a kernel and for NumPy arrays.

Source: ONNX GRU-22, LSTM-22, RNN-22.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relvm.data_classes import value_record
from relvm.errors import RelvmArgumentError, counted
from relvm.ir.loop_ir import Literal, Operation, Scalar, select
from relvm.ir.operator import expect

Point = Callable[[Scalar, float, float], Scalar]


@value_record
class Activation:
    """An activation function of x and up to two parameters, alpha and beta.

    point: the function on scalars of a kernel.
    numpy: the function on NumPy arrays.
    alpha, beta: the default of each parameter, or None if the function does not use it.
    """

    point: Point
    numpy: Callable[[np.ndarray, float, float], np.ndarray]
    alpha: float | None = None
    beta: float | None = None


@value_record
class BoundActivation:
    """An activation function with given values of alpha and beta."""

    activation: Activation
    alpha: float
    beta: float

    def point(self, x: Scalar) -> Scalar:
        return self.activation.point(x, self.alpha, self.beta)

    def numpy(self, x: np.ndarray) -> np.ndarray:
        return self.activation.numpy(x, self.alpha, self.beta)


def _call(name: str, x: Scalar) -> Scalar:
    return Operation(name, (x,), x.dtype)


def _sigmoid(x: Scalar, alpha: float, beta: float) -> Scalar:
    return Literal(1, x.dtype) / (_call("exp", -x) + 1)


def _clamp(x: Scalar, low: float, high: float) -> Scalar:
    return select(x < low, Literal(low, x.dtype), select(x > high, Literal(high, x.dtype), x))


def _softplus(x: Scalar, alpha: float, beta: float) -> Scalar:
    return select(x > 0, x, Literal(0, x.dtype)) + _call("log1p", _call("exp", -_call("abs", x)))


ACTIVATIONS = {
    "sigmoid": Activation(_sigmoid, lambda x, a, b: 1 / (1 + np.exp(-x))),
    "tanh": Activation(lambda x, a, b: _call("tanh", x), lambda x, a, b: np.tanh(x)),
    "relu": Activation(
        lambda x, a, b: select(x < 0, Literal(0, x.dtype), x),
        lambda x, a, b: np.maximum(x, 0),
    ),
    "affine": Activation(lambda x, a, b: x * a + b, lambda x, a, b: x * a + b, 1.0, 0.0),
    "leakyrelu": Activation(
        lambda x, a, b: select(x < 0, x * a, x),
        lambda x, a, b: np.where(x < 0, x * a, x),
        0.01,
    ),
    "thresholdedrelu": Activation(
        lambda x, a, b: select(x < a, Literal(0, x.dtype), x),
        lambda x, a, b: np.where(x < a, 0, x),
        1.0,
    ),
    "scaledtanh": Activation(
        lambda x, a, b: _call("tanh", x * b) * a,
        lambda x, a, b: np.tanh(x * b) * a,
        1.0,
        1.0,
    ),
    "hardsigmoid": Activation(
        lambda x, a, b: _clamp(x * a + b, 0, 1),
        lambda x, a, b: np.clip(x * a + b, 0, 1),
        0.2,
        0.5,
    ),
    "elu": Activation(
        lambda x, a, b: select(x < 0, (_call("exp", x) - 1) * a, x),
        lambda x, a, b: np.where(x < 0, (np.exp(x) - 1) * a, x),
        1.0,
    ),
    "softsign": Activation(lambda x, a, b: x / (_call("abs", x) + 1), lambda x, a, b: x / (np.abs(x) + 1)),
    "softplus": Activation(_softplus, lambda x, a, b: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))),
}


def choose_activations(
    op: str, activations: Any, alpha: Any, beta: Any, defaults: tuple[str, ...], directions: int
) -> list[list[BoundActivation]]:
    """Return the activations of each direction of the network.

    Parameters
    ----------
    op
        The name of the operator, for error messages.
    activations
        The names for the first direction, then for the second, or None to use `defaults` for each direction.
    alpha, beta
        A number for each name, or None for the default of each activation.
    defaults
        The default names for one direction.
    directions
        The number of directions.

    Raises
    ------
    RelvmArgumentError
        The number of names or numbers is wrong, or a name is not in ACTIVATIONS.
    """
    names = defaults * directions if activations is None else activations
    count = len(defaults) * directions
    is_list = isinstance(names, tuple) and len(names) == count
    message = "{}: activations are {!r}, expected {}"
    expect(is_list, message, op, names, counted(count, "name"), error=RelvmArgumentError)
    for name in names:
        message = "{}: unknown activation {!r}; expected one of {}"
        expect(name in ACTIVATIONS, message, op, name, ", ".join(ACTIVATIONS), error=RelvmArgumentError)
    found = [ACTIVATIONS[name] for name in names]
    alphas = _expect_numbers(op, "alpha", alpha, [each.alpha for each in found])
    betas = _expect_numbers(op, "beta", beta, [each.beta for each in found])
    chosen = [BoundActivation(*each) for each in zip(found, alphas, betas, strict=True)]
    return [chosen[start : start + len(defaults)] for start in range(0, count, len(defaults))]


def _expect_numbers(op: str, name: str, numbers: Any, defaults: list[float | None]) -> list[float]:
    if numbers is None:
        return [0.0 if number is None else number for number in defaults]
    fits = (
        isinstance(numbers, tuple)
        and len(numbers) == len(defaults)
        and all(isinstance(n, int | float) for n in numbers)
    )
    message = "{}: {} is {!r}, expected {}"
    expect(fits, message, op, name, numbers, counted(len(defaults), "number"), error=RelvmArgumentError)
    return list(numbers)
