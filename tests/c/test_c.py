"""The C tests: each tests/c/test_*.c is a program that is built with the runtime under sanitizers and must succeed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from support.c_compiler import run_compiler
from support.modes import MODES

from relvm.bytecode.decode import decode
from relvm.bytecode.encode import encode
from relvm.bytecode.program import FunctionEntry, NativeCode, Program, call, constant, immediate, register, ret
from relvm.compiler.build import assemble, lower
from relvm.frontend.text import parse_module
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline
from relvm.runtime.executable import Executable
from relvm.tables import BUILTINS, csrc_directory, include_flags, runtime_sources

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
READERS = csrc_directory() / "readers"
SOURCES = [*runtime_sources(), *sorted(READERS.glob("*.c"))]
TESTS = sorted(HERE.glob("test_*.c"))
COMPILER = shutil.which("gcc") or shutil.which("clang")

WARNINGS = ["-std=gnu11", "-Wall", "-Wextra", "-Werror"]
# Exact fused multiply-adds are left out: they are the sources of kernels once more, which take long to compile.
INCLUDES = [*include_flags(), f"-I{READERS}", f"-I{HERE}", "-DRVM_WITHOUT_EXACT_FMA"]
LIBRARIES = ["-lpthread", "-ldl", "-lm"]
# Tests of threads run under the thread sanitizer.  All other tests are checked for memory errors, leaks and undefined
# behavior.
SANITIZERS = {"test_threads": "thread", "test_workers": "thread"}
USUAL_SANITIZERS = "address,undefined"

# The functions that sweep.c wraps.
SWEPT = (
    *("tensor_new", "tensor_of_strings", "shape_new", "tuple_new", "list_new", "string_new", "storage_new"),
    *("closure_new", "executable_load", "machine_new", "machine_function_new", "machine_call", "machine_invoke"),
    "profile_new",
    *(f"builtin_{builtin.name}" for builtin in BUILTINS),
)
# These tests count calls.  A sweep repeats calls, so their checks fail, and only errors that sweep.c or the sanitizers
# report matter.
COUNTING = {"test_debugger", "test_instrument", "test_kernel_hooks"}
# Tests that are not swept: tests of threads, and tests that take long and allocate nothing that other tests do not.
NOT_SWEPT = {*SANITIZERS, "test_steps", "test_step_calls", "test_onnx_reader"}
CHECKS_FAILED = 1
SWEEP_OPTIONS = {"ASAN_OPTIONS": "exitcode=99", "LSAN_OPTIONS": "exitcode=99", "UBSAN_OPTIONS": "exitcode=99"}

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")


def compile_c(*arguments: object) -> None:
    run_compiler(COMPILER, *arguments)


def compile_native_library(folder: Path) -> Path:
    library = folder / "library.so"
    compile_c(*WARNINGS, *INCLUDES, "-O1", "-shared", "-fPIC", HERE / "native_library.c", "-o", library)
    return library


@pytest.fixture(scope="session")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Path]]:
    """Return a function that compiles the runtime with given sanitizers, once, and returns the object files.

    allocation.c can make the allocations of this runtime fail.
    """

    @cache
    def build(sanitizers: str) -> list[Path]:
        folder = tmp_path_factory.mktemp("runtime")
        flags = [*WARNINGS, "-Wpedantic", *sanitizer_flags(sanitizers), "-DRVM_ALLOCATION_FAILS=test_allocation_fails"]
        objects = [folder / f"{source.stem}.o" for source in SOURCES]
        with ThreadPoolExecutor(2) as pool:
            jobs = [
                pool.submit(compile_c, *flags, *flags_of(s), *INCLUDES, "-c", s, "-o", o)
                for s, o in zip(SOURCES, objects, strict=True)
            ]
        for job in jobs:
            job.result()
        return objects

    return build


@pytest.fixture(scope="session")
def linked(tmp_path_factory: pytest.TempPathFactory, runtime: Callable[[str], list[Path]]) -> Callable[..., Path]:
    """Return a function that links some sources of this folder with the runtime, for given sanitizers.

    Each source is compiled once.
    """

    @cache
    def compiled(source: Path, sanitizers: str) -> Path:
        place = tmp_path_factory.mktemp("tested") / f"{source.stem}.o"
        compile_c(*WARNINGS, *sanitizer_flags(sanitizers), *INCLUDES, "-c", source, "-o", place)
        return place

    def link(sources: Sequence[Path], sanitizers: str, *options: str) -> Path:
        program = tmp_path_factory.mktemp("program") / sources[0].stem
        objects = [*(compiled(source, sanitizers) for source in sources), *runtime(sanitizers)]
        compile_c(*sanitizer_flags(sanitizers), *objects, *options, "-o", program, *LIBRARIES)
        return program

    return link


@pytest.fixture(scope="session")
def native_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the native library that test_native.c puts into native sections, and return its path."""
    return compile_native_library(tmp_path_factory.mktemp("native"))


def flags_of(source: Path) -> list[str]:
    """Return the options with which CMakeLists.txt compiles a source.  Integers of kernels wrap around."""
    return ["-fwrapv"] if source.stem in ("element_functions", "strip_moves", "micro_kernels") else []


def sanitizer_flags(sanitizers: str) -> list[str]:
    """Return the options for a set of sanitizers.  The few tests with threads run fast enough without optimization."""
    level = "-O0" if sanitizers == "thread" else "-O1"
    return ["-g", level, f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]


@pytest.mark.parametrize("test", TESTS, ids=lambda path: path.stem)
def test_c_program(test: Path, linked: Callable[..., Path], native_library: Path) -> None:
    program = linked((test, HERE / "allocation.c"), SANITIZERS.get(test.stem, USUAL_SANITIZERS))
    result = subprocess.run([program, native_library], capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stdout + result.stderr) == (0, "")


@pytest.mark.parametrize("test", [path for path in TESTS if path.stem not in NOT_SWEPT], ids=lambda path: path.stem)
def test_c_program_out_of_memory(test: Path, linked: Callable[..., Path], native_library: Path) -> None:
    """Run the test with sweep.c, which first repeats each call with a failure of its first, second, ... allocation."""
    wraps = [f"-Wl,--wrap=rvm_{name}" for name in SWEPT]
    program = linked((test, HERE / "allocation.c", HERE / "sweep.c"), USUAL_SANITIZERS, *wraps)
    environment = {**os.environ, **SWEEP_OPTIONS}
    result = subprocess.run([program, native_library], capture_output=True, text=True, timeout=300, env=environment)
    if result.returncode == CHECKS_FAILED and test.stem in COUNTING:
        return
    assert (result.returncode, result.stdout + result.stderr) == (0, "")


# ---- the example ----


@pytest.fixture(scope="session")
def relvm_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("example") / "relvm_run"
    example = ROOT / "examples" / "c" / "relvm_run.c"
    compile_c(*WARNINGS, "-Wpedantic", "-O0", *INCLUDES, example, *SOURCES, "-o", program, *LIBRARIES)
    return program


@pytest.fixture(scope="session")
def example_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save an executable with the function echo(x, y), which returns (x, y, [0.5, 1.5], 7, "text")."""
    arguments = (register(0), register(1), constant(0), immediate(7), constant(1))
    echo = FunctionEntry("echo", "bytecode", ("x", "y"), 3, (call(2, 0, *arguments), ret(2)))
    functions = (FunctionEntry("vm.builtin.make_tuple", "packed"), echo)
    program = Program(functions, (np.array([0.5, 1.5], np.float32), "text"))
    path = tmp_path_factory.mktemp("example") / "echo.rvm"
    Executable.from_program(program).save(path)
    return path


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["-3", "0.25"], '(-3, 0.25, f32[2] 0.5 1.5, 7, "text")'),
        (["f64[]", "i8[2,2]"], '(f64[] 0, i8[2,2] 0 1 2 3, f32[2] 0.5 1.5, 7, "text")'),
    ],
)
def test_example_runs_a_function(relvm_run: Path, example_file: Path, arguments: list[str], printed: str) -> None:
    result = subprocess.run([relvm_run, example_file, "echo", *arguments], capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, printed + "\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["echo", "1"], "error: echo: expected 2 arguments (x, y), got 1"),
        (["ecco"], "error: no function ecco"),
        (["echo", "1", "f32[x]"], "error: f32[x] is no int, float or tensor type"),
        (["echo", "1", "f31[2]"], "error: tensor: unknown dtype number"),
    ],
)
def test_example_reports_errors(relvm_run: Path, example_file: Path, arguments: list[str], message: str) -> None:
    result = subprocess.run([relvm_run, example_file, *arguments], capture_output=True, text=True)
    assert result.returncode == 1 and result.stderr.startswith(message)


@pytest.mark.parametrize("portable", [True, False])
def test_example_runs_the_portable_program_where_native_code_is_unsupported(
    relvm_run: Path, example_file: Path, tmp_path: Path, portable: bool
) -> None:
    inner = decode(example_file.read_bytes())
    native = NativeCode(b"", "riscv64-linux-gnu", "")
    path = tmp_path / "native.rvm"
    path.write_bytes(encode(replace(inner, native=native, portable=inner if portable else None)))
    result = subprocess.run([relvm_run, path, "echo", "1", "2"], capture_output=True, text=True)
    first, *rest = result.stderr.splitlines()
    assert "built for riscv64-linux-gnu" in first and first.endswith("; loading the portable program")
    if portable:
        assert (result.returncode, result.stdout, rest) == (0, '(1, 2, f32[2] 0.5 1.5, 7, "text")\n', [])
    else:
        assert result.returncode == 1 and rest[0].startswith("error: executable: it has no portable program")


def test_example_refuses_what_is_no_executable(relvm_run: Path) -> None:
    result = subprocess.run([relvm_run, __file__, "main"], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (1, "error: executable: not a relvm executable (wrong magic number)\n")


# ---- eight threads that share one executable ----

# The program has parallel kernels, string tensors, closures, lists, tuples, recursion and shapes.
TEXT = """
def main(x: f32[n, n]) -> (f32[], i64) {
  scaled = fn (y: f32[m, m], k: i64) -> f32[m, m] { return if k < 1 then y else tanh(matmul(y, y)) }
  parts = list_split(softmax(matmul(x, x)), 5, axis=0)
  y = list_concat(list_append(parts, x), axis=0)
  words = string_concat(const(str[3], ["a", "b", "c"]), string_case(const(str[], "SUFFIX"), upper=false))
  same = cast(string_equal(words, const(str[3], ["asuffix", "b", "csuffix"])), to=f32)
  total = add(sum(scaled(x, 1)), add(sum(y), sum(same)))
  return (total, @counted(0, make_list()))
}
def counted(i: i64, done: list[i64]) -> i64 {
  return if i == 200 then list_length(done) + list_item(done, 7) else @counted(i + 1, list_append(done, i * i))
}
"""


@pytest.mark.parametrize("mode", MODES)
def test_eight_threads_over_one_executable(
    mode: str, runtime: Callable[[str], list[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both the runtime and the native code are compiled with the thread sanitizer."""
    program = tmp_path / "program"
    source = HERE / "threads_over_one_executable.c"
    objects = runtime("thread")
    flags = [*WARNINGS, *sanitizer_flags("thread"), *INCLUDES]
    compile_c(*flags, source, HERE / "allocation.c", *objects, "-o", program, *LIBRARIES)
    monkeypatch.setenv("RELVM_CC", f"{COMPILER} -fsanitize=thread")
    lir = lower(run_passes(parse_module(TEXT), build_pipeline("c")))
    compiled = [routine.name for routine in lir.routines] if mode == "compiled" else []
    # vm.build would load the native code into Python, which runs without the sanitizer.
    (tmp_path / "model.rvm").write_bytes(encode(assemble(lir, compiled)))
    result = subprocess.run([program, tmp_path / "model.rvm"], capture_output=True, text=True, timeout=300)
    assert (result.returncode, result.stdout + result.stderr) == (0, "")
