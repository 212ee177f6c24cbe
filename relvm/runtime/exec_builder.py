"""A builder for executables, instruction by instruction."""

from __future__ import annotations

import builtins
import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from relvm._native import lib
from relvm.bytecode.constant_key import constant_key
from relvm.bytecode.encode import PAYLOAD_LIMIT
from relvm.bytecode.kernel_program import KernelProgram, decode_kernel
from relvm.bytecode.program import (
    CONTEXT,
    NIL,
    Argument,
    Constant,
    FunctionEntry,
    Instruction,
    NativeCode,
    Program,
    boolean,
    constant,
    function,
    immediate,
    register,
)
from relvm.bytecode.register_numbering import register_order, renumber
from relvm.data_classes import dataclass
from relvm.errors import (
    RelvmArgumentError,
    RelvmFormatError,
    RelvmNameError,
    RelvmTypeError,
    counted,
    expect_name,
    near_matches,
)
from relvm.numpy_dtypes import plain_array
from relvm.runtime.executable import Executable
from relvm.runtime.packed_func import provide_all
from relvm.tables import ABI_VERSION, BUILTIN_PREFIX, BUILTINS, OPCODES, PRIM_OPERATORS, numbers, parse_signature

_OPCODES = {row.name: row for row in OPCODES}
_PRIM_ROWS = numbers(PRIM_OPERATORS)
_BUILTINS = {BUILTIN_PREFIX + row.name: row for row in BUILTINS}
_BUILTIN_NAMES = tuple(_BUILTINS)


@dataclass(eq=False)
class Label:
    """A jump target in the function `body`.

    position: the index of the target instruction, or None while the label is not placed.
    """

    body: _Body
    position: int | None = None


@dataclass
class _Body:
    """A bytecode function under construction.

    parameters, registers, private, impure: the parameters of `ExecBuilder.function` with these names.
    code: the instructions, in which a jump target is a Label or an instruction index.
    labels: the labels of the function.
    """

    name: str
    parameters: tuple[str, ...]
    registers: int | None
    private: bool
    impure: bool
    code: list[Instruction] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)


@dataclass
class _Row:
    """A row of the function table under construction.

    name: the name of the function.
    kind, parameters: the kind and the parameters that `declare` or `packed` set, or None.
    is_called: whether an instruction calls the function by name.
    body: the definition of a bytecode function, or None.
    entry: the row of a kernel or a native function, or None.
    """

    index: int
    name: str
    kind: str | None = None
    parameters: tuple[str, ...] | None = None
    is_called: bool = False
    body: _Body | None = None
    entry: FunctionEntry | None = None


class ExecBuilder:
    """Builds an executable from bytecode functions.  Example::

        b = ExecBuilder()
        with b.function("main", ["x", "y"]):
            b.emit_call("test.add", [b.r(0), b.r(1)], dst=b.r(2))
            b.emit_ret(b.r(2))
        executable = b.get()

    The n parameters of a function are in registers 0 to n-1.  Other registers can have any numbers, because `get`
    renumbers the registers.  It keeps the numbers only if the function was defined with the argument
    `registers`.  Constants are added to the constant table, and functions to the function table, in order of first use.

    Attributes
    ----------
    ctx
        The operand for the running machine.  It is allowed only as the first argument of a packed function.
    nil
        The operand for the value nil (None in Python).
    source, signature, debug
        The sections of the executable with these names, as in Program.
    portable
        The builder of the portable program of the executable, or None.
    """

    ctx: Argument = CONTEXT
    nil: Argument = NIL

    def __init__(self) -> None:
        self.source = ""
        self.signature: dict[str, Any] = {}
        self.debug: dict[str, Any] = {}
        self.portable: ExecBuilder | None = None
        self._native: NativeCode | None = None
        self._kernels: dict[str, KernelProgram] = {}
        self._rows: list[_Row] = []
        self._named: dict[str, _Row] = {}  # rows of functions that are defined, declared or called by name
        self._packed: dict[str, _Row] = {}  # rows of functions that are declared as packed
        self._constants: list[Constant] = []
        self._constant_indices: dict[tuple, int] = {}
        self._body: _Body | None = None

    # ---- operands ----

    def r(self, index: int) -> Argument:
        """Return the operand for register `index`, in [0, 2^28)."""
        if not isinstance(index, int) or not 0 <= index < PAYLOAD_LIMIT:
            raise RelvmTypeError(f"r: expected a register number in [0, 2^28), got {index!r}")
        return register(index)

    def imm(self, value: int | float) -> Argument:
        """Return the operand for the number `value`.  A float, or an integer outside [-2^28, 2^28), is added to the
        constants."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise RelvmTypeError(f"imm: expected an int or a float, got {value!r}; use b.bool for a bool")
        if isinstance(value, int) and -PAYLOAD_LIMIT <= value < PAYLOAD_LIMIT:
            return immediate(value)
        return self.const(value)

    def bool(self, value: builtins.bool) -> Argument:
        """Return the operand for `value`, True or False."""
        return boolean(value)

    def const(self, value: Constant, *, shared: builtins.bool = True) -> Argument:
        """Return the operand for a constant.  Equal constants share one row of the table.

        Parameters
        ----------
        value
            An array (which is copied), a vm.Shape, str, np.dtype, 64-bit int or float.
        shared
            Whether to use an equal constant that is already in the table.  If False, a new row is always added.

        Raises
        ------
        RelvmTypeError
            The value has another type, or is an array with a dtype that tensors do not support.
        """
        if isinstance(value, np.ndarray):
            value = plain_array(value.copy())
            value.flags.writeable = False
        key = constant_key(value)
        if not shared or key not in self._constant_indices:
            self._constant_indices.setdefault(key, len(self._constants))
            self._constants.append(value)
            return self._own_argument(constant(len(self._constants) - 1))
        return self._own_argument(constant(self._constant_indices[key]))

    def f(self, name: str) -> Argument:
        """Return the operand for the function `name` as a value.  `name` is a function of this builder, possibly
        defined later, or a packed function (a registered function of the host).  If there are both, it is the function
        of this builder."""
        return self._own_argument(function(self._row(name).index))

    # ---- functions ----

    def declare(self, name: str, parameters: Sequence[str]) -> Argument:
        """Declare a bytecode function with these parameters, and add its row to the function table.  The function
        must be defined later.

        Raises
        ------
        RelvmFormatError
            A function of this name is already declared or defined, or the name belongs to builtins.
        """
        row = self._definition(name)
        if row.kind or row.body:
            raise RelvmFormatError(f"function {name} is already declared")
        return self._declare(row, "bytecode", tuple(parameters))

    def packed(self, name: str, parameters: Sequence[str] | None = None) -> Argument:
        """Declare `name` as a packed function, and add its row to the function table.  The declaration is optional: a
        function that is called but not defined is a packed function.

        The builder can also define a function of the same name.  To call the packed function then, pass the result of
        this method to `emit_call`, because a name refers to the function of the builder.

        Parameters
        ----------
        name
            The registered name of the function.
        parameters
            The names of the parameters, which determine the number of arguments of a call.  If it is None, any number
            is allowed.

        Raises
        ------
        RelvmFormatError
            A packed function of this name is already declared.
        """
        if name in self._packed:
            raise RelvmFormatError(f"packed function {name} is already declared")
        row = self._named.get(name)
        if row is None or row.kind or row.body:
            row = self._new_row(name)
        else:
            del self._named[name]  # it is only called so far
        self._packed[name] = row
        return self._declare(row, "packed", None if parameters is None else tuple(parameters))

    def kernel(
        self, name: str, parameters: Sequence[str], program: bytes | None = None, *, symbol: str | None = None
    ) -> Argument:
        """Add a kernel to the function table.

        Parameters
        ----------
        name
            The name of the kernel.
        parameters
            The names of its parameters: the tensors that it reads, then those that it writes.
        program
            The kernel in kernel bytecode, as `KernelProgram.encode` returns it, or None for a compiled kernel.
        symbol
            The name of a compiled kernel in the library that `native_library` sets.

        Raises
        ------
        RelvmFormatError
            A function of this name is already declared or defined, or the name belongs to builtins.  The error is also
            raised if `program` is not a kernel.
        """
        argument = self._add_entry(FunctionEntry(name, "kernel", tuple(parameters), symbol=symbol))
        if program is not None:
            self._kernels[name] = decode_kernel(program)
        return argument

    def native(
        self,
        name: str,
        parameters: Sequence[str],
        *,
        registers: int,
        symbol: str,
        private: builtins.bool = False,
        impure: builtins.bool = False,
    ) -> Argument:
        """Add a native function to the function table.

        Parameters
        ----------
        name, parameters, registers, private, impure
            See `function`.
        symbol
            The name of the function in the library that `native_library` sets.

        Raises
        ------
        RelvmFormatError
            A function of this name is already declared or defined, or the name belongs to builtins.
        """
        entry = FunctionEntry(name, "native", tuple(parameters), registers, (), symbol, private, impure)
        return self._add_entry(entry)

    def native_library(
        self,
        library: bytes,
        triple: str,
        *,
        cpu: str = "",
        abi_version: int = ABI_VERSION,
        replaces: bytes = bytes(32),
    ) -> None:
        """Set the shared library that contains the native functions and the compiled kernels.

        A library for another processor is accepted.  The executable can then be saved, but not run here.

        Parameters
        ----------
        library, triple, cpu, abi_version, replaces
            See `NativeCode`: the contents of the shared library and its requirements.
        """
        self._native = NativeCode(library, triple, cpu, abi_version, replaces)

    def _add_entry(self, entry: FunctionEntry) -> Argument:
        row = self._definition(entry.name)
        if row.kind or row.body:
            raise RelvmFormatError(f"function {entry.name} is already declared")
        row.entry = entry
        return self._declare(row, entry.kind, entry.parameters)

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
        """A context manager that defines the bytecode function `name`.  The `with` block emits its instructions.

        Parameters
        ----------
        name
            The name of the function.
        parameters
            The names of its parameters.
        registers
            The number of registers of the function.  If you give this number, the registers keep the numbers that your
            instructions use.  If `registers` is None, `get` renumbers and counts the registers.
        private
            Whether only the program itself may call the function, so that a host cannot find it by name.
        impure
            Whether a call of the function can have side effects.  If so, the function cannot be passed where a function
            without side effects is required.

        Raises
        ------
        RelvmFormatError
            The function is already defined, was declared with other parameters, has no instructions, or is defined
            inside another function.  The error is also raised if a label is used but never placed.
        """
        if self._body:
            raise RelvmFormatError(
                f"function {name} is defined inside function {self._body.name}; end {self._body.name} first"
            )
        row = self._definition(name)
        if row.body or row.entry:
            raise RelvmFormatError(f"function {name} is already defined")
        if row.kind and row.parameters != tuple(parameters):
            was, now = (", ".join(names or ()) or "none" for names in (row.parameters, parameters))
            raise RelvmFormatError(f"function {name} is declared with the parameters {was} but defined with {now}")
        _expect_parameters(name, parameters)
        self._body = body = _Body(name, tuple(parameters), registers, private, impure)
        try:
            yield self._own_argument(function(row.index))
        finally:
            self._body = None
        if not body.code:
            raise RelvmFormatError(f"function {name} has no instructions; end it with a return")
        if any(label.position is None for label in body.labels):
            raise RelvmFormatError(f"function {name} jumps to a label that is never placed; call b.place(label)")
        row.body = body

    def label(self) -> Label:
        """Return a new label in the current function.  Call `place` to place it, before or after emitting jumps to
        it."""
        return Label(self._current_body("label"))

    def place(self, label: Label) -> None:
        """Place a label before the next emitted instruction.  Raise RelvmFormatError if the label is already placed."""
        self._expect_own_label(label, "place")
        if label.position is not None:
            raise RelvmFormatError(f"function {label.body.name}: the label is already placed")
        label.position = len(label.body.code)

    # ---- instructions ----

    def emit_call(
        self, callee: str | Argument, arguments: Sequence[Argument] = (), dst: Argument | None = None
    ) -> None:
        """Emit the call dst = callee(arguments...).  If `dst` is None, the result is discarded.

        If `callee` is a name that this builder does not define, the function is a packed function (a registered
        function of the host).  Packed functions are looked up when a machine is created.
        """
        self.emit("call", dst, callee, arguments)

    def emit_ret(self, source: Argument) -> None:
        """Emit a return of the register `source`."""
        self.emit("ret", source)

    def emit_goto(self, target: Label | int) -> None:
        """Emit a jump to `target`: a label, or the distance of the jump in instructions, negative for a jump back."""
        self.emit("goto", target)

    def emit_if(self, condition: Argument, otherwise: Label | int) -> None:
        """Emit a branch: continue with the next instruction if the register `condition` is true, otherwise at
        `otherwise`."""
        self.emit("if", condition, otherwise)

    def emit_reset(self, target: Argument) -> None:
        """Emit a release of the value in the register `target`."""
        self.emit("reset", target)

    def emit(self, op: str, *operands: Any) -> None:
        """Emit any instruction of csrc/tables/opcodes.def.

        Parameters
        ----------
        op
            The name of the instruction.
        operands
            One operand for each letter in the instruction's row of opcodes.def.  The letter determines what the operand
            must be:
            d: the register for the result, or None to discard the result (not allowed for prim);
            r: a register that is read;
            u: a register that is released;
            f: the name of a function, or a result of `ExecBuilder.f`;
            j: a label, or the distance of a jump, as a number of instructions;
            A: a sequence of operands;
            p: the name or the number of a row of csrc/tables/scalar_operators.def.

        Raises
        ------
        RelvmNameError
            There is no such instruction or row.
        RelvmArgumentError
            The number of operands is wrong.
        RelvmTypeError
            An operand has the wrong kind.
        RelvmFormatError
            No function is being defined, or a label belongs to another function.
        """
        body = self._current_body(op)
        row = _OPCODES.get(op)
        if row is None:
            raise RelvmNameError(f"no instruction {op}{near_matches(op, _OPCODES)}")
        if len(operands) != len(row.operands):
            raise RelvmArgumentError(
                f"{op} ({row.operands}): expected {counted(len(row.operands), 'operand')}, got {len(operands)}"
            )
        if op == "call" and isinstance(operands[1], str) and isinstance(operands[2], Sequence):
            _expect_count(operands[1], len(operands[2]))
        converted = (self._operand(op, letter, each) for letter, each in zip(row.operands, operands, strict=True))
        body.code.append(Instruction(op, tuple(converted)))

    # ---- the result ----

    def get(self) -> Executable:
        """Return the executable.

        Raises
        ------
        RelvmNameError
            A function is declared but not defined, or no builtin has the name of a called function.  The error is also
            raised if a name given to `f` is neither a function of this builder nor a registered packed function.
        RelvmFormatError
            The `with` block of a function has not ended.  The error is also raised if a function violates a rule of the
            format: a register is read before it is written, a jump leaves the function, or a return is missing.
        """
        if self._body:
            raise RelvmFormatError(
                f"get: function {self._body.name} is still being written; leave its `with` block first"
            )
        orders: dict[str, list[int]] = {}
        program = self._program(orders)
        try:
            return Executable.from_program(program, elsewhere=self._native is not None)
        except RelvmFormatError as error:
            raise RelvmFormatError(f"{error}{_original_number_note(str(error), orders)}") from None

    def _program(self, orders: dict[str, list[int]]) -> Program:
        """Return the program.   orders: see `_entry`."""
        return Program(
            tuple(self._entry(row, orders) for row in self._rows),
            tuple(self._constants),
            self._native,
            self.source,
            dict(self.signature),
            dict(self.debug),
            self.portable._program({}) if self.portable is not None else None,
            dict(self._kernels),
        )

    def _entry(self, row: _Row, orders: dict[str, list[int]]) -> FunctionEntry:
        """Return the entry of the function table for `row`.

        If the registers of the function are renumbered, add its name to `orders` with a list of the old number of each
        new register.
        """
        name, body = row.name, row.body
        if row.entry is not None:
            return row.entry
        if body is None:
            self._expect_packed(row)
            return FunctionEntry(name, "packed", row.parameters)
        code = tuple(map(_resolve_labels, body.code))
        if body.registers is not None:
            return FunctionEntry(
                name, "bytecode", body.parameters, body.registers, code, private=body.private, impure=body.impure
            )
        orders[name] = order = register_order(code, len(body.parameters))
        numbers = {written: number for number, written in enumerate(order)}
        code = tuple(renumber(instruction, numbers) for instruction in code)
        return FunctionEntry(
            name, "bytecode", body.parameters, len(order), code, private=body.private, impure=body.impure
        )

    def _expect_packed(self, row: _Row) -> None:
        name = row.name
        if row.kind == "bytecode":
            raise RelvmNameError(f"function {name} is declared but not defined")
        if name.startswith(BUILTIN_PREFIX):
            if name not in _BUILTIN_NAMES:
                raise RelvmNameError(f"no builtin {name}{near_matches(name, _BUILTIN_NAMES)}")
            return
        if row.is_called or row.kind:
            return
        provide_all([name])
        if not lib.rvm_is_registered(name.encode()):
            known = [*(each.name for each in self._rows if each is not row), *_BUILTIN_NAMES]
            raise RelvmNameError(f"function {name} is neither defined here nor registered{near_matches(name, known)}")

    # ---- parts ----

    def _new_row(self, name: str) -> _Row:
        if not isinstance(name, str):
            raise RelvmTypeError(f"expected a function name, got {name!r}")
        self._rows.append(_Row(len(self._rows), name))
        return self._rows[-1]

    def _row(self, name: str) -> _Row:
        """Return the row of the function that an instruction calls by name."""
        row = self._named.get(name) or self._packed.get(name)
        return row or self._named.setdefault(name, self._new_row(name))

    def _definition(self, name: str) -> _Row:
        """Return the row for a function that is defined by this builder."""
        if isinstance(name, str) and name.startswith(BUILTIN_PREFIX):
            raise RelvmFormatError(f"{name}: names that begin with {BUILTIN_PREFIX} belong to builtins")
        return self._named.get(name) or self._named.setdefault(name, self._new_row(name))

    def _declare(self, row: _Row, kind: str, parameters: tuple[str, ...] | None) -> Argument:
        if parameters is not None:
            _expect_parameters(row.name, parameters)
        row.kind, row.parameters = kind, parameters
        return self._own_argument(function(row.index))

    def _own_argument(self, argument: Argument) -> Argument:
        """Return `argument` as an operand that other builders reject.

        It contains an index into the tables of this builder.
        """
        own = _OwnArgument(*argument)
        own.builder = self
        return own

    def _current_body(self, what: str) -> _Body:
        if self._body is None:
            raise RelvmFormatError(f"{what}: no function is being written; use it in `with b.function(...):`")
        return self._body

    def _expect_own_label(self, label: Any, what: str) -> None:
        if not isinstance(label, Label):
            raise RelvmTypeError(f"{what}: expected a label, got {label!r}")
        if label.body is not self._body:
            raise RelvmFormatError(f"{what}: the label belongs to function {label.body.name}")

    def _operand(self, op: str, letter: str, operand: Any) -> Any:
        for each in operand if isinstance(operand, list | tuple) and not isinstance(operand, Argument) else (operand,):
            if isinstance(each, _OwnArgument) and each.builder is not self:
                raise RelvmFormatError(
                    f"{op}: the operand {each.kind.lower()} {each.payload} belongs to another builder"
                )
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
            raise RelvmTypeError(f"{op}: expected the name or number of a scalar operator, got {operand!r}")
        return operand

    def _target(self, op: str, target: Any) -> Label | int:
        body = self._current_body(op)
        if isinstance(target, int):
            return len(body.code) + target
        self._expect_own_label(target, op)
        body.labels.append(target)
        return target


class _OwnArgument(Argument):
    """An operand that only one builder accepts, because it contains an index into the tables of that builder."""

    builder: ExecBuilder


def _expect_parameters(function: str, parameters: Sequence[str]) -> None:
    for position, name in enumerate(parameters):
        expect_name(f"function {function}: parameter {position}", name)
        if name in parameters[:position]:
            raise RelvmFormatError(f"function {function}: two parameters are named {name}")


def _expect_count(name: str, count: int) -> None:
    """Raise RelvmArgumentError if `name` is a builtin that does not accept `count` arguments."""
    row = _BUILTINS.get(name)
    if row is None:
        return
    signature = parse_signature(row.signature)
    least, width = len(signature.before) + len(signature.after), len(signature.repeated)
    fits = count == least if not width else count >= least and (count - least) % width == 0
    if not fits:
        expected = f"{least} or more arguments" if width else counted(least, "argument")
        raise RelvmArgumentError(f"{name} ({row.signature}): expected {expected}, got {count}")


def _payload(op: str, kind: str, expected: str, operand: Any) -> int:
    if not isinstance(operand, Argument) or operand.kind != kind:
        raise RelvmTypeError(f"{op}: expected {expected}, got {operand!r}")
    return operand.payload


def _resolve_labels(instruction: Instruction) -> Instruction:
    """Return the instruction with each label replaced by the index of its target."""
    operands = (each.position if isinstance(each, Label) else each for each in instruction.operands)
    return Instruction(instruction.op, tuple(operands))


def _original_number_note(message: str, orders: dict[str, list[int]]) -> str:
    """Return a note that states the original number of the register that a message of the verifier names.

    The verifier sees the numbers after renumbering.  Return an empty string if the number is unchanged, or if the
    message names no register.

    orders: for each renumbered function, the old number of each register.
    """
    found = re.search(r"function (.*), instruction \d+: register (\d+) ", message)
    if not found or found[1] not in orders:
        return ""
    number = int(found[2])
    written = orders[found[1]][number]
    return f" (written as r({written}))" if written != number else ""
