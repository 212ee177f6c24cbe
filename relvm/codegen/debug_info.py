"""The debug section: information about functions, instructions and kernels, for people and tools.

The entry of a function contains:

instructions
    For each instruction, the name of the value that it computes, or an empty string.  A native function has no such
    list unless the program is built for debugging.
locations
    A dict from the index of an instruction, as text, to a list of its source locations
    (relvm/codegen/failure_locations.py).  In a program that is built for debugging, `origins` replaces it.

The entry of a kernel contains:

operations, reads
    The work of a call (relvm/bytecode/program.py).

If the program is built for debugging, the entry of a function also contains:

origins
    For each instruction, its source locations (Var.origins).
code
    For a native function, the text of the corresponding bytecode instructions.  The native code reports its position to
    a debugger as one of these instructions.
values
    For a function of the source module, a mapping from the name of each value to the source locations at which values
    of this name are bound.  Functions that were inlined everywhere, and so are not in the program, are included.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from relvm.bytecode.asm_printer import function_texts, instruction_text
from relvm.codegen.emit_bytecode import Bytecode
from relvm.codegen.failure_locations import failure_locations
from relvm.ir.expr import Binding, Function, MatchCast, Module
from relvm.ir.node import walk
from relvm.kernels.cost import work_entry
from relvm.lir.routine import LirModule


def debug_section(
    lir: LirModule,
    bytecode: Bytecode,
    compiled: Collection[str],
    native_locations: Mapping[str, Mapping[int, tuple[str, ...]]],
    source: Module | None,
) -> dict[str, dict[str, Any]]:
    """Return the debug section of a program: information about its functions and kernels, by name.

    The attribute `debug` of relvm.bytecode.program.Program describes the entries.  If `source` is not None, the entries
    also contain the source locations of instructions and variables, and the text of native functions' instructions.

    Parameters
    ----------
    bytecode
        The bytecode of the functions.  If the program is built for debugging, it includes the functions in `compiled`.
    compiled
        The names of the functions that are native code.
    native_locations
        The source locations of the instructions of native code that can fail (`CSource.locations`).
    source
        The source module of the program if the program is built for debugging, otherwise None.
    """
    section: dict[str, dict[str, Any]] = {}
    for kernel in lir.kernels:
        if kernel.work:
            section[kernel.name] = work_entry(
                kernel.work, [buffer.shape for buffer in (*kernel.inputs, *kernel.outputs)]
            )
    if source is None:
        for name, names in bytecode.comments.items():
            section[name] = {"instructions": names}
        for name, places in {**failure_locations(lir, bytecode), **native_locations}.items():
            if places:
                section.setdefault(name, {})["locations"] = {str(index): list(each) for index, each in places.items()}
        return section
    table = function_texts([(key.kind == "packed", key.name) for key in lir.functions])
    for name, names in bytecode.comments.items():
        section[name] = {"instructions": names, "origins": [list(each) for each in bytecode.origins[name]]}
        if name in compiled:
            section[name]["code"] = [instruction_text(each, table) for each in bytecode.code[name]]
    for function in source.functions:
        section.setdefault(function.name, {})["values"] = _binding_locations(function)
    return section


def _binding_locations(function: Function) -> dict[str, list[str]]:
    """Return a mapping from each name in `function` to the source locations at which the name is bound.

    Names that are bound inside ifs and local functions are included.
    """
    bound = [item.var for item in walk(function.body) if isinstance(item, Binding | MatchCast)]
    locations: dict[str, dict[str, None]] = {}
    for var in bound:
        if var.origin:
            locations.setdefault(var.name, {})[var.origin] = None
    return {name: list(each) for name, each in locations.items()}
