"""Tests of the debugger inside bytecode kernels: where it stops, and the values that it reads."""

from __future__ import annotations

import gc
import signal
import threading
import time

import numpy as np
import pytest
from support.own_kernels import KERNELS

from relvm import vm
from relvm.bytecode.kernel_program import KernelProgram
from relvm.bytecode.program import FunctionEntry, Program, call, register, ret
from relvm.errors import RelvmArgumentError, RelvmIndexError, RelvmNameError, RelvmTimeoutError
from relvm.explore import Debugger
from relvm.frontend.text import parse_module
from relvm.runtime.debug_hook import MAX_DEPTH
from relvm.runtime.executable import Executable
from relvm.tables import DTYPES, KERNEL_OPCODES, numbers

TEXT = KERNELS + "def main(x: f32[n]) -> f32[n] = kernel doubled(x)"
X = np.arange(600, dtype=np.float32)
ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)


@pytest.fixture(scope="module")
def executable() -> vm.Executable:
    return vm.build(parse_module(TEXT, "k.relvm"), target="bytecode", exec_mode="bytecode", debug=True)


@pytest.fixture
def debugger(executable: vm.Executable) -> Debugger:
    with Debugger(executable, num_threads=2) as made:
        yield made


def place(stop) -> str:
    return f"{stop.frame.function}:{stop.frame.instruction}"


# ---- stops ----


def test_a_breakpoint_stops_each_time(debugger: Debugger) -> None:
    assert debugger.break_at("doubled:3").places == ("doubled:3",)
    stop = debugger.run("main", X)
    assert (stop.reason, place(stop), stop.depth) == ("breakpoint", "doubled:3", 2)
    assert stop.frame.text == "apply w1, w0, s2, mul_f32" and "-> 3: apply" in stop.listing
    assert [frame.function for frame in debugger.stack()] == ["doubled", "main"]
    assert debugger.stack()[1].text == "call doubled(r0, r1)"
    assert place(debugger.resume()) == "doubled:3"
    stop = debugger.resume()
    assert stop.reason == "end" and np.array_equal(stop.result.numpy(), 2 * X)


def test_a_kernel_is_a_breakpoint_at_its_beginning(debugger: Debugger) -> None:
    made = debugger.break_at("doubled")
    assert made.places == ("doubled:0",)
    assert place(debugger.run("main", X)) == "doubled:0"
    debugger.delete(made)
    assert debugger.resume().reason == "end"
    assert debugger.run("main", X).reason == "end"


def test_stepping_by_kernel_enters_and_leaves(debugger: Debugger) -> None:
    stop, seen = debugger.start("main", X[:3]), []
    while stop.reason != "end":
        seen.append(place(stop))
        stop = debugger.step("kernel")
    inside = [f"doubled:{k}" for k in range(6)]
    assert seen == [*(f"main:{k}" for k in range(10)), *inside, "main:10"]


@pytest.mark.parametrize("step", ["step", "step_over"])
@pytest.mark.parametrize("by", ["value", "instruction"])
def test_other_steps_run_over_kernels(debugger: Debugger, step: str, by: str) -> None:
    stop = debugger.start("main", X)
    while stop.reason != "end":
        assert stop.frame.function == "main"
        stop = getattr(debugger, step)(by)
    debugger.break_at("doubled:3", when=lambda at: False)
    stop = debugger.start("main", X)
    while stop.reason != "end":
        assert stop.frame.function == "main"
        stop = getattr(debugger, step)(by)


def test_stepping_over_by_kernel_stays_in_its_frame(debugger: Debugger) -> None:
    debugger.break_at("main:9")
    stop = debugger.run("main", X)
    assert place(debugger.step_over("kernel")) == "main:10"
    debugger.close()
    debugger.break_at("doubled:0")
    debugger.delete(1)
    stop = debugger.run("main", X[:3])
    seen = [place(stop)]
    while (stop := debugger.step_over("kernel")).reason != "end":
        seen.append(place(stop))
    assert seen == [*(f"doubled:{k}" for k in range(6)), "main:10"]


def test_stepping_out_of_a_kernel_comes_to_its_caller(debugger: Debugger) -> None:
    made = debugger.break_at("doubled:1")
    debugger.run("main", X)
    debugger.delete(made)
    stop = debugger.step_out()
    assert (stop.reason, place(stop), stop.depth) == ("step", "main:10", 1)
    assert debugger["result"].tolist() == (2 * X).tolist()
    debugger.close()
    debugger.break_at("doubled:1")
    debugger.run("main", X[:3])
    assert place(debugger.step()) == "main:10"  # steps by value do not stop inside the kernel


def test_a_parallel_loop_stops_on_the_run_of_the_machine(debugger: Debugger) -> None:
    debugger.break_at("spread:15")
    stop, sums = debugger.run("sums", ROWS), []
    while stop.reason != "end":
        sums.append((debugger["s10"], debugger["s11"]))
        stop = debugger.resume()
    assert sums == [(0, 1.0), (1, 5.0), (2, 9.0)]
    assert stop.result.numpy().tolist() == [1, 5, 9]


def test_a_kernel_that_fails(debugger: Debugger) -> None:
    debugger.break_at("at:5")
    stop = debugger.run("pick", X, 1000)
    assert (stop.reason, debugger["s2"], debugger["i"]) == ("breakpoint", 1000, 1000)
    stop = debugger.step("kernel")
    assert (stop.reason, stop.frame.text) == ("error", "call at(r0, r3, r2)")
    assert "index 1000 is outside axis 0 of x, of size 600" in stop.about
    with pytest.raises(RelvmIndexError, match="index 1000"):
        debugger.resume()
    assert debugger.run("pick", X, 3).result.numpy() == 3


# ---- values ----


def test_registers_and_buffers_have_the_names_of_the_listing(debugger: Debugger) -> None:
    debugger.break_at("doubled:4")
    debugger.run("main", X)
    assert [row.label for row in debugger.registers()] == ["s0", "s1", "s2", "s3", "w0", "w1", "b0", "b1"]
    assert (debugger["s0"], debugger["s2"], debugger["s3"]) == (600, 2.0, 0)
    assert np.array_equal(debugger["w0"], X[:512]) and np.array_equal(debugger["w1"], 2 * X[:512])
    assert np.array_equal(debugger["x"], X) and np.array_equal(debugger["b0"], X)
    assert np.array_equal(debugger["out"][:512], 2 * X[:512])
    assert debugger.value("x", 1).tolist() == X.tolist()  # frame 1 is the caller
    debugger.resume()
    assert np.array_equal(debugger["w0"], X[512:]) and debugger["s3"] == 512
    assert "f32[88]" in str(next(row for row in debugger.registers() if row.label == "w0"))


def test_values_are_copies(debugger: Debugger) -> None:
    debugger.break_at("doubled:3")
    debugger.run("main", X)
    kept, strip = debugger["out"], debugger["w0"]
    kept[:], strip[:] = 7, 7
    debugger.delete(1)
    assert np.array_equal(debugger.resume().result.numpy(), 2 * X)
    assert (kept == 7).all() and X[0] == 0


def test_lanes_of_a_sum(debugger: Debugger) -> None:
    debugger.break_at("spread:13")
    debugger.run("sums", np.ones((1, 33), np.float32))
    assert debugger["v0"][:17].tolist() == [2.0] * 16 + [1.0]
    assert debugger["x"].shape == (1, 33)


def test_conditions_read_these_names(debugger: Debugger) -> None:
    debugger.break_at("doubled:3", when=lambda at: at["s3"] > 0 and at["w0"][0] == 512)
    stop = debugger.run("main", X)
    assert (stop.reason, debugger["s3"]) == ("breakpoint", 512)
    assert debugger.resume().reason == "end"


def test_an_exception_of_a_condition_ends_the_run(debugger: Debugger) -> None:
    debugger.break_at("doubled:3", when=lambda at: at["s99"])
    with pytest.raises(RelvmNameError, match="'s99' is not a register or buffer of doubled"):
        debugger.run("main", X)
    debugger.delete(1)
    assert debugger.run("main", X).reason == "end"


@pytest.mark.parametrize("name", ["s3", "y", 3, "", "r1", "v7", "b9"])
def test_unknown_names_are_told(debugger: Debugger, name: str | int) -> None:
    debugger.break_at("doubled")
    debugger.run("main", X)
    with pytest.raises(RelvmNameError, match="expected one of x, out, s0"):  # s3 is not written yet
        debugger[name]


# ---- errors ----


def test_unknown_instructions_and_kernels(debugger: Debugger) -> None:
    with pytest.raises(RelvmIndexError, match="doubled has only the instructions 0 to 5"):
        debugger.break_at("doubled:6")
    with pytest.raises(RelvmNameError, match="did you mean doubled"):
        debugger.break_at("doubledd")
    with pytest.raises(RelvmArgumentError, match="by"):
        debugger.step("kernels")


def test_native_kernels_do_not_stop() -> None:
    with Debugger(parse_module(TEXT), target="c", exec_mode="bytecode") as debugger:
        for where in ("doubled", "doubled:1"):
            with pytest.raises(RelvmNameError, match=r'native code.*target="bytecode", or use gdb'):
                debugger.break_at(where)
        debugger.start("main", X)
        while (stop := debugger.step("kernel")).reason != "end":
            assert stop.frame.function == "main"


# ---- interruptions and limits ----


def test_closing_ends_a_run_inside_a_kernel(executable: vm.Executable) -> None:
    debugger = Debugger(executable)
    debugger.break_at("doubled:3")
    for _ in range(3):
        debugger.run("main", X)
        debugger.close()
    assert np.array_equal(debugger.machine["main"](X).numpy(), 2 * X)


def test_an_interrupt_stops_inside_an_observed_kernel(debugger: Debugger) -> None:
    seen = []

    def interrupt_once(at) -> bool:
        if not seen:
            seen.append(at["s3"])
            threading.Thread(target=lambda: signal.pthread_kill(main, signal.SIGINT)).start()
            time.sleep(0.3)
        return False

    main = threading.main_thread().ident
    debugger.break_at("doubled:3", when=interrupt_once)
    stop = debugger.run("main", X)
    assert (stop.reason, stop.frame.function) == ("interrupt", "doubled")
    assert debugger.resume().reason == "end"


def test_limits_of_steps_count_as_without(executable: vm.Executable) -> None:
    with Debugger(executable, max_steps=60_000) as debugger:
        debugger.break_at("spread:14", when=lambda at: False)
        with pytest.raises(RelvmTimeoutError):
            stop = debugger.run("sums", np.ones((9000, 2), np.float32))
            while stop.reason != "end":
                stop = debugger.resume()


def test_watching_nan_runs_through_kernels(debugger: Debugger) -> None:
    debugger.break_at("doubled:3")
    debugger.run("main", np.float32([np.nan]))
    debugger.watch_nan()
    assert debugger.resume().reason == "end"  # the kernel was called before watching began
    debugger.delete(1)
    assert debugger.run("main", np.float32([np.nan])).reason == "nan"


# ---- malicious programs ----


def kernel_of(code: list[tuple]) -> Executable:
    """Return an executable with the kernel k(x: f32[n], y: f32[n]) and a function `main` that calls it.

    The kernel has a size, the constants 5 and -1, 4 scalars, a strip, a view and an array.
    """
    opcodes, f32 = numbers(KERNEL_OPCODES), numbers(DTYPES)["f32"]
    program = KernelProgram(
        tensors=(f32, 1, -1, f32, 1, -1),
        inputs=2,
        outputs=0,
        sizes=1,
        constants=(5, 2**64 - 1),
        registers=(4, 1, 1),
        arrays=((0, 12),),
        code=tuple((opcodes[name], *operands) for name, *operands in code),
        arguments=(),
        messages=(),
        scratch_bytes=64,
    )
    functions = (
        FunctionEntry("main", "bytecode", ("x", "y"), 2, (call(-1, 1, register(0), register(1)), ret(0))),
        FunctionEntry("k", "kernel", ("x", "y"), registers=3, symbol="k"),  # invalid: kernels have no registers
    )
    return Executable.from_program(Program(functions, (), kernels={"k": program}))


HOSTILE = {
    "sizes that change": [("copy", 0, 2), ("end",), ("end",)],
    "negative sizes": [("sub", 0, 2, 1), ("end",), ("end",)],
    "a strip of nothing": [("strips", 3, 2, 2, 1), ("end",), ("end",)],
    "a fill of -1": [("fill", 4, 1, 2, 4), ("end",), ("end",)],
    "a fill of many": [("fill", 4, 1, 1, 8), ("sub", 1, 2, 2), ("end",)],
    "a view that is older than its strip": [
        ("strips", 3, 1, 0, 1),
        ("view", 5, 0, 1, 4),
        ("strips", 3, 2, 0, 3),
        ("end",),
    ],
    "a view that is not made": [("jump", 2), ("view", 5, 0, 1, 4), ("end",)],
    "another size of elements": [("store", 2, 3, 1, 8), ("load", 3, 2, 3, 1), ("end",)],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_reading_stays_inside_of_the_memory(name: str) -> None:
    with Debugger(kernel_of(HOSTILE[name])) as debugger:
        stop, read = debugger.start("main", np.ones(8, np.float32), np.ones(8, np.float32)), 0
        while stop.reason != "end":
            if stop.frame.function == "k":
                for row in debugger.registers():
                    assert np.asarray(debugger[row.label]).nbytes <= 512 * 8
                    read += 1
            stop = debugger.step("kernel")
        assert read > 0


def test_a_kernel_has_no_registers_of_a_function() -> None:
    machine = vm.VirtualMachine(kernel_of([("end",)]))
    seen = []

    def stop(failed: Exception | None) -> None:
        if debugger.place(debugger.depth - 1).function == "k":
            seen.extend(debugger.register(debugger.depth - 1, number) for number in range(3))

    debugger = machine.attach_debugger(stop)
    debugger.stop_in_kernels(True)
    debugger.stop_within(MAX_DEPTH)
    machine["main"](np.ones(8, np.float32), np.ones(8, np.float32))
    assert seen == [None, None, None]


def test_a_view_keeps_the_elements_that_it_was_made_with() -> None:
    with Debugger(kernel_of(HOSTILE["a view that is older than its strip"])) as debugger:
        debugger.break_at("k:3")
        debugger.run("main", np.ones(8, np.float32), np.ones(8, np.float32))
        assert debugger["w0"].size <= 8


def test_debugging_leaves_nothing_behind(executable: vm.Executable) -> None:
    lib = pytest.importorskip("tracemalloc")
    rounds = []
    for _ in range(4):
        lib.start()
        for _ in range(5):
            with Debugger(executable) as debugger:
                debugger.break_at("doubled:3")
                debugger.run("main", X)
                debugger.registers()
                debugger.step("kernel")
        gc.collect()
        rounds.append(lib.get_traced_memory()[0])
        lib.stop()
    assert rounds[-1] < rounds[0] + 100_000, rounds
