"""C toolchain: calls of the C compiler, its flags, and a cache of its results.

Environment variables: RELVM_CACHE_DIR is the directory of cached libraries, by default relvm/ in the user's cache
directory.  RELVM_CPU is an x86-64 level for target "c", `x86-64` to `x86-64-v4`.  Every processor of that level can
then load the native code.  Machines use no features above that level for kernel bytecode, either.  By default, kernels
use all features of this machine's processor.  See also find_compiler.py.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import re
import shlex
import subprocess
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.pool import ThreadPool  # unlike concurrent.futures, works while the interpreter exits
from pathlib import Path
from typing import Any

from relvm.bytecode.program import NativeCode
from relvm.codegen.c.module import CSource, headers_digest, opening_unit, shared_headers, shared_unit
from relvm.compiler import disk_cache
from relvm.compiler.find_compiler import Compiler, expect_compiler, expect_zig
from relvm.compiler.target import HERE, WASM_OPTIONS, Target, host_options, required_features
from relvm.errors import RelvmToolchainError
from relvm.runtime.child_processes import child_process, temporary_environment, temporary_folder
from relvm.runtime.trust import is_built_here, record_built
from relvm.system import lower_priority
from relvm.tables import include_flags, runtime_sources

# -fwrapv: integer overflow wraps around as in NumPy.  -ffp-contract=off: multiplications and additions are not fused,
# so that results are bit for bit those of kernel bytecode.  -fno-math-errno -fno-trapping-math: no code reads errno or
# the exception flags.
# Routines are compiled without vectorization.  A value is stored as two words, and a load of both words as one vector
# stalls the processor.
_COMMON = ("-std=gnu11", "-fPIC", "-fwrapv", "-w")
# Kernels are compiled with -O2 and the passes of -O3 that make kernels faster.  The other passes of -O3 increase the
# compile time by a tenth and do not make kernels faster (benchmarks/README.md, "Optimization level of kernels").
# -fno-tree-loop-distribute-patterns: loops over at most 64 elements stay loops.  As copies of memory they would be
# `rep movsq` instructions, which take longer (a 1 x 1 convolution of 13 x 13 pixels: 0.080 instead of 0.069 ms).
_VECTORS = ("-ftree-vectorize", "-fvect-cost-model", "-fpeel-loops", "-fno-tree-loop-distribute-patterns")
_NOT_FOR_CLANG = _VECTORS[1:]  # some versions of clang and zig cc refuse these options
_FLOATS = ("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
_KERNELS = ("-O2", *_VECTORS, "-fopenmp-simd", "-DRVM_OPENMP_SIMD", *_FLOATS)
_SHARES = "-DRVM_OUT_OF_LINE=RVM_DECLARED"  # for units that share the functions of headers (csrc/codegen/compiler.h)
_WORDS = ("-fno-tree-vectorize", "-fno-tree-slp-vectorize")
_ROUTINES = ("-O2", *_WORDS, *_FLOATS)

# Options that make mistakes in C code harder to exploit.  The runtime uses all of them.  Native code uses those of the
# linker.
GUARDS = ("-fstack-protector-strong", "-fstack-clash-protection", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=3")
_LINKED_SAFELY = ("-Wl,-z,relro", "-Wl,-z,now", "-Wl,-z,noexecstack")

_ARCHITECTURES = {"__x86_64__": "x86_64", "__aarch64__": "aarch64"}
_SYSTEMS = {"__linux__": "linux-gnu", "__APPLE__": "macos", "_WIN32": "windows-gnu"}
_WASM_TRIPLE = "wasm32-wasi"


def compile_native(
    source: CSource, target: Target = HERE, each_unit: Callable[[int, NativeCode], None] | None = None
) -> NativeCode:
    """Compile the C source of a module to a shared library, or return the library from the cache.

    Parameters
    ----------
    source
        The C source, divided into translation units.
    target
        The target, whose options select the processor.
    each_unit
        A function to call as soon as a translation unit with kernels is compiled, while other units are still being
        compiled.  Its arguments are the index of the unit and a library that contains only this unit.  Several threads
        can call the function at the same time.  The function is not called if the whole library is in the cache, or if
        only one unit contains kernels.

    Raises
    ------
    RelvmToolchainError
        There is no C compiler, the compiler failed, or it does not know the processor of the target.
    """
    compiler = _compiler_for(target)
    options = _options(compiler, target)
    macros = _macros(compiler, options)
    triple, cpu = _triple(compiler, macros), required_features(macros)
    disk_cache.limit_bytes()  # to raise errors of settings before anything is compiled
    if target.is_wasm:
        return NativeCode(library=wasm_identity(compile_wasm_units(source)), triple=triple, cpu=cpu)
    flags = (*_kernel_flags(compiler, target), _SHARES)
    shared = {name: _shared_unit(source, name, flags) for name in shared_headers(source.kernels)}
    units = _units(source, target, compiler)

    def publish(index: int, content: bytes) -> None:
        if each_unit and len(source.kernels) > 1 and index < len(source.kernels):
            others = [(opening_unit(), flags)] if index else []
            others += [shared[name] for name in shared_headers([source.kernels[index]])]
            library = _link(compiler, [content, *(_unit_object(compiler, cpu, unit) for unit in others)])
            each_unit(index, NativeCode(library=library, triple=triple, cpu=cpu))

    return NativeCode(library=_library(compiler, cpu, units, publish), triple=triple, cpu=cpu)


def _compiler_for(target: Target) -> Compiler:
    return expect_zig() if target.is_wasm else expect_compiler('; target="bytecode" needs none')


def _units(source: CSource, target: Target, compiler: Compiler) -> list[_Unit]:
    """Return the translation units of a library: those of `source`, and those with the functions that they share."""
    flags = (*_kernel_flags(compiler, target), _SHARES)
    units = [(text, flags) for text in source.kernels]
    if source.routines:
        options = WASM_OPTIONS if target.is_wasm else ()
        units.append((source.routines, (*_COMMON, *_ROUTINES, *options)))
    units += [_shared_unit(source, name, flags) for name in shared_headers(source.kernels)]
    return units


def _shared_unit(source: CSource, header: str, flags: Sequence[str]) -> _Unit:
    """Return the translation unit with the functions of a header that the kernels of a library share."""
    return shared_unit(header, exact_fma=source.has_exact_fma), (*flags, "-ffunction-sections")


def compile_wasm_units(source: CSource) -> list[bytes]:
    """Return the object files of the C source of a module for WebAssembly, from the cache if possible.

    Raises
    ------
    RelvmToolchainError
        zig cc is not installed, or it failed.
    """
    target = Target("c", WASM_OPTIONS)
    compiler = _compiler_for(target)
    with ThreadPool(os.cpu_count()) as pool:
        units = [(text, _without_pic(flags)) for text, flags in _units(source, target, compiler)]
        return pool.map(functools.partial(_unit_object, compiler, ""), units, chunksize=1)


def wasm_identity(objects: Sequence[bytes]) -> bytes:
    """Return the content of the native section of an executable for WebAssembly, given its object files.

    WebAssembly cannot load a library, so an executable with native code is linked with the runtime (webassembly.py).
    The native section only identifies the code.
    """
    return hashlib.sha256(b"".join(hashlib.sha256(content).digest() for content in objects)).digest()


def _without_pic(flags: Sequence[str]) -> tuple[str, ...]:
    return tuple(flag for flag in flags if flag != "-fPIC")


def native_cpu(target: Target = HERE) -> str:
    """Return the processor features that the result of `compile_native` would require, such as "x86-64-v3 avxvnni".

    Raise the errors that `compile_native` raises before it compiles.
    """
    compiler = _compiler_for(target)
    return required_features(_macros(compiler, _options(compiler, target)))


def native_settings(target: Target) -> str:
    """Return a digest of everything that determines the result of `compile_native`, except the C source.

    This includes the compiler, its version and its flags.  Raise the errors that `compile_native` raises before it
    compiles.
    """
    compiler = _compiler_for(target)
    options = _options(compiler, target)
    return _digest(
        compiler, (options, required_features(_macros(compiler, options)), _COMMON, _KERNELS, _SHARES, _ROUTINES)
    )


def _options(compiler: Compiler, target: Target) -> tuple[str, ...]:
    options = target.options
    if options is None:
        architecture = _architecture(_macros(compiler, ()))
        options = host_options(architecture) if architecture else ()
    return options if target.is_wasm else spelled_options(compiler, options)


def spelled_options(compiler: Compiler, options: tuple[str, ...]) -> tuple[str, ...]:
    """Return options for processors, written for gcc, as the compiler spells them."""
    return tuple(map(_zig_option, options)) if compiler.is_zig else options


def _zig_option(option: str) -> str:
    """Return an option with the spelling of processor names in zig.

    This is `-march=x86_64_v3` for `-march=x86-64-v3`, and `-mcpu=generic+v8_2a+dotprod` for `-march=armv8.2-a+dotprod`.
    """
    name, equals, processor = option.partition("=")
    if found := re.fullmatch(r"armv(\d)(?:\.(\d))?-a(.*)", processor):
        version = "_".join(part for part in found.groups()[:2] if part)
        return f"-mcpu=generic+v{version}a{found[3]}"
    return f"{name}={processor.replace('-', '_')}" if equals else option


@functools.lru_cache(maxsize=32)
def _macros(compiler: Compiler, options: tuple[str, ...]) -> frozenset[str]:
    """Return the names of the macros that the compiler predefines, which describe its target processor."""
    with temporary_folder() as folder:
        (folder / UNIT_FILE).touch()
        text = run_compiler(compiler, [*options, "-dM", "-E", UNIT_FILE], folder)
    return frozenset(line.split()[1] for line in text.splitlines() if line.startswith("#define "))


def _architecture(macros: frozenset[str]) -> str | None:
    """Return the architecture of a compiler, or None if native code cannot be for it.   macros: those of `_macros`."""
    return next((name for macro, name in _ARCHITECTURES.items() if macro in macros), None)


def _triple(compiler: Compiler, macros: frozenset[str]) -> str:
    """Return the target triple of the compiler, such as `x86_64-linux-gnu`.   macros: the result of `_macros`."""
    if "__wasm32__" in macros:
        return _WASM_TRIPLE
    architecture = _architecture(macros)
    system = next((name for macro, name in _SYSTEMS.items() if macro in macros), None)
    if architecture is None or system is None:
        command = shlex.join(compiler.command)
        raise RelvmToolchainError(
            f"{command} must compile for x86-64 or AArch64, and Linux, macOS or Windows, not for another system"
        )
    return f"{architecture}-{system}"


def target_system(compiler: Compiler) -> str:
    """Return the system for which a compiler compiles: "linux", "macos" or "windows".

    Raise RelvmToolchainError for any other system, and for processors other than x86-64 and AArch64.
    """
    return _triple(compiler, _macros(compiler, ())).split("-")[1]


def linker_flags(compiler: Compiler) -> tuple[str, ...]:
    """Return the flags with which a compiler links a shared library without unused functions."""
    match target_system(compiler):
        case "linux":
            return ("-shared", "-Wl,-Bsymbolic", "-Wl,--gc-sections", *_LINKED_SAFELY)
        case "macos":
            return ("-shared", "-Wl,-dead_strip")
    return ("-shared", "-Wl,--gc-sections")


def compile_runtime(compiler: Compiler, flags: Sequence[str]) -> dict[str, bytes]:
    """Return the object files of the runtime, by file name.  Compile those that are not in the cache.

    Raises
    ------
    RelvmToolchainError
        The compiler failed.
    """
    return compile_files(compiler, {source: tuple(flags) for source in runtime_sources()})


def compile_files(compiler: Compiler, flags_of: Mapping[Path, tuple[str, ...]]) -> dict[str, bytes]:
    """Return the object files of C files of relvm, by file name.  Compile those that are not in the cache.

    flags_of: the flags for each file.

    Raises
    ------
    RelvmToolchainError
        The compiler failed.
    """
    texts = [source.read_text(encoding="utf-8") for source in runtime_sources()]  # one file can include another

    def compiled(item: tuple[Path, tuple[str, ...]]) -> bytes:
        source, flags = item
        digest = _digest(compiler, (texts, source.name, source.read_text(encoding="utf-8"), flags))
        return _get_or_make(digest, lambda: _compile_file(compiler, source, flags))

    with ThreadPool(os.cpu_count()) as pool:
        names = [f"{source.stem}.o" for source in flags_of]
        return dict(zip(names, pool.map(compiled, flags_of.items(), chunksize=1), strict=True))


def module_name(content: bytes) -> str:
    """Return the name of the file in which a compiler finds an executable that it embeds.

    The name contains a digest of the executable.  If assembly code includes a file, the cache of zig cc does not notice
    that a file of the same name has other contents.
    """
    return f"module-{hashlib.sha256(content).hexdigest()}.rvm"


def write_module(folder: Path, content: bytes) -> str:
    """Write an executable for csrc/library/module.c, and return the option with the name of its file."""
    name = module_name(content)
    (folder / name).write_bytes(content)
    return f'-DRVM_MODULE="{name}"'


_here = threading.local()  # is_background: whether this thread compiles in the background
_BACKGROUND_NICENESS = 10


@contextlib.contextmanager
def in_background() -> Iterator[None]:
    """A context manager in which this thread starts compilers with a low priority.  They are killed when Python
    exits.
    """
    _here.is_background = True
    try:
        yield
    finally:
        _here.is_background = False


def _work_in_background() -> None:
    """Make the compilers that this new thread starts end when Python exits.

    On Linux, also lower the priority of the thread, which the compilers inherit.
    """
    _here.is_background = True
    with contextlib.suppress(OSError):
        lower_priority(threading.get_native_id(), _BACKGROUND_NICENESS)


_Unit = tuple[str, tuple[str, ...]]  # (source text, compiler flags)


def _library(compiler: Compiler, cpu: str, units: list[_Unit], publish: Callable[[int, bytes], None]) -> bytes:
    """Return the shared library of translation units, from the cache if possible, otherwise compiled and linked.

    cpu: the processor features that the flags select.  This text is part of the cache key, because a flag can have
    different meanings on different machines.
    publish: a function that is called with the index and the object file of each unit.  It is not called if the library
    is in the cache.
    """

    def compiled(index: int) -> bytes:
        content = _unit_object(compiler, cpu, units[index])
        publish(index, content)
        return content

    def link() -> bytes:
        prepare = _work_in_background if getattr(_here, "is_background", False) else None
        with ThreadPool(os.cpu_count(), prepare) as pool:
            objects = pool.map(compiled, range(len(units)), chunksize=1)
        return _link(compiler, objects)

    return _get_or_make(_digest(compiler, (cpu, units, linker_flags(compiler))), link)


def _unit_object(compiler: Compiler, cpu: str, unit: _Unit) -> bytes:
    """Return the object file of the translation unit `unit`, from the cache if possible.

    cpu: the processor features that the flags select, as part of the cache key.
    """
    return _get_or_make(_digest(compiler, (cpu, unit)), lambda: _compile(compiler, *unit))


def _digest(compiler: Compiler, what: Any) -> str:
    return hashlib.sha256(repr((compiler, what, platform.libc_ver(), headers_digest())).encode()).hexdigest()


def _get_or_make(digest: str, make: Callable[[], bytes]) -> bytes:
    """Return the content of the cache file for `digest`.

    If the file is missing or not valid, call `make`, store its result in the file, and return the result.
    """
    content = disk_cache.read("compiled", digest)
    name = digest.encode()
    if content and is_built_here(name, content):  # ignore files that were changed
        return content
    new_content = make()
    disk_cache.write("compiled", digest, new_content)
    with contextlib.suppress(OSError):
        record_built(name, new_content)
    return new_content


UNIT_FILE = "unit.c"


def kernel_assembly(units: Sequence[str]) -> list[str]:
    """Compile translation units with kernels, and return their assembly code with the numbers of the lines of C.

    The flags are those of `compile_native`.  Directives `.loc` state the lines of the file UNIT_FILE.

    Raises
    ------
    RelvmToolchainError
        There is no C compiler, or the compiler failed.
    """
    compiler = expect_compiler()
    flags = _kernel_flags(compiler, HERE)  # without _SHARES, so that a unit shows all functions that it calls

    def compiled(text: str) -> str:
        with temporary_folder() as folder:
            (folder / UNIT_FILE).write_text(text, encoding="utf-8")
            run_compiler(compiler, [*flags, *include_flags(), "-g1", "-S", UNIT_FILE, "-o", "unit.s"], folder)
            return (folder / "unit.s").read_text(encoding="utf-8")

    with ThreadPool(os.cpu_count()) as pool:
        return pool.map(compiled, units, chunksize=1)


def _kernel_flags(compiler: Compiler, target: Target) -> tuple[str, ...]:
    """Return the flags with which kernels are compiled."""
    options = _options(compiler, target)
    macros = _macros(compiler, options)
    wide = ("-mprefer-vector-width=512",) if "__AVX512VL__" in macros else ()
    # gcc can move 8 bytes through an MMX register, and leave the registers of the x87 unit in use.
    without_mmx = ("-mno-mmx",) if "__x86_64__" in macros else ()
    # gcc for AArch64 would load operands so early that the sums of a tile no longer fit the registers.
    in_order = ("-fno-schedule-insns",) if "__aarch64__" in macros and not compiler.is_clang else ()
    kernels = [flag for flag in _KERNELS if not (compiler.is_clang and flag in _NOT_FOR_CLANG)]
    return (*_COMMON, *kernels, *options, *wide, *without_mmx, *in_order)


def _compile(compiler: Compiler, text: str, flags: tuple[str, ...]) -> bytes:
    """Compile the C code `text` to an object file, and return its content."""
    with temporary_folder() as folder:
        (folder / UNIT_FILE).write_text(text, encoding="utf-8")
        return _object(compiler, UNIT_FILE, flags, folder)


def _compile_file(compiler: Compiler, source: Path, flags: Sequence[str]) -> bytes:
    """Compile an existing source file to an object file, and return its content."""
    with temporary_folder() as folder:
        return _object(compiler, str(source), flags, folder)


def _object(compiler: Compiler, source: str, flags: Sequence[str], folder: Path) -> bytes:
    run_compiler(compiler, [*flags, *include_flags(), "-c", source, "-o", "unit.o"], folder)
    return (folder / "unit.o").read_bytes()


def _link(compiler: Compiler, objects: list[bytes]) -> bytes:
    """Link object files to a shared library, and return its content."""
    with temporary_folder() as folder:
        names = [f"unit{i}.o" for i in range(len(objects))]
        for name, content in zip(names, objects, strict=True):
            (folder / name).write_bytes(content)
        run_compiler(compiler, [*linker_flags(compiler), "-s", *names, "-lm", "-o", "library.so"], folder)
        return (folder / "library.so").read_bytes()


def run_compiler(compiler: Compiler, arguments: Sequence[str], folder: Path) -> str:
    """Run the compiler in the directory `folder`, and return its output.

    The compiler's temporary files are in this directory, too, because a compiler that is killed does not remove them.

    Raises
    ------
    RelvmToolchainError
        The compiler failed.  The message contains the command and the compiler's output.
    """
    command = [*compiler.command, *arguments]
    options: dict[str, Any] = {
        "cwd": folder,
        "env": temporary_environment(folder),
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "encoding": "utf-8",
        "errors": "replace",
    }
    if getattr(_here, "is_background", False):
        with child_process(command, **options) as process:
            output = process.communicate()[0]
        code = process.returncode
    else:
        done = subprocess.run(command, **options)
        code, output = done.returncode, done.stdout
    if code != 0:
        shown = textwrap.indent(output[:4000].strip(), "  ")
        raise RelvmToolchainError(f"the C compiler failed ({code}): {shlex.join(command)}\n{shown}")
    return output
