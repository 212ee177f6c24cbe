"""Random types."""

from __future__ import annotations

from random_programs.state import State
from relvm.ir.dtypes import BOOL, F32, F64, I32, I64, U8
from relvm.ir.symbolic import AnyDim, dim_op, dim_var
from relvm.ir.types import FuncType, PrimType, ShapeType, TensorType, TupleType, Type

SCALARS = (PrimType(I64), PrimType(F64), PrimType(BOOL))
DTYPES = (F64, F64, I64, I64, F32, F32, BOOL, I32, U8)


def _vector() -> TensorType:
    return TensorType(F64, (dim_var("k"),))


_K, _L = _vector(), TensorType(I64, (dim_var("k"), dim_var("l")))
# The types of function values.  Each type binds its own dimension variables.
FUNCTIONS = (
    FuncType((PrimType(I64),), PrimType(I64)),
    FuncType((_K,), _K),
    FuncType((PrimType(I64),), PrimType(I64), pure=False),
    FuncType((), PrimType(F64)),
    FuncType((TensorType(I64, ()), PrimType(BOOL)), TensorType(I64, ())),
    FuncType((PrimType(I64),), FuncType((PrimType(I64),), PrimType(I64))),
    FuncType((FuncType((PrimType(I64),), PrimType(I64)), PrimType(I64)), PrimType(I64)),
    FuncType((_L,), TupleType((_L, PrimType(I64)))),
)


def dimension(state: State, simple: bool = False) -> AnyDim:
    """Return a random dimension computed from known dimensions.

    simple: whether the dimension must not exceed the larger of its operands.
    """
    source, known = state.source, state.frame.dims
    if not known or source.one_in(4):
        return source.integer(1, 3)
    dim = source.choice(known)
    if not source.one_in(3):
        return dim
    other = source.choice([*known, 2])
    options = [dim // 2, dim % 2 + 1, dim_op("min", dim, other), dim_op("max", dim, other), dim_op("max", dim - 1, 0)]
    if not simple:
        options += [dim + other, dim * 2, dim * other, dim * 2 + other // 3, dim + 1]
    made = source.choice(options)
    return made if state.limit(made) <= 16 else dim


def shape(state: State, max_rank: int = 2) -> tuple[AnyDim, ...]:
    return tuple(dimension(state) for _ in range(state.source.integer(0, max_rank)))


def tensor_type(state: State) -> TensorType:
    return TensorType(state.source.choice(DTYPES), shape(state))


def data_type(state: State, depth: int = 0) -> Type:
    """Return a random type without functions, over the known dimensions.  depth: the nesting depth so far."""
    source = state.source
    match source.integer(0, 11 if depth < 2 else 8):
        case 0 | 1 | 2:
            return source.choice(SCALARS)
        case 3 | 4 | 5 | 6:
            return tensor_type(state)
        case 7:
            return ShapeType(shape(state))
        case 8:
            return PrimType(I64, dimension(state))
    return TupleType(tuple(data_type(state, depth + 1) for _ in range(source.integer(0, 3))))


def value_type(state: State) -> Type:
    """Return a random type, which can be a function or contain one."""
    match state.source.integer(0, 9):
        case 8:
            return state.source.choice(FUNCTIONS)
        case 9:
            return TupleType((state.source.choice(FUNCTIONS), data_type(state, 1)))
    return data_type(state)


def parameter_types(state: State) -> tuple[Type, ...]:
    """Return parameter types for a function that Python calls.

    The first types bind the dimension variables.
    """
    source = state.source
    dims = [dim_var(name) for name in "nmk"[: source.integer(0, 3)]]
    types: list[Type] = []
    with state.inside(dims=[]) as frame:
        for dim in dims:
            frame.dims.append(dim)
            types.append(_binder(state, dim))
        for dim in dims:
            state.know(TensorType(F32, (dim,)), 4)
        while len(types) < 6 and source.more(4):
            types.append(data_type(state) if not source.one_in(6) else _loose(state))
    return tuple(types)


def _binder(state: State, dim: AnyDim) -> Type:
    """Return a type that binds the new dimension variable `dim`."""
    dtype, earlier = state.source.choice(DTYPES), state.source.choice(state.frame.dims)
    vector = TensorType(dtype, (dim,))
    options = (
        vector,
        TensorType(dtype, (dim, earlier)),
        PrimType(I64, dim),
        ShapeType((dim,)),
        TupleType((PrimType(F64), vector)),
        TupleType((TupleType((ShapeType((earlier, dim)),)), vector)),
    )
    return state.source.choice(options)


def _loose(state: State) -> Type:
    """Return a tensor or shape type without known sizes."""
    dtype = state.source.choice(DTYPES)
    options = (TensorType(dtype, None, 1), TensorType(dtype, None, 2), TensorType(dtype), ShapeType(None, 2))
    return state.source.choice(options)
