"""Tests of executables exported as shared libraries, which are used from C and from Python."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.modes import MODES

from relvm import vm
from relvm.compiler import toolchain
from relvm.errors import RelvmFormatError, RelvmToolchainError, RelvmUnsupportedError
from relvm.frontend.text import parse_module
from relvm.runtime.file_io import LIBRARY_SECTION, map_executable
from relvm.tables import STATUS, TAGS, include_flags, numbers, runtime_sources

ROOT = Path(__file__).resolve().parents[2]
MODEL = (ROOT / "examples" / "c" / "model.relvm").read_text()
COMPILER = shutil.which("gcc") or shutil.which("clang")
ARGUMENT_ERROR = numbers(STATUS)["ARGUMENT_ERROR"]
# With optimization, the compiler would take more than a minute for the runtime with its checks.
SANITIZED = "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g -O0"

# Functions that call each other, in kernels with indices.
MIXED = """
def dense(x: f32[n, 4], i: i64) -> f32[n, 2] with (inline=false) {
  weight = const(f32[4, 2], [[1, -1], [0.5, 0.25], [-2, 1], [0.125, 3]])
  return if i > 0 then @sorted(x, i - 1) else relu(matmul(x, weight))
}
def sorted(x: f32[n, 4], i: i64) -> f32[n, 2] with (inline=false) {
  places = argtopk(sum(x, axes=(1,)), shape(n), axis=0)
  return softmax(@dense(gather(x, places, axis=0), i), axis=0)
}
def main(x: f32[n, 4]) -> f32[n, 2] = @dense(x, 3)
"""
MIXED_MODES = [*MODES, {"main": "compiled", "sorted": "compiled"}]

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")


@pytest.fixture(scope="module", params=MODES)
def executable(request: pytest.FixtureRequest) -> vm.Executable:
    return vm.build(parse_module(MODEL), request.param)


@pytest.fixture(scope="module")
def library(executable: vm.Executable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("library") / "libmodel.so"
    vm.export_library(executable, path)
    return path


def compile_example(folder: Path, *flags: str) -> Path:
    """Compile the C example and link it to libmodel.so in `folder`.  Return the program."""
    program = folder / "relvm_module"
    warnings = ["-std=gnu11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    places = [f"-I{ROOT / 'csrc' / 'include'}", f"-L{folder}", "-lmodel", f"-Wl,-rpath,{folder}"]
    command = [
        COMPILER,
        *warnings,
        *flags,
        str(ROOT / "examples" / "c" / "relvm_module.c"),
        *places,
        "-o",
        str(program),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program


def run_example(program: Path, *arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=120)


def expected(executable: vm.Executable, rows: int) -> np.ndarray:
    x = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)
    return vm.VirtualMachine(executable)["main"](x).numpy()


def test_a_program_in_c_gets_the_results_of_python(executable: vm.Executable, library: Path) -> None:
    program = compile_example(library.parent)
    for rows in (3, 1, 0):
        done = run_example(program, rows, 4)
        assert (done.returncode, done.stderr) == (0, "")
        got = np.array(done.stdout.split(), np.float32)  # nine digits represent a float exactly
        np.testing.assert_array_equal(got, expected(executable, rows).reshape(-1))


def test_a_program_in_c_gets_the_machine_s_error(library: Path) -> None:
    done = run_example(compile_example(library.parent), 3, 5)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: main: argument x: expected dimension 1 to be 4, got 5\n"


EXPORT = """
import json, sys
from relvm import vm
from relvm.frontend.text import parse_module
vm.export_library(vm.build(parse_module(sys.argv[1]), json.loads(sys.argv[2])), sys.argv[3])
"""


@pytest.fixture(scope="module")
def sanitizing_compiler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compiler that adds the sanitizers."""
    path = tmp_path_factory.mktemp("compiler") / "cc"
    path.write_text(f'#!/bin/sh\nexec {COMPILER} "$@" {SANITIZED}\n')
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("mode", MIXED_MODES, ids=["bytecode", "compiled", "mixed"])
def test_sanitizers_find_nothing(mode: str | dict[str, str], sanitizing_compiler: Path, tmp_path: Path) -> None:
    """The runtime, the kernels and the native functions are compiled with the sanitizers."""
    names = [f"lib{name}.so" for name in ("asan", "ubsan")]
    found = [subprocess.run([COMPILER, f"-print-file-name={name}"], capture_output=True, text=True) for name in names]
    preloaded = [each.stdout.strip() for each in found]
    if not all(map(os.path.isabs, preloaded)):
        pytest.skip("this compiler has no sanitizers")
    environment = {"RELVM_CC": str(sanitizing_compiler)}
    environment |= {"LD_PRELOAD": " ".join(preloaded), "ASAN_OPTIONS": "detect_leaks=0"}  # to load the native code
    command = [sys.executable, "-P", "-c", EXPORT, MIXED, json.dumps(mode), str(tmp_path / "libmodel.so")]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    program = compile_example(tmp_path, *SANITIZED.split())
    rows = expected(vm.build(parse_module(MIXED), "bytecode", "bytecode"), 3)
    for columns, status in ((4, 0), (5, 1)):
        done = run_example(program, 3, columns)
        assert done.returncode == status and "Sanitizer" not in done.stderr and "runtime error" not in done.stderr
        if status == 0:
            np.testing.assert_allclose(np.array(done.stdout.split(), np.float32), rows.reshape(-1), rtol=1e-6)


def test_the_runtime_is_compiled_once(tmp_path: Path, monkeypatch, cache: Path) -> None:
    compiled = []
    compile_file = toolchain._compile_file
    monkeypatch.setattr(toolchain, "_compile_file", lambda *args: compiled.append(args[1]) or compile_file(*args))
    executable = vm.build(parse_module(MODEL), target="numpy")
    for name in ("first.so", "again.so"):
        vm.export_library(executable, tmp_path / name)
    assert sorted(path.name for path in compiled) == sorted(path.name for path in runtime_sources())
    damaged = next((cache / "compiled").iterdir())
    damaged.write_bytes(damaged.read_bytes()[:-1])
    vm.export_library(executable, tmp_path / "again.so")
    assert len(compiled) == len(set(compiled)) + 1
    ctypes.CDLL(str(tmp_path / "again.so"))


def test_only_the_interface_is_exported(library: Path) -> None:
    if not shutil.which("nm"):
        pytest.skip("no nm")
    listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True)
    names = {line.split()[-1] for line in listed.stdout.splitlines()}
    text = re.sub(r"/\*.*?\*/", "", (ROOT / "csrc" / "include" / "relvm.h").read_text(), flags=re.DOTALL)
    declared = set(re.findall(r"^[a-z][\w ]*[ *](rvm_\w+|relvm_\w+)\(", text, flags=re.MULTILINE))
    assert names == declared and "relvm_module_load" in names


def test_python_loads_the_executable_inside(executable: vm.Executable, tmp_path: Path) -> None:
    path = tmp_path / "model.so"
    vm.export_library(executable, path)
    loaded = vm.load(path)
    assert loaded.to_bytes() == executable.to_bytes()
    np.testing.assert_array_equal(expected(loaded, 3), expected(executable, 3))
    assert [each.name for each in tmp_path.iterdir()] == ["model.so"]


def test_two_libraries_in_one_process(library: Path, tmp_path: Path) -> None:
    b = vm.ExecBuilder()
    with b.function("another", ["x"]):
        b.emit_ret(b.r(0))
    vm.export_library(b.get(), tmp_path / "another.so")
    found = []
    for path in (library, tmp_path / "another.so"):
        opened = ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
        executable, error = ctypes.c_void_p(), (ctypes.c_int64 * 2)()
        assert opened.relvm_module_load(ctypes.byref(executable), error) == 0
        found.append([opened.rvm_executable_find(executable, name) >= 0 for name in (b"main", b"another")])
        opened.rvm_executable_release(executable)
    assert found == [[True, False], [False, True]]


def test_a_wrong_place_for_the_executable_is_refused(library: Path) -> None:
    """Invalid arguments of relvm_module_load, which tests/c/test_api.c cannot test."""
    opened = ctypes.CDLL(str(library))
    executable, error = ctypes.c_void_p(), (ctypes.c_int64 * 2)()
    assert opened.relvm_module_load(None, error) == ARGUMENT_ERROR and error[0] == numbers(TAGS)["ERROR"]
    opened.rvm_value_release(error)
    assert opened.relvm_module_load(None, None) == ARGUMENT_ERROR
    assert opened.relvm_module_load(ctypes.byref(executable), None) == 0
    opened.rvm_executable_release(executable)


def test_python_runs_nothing_of_the_library(executable: vm.Executable, tmp_path: Path) -> None:
    executable.save(tmp_path / "module.rvm")
    source = ROOT / "csrc" / "library" / "module.c"
    (tmp_path / "evil.c").write_text(
        f'#include "{source}"\n#include <stdlib.h>\n'
        "__attribute__((constructor)) static void start(void) { abort(); }\n"
    )
    module = '-DRVM_MODULE="module.rvm"'
    command = [COMPILER, "-shared", "-fPIC", "-w", module, *include_flags(), "evil.c", "-o", "evil.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    opened = subprocess.run([sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(tmp_path / 'evil.so')!r})"])
    assert opened.returncode != 0
    np.testing.assert_array_equal(expected(vm.load(tmp_path / "evil.so"), 2), expected(executable, 2))


@pytest.mark.skipif(not importlib.util.find_spec("ziglang"), reason="pip install ziglang")
def test_a_compiler_with_a_cache_embeds_the_present_executable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """zig cc does not notice other contents of a file that assembly code includes."""
    monkeypatch.setenv("RELVM_CC", shlex.join([sys.executable, "-m", "ziglang", "cc"]))
    for operator, expected_value in ("add", 6), ("multiply", 9):
        module = parse_module(f"def main(x: f32[1]) -> f32[1] = {operator}(x, x)")
        vm.export_library(vm.build(module, target="bytecode"), tmp_path / "model.so")
        machine = vm.VirtualMachine(vm.load(tmp_path / "model.so"))
        assert machine["main"](np.float32([3])).numpy() == [expected_value]


def test_native_code_in_a_library_of_another_machine_is_not_trusted(tmp_path: Path, monkeypatch) -> None:
    vm.export_library(vm.build(parse_module(MODEL), "compiled"), tmp_path / "model.so")
    monkeypatch.setenv("RELVM_CACHE_DIR", str(tmp_path / "another user's cache"))
    with pytest.raises(RelvmUnsupportedError, match=r"model\.so: .*trust_native=True"):
        vm.load(tmp_path / "model.so")
    assert expected(vm.load(tmp_path / "model.so", trust_native=True), 1).shape == (1, 2)


def test_a_library_without_an_executable_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.c").write_text("int nothing;\n")
    subprocess.run([COMPILER, "-shared", "empty.c", "-o", "empty.so"], cwd=tmp_path, check=True)
    with pytest.raises(RelvmFormatError, match=r"empty\.so: the shared library contains no executable"):
        vm.load(tmp_path / "empty.so")


def test_a_damaged_library_is_refused(executable: vm.Executable, library: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.so"
    content = library.read_bytes()
    start = content.index(executable.to_bytes())
    for length in [*range(4, 64), 64, 1000, start + 100, len(content) - 100, len(content) - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(RelvmFormatError, match=r"model\.so: "):
            vm.load(path)
    for position in (4, 5, *range(44, 48), *range(58, 64)):  # class, byte order, and position of the section table
        path.write_bytes(content[:position] + b"\xff" + content[position + 1 :])
        with pytest.raises(RelvmFormatError, match=r"model\.so: "):
            vm.load(path)
    path.write_bytes(content[: start + 100] + b"\xff" + content[start + 101 :])
    with pytest.raises(RelvmFormatError, match=r"model\.so: .*checksum"):
        vm.load(path)


def test_a_large_executable_is_used_in_place(tmp_path: Path) -> None:
    b = vm.ExecBuilder()
    large = np.arange(4_000_000, dtype=np.float64)
    with b.function("main"):
        b.emit_call("vm.builtin.copy", [b.const(large)], dst=b.r(0))
        b.emit_ret(b.r(0))
    vm.export_library(b.get(), tmp_path / "large.so")
    assert os.path.getsize(tmp_path / "large.so") - large.nbytes < 1 << 20
    assert np.frombuffer(map_executable(tmp_path / "large.so"), np.uint8).ctypes.data % 64 == 0
    np.testing.assert_array_equal(vm.VirtualMachine(vm.load(tmp_path / "large.so"))["main"](), large)


def test_without_a_compiler_there_is_none(executable: vm.Executable, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("RELVM_CC", "none")
    with pytest.raises(RelvmToolchainError, match="no C compiler"):
        vm.export_library(executable, tmp_path / "model.so")


@pytest.mark.parametrize("compiler", ["false", "sh -c 'echo no; exit 3'"])
def test_a_failure_leaves_the_old_library(executable: vm.Executable, tmp_path: Path, monkeypatch, compiler) -> None:
    fake = tmp_path / "fake-cc"
    fake.write_text(f'#!/bin/sh\n[ "$1" = --version ] || exec {compiler}\n')
    fake.chmod(0o755)
    (tmp_path / "model.so").write_text("old")
    monkeypatch.setenv("RELVM_CC", str(fake))
    with pytest.raises(RelvmToolchainError, match="the C compiler failed"):
        vm.export_library(executable, tmp_path / "model.so")
    assert (tmp_path / "model.so").read_text() == "old"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["fake-cc", "model.so"]


def test_the_section_s_name_is_that_of_the_source() -> None:
    assert f".section {LIBRARY_SECTION}," in (ROOT / "csrc" / "library" / "module.c").read_text()


def test_the_commands_of_the_readme(tmp_path: Path) -> None:
    section = (ROOT / "README.md").read_text().partition("## From C")[2]
    commands = re.search(r"```sh\n(.*?)```", section, flags=re.DOTALL)[1]
    for name in ("examples", "csrc"):
        (tmp_path / name).symlink_to(ROOT / name)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euc", commands], cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"PATH": path}
    )
    assert done.returncode == 0, done.stderr
    got = np.array(done.stdout.split(), np.float32)
    np.testing.assert_array_equal(got, expected(vm.build(parse_module(MODEL), "compiled"), 3).reshape(-1))
