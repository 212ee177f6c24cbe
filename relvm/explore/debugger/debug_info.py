"""Debug information: the instructions of functions, with the names and source locations of their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from relvm.bytecode.asm_parser import parse_code
from relvm.bytecode.asm_printer import instruction_text, quoted
from relvm.bytecode.program import Argument, Instruction, Program
from relvm.errors import RelvmFormatError
from relvm.explore.debugger.kernel_code import KernelCode
from relvm.tables import OPCODES

_LETTERS = {row.name: row.operands for row in OPCODES}
_BUILTIN = "vm.builtin."
_COPY, _ROOM = _BUILTIN + "copy", _BUILTIN + "alloc_tensor"
# Builtins that compilation adds: they compute no value of the program.
_HOUSEKEEPING = tuple(_BUILTIN + name for name in ("alloc_", "check_", "match_", "make_shape", "compute_dim"))


@dataclass(frozen=True, eq=False)
class FunctionCode:
    """The instructions of a function, with their source locations.

    Attributes
    ----------
    name
        Name of the function.
    index
        Its index in the function table.
    kind
        "bytecode" or "native".
    parameters
        Names of the parameters.
    code
        The instructions.  For a native function, those of the equivalent bytecode.
    texts
        The instructions as text.
    names
        For each instruction, the known names of the values that it computes.
    origins
        For each instruction, its source locations.  Empty if the executable was not built for debugging.
    functions
        The names in the function table.
    """

    name: str
    index: int
    kind: str
    parameters: tuple[str, ...]
    code: tuple[Instruction, ...]
    texts: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]
    origins: tuple[tuple[str, ...], ...]
    functions: tuple[str, ...]

    def callee(self, instruction: int) -> str:
        """Return the name of the function that an instruction calls, or "" if it is not a call."""
        operands = self._operands(instruction)
        return self.functions[operands["f"]] if "f" in operands else ""

    def is_housekeeping(self, instruction: int) -> bool:
        """Return whether an instruction computes no value of the program.

        Such instructions allocate memory, check arguments, copy or release values, or jump.
        """
        made = self.code[instruction]
        if made.op == "call":
            callee = self.callee(instruction)
            return callee.startswith(_HOUSEKEEPING) or (callee == _COPY and not self.names[instruction])
        return made.op in ("goto", "reset")

    def destination(self, instruction: int) -> int:
        """Return the register of an instruction's result, or -1 if it has none."""
        made = self.code[instruction]
        return made.operands[0] if made.op in ("call", "prim") else -1

    def arguments(self, instruction: int) -> tuple[Argument, ...]:
        """Return the arguments of a call or scalar operation, and () for other instructions."""
        return self._operands(instruction).get("A", ())

    def written(self, instruction: int) -> tuple[int, ...]:
        """Return the registers that an instruction writes.

        A call without a destination register writes its results into the tensors that are its last arguments.  The
        number of results is the number of names in `names`.  If it is unknown, because there are no names, return all
        registers among the arguments.
        """
        destination = self.destination(instruction)
        if destination >= 0:
            return (destination,)
        registers = tuple(each.payload for each in self.arguments(instruction) if each.kind == "REGISTER")
        return registers[-len(self.names[instruction]) :]

    def register_names(self, instruction: int) -> dict[int, str]:
        """Return the registers that can have been written before an instruction, with the names of their values.

        A name is empty if it is unknown or depends on the path taken.  A tensor y that is allocated but not yet written
        has the name "room for y".
        """
        known: dict[int, dict[int, str]] = {}
        while True:
            found, changed = self._walk(instruction, known)
            if not changed:
                return found

    def written_at(self, instruction: int) -> dict[int, int]:
        """Return for each register the last instruction before `instruction`, in code order, that writes it."""
        return {register: number for number in range(instruction) for register in self.written(number)}

    def _operands(self, instruction: int) -> dict[str, Any]:
        """Return the operands of an instruction by their letters in csrc/tables/opcodes.def."""
        made = self.code[instruction]
        return dict(zip(_LETTERS[made.op], made.operands, strict=True))

    def _walk(self, wanted: int, known: dict[int, dict[int, str]]) -> tuple[dict[int, str], bool]:
        """Propagate the names of registers through the code once.

        Return the names of the registers before the instruction `wanted`, and whether a backward jump changed `known`.

        known: for each target of a jump, the names of the registers there.  The walk updates it.
        """
        state: dict[int, str] | None = dict(enumerate(self.parameters))
        found: dict[int, str] = {}
        changed = False
        for number, made in enumerate(self.code):
            if number in known:
                state = _merged(known[number], state)
                known[number] = dict(state)
            if state is None:  # unreachable so far
                continue
            if number == wanted:
                found = dict(state)
            self._apply(number, state)
            target = self._operands(number).get("j")
            if target is not None:
                merged = _merged(known[target], state) if target in known else dict(state)
                changed |= target <= number and merged != known.get(target)
                known[target] = merged
            if made.op in ("goto", "ret", "tail_call"):
                state = None
        return found, changed

    def _apply(self, number: int, state: dict[int, str]) -> None:
        made, names = self.code[number], self.names[number]
        destination = self.destination(number)
        if made.op == "reset":
            state.pop(made.operands[0], None)
        elif destination >= 0:
            name = ", ".join(names) or self._copied(number, state)
            state[destination] = f"room for {name}" if name and self.callee(number) == _ROOM else name
        elif made.op == "call" and names:
            state.update(zip(self.written(number), names, strict=False))

    def _copied(self, number: int, state: Mapping[int, str]) -> str:
        """Return the name of the value that instruction `number` copies, or "" if it is not a copy.

        state: the names of registers before the instruction.
        """
        arguments = self.arguments(number)
        if self.callee(number) == _COPY and arguments[0].kind == "REGISTER":
            return state.get(arguments[0].payload, "")
        return ""


def _merged(first: Mapping[int, str], second: Mapping[int, str] | None) -> dict[int, str]:
    """Merge the register names at the ends of two paths that meet.  second: None if only one path is known.

    A register written on only one path keeps its name.  A register with different names gets the name "".
    """
    merged = dict(first)
    for register, name in (second or {}).items():
        merged[register] = name if merged.get(register, name) == name else ""
    return merged


def is_version(name: str, wanted: str) -> bool:
    """Return whether `name` is `wanted` or one of its later versions `wanted_1`, `wanted_2`, ...

    A source that assigns `wanted` several times creates such versions.
    """
    return name == wanted or (name.startswith(f"{wanted}_") and name[len(wanted) + 1 :].isdecimal())


class ProgramCode:
    """The functions and kernels of a program, with their instructions where these are known.

    Attributes
    ----------
    functions
        The functions by name, without native functions that were not built for debugging.
    kernels
        The kernels in bytecode by name.
    native_kernels
        The names of the other kernels.
    values
        For each name, the source locations at which a value of that name is bound.
    """

    def __init__(self, program: Program) -> None:
        self.functions = {code.name: code for code in _functions(program)}
        kernels = [(index, entry) for index, entry in enumerate(program.functions) if entry.kind == "kernel"]
        self.kernels = {
            entry.name: KernelCode(entry.name, index, tuple(entry.parameters or ()), program.kernels[entry.name])
            for index, entry in kernels
            if entry.name in program.kernels
        }
        self.native_kernels = {entry.name for _, entry in kernels} - set(self.kernels)
        self.values: dict[str, list[str]] = {}
        for function in program.debug:
            for name, places in _stated(program, function)["values"].items():
                self.values.setdefault(name, []).extend(places)

    def find(self, name: str) -> FunctionCode | KernelCode | None:
        """Return the function or kernel `name`, or None if there is none with instructions."""
        return self.functions.get(name) or self.kernels.get(name)

    @cached_property
    def names(self) -> dict[str, list[tuple[FunctionCode, int]]]:
        """For each name, the instructions that compute a value of that name.

        Housekeeping instructions, such as allocations, are included only if no other instruction has the name.
        """
        found: dict[str, list[tuple[FunctionCode, int]]] = {}
        for code in self.functions.values():
            for number, names in enumerate(code.names):
                for name in names:
                    found.setdefault(name, []).append((code, number))
        for name, places in found.items():
            found[name] = [place for place in places if not place[0].is_housekeeping(place[1])] or places
        return found


def _functions(program: Program) -> Iterator[FunctionCode]:
    table = tuple(entry.name for entry in program.functions)
    texts_of = [quoted(name) for name in table]
    for index, entry in enumerate(program.functions):
        stated = _stated(program, entry.name)
        if entry.kind == "native" and stated["code"]:
            code = parse_code(stated["code"], table)
        elif entry.kind == "bytecode":
            code = entry.code
        else:
            continue
        texts = tuple(instruction_text(each, texts_of) for each in code)
        names = tuple(tuple(filter(None, program.comment(entry.name, i).split(", "))) for i in range(len(code)))
        origins = list(map(tuple, stated["origins"][: len(code)]))
        origins += [()] * (len(code) - len(origins))
        parameters = entry.parameters or ()
        yield FunctionCode(entry.name, index, entry.kind, parameters, code, texts, names, tuple(origins), table)


def _stated(program: Program, function: str) -> dict[str, Any]:
    """Return the entries "code", "origins" and "values" of a function in the debug section.  Missing ones are empty.

    Raises
    ------
    RelvmFormatError
        The debug section is malformed.  This can happen in a file from another source.
    """
    stated = program.debug.get(function, {})
    if isinstance(stated, dict):
        found: dict[str, Any] = {"code": [], "origins": [], "values": {}} | stated
        match found:
            case {"code": [*code], "origins": [*origins], "values": dict() as values}:
                if _are_texts(code) and all(map(_are_texts, (*origins, *values.values()))):
                    return found
    raise RelvmFormatError(f"{function}: malformed entry in the debug section: {stated!r:.200}")


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
