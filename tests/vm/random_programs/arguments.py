"""Random arguments for entry functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from random_programs.scalars import BOOLS, FLOATS, INTEGERS
from random_programs.state import PARAMETER_LIMIT, Callee, Source
from relvm import vm
from relvm.ir.dtypes import DType
from relvm.ir.symbolic import AnyDim, DimVar, evaluate_with
from relvm.ir.types import OBJECT, PrimType, ShapeType, TensorType, TupleType, Type


def arguments(source: Source, callee: Callee) -> tuple:
    """Draw arguments for a call of `callee` from Python."""
    sizes = {var: source.integer(0, PARAMETER_LIMIT - 1) for var in callee.own}
    random = np.random.default_rng(source.integer(0, 1000))
    values = [_argument(source, random, type_, sizes) for type_ in callee.params]
    if callee.bound is not None:
        values[0] = source.integer(0, callee.bound)
    return tuple(values)


def _argument(source: Source, random: np.random.Generator, type_: Type, sizes: dict[DimVar, int]) -> Any:
    def size(dim: AnyDim) -> int:
        return evaluate_with(dim, sizes.get)

    match type_:
        case PrimType(dtype, value):
            if value is not None:
                return size(value)
            return source.choice({"i64": INTEGERS, "f64": FLOATS, "bool": BOOLS}[dtype.name])
        case TensorType(dtype, shape, rank):
            if shape is None:
                shape = [source.integer(0, 3) for _ in range(1 if rank is None else rank)]
            return _array(random, dtype, tuple(map(size, shape)))
        case ShapeType(dims, rank):
            return vm.Shape(map(size, dims) if dims is not None else (source.integer(0, 3) for _ in range(rank)))
        case TupleType(fields):
            return tuple(_argument(source, random, field, sizes) for field in fields)
    assert type_ == OBJECT, type_
    return source.choice(INTEGERS)


def _array(random: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    if dtype.name == "f32":
        return (random.integers(-64, 65, shape) / 64).astype(np.float32)
    low, high = {"bool": (0, 2), "u8": (0, 256), "f64": (-9, 10)}.get(dtype.name, (-100, 101))
    return np.array(random.integers(low, high, shape)).astype(dtype.numpy)
