"""The join of two types is their most specific common supertype."""

from __future__ import annotations

import itertools
from functools import cache

import pytest

from relvm.ir.dtypes import F32, I64
from relvm.ir.symbolic import dim_var
from relvm.ir.types import (
    OBJECT,
    FuncType,
    ListType,
    OptionalType,
    PrimType,
    ShapeType,
    TensorType,
    TupleType,
    Type,
    is_proven,
    join,
)

N, M = dim_var("n"), dim_var("m")
TENSORS = (
    *(TensorType(dtype, shape) for dtype in (F32, I64, None) for shape in ((N, M), (N, 3), (N,), None)),
    *(TensorType(dtype, None, rank) for dtype in (F32, None) for rank in (1, 2)),
)
PLAIN = (
    OBJECT,
    *TENSORS,
    *(ShapeType(dims) for dims in ((N, M), (N, 3), (N,), None)),
    *(ShapeType(None, rank) for rank in (1, 2)),
    *(PrimType(dtype, value) for dtype in (F32, I64) for value in (None, N, 3)),
)
TYPES: tuple[Type, ...] = (
    *PLAIN,
    *(TupleType(fields) for fields in itertools.product(TENSORS[::3], repeat=2)),
    *(kind(of) for kind in (ListType, OptionalType) for of in (None, *TENSORS[::2])),
    *(FuncType((TensorType(F32, (dim,)),), TensorType(F32, (dim, size)), pure)
      for dim in (N, M) for size in (3, 4) for pure in (True, False)),
)  # fmt: skip


@cache
def supertypes(number: int) -> set[int]:
    return {i for i, each in enumerate(TYPES) if is_proven(each, TYPES[number])}


@pytest.mark.parametrize("number", range(len(TYPES)), ids=lambda number: str(TYPES[number]))
def test_the_join_is_the_most_specific_type_that_covers_both(number: int) -> None:
    first = TYPES[number]
    for other, second in enumerate(TYPES):
        joined, common = join(first, second), [TYPES[i] for i in supertypes(number) & supertypes(other)]
        if joined is None:
            assert common in ([], [OBJECT]), f"{second} has the common supertypes {[*map(str, common)]}"
            continue
        assert is_proven(joined, first) and is_proven(joined, second), f"{second}: {joined}"
        assert all(is_proven(each, joined) for each in common), f"{second}: {joined}"
