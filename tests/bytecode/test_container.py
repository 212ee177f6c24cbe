"""Tests of the executable file format: its layout, and damaged files."""

from __future__ import annotations

import random
import struct
from dataclasses import replace

import numpy as np
import pytest
from support.assembly_programs import EVERYTHING, program_of, same_program

from relvm.bytecode.container import aligned_buffer, crc32c, pack_sections, unpack_sections
from relvm.bytecode.decode import decode
from relvm.bytecode.encode import encode
from relvm.bytecode.program import (
    Argument,
    FunctionEntry,
    Instruction,
    NativeCode,
    Program,
    Shape,
    call,
    goto,
    register,
    ret,
)
from relvm.errors import RelvmError, RelvmFormatError, RelvmTypeError, RelvmUnsupportedError
from relvm.runtime.executable import Executable
from relvm.tables import SECTIONS

PROGRAM = program_of(EVERYTHING)
WITH_NATIVE = Program(PROGRAM.functions, PROGRAM.constants, NativeCode(b"\x7fELF?", "x86_64-linux-gnu", "x86-64-v3"))


def slow_crc32c(content: bytes) -> int:
    """Compute CRC-32C bit by bit, with the reflected polynomial."""
    remainder = 0xFFFFFFFF
    for byte in content:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (0x82F63B78 if remainder & 1 else 0)
    return remainder ^ 0xFFFFFFFF


def rewritten(buffer: np.ndarray, offset: int, content: bytes) -> np.ndarray:
    """Return the executable with some bytes replaced and all checksums updated."""
    changed = aligned_buffer(len(buffer))
    changed[:] = buffer
    changed[offset : offset + len(content)] = np.frombuffer(content, np.uint8)
    count = struct.unpack_from("<I", changed, 12)[0] % 16
    for row in range(64, 64 + 32 * count, 32):
        _, _, start, size, _ = struct.unpack_from("<IIQQQ", changed, row)
        if start + size <= len(changed):
            struct.pack_into("<I", changed, row + 4, crc32c(changed[start : start + size]) if size else 0)
    struct.pack_into("<I", changed, 24, 0)
    struct.pack_into("<I", changed, 24, crc32c(changed[: 64 + 32 * count]))
    return changed


@pytest.mark.parametrize("content", [b"", b"123456789", bytes(range(256)) * 3 + b"odd"])
def test_checksums_are_castagnolis(content: bytes) -> None:
    assert crc32c(content) == slow_crc32c(content)
    assert slow_crc32c(b"123456789") == 0xE3069283  # polynomial: RFC 3720, B.4; check value: the CRC catalogue


def test_the_header_and_the_section_table_are_laid_out_as_documented() -> None:
    buffer = bytes(encode(WITH_NATIVE))
    magic, major, minor, count, size, checksum, zero = struct.unpack_from("<8sHHIQII", buffer)
    assert (magic, major, minor, size, zero) == (b"\x89RVM\r\n\x1a\n", 1, 4, len(buffer), 0)
    table_end = 64 + 32 * count
    assert checksum == slow_crc32c(buffer[:24] + bytes(4) + buffer[28:table_end])
    assert not any(buffer[28:64])
    end = table_end
    for row in range(64, table_end, 32):
        number, checksum, offset, size, zero = struct.unpack_from("<IIQQQ", buffer, row)
        assert number in {each.id for each in SECTIONS} and zero == 0
        assert offset % 64 == 0 and offset >= end and not any(buffer[end:offset])
        assert checksum == slow_crc32c(buffer[offset : offset + size])
        end = offset + size
    assert end == len(buffer)


def test_the_buffer_and_the_tensors_in_it_are_aligned() -> None:
    buffer = encode(PROGRAM)
    assert buffer.__array_interface__["data"][0] % 64 == 0
    for value in decode(buffer).constants:
        if isinstance(value, np.ndarray) and value.size:
            assert value.__array_interface__["data"][0] % 64 == 0
            assert not value.flags.writeable and np.shares_memory(value, buffer)


@pytest.mark.parametrize(
    "program",
    [PROGRAM, WITH_NATIVE, replace(WITH_NATIVE, portable=PROGRAM), Program(())],
    ids=["everything", "native", "portable", "empty"],
)
def test_what_is_encoded_decodes_to_the_same(program: Program) -> None:
    buffer = encode(program)
    assert same_program(decode(buffer), program)
    assert bytes(encode(decode(buffer))) == bytes(buffer)


def test_arrays_of_any_layout_are_encoded_by_value() -> None:
    array = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    for layout in (array.transpose(2, 0, 1), array[:, ::-1], array.astype(">i4"), array[1, 2, 3, ...]):
        (back,) = decode(encode(Program((), (np.asarray(layout),)))).constants
        np.testing.assert_array_equal(back, layout)


@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 100, 500, -64, -1])
def test_a_truncated_executable_is_refused(length: int) -> None:
    content = bytes(encode(PROGRAM))
    with pytest.raises(RelvmFormatError):
        Executable.from_bytes(content[:length])


def test_a_longer_one_is_refused() -> None:
    with pytest.raises(RelvmFormatError):
        Executable.from_bytes(bytes(encode(PROGRAM)) + bytes(64))


def test_every_flipped_bit_is_found() -> None:
    content = bytearray(encode(PROGRAM))
    for bit in range(0, 8 * len(content), 7):  # every seventh bit, which covers all bit positions in a byte
        content[bit // 8] ^= 1 << bit % 8
        with pytest.raises((RelvmFormatError, RelvmUnsupportedError)):  # unsupported: another major version
            Executable.from_bytes(content, functions=["*"])
        content[bit // 8] ^= 1 << bit % 8
    Executable.from_bytes(content, functions=["*"])


def test_nonsense_with_right_checksums_is_decoded_or_refused_but_never_crashes() -> None:
    buffer, rng = encode(PROGRAM), random.Random(7)
    outcomes = set()
    for _ in range(3000):
        offset = rng.randrange(64, len(buffer) - 4)
        content = rng.choice([rng.randbytes(4), b"\xff\xff\xff\xff", bytes(4), struct.pack("<I", rng.randrange(40))])
        changed = rewritten(buffer, offset, content)
        for read in (decode, lambda content: Executable.from_bytes(content, functions=["*"])):
            try:
                read(changed)
                outcomes.add("read")
            except RelvmError as error:
                outcomes.add(type(error).__name__)
    assert {"read", "RelvmFormatError"} <= outcomes


@pytest.mark.parametrize("kind", ["packed", "bytecode"])
def test_a_table_with_two_meanings_of_a_name_is_refused(kind: str) -> None:
    def program(*names: str) -> Program:
        code = () if kind == "packed" else (ret(0),)
        parameters = None if kind == "packed" else ("x",)
        return Program(tuple(FunctionEntry(name, kind, parameters, len(code), code) for name in names))

    with pytest.raises(RelvmFormatError, match="functions are named same"):
        encode(program("same", "same"))
    buffer = encode(program("same", "sama"))
    with pytest.raises(RelvmFormatError, match="two functions are named same"):
        Executable.from_bytes(rewritten(buffer, bytes(buffer).index(b"sama"), b"same"), functions=["*"])


def test_a_file_that_defines_a_function_of_a_builtins_name_is_refused() -> None:
    buffer = encode(Program((FunctionEntry("vm_builtin.copy", "bytecode", ("x",), 1, (ret(0),)),)))
    with pytest.raises(RelvmFormatError, match="belong to builtins"):
        Executable.from_bytes(rewritten(buffer, bytes(buffer).index(b"vm_builtin"), b"vm.builtin"))


def test_unknown_sections_are_skipped() -> None:
    buffer = encode(PROGRAM)
    count = struct.unpack_from("<I", buffer, 12)[0]
    source_row = next(row for row in range(64, 64 + 32 * count, 32) if struct.unpack_from("<I", buffer, row)[0] == 6)
    changed = rewritten(buffer, source_row, struct.pack("<I", 77))
    assert decode(changed).source == ""
    assert (
        Executable.from_bytes(changed, functions=["*"]).functions.keys()
        == Executable.from_program(PROGRAM).functions.keys()
    )


@pytest.mark.parametrize("name", ["strings", "functions", "constants", "code", "data"])
def test_a_missing_section_is_named(name: str) -> None:
    sections = {each: [bytes(view)] for each, view in unpack_sections(encode(PROGRAM)).items() if each != name}
    buffer = pack_sections(sections)
    with pytest.raises(RelvmFormatError, match=name):
        decode(buffer)
    with pytest.raises(RelvmFormatError, match="section"):
        Executable.from_bytes(buffer)


def function(*code: Instruction, **fields) -> FunctionEntry:
    return FunctionEntry("main", **{"kind": "bytecode", "parameters": ("x",), "registers": 2, "code": code, **fields})


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([function(ret(0)), function(ret(0))], "two functions are named main"),
        ([function(ret(0), kind="strange")], "unknown kind 'strange'"),
        ([function(Instruction("hop", (0,)))], "main, instruction 0: unknown instruction hop"),
        ([function(Instruction("ret", (0, 1)))], "main, instruction 0: unknown instruction ret with 2"),
        ([function(goto(2), ret(0))], "main, instruction 0: the jump target, instruction 2"),
        ([function(call(1, 0, Argument("IMMEDIATE", 1 << 28)), ret(0))], "instruction 0: IMMEDIATE 268435456"),
        ([function(call(1, 0, Argument("THING", 1)), ret(0))], "unknown argument kind 'THING'"),
        ([function(ret(1 << 31))], "operand 2147483648"),
        ([function(ret(0), registers=-1)], "expected a number of registers in [0, 2^31), got -1"),
        ([function(ret(0), parameters=("a\0b",))], "NUL"),
    ],
)
def test_what_the_format_cannot_hold_is_refused(entries: list[FunctionEntry], words: str) -> None:
    with pytest.raises(RelvmFormatError) as caught:
        encode(Program(tuple(entries)))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (True, RelvmTypeError),
        ((1, 2), RelvmTypeError),
        (None, RelvmTypeError),
        (np.zeros(2, np.complex64), RelvmTypeError),
        (np.dtype("complex64"), RelvmTypeError),
        (1 << 63, RelvmFormatError),
        (Shape((1 << 63,)), RelvmFormatError),
    ],
    ids=str,
)
def test_what_is_no_constant_is_refused(value, error) -> None:
    with pytest.raises(error):
        encode(Program((), (value,)))


def test_the_loader_verifies_the_instructions() -> None:
    copy = FunctionEntry("vm.builtin.copy", "packed")
    with pytest.raises(RelvmFormatError, match="main, instruction 0"):
        Executable.from_program(Program((copy, function(call(0, 0, register(1)), ret(0)))))
