"""The same bits on all levels, threads and forms of kernels: samples of tests/determinism/determinism_suite.py."""

from __future__ import annotations

import numpy as np
import pytest
from determinism.samples import SAMPLES, built, failures, sample
from determinism.ways import bytecode_ways, fusion_differences, native_ways

from relvm import vm
from relvm.compiler.find_compiler import find_compiler
from relvm.frontend.text import parse_module
from relvm.ir.portable_random import PortableRandom


@pytest.mark.parametrize("name", SAMPLES)
def test_bytecode_has_the_same_bits_on_all_levels_and_threads(name: str) -> None:
    assert not failures(name, bytecode_ways(sample(name), built(name)))


BATCHES = """
def mlp(x: f32[n, 50], v: f32[50, 70], w: f32[70, 33]) -> f32[n, 33] = softmax(matmul(tanh(matmul(x, v)), w), axis=1)
def net(x: f32[n, 3, 14, 14], w: f32[9, 3, 3, 3]) -> f32[n, 9, 7] =
  sum(max_pool(relu(conv(x, w, pads=(1, 1, 1, 1))), kernel=(2, 2), strides=(2, 2)), axes=(3,))
"""


@pytest.mark.parametrize("target", ["bytecode", *(["c"] if find_compiler() else [])])
def test_a_row_has_the_same_bits_in_every_batch(target: str) -> None:
    machine = vm.VirtualMachine(vm.build(parse_module(BATCHES), target=target), num_threads=3)
    rng = PortableRandom(0)
    for name, row, *weights in (("mlp", (50,), (50, 70), (70, 33)), ("net", (3, 14, 14), (9, 3, 3, 3))):
        x, *constants = (rng.standard_normal(shape).astype(np.float32) for shape in ((130, *row), *weights))
        whole = machine[name](x, *constants).numpy()
        for batch in (1, 2, 3, 5, 8, 13, 16, 17, 33, 64, 129):
            assert machine[name](x[-batch:], *constants).numpy().tobytes() == whole[-batch:].tobytes()


@pytest.mark.parametrize("name", SAMPLES)
def test_fusion_changes_no_bits_of_these_cases(name: str) -> None:
    assert not fusion_differences(sample(name))


@pytest.mark.skipif(find_compiler() is None, reason="no C compiler")
@pytest.mark.parametrize("name", ["functions, a fifteenth", "digits"])
def test_native_code_without_fma_has_the_same_bits(name: str) -> None:
    assert not failures(name, native_ways(sample(name), ("x86-64-v2 exact-fma",)))
