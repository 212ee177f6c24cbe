"""Executables whose native code this machine cannot run are recompiled, or replaced by their portable program."""

from __future__ import annotations

import logging
import pickle
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.modes import MODES

from relvm import tables, vm
from relvm._native import lib
from relvm.bytecode.container import pack_sections, unpack_sections
from relvm.bytecode.program import NativeCode
from relvm.codegen.c.module import CSource, source_text
from relvm.compiler import toolchain
from relvm.compiler.find_compiler import find_compiler
from relvm.compiler.toolchain import run_compiler
from relvm.errors import RelvmError, RelvmFormatError, RelvmUnsupportedError
from relvm.frontend.text import parse_module
from relvm.runtime.executable import Executable
from relvm.tables import CPU_FEATURES

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="no C compiler")

# The program has matrix products, rounding to integers (compiled with other flags), a loop, a closure and a private
# function.
MODULE = parse_module("""
def main(x: f32[n, 3], k: i64) -> (f32[n, 2], f32[n, 3], i64) {
  w = const(f32[3, 2], [[1.5, -2], [0.1, 3], [0.7, 1]])
  more = fn (y: f32[m, 2]) -> f32[m, 2] { return softmax(matmul(x, w), axis=1) }
  return (more(matmul(x, w)), round(multiply(x, const(f32[], 2.5))), @count(k, 0))
}
private def count(n: i64, total: i64) -> i64 = if n <= 0 then total else @count(n - 1, total + n)
""")
X = np.linspace(-2, 2, 21, dtype=np.float32).reshape(7, 3)
NEEDS_MORE = "int of_a_newer_library(void); int relvm_native_open(void) { return of_a_newer_library(); }"
LACKING = [row.option for row in CPU_FEATURES if not lib.rvm_cpu_features() >> row.index & 1]


def foreign(mode: str = "compiled", *, portable: bool = False, **changes: object) -> bytes:
    """Return an executable for a processor with an unknown feature.  changes: changed fields of its native section."""
    program = vm.build(MODULE, mode, portable=portable).program
    changed = replace(program.native, **{"cpu": "neon9", **changes})
    return Executable.from_program(replace(program, native=changed), elsewhere=True).to_bytes()


def loaded(content: bytes, *, trust_native: bool = True) -> Executable:
    return Executable.from_bytes(content, trust_native=trust_native, elsewhere=True)


def results(executable: Executable) -> list[np.ndarray]:
    return [np.asarray(value) for value in vm.VirtualMachine(executable)["main"](X, 9)]


def assert_close(executable: Executable) -> None:
    for got, expected in zip(results(executable), results(vm.build(MODULE)), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", ["c", "numpy"])
def test_what_runs_here_stays(mode: str, target: str, caplog: pytest.LogCaptureFixture) -> None:
    executable = vm.build(MODULE, mode, target)
    again = loaded(executable.to_bytes(), trust_native=False)
    for each in (executable, again):
        assert each.unsupported_reason == "" and vm.adapt(each) is each
    assert not caplog.records and all(map(np.array_equal, results(again), results(executable)))


@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_the_source_is_compiled_to_what_a_build_here_is(
    mode: str, portable: bool, caplog: pytest.LogCaptureFixture
) -> None:
    adapted = vm.adapt(loaded(foreign(mode, portable=portable)))
    built = vm.build(MODULE, mode, portable=portable)
    assert adapted.to_bytes() == built.to_bytes()
    assert all(map(np.array_equal, results(adapted), results(built)))
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("relvm", logging.WARNING)
    assert (
        "lacks neon9" in record.message
        and "compiling the C source in the executable for this processor" in record.message
    )


@pytest.mark.skipif("xop" not in LACKING, reason="not x86-64, or an AMD processor of 2011 to 2016")
@pytest.mark.parametrize("mode", MODES)
def test_features_that_the_processor_lacks(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    executable = vm.build(MODULE, mode, "c -march=x86-64-v4 -mxop", portable=True)
    assert vm.adapt(executable).to_bytes() == vm.build(MODULE, mode, portable=True).to_bytes()
    assert "xop" in caplog.records[0].message


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"triple": "riscv64-linux-gnu", "cpu": ""}, "for riscv64-linux-gnu"),
        ({"abi_version": tables.ABI_VERSION + 1}, f"but this runtime has version {tables.ABI_VERSION}"),
    ],
)
def test_other_architectures_and_versions(
    changes: dict[str, object], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    executable = loaded(foreign(**changes))
    assert words in executable.unsupported_reason
    assert vm.adapt(executable).to_bytes() == vm.build(MODULE, "compiled").to_bytes()
    assert words in caplog.records[0].message


def test_native_code_that_needs_another_system(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The native code needs a newer C library than that of this machine."""
    (tmp_path / "newer.c").write_text(NEEDS_MORE)
    run_compiler(find_compiler(), ["-shared", "-fPIC", "newer.c", "-o", "newer.so"], tmp_path)
    content = foreign(cpu="", library=(tmp_path / "newer.so").read_bytes())
    with pytest.raises(RelvmUnsupportedError, match="of_a_newer_library"):
        Executable.from_bytes(content, trust_native=True)
    executable = loaded(content)
    for _ in range(2):
        with pytest.raises(RelvmUnsupportedError, match=r"native code: .*of_a_newer_library"):
            vm.VirtualMachine(executable)
    assert vm.adapt(executable).to_bytes() == vm.build(MODULE, "compiled").to_bytes()
    assert "of_a_newer_library" in caplog.records[0].message


@pytest.mark.parametrize("variables", [{"RELVM_CC": "none"}, {"RELVM_CC": "/nonexistent/cc"}, {"PATH": ""}])
@pytest.mark.parametrize("mode", MODES)
def test_without_a_compiler_the_portable_program_runs(
    mode: str, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    content = foreign(mode, portable=True)
    with monkeypatch.context() as context:
        for name in ("RELVM_CC", "CC"):
            context.delenv(name, raising=False)
        for name, value in variables.items():
            context.setenv(name, value)
        context.setitem(sys.modules, "ziglang", None)  # as if the package were not installed
        adapted = vm.adapt(loaded(content))
    assert adapted.to_bytes() == vm.build(MODULE, "bytecode", "bytecode").to_bytes()
    assert_close(adapted)
    (record,) = caplog.records
    assert "lacks neon9" in record.message and "compiler" in record.message
    assert "running the portable program" in record.message


def test_where_nothing_helps_the_error_says_what_would(monkeypatch: pytest.MonkeyPatch) -> None:
    executable = loaded(foreign())
    monkeypatch.setenv("RELVM_CC", "none")
    with pytest.raises(RelvmUnsupportedError, match=r"lacks neon9; no C compiler found .*vm\.build\(portable=True\)"):
        vm.adapt(executable)


def changed_source(text: str, *, portable: bool) -> Executable:
    program = loaded(foreign(portable=portable)).program
    return Executable.from_program(replace(program, source=text), elsewhere=True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the executable contains no C source"),
        ("int x;", "does not state which version of the relvm headers"),
        (f"/* headers of relvm: {'0' * 64} */\n/* unit: kernels */\n", "headers of another version"),
        (source_text(CSource(("/* unit: kernels */\nno C\n",), "")), "the C compiler failed"),
        (source_text(CSource((f"/* unit: kernels */\n{NEEDS_MORE}",), "")), "of_a_newer_library"),
    ],
    ids=["none", "no head", "other headers", "no C", "what it makes cannot be opened"],
)
def test_a_source_that_cannot_be_compiled_or_run(text: str, words: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(RelvmUnsupportedError, match=words) as caught:
        vm.adapt(changed_source(text, portable=False))
    assert "\n" not in str(caught.value) and not caplog.records
    assert_close(vm.adapt(changed_source(text, portable=True)))
    assert words in caplog.records[0].message


# ---- trust ----


@pytest.fixture
def never_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """`vm.adapt` fails the test if it compiles.  Builds, which pass more than the source, go on to compile."""
    compile_native = toolchain.compile_native

    def compile_in_builds(source: CSource, *options: Any) -> NativeCode:
        return compile_native(source, *options) if options else pytest.fail("it was compiled")

    monkeypatch.setattr(toolchain, "compile_native", compile_in_builds)


@pytest.mark.usefixtures("never_compiled")
def test_the_source_of_an_untrusted_file_is_not_compiled() -> None:
    with pytest.raises(
        RelvmUnsupportedError, match="compiling the C source in the executable requires trust_native=True"
    ):
        vm.adapt(loaded(foreign(), trust_native=False))
    assert_close(vm.adapt(loaded(foreign(portable=True), trust_native=False)))


@pytest.mark.usefixtures("never_compiled")
def test_native_code_that_was_not_compiled_here_is_not_run_either(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    contents = [vm.build(MODULE, "compiled", portable=portable).to_bytes() for portable in (False, True)]
    monkeypatch.setenv("RELVM_CACHE_DIR", str(tmp_path))
    with pytest.raises(RelvmUnsupportedError, match="not built on this machine; pass trust_native=True"):
        Executable.from_bytes(contents[1])
    without, with_portable = (loaded(content, trust_native=False) for content in contents)
    with pytest.raises(RelvmUnsupportedError, match="was not built on this machine and is not trusted"):
        vm.VirtualMachine(without)
    with pytest.raises(
        RelvmUnsupportedError, match="was not built on this machine and is not trusted; compiling the C source"
    ):
        vm.adapt(without)
    assert_close(vm.adapt(with_portable))
    assert "not trusted" in caplog.records[0].message
    trusted = loaded(contents[1])
    assert vm.adapt(trusted) is trusted


def calling() -> bytes:
    """Return an executable for another processor that calls a host function."""
    vm.register_func("test.adapted", lambda x: x, override=True)
    text = 'def main(x: f32[n]) => f32[n] { return packed("test.adapted", relu(x)) : f32[n] }'
    program = vm.build(parse_module(text), portable=True).program
    return Executable.from_program(
        replace(program, native=replace(program.native, cpu="neon9")), elsewhere=True
    ).to_bytes()


def test_a_portable_program_may_call_what_the_load_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    content = calling()
    monkeypatch.setenv("RELVM_CC", "none")
    with pytest.raises(RelvmUnsupportedError, match=r"the program calls the registered function .test\.adapted"):
        vm.adapt(Executable.from_bytes(content, elsewhere=True))
    names = iter(["test.adapted", "reference.*"])
    allowed = vm.adapt(Executable.from_bytes(content, elsewhere=True, functions=names))
    trusted = vm.adapt(Executable.from_bytes(content, elsewhere=True, trust_native=True))
    for executable in (allowed, trusted):
        assert vm.VirtualMachine(executable)["main"](np.float32([-1, 2])).numpy().tolist() == [0, 2]


def test_what_was_only_checked_is_not_adapted(tmp_path: Path) -> None:
    path = tmp_path / "calling.rvm"
    for content in (calling(), vm.build(MODULE, target="bytecode").to_bytes()):
        path.write_bytes(content)
        with pytest.raises(RelvmUnsupportedError) as caught:
            vm.adapt(Executable.check(path))
        assert str(caught.value) == f"{path}: the executable was loaded for checking only and cannot run"


# ---- the portable program ----


def carrying(portable: bytes, outer: bytes | None = None) -> Executable:
    """Return an executable for another processor with the given portable program.  outer: the executable to change."""
    sections = {name: [section] for name, section in unpack_sections(outer or foreign()).items()}
    return loaded(bytes(pack_sections(sections | {"portable": [portable]})))


def test_only_what_has_native_code_gets_a_portable_program() -> None:
    assert vm.build(MODULE, target="numpy", portable=True).to_bytes() == vm.build(MODULE, target="numpy").to_bytes()
    assert vm.build(MODULE).portable is None
    assert vm.build(MODULE, "compiled", "numpy", portable=True).portable is not None


def test_a_portable_program_for_debugging_says_where_its_instructions_come_from() -> None:
    portable = vm.build(MODULE, "compiled", debug=True, portable=True).portable
    assert portable.to_bytes() == vm.build(MODULE, target="bytecode", debug=True).to_bytes()


def test_it_is_kept_wherever_the_executable_goes(tmp_path: Path) -> None:
    executable = vm.build(MODULE, portable=True)
    portable = executable.portable.to_bytes()
    executable.save(tmp_path / "model.rvm")
    vm.export_library(executable, tmp_path / "libmodel.so")
    for file in ("model.rvm", "libmodel.so"):
        assert vm.load(tmp_path / file, elsewhere=True).portable.to_bytes() == portable
        assert Executable.check(tmp_path / file).portable.to_bytes() == portable
    assert pickle.loads(pickle.dumps(executable)).portable.to_bytes() == portable
    size = executable.stats().portable_bytes
    assert 0 < size < len(portable) and f"the portable program {size}" in str(executable.stats())


def test_tensors_of_both_programs_are_stored_once(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).standard_normal((100, 300)).astype(np.float32)
    module = parse_module(f"def main(x: f32[n, 100]) = relu(matmul(x, const(f32[100, 300], {weights.tolist()})))")
    path = tmp_path / "model.rvm"
    for mode in ("bytecode", "compiled"):
        executable = vm.build(module, mode, portable=True)
        data = len(unpack_sections(executable.to_bytes())["data"])
        assert weights.nbytes <= data == len(unpack_sections(vm.build(module, mode).to_bytes())["data"])
        assert executable.stats().portable_bytes < weights.nbytes / 2
        executable.save(path)
        x = np.ones((2, 100), np.float32)
        for portable in (
            executable.portable,
            vm.load(path).portable,
            Executable.from_bytes(executable.portable.to_bytes()),
        ):
            np.testing.assert_array_equal(
                vm.VirtualMachine(portable)["main"](x), vm.VirtualMachine(executable)["main"](x)
            )


def test_a_portable_program_may_have_tensors_of_its_own() -> None:
    native = loaded(foreign()).program
    own = vm.build(parse_module("def main(x: f32[2]) = add(x, const(f32[2], [3, 4]))"), target="bytecode").program
    executable = Executable.from_program(replace(native, portable=own), elsewhere=True)
    copies = (executable, loaded(executable.to_bytes()), Executable.from_program(executable.program, elsewhere=True))
    for each in copies:
        np.testing.assert_array_equal(vm.VirtualMachine(each.portable)["main"](np.zeros(2, np.float32)), [3, 4])
        assert each.to_bytes() == executable.to_bytes()


def test_a_file_of_format_1_2_has_a_portable_program_with_its_own_copy_of_the_tensors() -> None:
    executable = carrying(vm.build(MODULE, target="bytecode").to_bytes())
    assert_close(executable.portable)
    assert_close(vm.adapt(loaded(executable.to_bytes(), trust_native=False)))


def test_it_is_used_in_place(tmp_path: Path) -> None:
    path = tmp_path / "model.rvm"
    path.write_bytes(foreign(portable=True))
    portable = vm.load(path, elsewhere=True).portable
    path.unlink()
    assert_close(portable)  # it uses the memory mapping of its outer executable, which no longer exists


def plain() -> bytes:
    return vm.build(MODULE, target="numpy").to_bytes()


def nested() -> bytes:
    return carrying(plain(), plain()).to_bytes()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: b"nothing", "magic number"),
        (lambda: bytes(100), "magic number"),
        (lambda: plain()[:-64], "the header says"),
        (lambda: vm.build(MODULE).to_bytes(), "must not contain a section native"),
        (nested, "must not contain a section native or portable"),
        (lambda: plain().replace(b"reference.round", b"reference.rounb"), "is damaged"),
    ],
    ids=["short", "zeros", "cut", "native", "portable", "damaged"],
)
def test_a_portable_program_that_is_none_is_refused(make: Callable[[], bytes], words: str, tmp_path: Path) -> None:
    path = tmp_path / "model.rvm"
    carrying(make()).save(path)
    executable = vm.load(path, elsewhere=True)
    for use in (lambda: vm.adapt(executable), lambda: executable.portable, lambda: Executable.check(path)):
        with pytest.raises(RelvmFormatError, match=rf"model\.rvm: its portable program: .*{words}"):
            use()


def test_a_portable_program_of_another_major_version_is_refused() -> None:
    content = bytearray(plain())
    content[8] = 9
    with pytest.raises(RelvmUnsupportedError, match=r"its portable program: .*version 9"):
        _ = carrying(bytes(content)).portable


def test_no_cut_or_flipped_byte_of_it_gets_through() -> None:
    content = vm.build(parse_module("def main(i: i64) -> i64 = i + 1"), target="numpy").to_bytes()
    outer = foreign()
    for at in range(0, len(content), 7):
        flipped = content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :]
        for damaged in (flipped, content[:at] or b"x"):
            executable = carrying(damaged, outer)
            with pytest.raises(RelvmError):
                _ = executable.portable
            with pytest.raises(RelvmError):
                vm.adapt(executable)
            assert "main" in executable.signature
