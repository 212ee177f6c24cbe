"""The text form of kernel bytecode, for people to read.  There is no parser for it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager

from relvm.bytecode.kernel_program import KernelProgram
from relvm.errors import RelvmFormatError
from relvm.tables import (
    DTYPES,
    KERNEL_OPCODES,
    MICRO_KERNELS,
    STATUS,
    element_functions,
    micro_kernel_arguments,
)

_NO_REGISTER = 0xFFFF
_LOOPS = 64  # maximum number of enclosing loops that are listed
_MESSAGE = 200  # maximum length of a message in a listing; many instructions can use the same message


def kernel_listing(program: KernelProgram, name: str = "kernel") -> str:
    """Return the program as text: its tensors, constants and arrays, then one line for each instruction.

    In the text, s3 is a scalar register and b2 is a buffer.  v0 is a strip register, which holds several elements that
    are processed together.  w1 is a view register, which stands for a strip whose elements remain in a buffer.

    Raises
    ------
    RelvmFormatError
        The program refers to a table entry that does not exist.  The verifier would reject it.
    """
    with _translate_errors(name):
        return "".join(f"{line}\n" for line in _lines(program, name))


def instruction_texts(program: KernelProgram, name: str = "kernel") -> tuple[str, ...]:
    """Return the text of each instruction, without its number.

    Raises
    ------
    RelvmFormatError
        An instruction refers to a table entry that does not exist.  The message contains `name`.
    """
    with _translate_errors(name):
        return tuple(_instruction_text(program, step) for step in program.code)


@contextmanager
def _translate_errors(name: str) -> Iterator[None]:
    """A context manager for code that prints the kernel program `name`.

    If the program refers to a table entry that does not exist, the code in the `with` block raises IndexError.  The
    context manager raises RelvmFormatError instead.
    """
    try:
        yield
    except (IndexError, RuntimeError):  # in a generator, a table that is too short causes RuntimeError
        raise RelvmFormatError(
            f"the kernel program {name} is malformed: an instruction refers to a table entry that does not exist"
        ) from None


def enclosing_loops(program: KernelProgram) -> tuple[tuple[int, ...], ...]:
    """Return, for each instruction, the loops that enclose it, outermost first.

    A loop is represented by the index of its first instruction.  At most the _LOOPS outermost loops are returned.
    """
    found: list[tuple[int, ...]] = []
    open_loops: list[tuple[int, int]] = []  # (first instruction, instruction after the loop)
    for index, step in enumerate(program.code):
        while open_loops and open_loops[-1][1] <= index:
            open_loops.pop()
        found.append(tuple(loop for loop, _ in open_loops[:_LOOPS]))
        row = KERNEL_OPCODES[step[0]]
        if row.name in ("loop", "strips", "blocks", "parallel"):
            open_loops.append((index, step[1 + row.operands.index("j")]))
    return tuple(found)


def _lines(program: KernelProgram, name: str) -> Iterator[str]:
    yield f"kernel {name}{', exact fma' if program.exact_fma else ''}"
    words = iter(program.tensors)
    for number in range(program.inputs + program.outputs):
        dtype, rank = DTYPES[next(words)].name, next(words)
        dims = [next(words) for _ in range(rank)]
        role = "input" if number < program.inputs else "output"
        shape = ", ".join(str(dim) if dim >= 0 else f"s{-1 - dim}" for dim in dims)
        yield f"  b{number}: {role} {dtype}[{shape}]"
    for number, (offset, size) in enumerate(program.arrays, start=program.inputs + program.outputs):
        yield f"  b{number}: array of {size} bytes at {offset}"
    for number, bits in enumerate(program.constants, start=program.sizes):
        yield f"  s{number} = {_constant_text(bits)}"
    for index, step in enumerate(program.code):
        yield f"  {index}: {_instruction_text(program, step)}"


def _constant_text(bits: int) -> str:
    signed = struct.unpack("<q", struct.pack("<Q", bits))[0]
    as_f32 = struct.unpack("<f", struct.pack("<I", bits & 0xFFFFFFFF))[0]
    is_float = bits < 1 << 32 and 1e-30 < abs(as_f32) < 1e30
    return f"{signed}, as f32 {as_f32:.7g}" if is_float else str(signed)


def _instruction_text(program: KernelProgram, step: tuple[int, ...]) -> str:
    row = KERNEL_OPCODES[step[0]]
    if row.name == "invoke":
        return f"invoke {_invoke_text(program, *step[1:4])}"
    if row.name == "fail":
        values = ", ".join(f"s{register}" for register in program.arguments[step[3] : step[3] + step[4]])
        return f"fail {STATUS[step[1]].name} {program.messages[step[2]][:_MESSAGE]!r} ({values})"
    operands = [_operand(program, letter, value) for letter, value in zip(row.operands, step[1:], strict=False)]
    return f"{row.name} {', '.join(filter(None, operands))}".rstrip()


def _invoke_text(program: KernelProgram, kernel: int, first: int, count: int) -> str:
    function, words = MICRO_KERNELS[kernel].name, iter(program.arguments[first : first + count])
    texts = []
    for argument in micro_kernel_arguments(function):
        value = f"b{next(words)}[s{next(words)}]" if argument.is_address else f"s{next(words)}"
        texts.append(f"{argument.name}={value}")
    return f"{function}({', '.join(texts)})"


def _operand(program: KernelProgram, letter: str, value: int) -> str:
    match letter:
        case "b" | "B":
            return f"b{value}"
        case "z":
            return f"{value} bytes"
        case "j":
            return f"-> {value}"
        case "F":
            return element_functions()[value].name
        case "m" if value == _NO_REGISTER:
            return ""
        case "y":
            return f"b{program.inputs + program.outputs + value}"
    scalars, strips, _ = program.registers
    if value < scalars:
        return f"s{value}"
    return f"v{value - scalars}" if value < scalars + strips else f"w{value - scalars - strips}"
