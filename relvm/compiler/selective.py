"""Static libraries with a model and only the parts of the runtime that the model uses."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator
from pathlib import Path

from relvm.bytecode.program import Program
from relvm.compiler.find_compiler import Compiler, expect_compiler
from relvm.compiler.toolchain import compile_files, run_compiler
from relvm.errors import RelvmToolchainError, RelvmUnsupportedError, expect_type
from relvm.runtime.child_processes import temporary_folder
from relvm.runtime.executable import Executable
from relvm.runtime.file_io import complete_file
from relvm.tables import (
    BUILTIN_PREFIX,
    KERNEL_OPCODES,
    MICRO_KERNELS,
    csrc_directory,
    element_functions,
    include_flags,
    runtime_sources,
)

_FLAGS = (
    *("-std=gnu11", "-Os", "-DNDEBUG", "-fPIE", "-ffunction-sections", "-fdata-sections"),
    *("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fwrapv"),
    *("-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-stack-protector", "-DRVM_COMPACT"),
)
_SELECTING = ("builtin_table", "element_functions", "kernel_verify", "micro_kernels")  # sources that include selected.h
_ALWAYS = ("invoke_closure", "invoke_pure_closure")  # builtins that the machine itself calls
_HEADER = "relvm_selected.h"


def export_selective(executable: Executable, path: str | os.PathLike) -> None:
    """Write a static library that contains the executable, and only the parts of the runtime that it uses.

    The library has the functions of csrc/include/relvm.h, and `relvm_module_load`, which loads the executable.  It
    contains only the builtins, element functions and micro-kernels that the executable uses.  An executable that uses
    others cannot be loaded: `rvm_executable_load` or `rvm_machine_new` fails with UNSUPPORTED.  Link programs with
    `-Wl,--gc-sections`, which omits the functions that the program does not call.

    On x86-64, the library needs a processor with x86-64-v3, because results have the same bits as those of the whole
    runtime only with fused multiply-add.

    Parameters
    ----------
    executable
        An executable without native code: functions in bytecode and kernels in kernel bytecode.
    path
        The path of the library, such as "libmodel.a".  An existing file is replaced atomically.

    Raises
    ------
    RelvmUnsupportedError
        The executable contains native code, or calls functions that are not builtins.
    RelvmToolchainError
        There is no C compiler or archiver, or one of them failed.
    OSError
        The file cannot be written.
    """
    expect_type("export_selective", executable, Executable, "an Executable")
    program = executable.program
    if program.native is not None:
        raise RelvmUnsupportedError(
            "a selective library runs kernel bytecode, but the executable contains native code; build it with target"
            ' "bytecode"'
        )
    compiler = expect_compiler()
    flags = [*_FLAGS, *(["-march=x86-64-v3"] if platform.machine() == "x86_64" else [])]
    if not any(each.exact_fma for each in program.kernels.values()):
        flags.append("-DRVM_WITHOUT_EXACT_FMA")
    with complete_file(Path(path).absolute()) as partial, temporary_folder() as folder:
        executable.save(folder / "module.rvm")
        uses = "".join(f"#define RVM_USES_{name} ~,\n" for name in sorted(set(_used_names(program))))
        (folder / _HEADER).write_text(uses, encoding="utf-8")
        others = [source for source in runtime_sources() if source.stem not in _SELECTING]
        names = ["module.o", *(f"{name}.o" for name in _SELECTING)]
        for file, content in compile_files(compiler, {source: tuple(flags) for source in others}).items():
            (folder / file).write_bytes(content)
            names.append(file)
        sources = [csrc_directory() / "library" / "module.c"]
        sources += [source for source in runtime_sources() if source.stem in _SELECTING]
        for source in sources:
            selection = [f'-DRVM_SELECTIVE="{_HEADER}"', "-I."]
            run_compiler(
                compiler, [*flags, *selection, *include_flags(), "-c", str(source), "-o", f"{source.stem}.o"], folder
            )
        run_compiler(_archiver(compiler), ["rcsD", "library.a", *sorted(names)], folder)
        partial.write_bytes((folder / "library.a").read_bytes())


def _archiver(compiler: Compiler) -> Compiler:
    """Return the archiver that belongs to a compiler, or the one of the system."""
    if compiler.is_zig:
        return compiler.tool("ar")
    found = shutil.which("ar")
    if found is None:
        raise RelvmToolchainError("a static library needs the program ar, which is not installed")
    return Compiler((found,), "ar")


def _used_names(program: Program) -> Iterator[str]:
    """Yield the names of the builtins, element functions and micro-kernels that a program uses."""
    yield from _ALWAYS
    for function in program.functions:
        if function.kind != "packed":
            continue
        if not function.name.startswith(BUILTIN_PREFIX):
            raise RelvmUnsupportedError(
                f"a selective library contains no packed functions, but the program calls {function.name}"
            )
        yield function.name.removeprefix(BUILTIN_PREFIX)
    functions = element_functions()
    for kernel in program.kernels.values():
        for opcode, *operands in kernel.code:
            for letter, operand in zip(KERNEL_OPCODES[opcode].operands, operands, strict=False):
                if letter == "F":
                    yield functions[operand].name
                if letter == "c":
                    yield MICRO_KERNELS[operand].name
