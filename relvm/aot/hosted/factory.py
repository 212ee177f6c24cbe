"""Hosted exports: a model as a shared library, and what executors are made of."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from relvm.aot.c.sources import EXACT
from relvm.aot.hosted.executor import AotExecutor
from relvm.aot.hosted.library import AotLibrary
from relvm.aot.lower.printer import format_lowered
from relvm.aot.project.build import AotProgram
from relvm.codegen.c.module import CSource
from relvm.compiler.target import HERE, Target
from relvm.compiler.toolchain import compile_native, native_cpu
from relvm.errors import RelvmFormatError, RelvmNameError, RelvmUnsupportedError, expect_type
from relvm.runtime import trust
from relvm.runtime.elf import MAGIC, find_section
from relvm.runtime.file_io import complete_file, read_file
from relvm.tables import find_header


class ExecutorFactory(AotLibrary):
    """A model that was compiled ahead of time, and what an `AotExecutor` needs of it.

    `compile_library` makes one of a program, `load_module` of a file.  `factory["main"]` is a new executor, and
    `text, library, params = factory` what it is made of.

    Parameters
    ----------
    library
        A shared library, as bytes.
    program
        What it was compiled from; None: unknown, so there is no text and no C of it.

    Attributes
    ----------
    library
        The shared library, as bytes.
    metadata
        What it says of itself, read from its constants.
    """

    def __init__(self, library: bytes, program: AotProgram | None = None) -> None:
        super().__init__(library)
        self._program = program

    def get_lib(self) -> bytes:
        """The shared library."""
        return self.library

    def get_params(self) -> dict[str, np.ndarray]:
        """The constants of the program by their names in C; none of a library that was loaded from a file, which has
        them in its code."""
        return {} if self._program is None else self._program.params

    def get_internal_repr(self) -> str:
        """The lowered program as text; of a library that was loaded from a file an empty one."""
        return "" if self._program is None else format_lowered(self._program.lowered)

    def __getitem__(self, name: str) -> AotExecutor:
        """A new executor of the function that was exported, by its name or as "default".

        Raises
        ------
        RelvmNameError
            There is no such function.
        """
        entry = "main" if self._program is None else self._program.entry.name
        if name not in (entry, "default"):
            raise RelvmNameError(f"no function {name!r}: there are {entry}, default")
        return AotExecutor(self)

    def __iter__(self) -> Iterator[Any]:
        """The program's text, the library and the constants, in this order."""
        return iter((self.get_internal_repr(), self.get_lib(), self.get_params()))

    def export_library(self, path: str | os.PathLike) -> None:
        """Write the library to `path`, replaced as a whole.  Raises OSError: the file cannot be written."""
        with complete_file(Path(path).absolute()) as partial:
            partial.write_bytes(self.library)


def compile_library(program: AotProgram, target: Target = HERE) -> ExecutorFactory:
    """Compile a program of the hosted runtime.

    Parameters
    ----------
    program
        Built with `AotConfig(runtime="hosted", interface="packed", unpacked=False)`.
    target
        The processors that it is for.

    Raises
    ------
    RelvmUnsupportedError
        The program is of another runtime.
    RelvmToolchainError
        There is no C compiler, or it failed.
    """
    expect_type("compile_library: program", program, AotProgram, "an AotProgram")
    if program.config.runtime != "hosted":
        raise RelvmUnsupportedError(f"runtime={program.config.runtime!r}: executors are made of runtime='hosted'")
    files = program.sources.files
    cpu = f'#define RELVM_AOT_CPU "{native_cpu(target)}"\n'
    units = {path: cpu + _self_contained(text, files) for path, text in files.items() if path.endswith(".c")}
    exact_path = f"src/{program.config.name}_{EXACT}kernels.c"
    exact = tuple(text for path, text in units.items() if path == exact_path)
    plain = tuple(text for path, text in units.items() if path != exact_path)
    library = compile_native(CSource(plain, "", exact), target).library
    with contextlib.suppress(OSError):
        trust.record_built(library)
    return ExecutorFactory(library, program)


def load_module(path: str | os.PathLike, *, trust_native: bool = False) -> ExecutorFactory:
    """Open a library that `export_library` or the Makefile of a hosted export made.

    Parameters
    ----------
    path
        Of the library.
    trust_native
        Load it although it was not compiled by this user on this machine: it is code that can do anything.

    Raises
    ------
    RelvmUnsupportedError
        It was compiled elsewhere, and not `trust_native`; or for another processor or runtime.
    RelvmFormatError
        It is no such library.
    OSError
        The file cannot be read.
    """
    library = read_file(path)
    if library[: len(MAGIC)] != MAGIC:
        raise RelvmFormatError(f"{path}: no shared library")
    try:
        is_whole = find_section(memoryview(library), ".dynamic") is not None  # the table of sections is at the end
    except RelvmFormatError as error:
        raise RelvmFormatError(f"{path}: {error}") from None
    if not is_whole:
        raise RelvmFormatError(f"{path}: a shared library that nothing can load")
    if not trust_native and not trust.is_built_here(library):
        raise RelvmUnsupportedError(
            f"{path}: native code that was not compiled here; load_module(..., trust_native=True) runs it all the same"
        )
    try:
        return ExecutorFactory(library)
    except RelvmFormatError as error:
        raise RelvmFormatError(f"{path}: {error}") from None


def _self_contained(text: str, files: dict[str, str]) -> str:
    """A unit with the headers in it that were made for the export; the others the compiler finds."""
    for path, header in files.items():
        name = Path(path).name
        line = f'#include "{name}"\n'
        if line in text and find_header(name) is None:
            text = text.replace(line, _self_contained(header, files))
    return text
