"""Tests of targets: processor levels of native code, their record in the executable, and checks at load time."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

from relvm import vm
from relvm._native import lib
from relvm.compiler.target import LEVELS, level_of, required_features
from relvm.errors import RelvmToolchainError, RelvmUnsupportedError
from relvm.frontend.text import parse_module
from relvm.runtime.executable import Executable
from relvm.tables import CPU_FEATURES

MODULE = parse_module("def main(x: f32[n]) -> f32[n] { return relu(add(x, x)) }")
X = np.float32([-1, 0, 2])

OWN = {row.option for row in CPU_FEATURES if lib.rvm_cpu_features() >> row.index & 1}
LACKING = sorted({row.option for row in CPU_FEATURES} - OWN)
is_x86 = pytest.mark.skipif(not OWN, reason="x86-64 only")


def cpu_of(target: str) -> str:
    return vm.build(MODULE, target=target).program.native.cpu


@is_x86
@pytest.mark.parametrize("target", ["c", "native", "x86-64", "x86-64-v2", "c -march=x86-64-v2 -mpopcnt -mtune=native"])
def test_what_is_made_for_this_processor_runs(target: str) -> None:
    executable = vm.build(MODULE, "compiled", target)
    saved = Executable.from_bytes(executable.to_bytes())
    assert vm.VirtualMachine(saved)["main"](X).numpy().tolist() == [0, 0, 4]


@is_x86
def test_the_executable_says_which_features_it_was_compiled_for() -> None:
    assert cpu_of("x86-64") == ""
    assert cpu_of("x86-64-v2") == "x86-64-v2"
    assert cpu_of("c -march=x86-64-v3 -mavxvnni -maes") == "x86-64-v3 avxvnni aes"
    assert cpu_of("c -march=x86-64-v3 -mno-avx2") == "x86-64-v2 avx bmi bmi2 f16c fma lzcnt movbe"
    assert set(cpu_of("c -march=cascadelake").split()) >= {"x86-64-v4", "avx512vnni"}


@is_x86
def test_the_default_has_what_products_of_bytes_are_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RELVM_CPU", raising=False)
    level = level_of(OWN)
    extra = {"avx512vnni", "avxvnni", "amx-tile", "amx-int8"} & OWN if level in ("x86-64-v3", "x86-64-v4") else set()
    assert set(cpu_of("c").split()) == {*([level] if level != "x86-64" else []), *extra}


def test_features_of_a_level_are_named_by_the_level() -> None:
    macros = {row.macro for row in CPU_FEATURES}
    rest = [row.option for row in CPU_FEATURES if row.level == 0 and not row.word.startswith("HWCAP")]
    assert required_features(macros) == " ".join(["x86-64-v4", *rest])
    assert required_features({"__linux__", "__SSE3__"}) == "sse3"
    assert required_features({"__linux__", "__aarch64__", "__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16"}) == ""
    assert required_features({"__aarch64__", "__ARM_FEATURE_DOTPROD", "__ARM_FEATURE_MATMUL_INT8"}) == "dotprod i8mm"
    assert required_features(macros - {"__SSE3__"}).split()[:2] == ["cx16", "sahf"]


def edited(**changes: str) -> bytes:
    """Return an executable with a wrong record of the target of its native code.  changes: fields of the record."""
    program = vm.build(MODULE, "compiled").program
    changed = replace(program, native=replace(program.native, **changes))
    return Executable.from_program(changed, elsewhere=True).to_bytes()


@is_x86
@pytest.mark.skipif(not LACKING, reason="this processor has every feature")
def test_features_that_are_lacking_are_named() -> None:
    content = edited(cpu=f"x86-64-v2 {LACKING[0]} popcnt {LACKING[-1]}")
    with pytest.raises(RelvmUnsupportedError, match=rf"lacks {LACKING[0]}, {LACKING[-1]}$"):
        Executable.from_bytes(content, trust_native=True)


def test_a_feature_of_no_known_name_is_lacking() -> None:
    with pytest.raises(RelvmUnsupportedError, match=r"processors with x86-64-v9 sse; .* lacks x86-64-v9, sse$"):
        Executable.from_bytes(edited(cpu="x86-64-v9 sse"), trust_native=True)


def test_a_list_of_lacking_features_is_cut_off() -> None:
    with pytest.raises(RelvmUnsupportedError, match=r"lacks feature0, feature1, .*, feature18$"):
        Executable.from_bytes(edited(cpu=" ".join(f"feature{i}" for i in range(99))), trust_native=True)


def test_native_code_for_another_architecture_is_refused() -> None:
    with pytest.raises(
        RelvmUnsupportedError, match="the native code was built for riscv64-linux-gnu, but this computer is"
    ):
        Executable.from_bytes(edited(triple="riscv64-linux-gnu", cpu=""), trust_native=True)


def test_what_was_made_for_elsewhere_can_be_saved_and_no_machine_runs_it() -> None:
    program = vm.build(MODULE, "compiled").program
    foreign = replace(program, native=replace(program.native, cpu="neon9"))
    with pytest.raises(RelvmUnsupportedError, match="lacks neon9"):
        Executable.from_program(foreign)
    executable = Executable.from_program(foreign, elsewhere=True)
    assert "neon9" in executable.as_text()
    with pytest.raises(RelvmUnsupportedError, match="lacks neon9"):
        vm.VirtualMachine(executable)


@is_x86
@pytest.mark.skipif("xop" not in LACKING, reason="an AMD processor of 2011 to 2016")
def test_a_target_that_this_processor_lacks_builds() -> None:
    executable = vm.build(MODULE, target="c -march=x86-64-v4 -mxop")
    assert executable.program.native.cpu.split()[0] == "x86-64-v4"
    with pytest.raises(RelvmUnsupportedError, match=r"lacks .*xop"):
        vm.VirtualMachine(executable)


def test_a_processor_that_the_compiler_does_not_know_is_its_error() -> None:
    with pytest.raises(RelvmToolchainError, match="-march=abacus"):
        vm.build(MODULE, target="c -march=abacus")


@is_x86
@pytest.mark.parametrize("target", ["c", "x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64"])
@pytest.mark.parametrize(("a", "b"), [("u8", "i8"), ("i8", "i8"), ("i8", "u8"), ("u8", "u8")])
def test_products_of_bytes_are_the_same_on_every_level(target: str, a: str, b: str) -> None:
    if target in LEVELS and LEVELS.index(target) > LEVELS.index(level_of(OWN)):
        pytest.skip(f"this processor is below {target}")
    params = f"a: {a}[13, 67], b: {b}[67, 77], az: {a}[13, 1], bz: {b}[1, 77]"
    module = parse_module(f"def main({params}) -> i32[13, 77] = matmul_integer(a, b, az, bz)")
    machine = vm.VirtualMachine(vm.build(module, target=target))
    random = np.random.default_rng(5)
    shapes = ((a, (13, 67)), (b, (67, 77)), (a, (13, 1)), (b, (1, 77)))
    args = [extremes(random, dtype, shape) for dtype, shape in shapes]
    left, right = (args[i].astype(np.int32) - args[i + 2].astype(np.int32) for i in (0, 1))
    np.testing.assert_array_equal(machine["main"](*args).numpy(), left @ right)


def extremes(random: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of mostly extreme numbers, whose products would reveal saturating arithmetic."""
    low, high = (-128, 127) if dtype == "i8" else (0, 255)
    chosen = random.choice([low, high, high, high - 1, low + 1, 3], shape)
    return chosen.astype(np.int8 if dtype == "i8" else np.uint8)


@pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed")
def test_clang_compiles_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELVM_CC", "clang")
    module = parse_module("def main(x: f32[3, 20], y: f32[20, 40]) = relu(matmul(x, y))")
    x, y = np.ones((3, 20), np.float32), np.ones((20, 40), np.float32)
    assert (vm.VirtualMachine(vm.build(module, target="c"))["main"](x, y).numpy() == 20).all()
