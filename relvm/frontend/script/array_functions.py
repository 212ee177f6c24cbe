"""NumPy in scripts: the functions of NumPy, the methods of arrays, and their operators, on tensors of the program.

Each call is translated to operators of relvm.  It has NumPy's meaning with one exception, the dtype of the result.
NumPy converts the operands of some functions to a wider dtype, and the operators of relvm never do.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmNameError, RelvmShapeError, RelvmTypeError, near_matches
from relvm.frontend.script.values import Value, is_static
from relvm.ir.builder import Builder
from relvm.ir.dtypes import BOOL, F64, I32, I64, DType, dtype_of
from relvm.ir.expr import DimValue, Expr, Shape, constant, prim
from relvm.ir.symbolic import AnyDim, dim_op, dim_var, exact_quotient, product
from relvm.ir.types import PrimType, ShapeType, TensorType
from relvm.ops.slice import FAR

# The elementwise functions of NumPy that are operators of relvm, and `matmul`.
_OPERATORS = {
    "absolute": "abs",
    "add": "add",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctanh": "atanh",
    "ceil": "ceil",
    "cos": "cos",
    "cosh": "cosh",
    "equal": "equal",
    "exp": "exp",
    "fabs": "abs",
    "floor": "floor",
    "fmod": "remainder",
    "greater": "greater",
    "greater_equal": "greater_equal",
    "left_shift": "shift_left",
    "less": "less",
    "less_equal": "less_equal",
    "log": "log",
    "log1p": "log1p",
    "logical_and": "logical_and",
    "logical_not": "logical_not",
    "logical_or": "logical_or",
    "matmul": "matmul",
    "maximum": "maximum",
    "minimum": "minimum",
    "multiply": "multiply",
    "negative": "negative",
    "not_equal": "not_equal",
    "power": "power",
    "reciprocal": "reciprocal",
    "remainder": "modulo",
    "right_shift": "shift_right",
    "rint": "round",
    "sign": "sign",
    "sin": "sin",
    "sinh": "sinh",
    "sqrt": "sqrt",
    "subtract": "subtract",
    "tan": "tan",
    "tanh": "tanh",
}
INTEGER_FUNCTIONS = ("absolute", "fabs", "negative", "power", "sign", "square")  # of integers, with integer results
# The functions whose arguments can be scalars of the program.
SCALAR_FUNCTIONS = frozenset(
    name
    for name in (*_OPERATORS, "divide", "isnan", "square")
    if name not in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "matmul", "right_shift")
)
METHODS = (
    "all",
    "any",
    "argmax",
    "argmin",
    "astype",
    "clip",
    "copy",
    "cumsum",
    "dot",
    "flatten",
    "max",
    "mean",
    "min",
    "prod",
    "ravel",
    "reshape",
    "round",
    "squeeze",
    "std",
    "sum",
    "swapaxes",
    "take",
    "transpose",
    "var",
)  # of arrays


_KEYWORDS = {"dim": "axis", "dims": "axis", "keepdim": "keepdims"}  # of PyTorch, and of NumPy
Convert = Callable[[list[Value]], tuple[Expr, ...]]


class ArrayFunctions:
    """The functions of NumPy that have no single operator in relvm.

    A public method has the name and the parameters of the function in NumPy.

    builder: the builder of the program.
    convert: converts the arguments of an operator.
    """

    def __init__(self, builder: Builder, convert: Convert) -> None:
        self._builder = builder
        self._convert = convert

    def _op(self, operator: str, *args: Value, **attributes: Any) -> Expr:
        return self._builder.op(operator, *self._convert(list(args)), **attributes)

    def _tensor(self, value: Value) -> Expr:
        (tensor,) = self._convert([value])
        if not isinstance(tensor.type, TensorType) or tensor.type.rank is None:
            raise RelvmTypeError(f"expected a tensor of known rank, got {tensor.type}")
        return tensor

    def _shape(self, value: Value) -> tuple[AnyDim, ...]:
        dims = self._tensor(value).tensor_type.shape
        if dims is None:
            raise RelvmTypeError('the shape of a tensor is unknown; state it: match_cast(x, "f32[m]")')
        return dims

    # ---- elementwise ----

    def square(self, x: Value) -> Expr:
        return self._op("multiply", x, x)

    def isnan(self, x: Value) -> Expr:
        return self._op("not_equal", x, x)

    def divide(self, x: Value, y: Value) -> Expr:
        quotient = self._op("divide", x, y)
        if not quotient.tensor_type.known_dtype.is_float:
            raise RelvmTypeError(
                "/ has a float result in NumPy; write // for integers, or convert a tensor, as in x.astype(np.float32)"
            )
        return quotient

    def floor_divide(self, x: Value, y: Value) -> Expr:
        quotient = self._op("divide", self._op("subtract", x, self._op("modulo", x, y)), y)
        return self._op("round", quotient) if quotient.tensor_type.known_dtype.is_float else quotient

    def invert(self, x: Value) -> Expr:
        return self._op("logical_not", x) if self._is_bool(x) else self._op("bitwise_xor", x, -1)

    def bitwise_and(self, x: Value, y: Value) -> Expr:
        return self._op("logical_and" if self._is_bool(x, y) else "bitwise_and", x, y)

    def bitwise_or(self, x: Value, y: Value) -> Expr:
        return self._op("logical_or" if self._is_bool(x, y) else "bitwise_or", x, y)

    def bitwise_xor(self, x: Value, y: Value) -> Expr:
        return self._op("not_equal" if self._is_bool(x, y) else "bitwise_xor", x, y)

    def where(self, condition: Value, x: Value, y: Value) -> Expr:
        if is_static(x) and is_static(y):  # no tensor determines their dtype
            x, y = (constant(np.asarray(each, np.result_type(x, y))) for each in (x, y))
        return self._op("where", condition, x, y)

    def _is_bool(self, *values: Value) -> bool:
        tensors = [v.type for v in values if isinstance(v, Expr) and isinstance(v.type, TensorType)]
        return any(tensor.dtype is not None and tensor.dtype.is_bool for tensor in tensors)

    def round(self, x: Value) -> Expr:
        return self._op("round", x) if self._tensor(x).tensor_type.known_dtype.is_float else self._tensor(x)

    def clip(self, x: Value, min: Value = None, max: Value = None, *, a_min: Value = None, a_max: Value = None) -> Expr:
        for operator, bound in (("maximum", a_min if min is None else min), ("minimum", a_max if max is None else max)):
            if bound is not None:
                x = self._op(operator, x, bound)
        return self._tensor(x)

    def astype(self, x: Value, dtype: Value) -> Expr:
        return self._op("cast", x, to=dtype_of(dtype))

    def copy(self, x: Value) -> Expr:
        return self._tensor(x)

    # ---- reductions ----

    def _reduce(self, operator: str, x: Value, axis: Value, keepdims: bool) -> Expr:
        axes = axis if axis is None or isinstance(axis, tuple) else (axis,)
        dtype = self._tensor(x).tensor_type.dtype
        if dtype is not None and not dtype.is_float:  # as in NumPy
            if operator == "mean":
                x = self._op("cast", x, to=F64)
            elif dtype.is_bool and operator in ("sum", "prod"):
                x = self._op("cast", x, to=I64)
        return self._op(operator, x, axes=axes, keepdims=keepdims)

    def sum(self, x: Value, axis: Value = None, keepdims: bool = False) -> Expr:
        return self._reduce("sum", x, axis, keepdims)

    def prod(self, x: Value, axis: Value = None, keepdims: bool = False) -> Expr:
        return self._reduce("prod", x, axis, keepdims)

    def mean(self, x: Value, axis: Value = None, keepdims: bool = False) -> Expr:
        return self._reduce("mean", x, axis, keepdims)

    def max(self, x: Value, axis: Value = None, keepdims: bool = False) -> Expr:
        return self._reduce("max", x, axis, keepdims)

    def min(self, x: Value, axis: Value = None, keepdims: bool = False) -> Expr:
        return self._reduce("min", x, axis, keepdims)

    amax, amin = max, min

    def var(self, x: Value, axis: Value = None, keepdims: bool = False) -> Expr:
        mean = self._reduce("mean", x, axis, True)
        distance = self._op("subtract", self._op("cast", x, to=mean.tensor_type.known_dtype), mean)
        return self._reduce("mean", self.square(distance), axis, keepdims)

    def std(self, x: Value, axis: Value = None, keepdims: bool = False) -> Expr:
        return self._op("sqrt", self.var(x, axis, keepdims))

    def any(self, x: Value, axis: Value = None, keepdims: bool = False) -> Expr:
        is_true = self._op("cast", self._op("cast", x, to=BOOL), to=I64)
        return self._op("greater", self._reduce("sum", is_true, axis, keepdims), 0)

    def all(self, x: Value, axis: Value = None, keepdims: bool = False) -> Expr:
        is_false = self._op("logical_not", self._op("cast", x, to=BOOL))
        return self._op("logical_not", self.any(is_false, axis, keepdims))

    def argmax(self, x: Value, axis: Value = None, keepdims: bool = False) -> Expr:
        return self._along_axis("argmax", x, axis, keepdims=keepdims)

    def argmin(self, x: Value, axis: Value = None, keepdims: bool = False) -> Expr:
        return self._along_axis("argmin", x, axis, keepdims=keepdims)

    def cumsum(self, x: Value, axis: Value = None) -> Expr:
        return self._along_axis("cumsum", x, axis)

    def cumprod(self, x: Value, axis: Value = None) -> Expr:
        return self._along_axis("cumprod", x, axis)

    def median(self, x: Value, axis: Value = None, keepdims: bool = False) -> Expr:
        tensor = self._tensor(x)
        if isinstance(axis, tuple):
            raise RelvmTypeError("median: expected one axis or none; use transpose and reshape to join several")
        if axis is None:
            middle = self.median(self.ravel(tensor), 0)
            return self.reshape(middle, (1,) * tensor.tensor_type.known_rank) if keepdims else middle
        if not tensor.tensor_type.known_dtype.is_float:
            tensor = self._op("cast", tensor, to=F64)
        size, ordered = self._shape(tensor)[axis], self.sort(tensor, axis)
        low, high = (self.take(ordered, as_size(dim_op("floordiv", dim_op("sub", size, k), 2)), axis) for k in (1, 0))
        middle = self._op("multiply", self._op("add", low, high), 0.5)
        nan = constant(np.array(np.nan, tensor.tensor_type.known_dtype.numpy))
        middle = self._op("where", self.any(self.isnan(tensor), axis), nan, middle)
        return self.expand_dims(middle, axis) if keepdims else middle

    def diff(self, x: Value, n: int = 1, axis: int = -1) -> Expr:
        x = self._tensor(x)
        for _ in range(n):
            later = self._op("slice", x, begin=(1,), end=(FAR,), axes=(axis,))
            earlier = self._op("slice", x, begin=(0,), end=(-1,), axes=(axis,))
            x = self._op("not_equal" if self._is_bool(x) else "subtract", later, earlier)
        return x

    def _along_axis(self, operator: str, x: Value, axis: Value, *others: Value, **attributes: Any) -> Expr:
        x, axis = (self.ravel(x), 0) if axis is None else (x, axis)
        return self._op(operator, x, *others, axis=axis, **attributes)

    # ---- shapes ----

    def reshape(self, x: Value, *shape: Value) -> Expr:
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        dims = [size.dim if isinstance(size, DimValue) else size for size in sizes]
        if dims.count(-1) > 1:
            raise RelvmArgumentError("reshape: expected at most one size of -1")
        if -1 in dims:
            remaining, others = list(self._shape(x)), []
            for dim in dims:
                if dim in remaining:
                    remaining.remove(dim)
                elif dim != -1:
                    others.append(dim)
            total, known = product(remaining), product(others)
            if known == 0:
                raise RelvmShapeError("reshape: the size for -1 is not defined beside a size of 0")
            inferred = exact_quotient(total, known)
            # If it is not known whether the division is exact, reshape compares the number of elements at run time.
            dims[dims.index(-1)] = dim_op("floordiv", total, known) if inferred is None else inferred
        return self._op("reshape", x, Shape(tuple(dims)))

    def ravel(self, x: Value) -> Expr:
        return self.reshape(x, -1)

    flatten = ravel

    def transpose(self, x: Value, *positions: Value, axes: Value = None) -> Expr:
        single = len(positions) == 1 and isinstance(positions[0], tuple | None)
        perm = positions[0] if single else positions or axes
        rank = self._tensor(x).tensor_type.rank
        return self._op("transpose", x, perm=perm and tuple(axis % rank for axis in perm))

    permute_dims = transpose

    def swapaxes(self, x: Value, axis1: int, axis2: int) -> Expr:
        perm = list(range(self._tensor(x).tensor_type.known_rank))
        perm[axis1], perm[axis2] = perm[axis2], perm[axis1]
        return self._op("transpose", x, perm=tuple(perm))

    def moveaxis(self, x: Value, source: int, destination: int) -> Expr:
        perm = list(range(self._tensor(x).tensor_type.known_rank))
        perm.insert(destination % len(perm), perm.pop(source))
        return self._op("transpose", x, perm=tuple(perm))

    def expand_dims(self, x: Value, axis: Value) -> Expr:
        return self._op("expand_dims", x, axes=axis if isinstance(axis, tuple) else (axis,))

    def squeeze(self, x: Value, axis: Value = None) -> Expr:
        return self._op("squeeze", x, axes=axis if axis is None or isinstance(axis, tuple) else (axis,))

    def broadcast_to(self, x: Value, shape: Value) -> Expr:
        return self._op("broadcast_to", x, shape if isinstance(shape, tuple) else (shape,))

    def concatenate(self, arrays: Sequence[Value], axis: Value = 0) -> Expr:
        return self._op("concat", *arrays, axis=axis)

    def stack(self, arrays: Sequence[Value], axis: int = 0) -> Expr:
        return self._op("concat", *(self.expand_dims(array, axis) for array in arrays), axis=axis)

    def hstack(self, arrays: Sequence[Value]) -> Expr:
        return self.concatenate(arrays, 0 if self._tensor(arrays[0]).tensor_type.rank == 1 else 1)

    def vstack(self, arrays: Sequence[Value]) -> Expr:
        rows = [self._tensor(array) for array in arrays]
        return self.concatenate([self.expand_dims(row, 0) if row.tensor_type.rank == 1 else row for row in rows])

    def flip(self, x: Value, axis: Value = None) -> Expr:
        axes = axis if isinstance(axis, tuple) else range(self._tensor(x).tensor_type.known_rank)
        axes = tuple(axes) if axis is None or isinstance(axis, tuple) else (axis,)
        bounds = {"begin": (FAR,) * len(axes), "end": (-FAR,) * len(axes), "steps": (-1,) * len(axes)}
        return self._op("slice", x, axes=axes, **bounds) if axes else self._tensor(x)

    def repeat(self, x: Value, repeats: int, axis: Value = None) -> Expr:
        x, at = (self.ravel(x), 0) if axis is None else (self._tensor(x), axis)
        shape, at = self._shape(x), range(x.tensor_type.known_rank)[at]
        copies = self._op(
            "broadcast_to", self.expand_dims(x, at + 1), Shape((*shape[: at + 1], repeats, *shape[at + 1 :]))
        )
        return self._op("reshape", copies, Shape((*shape[:at], dim_op("mul", shape[at], repeats), *shape[at + 1 :])))

    def tile(self, x: Value, reps: Value) -> Expr:
        counts = reps if isinstance(reps, tuple) else (reps,)
        x = self._tensor(x)
        for _axis in range(x.tensor_type.known_rank, len(counts)):
            x = self.expand_dims(x, 0)
        first = x.tensor_type.known_rank - len(counts)
        for axis, count in enumerate(counts, first):
            x = self.concatenate([x] * count, axis) if count != 1 else x
        return x

    def split(self, x: Value, indices_or_sections: Value, axis: int = 0) -> tuple[Expr, ...]:
        size = self._shape(x)[axis]
        bounds = indices_or_sections
        if isinstance(bounds, int):
            if not isinstance(size, int) or size % bounds:
                expected = f"expected a size that is a multiple of {bounds}"
                raise RelvmShapeError(f"split: {expected}; every dimension must be known, got {size}")
            bounds = tuple(range(size // bounds, size, size // bounds))
        pairs = zip((0, *bounds), (*bounds, FAR), strict=True)
        return tuple(self._op("slice", x, begin=(first,), end=(last,), axes=(axis,)) for first, last in pairs)

    def roll(self, x: Value, shift: int, axis: Value = None) -> Expr:
        if axis is None:
            return self._op("reshape", self.roll(self.ravel(x), shift, 0), Shape(self._shape(x)))
        size = self._shape(x)[axis]
        moved = self._op("subtract", self.arange(_value_of(size)), shift)
        positions = self._op("modulo", moved, self._op("to_tensor", as_size(size), dtype=I64))
        return self._op("gather", x, positions, axis=axis)

    def pad(self, x: Value, pad_width: Value, mode: str = "constant", *, constant_values: Value = 0) -> Expr:
        rank = self._tensor(x).tensor_type.known_rank
        try:
            margins = np.broadcast_to(np.asarray(pad_width, np.int64), (rank, 2))
            if (margins < 0).any():
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            expected = f"expected an integer, a pair, or a pair for each of the {rank} axes, none negative"
            raise RelvmArgumentError(f"pad: {expected}, got {pad_width!r}") from None
        pads = tuple(int(n) for n in (*margins[:, 0], *margins[:, 1]))
        return self._op("pad", x, pads=pads, value=constant_values, mode=mode)

    def tril(self, x: Value, k: int = 0) -> Expr:
        return self._where_columns("less_equal", x, k)

    def triu(self, x: Value, k: int = 0) -> Expr:
        return self._where_columns("greater_equal", x, k)

    def _where_columns(self, comparison: str, x: Value, k: int) -> Expr:
        """Set the elements of x on one side of a diagonal to 0, as np.tril and np.triu do.

        The last two axes of x contain matrices.  An element is kept if `comparison` of `column - k` and `row` is true.

        comparison: the name of the operator that compares.
        """
        rows, columns = (self.arange(_value_of(size)) for size in self._shape(x)[-2:])
        is_kept = self._op(comparison, self._op("subtract", columns, k), self.expand_dims(rows, 1))
        return self._op("where", is_kept, x, constant(np.zeros((), self._tensor(x).tensor_type.known_dtype.numpy)))

    def outer(self, a: Value, b: Value) -> Expr:
        return self._op("multiply", self.expand_dims(self.ravel(a), 1), self.expand_dims(self.ravel(b), 0))

    def argsort(self, x: Value, axis: Value = -1) -> Expr:
        x, axis = (self.ravel(x), 0) if axis is None else (x, axis)
        return self._op("argtopk", x, Shape(self._shape(x)), axis=axis, largest=False)

    def sort(self, x: Value, axis: Value = -1) -> Expr:
        x, axis = (self.ravel(x), 0) if axis is None else (x, axis)
        return self._op("gather_elements", x, self.argsort(x, axis), axis=axis)

    def norm(self, x: Value, ord: Value = None, axis: Value = None, keepdims: bool = False) -> Expr:
        is_vector = isinstance(axis, int) or self._tensor(x).tensor_type.rank == 1
        if ord is not None and not (ord == 2 and is_vector):
            raise RelvmArgumentError(f"norm: expected ord=None, or ord=2 for vectors, got {ord}")
        return self._op("sqrt", self.sum(self.square(x), axis, keepdims))

    def isinf(self, x: Value) -> Expr:
        return self._op("equal", self._op("abs", x), float("inf"))

    def isfinite(self, x: Value) -> Expr:
        return self._op("less", self._op("abs", x), float("inf"))

    def nonzero(self, x: Value) -> tuple[Expr, ...]:
        tensor = self._tensor(x)
        if tensor.tensor_type.rank != 1:
            raise RelvmTypeError("nonzero: expected a tensor of rank 1; use x[mask] for the selected elements")
        is_true = self._op("cast", x, to=BOOL)
        count = runtime_size(self._builder, self._op("to_scalar", self.sum(is_true)))
        return (self._op("nonzero", is_true, Shape((count,))),)

    def flatnonzero(self, x: Value) -> Expr:
        return self.nonzero(self.ravel(x))[0]

    def take(self, x: Value, indices: Value, axis: Value = None) -> Expr:
        return self._along_axis("gather", x, axis, integer_tensor(self._builder, indices))

    def dot(self, a: Value, b: Value) -> Expr:
        ranks = self._tensor(a).tensor_type.known_rank, self._tensor(b).tensor_type.known_rank
        if 0 in ranks:
            return self._op("multiply", a, b)
        if ranks[1] > 2:
            raise RelvmTypeError("dot: expected a second tensor of rank 2 or less; use matmul")
        return self._op("matmul", a, b)

    # ---- new tensors ----

    def full(self, shape: Value, fill_value: Value, dtype: Value = None) -> Expr:
        to = None if dtype is None else dtype_of(dtype)
        if is_static(fill_value):
            tensor: Expr = constant(np.array(fill_value, to.numpy if to else None))
        elif isinstance(fill_value, Expr) and isinstance(fill_value.type, PrimType):
            tensor = self._op("to_tensor", fill_value, dtype=to or fill_value.type.dtype)
        else:
            tensor = self._op("cast", fill_value, to=to) if to else self._tensor(fill_value)
        return self.broadcast_to(tensor, shape)

    def zeros(self, shape: Value, dtype: Value = float) -> Expr:
        return self.full(shape, 0, dtype)

    def ones(self, shape: Value, dtype: Value = float) -> Expr:
        return self.full(shape, 1, dtype)

    def full_like(self, x: Value, fill_value: Value, dtype: Value = None) -> Expr:
        tensor = self._tensor(x).tensor_type
        return self._op("broadcast_to", self.full((), fill_value, dtype or tensor.dtype), Shape(self._shape(x)))

    def zeros_like(self, x: Value, dtype: Value = None) -> Expr:
        return self.full_like(x, 0, dtype)

    def ones_like(self, x: Value, dtype: Value = None) -> Expr:
        return self.full_like(x, 1, dtype)

    def eye(self, N: Value, M: Value = None, dtype: Value = float) -> Expr:
        rows, columns = self.arange(N), self.arange(N if M is None else M)
        is_diagonal = self._op("equal", self.expand_dims(rows, 1), self.expand_dims(columns, 0))
        return self._op("cast", is_diagonal, to=dtype_of(dtype))

    def arange(self, start: Value, stop: Value = None) -> Expr:
        first, end = (0, start) if stop is None else (start, stop)
        if not all(isinstance(bound, int | DimValue) for bound in (first, end)):
            raise RelvmTypeError("arange: expected integers and sizes of tensors")
        first, end = (bound.dim if isinstance(bound, DimValue) else bound for bound in (first, end))
        count = dim_op("max", dim_op("sub", end, first), 0)
        numbers = self._op("iota", Shape((count,)))
        return numbers if first == 0 else self._op("add", numbers, self._op("to_tensor", as_size(first), dtype=I64))


def _value_of(dim: AnyDim) -> int | DimValue:
    return dim if isinstance(dim, int) else DimValue(dim)


def as_size(dim: AnyDim) -> Expr:
    """Return a dimension as a scalar of the program."""
    return prim(dim) if isinstance(dim, int) else DimValue(dim)


def runtime_size(builder: Builder, size: Expr) -> AnyDim:
    """Return an i64 scalar, which must not be negative, as a dimension."""
    sizes = builder.op("reshape", builder.op("to_tensor", size, dtype=I64), Shape((1,)))
    count = dim_var("size")
    builder.match_cast(builder.op("tensor_to_shape", sizes), ShapeType((count,)))
    return count


def integer_scalar(builder: Builder, value: Expr) -> Expr:
    """Return an i64 scalar, or a tensor of rank 0 with an integer dtype, as an i64 scalar."""
    match value.type:
        case PrimType(dtype=dtype) if dtype == I64:
            return value
        case TensorType(dtype=DType(is_integer=True), rank=0):
            return builder.op("to_scalar", value)
    raise RelvmTypeError(f"expected an integer, got {value.type}")


def integer_tensor(builder: Builder, indices: Value) -> Expr:
    """Return indices (an integer, a scalar of the program, a list, an array or a tensor) as a tensor of integers."""
    if isinstance(indices, Expr):
        if isinstance(indices.type, PrimType) and indices.type.dtype == I64:
            return builder.op("to_tensor", indices, dtype=I64)
        if isinstance(indices.type, TensorType) and indices.type.known_dtype in (I32, I64):
            return indices
        raise RelvmTypeError(f"expected integers as indices, got {indices.type}")
    array = np.asarray(indices)
    if array.size and array.dtype.kind not in "iu":
        raise RelvmTypeError(f"expected integers as indices, got {indices!r}")
    return constant(array.astype(np.int64))


FUNCTIONS = (*_OPERATORS, *(name for name in vars(ArrayFunctions) if not name.startswith("_")))


def numpy_name(value: Value) -> str | None:
    """Return the name of a function or scalar type of NumPy, or None for other values."""
    is_numpy = isinstance(value, np.ufunc) or str(getattr(value, "__module__", "")).partition(".")[0] == "numpy"
    return value.__name__ if is_numpy and callable(value) and hasattr(value, "__name__") else None


def call_array_function(
    name: str, args: list[Value], keywords: dict[str, Any], builder: Builder, convert: Convert
) -> Value:
    """Translate a call of a function of NumPy, or of a method of an array.

    args: the positional arguments.  For a method, the first is the array.

    builder: the builder of the program.
    convert: converts the arguments of an operator.

    Raises
    ------
    RelvmNameError
        Scripts do not support the function.
    RelvmArgumentError
        The arguments do not fit.
    """
    functions = ArrayFunctions(builder, convert)
    if name in _OPERATORS:
        return functions._op(_OPERATORS[name], *args, **keywords)
    if name not in FUNCTIONS:
        raise RelvmNameError(f"scripts do not support the function {name} of NumPy{near_matches(name, FUNCTIONS)}")
    function = getattr(functions, name)
    parameters = inspect.signature(function).parameters.values()
    signature = inspect.Signature([parameter.replace(annotation=parameter.empty) for parameter in parameters])
    try:
        signature.bind(*args, **keywords)
    except TypeError as error:
        advice = "".join(f"; write {_KEYWORDS[each]}" for each in keywords if each in _KEYWORDS)
        raise RelvmArgumentError(f"{name}{signature}: {error}{advice}") from None
    return function(*args, **keywords)
