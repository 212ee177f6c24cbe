"""Executables built by hand, instruction by instruction."""

from __future__ import annotations

import builtins
import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relvm._native import lib
from relvm.bytecode.constant_key import constant_key
from relvm.bytecode.encode import PAYLOAD_BITS
from relvm.bytecode.program import (
    CONTEXT,
    NIL,
    Argument,
    Constant,
    FunctionEntry,
    Instruction,
    Program,
    boolean,
    constant,
    function,
    immediate,
    register,
)
from relvm.bytecode.register_numbering import register_order, renumbered
from relvm.errors import (
    RelvmArgumentError,
    RelvmFormatError,
    RelvmNameError,
    RelvmTypeError,
    expect_name,
    near_matches,
)
from relvm.numpy_dtypes import plain_array
from relvm.runtime.executable import Executable
from relvm.runtime.packed_func import provide
from relvm.tables import BUILTINS, OPCODES, PRIM_OPERATORS, numbers, parse_signature

BUILTIN_PREFIX = "vm.builtin."

_OPCODES = {row.name: row for row in OPCODES}
_PRIM_ROWS = numbers(PRIM_OPERATORS)
_BUILTINS = {BUILTIN_PREFIX + row.name: row for row in BUILTINS}
_BUILTIN_NAMES = tuple(_BUILTINS)
_PAYLOAD_LIMIT = 1 << PAYLOAD_BITS - 1


@dataclass(eq=False)
class Label:
    """A place in the function `body`: the instruction of index `position`; None until it is placed."""

    body: _Body
    position: int | None = None


@dataclass
class _Body:
    """A bytecode function being written.  Jumps are still Labels or the indices of their targets."""

    name: str
    parameters: tuple[str, ...]
    registers: int | None
    private: bool
    impure: bool
    code: list[Instruction] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)


@dataclass
class _Row:
    """A name's row in the function table.  kind, parameters: what `declare` or `packed` said.  is_called: by name."""

    index: int
    kind: str | None = None
    parameters: tuple[str, ...] | None = None
    is_called: bool = False
    body: _Body | None = None


class ExecBuilder:
    """Builds an executable of bytecode functions::

        b = ExecBuilder()
        with b.function("main", ["x", "y"]):
            b.emit_call("test.add", [b.r(0), b.r(1)], dst=b.r(2))
            b.emit_ret(b.r(2))
        executable = b.get()

    Registers 0 to n-1 are the parameters; the others may have any numbers: `get` renumbers them.  Constants and
    functions take rows of their tables in the order in which they are first named.

    Attributes
    ----------
    ctx, nil
        The operands for the running machine, which is only ever a packed function's first argument, and for no value.
    source, signature, debug
        The executable's sections of these names, as Program has them.
    """

    ctx: Argument = CONTEXT
    nil: Argument = NIL

    def __init__(self) -> None:
        self.source = ""
        self.signature: dict[str, Any] = {}
        self.debug: dict[str, Any] = {}
        self._rows: dict[str, _Row] = {}
        self._constants: list[Constant] = []
        self._shared: dict[tuple, int] = {}
        self._body: _Body | None = None

    # ---- operands ----

    def r(self, index: int) -> Argument:
        """Register `index`, in [0, 2^28)."""
        if not isinstance(index, int) or not 0 <= index < _PAYLOAD_LIMIT:
            raise RelvmTypeError(f"r: expected the number of a register in [0, 2^28), got {index!r}")
        return register(index)

    def imm(self, value: int | float) -> Argument:
        """The number `value`.  Integers outside [-2^28, 2^28) and floats become constants."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise RelvmTypeError(f"imm: expected an int or a float, got {value!r}; b.bool makes a bool")
        if isinstance(value, int) and -_PAYLOAD_LIMIT <= value < _PAYLOAD_LIMIT:
            return immediate(value)
        return self.const(value)

    def bool(self, value: builtins.bool) -> Argument:
        """`value`, True or False."""
        return boolean(value)

    def const(self, value: Constant, *, shared: builtins.bool = True) -> Argument:
        """A constant; equal ones are one row of the table.

        Parameters
        ----------
        value
            An array (copied), vm.Shape, str, np.dtype, int of 64 bits or float.
        shared
            False: a row of its own.

        Raises
        ------
        RelvmTypeError
            A value of another type, or an array of a dtype that tensors do not have.
        """
        if isinstance(value, np.ndarray):
            value = plain_array(value.copy())
            value.flags.writeable = False
        key = constant_key(value)
        if not shared or key not in self._shared:
            self._shared.setdefault(key, len(self._constants))
            self._constants.append(value)
            return self._own(constant(len(self._constants) - 1))
        return self._own(constant(self._shared[key]))

    def f(self, name: str) -> Argument:
        """The function `name` as a value: of this builder, defined before or after, or a packed one that is
        registered."""
        return self._own(function(self._row(name).index))

    # ---- functions ----

    def declare(self, name: str, parameters: Sequence[str]) -> Argument:
        """Promise a function of these parameters that is defined later; its row of the function table is taken now.

        Raises
        ------
        RelvmFormatError
            The name is declared, defined or packed already.
        """
        return self._said(name, "bytecode", tuple(parameters))

    def packed(self, name: str, parameters: Sequence[str] | None = None) -> Argument:
        """Say that `name` is a packed function, as a call of it does too; its row of the function table is taken now.

        Parameters
        ----------
        name
            Of the function, as it is registered.
        parameters
            Their names, by which the number of arguments is checked; None: any number.

        Raises
        ------
        RelvmFormatError
            The name is declared, defined or packed already.
        """
        return self._said(name, "packed", None if parameters is None else tuple(parameters))

    @contextlib.contextmanager
    def function(
        self,
        name: str,
        parameters: Sequence[str] = (),
        *,
        registers: int | None = None,
        private: builtins.bool = False,
        impure: builtins.bool = False,
    ) -> Iterator[Argument]:
        """The instructions emitted in the `with` block are the bytecode function `name`.

        Parameters
        ----------
        name
            Of the function.
        parameters
            Their names.
        registers
            How many it has, its registers keeping their numbers; None: they are renumbered.
        private
            Whether only the program itself calls it: hosts do not find it by its name.
        impure
            Whether calling it may have effects, so that it is no value for a function type without effects.

        Raises
        ------
        RelvmFormatError
            A function of that name is there, was declared with other parameters, or is left without an instruction; a
            label is used but never placed; a function inside another.
        """
        if self._body:
            raise RelvmFormatError(f"function {name} begins inside function {self._body.name}")
        row = self._row(name)
        if row.body or row.kind == "packed":
            raise RelvmFormatError(f"two functions are named {name}")
        if row.kind and row.parameters != tuple(parameters):
            was, now = (", ".join(names or ()) or "none" for names in (row.parameters, parameters))
            raise RelvmFormatError(f"function {name} is declared with the parameters {was}, defined with {now}")
        _expect_parameters(name, parameters)
        self._body = body = _Body(name, tuple(parameters), registers, private, impure)
        try:
            yield self._own(function(row.index))
        finally:
            self._body = None
        if not body.code:
            raise RelvmFormatError(f"function {name} has no instruction; it must return")
        if any(label.position is None for label in body.labels):
            raise RelvmFormatError(f"function {name} jumps to a label that is not placed")
        row.body = body

    def label(self) -> Label:
        """A place in the function being written, to jump to and to be placed in either order."""
        return Label(self._open("label"))

    def place(self, label: Label) -> None:
        """Put the label before the instruction that is emitted next.  RelvmFormatError: it is placed already."""
        self._expect_here(label, "place")
        if label.position is not None:
            raise RelvmFormatError(f"function {label.body.name}: a label is placed twice")
        label.position = len(label.body.code)

    # ---- instructions ----

    def emit_call(
        self, callee: str | Argument, arguments: Sequence[Argument] = (), dst: Argument | None = None
    ) -> None:
        """dst = callee(arguments...); without `dst` the result is dropped.  A name that this builder does not define by
        the end is that of a packed function, which machines look up when they are made."""
        self.emit("call", dst, callee, arguments)

    def emit_ret(self, source: Argument) -> None:
        """Return the register `source`."""
        self.emit("ret", source)

    def emit_goto(self, target: Label | int) -> None:
        """Continue at `target`: a label, or so many instructions after (before, when negative) this one."""
        self.emit("goto", target)

    def emit_if(self, condition: Argument, otherwise: Label | int) -> None:
        """Continue at the next instruction when the register `condition` is true, else at `otherwise`."""
        self.emit("if", condition, otherwise)

    def emit_reset(self, target: Argument) -> None:
        """Release what the register `target` holds."""
        self.emit("reset", target)

    def emit(self, op: str, *operands: Any) -> None:
        """Any instruction of csrc/tables/opcodes.def.

        Parameters
        ----------
        op
            Its name.
        operands
            One for each letter of its row.  d: a register or None.  r: a register.  f: a function's name, or what `f`
            made of it.  j: a label, or a distance in instructions.  A: a sequence of operands.  p: a row of
            csrc/tables/scalar_operators.def, by its name or number.

        Raises
        ------
        RelvmNameError
            No such instruction or row.
        RelvmArgumentError
            A wrong number of operands.
        RelvmTypeError
            An operand of the wrong kind.
        RelvmFormatError
            Outside of a function, or a label of another function.
        """
        body = self._open(op)
        row = _OPCODES.get(op)
        if row is None:
            raise RelvmNameError(f"no instruction {op}{near_matches(op, _OPCODES)}")
        if len(operands) != len(row.operands):
            raise RelvmArgumentError(
                f"{op} ({row.operands}): expected {len(row.operands)} operands, got {len(operands)}"
            )
        if op == "call" and isinstance(operands[1], str) and isinstance(operands[2], Sequence):
            _expect_count(operands[1], len(operands[2]))
        made = (self._operand(op, letter, each) for letter, each in zip(row.operands, operands, strict=True))
        body.code.append(Instruction(op, tuple(made)))

    # ---- the result ----

    def get(self) -> Executable:
        """The executable.

        Raises
        ------
        RelvmNameError
            A function that is declared and not defined, or named by `f` and not to be found.
        RelvmFormatError
            A function that breaks a rule of the format: a register read before it is written, a jump out of the
            function, a missing return.
        """
        if self._body:
            raise RelvmFormatError(f"get: function {self._body.name} is not complete")
        orders: dict[str, list[int]] = {}
        entries = tuple(self._entry(name, row, orders) for name, row in self._rows.items())
        program = Program(entries, tuple(self._constants), None, self.source, dict(self.signature), dict(self.debug))
        try:
            return Executable.from_program(program)
        except RelvmFormatError as error:
            raise RelvmFormatError(f"{error}{_as_written(str(error), orders)}") from None

    def _entry(self, name: str, row: _Row, orders: dict[str, list[int]]) -> FunctionEntry:
        """The entry of a row; adds the registers of a function that is renumbered, in their order, to `orders`."""
        body = row.body
        if body is None:
            self._expect_packed(name, row)
            return FunctionEntry(name, "packed", row.parameters)
        code = tuple(map(_with_target, body.code))
        if body.registers is not None:
            return FunctionEntry(
                name, "bytecode", body.parameters, body.registers, code, private=body.private, impure=body.impure
            )
        orders[name] = order = register_order(code, len(body.parameters))
        numbers = {written: number for number, written in enumerate(order)}
        code = tuple(renumbered(instruction, numbers) for instruction in code)
        return FunctionEntry(
            name, "bytecode", body.parameters, len(order), code, private=body.private, impure=body.impure
        )

    def _expect_packed(self, name: str, row: _Row) -> None:
        if row.kind == "bytecode":
            raise RelvmNameError(f"function {name} is declared and not defined")
        if name.startswith(BUILTIN_PREFIX):
            if name not in _BUILTIN_NAMES:
                raise RelvmNameError(f"no builtin {name}{near_matches(name, _BUILTIN_NAMES)}")
            return
        if row.is_called or row.kind:
            return
        provide([name])
        if not lib.rvm_is_registered(name.encode()):
            known = [*self._rows.keys() - {name}, *_BUILTIN_NAMES]
            raise RelvmNameError(f"no function {name}, neither here nor registered{near_matches(name, known)}")

    # ---- parts ----

    def _row(self, name: str) -> _Row:
        if not isinstance(name, str):
            raise RelvmTypeError(f"expected the name of a function, got {name!r}")
        return self._rows.setdefault(name, _Row(len(self._rows)))

    def _said(self, name: str, kind: str, parameters: tuple[str, ...] | None) -> Argument:
        row = self._row(name)
        if row.kind or row.body:
            raise RelvmFormatError(f"function {name} is declared already")
        if parameters is not None:
            _expect_parameters(name, parameters)
        row.kind, row.parameters = kind, parameters
        return self._own(function(row.index))

    def _own(self, argument: Argument) -> Argument:
        """An operand that means a row of this builder's tables."""
        own = _OwnArgument(*argument)
        own.builder = self
        return own

    def _open(self, what: str) -> _Body:
        if self._body is None:
            raise RelvmFormatError(f"{what}: no function is being written; use it in `with b.function(...):`")
        return self._body

    def _expect_here(self, label: Any, what: str) -> None:
        if not isinstance(label, Label):
            raise RelvmTypeError(f"{what}: expected a label, got {label!r}")
        if label.body is not self._body:
            raise RelvmFormatError(f"{what}: the label belongs to function {label.body.name}")

    def _operand(self, op: str, letter: str, operand: Any) -> Any:
        for each in operand if isinstance(operand, list | tuple) and not isinstance(operand, Argument) else (operand,):
            if isinstance(each, _OwnArgument) and each.builder is not self:
                raise RelvmFormatError(f"{op}: an operand of another builder: {each.kind.lower()} {each.payload}")
        match letter:
            case "d" if operand is None:
                return -1
            case "d" | "r" | "u":
                return _payload(op, "REGISTER", "a register (b.r)", operand)
            case "f" if isinstance(operand, str):
                row = self._row(operand)
                row.is_called = True
                return row.index
            case "f":
                return _payload(op, "FUNCTION", "a function's name or b.f of it", operand)
            case "j":
                return self._target(op, operand)
            case "A":
                if not isinstance(operand, Sequence) or not all(isinstance(each, Argument) for each in operand):
                    raise RelvmTypeError(f"{op}: expected a list of operands (b.r, b.imm, b.const...), got {operand!r}")
                return tuple(operand)
            case "p" if isinstance(operand, str):
                if operand not in _PRIM_ROWS:
                    raise RelvmNameError(f"{op}: no scalar operator {operand}{near_matches(operand, _PRIM_ROWS)}")
                return _PRIM_ROWS[operand]
        if type(operand) is not int:
            raise RelvmTypeError(f"{op}: expected the name or the number of a row, got {operand!r}")
        return operand

    def _target(self, op: str, target: Any) -> Label | int:
        body = self._open(op)
        if isinstance(target, int):
            return len(body.code) + target
        self._expect_here(target, op)
        body.labels.append(target)
        return target


class _OwnArgument(Argument):
    """An operand that is a row of a builder's tables."""

    builder: ExecBuilder


def _expect_parameters(function: str, parameters: Sequence[str]) -> None:
    for position, name in enumerate(parameters):
        expect_name(f"function {function}: parameter {position}", name)
        if name in parameters[:position]:
            raise RelvmFormatError(f"function {function}: two parameters are named {name}")


def _expect_count(name: str, count: int) -> None:
    """Raises RelvmArgumentError: a builtin takes another number of arguments."""
    row = _BUILTINS.get(name)
    if row is None:
        return
    signature = parse_signature(row.signature)
    least, width = len(signature.before) + len(signature.after), len(signature.repeated)
    fits = count == least if not width else count >= least and (count - least) % width == 0
    if not fits:
        more = " or more" if width else ""
        raise RelvmArgumentError(f"{name} ({row.signature}): expected {least}{more} arguments, got {count}")


def _payload(op: str, kind: str, expected: str, operand: Any) -> int:
    if not isinstance(operand, Argument) or operand.kind != kind:
        raise RelvmTypeError(f"{op}: expected {expected}, got {operand!r}")
    return operand.payload


def _with_target(instruction: Instruction) -> Instruction:
    """The instruction with each label made the index of its place."""
    operands = (each.position if isinstance(each, Label) else each for each in instruction.operands)
    return Instruction(instruction.op, tuple(operands))


def _as_written(message: str, orders: dict[str, list[int]]) -> str:
    """What was the number, before renumbering, of the register that a verifier's message is about."""
    found = re.search(r"function (.*), instruction \d+: register (\d+) ", message)
    if not found or found[1] not in orders:
        return ""
    number = int(found[2])
    written = orders[found[1]][number]
    return f" (written as r({written}))" if written != number else ""
