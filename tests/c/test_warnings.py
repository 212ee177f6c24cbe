"""The C sources compile without warnings with each installed compiler.

This includes the runtime, the Python extension, and generated C with the headers that it includes.
"""

from __future__ import annotations

import shutil
import sysconfig
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest
from support.c_compiler import run_compiler
from support.documents import ROOT

from relvm.codegen.c.module import CSource, print_c
from relvm.compiler.build import lower
from relvm.frontend.text import parse_module
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline
from relvm.tables import include_flags, runtime_sources

COMPILERS = ("gcc", "clang")
FLAGS = ["-std=gnu11", "-O2", "-DNDEBUG", "-fPIC", "-Wall", "-Wextra", "-Werror", *include_flags()]
READERS = ROOT / "csrc" / "readers"
FLAGS.append(f"-I{READERS}")
# Not used for the Python extension: Python's type slots store functions as `void *`, which ISO C does not allow.
PEDANTIC = ["-Wpedantic"]
PYTHON = ["-isystem", sysconfig.get_path("include"), "-DPy_LIMITED_API=0x030b0000"]
# Warnings about constructs that are normal in generated code.
QUIET = [
    f"-Wno-{name}"
    for name in ("unused-parameter", "unused-variable", "unused-label", "unused-but-set-variable", "type-limits")
]
# Programs whose kernels include each header in csrc/codegen, and all kinds of routines.
TEXT = """
def product(x: f32[n, 24], y: f32[24, 40]) -> f32[n, 40] = relu(matmul(x, y))
def bytes(x: u8[n, 24], y: i8[24, 40]) -> i32[n, 40] = matmul_integer(x, y, const(u8[], 3), const(i8[], 0))
def heads(q: f32[b, 8, m, 32], k: f32[b, 8, p, 32], v: f32[b, 8, p, 32]) -> f32[b, 8, m, 32] {
  return attention(q, k, v, const(bool[], true), const(f32[], 0.0), scale=0.125)
}
def tiles(x: f32[1, 8, 20, 20], w: f32[8, 8, 3, 3]) -> f32[1, 8, 18, 18] = conv(x, w)
def math(x: f32[n]) -> f32[n] = add(add(exp(x), log(x)), add(tanh(x), add(erf(x), add(sin(x), cos(x)))))
def narrow(x: f16[n], y: bf16[n]) -> f32[n] = add(cast(x, to=f32), cast(y, to=f32))
def converted(x: f32[n]) -> i8[n] = cast(x, to=i8)
def fib(n: i64) -> i64 { return if n < 2 then n else @fib(n - 1) + @fib(n - 2) }
def halves(x: f64, n: i64) -> f64 { return if n == 0 then x else @halves(x / 2.0, n - n // n) }
def many(x: f32[n], k: i64) -> (f32[n], list[i64]) {
  scaled = fn (y: f32[m], k: i64) -> f32[m] { return if k < 1 then y else tanh(y) }
  return (scaled(x, k), list_append(make_list(k), 2))
}
"""


@cache
def generated() -> CSource:
    lir = lower(run_passes(parse_module(TEXT), build_pipeline("c")))
    return print_c(lir, routines=[routine.name for routine in lir.routines])


def expect_no_warning(compiler: str, folder: Path, sources: Sequence[Path], *flags: str) -> None:
    command = shutil.which(compiler)
    if command is None:
        pytest.skip(f"no {compiler}")

    def compile_one(source: Path) -> None:
        run_compiler(command, *FLAGS, *flags, "-c", source, "-o", folder / f"{source.stem}.o")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(compile_one, sources))


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_warning_is_an_error(compiler: str, tmp_path: Path) -> None:
    source = tmp_path / "unused.c"
    source.write_text("int f(int a) { return 0; }\n")
    with pytest.raises(AssertionError, match="unused"):
        expect_no_warning(compiler, tmp_path, [source])


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_runtime(compiler: str, tmp_path: Path) -> None:
    expect_no_warning(compiler, tmp_path, [*runtime_sources(), *sorted(READERS.glob("*.c"))], *PEDANTIC)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_python_extension(compiler: str, tmp_path: Path) -> None:
    expect_no_warning(compiler, tmp_path, sorted((ROOT / "csrc" / "python").glob("*.c")), *PYTHON)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_each_header_by_itself(compiler: str, tmp_path: Path) -> None:
    headers = [path for path in (ROOT / "csrc").glob("*/*.h") if path.parent.name != "python"]
    for header in headers:
        (tmp_path / f"{header.stem}.c").write_text(f'#include "{header.name}"\n\ntypedef int not_empty;\n')
    kernels = f"-I{ROOT / 'csrc' / 'kernels'}"
    expect_no_warning(compiler, tmp_path, sorted(tmp_path.glob("*.c")), *PEDANTIC, kernels)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_generated_c(compiler: str, tmp_path: Path) -> None:
    source = generated()
    for index, text in enumerate([*source.kernels, source.routines]):
        (tmp_path / f"generated{index}.c").write_text(text)
    expect_no_warning(compiler, tmp_path, sorted(tmp_path.glob("*.c")), *QUIET)
