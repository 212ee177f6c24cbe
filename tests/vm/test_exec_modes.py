"""Tests of exec_mode: a mode for each function, and "auto"."""

from __future__ import annotations

import gc
import hashlib
import itertools
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from support.modes import TARGETS, assert_same_bits, plain

from relvm import vm
from relvm.bytecode.container import crc32c, unpack_sections
from relvm.compiler import build_cache, toolchain
from relvm.compiler.build_cache import CacheEntry
from relvm.compiler.upgrade import compile_in_background
from relvm.errors import RelvmArgumentError, RelvmNameError, RelvmToolchainError
from relvm.frontend.text import parse_module
from relvm.ir.cache_key import set_cache_key
from relvm.runtime.background_compile import Upgrade
from relvm.runtime.packed_func import register_func

PROGRAM = parse_module("""
def even(n: i64) -> bool = if n == 0 then true else @odd(n - 1)
def odd(n: i64) -> bool = if n == 0 then false else @even(n - 1)

def add_n(n: i64) -> ((i64) -> i64) {
  f = fn (i: i64) -> i64 { return i + n }
  return f
}

def twice(f: (i64) -> i64, x: i64) -> i64 = f(f(x))

def sum(n: i64) -> i64 = if n <= 0 then 0 else n + @sum(n - 1)

def main(x: f32[n], k: i64) -> (f32[n], i64, bool, i64) {
  y = relu(add(x, const(f32[], 1)))
  z = @twice(@add_n(k), 1)
  return (y, z, @even(k), @sum(k))
}
""")
NAMES = ("even", "odd", "add_n", "twice", "sum", "main")
COUNTDOWN = parse_module("def main(n: i64, total: i64) -> i64 = if n == 0 then total else @main(n - 1, total + n)")


@pytest.mark.parametrize(
    "compiled", [c for size in (0, 1, 2, 3, 5, 6) for c in itertools.combinations(NAMES, size)][::3]
)
def test_any_mixture_gives_the_same(compiled) -> None:
    x = np.float32([-3, 0.5, 2])
    expected = plain(vm.VirtualMachine(vm.build(PROGRAM, target="numpy"))["main"](x, 7))
    executable = vm.build(PROGRAM, dict.fromkeys(compiled, "compiled"), "numpy")
    machine = vm.VirtualMachine(executable)
    assert machine.function_kinds == {name: "native" if name in compiled else "bytecode" for name in NAMES}
    assert_same_bits(plain(machine["main"](x, 7)), expected)
    loaded = vm.Executable.from_bytes(executable.to_bytes())
    assert_same_bits(plain(vm.VirtualMachine(loaded)["main"](x, 7)), expected)


@pytest.mark.parametrize("modes", [{"even": "compiled"}, {"odd": "compiled"}, {"*": "compiled", "odd": "bytecode"}])
def test_tail_calls_between_the_two_kinds_need_no_room(modes) -> None:
    machine = vm.VirtualMachine(vm.build(PROGRAM, modes, "numpy"), stack_values=64, call_depth=4)
    assert machine["even"](1_000_001) is False


def test_an_error_goes_through_both_kinds() -> None:
    module = parse_module("""
    def c(i: i64) -> i64 = 1 // i
    def b(i: i64) -> i64 = @c(i) + 1
    def main(i: i64) -> i64 = @b(i) + 1
    """)
    machine = vm.VirtualMachine(vm.build(module, {"b": "compiled"}, "numpy"))
    with pytest.raises(ArithmeticError) as raised:
        machine["main"](0)
    trace = "\n".join(raised.value.__notes__)
    assert [line.split()[1] for line in trace.split("\n")] == ["c", "b", "main"]
    assert machine["main"](1) == 3


def test_private_functions_go_with_those_that_use_them() -> None:
    module = parse_module("""
    private def _deep(n: i64) -> i64 = if n == 0 then 0 else @_deep(n - 1) + 1
    private def _shared(n: i64) -> i64 = if n == 0 then 0 else @_deep(n) + @_shared(n - 1)
    def first(n: i64) -> i64 = @_shared(n)
    def second(n: i64) -> i64 = @_shared(n) + 1
    """)

    def kinds(modes) -> dict[str, str]:
        functions = vm.build(module, modes, "numpy").functions.values()
        return {entry.name: entry.kind for entry in functions if entry.kind != "packed"}

    assert kinds({"first": "compiled"}) == dict.fromkeys(("_deep", "_shared", "first"), "native") | {
        "second": "bytecode"
    }
    assert kinds({"second": "compiled"})["_shared"] == "bytecode"
    assert kinds({"second": "compiled", "_shared": "compiled"})["_shared"] == "native"


@pytest.mark.parametrize(
    ("modes", "error", "message"),
    [
        ({"maim": "compiled"}, RelvmNameError, "exec_mode: no function maim; did you mean main"),
        ({"main": "auto"}, RelvmArgumentError, r"exec_mode\['main'\]='auto': expected one of bytecode, compiled"),
        ({"*": "native"}, RelvmArgumentError, r"exec_mode\['\*'\]='native'"),
    ],
)
def test_a_mapping_with_a_mistake_is_told(modes, error, message) -> None:
    with pytest.raises(error, match=message):
        vm.build(PROGRAM, modes, "numpy")


# ---- auto ----


def test_auto_runs_at_once_and_then_native_code() -> None:
    x = np.float32([-3, 0.5, 2])
    machine = vm.VirtualMachine(vm.build(PROGRAM, "auto"))
    first = plain(machine["main"](x, 7))
    assert machine.wait_compiled()
    assert machine.function_kinds == dict.fromkeys(NAMES, "native")
    assert_same_bits(plain(machine["main"](x, 7)), first)
    assert machine.wait_compiled(0)


def test_auto_switches_in_the_middle_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling begins when the function runs, and the run ends only when the function has become native code."""
    machines: list[vm.VirtualMachine] = []
    running = threading.Event()

    def done() -> bool:
        running.set()
        return machines[0].function_kinds["main"] == "native"

    register_func("test.auto.done", done, override=True)
    monkeypatch.setattr(
        "relvm.compiler.upgrade.Upgrade",
        lambda compile, budget: Upgrade(lambda publisher: compile(publisher) if running.wait(60) else None),
    )
    text = """
    def main(n: i64) => i64 {
      done = packed("test.auto.done") : bool
      return if done then n else @main(n + 1)
    }"""
    machines.append(vm.VirtualMachine(vm.build(parse_module(text), "auto", "numpy")))
    assert machines[0]["main"](0) > 0


def test_a_closure_made_before_runs_as_native_code_after() -> None:
    machine = vm.VirtualMachine(vm.build(PROGRAM, "auto", "numpy"))
    add_3 = machine["add_n"](3)
    assert add_3(4) == 7
    machine.wait_compiled()
    assert add_3(4) == 7 and machine["twice"](add_3, 1) == 7


def test_no_call_is_lost_or_wrong_while_many_machines_switch() -> None:
    executable = vm.build(COUNTDOWN, "auto", "numpy")
    executable.upgrade.begin()
    wrong: list = []

    def run() -> None:
        machine = vm.VirtualMachine(executable)
        for n in range(400):
            if machine["main"](n, 0) != n * (n + 1) // 2:
                wrong.append(n)
        machine.wait_compiled()
        if machine["main"](100, 0) != 5050 or machine.function_kinds != {"main": "native"}:
            wrong.append(machine.function_kinds)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_machines_made_before_and_after_and_dropped_meanwhile() -> None:
    executable = vm.build(COUNTDOWN, "auto", "numpy")
    executable.upgrade.begin()
    for _ in range(20):
        vm.VirtualMachine(executable)["main"](10, 0)
    gc.collect()
    machine = vm.VirtualMachine(executable)
    machine.wait_compiled()
    del executable
    gc.collect()
    assert machine["main"](1000, 0) == 500500
    assert vm.VirtualMachine(machine.executable)["main"](10, 0) == 55


@pytest.mark.parametrize("target", TARGETS)
def test_without_a_compiler_bytecode_goes_on(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELVM_CC", "none")
    machine = vm.VirtualMachine(vm.build(COUNTDOWN, "auto", target))
    with pytest.raises(RelvmToolchainError, match="no C compiler"):
        machine.wait_compiled()
    assert machine["main"](10, 0) == 55 and machine.function_kinds == {"main": "bytecode"}


def test_kernels_start_as_bytecode_and_become_native() -> None:
    module = parse_module("def main(x: f32[n], y: f32[n]) -> f32[n] = multiply(exp(x), y)")
    machine = vm.VirtualMachine(vm.build(module, "auto"))
    assert machine.executable.program.kernels and machine.executable.program.native is None
    x = np.linspace(-2, 2, 1000, dtype=np.float32)
    before = machine["main"](x, x).numpy()
    assert machine.wait_compiled() and machine.function_kinds == {"main": "native"}
    compiled = machine.executable.upgrade.executable
    assert compiled.program.native is not None and not compiled.program.kernels
    np.testing.assert_allclose(machine["main"](x, x).numpy(), before, rtol=1e-6)


def test_kernels_become_native_as_soon_as_their_unit_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The C code of one kernel is changed from + 3.25 to + 1003.25, so that results tell when its native code runs."""
    monkeypatch.setenv("RELVM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(toolchain.os, "cpu_count", lambda: 4)  # threads that compile, some of which wait here
    changed, last, routines = (3.25).hex(), (22.25).hex(), "unit: routines"
    released = {name: threading.Event() for name in (changed, last, routines)}
    compile_unit = toolchain._compile

    def compile_released(compiler: object, text: str, flags: tuple[str, ...]) -> bytes:
        for name, event in released.items():
            assert name not in text or event.wait(60)
        return compile_unit(compiler, text.replace(changed, (1003.25).hex()), flags)

    monkeypatch.setattr(toolchain, "_compile", compile_released)
    bindings = "\n".join(f"x{k + 1} = add(x{k}, const(f32[], {k}.25))" for k in range(25))
    module = parse_module(f"def main(x0: f32[n]) -> f32[n] {{\n{bindings}\nreturn x25 }}")
    machine = vm.VirtualMachine(vm.build(module, "auto", fused=False))
    upgrade = machine.executable.upgrade
    upgrade.begin()
    x, total = np.zeros(3, np.float32), sum(k + 0.25 for k in range(25))

    def wait_for_parts(count: int) -> None:
        end = time.monotonic() + 600
        while len(upgrade.parts) < count:
            assert time.monotonic() < end
            time.sleep(0.01)

    wait_for_parts(1)  # the unit of kernels 10 to 19
    assert machine["main"](x).numpy().tolist() == [total] * 3
    released[changed].set()
    wait_for_parts(2)
    assert machine["main"](x).numpy().tolist() == [total + 1000] * 3
    assert machine.function_kinds == {"main": "bytecode"} and not machine.wait_compiled(0)
    for event in released.values():
        event.set()
    assert machine.wait_compiled() and machine.function_kinds == {"main": "native"}
    assert len(upgrade.parts) == 3
    assert machine["main"](x).numpy().tolist() == [total + 1000] * 3


def test_the_cache_holds_bytecode_and_then_native_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELVM_CACHE_DIR", str(tmp_path / "cache"))
    module = parse_module("def main(x: f32[n]) -> f32[n] = exp(x)")
    with monkeypatch.context() as without:
        without.setenv("RELVM_CC", "none")
        for _ in range(2):
            executable = vm.build(set_cache_key(module, "test of the cache"), "auto")
            assert executable.program.native is None
    assert vm.VirtualMachine(vm.build(module, "auto")).wait_compiled()
    monkeypatch.setenv("RELVM_CC", "none")
    cached = vm.build(module, "auto")
    assert cached.program.native is not None and cached.upgrade is None
    assert vm.VirtualMachine(cached).wait_compiled() is True


def test_native_code_of_another_program_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both programs have the same function table, and differ in a constant or in an instruction."""
    monkeypatch.setenv("RELVM_CACHE_DIR", str(tmp_path / "cache"))
    texts = ("x + 1", "x + 2", "x - 1")
    built = [vm.build(parse_module(f"def main(x: i64) -> i64 = {text}"), "auto") for text in texts]
    compiled = []
    for executable in built:
        assert vm.VirtualMachine(executable).wait_compiled()
        compiled.append(executable.upgrade.executable)
    assert [each.replaces for each in compiled] == [each.digest for each in built] and len(set(built)) == 3
    for executable, expected in zip(built, (11, 12, 9), strict=True):
        machine = vm.VirtualMachine(vm.Executable.from_bytes(executable.to_bytes()))
        for other in compiled:
            if other.replaces != executable.digest:
                with pytest.raises(RelvmArgumentError, match="compiled for another program"):
                    machine._runner._switch_to(other)
        assert machine["main"](10) == expected and machine.function_kinds == {"main": "bytecode"}
        machine._runner._switch_to(compiled[built.index(executable)])
        assert machine["main"](10) == expected and machine.function_kinds == {"main": "native"}

    entry = CacheEntry("test")
    build_cache.write_executable(entry, compiled[1])
    digests = []
    compile_in_background(built[0], lambda _, digest: digests.append(digest) or compiled[0], entry)
    assert vm.VirtualMachine(built[0]).wait_compiled() and digests == [built[0].digest]


def test_the_digest_is_that_of_the_bytecode_and_the_constants() -> None:
    executable = vm.build(parse_module("def main(x: f32[2]) = add(exp(x), const(f32[2], [1, 2]))"), target="bytecode")
    sections = unpack_sections(executable.to_buffer())
    digest = hashlib.sha256()
    for name in ("strings", "functions", "constants", "code", "kernels"):
        digest.update(len(sections[name]).to_bytes(8, "little") + sections[name])
    data = sections["data"]
    digest.update(len(data).to_bytes(8, "little") + crc32c(data).to_bytes(4, "little"))
    assert executable.digest == digest.digest()


def test_waiting_where_nothing_will_come_is_an_error() -> None:
    with pytest.raises(RelvmArgumentError, match='not built with exec_mode="auto"'):
        vm.VirtualMachine(vm.build(COUNTDOWN, "bytecode", "numpy")).wait_compiled()
    assert vm.VirtualMachine(vm.build(COUNTDOWN, "compiled", "numpy")).wait_compiled() is True
