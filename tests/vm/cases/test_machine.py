"""Tests of the Python interface of a virtual machine, case by case, in both modes."""

from __future__ import annotations

import math
import traceback

import numpy as np
import pytest
from support.modes import MODES, assert_same_bits, plain

from relvm import vm
from relvm.errors import RelvmArgumentError, RelvmBusyError, RelvmNameError, RelvmShapeError, RelvmTypeError
from relvm.frontend.text import parse_module

MODULE = parse_module("""
def main(x: f32[n, 4], w: f32[4, 8]) -> f32[n, 8] { return relu(matmul(x, w)) }
def pair(t: (f32[n], i64), y: f32[n]) -> (f32[n], (i64, f32[n])) { return (add(t.0, y), (t.1, y)) }
def chain(x: f32[n]) -> f32[n] {
  scale = fn (a: f32[m]) -> f32[m] with (inline=false) { return add(a, a) }
  return add(@half(scale(x)), x)
}
def half(x: f32[n]) -> f32[n] { return multiply(x, const(f32[], 0.5)) }
def called(x: f32[n]) => f32[n] { return packed("test.cases.machine", exp(x)) : f32[n] }
def twice(f: (f32[n]) -> f32[n], x: f32[n]) -> f32[n] { return f(f(x)) }
def adder(x: f32[n]) => object {
  add_x = fn (y: f32[n]) -> f32[n] { return add(x, y) }
  return add_x
}
def echo(value: object) => object { return value }
""")
X, W = np.float32(np.arange(12).reshape(3, 4) - 6), np.float32(np.arange(32).reshape(4, 8) % 5 - 2)
EXPECTED = np.maximum(X @ W, 0)
V = np.float32([1, 2, 3])


@pytest.fixture(scope="module", params=MODES)
def executable(request) -> vm.Executable:
    vm.register_func("test.cases.machine", lambda x: x, override=True)
    return vm.build(MODULE, request.param)


@pytest.fixture
def machine(executable) -> vm.VirtualMachine:
    vm.register_func("test.cases.machine", lambda x: x, override=True)
    return vm.VirtualMachine(executable)


# ---- pre-bound inputs ----


def test_set_input_positional(machine) -> None:
    machine.set_input("main", X, W)
    for _ in range(3):
        assert machine.invoke_stateful("main") is None
        np.testing.assert_array_equal(machine.get_outputs("main"), EXPECTED)
    assert machine.get_output_arity("main") == -1


def test_set_input_keyword(machine) -> None:
    machine.set_input("main", w=W, x=X)
    machine.invoke_stateful("main")
    np.testing.assert_array_equal(machine.get_outputs("main"), EXPECTED)
    with pytest.raises(RelvmArgumentError, match="unknown argument v: main has the parameters x, w"):
        machine.set_input("main", X, v=W)
    with pytest.raises(RelvmArgumentError, match="missing argument w: main has the parameters x, w"):
        machine.set_input("main", X)


def test_set_input_tuple_inputs(machine) -> None:
    machine.set_input("pair", (V, 7), y=V)
    machine.invoke_stateful("pair")
    first, (second, third) = machine.get_outputs("pair")
    assert first.numpy().tolist() == [2, 4, 6] and second == 7 and third.numpy().tolist() == [1, 2, 3]
    assert machine.get_output_arity("pair") == 2


def test_an_array_that_is_set_is_the_input_itself(machine) -> None:
    x = X.copy()
    machine.set_input("main", x, W)
    x[:] = 0
    machine.invoke_stateful("main")
    assert not machine.get_outputs("main").numpy().any()


def test_inputs_of_two_functions_are_apart(machine) -> None:
    machine.set_input("half", V)
    machine.set_input("echo", (1, "two"))
    machine.invoke_stateful("half")
    with pytest.raises(RelvmArgumentError, match="echo: no outputs yet"):
        machine.get_outputs("echo")
    machine.invoke_stateful("echo")
    assert machine.get_outputs("echo") == (1, "two") and machine.get_output_arity("echo") == 2
    assert machine.get_outputs("half").numpy().tolist() == [0.5, 1, 1.5]


def test_stateless_call_after_set_input_with_arguments(machine) -> None:
    machine.set_input("main", X, W)
    for arguments in ((X, W), ()):
        with pytest.raises(
            RelvmArgumentError, match=r"main: the inputs are already set; .*invoke_stateful.*clear_input"
        ):
            machine["main"](*arguments)
    assert machine["half"](V).numpy().tolist() == [0.5, 1, 1.5]  # other functions are not affected
    machine.clear_input("main")
    np.testing.assert_array_equal(machine["main"](X, W), EXPECTED)
    machine.clear_input("main")  # clearing twice is not an error


def test_invoke_without_set_input(machine) -> None:
    with pytest.raises(RelvmArgumentError, match=r"main: no inputs are set; call set_input\('main', \.\.\.\) first"):
        machine.invoke_stateful("main")


def test_get_outputs_before_invoke(machine) -> None:
    for read in (machine.get_outputs, machine.get_output_arity):
        with pytest.raises(RelvmArgumentError, match="main: no outputs yet"):
            read("main")
        machine.set_input("main", X, W)
        with pytest.raises(RelvmArgumentError, match="main: no outputs yet"):
            read("main")
    machine.invoke_stateful("main")
    machine.set_input("main", X, W)  # discards the outputs
    with pytest.raises(RelvmArgumentError, match="main: no outputs yet"):
        machine.get_outputs("main")


def test_a_stateful_run_that_fails_leaves_no_outputs(machine) -> None:
    x = X.copy()
    machine.set_input("main", x, W)
    machine.invoke_stateful("main")
    machine.set_input("echo", 1)
    machine.set_input("main", x, W[:3])
    with pytest.raises(RelvmShapeError, match="argument w: expected dimension 0 to be 4, got 3"):
        machine.invoke_stateful("main")
    with pytest.raises(RelvmArgumentError, match="no outputs"):
        machine.get_outputs("main")


def test_set_input_of_an_unknown_function(machine) -> None:
    for use in (machine.set_input, machine.clear_input, machine.invoke_stateful, machine.get_outputs):
        with pytest.raises(RelvmNameError, match="no function mian; did you mean main"):
            use("mian")


# ---- saved functions, time ----


def test_save_function_with_keywords_timed_with_time_evaluator(machine) -> None:
    machine.save_function("main", "saved", X, w=W)
    np.testing.assert_array_equal(machine["saved"](), EXPECTED)
    machine.save_function("main", "silent", w=W, x=X, include_return=False)
    assert machine["silent"]() is None
    for name in ("saved", "silent"):
        assert name in machine
        timing = machine.time_evaluator(name, number=3, repeat=2)()
        assert len(timing.results) == 2 and all(result > 0 for result in timing.results)


def test_a_saved_function_has_its_arguments(machine) -> None:
    machine.save_function("half", "halved", V)
    for use in (machine["halved"], machine.time_evaluator("halved"), lambda x: machine.profile("halved", x)):
        with pytest.raises(RelvmArgumentError, match="all arguments of halved are already bound"):
            use(V)
    machine.save_function("half", "halved", V * 2)
    assert machine["halved"]().numpy().tolist() == [1, 2, 3]
    with pytest.raises(RelvmBusyError, match="the executable already has a function named main"):
        machine.save_function("half", "main", V)
    with pytest.raises(RelvmNameError, match="no function halve; did you mean"):
        machine["halve"]


def test_time_evaluator_statistics_are_finite_and_positive(machine) -> None:
    timing = machine.time_evaluator("main", number=5, repeat=4)(X, w=W)
    assert len(timing.results) == 4
    for seconds in (*timing.results, timing.mean, timing.median, timing.min, timing.max):
        assert 0 < seconds < math.inf
    assert timing.min <= timing.median <= timing.max and 0 <= timing.std < math.inf
    assert math.isclose(timing.mean, sum(timing.results) / 4) and "ms" in str(timing)


def test_time_evaluator_runs_as_often_as_it_says(machine) -> None:
    calls = []
    vm.register_func("test.cases.machine", lambda x: calls.append(1) or x, override=True)
    machine.time_evaluator("called", number=5, repeat=3)(V)
    assert len(calls) == 1 + 5 * 3


def test_time_evaluator_min_repeat_ms(machine) -> None:
    timing = machine.time_evaluator("main", number=1, repeat=2, min_repeat_ms=5)(X, W)
    assert all(result < 0.005 for result in timing.results)  # each result is the mean of many runs


def test_time_evaluator_takes_the_inputs_that_are_set(machine) -> None:
    machine.set_input("main", X, W)
    assert machine.time_evaluator("main", number=1)().mean > 0
    with pytest.raises(RelvmArgumentError, match="the inputs are already set"):
        machine.time_evaluator("main")(X, W)


@pytest.mark.parametrize("wrong", [{"number": 0}, {"repeat": 0}, {"repeat": 1.5}, {"min_repeat_ms": -1}], ids=str)
def test_time_evaluator_settings(machine, wrong) -> None:
    with pytest.raises(RelvmArgumentError, match=f"time_evaluator: {next(iter(wrong))}: expected .*, got"):
        machine.time_evaluator("main", **wrong)
    with pytest.raises(RelvmNameError, match="mian"):
        machine.time_evaluator("mian")


# ---- instruments ----


class Diary:
    """An instrument that records the calls it is notified of."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, bool]] = []
        self.values: list[tuple] = []

    def __call__(self, name, before, result, *arguments) -> None:
        self.lines.append((name, before))
        if not before:
            self.values.append((name, plain(result), [plain(argument) for argument in arguments]))


def watched(machine, name, *arguments) -> Diary:
    diary = Diary()
    machine.set_instrument(diary)
    machine[name](*arguments)
    machine.set_instrument(None)
    machine[name](*arguments)  # the instrument is not notified of this call
    return diary


def test_instrumentation_sees_every_call_before_and_after(machine) -> None:
    lines = watched(machine, "chain", V).lines
    names = [name for name, before in lines if before]
    open_calls = []
    for name, before in lines:  # calls are properly nested
        if before:
            open_calls.append(name)
        else:
            assert open_calls.pop() == name
    assert not open_calls
    own = [name for name in names if not name.startswith("vm.builtin.")]
    kernels = [name for name in own if name not in ("chain", "chain_scale", "half")]
    assert own[0] == "chain" and {"half", "chain_scale"} <= set(own)
    assert [kernel.partition("_")[0] for kernel in kernels] == ["add", "multiply", "add"]
    assert {"vm.builtin.alloc_tensor", "vm.builtin.alloc_storage"} <= set(names)


def test_instrumentation_sees_packed_functions_with_their_values(machine) -> None:
    values = watched(machine, "called", V).values
    ((_, result, arguments),) = [value for value in values if value[0] == "test.cases.machine"]
    np.testing.assert_allclose(result, np.exp(V), rtol=1e-6)
    np.testing.assert_array_equal(arguments[0], result)


def test_both_modes_make_the_same_calls_with_the_same_values() -> None:
    vm.register_func("test.cases.machine", lambda x: x, override=True)
    one, other = (watched(vm.VirtualMachine(vm.build(MODULE, mode)), "chain", V) for mode in MODES)
    assert one.lines == other.lines
    assert len(one.values) == len(other.values) > 5


def test_instrumentation_can_compare_two_libraries_call_by_call(executable) -> None:
    library = {"right": lambda x: x, "wrong": lambda x: x.numpy() + np.float32(1)}
    seen = {}
    for name, function in library.items():
        vm.register_func("test.cases.machine", function, override=True)
        values = watched(vm.VirtualMachine(executable), "called", V).values
        # A tensor that was just allocated has arbitrary elements.
        seen[name] = [
            (call, result)
            for call, result, _ in values
            if isinstance(result, np.ndarray) and call != "vm.builtin.alloc_tensor"
        ]
    different = [
        call
        for (call, result), (other, other_result) in zip(seen["right"], seen["wrong"], strict=True)
        if call != other or not np.array_equal(result, other_result)
    ]
    assert different[0] == "test.cases.machine"


def test_instrumentation_can_skip_a_call(machine) -> None:
    def skip(name, before, result, *arguments):
        assert before or name != "test.cases.machine"  # no call after one that was skipped
        return vm.SKIP if name == "test.cases.machine" else None

    calls = []
    vm.register_func("test.cases.machine", lambda x: calls.append(1) or x, override=True)
    machine.set_instrument(skip)
    with pytest.raises(RelvmTypeError, match="expected a tensor of rank 1 and dtype f32, got nil"):
        machine["called"](V)
    assert not calls
    machine.set_instrument(lambda name, *rest: vm.SKIP if name == "echo" else None)
    assert machine["echo"](5) is None
    machine.set_instrument(None)
    assert machine["echo"](5) == 5


def test_a_skipped_kernel_leaves_its_output_to_the_instrument(machine) -> None:
    def replace(name, before, result, *arguments):
        if before and name.startswith("multiply"):
            arguments[-1].numpy()[:] = 100
            return vm.SKIP
        return None

    machine.set_instrument(replace)
    assert machine["half"](V).numpy().tolist() == [100, 100, 100]


SKIPPED = """
private def _next(n: i64) => i64 with (inline=false) {
  _ = packed("test.cases.nothing")
  return n + 1
}
private def _through(n: i64) => i64 with (inline=false) = @_next(n)
def unread(n: i64) => i64 {
  a = @_next(n)
  return n
}
def read(n: i64) => i64 = @_next(n) * 2
def at_the_end(n: i64) => i64 = @_through(n) * 2
"""


@pytest.mark.parametrize("mode", MODES)
def test_a_skipped_call_that_was_to_give_a_scalar_is_an_error_where_it_is_used(mode) -> None:
    vm.register_func("test.cases.nothing", lambda: None, override=True)
    machine = vm.VirtualMachine(vm.build(parse_module(SKIPPED), mode, "numpy"))
    machine.set_instrument(lambda name, *rest: vm.SKIP if name == "_next" else None)
    assert machine["unread"](5) == 5
    for name in ("read", "at_the_end"):
        with pytest.raises(RelvmTypeError, match="got nil"):
            machine[name](5)
    machine.set_instrument(None)
    assert machine["read"](5) == machine["at_the_end"](5) == 12


def test_what_an_instrument_raises_ends_the_run(machine) -> None:
    for moment in (True, False):
        for function in ("chain", "half", "multiply", "vm.builtin.alloc_tensor"):

            def stop(name, before, result, *arguments, moment=moment, function=function):
                if name.startswith(function) and before == moment:
                    raise KeyError(name)

            machine.set_instrument(stop)
            with pytest.raises(KeyError, match=function):
                machine["chain"](V)
    machine.set_instrument(lambda *seen: 5)
    with pytest.raises(RelvmTypeError, match=r"instrument: expected None or vm\.SKIP before a call, got 5"):
        machine["chain"](V)
    machine.set_instrument(None)
    assert machine["chain"](V).numpy().tolist() == [2, 4, 6]


def test_an_instrument_may_call_its_machine(machine) -> None:
    inner = []

    def instrument(name, before, result, *arguments):
        if name == "main" and before:
            inner.append(machine["half"](V).numpy().tolist())

    machine.set_instrument(instrument)
    np.testing.assert_array_equal(machine["main"](X, W), EXPECTED)
    assert inner == [[0.5, 1, 1.5]]


def test_an_instrument_is_not_changed_while_the_machine_runs(machine) -> None:
    vm.register_func("test.cases.machine", lambda x: machine.set_instrument(None), override=True)
    with pytest.raises(RelvmBusyError, match="instrument cannot be changed while the machine is running"):
        machine["called"](V)
    with pytest.raises(RelvmTypeError, match="expected a callable or None, got int"):
        machine.set_instrument(5)


def test_an_error_is_what_it_was_under_an_instrument(machine) -> None:
    messages = []
    for instrument in (None, Diary()):
        machine.set_instrument(instrument)
        with pytest.raises(RelvmShapeError) as caught:
            machine["main"](X, W[:, :3])
        messages.append((str(caught.value), caught.value.__notes__))
    assert messages[0] == messages[1]


# ---- profiles ----


def test_profile_returns_a_table_with_every_kernel(machine) -> None:
    profile = machine.profile("chain", V)
    rows = {row.name: row for row in profile.rows}
    kernels = [row for row in profile.rows if row.kind == "kernel"]
    assert sorted(row.name.partition("_")[0] for row in kernels) == ["add", "add", "multiply"]
    assert [row.count for row in kernels] == [1, 1, 1]
    assert sorted(row.bytes for row in kernels if row.name.startswith("add")) == [2 * V.nbytes, 3 * V.nbytes]
    assert rows["vm.builtin.alloc_tensor"].kind == "builtin" and rows["vm.builtin.alloc_tensor"].bytes == 0
    assert "chain" not in rows and "half" not in rows
    assert all(row.seconds > 0 and 0 < row.share < 1 for row in profile.rows)
    assert math.isclose(sum(row.seconds for row in profile.rows) + profile.other_seconds, profile.seconds)
    assert [row.seconds for row in profile.rows] == sorted((row.seconds for row in profile.rows), reverse=True)
    lines = str(profile).splitlines()
    assert lines[0].split() == ["name", "kind", "count", "ms", "share", "bytes", "operations"]
    assert [line.split()[0] for line in lines[1:-2]] == [row.name for row in profile.rows]


def test_profile_of_packed_functions_is_exclusive(machine) -> None:
    machine.save_function("half", "halved", V)
    vm.register_func("test.cases.machine", lambda x: machine["halved"](), override=True)
    rows = {row.name: row for row in machine.profile("called", V).rows}
    assert rows["test.cases.machine"].kind == "packed" and rows["test.cases.machine"].count == 1
    assert rows["test.cases.machine"].bytes == 2 * V.nbytes
    assert any(name.startswith("multiply") for name in rows)  # the callee has a separate row


def test_profile_takes_saved_functions_and_set_inputs(machine) -> None:
    machine.save_function("half", "halved", V)
    machine.set_input("half", V)
    for name in ("half", "halved"):
        assert [row.kind for row in machine.profile(name).rows].count("kernel") == 1
    with pytest.raises(RelvmArgumentError, match="half: the inputs are already set"):
        machine.profile("half", V)


def test_profile_leaves_the_instrument_as_it_was(machine) -> None:
    diary = Diary()
    machine.set_instrument(diary)
    machine.profile("half", V)
    assert not diary.lines
    with pytest.raises(RelvmShapeError):
        machine.profile("main", X, W[:, :3])
    machine["half"](V)
    assert diary.lines[0] == ("half", True)


# ---- functions of Python ----


def test_python_callback_receiving_and_returning_tensors(machine) -> None:
    received = []

    def callback(tensor):
        received.append(np.array(tensor))
        return tensor.numpy() * 2

    vm.register_func("test.cases.machine", callback, override=True)
    np.testing.assert_allclose(machine["called"](V), np.exp(V) * 2, rtol=1e-6)
    np.testing.assert_allclose(received[0], np.exp(V), rtol=1e-6)


def test_an_exception_in_a_callback_reaches_the_caller_with_the_full_stack_of_both_languages(machine) -> None:
    def callback(tensor):
        return deeper(tensor)

    def deeper(tensor):
        raise ZeroDivisionError("in the callback")

    vm.register_func("test.cases.machine", callback, override=True)
    with pytest.raises(ZeroDivisionError, match="in the callback") as caught:
        machine["called"](V)
    text = "".join(traceback.format_exception(caught.value))
    assert "in callback" in text and "in deeper" in text  # Python's
    assert "  in called" in text.splitlines()[-1]  # the machine's


# ---- values ----


def test_values_go_in_and_come_out(machine) -> None:
    echo = machine["echo"]
    for value in (None, True, 3, -(2**63), 2.5, "text", np.dtype("float32"), vm.Shape((1, 2)), (1, (2.5, ("x",), ()))):
        assert echo(value) == value and type(echo(value)) is type(value)
    assert echo([1, [2], (3,)]) == [1, [2], (3,)]
    nested = echo((V, [X, {"a": 1}["a"]]))
    assert_same_bits(plain(nested), (V, [X, 1]))
    got = echo(V)
    assert np.shares_memory(got.numpy(), np.from_dlpack(got))


def test_results_own_their_memory_unless_they_may_share(executable) -> None:
    x = V.copy()
    machine, sharing = vm.VirtualMachine(executable), vm.VirtualMachine(executable, results_may_share=True)
    own, (inside, (deep,)) = machine["echo"](x), machine["echo"]((x, (x,)))
    machine.set_input("echo", x)
    machine.invoke_stateful("echo")
    held, shared = machine.get_outputs("echo"), sharing["echo"](x)
    x[:] = 7
    for each in (own, inside, deep, held):
        np.testing.assert_array_equal(each, V)
    assert np.shares_memory(shared.numpy(), x)


def test_dlpack_objects_are_arguments(machine) -> None:
    class Speaker:
        def __dlpack__(self, **options):
            return V.__dlpack__(**options)

        def __dlpack_device__(self):
            return V.__dlpack_device__()

    assert machine["half"](Speaker()).numpy().tolist() == [0.5, 1, 1.5]


def test_a_function_of_the_machine_is_an_argument(machine) -> None:
    assert machine["twice"](machine["half"], V * 4).numpy().tolist() == [1, 2, 3]
    assert machine["twice"](machine["adder"](V), V).numpy().tolist() == [3, 6, 9]
    assert machine["echo"]((machine["half"], 1))[0](V).numpy().tolist() == [0.5, 1, 1.5]
    with pytest.raises(RelvmTypeError, match=r"twice: argument f: expected a function, got int"):
        machine["twice"](5, V)
    other = vm.VirtualMachine(machine.executable)
    with pytest.raises(
        RelvmTypeError, match="argument f: expected a function of this machine, got a function of another machine"
    ):
        machine["twice"](other["half"], V)


def test_a_function_is_an_input_that_is_set(machine) -> None:
    machine.set_input("twice", machine["half"], V * 4)
    machine.invoke_stateful("twice")
    assert machine.get_outputs("twice").numpy().tolist() == [1, 2, 3]


# ---- errors ----


def test_several_machines_over_one_executable(executable) -> None:
    one, other = vm.VirtualMachine(executable), vm.VirtualMachine(executable)
    one.set_input("main", X, W)
    one.set_instrument(Diary())
    np.testing.assert_array_equal(other["main"](X, W), EXPECTED)  # no inputs are set here
    closures = one["adder"](V), other["adder"](V * 2)
    assert [closure(V).numpy().tolist() for closure in closures] == [[2, 4, 6], [3, 6, 9]]
    one.invoke_stateful("main")
    np.testing.assert_array_equal(one.get_outputs("main"), EXPECTED)


def test_wrong_number_of_arguments_names_the_parameters(machine) -> None:
    with pytest.raises(RelvmArgumentError, match=r"main: expected 2 arguments \(x, w\), got 1"):
        machine["main"](X)
    with pytest.raises(RelvmArgumentError, match=r"main: expected 2 arguments \(x, w\), got 3"):
        machine["main"](X, W, W)
    with pytest.raises(RelvmArgumentError, match="got 3 positional arguments, but main has the parameters x, w"):
        machine.save_function("main", "saved", X, W, W)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (V, RelvmTypeError, "argument x: expected a tensor of rank 2 and dtype f32, got a tensor of rank 1"),
        (np.float64(X), RelvmTypeError, "argument x: expected .* dtype f32, got a tensor of rank 2 and dtype f64"),
        (X[:, :3], RelvmShapeError, "argument x: expected dimension 1 to be 4, got 3"),
        ("x", RelvmTypeError, "argument x: expected a tensor of rank 2 and dtype f32, got string"),
        (1j, RelvmTypeError, "argument x: .* got complex"),
    ],
    ids=["rank", "dtype", "shape", "kind", "no value"],
)
def test_wrong_rank_dtype_or_shape_names_the_argument(machine, wrong, error, message) -> None:
    with pytest.raises(error, match=f"main: {message}"):
        machine["main"](wrong, W)
    with pytest.raises(error, match=f"main: {message}"):
        machine.time_evaluator("main")(wrong, W)


def test_unknown_function_name(machine) -> None:
    with pytest.raises(RelvmNameError, match=r"no function mian; did you mean main\?"):
        machine["mian"]
    with pytest.raises(RelvmTypeError, match="function: expected a name, got int"):
        machine[5]
    assert "mian" not in machine and "main" in machine
