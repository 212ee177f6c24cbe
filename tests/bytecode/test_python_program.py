"""Tests of the printed Python program that builds an executable again."""

from __future__ import annotations

import numpy as np
import pytest
from support.assembly_programs import EVERYTHING, program_of

from relvm import vm
from relvm.bytecode.program import Argument, FunctionEntry, Instruction, NativeCode, Program, ret
from relvm.bytecode.python_printer import as_python
from relvm.errors import RelvmFormatError, RelvmUnsupportedError
from relvm.tables import ABI_VERSION, ARGUMENTS, OPCODES

vm.register_func("no name; (of Python)", lambda: None, override=True)
vm.register_func("test.two", lambda a, b: a, override=True)


def rebuilt(executable: vm.Executable) -> vm.Executable:
    """Return the executable that an executable's Python program builds, after checking that the bytes are the same."""
    names: dict = {}
    exec(compile(executable.as_python(), "program.py", "exec"), names)
    assert names["executable"].as_text() == executable.as_text()
    assert names["executable"].to_bytes() == executable.to_bytes()
    return names["executable"]


def test_a_program_of_everything() -> None:
    executable = rebuilt(vm.Executable.from_program(program_of(EVERYTHING)))
    results = vm.VirtualMachine(executable)["main"](False, 0)
    np.testing.assert_array_equal(results[1], np.arange(20))
    assert results[4:9] == ((3, -1), (), 'a ; b "c" é', np.dtype("uint16"), -(1 << 63))


def test_a_program_built_by_hand() -> None:
    b = vm.ExecBuilder()
    with b.function("main", ["x"]):
        other = b.label()
        b.emit_if(b.r(0), other)
        b.emit_ret(b.r(0))
        b.place(other)
        b.emit_call("vm.builtin.make_tuple", [b.const(np.arange(100.0)), b.imm(1.5), b.f("main")], dst=b.r(7))
        b.emit_ret(b.r(7))
    executable = b.get()
    run, again = (vm.VirtualMachine(each)["main"](False) for each in (executable, rebuilt(executable)))
    np.testing.assert_array_equal(run[0], again[0])
    assert run[1] == again[1] == 1.5


def test_comments_and_equal_constants_of_several_rows() -> None:
    text = """
c0 = float 0.5
c1 = float 0.5
c2 = tensor f32 (2,) [1.0, 2.0]
c3 = tensor f32 (2,) [1.0, 2.0]
c4 = float -inf
f0 = bytecode main(x) registers 5
  0: ret r0
debug
| {"main": {"instructions": ["x # is\\n the result"]}}
"""
    executable = vm.Executable.from_program(program_of(text))
    rebuilt(executable)
    assert "b.emit_ret(b.r(0))  # x # is the result\n" in executable.as_python()


@pytest.mark.parametrize("row", OPCODES, ids=lambda row: row.name)
def test_every_instruction_has_a_statement(row) -> None:
    arguments = tuple(Argument(each.name, 0) for each in ARGUMENTS)
    operands = tuple({"A": arguments}.get(letter, 0) for letter in row.operands)
    entry = FunctionEntry("main", "bytecode", ("x",), 1, (Instruction(row.name, operands), ret(0)))
    text = as_python(Program((entry,), (1,)))
    (line,) = [line for line in text.splitlines() if line.startswith("    b.emit")][:-1]
    assert row.name in line
    for letter, part in {"r": "b.r(0)", "u": "b.r(0)", "f": "'main'", "j": "l0", "A": "b.ctx, b.nil"}.items():
        assert (part in line) or letter not in row.operands


def test_native_code_of_another_computer_is_built() -> None:
    entries = (
        FunctionEntry("main", "native", ("x",), 3, symbol="s", private=True, impure=True),
        FunctionEntry("k", "kernel", ("x", "y"), symbol="k"),
    )
    native = NativeCode(b"library", "riscv64-linux-gnu", "x86-64-v3", ABI_VERSION + 1, bytes(range(32)))
    again = rebuilt(vm.Executable.from_program(Program(entries, (), native), elsewhere=True))
    assert again.program.native == native
    assert again.unsupported_reason


def test_a_packed_function_with_a_symbol_is_refused() -> None:
    with pytest.raises(RelvmUnsupportedError, match="p: a packed function with its own symbol"):
        as_python(Program((FunctionEntry("p", "packed", symbol="s"),)))


def test_a_kernel_or_native_function_is_added_once() -> None:
    b = vm.ExecBuilder()
    b.kernel("k", ["x"], symbol="k")
    with pytest.raises(RelvmFormatError, match="function k is already declared"):
        b.native("k", ["x"], registers=2, symbol="k")
    with pytest.raises(RelvmFormatError, match="function k is already defined"), b.function("k", ["x"]):
        pass
    with pytest.raises(RelvmFormatError, match="a kernel program of 3 bytes"):
        b.kernel("other", ["x"], b"abc")
    with pytest.raises(RelvmFormatError, match="belong to builtins"):
        b.kernel("vm.builtin.copy", ["x"], symbol="k")
