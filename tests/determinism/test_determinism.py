"""A sample of tests/determinism/determinism_suite.py: the same bits on all processors, threads and forms of kernels."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from determinism.cases import Calls, function_cases, model_cases, operator_cases
from determinism.emulated import AARCH64, WINDOWS
from determinism.ways import (
    bytecode,
    bytecode_ways,
    differences,
    emulated_ways,
    fusion_differences,
    native_ways,
    run,
)

from relvm import vm
from relvm.compiler.find_compiler import find_compiler
from relvm.frontend.text import parse_module
from relvm.ir.portable_random import PortableRandom
from relvm.runtime.executable import Executable
from relvm.tables import include_flags

SAMPLES = ("functions", "operators00000", "digits", "oww_alexa")


@cache
def sample(name: str) -> Calls:
    if name.startswith("functions"):
        return function_cases(300, step=15 if name == "functions, a fifteenth" else 1)
    (calls,) = operator_cases(step=20) if name.startswith("operators") else model_cases([name])
    return calls


@cache
def built(name: str) -> Executable:
    return bytecode(sample(name))


@cache
def expected(name: str) -> tuple[str, ...]:
    return tuple(run(built(name), sample(name)))


def failures(name: str, ways) -> dict[str, list[str]]:
    found = {way: differences(sample(name), list(expected(name)), digests()) for way, digests in ways}
    return {way: names for way, names in found.items() if names}


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


@pytest.mark.parametrize("name", (*SAMPLES, "functions, a fifteenth"))
def test_aarch64_has_the_same_bits(name: str) -> None:
    AARCH64.expect_tools()
    is_native = name in ("functions, a fifteenth", "digits")
    assert not failures(name, emulated_ways(AARCH64, sample(name), built(name), native=is_native))


@pytest.mark.parametrize("name", ("functions, a fifteenth", "digits"))
def test_windows_has_the_same_bits(name: str) -> None:
    WINDOWS.expect_tools()
    assert not failures(name, emulated_ways(WINDOWS, sample(name), built(name), native=name == "digits"))


@pytest.mark.parametrize(
    ("processor", "emulated", "options"),
    [
        ("armv8-a", "cortex-a72", ()),
        ("armv8.2-a+dotprod", "cortex-a76", ()),
        ("armv8.2-a+dotprod", "cortex-a76", ("-DRVM_COMPACT",)),
        ("armv8.2-a+dotprod+i8mm", "max", ()),
    ],
)
def test_products_on_aarch64_agree_with_plain_loops(
    processor: str, emulated: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    AARCH64.expect_tools()
    source = Path(__file__).with_name("products.c")
    flags = ("-O2", "-ffp-contract=off", "-fwrapv", "-Wall", "-Wextra", "-Werror", f"-march={processor}", *options)
    command = [
        *AARCH64.compiler,
        "-std=gnu11",
        *flags,
        *include_flags(),
        source,
        "-static",
        "-lm",
        "-o",
        tmp_path / "products",
    ]
    subprocess.run(command, check=True)
    done = subprocess.run(
        [AARCH64.emulator[0], "-cpu", emulated, tmp_path / "products"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")
