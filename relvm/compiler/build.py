"""The build, which converts a module to an executable."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from relvm.bytecode.program import FunctionEntry, NativeCode, Program
from relvm.codegen.c.mangling import kernel_symbol, routine_symbol
from relvm.codegen.debug_info import debug_section
from relvm.codegen.emit_bytecode import Bytecode, print_bytecode
from relvm.codegen.kernel_bytecode import print_kernel_bytecode
from relvm.codegen.lower_to_lir import lower_to_routines
from relvm.compiler import build_cache
from relvm.compiler.garbage_collection import no_garbage_collection
from relvm.compiler.target import HERE, Target, parse_target
from relvm.compiler.upgrade import compile_in_background
from relvm.errors import (
    RelvmArgumentError,
    RelvmNameError,
    RelvmTypeError,
    expect_choice,
    expect_type,
    known_names,
    resources,
)
from relvm.ir.expr import HasModule, Module, expect_module
from relvm.ir.operator import clear_type_cache
from relvm.ir.symbolic import clear_product_cache
from relvm.ir.type_inference import infer_types
from relvm.ir.verifier import Stage, expect_valid_names, verify
from relvm.kernels.kernel import Kernel
from relvm.lir.routine import FunctionKey, LirModule, Routine, used_functions
from relvm.lir.verify_tables import verify_tables
from relvm.passes.pass_manager import Observer, run_passes
from relvm.passes.pipeline import LIR_PASSES, build_pipeline
from relvm.runtime.background_compile import Publish
from relvm.runtime.executable import Executable
from relvm.runtime.file_io import EXECUTABLE_SUFFIXES, SOURCE_SUFFIXES

EXEC_MODES = ("bytecode", "compiled", "auto")

# Called with the name of each build step when it starts.
Progress = Callable[[str], None]


def build(
    module: Module | HasModule | type[Any] | str | os.PathLike[str],
    exec_mode: str | Mapping[str, str] = "bytecode",
    target: str = "c",
    *,
    fused: bool = True,
    debug: bool = False,
    portable: bool = False,
    verified: bool = False,
    observer: Observer | None = None,
    progress: Progress | None = None,
) -> Executable:
    r"""Build an executable from a module.

    Parameters
    ----------
    module
        A module from a front end, at stage PARSED, TYPED or ANF; a function that is decorated by `script`; or the path
        of an .onnx, .relvm, .mlir or .pt2 file.  A class that is decorated by `script` is a module, too.  The
        annotation includes `type`, because mypy sees such a class as a type.
    exec_mode
        "bytecode": functions are bytecode, which the interpreter runs.  "compiled": functions are native code.  The
        results are the same, bit for bit.
        "auto": functions and kernels start as bytecode, which needs no compiler.  If there is a C compiler, a
        background thread compiles them after the program has run for 5 ms for each function and kernel.  Afterwards the
        VM uses the native code (see `VirtualMachine.wait_compiled`).
        A mapping from function names to modes sets the mode of each function, "bytecode" or "compiled".  The entry "*"
        is the mode of all other functions, by default "bytecode".  A private function that the mapping does not name
        has the mode of the first public function, in module order, that uses it.
    target
        "c": the system's C compiler compiles kernels for this processor.
        "bytecode": kernels are kernel bytecode.  Every processor can run it, and it requires neither a compiler nor
        trust in native code.
        "numpy": kernels are the NumPy implementations of the operators.  These kernels are slower.
        "x86-64-v3" or another level, or "c" with options such as "c -march=icelake-server -mno-avx512vnni": kernels are
        compiled for other processors (see relvm.compiler.target).  If this processor lacks instructions that the
        executable requires, the executable can be saved, but not run here.
        Any of these but "numpy" followed by "exact-fma", such as "bytecode exact-fma": processors without fused
        multiply-add instructions compute the same bits as others, more slowly (docs/determinism.md).
    fused
        Whether to fuse operators into common kernels.  If False, every operator has its own kernel, which is useful for
        profiles of operators.
    debug
        Whether the executable is for `relvm.explore.Debugger`.  It then maps each instruction to its source location.
        Native functions are slower, because they can stop at the same places as bytecode.  Kernels are not affected.
    portable
        Whether an executable with native code also contains the program for target "bytecode".  `relvm.vm.adapt` uses
        that program if neither the native code nor a C compiler can be used.  Nothing is added to an executable without
        native code.
    verified
        Whether to verify the module after every pass.  If True, the build cache is not used.
    observer
        A function to call after each pass with (pass, module before, module after, seconds).  It is not called for the
        portable program.  If there is an observer, the build cache is not used.
    progress
        A function to call with the name of each build step when the step starts.

    Returns
    -------
    Executable

    Raises
    ------
    RelvmTypeError, RelvmShapeError, RelvmNameError
        The module is not well typed, or `exec_mode` names a function that the module does not have.
    RelvmArgumentError
        The mode, the target or a processor feature does not exist, or `debug` is combined with "auto".
    RelvmToolchainError
        A required C compiler is missing, or it failed.  With "auto", `wait_compiled` raises the errors of the
        background thread.
    OSError, RelvmFormatError
        The file cannot be read, or is not a model.
    RelvmMemoryError, RelvmRecursionError
        The module is too large to be built, or nested too deeply.

    Examples
    --------
    >>> from relvm import vm
    >>> from relvm.frontend.text import parse_module
    >>> module = parse_module("def f(i: i64) -> i64 = i + 1\n def main(i: i64) -> i64 = @f(i) * 2")
    >>> executable = vm.build(module, exec_mode={"f": "compiled"})
    >>> machine = vm.VirtualMachine(executable)
    >>> machine["main"](20), machine.function_kinds
    (42, {'f': 'native', 'main': 'bytecode'})
    """
    _expect_modes(exec_mode)
    chosen = parse_target(target)
    if isinstance(module, str | os.PathLike):
        module = _read(Path(module))
    module = expect_module("build: module", module)
    expect_valid_names(module)
    report = progress or (lambda step: None)
    has_observer = verified or observer is not None
    if debug and exec_mode == "auto":
        raise RelvmArgumentError('exec_mode="auto" cannot be combined with debug=True; use "bytecode" or "compiled"')
    with resources("build"):
        entry = None if has_observer else build_cache.find_entry(module, exec_mode, chosen, fused, debug, portable)
    if entry and (executable := build_cache.cached_executable(entry)):
        if exec_mode == "auto":
            compile_in_background(executable, partial(compile_again, module, target, fused=fused), entry)
        return executable
    first = replace(chosen, kind="bytecode", options=None) if exec_mode == "auto" and chosen.kind == "c" else chosen
    with no_garbage_collection(), resources("build"):
        report("passes")
        source = module
        module = _planned(module, chosen, fused=fused, verified=verified, observer=observer)
        report("code generation")
        lir = lower(module)
        compiled = native_functions(lir, {"*": "bytecode"} if exec_mode == "auto" else exec_mode)
        program = assemble(lir, compiled, report, first, source if debug else None)
        if portable and program.native:
            report("portable program")
            program = replace(program, portable=_portable(source, chosen, fused=fused, debug=debug, verified=verified))
        executable = Executable.from_program(program, elsewhere=True)
        executable.record_built()
    if entry and exec_mode != "auto":
        build_cache.write_executable(entry, executable)
    if exec_mode == "auto":
        writer = threading.Thread(target=build_cache.write_executable, args=(entry, executable), name="relvm cache")
        if entry:
            writer.start()  # the caller does not wait for the disk
        lir = _sharing_tensors(lir, executable)
        compile_in_background(executable, partial(_compile_in_parts, lir, chosen), entry, writer)
    return executable


def _read(path: Path) -> Module:
    from relvm.frontend.read_model import read_model
    from relvm.frontend.stablehlo_file import is_stablehlo

    if path.suffix in EXECUTABLE_SUFFIXES:
        raise RelvmTypeError(f"build: {path} is already compiled; load it with relvm.vm.load or relvm.load_model")
    if path.suffix not in SOURCE_SUFFIXES and not is_stablehlo(path):
        raise RelvmTypeError(
            f"build: expected an ir.Module, or the path of an .onnx, .relvm, .mlir or .pt2 file, got {str(path)!r}"
        )
    return read_model(path)


def compile_again(
    module: Module, target: str, publish: Publish[Executable], replaces: bytes, *, fused: bool
) -> Executable:
    """Compile a module to native code that replaces the bytecode of an executable, which an earlier build made.

    module, target, fused: the arguments of the earlier `build` with exec_mode="auto".
    publish: a function that is called with executables of some of the kernels, as soon as they are compiled.
    replaces: the digest of the executable with the bytecode.
    """
    chosen = parse_target(target)
    with no_garbage_collection(), resources("build"):
        lir = lower(_planned(module, chosen, fused=fused))
    return _compile_in_parts(lir, chosen, publish, replaces)


def _planned(
    module: Module, target: Target, *, fused: bool, verified: bool = False, observer: Observer | None = None
) -> Module:
    """Run the passes of a build, and return the module at stage PLANNED.  The parameters are those of `build`."""
    try:
        return run_passes(module, build_pipeline(target.kind, fused=fused), verified=verified, observer=observer)
    finally:
        clear_type_cache()
        clear_product_cache()


def _sharing_tensors(lir: LirModule, executable: Executable) -> LirModule:
    """Return a lowered module with the tensors of its executable, so that they are in memory only once."""
    stored = executable.program.constants[: len(lir.constants)]
    pairs = zip(lir.constants, stored, strict=True)
    return replace(lir, constants=tuple(new if isinstance(new, np.ndarray) else old for old, new in pairs))


def _compile_in_parts(lir: LirModule, target: Target, publish: Publish[Executable], replaces: bytes) -> Executable:
    """Compile all functions and kernels of a lowered module to native code, and return the executable.

    replaces: the digest of the executable that contains the bytecode of the module.

    The kernels are compiled in several units.  As soon as a unit is compiled, `publish` is called with an executable
    that contains only the kernels of this unit.
    """

    from relvm.codegen.c.module import unit_kernels  # a build without a C compiler does not need it

    def each_unit(index: int, native: NativeCode) -> None:
        if kernels := unit_kernels(lir.kernels, index):
            publish(_replacing(Program(tuple(map(_kernel_entry, kernels)), native=native), replaces))

    names = frozenset(routine.name for routine in lir.routines)
    return _replacing(assemble(lir, names, target=target, each_unit=each_unit), replaces)


def _replacing(program: Program, replaces: bytes) -> Executable:
    """Return the executable of a program, and record `replaces` in its native code, if it has any.

    replaces: the digest of the executable whose bytecode the native code can replace.
    """
    native = program.native and replace(program.native, replaces=replaces)
    return Executable.from_program(replace(program, native=native))


def _portable(module: Module, native: Target, *, fused: bool, debug: bool, verified: bool) -> Program:
    """Return the portable program of a module: the program for target "bytecode".

    native: the target of the native code that the portable program can replace.
    """
    target = replace(native, kind="bytecode", options=None)
    lir = lower(run_passes(module, build_pipeline("bytecode", fused=fused), verified=verified))
    return assemble(lir, frozenset(), target=target, debug_source=module if debug else None)


def lower(module: Module) -> LirModule:
    """Lower a module at stage PLANNED to routines, run the LIR passes, and return the result."""
    lir = lower_to_routines(expect_module("lower: module", module))
    for step in LIR_PASSES:
        lir = step(lir)
    return lir


def build_planned(
    module: Module,
    exec_mode: str | Mapping[str, str] = "bytecode",
    target: str = "c",
    *,
    kernels: Sequence[tuple[str, Any]] = (),
) -> Executable:
    """Build a module that was parsed from text at stage PLANNED, without running passes of the IR.

    The text is that of a module after the last pass, as `print_module` prints it.

    Parameters
    ----------
    module
        A module that `parse_module` has parsed from such a text.
    exec_mode, target
        See `build`.  The mode "auto" is not supported.
    kernels
        The kernels with their names, as in the field `kernels` of the module that was printed.  They are not part of
        the text.

    Raises
    ------
    RelvmTypeError, RelvmShapeError
        The module is not well typed, or an argument has the wrong type.
    RelvmNameError
        The module uses a function that does not exist.
    RelvmVerifyError
        The module is not at stage PLANNED, or uses a kernel that does not exist.
    RelvmArgumentError
        The mode or the target does not exist.
    RelvmToolchainError
        A required C compiler is missing, or it failed.
    """
    module = expect_module("build_planned: module", module)
    with resources("build_planned"):
        claims = {function.name: function.claims_pure for function in module.functions}
        # Checks and other builtins of this stage have effects, even in functions that are declared pure.
        unclaimed = tuple(replace(function, claims_pure=False) for function in module.functions)
        typed = infer_types(replace(module, functions=unclaimed, kernels=(*module.kernels, *kernels)))
        functions = (
            replace(function, pure=claims[function.name], claims_pure=claims[function.name])
            for function in typed.functions
        )
        planned = replace(typed, functions=tuple(functions))
        verify(planned, Stage.PLANNED)
        return build_routines(lower(planned), exec_mode, target)


def build_routines(lir: LirModule, exec_mode: str | Mapping[str, str] = "bytecode", target: str = "c") -> Executable:
    """Build an executable from routines, such as those that `parse_routines` returns.

    Parameters
    ----------
    lir
        The routines, with their tables.
    exec_mode, target
        See `build`.  The mode "auto" is not supported.

    Raises
    ------
    RelvmTypeError
        `lir` is not a LirModule.
    RelvmArgumentError
        The mode or the target does not exist.
    RelvmNameError, RelvmVerifyError
        A routine uses a function or a constant that the module does not have.
    RelvmToolchainError
        A required C compiler is missing, or it failed.
    """
    expect_type("build_routines: lir", lir, LirModule, "a LirModule; parse_routines returns one")
    _expect_modes(exec_mode)
    if exec_mode == "auto":
        raise RelvmArgumentError('build_routines: exec_mode: expected "bytecode", "compiled" or a mapping, got "auto"')
    verify_tables(lir)
    chosen = parse_target(target)
    with resources("build_routines"):
        executable = Executable.from_program(
            assemble(lir, native_functions(lir, exec_mode), target=chosen), elsewhere=True
        )
        executable.record_built()
    return executable


def native_functions(lir: LirModule, exec_mode: str | Mapping[str, str]) -> frozenset[str]:
    """Return the names of the functions that become native code according to `exec_mode`.

    A private function that `exec_mode` does not name gets the mode of the first function that uses it.

    Raises
    ------
    RelvmNameError
        `exec_mode` names a function that does not exist.
    """
    modes = {"*": exec_mode} if isinstance(exec_mode, str) else exec_mode
    routines = {routine.name: routine for routine in lir.routines}
    for name in modes:
        if name != "*" and name not in routines:
            raise RelvmNameError(f"exec_mode: no function {name}{known_names(name, routines)}")
    assigned = {name: modes[name] for name in routines if name in modes}
    for routine in lir.routines:
        if not routine.private:
            mode = assigned.setdefault(routine.name, modes.get("*", "bytecode"))
            _assign_mode(mode, routine, routines, lir.functions, assigned)
    return frozenset(name for name, mode in assigned.items() if mode == "compiled")


def _assign_mode(
    mode: str, start: Routine, routines: dict[str, Routine], functions: tuple[FunctionKey, ...], assigned: dict
) -> None:
    """Assign `mode` to each private function that `start` uses, directly or indirectly, unless it already has a mode.

    routines: all routines of the module, by name.
    functions: the function table.
    assigned: the mode of each function, by name.  The new modes are added to this dict.
    """
    waiting = [start]
    while waiting:
        for kind, name in used_functions(waiting.pop(), functions):
            if kind == "routine" and routines[name].private and name not in assigned:
                assigned[name] = mode
                waiting.append(routines[name])


def assemble(
    lir: LirModule,
    compiled: Collection[str],
    report: Progress = lambda step: None,
    target: Target = HERE,
    debug_source: Module | None = None,
    each_unit: Callable[[int, NativeCode], None] | None = None,
) -> Program:
    """Generate bytecode and native code for a lowered module, and return the program.

    compiled: the names of the functions that become native code.  The others become bytecode.
    report: a function that is called with the name of each build step.
    target: the target for which kernels are compiled.
    debug_source: the source module if the program is built for a debugger, otherwise None.
    each_unit: a function that is called for each C file with kernels, as soon as it is compiled.  Its arguments are the
    index of the file, and a library with only these kernels.
    """
    native, source = None, ""
    native_locations: Mapping[str, Mapping[int, tuple[str, ...]]] = {}
    printed = [routine for routine in lir.routines if debug_source or routine.name not in compiled]
    bytecode = print_bytecode(lir, printed, debug=debug_source is not None)
    kernels, has_c_kernels = {}, target.kind == "c"
    if lir.kernels and not has_c_kernels:
        report("kernel bytecode")
        programs = {kernel.name: print_kernel_bytecode(kernel) for kernel in lir.kernels}
        kernels = {name: replace(program, exact_fma=target.exact_fma) for name, program in programs.items()}
    if (lir.kernels and has_c_kernels) or compiled:
        from relvm.codegen.c.module import print_c, source_text  # a build without a C compiler needs neither module
        from relvm.compiler.toolchain import compile_native

        positions = bytecode.statement_positions if debug_source else None
        text = print_c(
            lir,
            routines=compiled,
            kernels=has_c_kernels,
            statement_positions=positions,
            exact_fma=target.exact_fma,
        )
        report("C compilation")
        native, source = compile_native(text, target, each_unit), source_text(text)
        native_locations = text.locations
    functions = tuple(map(_EntryMaker(lir, bytecode, compiled), lir.functions))
    debug = debug_section(lir, bytecode, compiled, native_locations, debug_source)
    return Program(functions, bytecode.constants, native, source, lir.signature, debug, kernels=kernels)


class _EntryMaker:
    """A callable that returns the entry of the function table for the key of a function.

    lir: the module.
    bytecode: the code of the routines that become bytecode.
    compiled: the names of the routines that become native code.
    """

    def __init__(self, lir: LirModule, bytecode: Bytecode, compiled: Collection[str]) -> None:
        self.bytecode = bytecode
        self.compiled = compiled
        self.routines = {routine.name: routine for routine in lir.routines}
        self.kernels = {kernel.name: kernel for kernel in lir.kernels}

    def __call__(self, key: FunctionKey) -> FunctionEntry:
        kind, name = key
        if kind == "kernel":
            return _kernel_entry(self.kernels[name])
        if kind == "packed":
            return FunctionEntry(name, "packed")
        routine = self.routines[name]
        if name in self.compiled:
            kind, symbol = "native", routine_symbol(name)
            return FunctionEntry(
                name,
                kind,
                routine.params,
                routine.registers,
                symbol=symbol,
                private=routine.private,
                impure=routine.impure,
            )
        registers, code = self.bytecode.registers[name], self.bytecode.code[name]
        return FunctionEntry(
            name, "bytecode", routine.params, registers, code, private=routine.private, impure=routine.impure
        )


def _kernel_entry(kernel: Kernel) -> FunctionEntry:
    params = tuple(buffer.name.rstrip("_") for buffer in (*kernel.inputs, *kernel.outputs))
    return FunctionEntry(kernel.name, "kernel", params, symbol=kernel_symbol(kernel.name))


def _expect_modes(exec_mode: str | Mapping[str, str]) -> None:
    if not isinstance(exec_mode, Mapping):
        expect_choice("exec_mode", exec_mode, EXEC_MODES)
        return
    for name, mode in exec_mode.items():
        expect_type("exec_mode: the name of a function", name, str, "a string")
        expect_choice(f"exec_mode[{name!r}]", mode, ("bytecode", "compiled"))
