"""Tests of the debugger: where it stops and what it shows, equally in both modes."""

# ruff: noqa: F821 (scripts are not Python)

from __future__ import annotations

import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from support.modes import MODES

from relvm import vm
from relvm.bytecode.asm_parser import parse_text
from relvm.errors import (
    RelvmArgumentError,
    RelvmArithmeticError,
    RelvmBusyError,
    RelvmIndexError,
    RelvmNameError,
    RelvmRecursionError,
    RelvmTypeError,
    RelvmUnsupportedError,
)
from relvm.explore import Debugger
from relvm.explore.draw.format_value import describe_value
from relvm.frontend.script import script
from relvm.frontend.text import parse_module
from relvm.runtime.executable import Executable
from relvm.runtime.packed_func import register_func

TEXT = """
def main(x: f32[n, 4], k: i64) -> f32[n, 4] {
  a = add(x, x)
  b = if k > 0 then @helper(a, k) else relu(a)
  return sqrt(b)
}
def helper(x: f32[n, 4], k: i64) -> f32[n, 4] {
  y = multiply(x, x)
  return if k > 1 then @helper(y, k - 1) else y
}
def factorial(n: i64) -> i64 = if n > 0 then n * @factorial(n - 1) else 1
def falls(n: i64) -> i64 = if n > 0 then 1 + @falls(n - 1) else 10 // n
"""
X = np.ones((2, 4), np.float32)

both_modes = pytest.mark.parametrize("mode", MODES)


@pytest.fixture(scope="module")
def executables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, vm.Executable]:
    path = tmp_path_factory.mktemp("debugged") / "small.relvm"
    path.write_text(TEXT)
    module = parse_module(TEXT, str(path))
    return {mode: vm.build(module, mode, debug=True) for mode in MODES}


@pytest.fixture(params=MODES)
def debugger(request: pytest.FixtureRequest, executables: dict[str, vm.Executable]) -> Debugger:
    with Debugger(executables[request.param]) as made:
        yield made


def steps_of(debugger: Debugger, step: str, *arguments, function: str = "main", by: str = "value") -> list[str]:
    stop, seen = debugger.start(function, *arguments), []
    while stop.reason != "end":
        assert stop.reason == "step"
        seen.append(f"{stop.depth} {stop.frame.function}:{stop.frame.instruction}")
        stop = getattr(debugger, step)(by)
    return seen


# ---- stops ----


def test_both_modes_stop_at_the_same_instructions(executables: dict[str, vm.Executable]) -> None:
    for step in ("step", "step_over"):
        for by in ("value", "instruction"):
            seen = [steps_of(Debugger(executables[mode]), step, X, 3, by=by) for mode in MODES]
            assert seen[0] == seen[1]
            assert len(seen[0]) > 5


def test_stepping_over_a_call_runs_through_it(debugger: Debugger) -> None:
    seen = steps_of(debugger, "step_over", 3, function="factorial")
    assert {each.split()[0] for each in seen} == {"1"}
    assert max(int(each.split()[0]) for each in steps_of(debugger, "step", 3, function="factorial")) == 4


def test_stepping_out_comes_to_who_called(debugger: Debugger) -> None:
    debugger.break_at("factorial:0", when=lambda at: at["n"] == 1)
    stop = debugger.run("factorial", 3)
    assert stop.depth == 3
    stop = debugger.step_out()
    assert (stop.depth, debugger["n"]) == (2, 2)
    stop = debugger.step_out()
    assert (stop.depth, debugger["n"]) == (1, 3)
    assert debugger.step_out().result == 6


@pytest.mark.parametrize(
    ("where", "texts"),
    [
        ("y", ["call multiply_f32(r0, r6)"]),
        ("a", ["call add_f32(r0, r6)"]),
        ("helper", ["call r3 = vm.builtin.alloc_shape_heap(ctx, 1)"]),
        ("helper:10", ["call multiply_f32(r0, r6)"]),
        ("small.relvm:3", ["call add_f32(r0, r6)"]),
        (4, ["prim r7 = gt_i64(r1, 0)"]),
        ("b", ["call r8 = helper(r6, r1)", "call relu_f32(r6, r8)"]),
    ],
)
def test_a_place_by_what_people_call_it(debugger: Debugger, where: str | int, texts: list[str]) -> None:
    made = debugger.break_at(where)
    found = [place.split(":") for place in made.places]
    assert [debugger.code.functions[name].texts[int(number)] for name, number in found] == texts
    assert debugger.run("main", X, 2).frame.text == texts[0]


def test_a_value_that_fusion_removed_is_found_by_its_source() -> None:
    text = "def main(x: f32[8]) -> f32[8] {\n  a = exp(x)\n  b = add(a, x)\n  return tanh(b)\n}"
    module = parse_module(text, "fused.relvm")
    for mode in MODES:
        with Debugger(module, exec_mode=mode) as debugger:
            places = debugger.break_at("a").places
            assert debugger.break_at("fused.relvm:3").places == places
            stop = debugger.run("main", np.ones(8, np.float32))
            assert len(places) == 1
            assert {"fused.relvm:2:3", "fused.relvm:3:3"} <= set(stop.frame.origins)
            with pytest.raises(RelvmNameError, match="no register holds a here"):
                debugger["a"]


def test_a_breakpoint_in_one_function_only(debugger: Debugger) -> None:
    assert debugger.break_at("result", "helper").places != debugger.break_at("result").places
    with pytest.raises(RelvmNameError, match="no such function, value or source line in main"):
        debugger.break_at("y", "main")
    with pytest.raises(RelvmNameError, match=r"no function helpr; did you mean helper\?"):
        debugger.break_at("y", "helpr")


def test_breakpoints_that_are_removed_stop_no_more(debugger: Debugger) -> None:
    first, second = debugger.break_at("y"), debugger.break_at("helper:10")
    assert [each.number for each in debugger.breakpoints] == [1, 2]
    debugger.delete(first)
    assert debugger.run("main", X, 1).reason == "breakpoint"  # the second breakpoint remains
    debugger.delete(2)
    assert debugger.resume().reason == "end"
    third = debugger.break_at("y")
    assert third.number not in (first.number, second.number)
    with pytest.raises(RelvmIndexError, match="no breakpoint 7"):
        debugger.delete(7)


@pytest.mark.parametrize(
    ("where", "error", "message"),
    [
        ("nothing", RelvmNameError, "no such function, value or source line"),
        ("helpe", RelvmNameError, "did you mean helper"),
        ("small.relvm:99", RelvmNameError, "no such function, value or source line"),
        (99, RelvmNameError, "break at 99"),
        ("main:" + "9" * 5000, RelvmNameError, "no such function, value or source line"),
        ("small.relvm:" + "9" * 5000, RelvmNameError, "no such function, value or source line"),
        (None, RelvmTypeError, "expected a str or a line number, got NoneType"),
        (True, RelvmTypeError, "got bool"),
        (b"y", RelvmTypeError, "got bytes"),
        ("main:99", RelvmIndexError, "main has only the instructions 0 to 25"),
    ],
)
def test_there_is_no_such_place(debugger: Debugger, where: str | int, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        debugger.break_at(where)


# ---- values, registers and listings ----


def test_values_by_their_names(debugger: Debugger) -> None:
    debugger.break_at("helper:11")
    debugger.run("main", X, 2)
    assert debugger["k"] == 2
    np.testing.assert_array_equal(debugger["y"], X * 4)
    np.testing.assert_array_equal(debugger.value("a", frame=1), X * 2)
    np.testing.assert_array_equal(debugger.value("r0"), debugger["x"])
    kept = debugger["y"]
    assert debugger.resume().reason == "breakpoint"
    np.testing.assert_array_equal(kept, X * 4)  # the value is a copy
    with pytest.raises(RelvmIndexError, match="no frame 2; the frames are 0 to 1"):
        debugger.value("x", frame=2)


def test_what_is_not_computed_yet_has_no_value(debugger: Debugger) -> None:
    debugger.break_at("y")
    debugger.run("main", X, 2)
    assert "room for y" in [row.name for row in debugger.registers()]
    with pytest.raises(
        RelvmNameError, match=r"no register holds y here; the named values are: k, .*x; a missing value is not computed"
    ):
        debugger["y"]


def test_registers_and_the_stack(debugger: Debugger) -> None:
    debugger.break_at("small.relvm:5")
    stop = debugger.run("main", X, 3)
    rows = {row.name: row.shown for row in debugger.registers()}
    assert rows["b"] == "f32[2, 4] 256.0 to 256.0"
    assert rows["k"] == "3"
    assert stop.source == "return sqrt(b)"
    assert "-> 23: call sqrt_f32(r8, r2)  ; result" in str(stop)
    debugger.close()
    debugger.break_at("factorial:0", when=lambda at: at["n"] == 0)
    debugger.run("factorial", 500)
    assert len(debugger.stack()) == 100
    assert [frame.function for frame in debugger.stack(1000)] == ["factorial"] * 501
    assert debugger.value("n", frame=500) == 500


def test_who_calls_the_machine_itself_is_not_stopped(debugger: Debugger) -> None:
    debugger.break_at("y")
    np.testing.assert_array_equal(debugger.machine["main"](X, 1), X * 2)
    assert debugger.run("main", X, 1).reason == "breakpoint"


def test_a_program_without_functions() -> None:
    with pytest.raises(RelvmNameError, match="no function main"):
        Debugger(parse_module("")).run()


def test_a_debugged_program_gives_what_the_others_give(debugger: Debugger) -> None:
    np.testing.assert_array_equal(debugger.run("main", X, 3).result, X * 16)
    np.testing.assert_array_equal(debugger.machine["helper"](X, k=2), X)


@script
def counts(n: i64) -> i64:
    total = 0
    while total < n:
        total = total + 2
    return total


def test_a_loop_of_a_script_stops_in_each_round() -> None:
    for mode in MODES:
        with Debugger(counts.module, exec_mode=mode) as debugger:
            debugger.break_at("total")
            stop, rounds = debugger.run(counts.name, 6), 0
            while stop.reason != "end":
                rounds += 1
                assert stop.source == "total = total + 2"
                assert debugger["total"] == 2 * (rounds - 1)
                stop = debugger.resume()
            assert (stop.result, rounds) == (6, 3)


@script
def assigned(x: i64) -> i64:
    t = x * 2
    u = t
    t = t + 100
    t = t * 7
    return t - u


def test_a_name_that_is_assigned_again_has_its_latest_value() -> None:
    with Debugger(assigned.module, target="numpy") as debugger:
        assert len(debugger.break_at("t").places) == 3
        values, stop = [], debugger.run("assigned", 1)
        while stop.reason != "end":
            stop = debugger.step()
            values += [] if stop.reason == "end" else [debugger["t"]]
        assert list(dict.fromkeys(values)) == [2, 102, 714]


def test_names_of_a_text_are_what_they_are() -> None:
    text = "def main(x: i64) -> i64 {\n  y = x * 2\n  y_1 = y * 3\n  return y + y_1\n}"
    with Debugger(parse_module(text, "named.relvm"), target="numpy") as debugger:
        debugger.break_at("named.relvm:4")
        debugger.run("main", 1)
        assert (debugger["y"], debugger["y_1"]) == (2, 6)


def test_values_of_every_kind_are_shown_in_short() -> None:
    values = (1, 2.5, "text", None, [np.zeros(3, np.float32)], np.dtype("i4"))
    register_func("debugged.values", lambda: values, override=True)
    module = parse_module('def main() => object {\n  v = packed("debugged.values")\n  return v\n}')
    with Debugger(module) as debugger:
        debugger.break_at("main:1")
        debugger.run("main")
        assert [row.shown for row in debugger.registers()] == ["(1, 2.5, 'text', None, ...)"]


def test_values_that_are_nested_deeply_are_shown_to_a_depth() -> None:
    nested: list = []
    for shown in ("[]", "[[]]", "[[[]]]", "[[[[]]]]", "[[[[list of 0]]]]", "[[[[list of 1]]]]"):
        assert describe_value(nested) == shown
        nested = [nested]


# ---- NaN, errors, interruption ----

NANS = """
def main(x: f32[n], s: f64) -> f32[n] {
  a = subtract(x, add(x, x))
  b = sqrt(a)
  c = tanh(b)
  return @on(c, s - s)
}
def on(x: f32[n], s: f64) -> f32[n] = if s > 0.0 then x else abs(x)
def scalars(s: f64) -> f64 {
  d = s - s
  return d * 2.0
}
"""


@both_modes
def test_the_first_nan(mode: str) -> None:
    with Debugger(parse_module(NANS, "nan.relvm"), exec_mode=mode, fused=False) as debugger:
        debugger.watch_nan()
        stop = debugger.run("main", np.float32([1, -1, 2]), 1.0)
        assert (stop.reason, stop.about.split(", made")[0]) == ("nan", "b has 2 NaN")
        assert np.isnan(debugger["b"]).tolist() == [True, False, True]
        debugger.close()
        stop = debugger.run("scalars", float("inf"))
        assert (stop.reason, stop.about.split(", made")[0]) == ("nan", "d has 1 NaN")
        debugger.watch_nan(False)
        assert np.isnan(debugger.resume().result)
        debugger.watch_nan()
        assert debugger.run("main", np.float32([-1, -4]), 1.0).reason == "end"
        assert debugger.run("main", np.float32([np.nan]), 1.0).about.startswith("value has 1 NaN")  # value = x + x
        debugger.close()
        debugger.start("main", np.float32([1]), 1.0)
        debugger.watch_nan(False)
        debugger.break_at("c")
        debugger.resume()  # b is computed, and is NaN
        debugger.watch_nan()
        assert debugger.step().about.startswith("c has 1 NaN")


@both_modes
def test_a_failure_is_looked_at_where_it_is(mode: str, executables: dict[str, vm.Executable]) -> None:
    with Debugger(executables[mode]) as debugger:
        stop = debugger.run("falls", 3)
        assert (stop.reason, stop.depth) == ("error", 4)
        assert stop.about == "RelvmArithmeticError: floordiv_i64(10, 0): integer division by zero"
        assert debugger["n"] == 0
        assert debugger.value("n", frame=3) == 3
        with pytest.raises(RelvmArithmeticError, match="division by zero"):
            debugger.resume()
        assert debugger.run("factorial", 3).result == 6


def test_recursion_without_end_is_an_error(debugger: Debugger) -> None:
    stop = debugger.run("falls", 1 << 40)
    assert (stop.reason, stop.about.split(":")[0]) == ("error", "RelvmRecursionError")
    assert stop.depth > 1000
    with pytest.raises(RelvmRecursionError):
        debugger.resume()


def test_what_a_python_function_raises_comes_through() -> None:
    def fails() -> None:
        raise KeyError("mine")

    register_func("debugged.fails", fails, override=True)
    with Debugger(parse_module('def main() => object {\n  v = packed("debugged.fails")\n  return v\n}')) as debugger:
        stop = debugger.run("main")
        assert stop.reason == "error"
        with pytest.raises(KeyError, match="mine"):
            debugger.resume()


def test_a_condition_that_raises_ends_the_run(debugger: Debugger) -> None:
    debugger.break_at("y", when=lambda at: at["nothing"])
    with pytest.raises(RelvmNameError, match="no register holds nothing"):
        debugger.run("main", X, 2)
    assert debugger.run("main", X, 0).reason == "end"


def test_ctrl_c_stops_a_run_where_it_is() -> None:
    module = parse_module("def main(n: i64) -> i64 = if n > 0 then @main(n - 1) else 7")
    for mode in MODES:
        with Debugger(module, exec_mode=mode) as debugger:
            timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
            timer.start()
            stop = debugger.run("main", 1 << 50)
            timer.join()
            assert stop.reason == "interrupt"
            assert debugger.value("r0") > 0
            assert debugger.step().reason == "step"


def test_who_is_interrupted_while_asking_gets_the_next_answer() -> None:
    module = parse_module("def main(n: i64) -> i64 = if n > 0 then @main(n - 1) else 7")
    with Debugger(module, target="numpy") as debugger:
        debugger.start("main", 5)
        waiting = threading.Event()
        timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            debugger._run.call_while_paused(lambda: waiting.wait(30))
        waiting.set()
        timer.join()
        assert debugger["n"] == 5
        assert debugger.step().reason == "step"
        assert debugger.resume().result == 7


def test_what_is_run_cannot_use_the_debugger(debugger: Debugger) -> None:
    debugger.start("factorial", 3)
    debugger.break_at("factorial:2", when=lambda at: debugger["n"] == 1)
    with pytest.raises(RelvmBusyError, match="the run has not stopped"):
        debugger.resume()
    debugger.close()
    debugger.delete(1)
    debugger.break_at("factorial:2", when=lambda at: debugger.resume())
    with pytest.raises(RelvmBusyError, match="in the condition of a breakpoint, get values"):
        debugger.run("factorial", 3)


# ---- errors of the caller ----


def test_one_run_at_a_time(debugger: Debugger) -> None:
    with pytest.raises(RelvmArgumentError, match="no run is in progress"):
        debugger.step()
    with pytest.raises(RelvmArgumentError, match="no run is in progress"):
        debugger.registers()
    debugger.start("factorial", 3)
    with pytest.raises(RelvmArgumentError, match="a run is already in progress"):
        debugger.run("factorial", 3)
    with pytest.raises(RelvmBusyError):
        debugger.machine["factorial"](3)
    with pytest.raises(RelvmArgumentError, match="by='line'"):
        debugger.step("line")
    debugger.close()
    assert debugger.run("factorial", 3).result == 6
    with pytest.raises(RelvmNameError, match="no function factoral"):
        debugger.run("factoral", 3)
    with pytest.raises(RelvmArgumentError, match="unknown argument m"):
        debugger.run("factorial", m=3)


def test_executables_that_were_not_built_for_it(executables: dict[str, vm.Executable]) -> None:
    module = parse_module(TEXT, "small.relvm")
    plain = Debugger(vm.build(module))
    assert plain.break_at("y").places == ("helper:10",)
    assert plain.run("main", X, 1).frame.origins == ()
    with pytest.raises(RelvmNameError, match="build the program with debug=True"):
        plain.break_at("small.relvm:3")
    plain.close()
    with pytest.raises(RelvmUnsupportedError, match="native code without debug information"):
        Debugger(vm.build(module, "compiled"))
    with pytest.raises(RelvmArgumentError, match='exec_mode="auto"'):
        Debugger(module, exec_mode="auto")
    with pytest.raises(RelvmArgumentError, match="auto"):
        Debugger(vm.build(module, "auto"))
    with pytest.raises(RelvmTypeError, match="expected a module, an executable or a path, got int"):
        Debugger(3)


def test_options_that_have_no_meaning_are_refused(tmp_path: Path, executables: dict[str, vm.Executable]) -> None:
    path = tmp_path / "small.rvm"
    executables["bytecode"].save(path)
    for option in ({"exec_mode": "bytecode"}, {"target": "c"}, {"fused": False}, {"dims": {"n": 2}}):
        name = next(iter(option))
        with pytest.raises(
            RelvmArgumentError, match=f"^{name}: only for compiling a model, but the executable is already compiled"
        ):
            Debugger(executables["bytecode"], **option)
        with pytest.raises(
            RelvmArgumentError, match=f"^{name}: only for compiling a model, but {path} is already compiled"
        ):
            Debugger(path, **option)
    with pytest.raises(
        RelvmArgumentError, match="dims: n: sizes apply only to model files; a module already has its sizes"
    ):
        Debugger(parse_module(TEXT), dims={"n": 2})


@both_modes
def test_saved_and_loaded_again(mode: str, tmp_path: Path, executables: dict[str, vm.Executable]) -> None:
    path = tmp_path / "small.rvm"
    executables[mode].save(path)
    with Debugger(path, trust_native=True) as debugger:
        debugger.break_at("small.relvm:3")
        assert debugger.run("main", X, 1).reason == "breakpoint"
    text = executables[mode].as_text()
    assert Executable.from_program(parse_text(text)).as_text() == text


def test_modes_may_be_mixed() -> None:
    module = parse_module(TEXT, "small.relvm")
    with Debugger(module, exec_mode={"helper": "compiled"}) as debugger:
        debugger.break_at("y")
        debugger.run("main", X, 2)
        kinds = [debugger.code.functions[frame.function].kind for frame in debugger.stack()]
        assert kinds == ["native", "bytecode"]
        np.testing.assert_array_equal(debugger.value("a", frame=1), X * 2)
    with Debugger(vm.build(module, {"helper": "compiled"})) as debugger:  # its native functions do not stop
        assert debugger.start("main", X, 2).reason == "step"
        np.testing.assert_array_equal(debugger.step_out().result, X * 4)
