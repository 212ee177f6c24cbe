"""Export of an executable, together with the runtime, as a shared library for C programs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from relvm.compiler.find_compiler import expect_compiler
from relvm.compiler.toolchain import (
    GUARDS,
    compile_runtime,
    linker_flags,
    run_compiler,
    target_system,
    write_module,
)
from relvm.errors import expect_type
from relvm.runtime.child_processes import temporary_folder
from relvm.runtime.executable import Executable
from relvm.runtime.file_io import complete_file
from relvm.tables import csrc_directory, include_flags

_FLAGS = ("-std=gnu11", "-O2", "-ffp-contract=off", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-DRVM_SHARED")
_LIBRARIES = {"linux": ("-lpthread", "-ldl", "-lm"), "macos": (), "windows": ()}  # those that the runtime uses


def export_library(executable: Executable, path: str | os.PathLike) -> None:
    """Write a shared library that contains the runtime and the executable.  Its maximum size is 2 GB.

    The library exports the functions that csrc/include/relvm.h declares.  The function `relvm_module_load` loads the
    executable.  The library depends on the C library only.
    Its format is that of the system for which the C compiler compiles: Linux, macOS or Windows.

    Each such library contains its own runtime.  A program that uses several of them must therefore open them with
    dlopen.  The program must call rvm_register for each packed function that is not a builtin, including those of
    target="numpy".

    `vm.load` can also open the library, like an .rvm file.  `vm.load` reads only the executable in the library, and
    runs none of the library's own code.  If the executable contains native code, `vm.load` has the same rules for
    trusting this code as for an .rvm file.

    Parameters
    ----------
    executable
        An executable of any mode.
    path
        The path of the library.  An existing file is replaced atomically.  Programs that are linked to the library look
        for it under its file name.

    Raises
    ------
    RelvmTypeError
        `executable` is not an Executable, or `path` is not a path.
    RelvmToolchainError
        There is no C compiler, or it failed.
    OSError
        The file cannot be written.
    """
    expect_type("export_library", executable, Executable, "an Executable")
    expect_type("path", path, (str, os.PathLike), "a str or PathLike")
    compiler = expect_compiler()
    programs = executable.program.kernels.values()
    flags = [*_FLAGS, *GUARDS]
    if not any(program.exact_fma for program in programs):
        flags.append("-DRVM_WITHOUT_EXACT_FMA")
    system, name = target_system(compiler), Path(path).name
    with complete_file(Path(path).absolute()) as partial, temporary_folder() as folder:
        module = write_module(folder, executable.to_bytes())
        units = [csrc_directory() / "library" / "module.c"]
        for file, content in compile_runtime(compiler, flags).items():
            units.append(folder / file)
            units[-1].write_bytes(content)
        linked = [*linker_flags(compiler), *_name_options(system, name), *map(str, units), *_LIBRARIES[system]]
        output = folder / "out" / name  # a DLL contains the name under which it was linked
        output.parent.mkdir()
        arguments = [*flags, module, *include_flags(), *linked, "-o", str(output)]
        run_compiler(compiler, arguments, folder)
        partial.write_bytes(output.read_bytes())
        shutil.copymode(output, partial)


def _name_options(system: str, name: str) -> tuple[str, ...]:
    """Return the linker's options for the name under which programs look for a library."""
    if system == "windows":
        return ()
    option, value = ("-soname", name) if system == "linux" else ("-install_name", f"@rpath/{name}")
    return ("-Xlinker", option, "-Xlinker", value)
