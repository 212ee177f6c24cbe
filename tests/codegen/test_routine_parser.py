"""Tests of the text form of routines as input: it is parsed, verified and built."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.golden_cases import Case, golden, read_cases

from relvm import vm
from relvm.compiler.build import build_routines, lower
from relvm.compiler.find_compiler import find_compiler
from relvm.errors import (
    RelvmArgumentError,
    RelvmError,
    RelvmNameError,
    RelvmSyntaxError,
    RelvmTypeError,
    RelvmVerifyError,
)
from relvm.frontend.text import parse_module
from relvm.ir.dtypes import F32
from relvm.kernels.kernel import Kernel
from relvm.lir.parser import parse_routines
from relvm.lir.printer import format_module
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline

FILES = ("lower_to_lir", "copy_coalescing", "devirtualize_calls", "tail_calls", "tail_recursion_to_loop")
PATHS = [Path(__file__).parent / f"{file}.cases" for file in FILES]

HAND_WRITTEN = """\
__vmtir__main(ctx_ptr, r, c, f):  # r[0..1] = cond, x
  if bool(call_packed("vm.builtin.read_if_cond", anylist_getitem(r, 0))):
    anylist_setitem_call_packed(r, 4, "vm.builtin.make_tuple", anylist_getitem(r, 1), anylist_getitem(c, 0), null)
    anylist_setitem_call_packed(r, 3, "vm.builtin.copy", anylist_getitem(r, 4))
    anylist_resetitem(r, 4)
  else:
    anylist_setitem_call_routine(r, 3, "twice", anylist_getitem(r, 1))
  anylist_setitem_call_packed(r, 2, "vm.builtin.copy", anylist_getitem(r, 3))

__vmtir__twice(ctx_ptr, r, c, f):  # r[0..0] = x
  anylist_setitem(r, 1, mul_i64(anylist_getitem(r, 0), -2))
"""


def test_there_are_golden_cases() -> None:
    assert sum(len(read_cases(path)) for path in PATHS) >= 20


@golden(*PATHS)
def test_golden_routines_are_parsed_and_printed_again(case: Case) -> None:
    assert format_module(parse_routines(case.expected)) == case.expected


def modes() -> list:
    return ["bytecode", "compiled", {"twice": "compiled"}] if find_compiler() else ["bytecode"]


@pytest.mark.parametrize("mode", modes(), ids=str)
def test_routines_written_by_hand_are_built(mode) -> None:
    lir = parse_routines(HAND_WRITTEN, constants=[2.5], kernels=())
    machine = vm.VirtualMachine(build_routines(lir, mode, "bytecode"))
    assert machine["main"](True, 3) == (3, 2.5, None)
    assert machine["main"](cond=0, x=3) == -6
    with pytest.raises(RelvmTypeError, match="mul_i64: expected operand 0 to be an int"):
        machine["main"](0, 1.5)


@pytest.mark.parametrize("mode", modes()[:2])
def test_the_text_of_a_module_builds_to_the_same_program(mode: str) -> None:
    module = parse_module("""
    def main(x: f32[n], c: bool) -> (f32[n], i64, str[1]) {
      y = if c then add(relu(x), const(f32[1], [2])) else x
      return (y, @count(dim(n), 0), const(str[1], ["a"]))
    }
    def count(i: i64, sum: i64) -> i64 { return if i <= 0 then sum else @count(i - 1, sum + i * 1000000007) }""")
    lir = lower(run_passes(module, build_pipeline("bytecode")))
    text = format_module(lir)
    parsed = parse_routines(text, constants=lir.constants, functions=lir.functions, kernels=lir.kernels)
    assert format_module(parsed) == text
    x = np.float32([-1, 2, 3])
    machines = vm.VirtualMachine(build_routines(parsed, mode, "bytecode")), vm.VirtualMachine(vm.build(module, mode))
    for cond in (True, False):
        (y, count, word), (expected, expected_count, _) = (machine["main"](x, cond) for machine in machines)
        np.testing.assert_array_equal(y.numpy(), expected.numpy())
        assert count == expected_count == 6000000042
        assert word.numpy().tolist() == ["a"]


def test_numbers_are_parsed_as_printed() -> None:
    text = (
        "__vmtir__main(ctx_ptr, r, c, f):\n"
        '  anylist_setitem_call_packed(r, 0, "vm.builtin.make_tuple", True, False, -1, 9223372036854775807,'
        " -9223372036854775808, 0.1, -0.0, 1e-05, 1e+300, inf, -inf, nan)\n"
    )
    lir = parse_routines(text, constants=(), kernels=())
    assert format_module(lir) == text
    got = vm.VirtualMachine(build_routines(lir))["main"]()
    expected = [True, False, -1, 2**63 - 1, -(2**63), 0.1, -0.0, 1e-05, 1e300, np.inf, -np.inf, np.nan]
    assert list(map(repr, got)) == [repr(x if isinstance(x, int) else float(x)) for x in expected]


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        (
            "(r, 4))\n    anylist_reset",
            "(r, 9))\n    anylist_reset",
            RelvmVerifyError,
            "line 4, column 58: register 9 is",
        ),
        ("resetitem(r, 4)", "resetitem(r, 5)", RelvmVerifyError, "line 5, column 5: register 5 is read before"),
        (
            "anylist_setitem_call_packed(r, 3",
            "anylist_setitem_call_packed(r, 5",
            RelvmVerifyError,
            "line 8, column 56: ",
        ),
        ("(r, 4,", "(r, 999999999,", RelvmVerifyError, "line 3, column 5: register 999999999 is out of range"),
        ("(c, 0)", "(c, 1)", RelvmVerifyError, "column 87: constant 1 is out of range; the constant table has 1"),
        ("anylist_getitem(c, 0)", "anylist_getitem(f, 9)", RelvmVerifyError, "column 87: function 9 is out of range"),
        ("(r, 2,", "(r, 7,", RelvmVerifyError, "line 1, column 1: the routine does not write its result, register 2"),
        ('"twice", any', '"twic", any', RelvmNameError, "line 7, column 5: no routine twic; did you mean twice"),
        ('call_routine(r, 3, "twice"', 'call_cpacked(r, 3, "k"', RelvmNameError, "line 7, column 5: no kernel k"),
        ("builtin.copy", "builtin.cop", RelvmNameError, "line 4, column 5: no builtin vm.builtin.cop; did you mean"),
        ("mul_i64", "mul_i6", RelvmNameError, "line 11, column 25: unknown scalar operator mul_i6; did you mean"),
        (
            '"twice", anylist_getitem(r, 1)',
            '"twice", 1, 2',
            RelvmVerifyError,
            "line 7, column 5: twice: expected 1 arg",
        ),
        (", -2)", ")", RelvmSyntaxError, "line 11, column 25: mul_i64: expected 2 operands, got 1"),
        (", -2)", ", null)", RelvmVerifyError, "line 11, column 56: expected a scalar operand"),
        (
            ", -2)",
            ", 9223372036854775808)",
            RelvmSyntaxError,
            "column 56: 9223372036854775808 does not fit in an int64",
        ),
        (", -2)", ", 2.x)", RelvmSyntaxError, "line 11, column 56: expected an operand, got '2.x'"),
        (", -2))", ", -2)) x", RelvmSyntaxError, "line 11, column 60: expected the end of the line, got 'x'"),
        (", -2))", ", -2)", RelvmSyntaxError, "line 11, column 59: expected '\\)', got 'the end of the line'"),
        ("  else:\n", "", RelvmSyntaxError, 'line 7, column 1: expected "else:" with an indentation of 2 spaces'),
        (
            "    anylist_reset",
            "      anylist_reset",
            RelvmSyntaxError,
            "line 5, column 1: expected an indentation of 4",
        ),
        ("cond, x\n", "cond\n", RelvmSyntaxError, "line 1, column 47: expected 2 parameter names, got 1"),
        (
            "anylist_resetitem(",
            "anylist_reset(",
            RelvmSyntaxError,
            "line 5, column 5: unknown statement 'anylist_reset'",
        ),
        ('"vm.builtin.make_tuple"', '"vm', RelvmSyntaxError, "line 3, column"),
        ("__vmtir__twice", "__vmtir__main", RelvmVerifyError, "line 10, column 1: routine main is defined twice"),
        (
            "  anylist_setitem(r, 1",
            '  return tail_call("twice", 1)\n  anylist_setitem(r, 1',
            RelvmVerifyError,
            "line 12, c",
        ),
        ("ctx_ptr, r, c, f", "ctx, r", RelvmSyntaxError, "line 1, column 1: expected a routine such as __vmtir__main"),
    ],
)
def test_mistakes_are_reported_with_line_and_column(old: str, new: str, error: type, message: str) -> None:
    assert old in HAND_WRITTEN
    with pytest.raises(error, match=message):
        parse_routines(HAND_WRITTEN.replace(old, new), constants=[2.5], kernels=())


def test_every_prefix_and_every_line_less_is_parsed_or_refused() -> None:
    lines = HAND_WRITTEN.splitlines(keepends=True)
    texts = [HAND_WRITTEN[:end] for end in range(len(HAND_WRITTEN))]
    texts += ["".join(lines[:i] + lines[i + 1 :]) for i in range(len(lines))]
    refused = 0
    for text in texts:
        try:
            parse_routines(text, constants=[2.5], kernels=())
        except RelvmError:
            refused += 1
    assert refused > len(texts) // 2


def test_what_cannot_be_built() -> None:
    with pytest.raises(RelvmTypeError, match="parse_routines: text: expected a string, got int"):
        parse_routines(3)
    with pytest.raises(RelvmSyntaxError, match="line 1, column 1: expected a routine"):
        parse_routines("\n")
    with pytest.raises(RelvmTypeError, match="build_routines: lir: expected a LirModule"):
        build_routines(HAND_WRITTEN)
    lir = parse_routines(HAND_WRITTEN)
    with pytest.raises(RelvmVerifyError, match="main: constant 0 is out of range; the constant table has 0 entries"):
        build_routines(lir)
    with pytest.raises(RelvmArgumentError, match='got "auto"'):
        build_routines(lir, "auto")
    calls_kernel = '__vmtir__f(ctx_ptr, r, c, f):  # r[0..0] = x\n  call_cpacked("k", 1, null)\n  ' + (
        'anylist_setitem_call_packed(r, 1, "vm.builtin.copy", anylist_getitem(c, 0))\n'
    )
    with pytest.raises(RelvmNameError, match="no kernel k"):
        build_routines(parse_routines(calls_kernel, constants=[F32]))
    kernel = Kernel("k", (), (), (), "")
    with pytest.raises(RelvmVerifyError, match="line 2, column 3: k: expected 0 arguments, got 1"):
        parse_routines(calls_kernel, constants=[F32], kernels=[kernel])


@pytest.mark.parametrize("mode", modes()[:2])
def test_a_kernel_call_with_a_result_overwrites_the_register(mode: str) -> None:
    lir = parse_routines(
        """__vmtir__main(ctx_ptr, r, c, f):  # r[0..0] = x
  anylist_setitem_call_packed(r, 2, "vm.builtin.copy", anylist_getitem(r, 0))
  anylist_setitem_call_cpacked(r, 2, "nothing", null)
  anylist_setitem_call_packed(r, 1, "vm.builtin.copy", anylist_getitem(r, 2))
""",
        kernels=[Kernel("nothing", (), (), (), "")],
    )
    for target in ("bytecode", "c") if find_compiler() else ("bytecode",):
        assert vm.VirtualMachine(build_routines(lir, mode, target))["main"](7) is None
