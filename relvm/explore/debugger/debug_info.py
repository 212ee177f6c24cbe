"""What an executable says of the instructions of its functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from relvm.bytecode.asm_parser import parse_code
from relvm.bytecode.asm_printer import instruction_text, quoted
from relvm.bytecode.program import Argument, Instruction, Program
from relvm.errors import RelvmFormatError
from relvm.tables import OPCODES

_LETTERS = {row.name: row.operands for row in OPCODES}
_BUILTIN = "vm.builtin."
_COPY, _ROOM = _BUILTIN + "copy", _BUILTIN + "alloc_tensor"
# What compilation adds around the values of a program.
_HOUSEKEEPING = tuple(_BUILTIN + name for name in ("alloc_", "check_", "match_", "make_shape", "compute_dim"))


@dataclass(frozen=True, eq=False)
class FunctionCode:
    """The instructions of a function, and where they come from.

    Attributes
    ----------
    name
        Of the function.
    index
        Its place in the function table.
    kind
        "bytecode" or "native".
    parameters
        Their names.
    code
        The instructions; of a native function those that it would be.
    texts
        They as text.
    names
        The names of the values that each computes; empty where nothing says it.
    origins
        Where in the source each comes from; empty where the executable is not built for debugging.
    functions
        The names of the function table.
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
        """What an instruction calls; empty where it is no call."""
        operands = self._operands(instruction)
        return self.functions[operands["f"]] if "f" in operands else ""

    def is_housekeeping(self, instruction: int) -> bool:
        """Whether it computes nothing of the program: it makes room, checks an argument, moves or releases a value, or
        jumps."""
        made = self.code[instruction]
        if made.op == "call":
            callee = self.callee(instruction)
            return callee.startswith(_HOUSEKEEPING) or (callee == _COPY and not self.names[instruction])
        return made.op in ("goto", "reset")

    def destination(self, instruction: int) -> int:
        """The register that takes its result; -1: none."""
        made = self.code[instruction]
        return made.operands[0] if made.op in ("call", "prim") else -1

    def arguments(self, instruction: int) -> tuple[Argument, ...]:
        """Those of a call or of arithmetic."""
        return self._operands(instruction).get("A", ())

    def written(self, instruction: int) -> tuple[int, ...]:
        """The registers whose values it makes: its destination; of a call without one the last of its arguments, which
        a kernel writes, as many as it has names, or all where it has none."""
        destination = self.destination(instruction)
        if destination >= 0:
            return (destination,)
        registers = tuple(each.payload for each in self.arguments(instruction) if each.kind == "REGISTER")
        return registers[-len(self.names[instruction]) :]

    def register_names(self, instruction: int) -> dict[int, str]:
        """The registers that may have been written before an instruction, with the names of their values.

        A name is empty where nothing says it, or where it depends on the way that the function took; it is "room for y"
        of a tensor that no kernel has written yet.
        """
        known: dict[int, dict[int, str]] = {}
        while True:
            found, changed = self._walk(instruction, known)
            if not changed:
                return found

    def written_at(self, instruction: int) -> dict[int, int]:
        """The instruction before another one that wrote each register last, in the order of the code."""
        return {register: number for number in range(instruction) for register in self.written(number)}

    def _operands(self, instruction: int) -> dict[str, Any]:
        """By their letters in csrc/tables/opcodes.def."""
        made = self.code[instruction]
        return dict(zip(_LETTERS[made.op], made.operands, strict=True))

    def _walk(self, wanted: int, known: dict[int, dict[int, str]]) -> tuple[dict[int, str], bool]:
        """One walk over the code.  known: what is known at targets of jumps, which grows.  Returns what is known before
        the instruction `wanted`, and whether a jump back has changed `known`."""
        state: dict[int, str] | None = dict(enumerate(self.parameters))
        found: dict[int, str] = {}
        changed = False
        for number, made in enumerate(self.code):
            if number in known:
                state = _merged(known[number], state)
                known[number] = dict(state)
            if state is None:  # only jumps lead there, and none has yet
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
        """The name of what a copy copies."""
        arguments = self.arguments(number)
        if self.callee(number) == _COPY and arguments[0].kind == "REGISTER":
            return state.get(arguments[0].payload, "")
        return ""


def _merged(first: Mapping[int, str], second: Mapping[int, str] | None) -> dict[int, str]:
    """What is known after two ways come together.  A register that only one of them has written is as that says."""
    merged = dict(first)
    for register, name in (second or {}).items():
        merged[register] = name if merged.get(register, name) == name else ""
    return merged


def is_version(name: str, wanted: str) -> bool:
    """Whether a value is what the source calls `wanted`: what is assigned again is `total`, then `total_1`, ..."""
    return name == wanted or (name.startswith(f"{wanted}_") and name[len(wanted) + 1 :].isdecimal())


class ProgramCode:
    """The functions of a program that have instructions.

    Attributes
    ----------
    functions
        By name.  Native ones that were not built for debugging are not among them.
    values
        For each name the places of the source where a value of that name is bound.
    """

    def __init__(self, program: Program) -> None:
        self.functions = {code.name: code for code in _functions(program)}
        self.values: dict[str, list[str]] = {}
        for function in program.debug:
            for name, places in _stated(program, function)["values"].items():
                self.values.setdefault(name, []).extend(places)

    @cached_property
    def names(self) -> dict[str, list[tuple[FunctionCode, int]]]:
        """For each name the instructions that compute a value of that name; those that make room for it only where no
        other one does."""
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
    """What the debug section says of a function: its "code", "origins" and "values", empty where it says nothing.

    Raises
    ------
    RelvmFormatError
        It is something else than builds write, as it may be in a file from elsewhere.
    """
    stated = program.debug.get(function, {})
    if isinstance(stated, dict):
        found: dict[str, Any] = {"code": [], "origins": [], "values": {}} | stated
        match found:
            case {"code": [*code], "origins": [*origins], "values": dict() as values}:
                if _are_texts(code) and all(map(_are_texts, (*origins, *values.values()))):
                    return found
    raise RelvmFormatError(f"{function}: what the debug section says of it is not what builds write: {stated!r:.200}")


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
