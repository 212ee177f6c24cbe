"""Hosted exports: a model as a shared library, and the factory of its executors."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from relvm.aot.hosted.executor import AotExecutor
from relvm.aot.hosted.library import AotLibrary
from relvm.aot.project.build import AotProgram
from relvm.codegen.c.module import CSource
from relvm.compiler.target import HERE, Target
from relvm.compiler.toolchain import compile_native, native_cpu
from relvm.errors import (
    RelvmFormatError,
    RelvmNameError,
    RelvmUnsupportedError,
    expect_name,
    expect_path,
    expect_type,
    file_errors,
)
from relvm.quoting import c_string
from relvm.runtime import trust
from relvm.runtime.elf import MAGIC, find_section
from relvm.runtime.file_io import complete_file, read_file
from relvm.tables import find_header


class ExecutorFactory(AotLibrary):
    """A model that was compiled ahead of time, and a factory for executors of the model.

    `compile_library` creates a factory from a program, and `load_module` from a file.  `factory["main"]` creates a new
    executor.  `text, library, params = factory` unpacks the model into the lowered program as text, the shared library,
    and the constants.  A file contains everything that a factory has.

    Parameters
    ----------
    library
        A shared library, as bytes.
    """

    def get_lib(self) -> bytes:
        """Return the shared library as bytes."""
        return self.library

    def get_params(self) -> dict[str, np.ndarray]:
        """Return copies of the constants of the program, by their names in C."""
        return self.params

    def get_internal_repr(self) -> str:
        """Return the lowered program as text."""
        return self.lowered_text

    def __getitem__(self, name: str) -> AotExecutor:
        """Return a new executor.  name: the name of the exported function, or "default".

        Raises
        ------
        RelvmTypeError
            The name is not a str.
        RelvmNameError
            The exported function has another name.
        """
        expect_name("function name", name)
        if name not in (self.entry, "default"):
            raise RelvmNameError(f"unknown function {name!r}; expected {self.entry} or default")
        return AotExecutor(self)

    def __iter__(self) -> Iterator[Any]:
        """Yield three values: the lowered program as text, the library as bytes, and the constants."""
        return iter((self.get_internal_repr(), self.get_lib(), self.get_params()))

    def export_library(self, path: str | os.PathLike) -> None:
        """Write the library to `path` atomically.

        Raise RelvmTypeError if `path` is not a path, and RelvmFileError if the file cannot be written.
        """
        expect_path("path", path)
        with file_errors(), complete_file(Path(path).absolute()) as partial:
            partial.write_bytes(self.library)


def compile_library(program: AotProgram, target: Target = HERE) -> ExecutorFactory:
    """Compile a program for the hosted runtime to a shared library, and load it.

    Parameters
    ----------
    program
        A program built with `AotConfig(runtime="hosted")`.
    target
        The processors to compile for.

    Raises
    ------
    RelvmTypeError
        `program` is not an AotProgram, or `target` is not a Target.
    RelvmUnsupportedError
        The program is for another runtime.
    RelvmToolchainError
        There is no C compiler, or it failed.
    """
    expect_type("compile_library: program", program, AotProgram, "an AotProgram")
    expect_type("compile_library: target", target, Target, "a Target")
    if program.config.runtime != "hosted":
        raise RelvmUnsupportedError(
            f"creating an executor requires runtime='hosted', got runtime={program.config.runtime!r}"
        )
    files = program.sources.files
    head = f"#define RELVM_AOT_CPU {c_string(native_cpu(target))}\n#define RELVM_AOT_TARGET {c_string(str(target))}\n"
    if target.exact_fma:
        head += "#define RVM_EXACT_FMA\n"
    units = {path: head + _inline_headers(text, files) for path, text in files.items() if path.endswith(".c")}
    library = compile_native(CSource(tuple(units.values()), ""), target).library
    with contextlib.suppress(OSError):
        trust.record_built(library)
    return ExecutorFactory(library)


def load_module(path: str | os.PathLike, *, trust_native: bool = False) -> ExecutorFactory:
    """Load a library that `export_library` or the Makefile of a hosted export created.

    Parameters
    ----------
    path
        The path of the library.
    trust_native
        Whether to load a library that this user did not compile on this machine.  Native code can do everything that
        the calling process can.

    Raises
    ------
    RelvmTypeError
        `trust_native` is not a bool.
    RelvmUnsupportedError
        The library was compiled elsewhere and `trust_native` is false, or the library is for another processor or
        runtime.
    RelvmFormatError
        The file is not the library of a hosted export.
    RelvmFileError
        The file cannot be read.
    """
    expect_type("load_module: trust_native", trust_native, bool, "True or False")
    with file_errors():
        library = read_file(path)
    if library[: len(MAGIC)] != MAGIC:
        raise RelvmFormatError(f"{path}: not a shared library")
    try:
        is_whole = find_section(memoryview(library), ".dynamic") is not None  # their list is at the end of the file
    except RelvmFormatError as error:
        raise RelvmFormatError(f"{path}: {error}") from None
    if not is_whole:
        raise RelvmFormatError(f"{path}: the shared library is truncated: its dynamic section is missing")
    if not trust_native and not trust.is_built_here(library):
        raise RelvmUnsupportedError(
            f"{path}: the library was not compiled on this machine; load it with load_module(..., trust_native=True)"
        )
    try:
        return ExecutorFactory(library)
    except RelvmFormatError as error:
        raise RelvmFormatError(f"{path}: {error}") from None


def _inline_headers(text: str, files: dict[str, str]) -> str:
    """Replace the `#include` lines of generated headers in a C file by the texts of these headers.

    The headers of csrc are left to the compiler.   text: the text of the file.   files: the generated files, by path.
    """
    for path, header in files.items():
        name = Path(path).name
        line = f'#include "{name}"\n'
        if line in text and find_header(name) is None:
            text = text.replace(line, _inline_headers(header, files))
    return text
