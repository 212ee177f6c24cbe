"""Types and constants of the IR for the abstract values of JAX.

A complex tensor is a tuple of its real and its imaginary part.  A random key is a tensor of u32, the key data, whose
last axis contains the words of a key.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from relvm.errors import RelvmUnsupportedError
from relvm.frontend.jax.requirements import import_jax
from relvm.ir.dtypes import BOOL, DType, dtype_of
from relvm.ir.expr import Expr, Tuple, constant
from relvm.ir.symbolic import AnyDim, dim_op
from relvm.ir.types import TensorType, TupleType, Type

Dims = Mapping[str, AnyDim]


def is_key(dtype: Any) -> bool:
    """Return whether a dtype of JAX is that of random keys."""
    jax = import_jax("from_jax")
    return jax.numpy.issubdtype(dtype, jax.dtypes.prng_key)


def is_float0(dtype: Any) -> bool:
    """Return whether a dtype of JAX is that of the tangents of integers, which have no values."""
    return getattr(dtype, "names", None) == ("float0",)


def array_type(aval: Any) -> tuple[tuple[Any, ...], np.dtype]:
    """Return the shape and the dtype of the array that represents an abstract value.

    Raises
    ------
    RelvmUnsupportedError
        The value is not an array.
    """
    if not hasattr(aval, "shape") or not hasattr(aval, "dtype"):
        raise RelvmUnsupportedError(f"values of the type {aval} are not supported; expected an array")
    if is_key(aval.dtype):
        jax = import_jax("from_jax")
        data = jax.eval_shape(jax.random.key_data, jax.ShapeDtypeStruct((), aval.dtype))
        return (*aval.shape, *data.shape), np.dtype(data.dtype)
    if is_float0(aval.dtype):
        return aval.shape, np.dtype(bool)
    return aval.shape, np.dtype(aval.dtype)


def _dtype(dtype: np.dtype) -> DType:
    try:
        return BOOL if dtype == np.bool_ else dtype_of(dtype)
    except Exception as error:
        raise RelvmUnsupportedError(f"elements of the type {dtype} are not supported ({error})") from None


def type_of_aval(aval: Any, dims: Dims) -> Type:
    """Return the type of a value.   dims: the dimensions of the names in symbolic shapes."""
    shape, dtype = array_type(aval)
    sizes = tuple(dim_of(size, dims) for size in shape)
    if dtype.kind == "c":
        part = TensorType(_dtype(np.dtype(f"f{dtype.itemsize // 2}")), sizes)
        return TupleType((part, part))
    return TensorType(_dtype(dtype), sizes)


def constant_of(value: Any, aval: Any) -> Expr:
    """Return an array of JAX as a constant of the IR.   aval: the abstract value of the array."""
    if is_key(aval.dtype):
        value = import_jax("from_jax").random.key_data(value)
    _, dtype = array_type(aval)
    array = np.asarray(value)
    array = np.zeros(array.shape, bool) if is_float0(array.dtype) else array.astype(dtype, copy=False)
    if dtype.kind == "c":
        parts = tuple(constant(np.array(part)) for part in (array.real, array.imag))
        return Tuple(parts, type=TupleType(tuple(part.type for part in parts)))
    return constant(np.asarray(array, order="C"))


# ---- symbolic dimensions ----

_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}
_FUNCTIONS = ("floordiv", "mod", "max", "min")


def dim_of(size: Any, dims: Dims) -> AnyDim:
    """Return a size of JAX, a number or a symbolic expression, as a dimension of the IR.

    dims: the dimensions of the names in symbolic expressions.
    """
    if isinstance(size, int | np.integer):
        return int(size)
    text = str(size).replace("^", "**")
    return _dim(ast.parse(text, mode="eval").body, text, dims)


def _dim(node: ast.expr, text: str, dims: Dims) -> AnyDim:
    match node:
        case ast.Constant(value=int() as value):
            return value
        case ast.Name(id=name) if name in dims:
            return dims[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_dim(operand, text, dims)
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as power)) if power > 0:
            result = factor = _dim(left, text, dims)
            for _ in range(power - 1):
                result = result * factor
            return result
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_dim(left, text, dims), _dim(right, text, dims))
        case ast.Call(func=ast.Name(id=name), args=[left, right]) if name in _FUNCTIONS:
            return dim_op(name, _dim(left, text, dims), _dim(right, text, dims))
    raise RelvmUnsupportedError(f"the symbolic dimension {text} is not supported")
