"""Static libraries with a model and only the parts of the runtime that the model uses."""

from __future__ import annotations

import itertools
import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from relvm.bytecode.encode import encode
from relvm.bytecode.program import Program
from relvm.compiler.find_compiler import Compiler, expect_compiler
from relvm.compiler.toolchain import compile_files, run_compiler, spelled_options, write_module
from relvm.errors import RelvmToolchainError, RelvmUnsupportedError, expect_type
from relvm.numpy_dtypes import STRINGS
from relvm.runtime.child_processes import temporary_folder
from relvm.runtime.executable import Executable
from relvm.runtime.file_io import complete_file
from relvm.tables import (
    BUILTIN_PREFIX,
    KERNEL_OPCODES,
    MICRO_KERNELS,
    PRIM_OPERATORS,
    csrc_directory,
    element_functions,
    include_flags,
    runtime_sources,
)

_FLAGS = (
    *(
        "-std=gnu11",
        "-fno-tree-vectorize",
        "-fno-tree-slp-vectorize",
        "-DNDEBUG",
        "-fPIE",
        "-ffunction-sections",
        "-fdata-sections",
    ),
    *("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fwrapv"),
    *("-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-stack-protector"),
    *("-DRVM_COMPACT", "-DRVM_SELECTIVE"),
)
# The sources that refer to names of csrc/core/selected.h.
_SELECTING = (
    *("builtin_table", "constants", "element_functions", "interpreter", "kernel_interpreter", "micro_kernels"),
    "strip_moves",
)
_ALWAYS = ("invoke_closure", "invoke_pure_closure")  # builtins that the machine itself calls
_HEADER = "relvm_selected.h"


def export_selective(executable: Executable, path: str | os.PathLike) -> None:
    """Write a static library that contains the executable, and only the parts of the runtime that it uses.

    The library has the functions of csrc/include/relvm.h, and `relvm_module_load`, which loads the executable.  It
    contains only the builtins, instructions, element functions and micro-kernels that the executable uses, in their
    smallest form.  The library does not verify the executable again.  It loads no other one, and has no instruments,
    debuggers or upgrades: their functions fail with UNSUPPORTED.  Link programs with `-Wl,--gc-sections`, which omits
    the functions that the program does not call.

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
    RelvmTypeError
        `executable` is not an Executable.
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
    processor = ("-march=x86-64-v3",) if platform.machine() == "x86_64" else ()
    # clang optimizes for size only with -Oz, which gcc has since version 12.
    flags = [*_FLAGS, "-Oz" if compiler.is_clang else "-Os", *spelled_options(compiler, processor)]
    if not any(each.exact_fma for each in program.kernels.values()):
        flags.append("-DRVM_WITHOUT_EXACT_FMA")
    with complete_file(Path(path).absolute()) as partial, temporary_folder() as folder:
        module = write_module(folder, encode(_embedded(program)).tobytes())
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
            selection = [f'-DRVM_SELECTION="{_HEADER}"', "-I.", module]
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
    """Yield the names that csrc/core/selected.h lists, of what a program uses."""
    yield from _ALWAYS
    if any(isinstance(constant, np.ndarray) and constant.dtype == STRINGS for constant in program.constants):
        yield "string_constant"
    for function in program.functions:
        for instruction in function.code:
            if instruction.op == "prim":
                yield f"step_{PRIM_OPERATORS[instruction.operands[1]].name}"
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
            row = KERNEL_OPCODES[opcode]
            yield f"op_{row.name}"
            for letter, operand in zip(row.operands, operands, strict=False):
                match letter:
                    case "F":
                        yield f"function_{functions[operand].name}"
                    case "c":
                        yield MICRO_KERNELS[operand].name
                    case "z":
                        yield f"op_{row.name}_{operand}"


def _embedded(program: Program) -> Program:
    """Return the program as a selective library contains it.

    Its kernels number the element functions and micro-kernels among those that it uses.  It has no source and no
    information for debuggers.
    """
    kernels = dict(program.kernels)
    for letter in "Fc":
        place = {op: 1 + row.operands.index(letter) for op, row in enumerate(KERNEL_OPCODES) if letter in row.operands}
        code = itertools.chain.from_iterable(kernel.code for kernel in kernels.values())
        used = sorted({step[place[step[0]]] for step in code if step[0] in place})
        numbers = {number: index for index, number in enumerate(used)}
        for name, kernel in kernels.items():
            kernels[name] = replace(kernel, code=tuple(_renumbered(step, place, numbers) for step in kernel.code))
    return replace(program, kernels=kernels, source="", debug={})


def _renumbered(step: tuple[int, ...], place: Mapping[int, int], numbers: Mapping[int, int]) -> tuple[int, ...]:
    """Return an instruction of kernel bytecode with another number at the place that its opcode has in `place`."""
    if step[0] not in place:
        return step
    at = place[step[0]]
    return (*step[:at], numbers[step[at]], *step[at + 1 :])
