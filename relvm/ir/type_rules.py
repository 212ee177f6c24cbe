"""Helper functions for the type rules of operators: checks of arguments and attributes, and computation of result
shapes.

Error messages name the operator and the argument.  A type rule returns the most specific type.  The type has a shape,
possibly symbolic, if the shapes of all arguments are known.  Otherwise it has a rank if the ranks of all arguments are
known.  It always has a dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from relvm.errors import RelvmArgumentError, RelvmShapeError, RelvmTypeError, counted
from relvm.ir.dtypes import DType
from relvm.ir.operator import claim_equal, expect
from relvm.ir.symbolic import AnyDim, difference, format_dim, product
from relvm.ir.types import ShapeType, TensorType, Type


def expect_tensor(op: str, **args: Type) -> None:
    """Check that every argument type is a tensor type of known dtype.

    args: the argument types, by parameter name.
    """
    for name, type_ in args.items():
        if not isinstance(type_, TensorType):
            raise RelvmTypeError(f"{op}: {name} is {type_}, expected a tensor")
        expect(type_.dtype is not None, "{}: the dtype of {} is unknown; use match_cast to state it", op, name)


def expect_float(op: str, **args: TensorType) -> None:
    _expect_dtype(op, args, "a float dtype", lambda dtype: dtype.is_float)


def expect_numeric(op: str, **args: TensorType) -> None:
    _expect_dtype(op, args, "an integer or float dtype", lambda dtype: dtype.is_integer or dtype.is_float)


def expect_bool(op: str, **args: TensorType) -> None:
    _expect_dtype(op, args, "bool", lambda dtype: dtype.is_bool)


def _expect_dtype(op: str, args: dict[str, TensorType], expected: str, holds: Callable[[DType], bool]) -> None:
    expect_tensor(op, **args)
    for name, type_ in args.items():
        expect(holds(type_.known_dtype), "{}: {} has dtype {}, expected {}", op, name, type_.dtype, expected)


def expect_same_dtype(op: str, **args: TensorType) -> None:
    """Check that all arguments have the same dtype, because operators do not convert implicitly.

    args: the argument types, by parameter name.
    """
    expect_tensor(op, **args)
    (first, reference), *rest = args.items()
    for name, type_ in rest:
        same = type_.dtype == reference.dtype
        expect(same, "{}: {} has dtype {} and {} has {}; cast one", op, first, reference.dtype, name, type_.dtype)


def expect_shape(op: str, name: str, type_: Type) -> None:
    """Check that `type_`, the type of the argument `name`, is a shape type without negative constant dimensions."""
    if not isinstance(type_, ShapeType):
        raise RelvmTypeError(f"{op}: {name} is {type_}, expected a shape")
    for dim in type_.dims or ():
        known_negative = isinstance(dim, int) and dim < 0
        expect(not known_negative, "{}: {} has the negative dimension {}", op, name, dim, error=RelvmShapeError)


def expect_integers(op: str, name: str, values: Any, count: int | None = None) -> tuple[int, ...]:
    """Check that `values`, the value of the attribute `name`, is a tuple of Python integers, and return it.

    count: the required length, or None for any length.
    """
    fits = isinstance(values, tuple) and all(isinstance(v, int) and not isinstance(v, bool) for v in values)
    expect(fits, "{}: {} is {!r}, expected a tuple of integers", op, name, values, error=RelvmArgumentError)
    message = "{}: {} has {}, expected {}"
    items = counted(len(values), "item")
    expect(count in (None, len(values)), message, op, name, items, count, error=RelvmArgumentError)
    return values


def expect_axis(op: str, axis: Any, rank: int, name: str = "axis") -> int:
    """Check that an axis is in [-rank, rank).  Return it as an axis in [0, rank)."""
    is_integer = isinstance(axis, int) and not isinstance(axis, bool)
    expect(is_integer, "{}: {} is {!r}, expected an integer", op, name, axis, error=RelvmArgumentError)
    expect(-rank <= axis < rank, "{}: {} is {}, which is outside [-{}, {})", op, name, axis, rank, rank)
    return axis % rank


def expect_axes(op: str, axes: Any, rank: int) -> tuple[int, ...]:
    """Check that axes are distinct and in [-rank, rank).  Return them as axes in [0, rank), in the same order."""
    expect_integers(op, "axes", axes)
    counted = tuple(expect_axis(op, axis, rank, "an entry of axes") for axis in axes)
    expect(len(set(counted)) == len(counted), "{}: axes {} contain an axis twice", op, axes)
    return counted


def expect_equal_dims(op: str, name: str, first: AnyDim, second: AnyDim) -> None:
    """Check that the sizes `first` and `second` are equal, whatever values their dimension variables have.

    name: what the sizes are, for messages.

    Raises
    ------
    RelvmShapeError
        The sizes differ, or the compiler cannot prove that they are equal.
    """
    size_difference = difference(first, second)
    if size_difference == 0:
        return
    hint = "" if size_difference is not None else ", which cannot be proven equal; use match_cast on one of them"
    error = RelvmShapeError(f"{op}: {name}: {format_dim(first)} and {format_dim(second)}{hint}")
    error.unproven = (first, second) if size_difference is None else None
    raise error


def broadcast_dims(op: str, shapes: Iterable[tuple[AnyDim, ...]]) -> tuple[AnyDim, ...]:
    """Return the shape to which `shapes` broadcast, by NumPy's rules.

    Shapes are aligned at their last axes.  A dimension is broadcast only if it is the constant 1.  A symbolic dimension
    is never broadcast, even if its value at run time is 1.

    Raises
    ------
    RelvmShapeError
        Two aligned dimensions are not proven equal, and neither is the constant 1.
    """
    result: tuple[AnyDim, ...] = ()
    for shape in shapes:
        rank = max(len(result), len(shape))
        first, second = ((1,) * (rank - len(dims)) + dims for dims in (result, shape))
        for axis, (a, b) in enumerate(zip(first, second, strict=True)):
            if a != 1 and b != 1:
                expect_equal_dims(op, f"dimension {axis} does not broadcast", a, b)
        result = tuple(b if a == 1 else a for a, b in zip(first, second, strict=True))
    return result


def broadcast(op: str, dtype: DType | None, *types: TensorType) -> TensorType:
    """Return the result type of an elementwise operator: `dtype`, with the shape to which the arguments broadcast."""
    shapes = [type_.shape for type_ in types if type_.shape is not None]
    if len(shapes) == len(types):
        return TensorType(dtype, broadcast_dims(op, shapes))
    ranks = [type_.rank for type_ in types if type_.rank is not None]
    return TensorType(dtype, None, max(ranks) if len(ranks) == len(types) else None)


def with_dtype(type_: TensorType, dtype: DType) -> TensorType:
    """Return `type_` with another dtype, and the same shape or rank."""
    return TensorType(dtype, type_.shape, type_.rank)


def claim_same_size(op: str, first: tuple[AnyDim, ...], second: tuple[AnyDim, ...]) -> None:
    """Claim that two shapes have the same number of elements.  The claim is checked at run time if it is not proven."""
    text = [", ".join(map(format_dim, shape)) for shape in (first, second)]
    message = f"{op}: a tensor of shape [{text[0]}] has {{}} elements, but [{text[1]}] has {{}}"
    claim_equal(product(first), product(second), message)


def expect_known_dims(op: str, name: str, type_: TensorType, dtype: DType) -> None:
    """Check that `type_` has dtype `dtype` and, if it has a shape, that all its dimensions are known numbers.

    name: the name of the argument in messages.
    """
    right = type_.dtype == dtype and all(isinstance(dim, int) for dim in type_.shape or ())
    expect(right, "{}: {} is {}, expected {} with known dimensions", op, name, type_, dtype)
