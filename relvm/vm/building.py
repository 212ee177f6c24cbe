"""From a module to an executable."""

from __future__ import annotations

from collections.abc import Callable

from relvm.codegen.bytecode import Bytecode, constant_values, print_bytecode
from relvm.codegen.c import print_c
from relvm.codegen.c_names import kernel_symbol, routine_symbol
from relvm.codegen.routine import lower_to_routines
from relvm.errors import RelvmArgumentError, RelvmTypeError, near_matches
from relvm.ir.expr import Module
from relvm.lir.direct_calls import direct_calls
from relvm.lir.routine import LirModule
from relvm.lir.tail_calls import tail_calls
from relvm.transform.passes import Observer, run_passes
from relvm.transform.pipelines import TARGETS, build_pipeline
from relvm.vm.runtime.executable import Executable
from relvm.vm.runtime.program import FunctionEntry, Program
from relvm.vm.toolchain import compile_native

EXEC_MODES = ("bytecode", "compiled")

# What build calls as it starts each of its steps: the step's name.
Progress = Callable[[str], None]


def build(
    module: Module,
    exec_mode: str = "bytecode",
    target: str = "c",
    *,
    verified: bool = False,
    observer: Observer | None = None,
    progress: Progress | None = None,
) -> Executable:
    """Build an executable.

    Parameters
    ----------
    module
        As a front end made it (stage PARSED or later, up to NORMAL).
    exec_mode
        "bytecode": functions run in the interpreter.  "compiled": as native code.  Both give the same results, bit for
        bit.
    target
        "c": kernels are compiled with the system's C compiler.  "numpy": kernels are the operators' NumPy meanings;
        slower, and needs no compiler in bytecode mode.
    verified
        Check the module after every pass.
    observer
        Called after each pass with (pass, module before, module after, seconds).
    progress
        Called with the name of each step as it starts.

    Returns
    -------
    Executable

    Raises
    ------
    RelvmTypeError, RelvmShapeError, RelvmNameError
        The module is not well typed.
    RelvmToolchainError
        A compiler is needed and there is none, or it failed.
    """
    _expect_choice("exec_mode", exec_mode, EXEC_MODES)
    _expect_choice("target", target, TARGETS)
    if not isinstance(module, Module):
        what = "; give its .module" if hasattr(module, "module") else ""
        raise RelvmTypeError(f"build: expected an ir.Module, got {type(module).__name__}{what}")
    report = progress or (lambda step: None)
    report("passes")
    module = run_passes(module, build_pipeline(target), verified=verified, observer=observer)
    report("code generation")
    lir = lower(module)
    program = _program(lir, exec_mode, report)
    return Executable.from_program(program)


def lower(module: Module) -> LirModule:
    """The routines of a planned module, after the LIR passes."""
    return tail_calls(direct_calls(lower_to_routines(module)))


def _program(lir: LirModule, exec_mode: str, report: Progress) -> Program:
    compiled = exec_mode == "compiled"
    native, source = None, ""
    if lir.kernels or compiled:
        text = print_c(lir, routines=compiled)
        report("C compilation")
        native, source = compile_native(text), str(text)
    bytecode = None if compiled else print_bytecode(lir)
    entry = _Entries(lir, bytecode)
    functions = tuple(map(entry, lir.functions))
    constants = bytecode.constants if bytecode else constant_values(lir)
    debug = {name: {"instructions": lines} for name, lines in bytecode.comments.items()} if bytecode else {}
    return Program(functions, constants, native, source, lir.signature, debug)


class _Entries:
    """The function table's entries by name."""

    def __init__(self, lir: LirModule, bytecode: Bytecode | None) -> None:
        self.bytecode = bytecode
        self.routines = {routine.name: routine for routine in lir.routines}
        self.kernels = {kernel.name: kernel for kernel in lir.kernels}

    def __call__(self, name: str) -> FunctionEntry:
        if name in self.kernels:
            kernel = self.kernels[name]
            params = tuple(buffer.name.rstrip("_") for buffer in (*kernel.inputs, *kernel.outputs))
            return FunctionEntry(name, "kernel", params, symbol=kernel_symbol(name))
        if name not in self.routines:
            return FunctionEntry(name, "packed")
        routine = self.routines[name]
        if self.bytecode is None:
            kind, symbol = "native", routine_symbol(name)
            return FunctionEntry(name, kind, routine.params, routine.registers, symbol=symbol, private=routine.private)
        registers, code = self.bytecode.registers[name], self.bytecode.code[name]
        return FunctionEntry(name, "bytecode", routine.params, registers, code, private=routine.private)


def _expect_choice(name: str, got: str, choices: tuple[str, ...]) -> None:
    if got not in choices:
        raise RelvmArgumentError(
            f"{name}={got!r}: expected one of {', '.join(choices)}{near_matches(str(got), choices)}"
        )
