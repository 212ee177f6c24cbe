"""Tests of the text form of bytecode programs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.assembly_programs import BUILTINS, EVERYTHING, program_of

from relvm.bytecode.asm_parser import parse_text
from relvm.bytecode.asm_printer import HEADLINE, as_text
from relvm.bytecode.encode import encode
from relvm.bytecode.program import Argument, FunctionEntry, Instruction, NativeCode, Program, Shape
from relvm.errors import RelvmNameError, RelvmSyntaxError
from relvm.numpy_dtypes import numpy_dtype
from relvm.tables import ARGUMENTS, DTYPES, OPCODES, PRIM_OPERATORS


def assert_round_trips(program: Program) -> str:
    text = as_text(program)
    assert bytes(encode(parse_text(text))) == bytes(encode(program))
    assert as_text(parse_text(text)) == text
    return text


def test_a_program_of_everything_round_trips() -> None:
    text = assert_round_trips(program_of(EVERYTHING))
    for line in EVERYTHING.splitlines():
        if line and not line.startswith("  1:"):  # a comment is added to this line
            assert line in text.splitlines()


def test_the_debug_section_comments_the_instructions() -> None:
    lines = as_text(program_of(EVERYTHING)).splitlines()
    (line,) = [line for line in lines if line.endswith("; t = (x, y, ...)")]
    assert line.startswith("  1: call r2 = vm.builtin.make_tuple(")


def test_native_code_round_trips() -> None:
    native = NativeCode(bytes(range(256)), "x86_64-linux-gnu", "x86-64-v3", replaces=bytes(range(32)))
    kernel = FunctionEntry("k", "kernel", ("a", "out"), symbol="relvm_k")
    routine = FunctionEntry("main", "native", ("a",), 2, symbol="strange symbol")
    inner = Program((FunctionEntry("p", "packed"),), (np.arange(3.0), "text"))
    assert_round_trips(Program((kernel, routine), native=native, source="\n\nlast line\r\n", portable=inner))


@pytest.mark.parametrize("row", [row for row in DTYPES if row.name != "str"], ids=lambda row: row.name)
def test_tensors_of_every_dtype_round_trip(row) -> None:
    dtype = numpy_dtype(row.index)
    is_of_numpy = dtype.isbuiltin == 1
    largest = (
        1 if dtype.kind == "b" or not is_of_numpy else np.finfo(dtype).max if dtype.kind == "f" else np.iinfo(dtype).max
    )
    small, long = np.array([0, 1, largest], dtype), np.arange(40).astype(dtype).reshape(5, 8)
    text = assert_round_trips(Program((), (small, long, np.zeros((0, 2), dtype), np.array(1, dtype), dtype)))
    assert (
        f"c0 = tensor {row.name} (3,) {'[' if dtype.kind in 'biuf' else 'base64'}" in text
        and f"c1 = tensor {row.name} (5, 8) base64" in text
    )


arguments = st.one_of(
    st.builds(Argument, st.sampled_from(["REGISTER", "CONSTANT", "FUNCTION"]), st.integers(0, (1 << 28) - 1)),
    st.builds(Argument, st.just("IMMEDIATE"), st.integers(-(1 << 28), (1 << 28) - 1)),
    st.builds(Argument, st.just("BOOL"), st.integers(0, 1)),
    st.sampled_from([Argument("CONTEXT", 0), Argument("NIL", 0)]),
)
operands = {
    "d": st.integers(-1, 100),
    "r": st.integers(0, 100),
    "u": st.integers(0, 100),
    "f": st.integers(0, 1),
    "p": st.integers(0, len(PRIM_OPERATORS) - 1),
    "j": st.just(0),
    "A": st.lists(arguments, max_size=5).map(tuple),
}
instructions = st.sampled_from(OPCODES).flatmap(
    lambda row: st.tuples(*(operands[letter] for letter in row.operands)).map(lambda each: Instruction(row.name, each))
)
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
constants = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(),
    texts,
    st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=3).map(Shape),
    st.lists(st.floats(width=32), max_size=20).map(lambda each: np.array(each, np.float32)),
    st.lists(st.integers(0, 255), max_size=20).map(lambda each: np.array(each, np.uint8)),
)


@given(texts, texts, st.lists(instructions, min_size=1, max_size=8), st.lists(constants, max_size=5), texts, texts)
def test_random_programs_round_trip(name, parameter, code, values, source, comment) -> None:
    entries = (
        FunctionEntry(name + "0", "packed"),
        FunctionEntry(name + "1", "bytecode", (parameter, "x"), 101, tuple(code)),
    )
    debug = {name + "1": {"instructions": [comment]}}
    assert_round_trips(Program(entries, tuple(values), None, source, {name: 1}, debug))


def test_every_argument_kind_has_a_text() -> None:
    made = Instruction("call", (-1, 0, tuple(Argument(row.name, 0) for row in ARGUMENTS)))
    assert_round_trips(Program((FunctionEntry("f", "bytecode", (), 1, (made,)),)))


FUNCTION = BUILTINS + "f8 = bytecode main(x) registers 2\n"


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("c1 = int 5", RelvmSyntaxError, "line 2, column 1: expected c0, f0,"),
        ("c0 = int 5.5", RelvmSyntaxError, "line 2, column 10: expected an integer, got '5.5'"),
        ("c0 = int 5 6", RelvmSyntaxError, "line 2, column 12: expected the end of the line, got '6'"),
        ("c0 = thing 5", RelvmSyntaxError, "column 6: expected one of tensor, shape"),
        ("c0 = string open", RelvmSyntaxError, "column 13: expected a string"),
        ('c0 = string "open', RelvmSyntaxError, "column 13: expected a string"),
        ('c0 = string "\\ud800"', RelvmSyntaxError, "column 13: expected a string"),
        ("c0 = float fast", RelvmSyntaxError, "expected a float, got 'fast'"),
        ("c0 = float 0x7ff80000000000014", RelvmSyntaxError, "expected a float, got '0x7ff80000000000014'"),
        ("c0 = dtype f99", RelvmSyntaxError, "expected one of bool, i8"),
        (
            "c0 = tensor f32 (2,) [1.0]",
            RelvmSyntaxError,
            "line 2: the data does not fit a tensor of dtype float32 and shape (2,)",
        ),
        ("c0 = tensor u8 (1,) [256]", RelvmSyntaxError, "the data does not fit a tensor of dtype uint8"),
        ("c0 = tensor bf16 (1,) [1.0]", RelvmSyntaxError, "column 23: expected 'base64', got '['"),
        ("c0 = tensor u8 (1,) [x]", RelvmSyntaxError, "expected a number, got 'x'"),
        ("c0 = tensor bool (1,) [1]", RelvmSyntaxError, "expected a number, got '1'"),
        ("c0 = tensor u8 (1,) base64\n| ??", RelvmSyntaxError, "line 2: expected base64 in the lines below"),
        ("signature\n| {", RelvmSyntaxError, "line 2: expected JSON in the lines below"),
        (f"signature\n| {'[' * 100000}", RelvmSyntaxError, "line 2: expected JSON in the lines below"),
        ("source\n| a\nsource\n| b", RelvmSyntaxError, "line 4, column 1: expected"),
        ("f0 = packed 5x", RelvmSyntaxError, "column 13: expected a name"),
        ("f0 = unpacked x", RelvmSyntaxError, "expected one of packed, bytecode"),
        (FUNCTION + "  1: ret r0", RelvmSyntaxError, "expected '0', got '1'"),
        (FUNCTION + "  0: return r0", RelvmSyntaxError, "expected one of call, ret"),
        (FUNCTION + "  0: ret 0", RelvmSyntaxError, "expected r and a number, got '0'"),
        (FUNCTION + "  0: goto 0", RelvmSyntaxError, "expected '->', got '0'"),
        (FUNCTION + "  0: call r1 = vm.builtin.copy(r0", RelvmSyntaxError, "expected ',', got the end of the line"),
        (FUNCTION + "  0: call r1 = vm.builtin.copy(q)", RelvmSyntaxError, "expected an argument, got 'q'"),
        (
            FUNCTION + "  0: call r1 = vm.builtin.copi(r0)",
            RelvmNameError,
            "vm.builtin.copi; did you mean vm.builtin.copy",
        ),
        (FUNCTION + "  0:", RelvmSyntaxError, "got the end of the line"),
    ],
)
def test_mistakes_are_shown_where_they_are(text: str, error: type, words: str) -> None:
    with pytest.raises(error) as caught:
        program_of(text)
    assert words in str(caught.value)


def test_another_text_is_refused() -> None:
    with pytest.raises(RelvmSyntaxError, match="line 1"):
        parse_text("def main() { }")
    assert not parse_text(f"{HEADLINE}\n\n; nothing but a comment\n").functions
    assert not parse_text("relvm executable 1.0\n").functions
