"""What an executable says of its instructions, for people: the debug section.

For each function of the program an object with

instructions
    What each instruction computes: the name of a value, or nothing.

for each kernel one with

operations, reads
    What a call computes, and how much it reads (relvm/bytecode/program.py).

and in a program that is built for debugging also

origins
    For each instruction the places in the source that it comes from (Var.origins).
code
    Of a native function: the instructions that it would be as bytecode, as text; they are what its routine tells a
    debugger of.
values
    Of a function of the source: for each name the places where a value of that name is bound.  Such a function need not
    be one of the program: it may have been inlined.
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
    """The section of a program.

    Parameters
    ----------
    bytecode
        Of its functions; of those in `compiled`, too, where it is built for debugging.
    compiled
        The functions that are native code.
    source
        The module that it was built from, where it is built for debugging.
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
    """The places of each name; those inside of ifs and local functions are the function's, too."""
    bound = [item.var for item in walk(function.body) if isinstance(item, Binding | MatchCast)]
    places: dict[str, dict[str, None]] = {}
    for var in bound:
        if var.origin:
            places.setdefault(var.name, {})[var.origin] = None
    return {name: list(each) for name, each in places.items()}
