"""Random operators on tensors, with comparable results (see the docstring of the package)."""

from __future__ import annotations

from typing import Any

import numpy as np

import relvm.ops  # declares the operators  # noqa: F401
from random_programs.scalars import scalar
from random_programs.state import DIM_LIMIT, State
from random_programs.types import dimension, tensor_type
from relvm.ir.dtypes import BOOL, F32, F64, I32, I64, U8, DType
from relvm.ir.expr import Constant, Expr, OpCall, PrimCall, Shape, constant, prim
from relvm.ir.operator import find_operator
from relvm.ir.symbolic import AnyDim, product
from relvm.ir.types import ShapeType, TensorType, Type

INTEGERS = (I64, I32, U8)
FLOAT_FUNCTIONS = ("tanh", "relu", "sigmoid", "negative", "abs", "sin", "exp", "sqrt", "cos", "erf")
COMPARISONS = ("less", "equal", "greater_equal", "not_equal", "less_equal", "greater")


def op(name: str, *args: Expr, **attributes: Any) -> OpCall:
    """Apply an operator to expressions whose types need not be inferred yet."""
    operator = find_operator(name)
    return OpCall(operator, args, operator.bind(args, attributes))


def _exact(x: Expr) -> OpCall:
    """Clip an f64 tensor of integers to [-1000, 1000]."""
    return op("clip", x, min=-1000.0, max=1000.0)


def _scaled(x: Expr, factor: float) -> OpCall:
    return op("multiply", x, Constant(_frozen(np.float32(factor))))


def _frozen(value: Any) -> np.ndarray:
    array = np.array(value)
    array.flags.writeable = False
    return array


# ---- a tensor of a given type ----


def tensor(state: State, type_: TensorType) -> Expr:
    """Return a tensor of a type whose dimensions are all known."""
    found = state.find_type(type_) if state.source.integer(0, 3) else None
    if found is not None:
        return found
    if type_.shape is None:
        rank = state.source.integer(0, 2) if type_.rank is None else type_.rank
        return tensor(state, TensorType(type_.dtype, tuple(dimension(state) for _ in range(rank))))
    if all(isinstance(dim, int) for dim in type_.shape) and state.source.one_in(2):
        size = int(np.prod(type_.shape, dtype=np.int64))
        return constant(_elements(state, type_.dtype, size).reshape(type_.shape))
    single = _single(state, type_.dtype)
    return op("broadcast_to", single, Shape(type_.shape)) if type_.shape else single


def _elements(state: State, dtype: DType, count: int) -> np.ndarray:
    if dtype == F32:
        return np.float32([state.source.integer(-4, 4) / 4 for _ in range(count)])
    low, high = {"bool": (0, 1), "u8": (0, 9)}.get(dtype.name, (-9, 9))
    return np.array([state.source.integer(low, high) for _ in range(count)]).astype(dtype.numpy)


def _single(state: State, dtype: DType) -> Expr:
    """Return a tensor of rank 0: a constant, or a converted scalar."""
    if state.source.integer(0, 2) < 2:
        return Constant(_frozen(_elements(state, dtype, 1)[0]))
    if dtype == BOOL:
        return op("to_tensor", scalar(state, BOOL, 2), dtype="bool")
    if dtype == I64:
        return op("to_tensor", scalar(state, I64, 2), dtype="i64")
    small = PrimCall("mod", (scalar(state, I64, 2), prim(100)))
    if dtype in INTEGERS:
        return op("to_tensor", small, dtype=dtype)
    if dtype == F64:
        return op("to_tensor", small, dtype="f64")
    return op("to_tensor", PrimCall("div", (small, prim(100))), dtype="f32")


# ---- operators on tensors in scope ----


def operator_on_tensors(state: State) -> Expr | None:
    """Apply a random operator to tensors in scope.  Return None if it does not support the chosen tensor."""
    x = state.find(lambda t: isinstance(t, TensorType) and t.dtype is not None and t.rank is not None)
    if x is None:
        x = state.emit(tensor(state, tensor_type(state)))
    if x.type.shape is None:
        return _of_known_rank(state, x)
    return state.source.choice(_KINDS)(state, x)


def _of_known_rank(state: State, x: Expr) -> Expr:
    """Apply an operator to a tensor of which only the rank is known."""
    dtype = x.type.dtype
    if dtype == BOOL:
        return op("logical_not", x)
    return op(state.source.choice(("identity", "negative", "abs", "relu")), x)


def _partner(state: State, x: Expr) -> Expr:
    """Return a tensor that broadcasts with `x`.

    Its shape is a suffix of the shape of `x`, in which 1 may replace the first dimension.
    """
    shape = x.type.shape[state.source.integer(0, len(x.type.shape)) :]
    if shape and state.source.one_in(4):
        shape = (1, *shape[1:])
    return tensor(state, TensorType(x.type.dtype, shape))


def _binary(state: State, x: Expr) -> Expr:
    y, dtype = _partner(state, x), x.type.dtype
    if state.source.one_in(2):
        x, y = y, x
    if dtype == BOOL:
        return op(state.source.choice(("logical_and", "logical_or")), x, y)
    name = state.source.choice(("add", "subtract", "multiply", "maximum", "minimum", "divide"))
    if name in ("maximum", "minimum"):
        return op(name, x, y)
    if dtype == F32:
        if name == "divide":  # the divisor is in [2, 4]
            return op("divide", x, op("add", y, Constant(_frozen(np.float32(3)))))
        return _scaled(op(name, x, y), 0.5)
    if dtype == F64:
        return _exact(op("add" if name == "divide" else name, x, y))
    return op(name, x, y)  # an integer divided by 0 is 0


def _unary(state: State, x: Expr) -> Expr:
    match x.type.dtype:
        case dtype if dtype == BOOL:
            return op("logical_not", x)
        case dtype if dtype == F32:
            name = state.source.choice(
                ("tanh", "relu", "sigmoid", "negative", "abs", "sin", "exp", "sqrt", "cos", "erf")
            )
            if name == "exp":
                return _scaled(op("exp", x), 0.25)
            if name == "sqrt":  # the operand is in [1, 3]
                return _scaled(op("sqrt", op("add", x, Constant(_frozen(np.float32(2))))), 0.5)
            return _scaled(op(name, x), 0.75) if name == "erf" else op(name, x)
        case dtype if dtype == F64 and state.source.one_in(2):
            half = op("multiply", x, Constant(_frozen(np.float64(0.5))))
            return op(state.source.choice(("floor", "ceil", "round")), half)
    return op(state.source.choice(("negative", "abs", "relu", "sign", "identity")), x)


def _compare(state: State, x: Expr) -> Expr | None:
    if x.type.dtype in (F32, BOOL):
        return None
    return op(state.source.choice(COMPARISONS), x, _partner(state, x))


def _where(state: State, x: Expr) -> Expr:
    return op("where", tensor(state, TensorType(BOOL, x.type.shape)), x, _partner(state, x))


def _reduce(state: State, x: Expr) -> Expr | None:
    if x.type.dtype == BOOL:
        return None
    rank = x.type.rank
    axes = state.source.choice([None, *((axis,) for axis in range(rank))])
    keepdims = state.source.one_in(2)
    name = state.source.choice(("sum", "max", "min"))
    if name == "sum" and x.type.dtype == F32:
        return op("mean", x, axes=axes, keepdims=keepdims)
    if x.type.dtype in (F32, F64) and name != "sum":  # without elements, the result is infinite
        low, high = (-1.0, 1.0) if x.type.dtype == F32 else (-1000.0, 1000.0)
        return op("clip", op(name, x, axes=axes, keepdims=keepdims), min=low, max=high)
    reduced = op(name, x, axes=axes, keepdims=keepdims)
    return _exact(reduced) if x.type.dtype == F64 else reduced


def _arrange(state: State, x: Expr) -> Expr | None:
    """Apply an operator that moves elements, such as transpose, to `x`.  Return None if it does not apply."""
    shape, rank = x.type.shape, x.type.rank
    match state.source.integer(0, 6):
        case 0:
            return _of_shape(state, "reshape", x, (product(shape),) if rank != 1 else (1, *shape))
        case 1:
            return op("transpose", x)
        case 2:
            return op("expand_dims", x, axes=(state.source.integer(0, rank),)) if rank < 3 else None
        case 3:
            ones = tuple(axis for axis, dim in enumerate(shape) if dim == 1)
            return op("squeeze", x, axes=ones[:1]) if ones else None
        case 4 if rank:
            axis, added = state.source.integer(0, rank - 1), dimension(state, simple=True)
            before, after = shape[:axis], shape[axis + 1 :]
            if not state.fits(TensorType(x.type.dtype, (*before, shape[axis] + added, *after))):
                return None
            return op("concat", x, tensor(state, TensorType(x.type.dtype, (*before, added, *after))), axis=axis)
        case 5 if rank:
            begin, end = state.source.integer(-2, 2), state.source.integer(-1, 4)
            return op("slice", x, begin=(begin,), end=(end,), axes=(state.source.integer(0, rank - 1),))
        case 6 if rank < 2:
            return _of_shape(state, "broadcast_to", x, (dimension(state), *shape))
    return None


def _of_shape(state: State, name: str, x: Expr, dims: tuple[AnyDim, ...]) -> Expr | None:
    return op(name, x, Shape(dims)) if state.fits(TensorType(x.type.dtype, dims)) else None


def _convert(state: State, x: Expr) -> Expr | None:
    """Convert `x` to another dtype.  Return None for f32, which is never converted, or if the dtype is the same."""
    target = state.source.choice((I64, F64, BOOL, F32, I32, U8))
    match x.type.dtype:
        case dtype if dtype in (F32, target):
            return None
        case dtype if dtype == BOOL:
            return op("cast", x, to=target)
        case dtype if dtype == F64:
            if target == F32:
                return op("cast", op("multiply", x, Constant(_frozen(np.float64(0.001)))), to=target)
            return op("cast", x if target != U8 else op("clip", x, min=0.0, max=200.0), to=target)
    if target in (BOOL, *INTEGERS):
        return op("cast", x, to=target)
    low = 0 if x.type.dtype == U8 else -100
    floats = op("cast", op("clip", x, min=low, max=100), to=target)
    return _scaled(floats, 0.01) if target == F32 else floats


def _matmul(state: State, x: Expr) -> Expr | None:
    if x.type.rank != 2 or x.type.dtype not in (F32, F64):
        return None
    columns = dimension(state, simple=True)
    if not state.fits(TensorType(x.type.dtype, (x.type.shape[0], columns))):
        return None
    y = tensor(state, TensorType(x.type.dtype, (x.type.shape[1], columns)))
    if x.type.dtype == F64:
        return _exact(op("matmul", x, y))
    return op("tanh", _scaled(op("matmul", x, y), 1 / DIM_LIMIT))


def _softmax(state: State, x: Expr) -> Expr | None:
    if x.type.dtype != F32 or not x.type.rank:
        return None
    return op("softmax", x, axis=state.source.integer(0, x.type.rank - 1))


def _gather(state: State, x: Expr) -> Expr | None:
    """Gather rows of `x` by constant indices in range.  Return None if the number of rows is not known."""
    rows = x.type.shape[0] if x.type.rank else 0
    if not isinstance(rows, int) or rows < 1:
        return None
    count = state.source.integer(1, 3)
    indices = np.int64([state.source.integer(-rows, rows - 1) for _ in range(count)])
    return op("gather", x, Constant(_frozen(indices)), axis=0)


_KINDS = (
    _binary,
    _unary,
    _compare,
    _where,
    _reduce,
    _arrange,
    _convert,
    _matmul,
    _softmax,
    _gather,
    _binary,
    _arrange,
)


# ---- shapes ----


def shape(state: State, type_: ShapeType) -> Expr:
    """Return a shape of a type."""
    found = state.find_type(type_) if state.source.one_in(2) else None
    if found is not None:
        return found
    dims: tuple[AnyDim, ...]
    if type_.dims is None:
        rank = state.source.integer(0, 2) if type_.rank is None else type_.rank
        dims = tuple(dimension(state) for _ in range(rank))
    else:
        dims = type_.dims
    if dims and state.source.one_in(3):
        return op("shape_of", tensor(state, TensorType(I64, dims)))
    return Shape(dims)


def operator_on_shapes(state: State) -> Expr | None:
    """Apply a random operator that computes or uses a shape.  Return None if no operand is suitable."""

    def is_shape(type_: Type) -> bool:
        return isinstance(type_, ShapeType) and type_.dims is not None

    known = state.find(is_shape)
    if known is None:
        x = state.find(lambda t: isinstance(t, TensorType))
        return op("shape_of", x) if x is not None else None
    match state.source.integer(0, 2):
        case 0:
            return op("shape_to_tensor", known)
        case 1:
            return op("tensor_to_shape", op("shape_to_tensor", known))
    dtype = state.source.choice((F64, I64))
    return op("broadcast_to", _single(state, dtype), known) if state.fits(TensorType(dtype, known.type.dims)) else None
