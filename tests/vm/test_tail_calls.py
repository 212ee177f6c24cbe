"""Tail calls use constant stack space in both modes and between modes, by name and through closures."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from support.modes import MODES, run_everywhere

from relvm import vm
from relvm.errors import RelvmArgumentError, RelvmInterrupted, RelvmRecursionError
from relvm.frontend.text import parse_module
from relvm.ir.interpreter import evaluate
from relvm.ir.type_inference import infer_types
from relvm.runtime.packed_func import register_func

X = np.ones(3, np.float32)

COUNTDOWN = """
def main(n: i64, total: i64) -> i64 = if n == 0 then total else @main(n - 1, total + n)
"""
MUTUAL = """
def even(n: i64) -> bool = if n == 0 then true else @odd(n - 1)
def odd(n: i64) -> bool = if n == 0 then false else @even(n - 1)
"""
CLOSURE = """
def main(n: i64, step: i64) -> i64 {
  loop = fn loop(i: i64, total: i64) -> i64 {
    return if i <= 0 then total else loop(i - step, total + step)
  }
  return loop(n, 0)
}
"""
# The callee of the tail call is a function value: a new closure in each iteration.
THROUGH_VALUES = """
def apply(f: (i64) -> i64, n: i64) -> i64 = f(n)

def count(n: i64, total: i64) -> i64 {
  next = fn (k: i64) -> i64 { return @count(k, total + 1) }
  return if n == 0 then total else @apply(next, n - 1)
}
"""
TENSORS = """
def main(n: i64, x: f32[m], y: f32[m]) -> (f32[m], f32[m]) {
  s = add(x, y)
  return if n == 0 then (x, y) else @main(n - 1, y, s)
}
"""


def machine_of(text: str, mode: str, **options) -> vm.VirtualMachine:
    return vm.VirtualMachine(vm.build(parse_module(text), mode, "numpy", verified=True), **options)


@pytest.mark.parametrize("mode", MODES)
def test_ten_million_rounds_need_no_room(mode) -> None:
    machine = machine_of(COUNTDOWN, mode, stack_values=64, call_depth=4)
    assert machine["main"](10_000_000, 0) == 10_000_000 * 10_000_001 // 2


@pytest.mark.parametrize("mode", MODES)
def test_a_local_function_that_captures_is_a_loop(mode) -> None:
    machine = machine_of(CLOSURE, mode, stack_values=64, call_depth=4)
    assert machine["main"](1_000_000, 2) == 1_000_000


@pytest.mark.parametrize("mode", MODES)
def test_functions_that_call_each_other_are_a_loop(mode) -> None:
    machine = machine_of(MUTUAL, mode, stack_values=64, call_depth=4)
    assert machine["even"](1_000_000) is True and machine["odd"](1_000_000) is False


@pytest.mark.parametrize("mode", MODES)
def test_a_call_of_a_closure_at_the_end_is_a_jump(mode) -> None:
    machine = machine_of(THROUGH_VALUES, mode, stack_values=64, call_depth=4)
    assert machine["count"](300_000, 0) == 300_000


def test_tensors_that_a_loop_drops_are_freed_and_those_it_keeps_are_right() -> None:
    x, y = np.float32([1, 2]), np.float32([3, 4])
    a, b = run_everywhere(parse_module(TENSORS), 10, x, y)
    assert (a.tolist(), b.tolist()) == ([199, 288], [322, 466])
    for mode in MODES:
        machine = machine_of(TENSORS, mode, stack_values=64, call_depth=4)
        assert machine["main"](2_000, x * 0, y * 0)[0].numpy().tolist() == [0, 0]


def test_the_reference_needs_no_room_either() -> None:
    assert evaluate(infer_types(parse_module(COUNTDOWN)), "main", 5_000, 0) == 5_000 * 5_001 // 2
    assert evaluate(infer_types(parse_module(MUTUAL)), "even", 5_001) is False
    assert evaluate(infer_types(parse_module(CLOSURE)), "main", 5_000, 1) == 5_000
    assert evaluate(infer_types(parse_module(THROUGH_VALUES)), "count", 5_000, 0) == 5_000


@pytest.mark.parametrize("mode", MODES)
def test_a_call_that_is_not_at_the_end_is_none(mode) -> None:
    text = "def main(n: i64) -> i64 { rest = if n == 0 then 0 else @main(n - 1)\n return rest + n }"
    machine = machine_of(text, mode, call_depth=100)
    assert machine["main"](50) == 1275
    with pytest.raises(RelvmRecursionError, match="call depth exceeds the limit of 100"):
        machine["main"](1_000)
    assert machine["main"](50) == 1275


@pytest.mark.parametrize("mode", MODES)
def test_an_endless_loop_can_be_interrupted(mode) -> None:
    machine = machine_of("def main(n: i64) -> i64 = @main(n + 1)", mode)
    timer = threading.Timer(0.1, machine.interrupt)
    timer.start()
    with pytest.raises(RelvmInterrupted):
        machine["main"](0)
    timer.join()


@pytest.mark.parametrize("mode", MODES)
def test_a_wrong_call_at_the_end_is_an_error(mode) -> None:
    text = "def main(f: object, n: i64) => object = f(n, n)\n def one(n: i64) -> i64 = n\n def get() -> object = @one"
    machine = machine_of(text, mode)
    one = machine["get"]()
    with pytest.raises(RelvmArgumentError, match=r"one: expected 1 argument \(n\), got 2"):
        machine["main"](one, 1)
    with pytest.raises(TypeError, match="expected"):
        machine["main"](3, 1)
    assert machine["one"](4) == 4


@pytest.mark.parametrize("mode", MODES)
def test_an_instrument_sees_every_round(mode) -> None:
    machine = machine_of(COUNTDOWN, mode)
    seen: list[tuple] = []
    machine.set_instrument(lambda name, before, result, *args: seen.append((name, before, result, args)))
    assert machine["main"](2, 0) == 3
    rounds = [entry for entry in seen if entry[0] == "main"]
    befores, afters = [(2, 0), (1, 2), (0, 3)], [(0, 3), (1, 2), (2, 0)]
    assert rounds == [("main", True, None, args) for args in befores] + [("main", False, 3, args) for args in afters]
    seen.clear()
    machine.set_instrument(None)
    assert machine["main"](2, 0) == 3 and not seen


@pytest.mark.parametrize("mode", MODES)
def test_a_profile_of_a_long_loop_needs_no_room(mode) -> None:
    machine = machine_of(TENSORS, mode, stack_values=128, call_depth=4)
    x = np.zeros(2, np.float32)
    profile = machine.profile("main", 1_000, x, x)
    assert {row.name: row.count for row in profile.rows}["reference.add"] == 1_001


STOPPED = """
private def _kernels(n: i64, x: f32[m]) -> f32[m] = if n == 0 then x else @_kernels(n - 1, exp(x))
private def _host(n: i64, x: f32[m]) => f32[m] {
  _ = packed("test.nothing")
  return if n == 0 then x else @_host(n - 1, x)
}
def kernels(x: f32[m]) => f32[m] {
  _ = packed("test.stop")
  return @_kernels(100, x)
}
def host(x: f32[m]) => f32[m] {
  _ = packed("test.stop")
  return @_host(100, x)
}
"""


@pytest.mark.parametrize("name", ["kernels", "host"])
@pytest.mark.parametrize("mode", MODES)
def test_what_may_take_long_counts_more_towards_the_poll(mode, name) -> None:
    register_func("test.stop", lambda: machine.interrupt(), override=True)
    register_func("test.nothing", lambda: None, override=True)
    machine = vm.VirtualMachine(vm.build(parse_module(STOPPED), mode, "c"))
    with pytest.raises(RelvmInterrupted):
        machine[name](np.ones(2, np.float32))


# Each iteration releases an array whose finalizer calls the machine, before the arguments of the next one are moved.
DROPPING = """
private def _itself(i: i64, t: i64[], x: f32[3], y: f32[3]) => (f32[3], f32[3], i64[]) {
  z: f32[3] = packed("test.dropped", i)
  return if i == 0 then (x, y, t) else @_itself(i - 1, to_tensor(i, dtype=i64), z, add(z, y))
}
private def _turn(t: i64[], x: f32[3], y: f32[3], i: i64) => (f32[3], f32[3], i64[]) with (inline=false) {
  return @_other(i, x, y, t)
}
private def _other(i: i64, x: f32[3], y: f32[3], t: i64[]) => (f32[3], f32[3], i64[]) with (inline=false) {
  z: f32[3] = packed("test.dropped", i)
  return if i == 0 then (x, y, t) else @_turn(to_tensor(i, dtype=i64), z, add(z, y), i - 1)
}
private def _value(i: i64, t: i64[], x: f32[3], y: f32[3]) => (f32[3], f32[3], i64[]) {
  z: f32[3] = packed("test.dropped", i)
  next = fn (a: f32[3], t: i64[]) => (f32[3], f32[3], i64[]) { return @_value(i - 1, t, a, add(z, y)) }
  return if i == 0 then (x, y, t) else next(z, to_tensor(i, dtype=i64))
}
def itself(x: f32[3]) => object = @_itself(6, const(i64[], 9), x, x)
def other(x: f32[3]) => object = @_other(6, x, x, const(i64[], 9))
def value(x: f32[3]) => object = @_value(6, const(i64[], 9), x, x)
def again(n: i64, x: f32[3], y: f32[3]) -> (i64, f32[3], f32[3]) = if n == 0 then (n, x, y) else @again(n - 1, y, x)
"""


@pytest.mark.parametrize("name", ["itself", "other", "value"])
@pytest.mark.parametrize("mode", MODES)
def test_what_a_tail_call_releases_may_call_the_machine(mode, name) -> None:
    calls: list = []

    class Calling(bytearray):
        def __del__(self) -> None:
            calls.append(machine["again"](3, X, X)[0])

    def dropped(i: int) -> np.ndarray:
        array = np.frombuffer(Calling(12), np.float32)
        array[:] = i
        return array

    register_func("test.dropped", dropped, override=True)
    machine = machine_of(DROPPING, mode)
    x, y, t = machine[name](X)
    assert (x.numpy().tolist(), y.numpy().tolist(), t.item()) == ([1] * 3, [22] * 3, 1)
    del x, y
    assert calls == [0] * 7
