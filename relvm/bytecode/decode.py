"""Decoding of executables: converts bytes to a Program."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from relvm.bytecode.container import unpack_sections
from relvm.bytecode.encode import ABSENT, CONSTANT_RECORD, FUNCTION_RECORD, IMPURE, NATIVE_HEADER, PRIVATE
from relvm.bytecode.kernel_program import KernelProgram, decode_kernel
from relvm.bytecode.program import Argument, Constant, FunctionEntry, Instruction, NativeCode, Program, Shape
from relvm.errors import RelvmFormatError
from relvm.numpy_dtypes import STRINGS, numpy_dtype, unpack_strings
from relvm.tables import ARGUMENTS, KINDS, OPCODES, TAGS

_LETTERS = {row.name: row.operands for row in OPCODES}
_MANDATORY = ("strings", "functions", "constants", "code", "data")


def decode(buffer: Any, *, portable: bool = False) -> Program:
    """Decode the bytes of an executable.  Tensors in the result are read-only views of `buffer`.

    portable: whether to return only the portable program in the executable.  The portable program is the same program
    without native code, for machines that cannot run the native code.

    The C loader must verify the bytes first.  This function verifies neither checksums nor the rules for execution,
    such as valid register numbers and definite assignment.

    Raises
    ------
    RelvmFormatError
        The bytes are not an executable.
    RelvmUnsupportedError
        The format has another major version.
    """
    with _translate_errors():
        sections = unpack_sections(buffer)
        return _decode(_portable_sections(sections) if portable else sections)


def _decode(sections: dict[str, memoryview]) -> Program:
    missing = [name for name in _MANDATORY if name not in sections]
    if missing:
        raise RelvmFormatError(f"malformed executable: the section {missing[0]} is missing")
    strings = _strings(sections["strings"])
    code = struct.unpack(f"<{len(sections['code']) // 4}I", sections["code"])
    functions = _functions(sections["functions"], strings, code)
    return Program(
        functions=functions,
        constants=_constants(sections["constants"], strings, sections["data"]),
        native=_native(sections["native"], strings) if "native" in sections else None,
        source=str(sections["source"], "utf-8") if "source" in sections else "",
        kernels=_kernels(sections["kernels"], functions) if "kernels" in sections else {},
        signature=_json(sections, "signature"),
        debug=_json(sections, "debug"),
        portable=_decode(_portable_sections(sections)) if "portable" in sections else None,
    )


def _portable_sections(sections: dict[str, memoryview]) -> dict[str, memoryview]:
    """Return the sections of the portable program in an executable, as a dict from names to contents.

    If the portable program has no section `data`, the result contains the section `data` of the executable.

    sections: the sections of the executable, as a dict from names to contents.
    """
    inner = unpack_sections(sections["portable"])
    if forbidden := [name for name in ("native", "portable") if name in inner]:
        raise RelvmFormatError(f"a portable program must not contain a section {forbidden[0]}")
    return {"data": sections["data"], **inner} if "data" in sections else inner


def decode_signature(buffer: Any, *, portable: bool = False) -> dict[str, Any]:
    """Return the signature of an executable, or of its portable program if `portable` is set.

    Raise RelvmFormatError if the bytes are not an executable, and RelvmUnsupportedError if the format has another major
    version.
    """
    with _translate_errors():
        sections = unpack_sections(buffer)
        return _json(_portable_sections(sections) if portable else sections, "signature")


@contextmanager
def _translate_errors() -> Iterator[None]:
    """A context manager for code that decodes bytes.

    If malformed bytes cause an error such as IndexError in the `with` block, the context manager raises
    RelvmFormatError instead.
    """
    try:
        yield
    except RelvmFormatError:
        raise
    except (struct.error, IndexError, ValueError, OverflowError, RecursionError) as error:
        raise RelvmFormatError(f"malformed executable: {error}") from None


def decode_constants(buffer: Any, *, portable: bool = False) -> tuple[Constant, ...]:
    """Return the constants of an executable, or of its portable program if `portable` is set.

    Tensors are read-only views of `buffer`.
    """
    sections = unpack_sections(buffer)
    sections = _portable_sections(sections) if portable else sections
    return _constants(sections["constants"], _strings(sections["strings"]), sections["data"])


def _slice(view: memoryview, offset: int, size: int) -> memoryview:
    if offset > len(view) or size > len(view) - offset:
        raise RelvmFormatError(f"{size} bytes at offset {offset} lie outside their section of {len(view)} bytes")
    return view[offset : offset + size]


def _strings(section: memoryview) -> list[str]:
    (count,) = struct.unpack_from("<I", section)
    records = struct.iter_unpack("<II", _slice(section, 4, 8 * count))
    return [str(_slice(section, offset, length), "utf-8") for offset, length in records]


def _json(sections: dict[str, memoryview], name: str) -> dict[str, Any]:
    value = json.loads(str(sections[name], "utf-8")) if name in sections else {}
    if not isinstance(value, dict):
        raise RelvmFormatError(f"the section {name} must be a JSON object")
    return value


def _native(section: memoryview, strings: list[str]) -> NativeCode:
    abi_version, triple, cpu, _, replaces = NATIVE_HEADER.unpack_from(section)
    return NativeCode(bytes(section[NATIVE_HEADER.size :]), strings[triple], strings[cpu], abi_version, replaces)


def _kernels(section: memoryview, functions: tuple[FunctionEntry, ...]) -> dict[str, KernelProgram]:
    count, _ = struct.unpack_from("<II", section)
    offset = 8 + 8 * count
    kernels = {}
    for function, size in struct.iter_unpack("<II", _slice(section, 8, 8 * count)):
        kernels[functions[function].name] = decode_kernel(_slice(section, offset, size))
        offset += size
    return kernels


def _functions(section: memoryview, strings: list[str], code: tuple[int, ...]) -> tuple[FunctionEntry, ...]:
    count, total = struct.unpack_from("<II", section)
    records = _slice(section, 8, FUNCTION_RECORD.size * count)
    names = struct.unpack(f"<{total}I", _slice(section, 8 + len(records), 4 * total))
    functions = []
    for name, kind, flags, symbol, arity, first, registers, start, size in FUNCTION_RECORD.iter_unpack(records):
        if start + size > len(code) or first + max(arity, 0) > total or arity < -1:
            raise RelvmFormatError(
                f"function {strings[name]}: the instructions or parameter names lie outside their section"
            )
        parameters = None if arity < 0 else tuple(strings[index] for index in names[first : first + arity])
        instructions = _instructions(code[start : start + size])
        label = None if symbol == ABSENT else strings[symbol]
        entry = FunctionEntry(
            strings[name],
            KINDS[kind].name,
            parameters,
            registers,
            instructions,
            label,
            private=bool(flags & PRIVATE),
            impure=bool(flags & IMPURE),
        )
        functions.append(entry)
    return tuple(functions)


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word


def _argument(word: int) -> Argument:
    return Argument(ARGUMENTS[word & 7].name, _signed(word) >> 3)


def _instructions(words: tuple[int, ...]) -> tuple[Instruction, ...]:
    """Return the instructions of one function.

    Raise IndexError if the last instruction is truncated, and RelvmFormatError if its argument list is too long.
    """
    decoded: list[tuple[int, str, list]] = []  # (position of the first word, opcode, operands)
    indices: dict[int, int] = {}  # position of the first word -> instruction index
    position = 0
    while position < len(words):
        start, row = position, OPCODES[words[position]]
        operands = []
        position += 1
        for letter in row.operands:
            operand: Any = _signed(words[position])
            position += 1
            if letter == "A":
                if not 0 <= operand <= len(words) - position:
                    raise RelvmFormatError(f"an argument list of {operand} words extends past the end of the function")
                arguments = words[position : position + operand]
                position += operand
                operand = tuple(map(_argument, arguments))
            operands.append(operand)
        indices[start] = len(decoded)
        decoded.append((start, row.name, operands))
    return tuple(Instruction(name, _resolve_jump(name, operands, start, indices)) for start, name, operands in decoded)


def _resolve_jump(name: str, operands: list, start: int, indices: dict[int, int]) -> tuple:
    """Return the operands of an instruction, with a jump target converted to the index of the target instruction.

    name: the name of the opcode.
    operands: the encoded operands, with a jump target as a distance in words.
    start: the position of the instruction in the function, in words.
    indices: a dict from the position of each instruction to its index.
    """
    if "j" not in _LETTERS[name]:
        return tuple(operands)
    jump = _LETTERS[name].index("j")
    if start + operands[jump] not in indices:
        raise RelvmFormatError(f"the jump target, word {start + operands[jump]}, is not the start of an instruction")
    return *operands[:jump], indices[start + operands[jump]], *operands[jump + 1 :]


def _constants(section: memoryview, strings: list[str], data: memoryview) -> tuple[Constant, ...]:
    count, total = struct.unpack_from("<II", section)
    records = _slice(section, 8, CONSTANT_RECORD.size * count)
    dims = struct.unpack(f"<{total}q", _slice(section, 8 + len(records), 8 * total))
    constants: list[Constant] = []
    for record in CONSTANT_RECORD.iter_unpack(records):
        tag, dtype, rank, first, payload, size_bytes = record
        if first + rank > total:
            raise RelvmFormatError(f"constant {len(constants)}: the dimensions lie outside their section")
        extent = dims[first : first + rank]
        constants.append(_constant(TAGS[tag].name, dtype, extent, payload, size_bytes, strings, data))
    return tuple(constants)


def _constant(
    tag: str, dtype: int, extent: tuple[int, ...], payload: int, size_bytes: int, strings: list[str], data: memoryview
) -> Constant:
    if payload < 0 and tag in ("DTYPE", "STRING", "TENSOR"):
        raise RelvmFormatError(f"a constant of kind {tag} has the invalid payload {payload}")
    match tag:
        case "INT":
            return payload
        case "FLOAT":
            return struct.unpack("<d", struct.pack("<q", payload))[0]
        case "DTYPE":
            return numpy_dtype(payload)
        case "STRING":
            return strings[payload]
        case "SHAPE":
            return Shape(extent)
        case "TENSOR":
            element = numpy_dtype(dtype)
            if min(extent, default=0) < 0:
                raise RelvmFormatError(f"a constant has the negative dimension {min(extent)} in its shape {extent}")
            elements = _slice(data, payload, size_bytes)
            if element == STRINGS:
                return unpack_strings(elements, extent)
            return np.frombuffer(elements, element).reshape(extent)
    raise RelvmFormatError(f"a constant must not be a {tag}")
