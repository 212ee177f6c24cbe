"""The debug section: information about instructions for people.

For each function of the program it has an object with

instructions
    For each instruction, the name of the value that it computes, or an empty string.

for each kernel an object with

operations, reads
    The work of a call (relvm/bytecode/program.py).

and in a program that is built for debugging also

origins
    For each instruction, its source locations (Var.origins).
code
    For a native function: the instructions that it would have as bytecode, as text.  Its routine reports these to a
    debugger.
values
    For a function of the source: for each name, the locations where a value of that name is bound.  The function may be
    missing in the program because it was inlined.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from relvm.bytecode.asm_printer import instruction_text, quoted
from relvm.codegen.emit_bytecode import Bytecode
from relvm.ir.expr import Binding, Function, MatchCast, Module
from relvm.ir.node import walk
from relvm.kernels.cost import work_entry
from relvm.lir.routine import LirModule


def debug_section(
    lir: LirModule, bytecode: Bytecode, compiled: Collection[str], source: Module | None
) -> dict[str, dict[str, Any]]:
    """Return the debug section of a program.

    Parameters
    ----------
    bytecode
        The bytecode of its functions, including those in `compiled` if the program is built for debugging.
    compiled
        The functions that are native code.
    source
        The module from which it was built, if it is built for debugging.
    """
    section: dict[str, dict[str, Any]] = {}
    for kernel in lir.kernels:
        if kernel.work:
            section[kernel.name] = work_entry(
                kernel.work, [buffer.shape for buffer in (*kernel.inputs, *kernel.outputs)]
            )
    if source is None:
        return section | {name: {"instructions": names} for name, names in bytecode.comments.items()}
    table = [quoted(name) for name in lir.functions]
    for name, names in bytecode.comments.items():
        section[name] = {"instructions": names, "origins": [list(each) for each in bytecode.origins[name]]}
        if name in compiled:
            section[name]["code"] = [instruction_text(each, table) for each in bytecode.code[name]]
    for function in source.functions:
        section.setdefault(function.name, {})["values"] = _values(function)
    return section


def _values(function: Function) -> dict[str, list[str]]:
    """Return the locations of each name, including names inside ifs and local functions."""
    bound = [item.var for item in walk(function.body) if isinstance(item, Binding | MatchCast)]
    places: dict[str, dict[str, None]] = {}
    for var in bound:
        if var.origin:
            places.setdefault(var.name, {})[var.origin] = None
    return {name: list(each) for name, each in places.items()}
