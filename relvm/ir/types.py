"""Types of values, and the subtyping relation between them.

The text form of types:

`f32[n, 4]`                tensor
`f32[]`                    tensor of rank 0
`f32[_, _]`                tensor of known rank and unknown shape
`f32[...]`                 tensor of unknown rank
`i64`, `i64(n)`            scalar, scalar with the value n
`shape[n, 4]`              shape with known dimensions
`shape[_, _]`              shape of known rank
`shape[...]`               shape of unknown rank
`(f32[n], i64)`            tuple
`list[f32[n]]`, `list[]`   list, empty list
`optional[f32[n]]`         value or null
`optional[]`               null
`(f32[n]) -> f32[n]`       function without side effects
`(f32[n]) => f32[n]`       function that can have side effects
`object`                   any value
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TypeVar

from relvm.errors import RelvmShapeError, RelvmTypeError, RelvmUnsupportedError, counted, shortened
from relvm.ir.dtypes import DType, dtype_of
from relvm.ir.node import Node, children, map_children, value_node
from relvm.ir.symbolic import AnyDim, Dim, DimVar, difference, dim_vars, evaluate_with, format_dim, node_count, var_dim
from relvm.quoting import terminal

# Limits of a type.  In a program of n tuples, each of which contains the previous one twice, types have 2**n parts.
_DEEPEST = 100  # nesting depth of types
_LARGEST = 20_000  # number of types, dimensions and operators

_TOO_MANY_BYTES = 1 << 63  # limit on the size of a tensor


class Type(Node):
    """Base class of types."""

    def __str__(self) -> str:
        return format_type(self)

    @cached_property
    def depth(self) -> int:
        """The nesting depth of this type, which is 1 if it contains no other types."""
        return 1 + max((inner.depth for inner in children(self) if isinstance(inner, Type)), default=0)

    @cached_property
    def node_count(self) -> int:
        """The number of types in this type, plus the number of variables, constants and operators in its dimensions.

        An object that occurs several times is counted each time.
        """
        return (
            1
            + sum(map(node_count, self.direct_dims))
            + sum(t.node_count for t in children(self) if isinstance(t, Type))
        )

    @property
    def direct_dims(self) -> tuple[AnyDim, ...]:
        """The dimensions that occur directly in this type, not in inner types."""
        return ()

    def __post_init__(self) -> None:
        """Raise RelvmUnsupportedError if the type is too large, or nested too deeply."""
        if self.depth > _DEEPEST:
            raise RelvmUnsupportedError(
                f"a type nests {self.depth} types; expected at most {_DEEPEST}. Keep the values in separate"
                " variables or in a list"
            )
        if self.node_count > _LARGEST:
            raise RelvmUnsupportedError(
                f"a type has {self.node_count} types and sizes; expected at most {_LARGEST}. Keep the values in"
                " separate variables or in a list"
            )


AnyType = TypeVar("AnyType", bound=Type)


def _expect_dims(name: str, dims: object) -> None:
    """Raise RelvmTypeError if `dims` is not a tuple of integers and dimensions."""
    if not isinstance(dims, tuple):
        raise RelvmTypeError(f"{name}: expected a tuple of dimensions, got {type(dims).__name__}")
    for dim in dims:
        if not isinstance(dim, int | Dim):
            hint = (
                f"; create a dimension with dim_var({dim!r}) and use it in all types that share it"
                if isinstance(dim, str)
                else ""
            )
            raise RelvmTypeError(f"{name}: expected an integer or a dimension, got {dim!r}{hint}")


def _expect_addressable(dtype: DType | None, shape: tuple[AnyDim, ...]) -> None:
    """Raise RelvmUnsupportedError if a tensor of this dtype and shape takes 2^63 bytes or more.

    Unknown sizes, and sizes of 0, are counted as 1.
    """
    bytes_ = math.prod(dim for dim in shape if isinstance(dim, int) and dim) * (dtype.size_bytes if dtype else 1)
    if abs(bytes_) >= _TOO_MANY_BYTES:
        sizes = ", ".join(map(str, shape))
        raise RelvmUnsupportedError(f"a tensor of shape [{shortened(sizes)}] exceeds 2^63 bytes")


@value_node
class TensorType(Type):
    """A tensor type.

    dtype: the dtype, or None if unknown.
    shape: the dimensions, or None if unknown.
    rank: the rank, or None if unknown.  If `shape` is given, `rank` is derived from it.
    """

    dtype: DType | None
    shape: tuple[AnyDim, ...] | None = None
    rank: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.dtype, str):
            object.__setattr__(self, "dtype", dtype_of(self.dtype))
        if self.shape is not None:
            _expect_dims("TensorType", self.shape)
            _expect_addressable(self.dtype, self.shape)
        if self.shape is None and self.rank == 0:
            object.__setattr__(self, "shape", ())
        if self.shape is not None:
            object.__setattr__(self, "rank", len(self.shape))

    @property
    def known_dtype(self) -> DType:
        """The dtype.  Raise RelvmTypeError if it is unknown."""
        if self.dtype is None:
            raise RelvmTypeError("expected a tensor of known dtype, got one of unknown dtype")
        return self.dtype

    @property
    def known_shape(self) -> tuple[AnyDim, ...]:
        """The shape.  Raise RelvmTypeError if it is unknown."""
        if self.shape is None:
            raise RelvmTypeError(f"expected a tensor of known shape, got {self}")
        return self.shape

    @property
    def known_rank(self) -> int:
        """The rank.  Raise RelvmTypeError if it is unknown."""
        if self.rank is None:
            raise RelvmTypeError(f"expected a tensor of known rank, got {self}")
        return self.rank

    @property
    def direct_dims(self) -> tuple[AnyDim, ...]:
        return self.shape or ()


@value_node
class PrimType(Type):
    """The type of an unboxed scalar.

    dtype: bool, i64 or f64.
    value: the value of an i64, or None if unknown.
    """

    dtype: DType
    value: AnyDim | None = None

    @property
    def direct_dims(self) -> tuple[AnyDim, ...]:
        return () if self.value is None else (self.value,)


@value_node
class ShapeType(Type):
    """The type of a shape value, a list of dimensions.

    dims: the dimensions, or None if unknown.
    rank: their number, or None if unknown.
    """

    dims: tuple[AnyDim, ...] | None = None
    rank: int | None = None

    def __post_init__(self) -> None:
        if self.dims is not None:
            _expect_dims("ShapeType", self.dims)
        if self.dims is None and self.rank == 0:
            object.__setattr__(self, "dims", ())
        if self.dims is not None:
            object.__setattr__(self, "rank", len(self.dims))

    @property
    def direct_dims(self) -> tuple[AnyDim, ...]:
        return self.dims or ()


@value_node
class TupleType(Type):
    """The type of a tuple.

    fields: the types of its items.
    """

    fields: tuple[Type, ...]


@value_node
class ListType(Type):
    """The type of a list of any length.

    item: the type of the items, or None if the list is empty.  Items bind no dimension variables.
    """

    item: Type | None


@value_node
class OptionalType(Type):
    """The type of a value that can be null.  Every value of type T is also of type optional[T].

    value: the type of a value that is not null, or None if the value is always null.  The value binds no dimension
    variables.
    """

    value: Type | None


@value_node
class FuncType(Type):
    """The type of a function.

    params, result: the types of the parameters and of the result.
    pure: whether calls have no side effects.
    """

    params: tuple[Type, ...]
    result: Type
    pure: bool = True


@value_node
class ObjectType(Type):
    """The type `object`, which every value has.  It is used for strings, dtypes and storages, and for values of unknown
    type."""


OBJECT = ObjectType()
VOID = TupleType(())


def map_dims(function: Callable[[AnyDim], AnyDim], type_: AnyType) -> AnyType:
    """Return `type_` with `function` applied to every dimension in it."""

    def mapped(type_: Type) -> Type:
        match type_:
            case TensorType(dtype, shape) if shape:
                return TensorType(dtype, tuple(map(function, shape)))
            case ShapeType(dims) if dims:
                return ShapeType(tuple(map(function, dims)))
            case PrimType(dtype, value) if value is not None:
                return PrimType(dtype, function(value))
        return map_children(once, type_)

    once = _memoized(mapped)
    made = once(type_)
    assert isinstance(made, type(type_))
    return made


def _memoized(function: Callable[[Type], Type]) -> Callable[[Type], Type]:
    """Return a function that memoizes `function` by the identity of its argument.

    The returned function returns the same object for equal results.  A type can contain the same object many times,
    which is then processed only once.
    """
    results: dict[int, tuple[Type, Type]] = {}  # id of a type -> the type, stored to keep the id valid, and its result
    shared: dict[object, Type] = {}

    def result_of(type_: Type) -> Type:
        if id(type_) not in results:
            made = function(type_)
            inner = tuple(map(id, children(made)))  # equal inner types are already the same object
            key = (type(made), inner, isinstance(made, FuncType) and made.pure) if inner else made
            results[id(type_)] = type_, shared.setdefault(key, made)
        return results[id(type_)][1]

    return result_of


def substitute_dims(type_: AnyType, values: Mapping[DimVar, AnyDim]) -> AnyType:
    """Return `type_` with each dimension variable in `values` replaced by its value.

    Raises
    ------
    RelvmShapeError
        A dimension divides by 0 after the replacement.
    """
    if not values:
        return type_
    try:
        return map_dims(lambda dim: evaluate_with(dim, values.get), type_)
    except ZeroDivisionError as error:
        raise RelvmShapeError(f"{type_}: {error}") from None


def dims_of(type_: Type) -> Iterator[AnyDim]:
    """Yield every dimension in `type_`, in order of occurrence.

    Function types are skipped, because they bind their own dimension variables.
    """
    match type_:
        case TensorType() | ShapeType() | PrimType():
            yield from type_.direct_dims
        case TupleType(fields):
            for field in fields:
                yield from dims_of(field)
        case ListType(inner) | OptionalType(inner) if inner is not None:
            yield from dims_of(inner)


def type_vars(type_: Type) -> Iterator[DimVar]:
    """Yield the dimension variables in `type_`, in order of occurrence.  A variable that occurs several times is
    repeated."""
    for dim in dims_of(type_):
        yield from dim_vars(dim)


def forget_vars(type_: Type, is_known: Callable[[DimVar], bool]) -> Type:
    """Return the most specific supertype of `type_` without the dimension variables for which `is_known` returns False.

    For example, a tensor type whose shape contains such a variable keeps only its dtype and rank.
    """

    def bound(dims: tuple[AnyDim, ...]) -> bool:
        return all(is_known(var) for dim in dims for var in dim_vars(dim))

    def forgotten(type_: Type) -> Type:
        match type_:
            case TensorType(dtype, shape) if shape is not None and not bound(shape):
                return TensorType(dtype, None, len(shape))
            case ShapeType(dims) if dims is not None and not bound(dims):
                return ShapeType(None, len(dims))
            case PrimType(dtype, value) if value is not None and not bound((value,)):
                return PrimType(dtype)
            case FuncType():  # a function type binds its own variables
                return type_
        return map_children(once, type_)

    once = _memoized(forgotten)
    return once(type_)


def mismatch_reason(expected: Type, got: Type) -> str | None:
    """Return the reason why no value of type `got` can have type `expected`, or None if a value could have both types.

    Lists are assumed not to be empty.  Null is accepted everywhere, because using it is an error only at run time.
    """
    if expected is got:
        return None
    match expected, got:
        case (ObjectType(), _) | (_, ObjectType()) | (_, OptionalType(None)):
            return None
        case OptionalType(a), OptionalType(b):
            return mismatch_reason(a, b) if a is not None and b is not None else None
        case OptionalType(Type() as value), _:
            return mismatch_reason(value, got)
        case _, OptionalType(Type() as value):
            return mismatch_reason(expected, value)
        case ListType(a), ListType(b):
            reason = mismatch_reason(a, b) if a is not None and b is not None else None
            return reason and f"list items: {reason}"
        case TensorType(), TensorType():
            if expected.dtype and got.dtype and expected.dtype != got.dtype:
                return f"expected dtype {expected.dtype}, got {got.dtype}"
            if expected.rank is not None and got.rank is not None and expected.rank != got.rank:
                return f"expected rank {expected.rank}, got {got.rank}"
            return _dims_mismatch(expected.shape, got.shape)
        case ShapeType(), ShapeType():
            if expected.rank is not None and got.rank is not None and expected.rank != got.rank:
                return f"expected a shape of rank {expected.rank}, got rank {got.rank}"
            return _dims_mismatch(expected.dims, got.dims)
        case PrimType(a, value), PrimType(b, other):
            if a != b:
                return f"expected a {a} scalar, got a {b} scalar"
            if value is None or other is None or difference(value, other) in (None, 0):
                return None
            return f"expected the value {format_dim(value)}, got {format_dim(other)}"
        case TupleType(a), TupleType(b):
            if len(a) != len(b):
                return f"expected a tuple of {counted(len(a), 'item')}, got one of {len(b)}"
            reasons = ((i, mismatch_reason(x, y)) for i, (x, y) in enumerate(zip(a, b, strict=True)))
            return next((f"item {i}: {reason}" for i, reason in reasons if reason), None)
        case FuncType(), FuncType():
            if len(expected.params) != len(got.params):
                return (
                    f"expected a function of {counted(len(expected.params), 'parameter')}, got one of {len(got.params)}"
                )
            if expected.pure and not got.pure:
                return "expected a pure function, got one with effects"
            return None
    return f"expected {expected}, got {got}"


def _dims_mismatch(expected: tuple[AnyDim, ...] | None, got: tuple[AnyDim, ...] | None) -> str | None:
    if expected is None or got is None:
        return None
    for i, (want, have) in enumerate(zip(expected, got, strict=True)):
        if difference(want, have) not in (None, 0):
            return f"expected dimension {i} to be {format_dim(want)}, got {format_dim(have)}"
    return None


def is_proven(expected: Type, got: Type) -> bool:
    """Return whether every value of type `got` certainly has type `expected`, so that no check is needed."""
    if expected is got:
        return True
    match expected, got:
        case ObjectType(), _:
            return True
        case ListType(a), ListType(b):
            return b is None or (a is not None and is_proven(a, b))
        case OptionalType(a), OptionalType(b):
            return b is None or (a is not None and is_proven(a, b))
        case OptionalType(value), _ if value is not None:
            return is_proven(value, got)
        case TensorType(), TensorType():
            dtype = expected.dtype is None or expected.dtype == got.dtype
            rank = expected.rank is None or expected.rank == got.rank
            return dtype and rank and (expected.shape is None or expected.shape == got.shape)
        case ShapeType(), ShapeType():
            rank = expected.rank is None or expected.rank == got.rank
            return rank and (expected.dims is None or expected.dims == got.dims)
        case PrimType(), PrimType():
            return expected.dtype == got.dtype and expected.value in (None, got.value)
        case TupleType(a), TupleType(b):
            return len(a) == len(b) and all(is_proven(x, y) for x, y in zip(a, b, strict=True))
        case FuncType(), FuncType():
            return mismatch_reason(expected, got) is None
    return expected == got


def join(first: Type, second: Type) -> Type | None:
    """Return the join of two types: a type that states only what both state.  Return None if the types have no join.

    Tensors, shapes and scalars of one dtype always have a join, and `object` is the join of `object` and any type.  The
    join of tuples of the same length, lists or optional values consists of the joins of their fields or items.  Other
    types have a join only if they are equal, or functions with the same parameters whose results have a join.
    """
    return _join(first, second, {})


def _join(first: Type, second: Type, joins: dict[tuple[int, int], Type | None]) -> Type | None:
    """Return the join of two types, or None if they have none (see `join`).

    joins: the joins of tuple types computed so far.  The key is the pair of the ids of the two types.
    """
    if first is second:
        return first
    match first, second:
        case (ObjectType(), _) | (_, ObjectType()):
            return OBJECT
        case (OptionalType(), _) | (_, OptionalType()):
            a, b = (t.value if isinstance(t, OptionalType) else t for t in (first, second))
            return _join_containers(OptionalType, a, b, joins)
        case ListType(a), ListType(b):
            return _join_containers(ListType, a, b, joins)
        case TensorType(), TensorType():
            dtype = first.dtype if first.dtype == second.dtype else None
            shape = first.shape if first.shape == second.shape else None
            return TensorType(dtype, shape, first.rank if first.rank == second.rank else None)
        case ShapeType(), ShapeType():
            dims = first.dims if first.dims == second.dims else None
            return ShapeType(dims, first.rank if first.rank == second.rank else None)
        case PrimType(a), PrimType(b) if a == b:
            return first if first == second else PrimType(a)
        case TupleType(a), TupleType(b) if len(a) == len(b):
            key = id(first), id(second)
            if key not in joins:
                joined = (_join(x, y, joins) for x, y in zip(a, b, strict=True))
                fields = tuple(field for field in joined if field is not None)
                joins[key] = TupleType(fields) if len(fields) == len(a) else None
            return joins[key]
        case FuncType(), FuncType():
            renamed = _with_variables_of(first, second)
            result = join(first.result, renamed.result) if first.params == renamed.params else None
            return result and FuncType(first.params, result, first.pure and renamed.pure)
    return first if first == second else None


def _join_containers(
    kind: type[ListType | OptionalType],
    first: Type | None,
    second: Type | None,
    joins: dict[tuple[int, int], Type | None],
) -> Type | None:
    """Return the join of two list types or of two optional types, or None if there is none.

    kind: ListType or OptionalType.
    first, second: the types of the items or values.  None stands for a type without values, as in an empty list.
    """
    if first is None or second is None:
        return kind(first or second)
    both = _join(first, second, joins)
    return both and kind(both)


def _with_variables_of(first: FuncType, second: FuncType) -> FuncType:
    """Rename the dimension variables of the parameters of `second` to the corresponding variables of `first`."""
    ours = (var for param in first.params for var in type_vars(param))
    theirs = (var for param in second.params for var in type_vars(param))
    return substitute_dims(second, {b: var_dim(a) for a, b in zip(ours, theirs, strict=False)})


def format_type(type_: Type, name_of: Callable[[DimVar], str] = lambda var: terminal(var.name)) -> str:
    """Return the text form of a type.

    name_of: a function that returns the name of a dimension variable.
    """

    def listed(dims: tuple[AnyDim, ...] | None, rank: int | None) -> str:
        if dims is not None:
            return ", ".join(format_dim(dim, name_of) for dim in dims)
        return "..." if rank is None else ", ".join("_" * rank)

    match type_:
        case TensorType(dtype, shape, rank):
            return f"{dtype.name if dtype else 'tensor'}[{listed(shape, rank)}]"
        case PrimType(dtype, value):
            return dtype.name if value is None else f"{dtype.name}({format_dim(value, name_of)})"
        case ShapeType(dims, rank):
            return f"shape[{listed(dims, rank)}]"
        case TupleType(fields):
            inner = ", ".join(format_type(field, name_of) for field in fields)
            return f"({inner},)" if len(fields) == 1 else f"({inner})"
        case ListType(item):
            return f"list[{'' if item is None else format_type(item, name_of)}]"
        case OptionalType(value):
            return f"optional[{'' if value is None else format_type(value, name_of)}]"
        case FuncType(params, result, pure):
            inner = ", ".join(format_type(param, name_of) for param in params)
            return f"({inner}) {'->' if pure else '=>'} {format_type(result, name_of)}"
        case ObjectType():
            return "object"
    raise AssertionError(f"cannot print {type(type_).__name__}")
