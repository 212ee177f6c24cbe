"""Kernels in bytecode inside the debugger: their instructions, and the values of their registers and buffers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from relvm.bytecode.kernel_printer import instruction_texts
from relvm.bytecode.kernel_program import KernelProgram
from relvm.data_classes import dataclass
from relvm.errors import RelvmNameError, near_matches
from relvm.explore.debugger.frames import RegisterValue
from relvm.ir.loop_ir import SUM_LANES
from relvm.numpy_dtypes import numpy_dtype
from relvm.runtime.debug_hook import MachineDebugger
from relvm.tables import DTYPES, KERNEL_OPCODES, element_functions, numbers

_NUMBERS = numbers(DTYPES)
_BY_SIZE = {1: "u8", 2: "u16", 4: "f32", 8: "i64"}  # assumed dtype by element size, if the program states none
_CACHED = 64  # number of instructions for which `contents` is cached
_NAMES = 20  # limit on the names in a message
_MAX_AXES = 32  # NumPy 1's limit
_COMPARISONS = ("lt", "le", "eq", "ne")


class RegisterContent(NamedTuple):
    """The dtype and the number of elements of a register.

    size: the number of elements, if it is fixed.
    count_register: the index of the scalar register that contains the number of elements, if there is one.

    If both are None, a strip or view register has as many elements as the kernel processes at that time.
    """

    dtype: str
    size: int | None = None
    count_register: int | None = None


@dataclass(frozen=True, eq=False)
class KernelCode:
    """The instructions of a kernel in bytecode: the counterpart of FunctionCode for kernels.

    Attributes
    ----------
    name
        Name of the kernel.
    index
        Index of the kernel in the function table.
    parameters
        Names of the parameters.  Parameter i is buffer i of the kernel.
    program
        The program of the kernel, which contains the instructions.
    """

    name: str
    index: int
    parameters: tuple[str, ...]
    program: KernelProgram

    @property
    def code(self) -> tuple[tuple[int, ...], ...]:
        """The instructions."""
        return self.program.code

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The instructions as text."""
        return instruction_texts(self.program, self.name)

    @cached_property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """An empty tuple for each instruction, because values inside a kernel have no names."""
        return ((),) * len(self.code)

    @property
    def origins(self) -> tuple[tuple[str, ...], ...]:
        """An empty tuple for each instruction, because instructions of a kernel have no source locations."""
        return self.names

    def is_housekeeping(self, instruction: int) -> bool:
        """Return False, because each instruction of a kernel is part of its computation."""
        return False

    @cached_property
    def tensors(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """The dtype and the dimensions of each parameter.  A negative dimension -1 - r is the value of register r."""
        words, found = iter(self.program.tensors), []
        for _ in range(self.program.inputs + self.program.outputs):
            dtype, rank = DTYPES[next(words)].name, next(words)
            found.append((dtype, tuple(next(words) for _ in range(rank))))
        return tuple(found)

    def label(self, register: int) -> str:
        """Return the name of a register in the listing."""
        scalars, strips, _ = self.program.registers
        if register < scalars:
            return f"s{register}"
        return f"v{register - scalars}" if register < scalars + strips else f"w{register - scalars - strips}"

    def register_contents(self, instruction: int) -> tuple[dict[int, RegisterContent], dict[int, str]]:
        """Return what each register contains before an instruction, and the dtype of each buffer.

        Jumps are ignored: the result is computed as if all earlier instructions had run once, in the order of the code.
        Registers without a value are omitted.
        """
        if instruction not in self._known:
            if len(self._known) == _CACHED:
                self._known.clear()
            self._known[instruction] = self._compute_contents(instruction)
        return self._known[instruction]

    @cached_property
    def _known(self) -> dict[int, tuple[dict[int, RegisterContent], dict[int, str]]]:
        return {}

    def _compute_contents(self, instruction: int) -> tuple[dict[int, RegisterContent], dict[int, str]]:
        registers = {number: RegisterContent("i64") for number in range(self.program.sizes)}
        constants = range(self.program.sizes, self.program.sizes + len(self.program.constants))
        registers |= {number: RegisterContent(self._constant_dtypes.get(number, "i64")) for number in constants}
        buffers = {number: dtype for number, (dtype, _) in enumerate(self.tensors)}
        for step in self.code[:instruction]:
            for register, content in self._written_contents(step, registers, buffers):
                registers[register] = content
        return registers, buffers

    @cached_property
    def _constant_dtypes(self) -> dict[int, str]:
        """The dtype of each register that an `apply` instruction reads, by register index.

        The dtype of a constant is known only from the instructions that read it.  If several instructions read the same
        register, the first one counts.
        """
        found: dict[int, str] = {}
        for step in self.code:
            if KERNEL_OPCODES[step[0]].name == "apply":
                for register in step[2:4]:
                    found.setdefault(register, element_functions()[step[4]].operand)
        return found

    def _written_contents(
        self, step: tuple[int, ...], registers: dict[int, RegisterContent], buffers: dict[int, str]
    ) -> Iterator[tuple[int, RegisterContent]]:
        """Yield each register that the instruction `step` writes, with its contents.

        If the instruction stores elements in a buffer, record their dtype in `buffers`.

        registers: the contents of the registers before the instruction.
        """
        row = KERNEL_OPCODES[step[0]]
        operands = dict(zip("abcdefg", step[1:], strict=False))
        size = operands["abcdefg"[row.operands.index("z")]] if "z" in row.operands else 8

        def like(register: int) -> RegisterContent:
            known = registers.get(register, RegisterContent("i64")).dtype
            return RegisterContent(known if _size(known) == size else _BY_SIZE[size])

        stored = {"store": "c", "store_rows": "f", "scatter": "c", "store_strided": "d"}.get(row.name)
        if stored and operands["a"] >= len(self.tensors):
            buffers[operands["a"]] = like(operands[stored]).dtype
        match row.name:
            case "load" | "view" | "view_written" | "gather" | "strided" | "load_rows":
                dtype = buffers.get(operands["b"], _BY_SIZE[size])
                yield operands["a"], RegisterContent(dtype if _size(dtype) == size else _BY_SIZE[size])
            case "apply":
                yield operands["a"], RegisterContent(element_functions()[operands["d"]].result)
            case "accumulate":
                yield operands["a"], RegisterContent(element_functions()[operands["c"]].result, size=2 * SUM_LANES)
            case "fold" | "fold_lanes":
                yield operands["a"], RegisterContent(element_functions()[operands["d"]].result)
            case "copy":
                yield operands["a"], registers.get(operands["b"], RegisterContent("i64"))
            case "select":
                yield operands["a"], registers.get(operands["c"], RegisterContent("i64"))
            case "move":
                yield operands["a"], like(operands["b"])
            case "choose":
                yield operands["a"], like(operands["c"])
            case "fill":
                yield operands["a"], RegisterContent(like(operands["b"]).dtype, count_register=operands["c"])
            case name:
                dtype = "bool" if name in _COMPARISONS else "i64"
                letters = zip(row.operands, step[1:], strict=False)
                yield from ((register, RegisterContent(dtype)) for letter, register in letters if letter in "SV")


class KernelValues:
    """The values of the registers and buffers of a kernel while a run is stopped in the kernel.

    Parameters
    ----------
    code, instruction
        The code of the kernel, and the index of the instruction that runs next.
    debugger, frame
        The debugger that stopped the run, and the number of the kernel's frame.
    """

    def __init__(self, code: KernelCode, instruction: int, debugger: MachineDebugger, frame: int) -> None:
        self._code = code
        self._contents, self._dtypes = code.register_contents(instruction)
        self._debugger = debugger
        self._frame = frame

    def nonempty_values(self) -> Iterator[tuple[RegisterValue, Any]]:
        """Yield a RegisterValue and the value for each register and buffer that has a value.

        The attribute `shown` of the RegisterValues is empty.  The values are not copied, and are valid only until the
        run continues.
        """
        for label, (number, name) in self._labels().items():
            value = self._value(label, number)
            if value is not None:
                yield RegisterValue(number, name, "", label), value

    def value(self, name_or_label: str | int) -> Any:
        """Return a copy of the value of a register or buffer.

        name_or_label: the name of a buffer, such as "x", or a label in the listing: "s3" for a register, "b0" for a
        buffer.

        Raises
        ------
        RelvmNameError
            There is no such register or buffer, or the register or buffer has no value.
        """
        labels = self._labels()
        for label, (number, name) in labels.items():
            if name_or_label in (label, name) and name_or_label:
                value = self._value(label, number)
                return np.array(value) if isinstance(value, np.ndarray) else value
        known = [name for _, name in labels.values() if name] + list(labels)
        raise RelvmNameError(
            f"{name_or_label!r} is not a register or buffer of {self._code.name} that holds a value here; expected one"
            f" of {', '.join(known[:_NAMES])}{near_matches(str(name_or_label), known)}; `registers` lists all of them,"
            " and frame 1 has the values of the caller"
        )

    def _labels(self) -> dict[str, tuple[int, str]]:
        """Return the index and the name of each register and buffer, by its label in the listing."""
        code, parameters = self._code, self._code.parameters
        labels = {code.label(register): (register, "") for register in sorted(self._contents)}
        for buffer in range(len(code.tensors) + len(code.program.arrays)):
            is_named = buffer < min(len(parameters), len(code.tensors))
            labels[f"b{buffer}"] = buffer, parameters[buffer] if is_named else ""
        return labels

    def _value(self, label: str, number: int) -> Any:
        return self._buffer(number) if label[0] == "b" else self._register(number)

    def _register(self, register: int) -> Any:
        content, found = self._contents[register], self._debugger.kernel_register(self._frame, register)
        if found is None:
            return None
        memory, count = found
        if register < self._code.program.registers[0]:
            return _array(memory, content.dtype, 1).item()
        if content.count_register is not None:
            count = self._integer(content.count_register)
        return _array(memory, content.dtype, count if content.size is None else content.size)

    def _integer(self, register: int) -> int:
        found = self._debugger.kernel_register(self._frame, register)
        return 0 if found is None else int(_array(found[0], "i64", 1)[0])

    def _buffer(self, buffer: int) -> np.ndarray | None:
        memory = self._debugger.kernel_buffer(self._frame, buffer)
        if memory is None:
            return None
        array = _array(memory, self._dtypes.get(buffer, "u8"), None)
        if buffer >= len(self._code.tensors):
            return array
        dims = self._code.tensors[buffer][1]
        shape = [dim if dim >= 0 else self._integer(-1 - dim) for dim in dims]
        # A program may have overwritten the sizes: then the array is flat.
        is_sound = len(shape) <= _MAX_AXES and min(shape, default=0) >= 0 and math.prod(shape) == array.size
        return array.reshape(shape) if is_sound else array


def _size(dtype: str) -> int:
    return (DTYPES[_NUMBERS[dtype]].bits + 7) // 8


def _array(memory: memoryview, dtype: str, count: int | None) -> np.ndarray:
    """Return the first `count` elements of `memory` as an array, or all elements if there are fewer.

    count: None also means all elements.
    """
    size = _size(dtype)
    capacity = len(memory) // size
    count = capacity if count is None else max(0, min(count, capacity))
    if count == 0:
        return np.zeros(0, numpy_dtype(_NUMBERS[dtype]))
    if dtype == "bool":
        return np.frombuffer(memory, np.uint8, count) != 0
    return np.frombuffer(memory, np.uint8, count * size).view(numpy_dtype(_NUMBERS[dtype]))
