"""Encoding of executables: converts a Program to bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from relvm._native import lib
from relvm.bytecode.container import align_up, crc32c, pack_sections
from relvm.bytecode.program import Constant, FunctionEntry, Instruction, NativeCode, Program, Shape
from relvm.errors import RelvmFormatError, RelvmTypeError, counted
from relvm.numpy_dtypes import dtype_number, plain_array, plain_bytes
from relvm.tables import ARGUMENTS, BUILTIN_PREFIX, KINDS, OPCODES, TAGS, numbers

FUNCTION_RECORD = struct.Struct("<IHHIiIIII")
CONSTANT_RECORD = struct.Struct("<IIIIqQ")
NATIVE_HEADER = struct.Struct("<IIII32s16x")
PRIVATE, IMPURE = 1, 2  # flags of a function
ABSENT = 0xFFFFFFFF  # string index that means "no string"
PAYLOAD_LIMIT = 1 << 28  # the payload of an argument word is in [-2^28, 2^28); the other three bits are the kind

_KINDS, _TAGS, _ARGUMENTS = numbers(KINDS), numbers(TAGS), numbers(ARGUMENTS)
_OPCODES = {row.name: row for row in OPCODES}


class _Strings:
    """Builder of the section `strings`, which contains each string once, in order of first use."""

    def __init__(self) -> None:
        self.indices: dict[str, int] = {}

    def index(self, text: str) -> int:
        if "\0" in text:
            raise RelvmFormatError(f"a string of an executable must not contain NUL, got {text!r}")
        return self.indices.setdefault(text, len(self.indices))

    def name(self, text: str) -> int:
        """Return the index of the string `text`, which is the name of a function, parameter or symbol.

        Raise RelvmFormatError if the name is too long.
        """
        if len(_utf8(text)) > lib.RVM_MAX_NAME_BYTES:
            raise RelvmFormatError(f"a name must have at most {lib.RVM_MAX_NAME_BYTES} bytes, got {text[:40]!r}...")
        return self.index(text)

    def section(self) -> bytes:
        encoded = [_utf8(text) for text in self.indices]
        records: list[int] = []
        offset = 4 + 8 * len(encoded)
        for text in encoded:
            records += (offset, len(text))
            offset += len(text) + 1
        head = struct.pack(f"<I{len(records)}I", len(encoded), *records)
        return head + b"".join(text + b"\0" for text in encoded)


def encode(program: Program) -> np.ndarray:
    """Return the bytes of an executable as a uint8 array, 64-byte aligned.  Equal programs are encoded to equal bytes.

    Raises
    ------
    RelvmFormatError
        The format cannot represent a name, jump or number.  The message names the function and the instruction.
    RelvmTypeError
        A constant is not an np.ndarray, Shape, str, np.dtype, int or float, or is an array of an unknown dtype.
    """
    tensors = _Tensors()
    sections = _sections(program, tensors)
    if program.portable:
        if program.portable.native or program.portable.portable:
            raise RelvmFormatError("a portable program must not contain native code or a portable program")
        tensors.share_equal()
        sections["portable"] = [pack_sections(_sections(program.portable, tensors))]
    sections["data"] = [elements for _, elements in tensors.placed] or [b""]
    return pack_sections(sections)


class _Tensors:
    """Builder of the section `data`: the elements of all tensors.  Each tensor is aligned to 64 bytes."""

    def __init__(self) -> None:
        self.placed: list[tuple[int, np.ndarray]] = []  # the offset and the elements of each tensor, in order
        # The same, by size and checksum, or None if equal tensors are not shared.
        self.by_content: dict[tuple[int, int], list[tuple[int, np.ndarray]]] | None = None

    def share_equal(self) -> None:
        """Let later calls of `store` reuse the bytes of an equal tensor that is already stored.

        The comparison takes time in proportion to the size of the tensors.
        """
        self.by_content = {}
        for offset, elements in self.placed:
            self.by_content.setdefault(_content_key(elements), []).append((offset, elements))

    def store(self, elements: np.ndarray) -> int:
        """Store the bytes of a tensor in the section, and return their offset.

        elements: the bytes, as a uint8 array.
        """
        candidates = [] if self.by_content is None else self.by_content.setdefault(_content_key(elements), [])
        for offset, part in candidates:
            if np.array_equal(part, elements):
                return offset
        last, part = self.placed[-1] if self.placed else (0, elements[:0])
        offset = align_up(last + part.nbytes)
        self.placed.append((offset, elements))
        candidates.append((offset, elements))
        return offset


def _content_key(elements: np.ndarray) -> tuple[int, int]:
    return elements.nbytes, crc32c(elements)


def _sections(program: Program, tensors: _Tensors) -> dict[str, list[Any]]:
    """Return the contents of each section except `data`, by section name, as parts for `pack_sections`.

    tensors: the builder of the section `data`, to which the elements of tensor constants are added.
    """
    strings = _Strings()
    code: list[int] = []
    functions = _function_section(program.functions, strings, code)
    constants = _constant_section(program.constants, strings, tensors)
    native = [_native_header(program.native, strings), program.native.library] if program.native else []
    sections: dict[str, list[Any]] = {
        "strings": [strings.section()],
        "functions": [functions],
        "constants": [constants],
        "code": [struct.pack(f"<{len(code)}I", *code)],
        "native": native,
        "source": [_utf8(program.source)] if program.source else [],
        "signature": [_json(program.signature)] if program.signature else [],
        "debug": [_json(program.debug)] if program.debug else [],
        "kernels": [_kernel_section(program)] if program.kernels else [],
    }
    return {name: parts for name, parts in sections.items() if parts}


def _kernel_section(program: Program) -> bytes:
    """Return the bytes of the section `kernels`: the kernel programs, in the order of the function table."""
    indices = {entry.name: index for index, entry in enumerate(program.functions) if entry.kind != "packed"}
    if unknown := [name for name in program.kernels if name not in indices]:
        raise RelvmFormatError(f"the kernel {unknown[0]} is not in the function table")
    names = sorted(program.kernels, key=indices.__getitem__)
    contents = [program.kernels[name].encode() for name in names]
    records = [(indices[name], len(content)) for name, content in zip(names, contents, strict=True)]
    head = struct.pack(f"<{2 + 2 * len(names)}I", len(names), 0, *(number for record in records for number in record))
    return b"".join((head, *contents))


def _json(value: Any) -> bytes:
    return _utf8(json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")))


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        found = text[error.start]
        raise RelvmFormatError(f"executable: a string contains {found!r}, which UTF-8 cannot encode") from None


def _native_header(native: NativeCode, strings: _Strings) -> bytes:
    texts = strings.index(native.triple), strings.index(native.cpu)
    return NATIVE_HEADER.pack(native.abi_version, *texts, 0, native.replaces)


def _function_section(functions: Sequence[FunctionEntry], strings: _Strings, code: list[int]) -> bytes:
    """Return the bytes of the section `functions`.

    strings: the builder of the section `strings`, to which names are added.
    code: the words of the section `code`, to which the instructions of bytecode functions are appended.
    """
    records: list[bytes] = []
    parameters: list[int] = []
    keys: set[tuple[bool, str]] = set()
    for entry in functions:
        key = entry.kind == "packed", entry.name
        if key in keys:
            raise RelvmFormatError(f"two {'packed ' * key[0]}functions are named {entry.name}")
        if entry.kind != "packed" and entry.name.startswith(BUILTIN_PREFIX):
            raise RelvmFormatError(f"{entry.name}: names that begin with {BUILTIN_PREFIX} belong to builtins")
        if entry.kind not in _KINDS:
            raise RelvmFormatError(f"{entry.name}: unknown kind {entry.kind!r}; expected one of {', '.join(_KINDS)}")
        if not 0 <= entry.registers < 1 << 31:
            raise RelvmFormatError(f"{entry.name}: expected a number of registers in [0, 2^31), got {entry.registers}")
        keys.add(key)
        start = len(code)
        code += _encode_code(entry)
        symbol = ABSENT if entry.symbol is None else strings.name(entry.symbol)
        count = -1 if entry.parameters is None else len(entry.parameters)
        flags = PRIVATE * entry.private + IMPURE * entry.impure
        head = (strings.name(entry.name), _KINDS[entry.kind], flags, symbol, count, len(parameters))
        size = len(code) - start
        records.append(FUNCTION_RECORD.pack(*head, entry.registers, start if size else 0, size))
        parameters += [strings.name(name) for name in entry.parameters or ()]
    total = struct.pack("<II", len(records), len(parameters))
    return total + b"".join(records) + struct.pack(f"<{len(parameters)}I", *parameters)


def instruction_words(instruction: Instruction) -> int:
    """Return the number of words in the encoding of an instruction."""
    return 1 + sum(1 + len(operand) if isinstance(operand, tuple) else 1 for operand in instruction.operands)


def _encode_code(entry: FunctionEntry) -> list[int]:
    starts = [0]
    for instruction in entry.code:
        starts.append(starts[-1] + instruction_words(instruction))
    words: list[int] = []
    for index in range(len(entry.code)):
        try:
            words += _encode_instruction(entry.code[index], index, starts)
        except RelvmFormatError as error:
            raise RelvmFormatError(f"{entry.name}, instruction {index}: {error}") from None
    return words


def _encode_instruction(instruction: Instruction, index: int, starts: list[int]) -> list[int]:
    row = _OPCODES.get(instruction.op)
    if row is None or len(row.operands) != len(instruction.operands):
        raise RelvmFormatError(
            f"unknown instruction {instruction.op} with {counted(len(instruction.operands), 'operand')}"
        )
    words = [row.index]
    for letter, operand in zip(row.operands, instruction.operands, strict=True):
        match letter:
            case "A":
                words.append(len(operand))
                words += [_argument_word(*argument) for argument in operand]
            case "j":
                if not 0 <= operand < len(starts) - 1:
                    raise RelvmFormatError(f"the jump target, instruction {operand}, lies outside the function")
                words.append((starts[operand] - starts[index]) & 0xFFFFFFFF)
            case _:
                if not -1 <= operand < 1 << 31:
                    raise RelvmFormatError(f"operand {operand} is outside [-1, 2^31)")
                words.append(operand & 0xFFFFFFFF)
    return words


def _argument_word(kind: str, payload: int) -> int:
    if kind not in _ARGUMENTS:
        raise RelvmFormatError(f"unknown argument kind {kind!r}; expected one of {', '.join(_ARGUMENTS)}")
    if not -PAYLOAD_LIMIT <= payload < PAYLOAD_LIMIT:
        raise RelvmFormatError(f"{kind} {payload} is outside [-2^28, 2^28); use a constant instead")
    return (payload << 3 | _ARGUMENTS[kind]) & 0xFFFFFFFF


def _constant_section(constants: Sequence[Constant], strings: _Strings, tensors: _Tensors) -> bytes:
    """Return the bytes of the section `constants`.

    strings, tensors: the builders of the sections `strings` and `data`, to which the contents of constants are added.
    """
    records: list[bytes] = []
    dims: list[int] = []
    for index, value in enumerate(constants):
        dtype, extent, size_bytes = 0, (), 0
        match value:
            case np.ndarray():
                array = plain_array(value)
                elements = plain_bytes(array)
                tag, dtype, extent = "TENSOR", dtype_number(array.dtype), array.shape
                payload, size_bytes = tensors.store(elements), elements.nbytes
            case Shape():
                tag, extent, payload = "SHAPE", value, 0
            case np.dtype():
                tag, payload = "DTYPE", dtype_number(value)
            case str():
                tag, payload = "STRING", strings.index(value)
            case float():
                tag, payload = "FLOAT", struct.unpack("<q", struct.pack("<d", value))[0]
            case int() if not isinstance(value, bool):
                tag, payload = "INT", value
            case _:
                expected = "an array, Shape, str, np.dtype, int or float"
                raise RelvmTypeError(f"constant {index}: expected {expected}, got {type(value).__name__}")
        try:
            records.append(CONSTANT_RECORD.pack(_TAGS[tag], dtype, len(extent), len(dims), payload, size_bytes))
            struct.pack(f"<{len(extent)}q", *extent)
        except struct.error:
            raise RelvmFormatError(f"constant {index}: {value!r} does not fit in int64") from None
        dims += extent
    total = struct.pack("<II", len(records), len(dims))
    return total + b"".join(records) + struct.pack(f"<{len(dims)}q", *dims)
