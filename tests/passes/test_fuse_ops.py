"""Tests of fuse_ops on random programs, whose results are compared with the reference interpreter."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from support.pipeline_parts import module_after
from tensor_programs import Programs, symbolic

import relvm.ops as ops
from relvm import vm
from relvm.ir.dtypes import F32
from relvm.ir.expr import Expr, Fused, Shape, Var, constant
from relvm.ir.interpreter import evaluate
from relvm.ir.node import walk
from relvm.ir.symbolic import as_var
from relvm.ir.type_inference import infer_types

UNARY = (ops.exp, ops.tanh, ops.negative, ops.relu, ops.sigmoid, ops.abs)
BINARY = (ops.add, ops.multiply, ops.subtract, ops.maximum)
REDUCTIONS = (ops.sum, ops.mean, ops.max, ops.min)


def shapes(random: np.random.Generator) -> list[tuple]:
    free = random.random() < 0.5
    sizes = {size: symbolic(size) if free and size != 4 else size for size in (3, 4, 5)}
    return [tuple(sizes[size] for size in random.choice((3, 4, 5), 3)), (sizes[4], sizes[4]), (sizes[5],)]


def step(made: list[Var], random: np.random.Generator) -> Expr:
    """Return a random operator call on some of the last values."""
    recent = made[-int(random.integers(1, min(len(made), 4) + 1)) :]
    x, y = recent[int(random.integers(len(recent)))], recent[int(random.integers(len(recent)))]
    rank = x.type.rank
    match random.integers(13):
        case 0 | 1 | 2:
            return UNARY[random.integers(len(UNARY))](x)
        case 3 | 4 | 5:
            return BINARY[random.integers(len(BINARY))](x, y)
        case 6:
            axes = tuple(int(axis) for axis in np.flatnonzero(random.integers(0, 2, rank)))
            reduction = REDUCTIONS[random.integers(len(REDUCTIONS))]
            return reduction(x, axes=axes or None, keepdims=bool(random.random() < 0.8))
        case 7:
            return ops.transpose(x, perm=tuple(int(axis) for axis in random.permutation(rank)))
        case 8:
            begin, step_ = int(random.integers(-2, 2)), int(random.choice((1, 2, -1)))
            end = int(random.choice((2, 1 << 31))) if step_ > 0 else -(1 << 31)
            axis = int(random.integers(rank))
            return ops.slice(x, begin=(begin,), end=(end,), axes=(axis,), steps=(step_,))
        case 9:
            dims = x.type.shape
            joined = (*dims[:-2], dims[-2] * dims[-1]) if random.random() < 0.5 and rank >= 2 else (*dims, 1)
            return ops.reshape(x, Shape(joined))
        case 11:
            axes = [axis for axis, dim in enumerate(x.type.shape) if (dim if isinstance(dim, int) else as_var(dim))]
            indices = random.choice((0, -1), (3,) * int(random.integers(3)))
            return ops.gather(x, constant(np.asarray(indices, np.int64)), axis=axes[int(random.integers(len(axes)))])
        case 10:
            return ops.softmax(x, axis=int(random.integers(rank)))
        case _:
            return ops.matmul(x, y, transpose_b=bool(random.random() < 0.5))


PROGRAMS = Programs(40, F32, shapes, step, steps=range(3, 14), ranks=range(1, 5), first=ops.tanh)


@pytest.mark.parametrize("seed", range(6))
def test_fused_programs_compute_what_the_reference_does(seed: int) -> None:
    module, sizes = PROGRAMS.module(seed)
    machine = vm.VirtualMachine(vm.build(module, verified=True))
    typed = infer_types(module)
    random = np.random.default_rng(seed)
    for function, arguments in zip(module.functions, sizes, strict=True):
        args = [random.standard_normal(shape).astype(np.float32) for shape in arguments]
        wanted = evaluate(typed, function.name, *args)
        got = machine[function.name](*args).numpy()
        assert got.shape == wanted.shape
        largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=1)
        np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=2e-4 * largest)


def test_the_random_programs_have_every_form_fused() -> None:
    found: Counter[str] = Counter()
    for seed in range(6):
        for item in walk(module_after("fuse_ops", PROGRAMS.module(seed)[0])):
            if isinstance(item, Fused):
                names = {binding.value.op.name for binding in item.body.bindings}
                found.update(names)
                found["two reductions"] += len(names & {"sum", "mean", "max", "min"}) > 1
                found["a finished product"] += bool(names & {"matmul", "matmul_packed"})
    rows = ("exp", "add", "sum", "transpose", "slice", "gather", "reshape", "two reductions", "a finished product")
    assert all(found[row] >= 3 for row in rows), found
