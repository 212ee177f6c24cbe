"""Random programs of operators that can share kernels: fused, they compute what the reference does."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import relvm.ops as ops
from relvm import vm
from relvm.errors import RelvmError
from relvm.ir.builder import Builder
from relvm.ir.dims import as_var, dim_var, evaluate_with
from relvm.ir.dtypes import F32
from relvm.ir.expr import Fused, Module, Shape, Var
from relvm.ir.infer import infer_types
from relvm.ir.node import walk
from relvm.ir.reference import evaluate
from relvm.ir.types import TensorType
from relvm.transform.passes import run_passes
from relvm.transform.pipelines import build_pipeline

FUNCTIONS = 40  # of a module, which is compiled at once
UNARY = (ops.exp, ops.tanh, ops.negative, ops.relu, ops.sigmoid, ops.abs)
BINARY = (ops.add, ops.multiply, ops.subtract, ops.maximum)
REDUCTIONS = (ops.sum, ops.mean, ops.max, ops.min)


def random_function(builder: Builder, name: str, random: np.random.Generator) -> list[tuple[int, ...]]:
    """A function of three tensors; the sizes of its arguments."""
    symbolic = random.random() < 0.5
    sizes = {size: dim_var(f"n{size}") if symbolic and size != 4 else size for size in (3, 4, 5)}
    values = {as_var(dim): size for size, dim in sizes.items() if not isinstance(dim, int)}
    shapes = [tuple(sizes[size] for size in random.choice((3, 4, 5), 3)), (sizes[4], sizes[4]), (sizes[5],)]
    params = [(f"x{i}", TensorType(F32, shape)) for i, shape in enumerate(shapes)]
    with builder.function(name, params) as args:
        made = [builder.emit(ops.tanh(arg)) for arg in args]
        for _ in range(int(random.integers(3, 14))):
            made.append(step(builder, made, random))
        builder.ret(made[-1])
    return [tuple(evaluate_with(dim, values.get) for dim in shape) for shape in shapes]


def step(builder: Builder, made: list[Var], random: np.random.Generator) -> Var:
    """One more operator on some of the values; where it does not fit them, another."""
    while True:
        recent = made[-int(random.integers(1, min(len(made), 4) + 1)) :]
        x, y = recent[int(random.integers(len(recent)))], recent[int(random.integers(len(recent)))]
        rank = x.type.rank
        try:
            match random.integers(12):
                case 0 | 1 | 2:
                    value = UNARY[random.integers(len(UNARY))](x)
                case 3 | 4 | 5:
                    value = BINARY[random.integers(len(BINARY))](x, y)
                case 6:
                    axes = tuple(int(axis) for axis in np.flatnonzero(random.integers(0, 2, rank)))
                    reduction = REDUCTIONS[random.integers(len(REDUCTIONS))]
                    value = reduction(x, axes=axes or None, keepdims=bool(random.random() < 0.8))
                case 7:
                    value = ops.transpose(x, perm=tuple(int(axis) for axis in random.permutation(rank)))
                case 8:
                    begin, step_ = int(random.integers(-2, 2)), int(random.choice((1, 2, -1)))
                    end = int(random.choice((2, 1 << 31))) if step_ > 0 else -(1 << 31)
                    axis = int(random.integers(rank))
                    value = ops.slice(x, begin=(begin,), end=(end,), axes=(axis,), steps=(step_,))
                case 9:
                    dims = x.type.shape
                    joined = (*dims[:-2], dims[-2] * dims[-1]) if random.random() < 0.5 and rank >= 2 else (*dims, 1)
                    value = ops.reshape(x, Shape(joined))
                case 10:
                    value = ops.softmax(x, axis=int(random.integers(rank)))
                case _:
                    value = ops.matmul(x, y, transpose_b=bool(random.random() < 0.5))
        except (RelvmError, ValueError, IndexError):
            continue
        if value.type.rank is None or value.type.rank > 4 or value.type.rank == 0:
            continue
        return builder.emit(value)


def random_module(seed: int) -> tuple[Module, dict[str, list[tuple[int, ...]]]]:
    random = np.random.default_rng(seed)
    builder = Builder()
    shapes = {f"f{i}": random_function(builder, f"f{i}", random) for i in range(FUNCTIONS)}
    return builder.module(), shapes


@pytest.mark.parametrize("seed", range(6))
def test_fused_programs_compute_what_the_reference_does(seed: int) -> None:
    module, shapes = random_module(seed)
    machine = vm.VirtualMachine(vm.build(module, verified=True))
    typed = infer_types(module)
    random = np.random.default_rng(seed)
    for name, sizes in shapes.items():
        args = [random.standard_normal(size).astype(np.float32) for size in sizes]
        wanted = evaluate(typed, name, *args)
        got = machine[name](*args).numpy()
        assert got.shape == wanted.shape
        largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=1)
        np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=2e-4 * largest)


def test_the_random_programs_have_every_form_fused() -> None:
    found: Counter[str] = Counter()
    for seed in range(6):
        steps = build_pipeline("c")
        upto = [step.name for step in steps].index("fuse") + 1
        module = run_passes(random_module(seed)[0], steps[:upto])
        for item in walk(module):
            if isinstance(item, Fused):
                names = {binding.value.op.name for binding in item.body.bindings}
                found.update(names)
                found["two reductions"] += len(names & {"sum", "mean", "max", "min"}) > 1
                found["a finished product"] += bool(names & {"matmul", "matmul_packed"})
    rows = ("exp", "add", "sum", "transpose", "slice", "reshape", "two reductions", "a finished product")
    assert all(found[row] >= 3 for row in rows), found
