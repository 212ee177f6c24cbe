"""Executables built by hand, instruction by instruction."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest

from relvm import vm
from relvm.bytecode.program import Argument
from relvm.errors import (
    RelvmArgumentError,
    RelvmAssertionError,
    RelvmError,
    RelvmFormatError,
    RelvmNameError,
    RelvmTypeError,
)
from relvm.tables import OPCODES

A, B = np.float32([1, 2, 3]), np.float32([10, 20, 30])

vm.register_func("test.cases.add", lambda a, b: a.numpy() + b.numpy(), override=True)
vm.register_func("test.cases.mul", lambda a, b: a.numpy() * b.numpy(), override=True)


def run(b: vm.ExecBuilder, *arguments: object, name: str = "main") -> object:
    return vm.VirtualMachine(b.get())[name](*arguments)


def test_run_two_adds() -> None:
    b = vm.ExecBuilder()
    with b.function("main", ["a", "b"]):
        b.emit_call("test.cases.add", [b.r(0), b.r(1)], dst=b.r(2))
        b.emit_call("test.cases.add", [b.r(2), b.r(1)], dst=b.r(3))
        b.emit_ret(b.r(3))
    np.testing.assert_array_equal(run(b, A, B), A + B + B)


def test_two_functions() -> None:
    b = vm.ExecBuilder()
    with b.function("sum", ["a", "b"]):
        b.emit_call("test.cases.add", [b.r(0), b.r(1)], dst=b.r(2))
        b.emit_ret(b.r(2))
    with b.function("product", ["a", "b"]):
        b.emit_call("test.cases.mul", [b.r(0), b.r(1)], dst=b.r(2))
        b.emit_call("later", [b.r(2)], dst=b.r(2))
        b.emit_ret(b.r(2))
    with b.function("later", ["x"]):
        b.emit_call("sum", [b.r(0), b.r(0)], dst=b.r(1))
        b.emit_ret(b.r(1))
    machine = vm.VirtualMachine(b.get())
    assert machine.functions == ["sum", "product", "later"]
    np.testing.assert_array_equal(machine["sum"](A, B), A + B)
    np.testing.assert_array_equal(machine["product"](A, B), 2 * A * B)


# ---- invalid executables ----


def test_reading_an_unwritten_register_is_refused() -> None:
    b = vm.ExecBuilder()
    with b.function("main", ["a"]):
        b.emit_call("vm.builtin.copy", [b.r(0)], dst=b.r(1))
        b.emit_call("test.cases.add", [b.r(0), b.r(2)], dst=b.r(2))
        b.emit_ret(b.r(2))
    with pytest.raises(RelvmFormatError, match="function main, instruction 1: register 1 is read before it is written"):
        b.get()


def test_an_unwritten_register_has_the_number_it_was_written_with() -> None:
    b = vm.ExecBuilder()
    with b.function("main", ["a"]):
        b.emit_ret(b.r(70_000))
    with pytest.raises(RelvmFormatError, match=r"register 1 is read before it is written \(written as r\(70000\)\)"):
        b.get()


def test_a_register_written_on_one_of_two_ways_is_refused() -> None:
    b = vm.ExecBuilder()
    with b.function("main", ["c"]):
        end = b.label()
        b.emit_if(b.r(0), end)
        b.emit_call("vm.builtin.copy", [b.imm(1)], dst=b.r(1))
        b.place(end)
        b.emit_ret(b.r(1))
    with pytest.raises(RelvmFormatError, match="instruction 2: register 1 is read before it is written"):
        b.get()


def test_an_undeclared_function_is_refused() -> None:
    b = vm.ExecBuilder()
    with b.function("main", ["a"]):
        b.emit_call("vm.builtin.make_closure", [b.f("helpr"), b.r(0)], dst=b.r(1))
        b.emit_ret(b.r(1))
    with b.function("helper", ["a"]):
        b.emit_ret(b.r(0))
    with pytest.raises(
        RelvmNameError, match="function helpr is neither defined here nor registered; did you mean helper"
    ):
        b.get()


def test_a_call_of_a_function_that_nobody_has_is_refused_by_the_machine() -> None:
    b = vm.ExecBuilder()
    with b.function("main"):
        b.emit_call("test.cases.ad", dst=b.r(0))
        b.emit_ret(b.r(0))
    with pytest.raises(RelvmNameError, match=r'unknown function "test\.cases\.ad"; did you mean test\.cases\.add'):
        vm.VirtualMachine(b.get())


def test_a_builtin_that_does_not_exist_is_refused() -> None:
    b = vm.ExecBuilder()
    with b.function("main", ["a"]):
        b.emit_call("vm.builtin.copi", [b.r(0)], dst=b.r(1))
        b.emit_ret(b.r(1))
    with pytest.raises(RelvmNameError, match=r"no builtin vm\.builtin\.copi; did you mean vm\.builtin\.copy"):
        b.get()


def test_a_declared_function_must_be_defined() -> None:
    b = vm.ExecBuilder()
    b.declare("later", ["x"])
    with b.function("main", ["a"]):
        b.emit_call("later", [b.r(0)], dst=b.r(1))
        b.emit_ret(b.r(1))
    with pytest.raises(RelvmNameError, match="function later is declared but not defined"):
        b.get()
    words = "later is declared with the parameters x but defined with y, z"
    with pytest.raises(RelvmFormatError, match=words), b.function("later", ["y", "z"]):
        pass
    with b.function("later", ["x"]):
        b.emit_ret(b.r(0))
    assert run(b, 5) == 5


@pytest.mark.parametrize("distance", [2, 1, -2], ids=["beyond", "the end", "before"])
def test_a_jump_out_of_the_function_is_refused(distance: int) -> None:
    b = vm.ExecBuilder()
    with b.function("main", ["a"]):
        b.emit_reset(b.r(0))
        b.emit_goto(distance)
    with pytest.raises(
        RelvmFormatError, match=r"main, instruction 1: the jump target, instruction .*, lies outside the function"
    ):
        b.get()


def test_a_missing_return_is_refused() -> None:
    b = vm.ExecBuilder()
    with b.function("main", ["a"]):
        b.emit_call("vm.builtin.copy", [b.r(0)], dst=b.r(1))
    with pytest.raises(
        RelvmFormatError, match="the last instruction must return or jump, but control falls off the end"
    ):
        b.get()
    with pytest.raises(RelvmFormatError, match="function empty has no instruction"), b.function("empty"):
        pass


def test_two_functions_of_one_name_are_refused() -> None:
    b = vm.ExecBuilder()
    b.packed("test.cases.add", ["a", "b"])
    with b.function("main", ["a"]):
        b.emit_ret(b.r(0))
    with pytest.raises(RelvmFormatError, match="function main is already defined"), b.function("main"):
        pass
    with pytest.raises(RelvmFormatError, match="function main is already declared"):
        b.declare("main", ["a"])
    with pytest.raises(RelvmFormatError, match=r"packed function test\.cases\.add is already declared"):
        b.packed("test.cases.add")


def test_a_packed_function_beside_a_function_of_its_name() -> None:
    b = vm.ExecBuilder()
    outside = b.packed("test.cases.add", ["a", "b"])
    with b.function("test.cases.add", ["a", "b"]):
        b.emit_ret(b.r(1))
    with b.function("main", ["a"]):
        b.emit_call("test.cases.add", [b.r(0), b.r(0)], dst=b.r(1))
        b.emit_call(outside, [b.r(0), b.r(1)], dst=b.r(2))
        b.emit_call("vm.builtin.make_tuple", [b.r(1), b.r(2), outside, b.f("test.cases.add")], dst=b.r(3))
        b.emit_ret(b.r(3))
    executable = b.get()
    rebuilt: dict = {}
    exec(executable.as_python(), rebuilt)
    for each in (executable, rebuilt["executable"]):
        x = np.ones(2, np.float32)
        same, added, *functions = vm.VirtualMachine(each)["main"](x)
        np.testing.assert_array_equal(same, [1, 1])
        np.testing.assert_array_equal(added, [2, 2])
        np.testing.assert_array_equal(functions[0](x, x), [2, 2])
        np.testing.assert_array_equal(functions[1](x, x), [1, 1])
    assert rebuilt["executable"].as_text() == executable.as_text()
    assert executable.stats().calls == {"test.cases.add": 1, "packed test.cases.add": 1, "vm.builtin.make_tuple": 1}
    assert str(executable.stats()).count("called at 1 place") == 3


def test_a_call_with_the_wrong_number_of_arguments_is_refused() -> None:
    b = vm.ExecBuilder()
    with b.function("main", ["a"]):
        b.emit_call("main", [b.r(0), b.r(0)], dst=b.r(1))
        b.emit_ret(b.r(1))
    with pytest.raises(
        RelvmFormatError, match="the number of arguments of a call, 2, is not that of the function's parameters"
    ):
        b.get()


def test_the_context_is_for_packed_functions_and_comes_first() -> None:
    for arguments in ((Argument("NIL", 0), Argument("CONTEXT", 0)), (Argument("CONTEXT", 0), Argument("NIL", 0))):
        b = vm.ExecBuilder()
        with b.function("main", ["a", "b"]):
            b.emit_call("main", arguments, dst=b.r(2))
            b.emit_ret(b.r(2))
        with pytest.raises(RelvmFormatError, match="context"):
            b.get()


MISTAKES: dict[str, tuple[Callable[[vm.ExecBuilder], object], type[RelvmError], str]] = {
    "register": (lambda b: b.r(-1), RelvmTypeError, "r: expected a register number in"),
    "immediate": (lambda b: b.imm(True), RelvmTypeError, "expected an int or a float, got True"),
    "constant": (lambda b: b.const([1, 2]), RelvmTypeError, "expected an array, vm.Shape.*got list"),
    "bool constant": (lambda b: b.const(True), RelvmTypeError, "got bool"),
    "dtype": (lambda b: b.const(np.array([1j])), RelvmTypeError, "unsupported tensor dtype"),
    "name": (lambda b: b.f(3), RelvmTypeError, "expected a function name, got 3"),
    "returned": (lambda b: b.emit_ret(b.imm(3)), RelvmTypeError, r"ret: expected a register \(b\.r\)"),
    "destination": (lambda b: b.emit_call("main", dst=2), RelvmTypeError, "call: expected a register"),
    "callee": (lambda b: b.emit_call(b.r(0)), RelvmTypeError, "call: expected a function's name"),
    "argument": (lambda b: b.emit_call("main", [1]), RelvmTypeError, "call: expected a list of operands"),
    "arguments": (lambda b: b.emit_call("main", b.r(0)), RelvmTypeError, "call: expected a list of operands"),
    "target": (lambda b: b.emit_goto("end"), RelvmTypeError, "goto: expected a label, got 'end'"),
    "instruction": (lambda b: b.emit("rett", b.r(0)), RelvmNameError, "no instruction rett; did you mean ret"),
    "operands": (lambda b: b.emit("ret"), RelvmArgumentError, r"ret \(r\): expected 1 operand, got 0"),
    "row": (
        lambda b: b.emit("prim", b.r(1), "addi64", []),
        RelvmNameError,
        "no scalar operator addi64; did you mean add_",
    ),
    "number": (
        lambda b: b.emit("prim", b.r(1), 1.5, []),
        RelvmTypeError,
        "prim: expected the name or number of a scalar operator",
    ),
    "nesting": (lambda b: b.function("g").__enter__(), RelvmFormatError, "function g is defined inside function main"),
    "get": (lambda b: b.get(), RelvmFormatError, "get: function main is still being written"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named_at_once(mistake: str) -> None:
    act, error, words = MISTAKES[mistake]
    b = vm.ExecBuilder()
    with b.function("main", ["a"]):
        with pytest.raises(error, match=words):
            act(b)
        b.emit_ret(b.r(0))
    assert run(b, 7) == 7


def test_labels_are_placed_once_and_in_their_function() -> None:
    b = vm.ExecBuilder()
    with pytest.raises(RelvmFormatError, match="label: no function is being written"):
        b.label()
    with b.function("main", ["a"]):
        label = b.label()
        b.place(label)
        with pytest.raises(RelvmFormatError, match="function main: the label is already placed"):
            b.place(label)
        b.emit_ret(b.r(0))
    with b.function("other", ["a"]):
        with pytest.raises(RelvmFormatError, match="goto: the label belongs to function main"):
            b.emit_goto(label)
        b.emit_ret(b.r(0))
    words = "function third jumps to a label that is never placed"
    with pytest.raises(RelvmFormatError, match=words), b.function("third", ["a"]):
        b.emit_goto(b.label())


# ---- operands ----


def tuple_of(*operands: Callable[[vm.ExecBuilder], Argument]) -> vm.ExecBuilder:
    """Return an executable whose function main(x) returns a tuple of the operands."""
    b = vm.ExecBuilder()
    with b.function("main", ["x"]):
        b.emit_call("vm.builtin.make_tuple", [operand(b) for operand in operands], dst=b.r(1))
        b.emit_ret(b.r(1))
    return b


@pytest.mark.parametrize("value", [-1, -(1 << 28), (1 << 28) - 1])
def test_negative_immediates(value: int) -> None:
    b = tuple_of(lambda b: b.imm(value))
    assert run(b, 0) == (value,)
    assert b.get().program.constants == ()


@pytest.mark.parametrize("value", [-(1 << 28) - 1, 1 << 28, (1 << 63) - 1, -(1 << 63), 0.5, -0.0, float("inf")])
def test_numbers_that_do_not_fit_an_instruction_become_constants(value: float) -> None:
    b = tuple_of(lambda b: b.imm(value))
    assert str(run(b, 0)) == str((value,))
    assert b.get().program.constants == (value,)


def test_an_integer_beyond_64_bits_is_refused() -> None:
    with pytest.raises(RelvmFormatError, match=r"constant 0: .* does not fit in int64"):
        tuple_of(lambda b: b.imm(1 << 63)).get()


def test_the_same_constant_twice_is_shared() -> None:
    values = (np.float32([1, 2]), vm.Shape((1, 2)), "text", np.dtype("int8"), 1 << 40, 1.5, float("nan"))
    b = tuple_of(*(lambda b, v=v: b.const(v) for v in (*values, *values, values[0].copy())))
    assert len(b.get().program.constants) == len(values)
    assert b.const(values[0], shared=False).payload == len(values)
    assert b.const(values[0]).payload == 0


def test_constants_that_only_look_the_same_are_not_shared() -> None:
    values = (0.0, -0.0, 0, np.array(0), np.array(0.0), np.array([0]), np.int32([0]), vm.Shape((0,)), "0", np.zeros(0))
    b = vm.ExecBuilder()
    assert [b.const(value).payload for value in values] == list(range(len(values)))


def test_a_constant_is_a_copy() -> None:
    array = np.float32([1, 2])
    b = tuple_of(lambda b: b.const(array))
    array[0] = 7
    np.testing.assert_array_equal(run(b, 0)[0], [1, 2])


def test_operands_of_every_kind() -> None:
    tensor = np.arange(6, dtype=np.int16).reshape(2, 3).T
    b = tuple_of(
        lambda b: b.r(0),
        lambda b: b.imm(-3),
        lambda b: b.imm(2.5),
        lambda b: b.const(np.dtype("float32")),
        lambda b: b.const(vm.Shape((2, 3))),
        lambda b: b.const("text"),
        lambda b: b.const(tensor),
        lambda b: b.f("main"),
        lambda b: b.f("vm.builtin.copy"),
        lambda b: b.nil,
        lambda b: b.bool(True),
        lambda b: b.bool(False),
    )
    got = run(b, "argument")
    assert got[:6] == ("argument", -3, 2.5, np.dtype("float32"), (2, 3), "text")
    assert isinstance(got[4], vm.Shape)
    np.testing.assert_array_equal(got[6], tensor)
    assert got[7]("again")[0] == "again" and got[8](5) == 5
    assert got[9:] == (None, True, False)


def test_the_context_is_the_machine() -> None:
    printed = []
    b = vm.ExecBuilder()
    with b.function("main", ["x"]):
        b.emit_call("vm.builtin.print", [b.ctx, b.r(0), b.imm(2)])
        b.emit_ret(b.r(0))
    vm.VirtualMachine(b.get(), print_hook=lambda *values: printed.append(values))["main"](1)
    assert printed == [(1, 2)]


def test_registers_renumber_on_formalisation() -> None:
    b = vm.ExecBuilder()
    with b.function("main", ["x", "y"]):
        b.emit_call("vm.builtin.make_tuple", [b.r(1), b.r(0)], dst=b.r(900))
        b.emit_call("vm.builtin.make_tuple", [b.r(900), b.r(0)], dst=b.r(7))
        b.emit_reset(b.r(900))
        b.emit_ret(b.r(7))
    assert b.get().as_text().partition("main(x, y) ")[2].partition("\n\n")[0].splitlines() == [
        "registers 4",
        "  0: call r3 = vm.builtin.make_tuple(r1, r0)",
        "  1: call r2 = vm.builtin.make_tuple(r3, r0)",
        "  2: reset r3",
        "  3: ret r2",
    ]
    assert run(b, 1, 2) == ((2, 1), 1)


def test_registers_keep_their_numbers_when_their_count_is_given() -> None:
    b = vm.ExecBuilder()
    with b.function("main", ["x"], registers=6):
        b.emit_call("vm.builtin.copy", [b.r(0)], dst=b.r(4))
        b.emit_ret(b.r(4))
    assert "registers 6" in b.get().as_text() and "ret r4" in b.get().as_text()
    with b.function("few", ["x"], registers=1):
        b.emit_ret(b.r(1))
    with pytest.raises(RelvmFormatError, match="function few, instruction 0: register number 1 is out of range"):
        b.get()


@pytest.mark.parametrize("row", OPCODES, ids=lambda row: row.name)
def test_every_instruction_of_the_table_can_be_emitted(row) -> None:
    b = vm.ExecBuilder()
    arguments = [b.r(0)] if "f" in row.operands else [b.r(0), b.r(0)]
    made = {"d": b.r(0), "r": b.r(0), "u": b.r(0), "f": "main", "j": 1, "A": arguments}
    with b.function("main", ["x"]):
        b.emit(row.name, *(made.get(letter, 0) for letter in row.operands))
        b.emit_call("vm.builtin.copy", [b.imm(0)], dst=b.r(0))
        b.emit_ret(b.r(0))
    first = b.get().program.functions[0].code[0]
    assert first.op == row.name and len(first.operands) == len(row.operands)


# ---- programs ----


def test_a_loop_of_scalars_by_hand() -> None:
    b = vm.ExecBuilder()
    with b.function("main", ["n", "total"]):
        done = b.label()
        b.emit("prim", b.r(2), "gt_i64", [b.r(0), b.imm(0)])
        b.emit_if(b.r(2), done)
        b.emit("prim", b.r(3), "add_i64", [b.r(1), b.r(0)])
        b.emit("prim", b.r(4), "sub_i64", [b.r(0), b.imm(1)])
        b.emit("tail_call", "main", [b.r(4), b.r(3)])
        b.place(done)
        b.emit_ret(b.r(1))
    assert run(b, 100_000, 0) == 5_000_050_000
    assert "b.emit('prim', b.r(2), 'gt_i64', [b.r(0), b.imm(0)])" in b.get().as_python()


def test_shape_of() -> None:
    b = vm.ExecBuilder()
    with b.function("main", ["x"]):
        b.emit_call("vm.builtin.shape_of", [b.r(0)], dst=b.r(1))
        b.emit_ret(b.r(1))
    assert run(b, np.zeros((3, 0, 2))) == (3, 0, 2)


def test_storage_and_tensor_by_hand() -> None:
    b = vm.ExecBuilder()
    dtype = b.const(np.dtype("float32"))
    with b.function("main"):
        b.emit_call("vm.builtin.alloc_storage", [b.ctx, b.imm(24), b.imm(0), b.const(np.dtype("uint8"))], dst=b.r(1))
        for k in range(2):
            shape = b.const(vm.Shape((3,)))
            b.emit_call("vm.builtin.alloc_tensor", [b.r(1), b.imm(12 * k), shape, dtype], dst=b.r(2 + k))
        b.emit_call("vm.builtin.make_tuple", [b.r(2), b.r(3)], dst=b.r(4))
        b.emit_ret(b.r(4))
    first, second = run(b)
    assert (first.shape, first.dtype, second.shape) == ((3,), np.float32, (3,))
    addresses = [each.numpy().ctypes.data for each in (first, second)]
    assert addresses[0] % 64 == 0 and addresses[1] == addresses[0] + 12


@pytest.mark.parametrize("by_label", [True, False], ids=["label", "distance"])
def test_goto_skips_code(by_label: bool) -> None:
    called = []
    vm.register_func("test.cases.called", called.append, override=True)
    b = vm.ExecBuilder()
    with b.function("main", ["x"]):
        end = b.label()
        b.emit_goto(end if by_label else 2)
        b.emit_call("test.cases.called", [b.r(0)], dst=b.r(0))
        b.place(end)
        b.emit_ret(b.r(0))
    assert run(b, 5) == 5
    assert not called


@pytest.mark.parametrize(("condition", "taken"), [(True, True), (False, False), (1, True), (0, False)])
def test_if_taken_and_not_taken(condition: object, taken: bool) -> None:
    b = vm.ExecBuilder()
    with b.function("main", ["c", "x", "y"]):
        otherwise, end = b.label(), b.label()
        b.emit_if(b.r(0), otherwise)
        b.emit_call("test.cases.add", [b.r(1), b.r(2)], dst=b.r(3))
        b.emit_goto(end)
        b.place(otherwise)
        b.emit_call("test.cases.mul", [b.r(1), b.r(2)], dst=b.r(3))
        b.place(end)
        b.emit_ret(b.r(3))
    np.testing.assert_array_equal(run(b, condition, A, B), A + B if taken else A * B)


def test_a_loop() -> None:
    vm.register_func("test.cases.less", lambda a, b: a < b, override=True)
    vm.register_func("test.cases.sum", lambda a, b: a + b, override=True)
    b = vm.ExecBuilder()
    with b.function("main", ["n"]):
        top, end = b.label(), b.label()
        b.emit_call("vm.builtin.copy", [b.imm(0)], dst=b.r(1))
        b.emit_call("vm.builtin.copy", [b.imm(0)], dst=b.r(2))
        b.place(top)
        b.emit_call("test.cases.less", [b.r(1), b.r(0)], dst=b.r(3))
        b.emit_if(b.r(3), end)
        b.emit_call("test.cases.sum", [b.r(1), b.imm(1)], dst=b.r(1))
        b.emit_call("test.cases.sum", [b.r(2), b.r(1)], dst=b.r(2))
        b.emit_goto(top)
        b.place(end)
        b.emit_ret(b.r(2))
    assert run(b, 10) == 55


@pytest.mark.parametrize("given", [1, 2])
def test_invoke_a_closure_with_captured_arguments(given: int) -> None:
    b = vm.ExecBuilder()
    with b.function("main", ["x", "y"]):
        b.emit_call("vm.builtin.make_closure", [b.f("inner"), b.r(1), b.imm(3)], dst=b.r(2))
        b.emit_call("vm.builtin.invoke_closure", [b.ctx, b.r(2), *[b.r(0)] * given], dst=b.r(3))
        b.emit_ret(b.r(3))
    with b.function("inner", ["x", "y", "z"]):
        b.emit_call("vm.builtin.make_tuple", [b.r(0), b.r(1), b.r(2)], dst=b.r(3))
        b.emit_ret(b.r(3))
    if given == 1:
        assert run(b, 1, 2) == (1, 2, 3)
        return
    with pytest.raises(RelvmArgumentError, match=r"inner: expected 1 argument \(x\), got 2"):
        run(b, 1, 2)


def failing_program() -> vm.ExecBuilder:
    """Return an executable whose main(x, ok) calls ten nested functions.  The innermost asserts `ok` and returns x."""
    b = vm.ExecBuilder()
    with b.function("main", ["x", "ok"]):
        b.emit_call("f0", [b.r(0), b.r(1)], dst=b.r(2))
        b.emit_ret(b.r(2))
    for k in range(10):
        with b.function(f"f{k}", ["x", "ok"]):
            b.emit_call("vm.builtin.make_tuple", [b.r(0), b.r(0)], dst=b.r(3))
            if k < 9:
                b.emit_call(f"f{k + 1}", [b.r(0), b.r(1)], dst=b.r(2))
            else:
                b.emit_call("vm.builtin.assert", [b.r(1), b.const("not ok")])
                b.emit_call("vm.builtin.copy", [b.r(0)], dst=b.r(2))
            b.emit_ret(b.r(2))
    return b


def test_after_an_error_inside_a_call_the_stack_is_restored_and_the_machine_runs_again() -> None:
    # The stack has exactly the required size, so that a slot that is not restored makes the next run fail: 3 registers
    # of main, 4 of each f, and 2 arguments of the innermost call.
    machine = vm.VirtualMachine(failing_program().get(), stack_values=3 + 10 * 4 + 2, call_depth=11)
    x = np.arange(4.0)
    references = sys.getrefcount(x)
    for _ in range(5):
        with pytest.raises(RelvmAssertionError, match="not ok") as caught:
            machine["main"](x, False)
        assert [line.split()[1] for line in caught.value.__notes__[0].splitlines()] == [
            *(f"f{k}" for k in reversed(range(10))),
            "main",
        ]
        np.testing.assert_array_equal(machine["main"](x, True), x)
        del caught
    assert sys.getrefcount(x) == references


def test_an_error_of_a_packed_function_inside_a_call_leaves_the_machine_usable() -> None:
    def divide(a: int, b: int) -> float:
        return a / b

    vm.register_func("test.cases.divide", divide, override=True)
    b = vm.ExecBuilder()
    with b.function("main", ["a", "b"]):
        b.emit_call("inner", [b.r(0), b.r(1)], dst=b.r(2))
        b.emit_ret(b.r(2))
    with b.function("inner", ["a", "b"]):
        b.emit_call("test.cases.divide", [b.r(0), b.r(1)], dst=b.r(2))
        b.emit_ret(b.r(2))
    machine = vm.VirtualMachine(b.get())
    with pytest.raises(ZeroDivisionError):
        machine["main"](1, 0)
    assert machine["main"](1, 2) == 0.5
