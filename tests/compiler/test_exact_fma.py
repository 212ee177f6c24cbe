"""The target option exact-fma: processors without fused multiply-add give the bits of others."""

from __future__ import annotations

import numpy as np
import pytest

from relvm import vm
from relvm._native import lib
from relvm.bytecode.kernel_printer import kernel_listing
from relvm.compiler.find_compiler import find_compiler
from relvm.compiler.target import Target, level_of, parse_target
from relvm.errors import RelvmArgumentError, RelvmToolchainError
from relvm.frontend.text import parse_module
from relvm.runtime.executable import Executable
from relvm.tables import CPU_FEATURES

MODULE = parse_module("def main(x: f32[n, 50], w: f32[50, 20]) -> f32[n, 20] { return sin(exp(tanh(matmul(x, w)))) }")
ARRAYS = [np.random.default_rng(0).standard_normal(shape).astype(np.float32) for shape in ((9, 50), (50, 20))]
OWN = {row.option for row in CPU_FEATURES if lib.rvm_cpu_features() >> row.index & 1}
pytestmark = pytest.mark.skipif("fma" not in OWN, reason="a processor with fused multiply-add is compared with itself")
needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="no C compiler")


def bits(executable: Executable, monkeypatch: pytest.MonkeyPatch, level: str = "") -> bytes:
    with monkeypatch.context() as patch:
        patch.setenv("RELVM_CPU", level)
        machine = vm.VirtualMachine(executable)
    return machine["main"](*ARRAYS).numpy().tobytes()


def test_the_text_of_targets() -> None:
    assert parse_target("bytecode exact-fma") == Target("bytecode", None, True)
    assert parse_target("x86-64-v2 exact-fma") == Target("c", ("-march=x86-64-v2",), True)
    for text in ("c exact-fma", "bytecode exact-fma", "c -march=native exact-fma"):
        assert str(parse_target(text)) == text
    for text in ("numpy exact-fma", "bytecode exact-fm", "exact-fma", "c exact-fma -mavx"):
        with pytest.raises(RelvmArgumentError, match="target="):
            parse_target(text)


def test_kernel_bytecode_without_fma_has_the_bits_of_fma(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, exact = vm.build(MODULE, target="bytecode"), vm.build(MODULE, target="bytecode exact-fma")
    expected = bits(plain, monkeypatch)
    assert bits(plain, monkeypatch, "x86-64-v2") != expected
    for level in ("x86-64", "x86-64-v2", "x86-64-v3"):
        assert bits(exact, monkeypatch, level) == expected
    saved = Executable.from_bytes(exact.to_bytes())
    assert bits(saved, monkeypatch, "x86-64-v2") == expected
    (program,) = saved.program.kernels.values()
    assert program.exact_fma and kernel_listing(program).startswith("kernel kernel, exact fma\n")


@needs_compiler
def test_native_code_without_fma_has_the_bits_of_fma(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = bits(vm.build(MODULE, target="bytecode"), monkeypatch)
    assert bits(vm.build(MODULE, target="x86-64-v2"), monkeypatch) != expected
    exact = vm.build(MODULE, "compiled", "x86-64-v2 exact-fma", portable=True)
    assert bits(exact, monkeypatch) == expected
    assert all(program.exact_fma for program in exact.portable.program.kernels.values())
    assert "#define RVM_EXACT_FMA" in exact.source


@needs_compiler
def test_native_code_that_replaces_bytecode_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    executable = vm.build(MODULE, "auto", "x86-64-v2 exact-fma")
    machine = vm.VirtualMachine(executable)
    before = machine["main"](*ARRAYS).numpy().tobytes()
    assert machine.wait_compiled() and machine["main"](*ARRAYS).numpy().tobytes() == before
    assert before == bits(vm.build(MODULE, target="bytecode"), monkeypatch)


def test_the_level_of_kernel_bytecode_must_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    executable = vm.build(MODULE, target="bytecode")
    with pytest.raises(RelvmToolchainError, match="RELVM_CPU: expected one of x86-64, "):
        bits(executable, monkeypatch, "pentium")
    assert level_of(OWN).startswith("x86-64")
