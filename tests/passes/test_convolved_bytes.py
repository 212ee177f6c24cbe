"""Tests of 8-bit convolutions with constant weights, from the operator to compiled kernels, on every processor."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import relvm.ops as ops
from relvm import vm
from relvm._native import lib
from relvm.compiler.target import LEVELS, level_of
from relvm.ir.builder import Builder
from relvm.ir.dtypes import dtype_of
from relvm.ir.expr import Module, constant
from relvm.ir.interpreter import evaluate
from relvm.ir.symbolic import dim_var
from relvm.ir.type_inference import infer_types
from relvm.ir.types import TensorType
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline
from relvm.tables import CPU_FEATURES

RANDOM = np.random.default_rng(3)
OWN = {row.option for row in CPU_FEATURES if lib.rvm_cpu_features() >> row.index & 1}

# For each case, the shape of x, the shape of w, and the attributes.
CASES = [
    ((2, 5, 9, 8), (7, 5, 3, 3), {"pads": (1, 1, 1, 1)}),
    ((1, 3, 17, 23), (8, 3, 3, 3), {"strides": (2, 2), "pads": (0, 1, 1, 0)}),
    ((1, 4, 9, 70), (6, 4, 2, 5), {"strides": (1, 4), "dilations": (3, 2), "pads": (0, 4, 0, 9)}),
    ((3, 6, 8, 20), (5, 6, 3, 3), {"strides": (3, 3), "pads": (1, 1, 1, 1)}),
    ((2, 12, 7, 7), (6, 6, 3, 3), {"groups": 2, "pads": (1, 1, 1, 1)}),
    ((2, 14, 9, 9), (14, 7, 1, 1), {"groups": 2}),
    ((1, 9, 150), (4, 9, 7), {"pads": (6, 0), "dilations": (2,)}),
    ((1, 2, 4, 5, 6), (3, 2, 2, 3, 2), {"pads": (0, 1, 1, 1, 0, 0)}),
    ((0, 5, 6, 6), (7, 5, 3, 3), {}),
    ((2, 5, 0, 6), (7, 5, 1, 3), {"pads": (1, 1, 1, 1)}),
    ((2, 1, 9, 8), (7, 1, 3, 3), {}),
    ((2, 6, 11, 150), (6, 1, 3, 3), {"groups": 6, "pads": (1, 1, 1, 1)}),
    ((1, 3, 70, 70), (6, 1, 5, 5), {"groups": 3, "pads": (2, 2, 2, 2), "strides": (2, 2)}),
    ((1, 3, 20, 40), (3, 1, 2, 9), {"groups": 3, "pads": (1, 9, 1, 9), "dilations": (2, 3), "strides": (1, 4)}),
    ((1, 3, 20, 40), (3, 1, 3, 3), {"groups": 3, "pads": (3, 3, 0, 0), "strides": (5, 3)}),
    ((2, 4, 0, 6), (4, 1, 1, 3), {"groups": 4, "pads": (1, 1, 1, 1)}),
    ((2, 4, 31), (4, 1, 6), {"groups": 4, "pads": (2, 3)}),
]


def extremes(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of a dtype whose elements are mostly the smallest and largest numbers of the dtype."""
    low, high = (-128, 127) if dtype == "int8" else (0, 255)
    return RANDOM.choice([low, high, high, high - 1, low + 1, 3], shape).astype(dtype)


def module_of(dtype: str, *, symbolic: bool = False) -> Module:
    """Return a module with a function of x and its zero point for each case."""
    builder, own = Builder(), dtype_of(np.dtype(dtype))
    for i, (shape, window, attributes) in enumerate(CASES):
        dims = (dim_var("n"), shape[1], *(dim_var(f"d{axis}") for axis in range(len(shape) - 2))) if symbolic else shape
        with builder.function(f"case{i}", [("x", TensorType(own, dims)), ("zero", TensorType(own, ()))]) as (x, zero):
            weights = constant(extremes("int8", window))
            builder.ret(builder.emit(ops.conv_integer(x, weights, zero, **attributes)))
    return builder.module()


def check(module: Module, executable: vm.Executable, dtype: str) -> None:
    typed, info = infer_types(module), np.iinfo(dtype)
    machines = [vm.VirtualMachine(executable, num_threads=threads) for threads in (1, 3)]
    for (i, (shape, _, _)), zero in product(enumerate(CASES), (info.min, info.max, 7)):
        args = extremes(dtype, shape), np.array(zero, dtype)
        wanted = evaluate(typed, f"case{i}", *args)
        for machine in machines:
            np.testing.assert_array_equal(machine[f"case{i}"](*args).numpy(), wanted, strict=True)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("symbolic", [False, True])
def test_what_is_packed_is_the_convolution(dtype: str, symbolic: bool) -> None:
    module = module_of(dtype, symbolic=symbolic)
    check(module, vm.build(module, "compiled"), dtype)


@pytest.mark.skipif(not OWN, reason="x86-64 only")
@pytest.mark.parametrize("target", ["x86-64-v4", "x86-64-v3", "x86-64-v2"])
def test_it_is_the_same_on_every_level(target: str) -> None:
    if LEVELS.index(target) > LEVELS.index(level_of(OWN)):
        pytest.skip(f"this processor is below {target}")
    module = module_of("int8")
    check(module, vm.build(module, target=target), "int8")


def test_several_channels_of_a_group_are_packed() -> None:
    passes = [one for one in build_pipeline("c") if one.name in ("infer_types", "to_anf", "pack_weights")]
    module = run_passes(module_of("uint8"), passes)
    for i, (_, window, _) in enumerate(CASES):
        (binding,) = module[f"case{i}"].body.bindings
        assert binding.value.op.name == ("conv_integer_packed" if window[1] > 1 else "conv_integer")


@pytest.mark.parametrize("places", [(56, 56), (9, 7)])
def test_what_requantises_shares_the_kernel(places: tuple[int, int]) -> None:
    """This holds even if each sum has many products."""
    builder, dims = Builder(), (1, 512, *places)
    with builder.function("main", [("x", TensorType(dtype_of(np.dtype("uint8")), dims))]) as (x,):
        w = constant(extremes("int8", (8, 512, 3, 3)))
        y = builder.emit(ops.conv_integer(x, w, constant(np.uint8(3)), pads=(1, 1, 1, 1)))
        y = builder.emit(ops.multiply(builder.emit(ops.cast(y, to="f32")), constant(np.float32(1e-5))))
        builder.ret(builder.emit(ops.saturating_cast(y, to="u8")))
    module = run_passes(builder.module(), list(build_pipeline("c")))
    assert len(module.kernels) == 1
