"""An executable and the runtime as one shared library, for programs in C."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from relvm.compiler.toolchain import compile_runtime, expect_compiler, guards, link_flags, run_compiler
from relvm.errors import expect_type
from relvm.runtime.executable import Executable
from relvm.runtime.file_io import complete_file
from relvm.tables import csrc_directory, include_flags

_FLAGS = ("-std=gnu11", "-O2", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-DRVM_SHARED")


def export_library(executable: Executable, path: str | os.PathLike) -> None:
    """Write a shared library that holds the runtime and the executable, up to 2 GB.

    It exports what csrc/include/relvm.h declares, `relvm_module_load` among it, which loads the executable; it needs
    nothing but the C library.  Each such library has a runtime of its own: a program that uses several opens them with
    dlopen. Packed functions that are no builtins, those of target="numpy" among them, the program has to rvm_register.
    `load` opens it, too; that runs nothing of the library, and asks for trust in native code as for any other file.

    Parameters
    ----------
    executable
        In either mode.
    path
        Of the library, replaced as a whole.  Its name is the one under which programs linked to it look for it.

    Raises
    ------
    RelvmTypeError
        It is no Executable, or no path.
    RelvmToolchainError
        There is no C compiler, or it failed.
    OSError
        The file cannot be written.
    """
    expect_type("export_library", executable, Executable, "an Executable")
    expect_type("path", path, (str, os.PathLike), "a str or PathLike")
    compiler = expect_compiler()
    flags = [*_FLAGS, *guards(compiler)]
    name = ("-Xlinker", "-soname", "-Xlinker", Path(path).name)
    with complete_file(Path(path).absolute()) as partial, tempfile.TemporaryDirectory(prefix="relvm-") as folder:
        partial.touch()  # whether it can be written is not for the linker to say
        executable.save(Path(folder, "module.rvm"))
        units = [csrc_directory() / "library" / "module.c"]
        for file, content in compile_runtime(compiler, flags).items():
            units.append(Path(folder, file))
            units[-1].write_bytes(content)
        linked = ["-shared", "-Wl,-Bsymbolic", *link_flags(compiler), *name]
        arguments = [
            *flags,
            *include_flags(),
            *linked,
            *map(str, units),
            "-lpthread",
            "-ldl",
            "-lm",
            "-o",
            str(partial),
        ]
        run_compiler(compiler, arguments, Path(folder))
