"""Calls of a machine from Python."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
from support.assembly_programs import COMMON, machine_of, program_of

from relvm.errors import (
    RelvmArgumentError,
    RelvmAssertionError,
    RelvmBusyError,
    RelvmIndexError,
    RelvmInterrupted,
    RelvmMemoryError,
    RelvmNameError,
    RelvmRecursionError,
    RelvmShapeError,
    RelvmTypeError,
)
from relvm.runtime.executable import Executable
from relvm.runtime.virtual_machine import VirtualMachine


def body(*lines: str, parameters: str = "x", registers: int = 4, constants: str = "") -> str:
    """Return the listing of a function `main` with the given instructions.  It is number 13 in the function table."""
    numbered = "".join(f"  {number}: {line}\n" for number, line in enumerate(lines))
    return f"{constants}\nf13 = bytecode main({parameters}) registers {registers}\n{numbered}"


def test_if_and_goto() -> None:
    choose = body("if r0 -> 3", "call r1 = vm.builtin.copy(1)", "goto -> 4", "call r1 = vm.builtin.copy(2)", "ret r1")
    main = machine_of(choose)["main"]
    assert [main(c) for c in (True, False, 5, 0, np.array(1, np.int8), np.array(False))] == [1, 2, 1, 2, 1, 2]
    with pytest.raises(RelvmTypeError, match="condition"):
        main(1.5)


def test_arguments_by_position_and_by_name() -> None:
    pair = machine_of()["pair"]
    assert pair.parameters == ("x", "y")
    for result in (pair(1, 2), pair(1, y=2), pair(x=1, y=2), pair(y=2, x=1)):
        assert result == (1, 2)


def test_many_arguments() -> None:
    names = ", ".join(f"p{i}" for i in range(100))
    main = machine_of(body("ret r99", parameters=names, registers=100))["main"]
    assert main(*range(100)) == 99


@pytest.mark.parametrize(
    ("args", "named", "words"),
    [
        ((1,), {}, ("pair", "x, y", "got 1")),
        ((1, 2, 3), {}, ("pair", "x, y", "got 3")),
        ((1,), {"z": 2}, ("unknown argument z", "x, y")),
        ((1,), {"x": 2}, ("argument x is given both by position and by name",)),
        ((), {"y": 2}, ("missing argument x", "x, y")),
        ((1, 2, 3), {"y": 2}, ("got 3 positional arguments", "x, y")),
    ],
    ids=str,
)
def test_arguments_that_do_not_fit_the_parameters(args, named, words) -> None:
    with pytest.raises(RelvmArgumentError) as caught:
        machine_of()["pair"](*args, **named)
    for word in words:
        assert word in str(caught.value)


def test_a_near_match_of_an_argument_name() -> None:
    main = machine_of(body("ret r0", parameters="image"))["main"]
    with pytest.raises(RelvmArgumentError, match=r"unknown argument imag: .*; did you mean image"):
        main(imag=1)


def test_which_functions_can_be_called() -> None:
    machine = machine_of()
    assert machine.functions == ["identity", "pair", "forever", "closure_over", "apply"]
    assert "pair" in machine and "vm.builtin.copy" not in machine and "nothing" not in machine and 5 not in machine
    with pytest.raises(RelvmNameError, match="no function pear; did you mean pair"):
        machine["pear"]
    with pytest.raises(RelvmNameError, match="packed function"):
        machine["vm.builtin.copy"]


def test_a_packed_function_that_nobody_registered() -> None:
    with pytest.raises(RelvmNameError, match=r"test\.machine\.missing"):
        machine_of("f13 = packed test.machine.missing\n")


ERRORS = [
    (RelvmTypeError, body("call r1 = vm.builtin.tuple_getitem(r0, 0)", "ret r1"), "tuple_getitem"),
    (
        RelvmIndexError,
        body("call r1 = vm.builtin.make_tuple()", "call r1 = vm.builtin.tuple_getitem(r1, 3)", "ret r1"),
        "3",
    ),
    (
        RelvmAssertionError,
        body("call vm.builtin.assert(false, c0)", "ret r0", constants='c0 = string "x must be y"'),
        "x must be y",
    ),
    (
        RelvmMemoryError,
        body(
            "call r1 = vm.builtin.alloc_storage(ctx, c0, 0, c1)",
            "ret r0",
            constants="c0 = int 4611686018427387904\nc1 = dtype u8",
        ),
        "4611686018427387904",
    ),
    (
        RelvmArgumentError,
        body("call r1 = vm.builtin.make_closure(f9)", "call r1 = vm.builtin.invoke_closure(ctx, r1, r0)", "ret r1"),
        "pair: expected 2 arguments (x, y), got 1",
    ),
]


@pytest.mark.parametrize(("error", "text", "words"), ERRORS)
def test_errors_have_a_class_a_message_and_a_trace_and_the_machine_lives_on(error, text, words) -> None:
    machine = machine_of(text + 'debug\n| {"main": {"instructions": ["first", "second"]}}\n')
    with pytest.raises(error) as caught:
        machine["main"](7)
    assert words in str(caught.value)
    (trace,) = caught.value.__notes__
    assert trace.startswith("  in main at instruction ") and trace.endswith((": first", ": second"))
    assert machine["identity"](3) == 3


def test_a_shape_that_does_not_fit() -> None:
    text = "f13 = packed vm.builtin.reshape\nc0 = shape (3, 3)\nf14 = bytecode main(x) registers 2\n"
    machine = machine_of(text + "  0: call r1 = vm.builtin.reshape(r0, c0)\n  1: ret r1\n")
    with pytest.raises(RelvmShapeError, match="reshape"):
        machine["main"](np.zeros(4))
    assert machine["main"](np.zeros(9)).shape == (3, 3)


def test_the_trace_goes_through_every_function() -> None:
    text = body("call r1 = pair(r0, r0)", "call r2 = vm.builtin.tuple_getitem(r1, 9)", "ret r2")
    text += "f14 = bytecode outer(x) registers 2\n  0: call r1 = main(r0)\n  1: ret r1\n"
    with pytest.raises(RelvmIndexError) as caught:
        machine_of(text)["outer"](1)
    assert caught.value.__notes__ == ["  in main at instruction 1\n  in outer at instruction 0"]


def test_recursion_without_end_ends_and_the_machine_lives_on() -> None:
    machine = machine_of(body("call r1 = main(r0)", "ret r1"), call_depth=5000)
    for _ in range(3):
        with pytest.raises(RelvmRecursionError):
            machine["main"](np.zeros(2))
        assert machine["identity"](1) == 1


def test_the_value_stack_has_a_size() -> None:
    text = body("call r1 = main(r0)", "ret r1")
    with pytest.raises(RelvmRecursionError):
        machine_of(text, stack_values=100)["main"](1)


def test_closures_come_out_are_called_and_go_back_in() -> None:
    machine = machine_of(results_may_share=True)
    array = np.arange(3.0)
    closure, other = machine["closure_over"](array), machine["closure_over"]("other")
    first, second = closure(1)
    assert first == 1 and np.shares_memory(second.numpy(), array)
    assert other(2) == (2, "other")
    assert machine["apply"](other, 3) == (3, "other")
    with pytest.raises(RelvmArgumentError, match="pair"):
        closure(1, 2)
    with pytest.raises(RelvmTypeError, match=r"the function: argument 0: .*complex"):
        closure(1j)


def test_a_function_is_a_value_too() -> None:
    machine = machine_of(body("call r0 = vm.builtin.copy(f9)", "ret r0", parameters=""))
    pair = machine["main"]()
    assert repr(pair) == "<function of a machine>"
    assert pair(1, 2) == (1, 2)
    assert machine["apply"](machine["closure_over"](5), 4) == (4, 5)


def test_a_closure_keeps_its_machine() -> None:
    closure = machine_of()["closure_over"](5)
    assert closure(4) == (4, 5)


def test_two_machines_run_one_executable() -> None:
    executable = Executable.from_program(program_of(COMMON))
    one, other = VirtualMachine(executable), VirtualMachine(executable)
    closures = one["closure_over"](1), other["closure_over"](2)
    del executable, one, other
    assert [closure(0) for closure in closures] == [(0, 1), (0, 2)]


def test_print_hands_the_values_to_the_hook() -> None:
    seen = []
    text = body("call vm.builtin.print(ctx, r0, 5, c0)", "ret r0", constants='c0 = string "text"')
    machine_of(text, print_hook=lambda *values: seen.append(values))["main"]((1, 2))
    assert seen == [((1, 2), 5, "text")]


def test_without_a_hook_python_prints(capsys) -> None:
    machine_of(body("call vm.builtin.print(ctx, r0)", "ret r0"))["main"](np.arange(2, dtype=np.int8))
    assert capsys.readouterr().out == "Tensor([0, 1], shape=(2,), dtype=int8)\n"


def test_an_error_in_the_hook_reaches_the_caller() -> None:
    def hook(*values):
        raise KeyError("hook")

    with pytest.raises(KeyError, match="hook"):
        machine_of(body("call vm.builtin.print(ctx, r0)", "ret r0"), print_hook=hook)["main"](1)


def when_running(machine: VirtualMachine, action) -> threading.Thread:
    """Call `action` on another thread after a tenth of a second.  Return the thread."""

    def act() -> None:
        time.sleep(0.1)
        action()

    thread = threading.Thread(target=act)
    thread.start()
    return thread


def test_a_run_is_interrupted_from_another_thread() -> None:
    machine = machine_of()
    thread = when_running(machine, machine.interrupt)
    with pytest.raises(RelvmInterrupted) as caught:
        machine["forever"]()
    thread.join()
    assert "in forever" in caught.value.__notes__[0]
    assert machine["identity"](1) == 1


def test_control_c_ends_a_run_with_a_keyboard_interrupt() -> None:
    machine = machine_of()
    thread = when_running(machine, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        machine["forever"]()
    thread.join()
    assert machine["identity"](1) == 1


def test_a_second_thread_is_told_that_the_machine_is_busy() -> None:
    machine, errors = machine_of(), []

    def intrude() -> None:
        try:
            machine["identity"](1)
        except RelvmBusyError as error:
            errors.append(str(error))
        machine.interrupt()

    thread = when_running(machine, intrude)
    with pytest.raises(RelvmInterrupted):
        machine["forever"]()
    thread.join()
    assert "another thread" in errors[0]


def test_machines_of_several_threads_run_side_by_side() -> None:
    executable, results = Executable.from_program(program_of(COMMON)), {}

    def work(number: int) -> None:
        pair = VirtualMachine(executable)["pair"]
        array = np.full(10, number)
        results[number] = all(pair(array, i)[0].numpy()[3] == number and pair(array, i)[1] == i for i in range(500))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == dict.fromkeys(range(4), True)


def test_what_things_look_like() -> None:
    machine = machine_of()
    assert repr(machine) == "<VirtualMachine of identity, pair, forever, closure_over, apply>"
    assert repr(machine["pair"]) == "<function pair(x, y) of a machine>"
    assert repr(machine["closure_over"](1)) == "<closure of a machine>"
