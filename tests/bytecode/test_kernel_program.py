"""Python code that reads kernel bytecode raises RelvmFormatError for damaged programs, or lists them."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from typing import Any

import pytest

from relvm.bytecode.kernel_printer import enclosing_loops, kernel_listing
from relvm.bytecode.kernel_program import VERSION, KernelProgram, decode_kernel
from relvm.errors import RelvmFormatError
from relvm.tables import DTYPES, KERNEL_OPCODES, MICRO_KERNELS

OPCODES = {row.name: number for number, row in enumerate(KERNEL_OPCODES)}
COPY = [row.name for row in MICRO_KERNELS].index("rvm_copy_bytes")
F32 = [row.name for row in DTYPES].index("f32")
PROGRAM = KernelProgram(
    tensors=(F32, 1, -1, F32, 1, -1),
    inputs=1,
    outputs=1,
    sizes=1,
    constants=(0, 1, 0x3F800000),
    registers=(6, 2, 2),
    arrays=((0, 64),),
    code=(
        (OPCODES["view"], 8, 0, 1, 4),
        (OPCODES["invoke"], COPY, 0, 5),
        (OPCODES["fail"], 1, 1, 0, 2),
        (OPCODES["end"],),
    ),
    arguments=(2, 1, 0, 1, 2),
    messages=("no values", "values %lld and %lld"),
    scratch_bytes=64,
)


def test_the_program_has_a_listing() -> None:
    content = PROGRAM.encode()
    assert decode_kernel(content).encode() == content
    listing = kernel_listing(decode_kernel(content))
    assert "invoke rvm_copy_bytes(dst=b2[s1], src=b0[s1], bytes=s2)" in listing
    assert "fail TYPE_ERROR 'values %lld and %lld' (s2, s1)" in listing


LOOPS = [row for row in KERNEL_OPCODES if row.name in ("loop", "strips", "blocks", "parallel")]


@pytest.mark.parametrize("outer", LOOPS, ids=lambda row: row.name)
@pytest.mark.parametrize("inner", LOOPS, ids=lambda row: row.name)
def test_instructions_know_the_loops_around_them(outer: Any, inner: Any) -> None:
    """The first instruction of a loop states the instruction after it, with the letter `j`."""
    code = [
        (OPCODES[loop.name], *(end if letter == "j" else 0 for letter in loop.operands))
        for loop, end in ((outer, 4), (inner, 3))
    ]
    program = replace(PROGRAM, code=(*code, *[(OPCODES["end"],)] * 3))
    assert enclosing_loops(program) == ((), (0,), (0, 1), (0,), ())


def test_programs_that_are_cut_off_or_too_long_are_rejected() -> None:
    content = PROGRAM.encode()
    for size in range(len(content)):
        with pytest.raises(RelvmFormatError):
            decode_kernel(content[:size])
    with pytest.raises(RelvmFormatError, match="does not have the size that its header states"):
        decode_kernel(content + bytes(8))


@pytest.mark.parametrize(
    ("word", "value", "message"),
    [
        (0, VERSION + 1, f"does not begin with a header of version {VERSION}"),
        (1, 1 << 31, "shorter than its header states"),
        (3, 0, "does not have the size that its header states"),
        (12, 1, "has 2 messages, but its header states 1"),
    ],
)
def test_headers_are_checked(word: int, value: int, message: str) -> None:
    content = bytearray(PROGRAM.encode())
    content[4 * word : 4 * word + 4] = value.to_bytes(4, "little")
    with pytest.raises(RelvmFormatError, match=message):
        decode_kernel(bytes(content))


def test_messages_are_text() -> None:
    content = PROGRAM.encode().replace(b"no values", b"no val\xffes")
    with pytest.raises(RelvmFormatError, match="not UTF-8 text"):
        decode_kernel(content)


def test_damaged_programs_raise_only_relvms_error() -> None:
    content, rng = PROGRAM.encode(), random.Random(3)
    failed = shown = 0
    for _ in range(20000):
        damaged = bytearray(content)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.choice((0, 1, 255, rng.randrange(256)))
        try:
            kernel_listing(decode_kernel(bytes(damaged)))
            shown += 1
        except RelvmFormatError:
            failed += 1
    assert failed > 1000 and shown > 1000


def test_listings_take_time_and_room_in_proportion_to_the_program() -> None:
    tensors = (F32, 0) * 60000
    fails = ((OPCODES["fail"], 1, 0, 0, 0),) * 60000
    program = KernelProgram(tensors, 60000, 0, 0, (), (0, 0, 0), (), fails, (), ("x" * 1000000,), 0)
    start = time.process_time()
    listing = kernel_listing(program)
    assert time.process_time() - start < 5
    assert len(listing) < 20 * len(program.encode())
