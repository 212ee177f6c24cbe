"""Elementwise comparisons and logic; the results are bool."""

from __future__ import annotations

import numpy as np

from relvm.ir.dtypes import BOOL
from relvm.ir.operator import Traits, op
from relvm.ir.type_rules import broadcast, expect_bool, expect_same_dtype, with_dtype
from relvm.ir.types import TensorType
from relvm.kernels.lowering_rules import elementwise


def _comparison(name: str, x: TensorType, y: TensorType) -> TensorType:
    expect_same_dtype(name, x=x, y=y)
    return broadcast(name, BOOL, x, y)


def _logical(name: str, x: TensorType, y: TensorType) -> TensorType:
    expect_bool(name, x=x, y=y)
    return broadcast(name, BOOL, x, y)


@op("equal", numpy=np.equal, lower=elementwise(lambda x, y: x.eq(y)), strings=True)
def equal(x: TensorType, y: TensorType) -> TensorType:
    """x == y, elementwise; false where x or y is NaN.

    x, y: tensors of the same dtype, whose shapes broadcast.
    Result: a bool tensor with the broadcast shape.
    Raises RelvmTypeError if the dtypes differ.  Raises RelvmShapeError if the shapes do not broadcast.
    Source: ONNX Equal-13, IEEE 754.

    Examples:

        >>> run("equal(x, y)", x=[1, 2, 3], y=[1, 5, 3])
        [ True False  True]
    """
    return _comparison("equal", x, y)


@op("not_equal", numpy=np.not_equal, lower=elementwise(lambda x, y: x.ne(y)), strings=True)
def not_equal(x: TensorType, y: TensorType) -> TensorType:
    """x != y, elementwise; true where x or y is NaN.

    x, y: tensors of the same dtype, whose shapes broadcast.
    Result: a bool tensor with the broadcast shape.
    Raises RelvmTypeError if the dtypes differ.  Raises RelvmShapeError if the shapes do not broadcast.
    Source: IEEE 754.

    Examples:

        >>> run("not_equal(x, y)", x=[1, 2, 3], y=[1, 5, 3])
        [False  True False]
    """
    return _comparison("not_equal", x, y)


@op("less", numpy=np.less, lower=elementwise(lambda x, y: x < y))
def less(x: TensorType, y: TensorType) -> TensorType:
    """x < y, elementwise; false where x or y is NaN.

    x, y: tensors of the same dtype, whose shapes broadcast.
    Result: a bool tensor with the broadcast shape.
    Raises RelvmTypeError if the dtypes differ.  Raises RelvmShapeError if the shapes do not broadcast.
    Source: ONNX Less-13, IEEE 754.

    Examples:

        >>> run("less(x, y)", x=[1.0, 2.0, 3.0], y=2.0)
        [ True False False]
    """
    return _comparison("less", x, y)


@op("less_equal", numpy=np.less_equal, lower=elementwise(lambda x, y: x <= y))
def less_equal(x: TensorType, y: TensorType) -> TensorType:
    """x <= y, elementwise; false where x or y is NaN.

    x, y: tensors of the same dtype, whose shapes broadcast.
    Result: a bool tensor with the broadcast shape.
    Raises RelvmTypeError if the dtypes differ.  Raises RelvmShapeError if the shapes do not broadcast.
    Source: ONNX LessOrEqual-16, IEEE 754.

    Examples:

        >>> run("less_equal(x, y)", x=[1.0, 2.0, 3.0], y=2.0)
        [ True  True False]
    """
    return _comparison("less_equal", x, y)


@op("greater", numpy=np.greater, lower=elementwise(lambda x, y: x > y))
def greater(x: TensorType, y: TensorType) -> TensorType:
    """x > y, elementwise; false where x or y is NaN.

    x, y: tensors of the same dtype, whose shapes broadcast.
    Result: a bool tensor with the broadcast shape.
    Raises RelvmTypeError if the dtypes differ.  Raises RelvmShapeError if the shapes do not broadcast.
    Source: ONNX Greater-13, IEEE 754.

    Examples:

        >>> run("greater(x, y)", x=[1.0, 2.0, 3.0], y=2.0)
        [False False  True]
    """
    return _comparison("greater", x, y)


@op("greater_equal", numpy=np.greater_equal, lower=elementwise(lambda x, y: x >= y))
def greater_equal(x: TensorType, y: TensorType) -> TensorType:
    """x >= y, elementwise; false where x or y is NaN.

    x, y: tensors of the same dtype, whose shapes broadcast.
    Result: a bool tensor with the broadcast shape.
    Raises RelvmTypeError if the dtypes differ.  Raises RelvmShapeError if the shapes do not broadcast.
    Source: ONNX GreaterOrEqual-16.

    Examples:

        >>> run("greater_equal(x, y)", x=[1.0, 2.0, 3.0], y=2.0)
        [False  True  True]
    """
    return _comparison("greater_equal", x, y)


@op(
    "logical_and",
    numpy=np.logical_and,
    lower=elementwise(lambda x, y: x.logical_and(y)),
    traits=Traits(commutative=True, neutral=lambda dtype: True),
)
def logical_and(x: TensorType, y: TensorType) -> TensorType:
    """x and y, elementwise.

    x, y: bool tensors whose shapes broadcast.
    Result: a bool tensor with the broadcast shape.
    Raises RelvmTypeError if an argument has another dtype.  Raises RelvmShapeError if the shapes do not broadcast.
    Source: ONNX And-7.

    Examples:

        >>> run("logical_and(x, y)", x=[True, True, False], y=[True, False, False])
        [ True False False]
    """
    return _logical("logical_and", x, y)


@op(
    "logical_or",
    numpy=np.logical_or,
    lower=elementwise(lambda x, y: x.logical_or(y)),
    traits=Traits(commutative=True, neutral=lambda dtype: False),
)
def logical_or(x: TensorType, y: TensorType) -> TensorType:
    """x or y, elementwise.

    x, y: bool tensors whose shapes broadcast.
    Result: a bool tensor with the broadcast shape.
    Raises RelvmTypeError if an argument has another dtype.  Raises RelvmShapeError if the shapes do not broadcast.
    Source: ONNX Or-7.

    Examples:

        >>> run("logical_or(x, y)", x=[True, True, False], y=[True, False, False])
        [ True  True False]
    """
    return _logical("logical_or", x, y)


@op(
    "logical_not",
    numpy=np.logical_not,
    lower=elementwise(lambda x: x.logical_not()),
    traits=Traits(involution=True),
)
def logical_not(x: TensorType) -> TensorType:
    """not x, elementwise.

    x: a bool tensor.
    Result: a tensor of the same type as x.
    Raises RelvmTypeError if x has another dtype.
    Source: ONNX Not-1.

    Examples:

        >>> run("logical_not(x)", x=[True, False])
        [False  True]
    """
    expect_bool("logical_not", x=x)
    return with_dtype(x, BOOL)
