"""Source locations of the instructions that can fail because of their arguments."""

from __future__ import annotations

import re
from functools import cache

from relvm.bytecode.program import Instruction
from relvm.codegen.emit_bytecode import Bytecode
from relvm.ir.loop_ir import Fail, statements_in
from relvm.kernels.kernel import Kernel
from relvm.kernels.statement_origins import statement_origins
from relvm.lir.routine import LirModule, builtin
from relvm.tables import PRIM_OPERATORS

# Builtins that fail only if there is no memory, because the compiler chooses their arguments.
_INFALLIBLE = frozenset(
    [
        *map(builtin, ("alloc_shape_heap", "alloc_storage", "alloc_tensor", "copy", "is_null", "list_length")),
        *map(builtin, ("make_closure", "make_list", "make_shape", "make_tuple", "null_value", "read_dim")),
        *map(builtin, ("shape_of", "shape_to_tensor", "tuple_getitem")),
    ]
)
_LINE_AND_COLUMN = re.compile(r".*:(\d+):(\d+)", re.DOTALL)


def failure_locations(module: LirModule, bytecode: Bytecode) -> dict[str, dict[int, tuple[str, ...]]]:
    """Return the source locations of the instructions that can fail because of their arguments.

    The locations do not contain the file, so that a program does not depend on the folder of its sources.  The
    locations of a kernel are those of the operators that can fail.  Calls of functions of the module are not included,
    because these functions report their failures themselves.

    Returns
    -------
    dict[str, dict[int, tuple[str, ...]]]
        For each routine in `bytecode`, a dict from the index of an instruction to its source locations.
    """
    kernels = {kernel.name: kernel for kernel in module.kernels}

    @cache
    def failing_origins(name: str) -> frozenset[str]:
        return _failing_origins(kernels[name])

    def locations(instruction: Instruction, origins: tuple[str, ...]) -> tuple[str, ...]:
        match instruction:
            case Instruction("prim", (_, row, _)) if PRIM_OPERATORS[row].fails:
                found = origins
            case Instruction("call", (_, index, _)) if module.functions[index].kind == "kernel":
                found = tuple(filter(failing_origins(module.functions[index].name).__contains__, origins))
            case Instruction("call", (_, index, _)) if module.functions[index].kind == "packed":
                found = () if module.functions[index] in _INFALLIBLE else origins
            case _:
                found = ()
        return tuple(dict.fromkeys(map(_place_in_file, found)))

    return {
        name: {
            index: found
            for index, (instruction, origins) in enumerate(zip(code, bytecode.origins[name], strict=True))
            if origins and (found := locations(instruction, origins))
        }
        for name, code in bytecode.code.items()
    }


def _failing_origins(kernel: Kernel) -> frozenset[str]:
    """Return the source locations of the operators of a kernel that can fail, in all calls that share the kernel."""
    failing = [statement for statement in statements_in(kernel.body) if isinstance(statement, Fail)]
    if not failing:
        return frozenset()
    origins = statement_origins(kernel)
    return frozenset(origin for statement in failing for origin in origins.get(statement, ()))


def _place_in_file(origin: str) -> str:
    """Return a source location without its file."""
    if found := _LINE_AND_COLUMN.fullmatch(origin):
        return f"line {found[1]}, column {found[2]}"
    return origin.partition(": ")[2] or origin
