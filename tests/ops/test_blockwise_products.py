"""Tests of products with blockwise quantized weights: the bits on every processor, and special activations."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import relvm.ops as ops
from relvm import vm
from relvm._native import lib
from relvm.ir.builder import Builder
from relvm.ir.dtypes import F32
from relvm.ir.expr import Module, constant
from relvm.ir.operator import operators
from relvm.ir.symbolic import dim_var
from relvm.ir.types import TensorType
from relvm.ops.blockwise_quant_matmul import pack_block_values, pack_blocks
from relvm.tables import CPU_FEATURES

OWN = {row.option for row in CPU_FEATURES if lib.rvm_cpu_features() >> row.index & 1}
# Targets, and the features without which a processor cannot run them.
TARGETS = {
    "c": (),
    "bytecode": (),
    "x86-64-v4 -mavx512vnni": ("avx512bw", "avx512vnni"),
    "x86-64-v4": ("avx512bw",),
    "x86-64-v3 -mavxvnni": ("avx2", "avxvnni"),
    "x86-64-v3": ("avx2",),
    "x86-64-v2": ("ssse3",),
    "x86-64": ("sse3",),
}
# Depth, columns, bits, block and the dtype of zero points.
CASES = [
    (64, 70, 4, 32, "u8"),
    (75, 64, 4, 16, "f32"),
    (130, 65, 8, 32, "u8"),
    (37, 33, 8, 4, "f32"),
    (100, 130, 2, 16, "u8"),
    (300, 5, 4, 128, "u8"),
]
INT8, F32_EXACT = ([f"{kind}{i}" for i in range(len(CASES))] for kind in ("int8", "f32"))


@cache
def weights(case: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arguments b, scales and zeros, with numbers that have the greatest and the least values."""
    random = np.random.default_rng(case)
    depth, columns, bits, block, dtype = CASES[case]
    blocks = -(-depth // block)
    numbers = random.integers(0, 2**bits, (depth, columns), np.uint8)
    numbers[:, 0], numbers[:, 1] = 2**bits - 1, 0
    zeros = random.uniform(0, 2**bits, (blocks, columns)).astype(np.uint8 if dtype == "u8" else np.float32)
    scales = random.uniform(-0.1, 0.1, (blocks, columns)).astype(np.float32)
    return pack_blocks(numbers, bits, block), pack_block_values(scales), pack_block_values(zeros)


@cache
def module() -> Module:
    """Return a module with a function for each case and operator, for any number of rows."""
    builder = Builder()
    for i, (depth, columns, bits, block, _) in enumerate(CASES):
        matrix = tuple(map(constant, weights(i)))
        attributes = {"columns": columns, "bits": bits, "block": block}
        type_ = TensorType(F32, (dim_var("n"), depth))
        with builder.function(INT8[i], [("x", type_)]) as (x,):
            words = builder.emit(ops.quantize_blocks(x, block=block))
            builder.ret(builder.emit(ops.matmul_blockwise_int8(words, *matrix, **attributes)))
        with builder.function(F32_EXACT[i], [("x", type_)]) as (x,):
            builder.ret(builder.emit(ops.matmul_blockwise_quant(x, *matrix, **attributes)))
    return builder.module()


@cache
def machine(target: str) -> vm.VirtualMachine:
    if not OWN.issuperset(TARGETS[target]):
        pytest.skip(f"this processor has no {', '.join(TARGETS[target])}")
    return vm.VirtualMachine(vm.build(module(), "bytecode" if target == "bytecode" else "compiled", target=target))


def activations(case: int, rows: int) -> np.ndarray:
    """Return rows of usual numbers, small integers (whose quotients are often ties), large, tiny and zero numbers."""
    random = np.random.default_rng(rows)
    x = random.standard_normal((rows, CASES[case][0])).astype(np.float32)
    x[1::5] = random.integers(-254, 255, x[1::5].shape) / np.float32(2)
    x[2::5] *= np.float32(1e35)
    x[3::5] *= np.float32(2.0**-100)
    x[4::5] = 0
    return x


def expected(case: int, x: np.ndarray) -> np.ndarray:
    """Return what NumPy gives for the operators with integer arithmetic."""
    _, columns, bits, block, _ = CASES[case]
    words = operators()["quantize_blocks"].numpy(x, block=block)
    multiply = operators()["matmul_blockwise_int8"].numpy
    with np.errstate(over="ignore", invalid="ignore"):
        return multiply(words, *weights(case), columns=columns, bits=bits, block=block)


@pytest.mark.parametrize("target", TARGETS)
def test_integer_products_have_the_bits_of_numpy(target: str) -> None:
    for case in range(len(CASES)):
        for rows in (*range(1, 18), 0):
            x = activations(case, rows)
            result = machine(target)[INT8[case]](x).numpy()
            np.testing.assert_array_equal(result.view(np.int32), expected(case, x).view(np.int32), strict=True)
    assert str(np.float32(1)) == "1.0"  # NumPy compares in the x87 unit, whose registers kernels must not leave in use


@pytest.mark.parametrize("target", TARGETS)
def test_nonfinite_and_tiny_blocks(target: str) -> None:
    """A block with an infinity or NaN makes its row NaN.  Numbers below 2^-100 count as zeros."""
    for case in range(len(CASES)):
        x = activations(case, 9)
        x[0, -1], x[2, 0], x[5, 3] = np.inf, -np.inf, np.nan
        x[7] = np.float32(2.0**-101)
        result = machine(target)[INT8[case]](x).numpy()
        assert np.isnan(result[[0, 2, 5]]).all()
        assert not result[7].any()
        others = [1, 3, 4, 6, 8]
        np.testing.assert_array_equal(result[others], expected(case, x)[others])


@pytest.mark.parametrize("target", TARGETS)
def test_a_row_does_not_depend_on_the_number_of_rows(target: str) -> None:
    for case in range(len(CASES)):
        x = activations(case, 17)
        for name in (INT8[case], F32_EXACT[case]):
            run = machine(target)[name]
            rows = np.concatenate([run(x[i : i + 1]).numpy() for i in range(len(x))])
            for count in (2, 5, 12, 13, 17):
                np.testing.assert_array_equal(run(x[:count]).numpy(), rows[:count])


@pytest.mark.parametrize("target", TARGETS)
def test_f32_products_have_the_same_bits_at_every_width(target: str) -> None:
    """Fused multiply-add rounds once, so processors without it give other bits."""
    fused = {"fma"} <= OWN
    reference = machine("bytecode")
    for case in range(len(CASES)):
        x = activations(case, 5)
        result, wanted = (run[F32_EXACT[case]](x).numpy() for run in (machine(target), reference))
        if target in ("x86-64", "x86-64-v2") and fused:
            np.testing.assert_allclose(
                result, wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max(1, keepdims=True).max()
            )
        else:
            np.testing.assert_array_equal(result, wanted)


def test_the_error_of_integer_products() -> None:
    """Bytes have a relative error of at most 1/254 of the largest element of a block."""
    for case in range(len(CASES)):
        x = np.random.default_rng(case).standard_normal((50, CASES[case][0])).astype(np.float32)
        run = machine("bytecode")
        exact, result = (run[name](x).numpy() for name in (F32_EXACT[case], INT8[case]))
        error = np.linalg.norm(result - exact) / np.linalg.norm(exact)
        assert error < 0.02
