"""Tests of the C toolchain: finding the compiler, a missing or failing compiler, and the cache of compiled code."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from relvm import vm
from relvm.codegen.c.module import CSource
from relvm.compiler import toolchain
from relvm.compiler.find_compiler import find_compiler
from relvm.errors import RelvmArgumentError, RelvmToolchainError
from relvm.frontend.text import parse_module

MODULE = parse_module("def main(x: f32[n]) -> f32[n] { return add(x, x) }")


def test_native_code_is_made_for_the_processors_that_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    module = parse_module("def main(x: f32[4]) -> f32[4] = relu(x)")
    monkeypatch.setenv("RELVM_CPU", "x86-64-v2")
    executable = vm.build(module, "compiled")
    assert executable.program.native.cpu == "x86-64-v2"
    assert vm.VirtualMachine(executable)["main"](np.float32([-1, 0, 1, 2])).numpy().tolist() == [0, 0, 1, 2]
    monkeypatch.setenv("RELVM_CPU", "pentium")
    with pytest.raises(RelvmToolchainError, match="got 'pentium'"):
        vm.build(module, "compiled")


def test_without_a_compiler_target_c_says_what_to_do(monkeypatch) -> None:
    monkeypatch.setenv("RELVM_CC", "none")
    with pytest.raises(RelvmToolchainError, match=r'no C compiler.*target="bytecode"'):
        vm.build(MODULE)


def test_without_a_compiler_bytecode_runs_on_numpy(monkeypatch) -> None:
    monkeypatch.setenv("RELVM_CC", "none")
    machine = vm.VirtualMachine(vm.build(MODULE, "bytecode", "numpy"))
    np.testing.assert_array_equal(machine["main"](np.ones(3, np.float32)), [2, 2, 2])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("nowhere-cc", "RELVM_CC: the compiler 'nowhere-cc' does not exist or does not run"),
        ("gcc '", 'RELVM_CC: "gcc \'" is not a valid command: No closing quotation'),
    ],
)
def test_a_compiler_that_does_not_run_is_named(setting: str, message: str, monkeypatch) -> None:
    monkeypatch.setenv("RELVM_CC", setting)
    with pytest.raises(RelvmToolchainError, match=message):
        vm.build(MODULE)


def test_tcc_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "tiny"
    program.write_text("#!/bin/sh\necho 'tcc version 0.9.27 (x86_64 Linux)'\n")
    program.chmod(0o755)
    monkeypatch.setenv("RELVM_CC", str(program))
    with pytest.raises(RelvmToolchainError, match=r'RELVM_CC: tcc is not supported, .* target="bytecode"'):
        vm.build(MODULE)


def test_zig_names_processors_in_its_own_way(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path) -> None:
    """The test's zig is a script that calls gcc, and rejects processor names that zig does not understand."""
    program = tmp_path / "zig"
    program.write_text(
        """#!/bin/sh
shift
for option in "$@"; do case $option in -march=*-*) echo "unknown CPU: $option" >&2; exit 1;; esac; done
exec gcc $(echo "$@" | sed 's/-march=x86_64_v/-march=x86-64-v/')
"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("RELVM_CC", f"{program} cc")
    for level in ("x86-64-v2", "x86-64-v3"):
        executable = vm.build(MODULE, "compiled", level)
        assert executable.program.native.cpu == level


@pytest.mark.skipif(not importlib.util.find_spec("ziglang"), reason="pip install ziglang")
def test_the_zig_of_a_package_compiles(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.delenv("RELVM_CC", raising=False)
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(cache))  # a PATH without a compiler
    found = find_compiler()
    assert found is not None and found.is_zig
    machine = vm.VirtualMachine(vm.build(MODULE, "compiled"))
    np.testing.assert_array_equal(machine["main"](np.ones(3, np.float32)), [2, 2, 2])


def test_a_setting_of_blanks_names_no_compiler(monkeypatch) -> None:
    monkeypatch.setenv("RELVM_CC", " ")
    assert find_compiler() is not None


def test_a_wrong_limit_of_the_cache_is_told_before_anything_is_compiled(monkeypatch, cache) -> None:
    monkeypatch.setenv("RELVM_CACHE_BYTES", "much")
    with pytest.raises(RelvmArgumentError, match="RELVM_CACHE_BYTES"):
        vm.build(MODULE)
    assert not cache.exists()


def test_a_compiler_that_fails_shows_its_output(cache) -> None:
    with pytest.raises(RelvmToolchainError, match="this is no C"):
        toolchain.compile_native(CSource(("this is no C;",), ""))


def test_the_same_code_is_compiled_once(monkeypatch, cache) -> None:
    calls = []
    compile_once = toolchain._compile
    monkeypatch.setattr(toolchain, "_compile", lambda *args: calls.append(1) or compile_once(*args))
    for _ in range(2):
        vm.build(MODULE, "compiled")
    assert len(calls) == 2  # one for the kernels and one for the routines
    assert len(list((cache / "compiled").iterdir())) == 3  # two object files and the library
    vm.build(MODULE, "bytecode")
    assert len(calls) == 2


def test_libraries_share_the_functions_of_a_header(monkeypatch, cache, tmp_path) -> None:
    compiled: list[tuple[str, bytes]] = []  # the first line of a unit, and its object file
    compile_once = toolchain._compile

    def record(compiler, text: str, flags: tuple[str, ...]) -> bytes:
        compiled.append((text.partition("\n")[0], compile_once(compiler, text, flags)))
        return compiled[-1][1]

    monkeypatch.setattr(toolchain, "_compile", record)
    for columns in (5, 6):
        module = parse_module(f"def main(x: f32[n, 4], y: f32[4, {columns}]) = matmul(x, y)")
        x, y = np.arange(8, dtype=np.float32).reshape(2, 4), np.ones((4, columns), np.float32)
        machine = vm.VirtualMachine(vm.build(module, "compiled"))
        np.testing.assert_array_equal(machine["main"](x, y).numpy(), x @ y)
    firsts = [first for first, _ in compiled]
    assert [first for first in firsts if "functions" in first] == ["/* unit: functions of gemm_f32.h */"]
    kernels = [content for first, content in compiled if first == "/* unit: kernels */"]
    assert len(kernels) == 2
    for content in kernels:  # a unit calls the functions, and has no copies of them
        (tmp_path / "unit.o").write_bytes(content)
        symbols = subprocess.run(["nm", tmp_path / "unit.o"], capture_output=True, text=True, check=True).stdout
        assert re.findall(r"(\w) (rvm_\w+_tile_\w+)", symbols) == [("U", "rvm_plain_tile_any_rows")]


def test_a_cache_that_cannot_be_written_does_not_stop_a_build(monkeypatch, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RELVM_CACHE_DIR", str(tmp_path / "file" / "cache"))
    vm.build(MODULE)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"exec_mode": "bytcode"}, "bytecode"),
        ({"target": "cuda"}, "numpy"),
        ({"target": "x86-64-v5"}, "x86-64-v4"),
        ({"target": "numpy -march=native"}, "c with options"),
        ({"target": "c -march="}, "-march="),
        ({"target": "c -O3"}, "-O3"),
        ({"target": "c -mavx512vnn"}, "avx512vnni"),
    ],
)
def test_a_mode_or_target_that_is_not_there_is_named(options, words) -> None:
    with pytest.raises(RelvmArgumentError, match=words):
        vm.build(MODULE, **options)
