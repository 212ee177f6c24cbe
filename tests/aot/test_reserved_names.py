"""Names that mean something in C or C++, as names of inputs, outputs, sizes, functions and models of an export."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from relvm import aot, quoting
from relvm.aot.config import _HEADERS_OF_C
from relvm.errors import RelvmArgumentError
from relvm.ir.builder import Builder
from relvm.ir.dtypes import F32
from relvm.ir.expr import Module
from relvm.ir.symbolic import dim_var
from relvm.ir.types import TensorType

C_MODES = ("c99", "c11", "gnu11", "c2x", "gnu2x")
CPP_MODES = ("c++17", "gnu++17", "c++20", "gnu++2b")
NAMES = sorted(
    {
        *quoting._RESERVED_WORDS,
        *("NULL", "EOF", "NAN", "INFINITY", "INT64_MAX", "SIZE_MAX", "BUFSIZ", "EINVAL", "SIGINT", "M_PI", "MODEL_H"),
        *("MODEL_CONSTANTS_BYTES", "RVM_OK", "RELVM_STATUS", "PRId64", "L_tmpnam", "int32_t", "int64_t", "size_t"),
        *("_Bool", "_Complex", "_Atomic", "_Generic", "_x", "__x", "__func__", "__linux__", "__FILE__", "__LINE__"),
        *("main", "run", "model", "model_run", "model_inputs", "model_outputs", "model_model", "inputs", "outputs"),
        *("memcpy", "expf", "malloc", "isnan", "assert", "offsetof", "setjmp", "n", "n_size", "s0", "status"),
    }
)


def with_names(names: list[str]) -> Module:
    """Return a module whose inputs and outputs have the names `names`.  Its function and size have reserved names."""
    b = Builder()
    type_ = TensorType(F32, (dim_var("typeof"),))
    attributes = (("output_names", tuple(names)), ("upper_bounds", (("typeof", 8),)))
    with b.function("alignas", [(name, type_) for name in names], attributes=attributes) as values:
        b.ret(b.tuple_(*(b.op("relu", value, name=name) for value, name in zip(values, names, strict=True))))
    return b.module()


def compiles(compiler: str, mode: str, path: Path, *flags: str) -> str:
    """Compile a file, and return the messages of the compiler, or "" if it succeeds."""
    language = "c++" if "++" in mode else "c"
    options = ["-Wall", "-Werror", "-fsyntax-only", f"-std={mode}", "-x", language, *flags]
    done = subprocess.run([compiler, *options, path], capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def knows(compiler: str, mode: str, folder: Path) -> bool:
    (folder / "empty.c").write_text("")
    return not compiles(compiler, mode, folder / "empty.c")


@pytest.fixture(scope="module", params=["gcc", "clang"])
def compiler(request: pytest.FixtureRequest) -> str:
    if shutil.which(request.param) is None:
        pytest.skip(f"no {request.param}")
    return request.param


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export")
    aot.build(with_names(NAMES), entry="alignas").write(folder)
    return folder


def every_header(skipped: tuple[str, ...] = ()) -> str:
    """Return C code that includes all headers of C that the compiler has."""
    names = [name for name in _HEADERS_OF_C if name not in skipped]
    return "".join(f"#if __has_include(<{name}.h>)\n#include <{name}.h>\n#endif\n" for name in names)


CPP_SKIPPED = ("stdatomic", "complex", "tgmath", "threads")


def test_the_header_compiles_in_every_mode(export: Path, compiler: str, tmp_path: Path) -> None:
    tried = 0
    for mode in (*C_MODES, *CPP_MODES):
        if not knows(compiler, mode, tmp_path):
            continue
        headers = every_header(CPP_SKIPPED if "++" in mode else ())
        for before in ("", headers, f"#undef _GNU_SOURCE\n#define _GNU_SOURCE 1\n{headers}"):
            (tmp_path / "user.c").write_text(f'{before}#include "model.h"\n')
            assert compiles(compiler, mode, tmp_path / "user.c", f"-I{export / 'include'}") == "", (mode, before[:20])
            tried += 1
    assert tried >= 15


def test_the_sources_compile(export: Path, compiler: str) -> None:
    folders = [f"-I{export / folder}" for folder in ("include", "src")]
    for mode in ("c99", "gnu11", "gnu2x"):
        for source in sorted((export / "src").glob("*.c")):
            assert compiles(compiler, mode, source, *folders) == ""


def test_the_export_runs(tmp_path: Path) -> None:
    program = aot.build(with_names(["linux", "errno", "nullptr", "bool"]), entry="alignas")
    inputs = [np.float32([-1, k]) for k in range(4)]
    outputs = [np.maximum(x, 0) for x in inputs]
    program.write(tmp_path, (inputs, outputs))
    done = subprocess.run(["make", "-C", tmp_path, "test"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("mode", [*C_MODES, *CPP_MODES])
def test_no_macro_of_the_compiler_or_the_headers_is_used(mode: str, compiler: str, tmp_path: Path) -> None:
    """A macro without parameters replaces every use of its name."""
    if not knows(compiler, mode, tmp_path):
        pytest.skip(f"{compiler} does not know -std={mode}")
    text = every_header(CPP_SKIPPED if "++" in mode else ())
    language = "c++" if "++" in mode else "c"
    command = [compiler, f"-std={mode}", "-D_GNU_SOURCE", "-dM", "-E", "-x", language, "-"]
    shown = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    macros = set(re.findall(r"^#define (\w+)(?=\s|$)", shown, re.M))
    assert len(macros) > 500
    assert not {name for name in macros if quoting.c_identifier(name) in macros}


@pytest.mark.parametrize(
    "name", ["linux", "typeof", "alignas", "bool", "nullptr", "char8_t", "int32_t", "errno", "time"]
)
def test_a_model_cannot_have_a_reserved_name(name: str) -> None:
    with pytest.raises(RelvmArgumentError, match=f"name='{name}'"):
        aot.AotConfig(name=name)


@pytest.mark.parametrize("name", ["MODEL", "Model", "main", "expf", "memcpy", "EOF"])
def test_a_model_can_have_any_other_name(name: str, compiler: str, tmp_path: Path) -> None:
    aot.build(with_names(["x", "y"]), aot.AotConfig(name=name), entry="alignas").write(tmp_path)
    for mode in ("c11", "c++17"):
        text = every_header(CPP_SKIPPED if "++" in mode else ())
        (tmp_path / "user.c").write_text(f'{text}#include "{name}.h"\n')
        assert compiles(compiler, mode, tmp_path / "user.c", f"-I{tmp_path / 'include'}") == ""
    folders = [f"-I{tmp_path / folder}" for folder in ("include", "src")]
    for source in sorted((tmp_path / "src").glob("*.c")):
        assert compiles(compiler, "gnu11", source, *folders) == ""
