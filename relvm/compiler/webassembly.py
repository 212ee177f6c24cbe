"""WebAssembly modules: the runtime alone, and the runtime with an executable.  zig cc compiles both.

csrc/webassembly/relvm.js, the JavaScript loader, runs both.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from relvm.bytecode.program import Program
from relvm.codegen.c.module import parse_source
from relvm.compiler.find_compiler import Compiler, expect_zig
from relvm.compiler.target import WASM_OPTIONS
from relvm.compiler.toolchain import compile_files, compile_wasm_units, module_name, run_compiler, wasm_identity
from relvm.errors import RelvmUnsupportedError, expect_type
from relvm.runtime.child_processes import temporary_folder
from relvm.runtime.executable import Executable
from relvm.runtime.file_io import complete_file
from relvm.tables import csrc_directory, include_flags, runtime_sources

_COMMON = (*WASM_OPTIONS, "-std=gnu11", "-DNDEBUG", "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections")
# Sources that are compiled for speed, and the flags of loops over elements (CMakeLists.txt).  The others are compiled
# for size: together they take most of the module.
_INTERPRETERS = ("interpreter", "kernel_interpreter")
_LOOPS = ("element_functions", "strip_moves", "micro_kernels")
_LOOP_FLAGS = (
    "-O2",
    "-DRVM_COMPACT",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fwrapv",
    "-fopenmp-simd",
    "-DRVM_OPENMP_SIMD",
    "-Wno-pass-failed",
)
_STRING_SOURCES = ("regex", "string_builtins", "string_convert", "string_ops")
_KERNEL_FOLDER = "kernels"
_RARE = frozenset({"exact fma"})  # parts that the modules for any executable lack, because they are large
# The sizes of C stacks in bytes.  Compiled kernels have arrays on the stack.
_STACK_BYTES, _NATIVE_STACK_BYTES = 1 << 20, 4 << 20
_MAX_MEMORY_BYTES = (1 << 32) - (1 << 16)
MAX_EXECUTABLE_BYTES = 1 << 31


def runtime_module() -> bytes:
    """Return the runtime as a WebAssembly module, which loads executables with kernel bytecode.

    Raises
    ------
    RelvmToolchainError
        zig cc is not installed, or it failed.
    """
    compiler = expect_zig()
    return _linked(compiler, list(_runtime_objects(compiler, _host_files(), _RARE).values()), _STACK_BYTES)


def runtime_program(main: Path) -> bytes:
    """Return a program for WebAssembly System Interface (WASI): the runtime with a C file that defines `main`.

    Raises
    ------
    RelvmToolchainError
        zig cc is not installed, or it failed.
    """
    compiler = expect_zig()
    objects = _runtime_objects(compiler, [main], _RARE)
    return _linked(compiler, list(objects.values()), _STACK_BYTES, is_program=True)


def export_module(executable: Executable, path: str | os.PathLike) -> None:
    """Write a WebAssembly module that contains the runtime and the executable.

    If the executable was built for target "wasm32", the module contains its native code.  Otherwise its kernels must be
    kernel bytecode.

    Parameters
    ----------
    executable
        An executable for target "wasm32" or "bytecode", of any mode.
    path
        The path of the module.  An existing file is replaced atomically.

    Raises
    ------
    RelvmTypeError
        `executable` is not an Executable, or `path` is not a path.
    RelvmUnsupportedError
        The executable has native code for another target, or is too large.
    RelvmToolchainError
        zig cc is not installed, or it failed.
    OSError
        The file cannot be written.
    """
    expect_type("export_module", executable, Executable, "an Executable")
    expect_type("path", path, (str, os.PathLike), "a str or PathLike")
    program = replace(executable.program, portable=None)
    if program.native and not program.native.triple.startswith("wasm32-"):
        raise RelvmUnsupportedError(
            f"export_module: the executable has native code for {program.native.triple}; build it with"
            ' target="wasm32" or target="bytecode"'
        )
    compiler = expect_zig()
    native_objects: list[bytes] = []
    if program.native:
        native_objects = compile_wasm_units(parse_source(program.source))
        identity = wasm_identity(native_objects)
        program = replace(program, native=replace(program.native, library=identity), source="")
    content = Executable.from_program(program, elsewhere=True).to_bytes()
    if len(content) > MAX_EXECUTABLE_BYTES:
        raise RelvmUnsupportedError(
            f"export_module: the executable has {len(content):,} bytes; a WebAssembly module can have at most"
            f" {MAX_EXECUTABLE_BYTES:,}"
        )
    objects = list(_runtime_objects(compiler, _host_files(), _unused(program)).values())
    objects += [*native_objects, _data_object(compiler, content)]
    if program.native:
        objects.append(_symbols_object(compiler, program))
    stack_bytes = _NATIVE_STACK_BYTES if program.native else _STACK_BYTES
    module = _linked(compiler, objects, stack_bytes)
    with complete_file(Path(path).absolute()) as partial:
        partial.write_bytes(module)


def _host_files() -> list[Path]:
    return [csrc_directory() / "webassembly" / "host.c"]


def _unused(program: Program) -> frozenset[str]:
    """Return the optional parts of the runtime that a program does not use (see `_runtime_objects`)."""
    uses_strings = any(entry.name.startswith("vm.builtin.string_") for entry in program.functions)
    uses_exact_fma = any(kernel.exact_fma for kernel in program.kernels.values())
    parts = {"strings": uses_strings, "kernels": bool(program.kernels), "exact fma": uses_exact_fma}
    return frozenset(part for part, is_used in parts.items() if not is_used)


def _runtime_objects(
    compiler: Compiler, others: list[Path], without: Collection[str] = frozenset()
) -> dict[str, bytes]:
    """Return the object files of the runtime and of other C files, by file name.

    without: optional parts of the runtime to omit: "strings", "kernels", and "exact fma", which are the functions of
    kernel bytecode for the target "bytecode exact-fma".
    """
    sources = [*runtime_sources(), *others]
    macros = []
    if "strings" in without:
        sources = [source for source in sources if source.stem not in _STRING_SOURCES]
        macros.append("RVM_WITHOUT_STRINGS")
    if "exact fma" in without:
        macros.append("RVM_WITHOUT_EXACT_FMA")
    if "kernels" in without:
        sources = [source for source in sources if source.parent.name != _KERNEL_FOLDER]
        macros.append("RVM_WITHOUT_KERNELS")

    def flags(source: Path) -> tuple[str, ...]:
        # All modules share the object files of sources that use none of the macros.
        text = source.read_text(encoding="utf-8")
        return (*_COMMON, *(f"-D{macro}" for macro in macros if macro in text), *_speed_flags(source))

    return compile_files(compiler, {source: flags(source) for source in sources})


def _speed_flags(source: Path) -> tuple[str, ...]:
    if source.stem in _LOOPS:
        return _LOOP_FLAGS
    return ("-O2",) if source.stem in _INTERPRETERS else ("-Oz",)


def _data_object(compiler: Compiler, content: bytes) -> bytes:
    """Return an object file with the bytes of an executable."""
    name = module_name(content)
    source = f"""
        #include <stdint.h>
        extern const unsigned char relvm_module_start[];
        extern const uint32_t relvm_module_bytes;
        _Alignas(64) const unsigned char relvm_module_start[] = {{
        #embed "{name}"
        }};
        const uint32_t relvm_module_bytes = sizeof relvm_module_start;
    """
    return _object(compiler, source, {name: content})


def _symbols_object(compiler: Compiler, program: Program) -> bytes:
    """Return an object file with the table of the native functions and kernels of a program (system.h)."""
    assert program.native is not None
    kinds = {"native": "rvm_routine", "kernel": "rvm_packed_function"}
    types = {entry.symbol: kinds[entry.kind] for entry in program.functions if entry.symbol}
    declared = "\n".join(f"extern __typeof__(*({kind})0) {symbol};" for symbol, kind in types.items())
    symbols = sorted([*types, "relvm_native_open"])
    rows = "\n".join(f'{{"{symbol}", (rvm_status (*)(void)){symbol}}},' for symbol in symbols)
    digest = ", ".join(map(str, program.native.library))
    source = f"""
        #include "native.h"
        #include "system.h"
        extern rvm_status relvm_native_open(const rvm_native_api *api);
        {declared}
        static const rvm_linked_symbol symbols[] = {{ {rows} }};
        const rvm_linked_code relvm_linked_code = {{
          .identity = {{ {digest} }},
          .symbol_count = {len(symbols)},
          .symbols = symbols,
        }};
    """
    return _object(compiler, source, {})


def _object(compiler: Compiler, source: str, files: dict[str, bytes]) -> bytes:
    """Return the object file of C code that can embed files."""
    with temporary_folder() as folder:
        for name, content in files.items():
            (folder / name).write_bytes(content)
        (folder / "unit.c").write_text(textwrap.dedent(source), encoding="utf-8")
        # --embed-dir: zig cc does not search the folder of the file
        arguments = [*WASM_OPTIONS, "-std=gnu23", "-O1", "-w", "--embed-dir=.", *include_flags(), "-c", "unit.c"]
        run_compiler(compiler, [*arguments, "-o", "unit.o"], folder)
        return (folder / "unit.o").read_bytes()


def _linked(compiler: Compiler, objects: list[bytes], stack_bytes: int, *, is_program: bool = False) -> bytes:
    """Link object files to a module, and return its content.

    stack_bytes: the size of the C stack.
    is_program: whether the module is a WASI program with `main`.  Otherwise the host calls the exported functions.
    """
    model = () if is_program else ("-mexec-model=reactor",)
    limits = (f"-Wl,-z,stack-size={stack_bytes}", f"-Wl,--max-memory={_MAX_MEMORY_BYTES}")
    with temporary_folder() as folder:
        names = [f"unit{i}.o" for i in range(len(objects))]
        for name, content in zip(names, objects, strict=True):
            (folder / name).write_bytes(content)
        options = ("--target=wasm32-wasi", "-O2", "-s", *model, "-Wl,--gc-sections", *limits)
        run_compiler(compiler, [*options, *names, "-lm", "-o", "module.wasm"], folder)
        return (folder / "module.wasm").read_bytes()
