"""Debug information: the instructions of functions, with the names and source locations of their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from relvm.bytecode.asm_parser import parse_code
from relvm.bytecode.asm_printer import function_keys, function_texts, instruction_text
from relvm.bytecode.program import Argument, Instruction, Program
from relvm.data_classes import dataclass
from relvm.errors import RelvmFormatError
from relvm.explore.debugger.kernel_code import KernelCode
from relvm.tables import BUILTIN_PREFIX, OPCODES

_LETTERS = {row.name: row.operands for row in OPCODES}
_COPY, _ALLOC = BUILTIN_PREFIX + "copy", BUILTIN_PREFIX + "alloc_tensor"
_UNWRITTEN = "room for "  # prefix of the name of a tensor that is allocated but not yet written
# Builtins that compilation adds: they compute no value of the program.
_HOUSEKEEPING = tuple(BUILTIN_PREFIX + name for name in ("alloc_", "check_", "match_", "make_shape", "compute_dim"))


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
        """Return whether an instruction computes no value of the program, so that steps skip it.

        Such instructions allocate memory, check arguments, copy or release values, or jump.
        """
        current = self.code[instruction]
        if current.op == "call":
            callee = self.callee(instruction)
            return callee.startswith(_HOUSEKEEPING) or (callee == _COPY and not self.names[instruction])
        return current.op in ("goto", "reset")

    def destination(self, instruction: int) -> int:
        """Return the register of an instruction's result, or -1 if it has none."""
        current = self.code[instruction]
        return current.operands[0] if current.op in ("call", "prim") else -1

    def arguments(self, instruction: int) -> tuple[Argument, ...]:
        """Return the arguments of a call or scalar operation, and () for other instructions."""
        return self._operands(instruction).get("A", ())

    def written_registers(self, instruction: int) -> tuple[int, ...]:
        """Return the registers that an instruction writes.

        A call without a destination register writes its results into tensors, which are its last arguments.  The
        number of these tensors is the number of names in the attribute `names`.  If there are no names, return all
        registers among the arguments.
        """
        destination = self.destination(instruction)
        if destination >= 0:
            return (destination,)
        registers = tuple(each.payload for each in self.arguments(instruction) if each.kind == "REGISTER")
        return registers[-len(self.names[instruction]) :]

    def register_names(self, instruction: int) -> dict[int, str]:
        """Return a name for the value of each register that can have a value before an instruction.

        A name is empty if it is unknown, or if it depends on the path through the code.  A tensor y that is allocated
        but not yet written has the name "room for y".
        """
        known: dict[int, dict[int, str]] = {}
        while True:
            found, changed = self._propagate_names(instruction, known)
            if not changed:
                return found

    def last_writes(self, instruction: int) -> dict[int, int]:
        """Return, for each register, the number of the last instruction before `instruction` that writes it.

        The order is that of the code.  Jumps are ignored.
        """
        return {register: number for number in range(instruction) for register in self.written_registers(number)}

    def _operands(self, instruction: int) -> dict[str, Any]:
        """Return the operands of an instruction by the letters that stand for them in csrc/tables/opcodes.def."""
        current = self.code[instruction]
        return dict(zip(_LETTERS[current.op], current.operands, strict=True))

    def _propagate_names(self, wanted: int, known: dict[int, dict[int, str]]) -> tuple[dict[int, str], bool]:
        """Propagate the names of registers through the code once, from the first instruction to the last.

        Return the names of the registers before the instruction `wanted`, and whether a backward jump changed `known`.
        In that case, the propagation must be repeated.

        known: for each target of a jump, the names of the registers there, which this method updates.
        """
        state: dict[int, str] | None = dict(enumerate(self.parameters))
        found: dict[int, str] = {}
        changed = False
        for number, current in enumerate(self.code):
            if number in known:
                state = _merge_names(known[number], state)
                known[number] = dict(state)
            if state is None:  # unreachable so far
                continue
            if number == wanted:
                found = dict(state)
            self._apply(number, state)
            target = self._operands(number).get("j")
            if target is not None:
                merged = _merge_names(known[target], state) if target in known else dict(state)
                changed |= target <= number and merged != known.get(target)
                known[target] = merged
            if current.op in ("goto", "ret", "tail_call"):
                state = None
        return found, changed

    def _apply(self, number: int, state: dict[int, str]) -> None:
        current, names = self.code[number], self.names[number]
        destination = self.destination(number)
        if current.op == "reset":
            state.pop(current.operands[0], None)
        elif destination >= 0:
            name = ", ".join(names) or self._name_of_copied(number, state)
            state[destination] = _UNWRITTEN + name if name and self.callee(number) == _ALLOC else name
        elif current.op == "call" and names:
            state.update(zip(self.written_registers(number), names, strict=False))

    def _name_of_copied(self, number: int, state: Mapping[int, str]) -> str:
        """Return the name of the value that instruction `number` copies, or "" if it is not a copy.

        state: the names of the registers before the instruction.
        """
        arguments = self.arguments(number)
        if self.callee(number) == _COPY and arguments[0].kind == "REGISTER":
            return state.get(arguments[0].payload, "")
        return ""


def _merge_names(first: Mapping[int, str], second: Mapping[int, str] | None) -> dict[int, str]:
    """Merge the register names of two paths through the code that meet at an instruction.

    A register that only one path writes keeps its name.  A register with different names gets the name "".

    second: the names on the second path, or None if there is only one path so far.
    """
    merged = dict(first)
    for register, name in (second or {}).items():
        merged[register] = name if merged.get(register, name) == name else ""
    return merged


def is_unwritten(name: str) -> bool:
    """Return whether `name`, a result of `FunctionCode.register_names`, is that of a tensor that is not yet written."""
    return name.startswith(_UNWRITTEN)


def is_version(name: str, base: str) -> bool:
    """Return whether `name` is `base`, or `base` with a number appended, as in `base_1`.

    Such names result if a source assigns the variable `base` several times.
    """
    return name == base or (name.startswith(f"{base}_") and name[len(base) + 1 :].isdecimal())


class ProgramCode:
    """The functions and kernels of a program, with their instructions where these are known.

    Attributes
    ----------
    functions
        The functions whose instructions are known, by name.  These are all functions except native functions that were
        not built for debugging.
    kernels
        The kernels in bytecode by name.
    native_kernels
        The names of the kernels in native code, whose instructions are not known.
    values
        For each name of a value, the source locations at which a value of this name is computed.
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
            for name, places in _debug_entries(program, function)["values"].items():
                self.values.setdefault(name, []).extend(places)

    def find(self, name: str) -> FunctionCode | KernelCode | None:
        """Return the function or kernel `name`, or None if there is none whose instructions are known."""
        return self.functions.get(name) or self.kernels.get(name)

    @cached_property
    def names(self) -> dict[str, list[tuple[FunctionCode, int]]]:
        """The instructions that compute values, by the name of the value.

        Instructions such as allocations, for which `is_housekeeping` is true, are included only if no other instruction
        computes a value of that name.
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
    keys = function_keys(program.functions)
    texts_of = function_texts(keys)
    for index, entry in enumerate(program.functions):
        if entry.kind == "packed":
            continue
        entries = _debug_entries(program, entry.name)
        if entry.kind == "native" and entries["code"]:
            code = parse_code(entries["code"], keys)
        elif entry.kind == "bytecode":
            code = entry.code
        else:
            continue
        texts = tuple(instruction_text(each, texts_of) for each in code)
        names = tuple(tuple(filter(None, program.comment(entry.name, i).split(", "))) for i in range(len(code)))
        origins = list(map(tuple, entries["origins"][: len(code)]))
        origins += [()] * (len(code) - len(origins))
        parameters = entry.parameters or ()
        yield FunctionCode(entry.name, index, entry.kind, parameters, code, texts, names, tuple(origins), table)


def _debug_entries(program: Program, function: str) -> dict[str, Any]:
    """Return the data of a function in the debug section of an executable: "code", "origins" and "values".

    If one of these is missing, it is empty in the result.

    Raises
    ------
    RelvmFormatError
        The debug section is malformed.  This can happen in a file from another source.
    """
    entries = program.debug.get(function, {})
    if isinstance(entries, dict):
        found: dict[str, Any] = {"code": [], "origins": [], "values": {}} | entries
        match found:
            case {"code": [*code], "origins": [*origins], "values": dict() as values}:
                if _are_texts(code) and all(map(_are_texts, (*origins, *values.values()))):
                    return found
    raise RelvmFormatError(f"{function}: malformed entry in the debug section: {entries!r:.200}")


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
