"""Elementwise functions of one tensor."""

from __future__ import annotations

import math

import numpy as np

from relvm.errors import RelvmArgumentError
from relvm.ir.loop_ir import Literal, Operation, Scalar, select
from relvm.ir.operator import Traits, expect, op
from relvm.ir.type_rules import expect_float, expect_numeric, expect_tensor
from relvm.ir.types import TensorType
from relvm.kernels.lowering_rules import ALIAS, Pointwise, elementwise


def check_float(name: str, x: TensorType) -> TensorType:
    """Check that x is a float tensor.  Return its type, which is the result type of the operator `name`."""
    expect_float(name, x=x)
    return x


def _numeric(name: str, x: TensorType) -> TensorType:
    expect_numeric(name, x=x)
    return x


def math_function(name: str) -> Pointwise:
    """Return the lowering rule of an operator that applies a function of loop IR, such as exp, to each element."""
    return elementwise(lambda x: Operation(name, (x,), x.dtype))


@op("identity", numpy=lambda x: x, lower=ALIAS, moves=True)
def identity(x: TensorType) -> TensorType:
    """x, unchanged.

    x: any tensor.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if the argument is not a tensor.
    Source: ONNX Identity-16.

    Examples:

        >>> run("identity(x)", x=[1, 2])
        [1 2]
    """
    expect_tensor("identity", x=x)
    return x


@op("negative", numpy=np.negative, lower=elementwise(lambda x: -x), traits=Traits(involution=True))
def negative(x: TensorType) -> TensorType:
    """-x, elementwise; integers wrap around.

    x: a tensor of an integer or float dtype.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has dtype bool.
    Source: ONNX Neg-13.

    Examples:

        >>> run("negative(x)", x=[1.0, -2.0])
        [-1.  2.]
    """
    return _numeric("negative", x)


def _abs(x: Scalar) -> Scalar:
    if x.dtype.is_float:
        return Operation("abs", (x,), x.dtype)
    return select(x < 0, -x, x) if x.dtype.is_signed else x


@op("abs", numpy=np.abs, lower=elementwise(_abs), traits=Traits(idempotent=True))
def abs_(x: TensorType) -> TensorType:
    """The absolute value, elementwise; the smallest signed integer stays negative.

    x: a tensor of an integer or float dtype.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has dtype bool.
    Source: ONNX Abs-13.

    Examples:

        >>> run("abs(x)", x=[1.0, -2.0])
        [1. 2.]
    """
    return _numeric("abs", x)


def _sign(x: Scalar) -> Scalar:
    zero = x if x.dtype.is_float else Literal(0, x.dtype)  # for floats, so that NaN propagates
    below = select(x < 0, Literal(-1, x.dtype), zero) if x.dtype.is_signed else zero
    return select(x > 0, Literal(1, x.dtype), below)


@op("sign", numpy=np.sign, lower=elementwise(_sign), traits=Traits(idempotent=True))
def sign(x: TensorType) -> TensorType:
    """The sign, elementwise: 1 where x > 0, -1 where x < 0, 0 where x is 0, NaN where x is NaN.

    x: a tensor of an integer or float dtype.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has dtype bool.
    Source: ONNX Sign-13.

    Examples:

        >>> run("sign(x)", x=[-3.0, 0.0, 5.0])
        [-1.  0.  1.]
    """
    return _numeric("sign", x)


@op("floor", numpy=np.floor, lower=math_function("floor"), traits=Traits(idempotent=True))
def floor(x: TensorType) -> TensorType:
    """The largest integer not above x, elementwise.

    x: a tensor of a float dtype.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has another dtype.
    Source: ONNX Floor-13.

    Examples:

        >>> run("floor(x)", x=[-1.5, 0.5, 2.0])
        [-2.  0.  2.]
    """
    return check_float("floor", x)


@op("ceil", numpy=np.ceil, lower=math_function("ceil"), traits=Traits(idempotent=True))
def ceil(x: TensorType) -> TensorType:
    """The smallest integer not below x, elementwise.

    x: a tensor of a float dtype.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has another dtype.
    Source: ONNX Ceil-13.

    Examples:

        >>> run("ceil(x)", x=[-1.5, 0.5, 2.0])
        [-1.  1.  2.]
    """
    return check_float("ceil", x)


@op("round", numpy=np.rint, lower=math_function("round"), traits=Traits(idempotent=True))
def round_(x: TensorType) -> TensorType:
    """The integer nearest to x, elementwise; ties to even.

    x: a tensor of a float dtype.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has another dtype.
    Source: ONNX Round-11.

    Examples:

        >>> run("round(x)", x=[0.5, 1.5, 2.4])
        [0. 2. 2.]
    """
    return check_float("round", x)


@op("sqrt", numpy=np.sqrt, lower=math_function("sqrt"))
def sqrt(x: TensorType) -> TensorType:
    """The square root, elementwise; NaN where x is below 0.

    x: a tensor of a float dtype.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has another dtype.
    Source: ONNX Sqrt-13, IEEE 754.

    Examples:

        >>> run("sqrt(x)", x=[1.0, 2.0, 4.0])
        [1.    1.414 2.   ]
    """
    return check_float("sqrt", x)


@op("exp", numpy=np.exp, lower=math_function("exp"))
def exp(x: TensorType) -> TensorType:
    """e to the power of x, elementwise.

    x: a tensor of a float dtype.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has another dtype.
    Source: ONNX Exp-13, C11 F.10.3.1.

    Examples:

        >>> run("exp(x)", x=[0.0, 1.0, -1.0])
        [1.    2.718 0.368]
    """
    return check_float("exp", x)


@op("log", numpy=np.log, lower=math_function("log"))
def log(x: TensorType) -> TensorType:
    """The natural logarithm, elementwise; -inf where x is 0, NaN where x is below 0.

    x: a tensor of a float dtype.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has another dtype.
    Source: ONNX Log-13, C11 F.10.3.7.

    Examples:

        >>> run("log(x)", x=[1.0, 2.0, 10.0])
        [0.    0.693 2.303]
    """
    return check_float("log", x)


@op("sin", numpy=np.sin, lower=math_function("sin"))
def sin(x: TensorType) -> TensorType:
    """The sine, elementwise.

    x: a tensor of a float dtype, in radians.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has another dtype.
    Source: ONNX Sin-7.

    Examples:

        >>> run("sin(x)", x=[0.0, 1.0, 2.0])
        [0.    0.841 0.909]
    """
    return check_float("sin", x)


@op("cos", numpy=np.cos, lower=math_function("cos"))
def cos(x: TensorType) -> TensorType:
    """The cosine, elementwise.

    x: a tensor of a float dtype, in radians.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has another dtype.
    Source: ONNX Cos-7.

    Examples:

        >>> run("cos(x)", x=[0.0, 1.0, 2.0])
        [ 1.     0.54  -0.416]
    """
    return check_float("cos", x)


@op("tanh", numpy=np.tanh, lower=math_function("tanh"))
def tanh(x: TensorType) -> TensorType:
    """The hyperbolic tangent, elementwise.

    x: a tensor of a float dtype.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has another dtype.
    Source: ONNX Tanh-13.

    Examples:

        >>> run("tanh(x)", x=[-1.0, 0.0, 1.0])
        [-0.762  0.     0.762]
    """
    return check_float("tanh", x)


_numpy_erf = np.vectorize(math.erf, otypes=[np.float64])


@op("erf", numpy=_numpy_erf, lower=math_function("erf"))
def erf(x: TensorType) -> TensorType:
    """The error function, 2 / sqrt(pi) times the integral of exp(-t * t) from 0 to x, elementwise.

    x: a tensor of a float dtype.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has another dtype.
    Source: ONNX Erf-13, C11 7.12.8.1.

    Examples:

        >>> run("erf(x)", x=[-1.0, 0.0, 1.0])
        [-0.843  0.     0.843]
    """
    return check_float("erf", x)


def _sigmoid(x: Scalar) -> Scalar:
    return Literal(1, x.dtype) / (Operation("exp", (-x,), x.dtype) + 1)


@op("sigmoid", numpy=lambda x: 1 / (1 + np.exp(-x)), lower=elementwise(_sigmoid))
def sigmoid(x: TensorType) -> TensorType:
    """1 / (1 + exp(-x)), elementwise.

    x: a tensor of a float dtype.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has another dtype.
    Source: ONNX Sigmoid-13.

    Examples:

        >>> run("sigmoid(x)", x=[-1.0, 0.0, 1.0])
        [0.269 0.5   0.731]
    """
    return check_float("sigmoid", x)


@op("reciprocal", numpy=np.reciprocal, lower=elementwise(lambda x: Literal(1, x.dtype) / x))
def reciprocal(x: TensorType) -> TensorType:
    """1 / x, elementwise.

    x: a tensor of a float dtype.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has another dtype.
    Source: ONNX Reciprocal-13.

    Examples:

        >>> run("reciprocal(x)", x=[1.0, 2.0, -4.0])
        [ 1.    0.5  -0.25]
    """
    return check_float("reciprocal", x)


@op(
    "relu",
    numpy=lambda x: np.maximum(x, 0),
    lower=elementwise(lambda x: select(x < 0, Literal(0, x.dtype), x)),
    traits=Traits(idempotent=True),
)
def relu(x: TensorType) -> TensorType:
    """max(x, 0), elementwise; NaN stays NaN.

    x: a tensor of an integer or float dtype.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has dtype bool.
    Source: ONNX Relu-14.

    Examples:

        >>> run("relu(x)", x=[-1.0, 0.0, 2.0])
        [0. 0. 2.]
    """
    return _numeric("relu", x)


def _numpy_clip(x: np.ndarray, *, min: float | None, max: float | None) -> np.ndarray:
    at_least = x if min is None else np.maximum(x, np.asarray(min, x.dtype))
    return at_least if max is None else np.minimum(at_least, np.asarray(max, x.dtype))


def _clip(x: Scalar, *, min: float | None, max: float | None) -> Scalar:
    at_least = x if min is None else select(x < min, Literal(min, x.dtype), x)
    return at_least if max is None else select(x > max, Literal(max, x.dtype), at_least)


@op("clip", numpy=_numpy_clip, lower=elementwise(_clip))
def clip(x: TensorType, *, min: float | None = None, max: float | None = None) -> TensorType:
    """x clamped to [`min`, `max`], elementwise; NaN stays NaN.

    x: a tensor of an integer or float dtype.
    min, max: numbers that the dtype of x can represent, with min <= max.  None means that there is no bound.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has dtype bool.  Raises RelvmArgumentError if a bound is not such a number.
    Source: ONNX Clip-13.

    Examples:

        >>> run("clip(x, min=0.0, max=1.0)", x=[-1.0, 0.5, 2.0])
        [0.  0.5 1. ]
    """
    _numeric("clip", x)
    for name, bound in (("min", min), ("max", max)):
        fits = bound is None or (isinstance(bound, int | float) and not isinstance(bound, bool) and bound == bound)
        expect(fits, "clip: {} is {!r}, expected a number or None", name, bound, error=RelvmArgumentError)
        if bound is not None and x.known_dtype.is_integer:
            lowest, highest = x.known_dtype.limits
            fits = isinstance(bound, int) and lowest <= bound <= highest
            expect(fits, "clip: {} is {!r}, which {} cannot represent", name, bound, x.dtype, error=RelvmArgumentError)
    ordered = min is None or max is None or min <= max
    expect(ordered, "clip: min {} exceeds max {}", min, max, error=RelvmArgumentError)
    return x
