"""Tests of fold_scales on random programs of scales, shifts and matrix products, whose results must not change."""

from __future__ import annotations

import numpy as np
import pytest
from tensor_programs import Programs, operators, results, symbolic

from relvm import ops
from relvm.ir.builder import Builder
from relvm.ir.dtypes import F64
from relvm.ir.expr import Expr, Shape, Var, constant
from relvm.ir.type_inference import infer_types
from relvm.ir.types import TensorType
from relvm.passes.dce import dce
from relvm.passes.fold_scales import fold_scales
from relvm.passes.pass_manager import run_passes
from relvm.passes.to_anf import to_anf

FACTORS = (ops.multiply, ops.divide, ops.add, ops.subtract)


def shapes(random: np.random.Generator) -> list[tuple]:
    n = symbolic(3) if random.random() < 0.5 else 3
    return [(n, 4, 6), (2, n, 6)]


def numbers(shape: tuple[int, ...], random: np.random.Generator):
    return constant(random.uniform(0.5, 2, shape) * random.choice((-1, 1), shape))


def step(made: list[Var], random: np.random.Generator) -> Expr:
    """Return a random operator call on the last two values."""
    x, y = (made[-int(random.choice((1, 1, 1, 2)))] for _ in range(2))
    dims, rank = x.type.shape, x.type.rank
    match random.integers(11):
        case 0 | 1 | 2 | 3:
            shape = [dim if isinstance(dim, int) and random.random() < 0.3 else 1 for dim in dims]
            number = numbers(tuple(shape[int(random.integers(0, rank)) :]), random)
            operator = FACTORS[random.integers(len(FACTORS))]
            return operator(x, number) if random.random() < 0.8 else operator(number, x)
        case 4:
            transposed = bool(random.random() < 0.5)
            weights = (5, dims[-1]) if transposed else (dims[-1], 5)
            return ops.matmul(x, numbers(weights, random), transpose_b=transposed)
        case 5:
            transposed = bool(random.random() < 0.5)
            weights = (dims[-2], 6) if transposed else (6, dims[-2])
            return ops.matmul(numbers(weights, random), x, transpose_a=transposed)
        case 6:
            groups = int(random.choice((1, 2)))
            window = (4, dims[1] // groups, *(1,) * (rank - 3), 3)
            return ops.conv(x, numbers(window, random), pads=(*(0,) * (rank - 3), 1) * 2, groups=groups)
        case 7:
            return ops.transpose(x, perm=tuple(int(axis) for axis in random.permutation(rank)))
        case 8:
            axis = int(random.integers(rank - 1))
            joined = (*dims[:axis], dims[axis] * dims[axis + 1], *dims[axis + 2 :])
            split = (*dims[:axis], dims[axis] // 2, 2, *dims[axis + 1 :])
            return ops.reshape(x, Shape(joined if random.random() < 0.5 or dims[axis] % 2 else split))
        case 9 if x.type == y.type:
            return ops.multiply(x, y)
        case _:
            return ops.matmul(x, y, transpose_b=bool(random.random() < 0.5))


PROGRAMS = Programs(60, F64, shapes, step, steps=range(4, 14), ranks=range(2, 6))


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_compute_the_same(seed: int) -> None:
    made, sizes = PROGRAMS.module(seed)
    before = run_passes(infer_types(made), (to_anf, dce))
    after = run_passes(before, (fold_scales,), verified=True)
    assert operators(after) < 0.95 * operators(before)
    random = np.random.default_rng(seed)
    for got, wanted in results(before, after, sizes, random.standard_normal):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max(initial=0))


def test_weights_that_another_operator_uses_are_not_copied() -> None:
    """The factor is not folded into weights of more than 4 kB that two products share."""
    table = constant(np.ones((64, 32)))
    builder = Builder()
    with builder.function("main", [("x", TensorType(F64, (3, 32)))]) as (x,):
        y = builder.emit(ops.matmul(x, table, transpose_b=True))
        z = builder.emit(ops.multiply(y, constant(np.array(2.0))))
        builder.ret(builder.emit(ops.matmul(z, table)))
    module = run_passes(infer_types(builder.module()), (to_anf,))
    assert fold_scales(module) is module


def test_a_long_chain_of_factors_is_one() -> None:
    builder = Builder()
    with builder.function("main", [("x", TensorType(F64, (3, 4)))]) as (x,):
        y = builder.emit(ops.matmul(x, constant(np.ones((4, 2)))))
        for number in range(5_000):
            y = builder.emit(ops.multiply(y, constant(np.array(2.0 if number % 2 else 0.5))))
        builder.ret(y)
    function = fold_scales(run_passes(infer_types(builder.module()), (to_anf,))).functions[0]
    (binding,) = function.body.bindings
    assert binding.value.op is ops.matmul
