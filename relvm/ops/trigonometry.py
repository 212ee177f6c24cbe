"""Elementwise trigonometric and hyperbolic functions of one tensor, and log1p."""

from __future__ import annotations

import numpy as np

from relvm.ir.operator import op
from relvm.ir.types import TensorType
from relvm.ops.unary import check_float, math_function


@op("tan", numpy=np.tan, lower=math_function("tan"))
def tan(x: TensorType) -> TensorType:
    """The tangent, elementwise.

    x: a tensor of a float dtype, in radians.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has another dtype.
    Source: ONNX Tan-22.

    Examples:

        >>> run("tan(x)", x=[0.0, 1.0])
        [0.    1.557]
    """
    return check_float("tan", x)


@op("asin", numpy=np.arcsin, lower=math_function("asin"))
def asin(x: TensorType) -> TensorType:
    """The inverse sine in radians, elementwise; NaN outside [-1, 1].

    x: a tensor of a float dtype.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has another dtype.
    Source: ONNX Asin-22.

    Examples:

        >>> run("asin(x)", x=[-1.0, 0.0, 0.5])
        [-1.571  0.     0.524]
    """
    return check_float("asin", x)


@op("acos", numpy=np.arccos, lower=math_function("acos"))
def acos(x: TensorType) -> TensorType:
    """The inverse cosine in radians, elementwise; NaN outside [-1, 1].

    x: a tensor of a float dtype.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has another dtype.
    Source: ONNX Acos-22.

    Examples:

        >>> run("acos(x)", x=[-1.0, 0.0, 1.0])
        [3.142 1.571 0.   ]
    """
    return check_float("acos", x)


@op("atan", numpy=np.arctan, lower=math_function("atan"))
def atan(x: TensorType) -> TensorType:
    """The inverse tangent in radians, elementwise, in [-pi / 2, pi / 2].

    x: a tensor of a float dtype.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has another dtype.
    Source: ONNX Atan-22.

    Examples:

        >>> run("atan(x)", x=[-1.0, 0.0, 1.0])
        [-0.785  0.     0.785]
    """
    return check_float("atan", x)


@op("sinh", numpy=np.sinh, lower=math_function("sinh"))
def sinh(x: TensorType) -> TensorType:
    """The hyperbolic sine, elementwise.

    x: a tensor of a float dtype.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has another dtype.
    Source: ONNX Sinh-22.

    Examples:

        >>> run("sinh(x)", x=[-1.0, 0.0, 1.0])
        [-1.175  0.     1.175]
    """
    return check_float("sinh", x)


@op("cosh", numpy=np.cosh, lower=math_function("cosh"))
def cosh(x: TensorType) -> TensorType:
    """The hyperbolic cosine, elementwise.

    x: a tensor of a float dtype.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has another dtype.
    Source: ONNX Cosh-22.

    Examples:

        >>> run("cosh(x)", x=[-1.0, 0.0, 1.0])
        [1.543 1.    1.543]
    """
    return check_float("cosh", x)


@op("asinh", numpy=np.arcsinh, lower=math_function("asinh"))
def asinh(x: TensorType) -> TensorType:
    """The inverse hyperbolic sine, elementwise.

    x: a tensor of a float dtype.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has another dtype.
    Source: ONNX Asinh-22.

    Examples:

        >>> run("asinh(x)", x=[-1.0, 0.0, 1.0])
        [-0.881  0.     0.881]
    """
    return check_float("asinh", x)


@op("acosh", numpy=np.arccosh, lower=math_function("acosh"))
def acosh(x: TensorType) -> TensorType:
    """The inverse hyperbolic cosine, elementwise; NaN where x is below 1.

    x: a tensor of a float dtype.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has another dtype.
    Source: ONNX Acosh-22.

    Examples:

        >>> run("acosh(x)", x=[1.0, 2.0])
        [0.    1.317]
    """
    return check_float("acosh", x)


@op("atanh", numpy=np.arctanh, lower=math_function("atanh"))
def atanh(x: TensorType) -> TensorType:
    """The inverse hyperbolic tangent, elementwise; infinite where x is -1 or 1, NaN outside [-1, 1].

    x: a tensor of a float dtype.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has another dtype.
    Source: ONNX Atanh-22.

    Examples:

        >>> run("atanh(x)", x=[-0.5, 0.0, 0.5])
        [-0.549  0.     0.549]
    """
    return check_float("atanh", x)


@op("log1p", numpy=np.log1p, lower=math_function("log1p"))
def log1p(x: TensorType) -> TensorType:
    """The natural logarithm of 1 + x, elementwise, accurate for x near 0.  It is -inf where x is -1, and NaN where x
    is below -1.

    x: a tensor of a float dtype.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has another dtype.
    Source: C11 7.12.6.9, F.10.3.9.

    Examples:

        >>> run("log1p(x)", x=[0.0, 1.0])
        [0.    0.693]
    """
    return check_float("log1p", x)
