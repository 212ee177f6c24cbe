# ruff: noqa: F821, UP037
"""Tests of calls, modeled on those of TVM's Relax virtual machine, in every mode and for both targets."""

from __future__ import annotations

import numpy as np
import pytest
from support.modes import machines, plain, run_everywhere

from relvm import script, vm
from relvm.errors import RelvmArgumentError, RelvmShapeError, RelvmTypeError
from relvm.frontend.text import parse_module
from relvm.ir.printer import print_module
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline
from relvm.runtime.packed_func import register_func

X, Y = np.float32([1, -2, 3]), np.float32([10, 20, 30])


def both(text: str) -> list[vm.VirtualMachine]:
    return list(machines(parse_module(text)).values())


def test_sub_function_calls() -> None:
    text = """
    def scale(x: f32[n], k: f32[]) -> f32[n] = multiply(x, k)
    def shifted(x: f32[n], y: f32[n]) -> f32[n] = add(@scale(x, const(f32[], 2)), @scale(y, const(f32[], 3)))
    def main(x: f32[n], y: f32[n]) -> f32[n] = @shifted(@shifted(x, y), y)
    """
    assert run_everywhere(parse_module(text), X, Y).tolist() == [94, 172, 282]


def test_recursion_factorial_on_a_tensor_counter() -> None:
    text = """
    def main(i: f32[]) -> f32[] {
      return if less(i, const(f32[], 1)) then const(f32[], 1) else multiply(i, @main(subtract(i, const(f32[], 1))))
    }
    """
    assert run_everywhere(parse_module(text), np.float32(10)) == 3628800


def test_mutual_recursion() -> None:
    text = """
    def even(i: i64[], x: f32[n]) -> f32[n] {
      return if equal(i, const(i64[], 0)) then x else @odd(subtract(i, const(i64[], 1)), x)
    }
    def odd(i: i64[], x: f32[n]) -> f32[n] = negative(@even(subtract(i, const(i64[], 1)), x))
    """
    assert run_everywhere(parse_module(text), np.int64(6), X, name="even").tolist() == (-X).tolist()


def test_a_closure_over_one_value() -> None:
    text = """
    def main(x: f32[n], y: f32[n]) -> f32[n] {
      f = fn (a: f32[n]) -> f32[n] { return subtract(a, y) }
      g = if true then f else f
      return g(x)
    }
    """
    assert run_everywhere(parse_module(text), X, Y).tolist() == [-9, -22, -27]


def test_a_closure_invoked_later_from_python() -> None:
    for machine in both(
        "def main(y: f32[n]) -> ((f32[n]) -> f32[n]) { return fn (a: f32[n]) -> f32[n] { return add(a, y) } }"
    ):
        closure = machine["main"](Y)
        assert closure(X).numpy().tolist() == [11, 18, 33] and closure(Y).numpy().tolist() == [20, 40, 60]
        with pytest.raises(RelvmShapeError, match="expected dimension 0 to be 3, got 2"):
            closure(X[:2])


def test_a_closure_returned_to_python_survives_its_machines_other_calls() -> None:
    text = """
    def make(y: f32[n]) -> ((f32[n]) -> f32[n]) { return fn (a: f32[n]) -> f32[n] { return add(a, exp(y)) } }
    def work(n: i64) -> i64 = if n == 0 then 0 else @work(n - 1) + 1
    """
    for machine in both(text):
        closures = [machine["make"](np.full(4, k, np.float32)) for k in range(5)]
        assert machine["work"](1000) == 1000
        del closures[::2]
        with pytest.raises(RelvmArgumentError):
            machine["work"]()
        for k, closure in zip((1, 3), closures, strict=True):
            np.testing.assert_allclose(closure(np.zeros(4, np.float32)).numpy(), np.exp(np.float32(k)), rtol=1e-6)


def test_partial_application_binds_the_last_arguments() -> None:
    text = """
    def minus(a: f32[n], b: f32[n], k: i64) -> (f32[n], i64) = (subtract(a, b), k)
    def main(x: f32[n], y: f32[n]) -> ((f32[n], i64), (f32[n], i64)) {
      f = builtin.make_closure(@minus, y, 7)
      g = builtin.make_closure(builtin.make_closure(@minus, 8), x)
      return (f(x), g(y))
    }
    """
    module = parse_module(text)
    (first, seven), (second, eight) = run_everywhere(module, X, Y)
    assert (first.tolist(), seven, second.tolist(), eight) == ([-9, -22, -27], 7, [9, 22, 27], 8)
    typed = print_module(run_passes(module, build_pipeline("c")[:1]))
    assert "f: (f32[n_1]) -> (f32[n_1], i64) = builtin.make_closure(@minus, y, 7)" in typed


def test_partial_application_in_a_script() -> None:
    @script
    class M:
        def minus(a: "f32[n]", b: "f32[n]", k: "i64") -> "f32[n]":
            return a - b * k

        def main(x: "f32[n]", y: "f32[n]") -> "f32[n]":
            f = partial(minus, y, 2)
            return f(x) + partial(minus, x, y, 1)()

    assert run_everywhere(M, X, Y).tolist() == [-28, -64, -84]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        ("builtin.make_closure(@one, x, x)", RelvmArgumentError, "cannot bind 2 arguments; the function takes 1"),
        ("builtin.make_closure(@one, 3)", RelvmTypeError, r"argument 0 of one: expected f32\[_\], got i64"),
        ("builtin.make_closure(x)", RelvmTypeError, r"cannot bind arguments to f32\[n\]; expected a function"),
    ],
)
def test_partial_application_with_a_mistake_is_told(call, error, message) -> None:
    text = f"def one(x: f32[m]) -> f32[m] = x\ndef main(x: f32[n]) -> object = {call}"
    with pytest.raises(error, match=message):
        vm.build(parse_module(text))


def test_a_local_function_whose_name_equals_a_global() -> None:
    text = """
    def scale(x: f32[n]) -> f32[n] = multiply(x, const(f32[], 100))
    def main_scale(x: f32[n]) -> f32[n] = negative(x)
    def main(x: f32[n]) -> (f32[n], f32[n], f32[n]) {
      scale = fn scale(a: f32[m]) -> f32[m] with (inline=false) { return multiply(a, const(f32[], 2)) }
      return (scale(x), @scale(x), @main_scale(x))
    }
    """
    assert [part.tolist() for part in run_everywhere(parse_module(text), X)] == [
        [2, -4, 6],
        [100, -200, 300],
        [-1, 2, -3],
    ]


def test_a_local_recursive_function() -> None:
    text = """
    def main(x: f32[n], k: i64) -> f32[n] {
      power = fn power(i: i64, y: f32[n]) -> f32[n] { return if i == 0 then y else multiply(x, power(i - 1, y)) }
      return power(k, x)
    }
    """
    assert run_everywhere(parse_module(text), X, 2).tolist() == [1, -8, 27]


def test_local_functions_that_call_each_other() -> None:
    text = """
    def main(x: f32[n], k: i64) -> (f32[n], f32[n]) {
      up = fn (i: i64, y: f32[n]) -> f32[n] { return if i == 0 then y else down(i - 1, add(y, x)) }
      down = fn (i: i64, y: f32[n]) -> f32[n] { return if i == 0 then negative(y) else up(i - 1, multiply(y, x)) }
      pair = (up, down)
      f = pair.0
      return (f(k, x), down(k, x))
    }
    """
    first, second = run_everywhere(parse_module(text), X, 3)
    assert first.tolist() == [-3, -6, -21] and second.tolist() == [2, -4, 36]


def test_an_inner_functions_dimension_is_the_outers() -> None:
    text = """
    def main(x: f32[n], f: object) => f32[n] {
      inner = fn (a: f32[n]) -> f32[n] { return add(a, x) }
      return packed("test.calls.apply", inner, f) : f32[n]
    }
    """
    register_func("test.calls.apply", lambda f, x: f(x), override=True)
    for machine in both(text):
        assert machine["main"](X, Y).numpy().tolist() == [11, 18, 33]
        with pytest.raises(RelvmShapeError, match="expected dimension 0 to be 3, got 2"):
            machine["main"](X, Y[:2])


def test_an_inner_functions_dimension_is_its_own() -> None:
    text = """
    def main(x: f32[n], y: f32[m]) -> (f32[n], f32[m]) {
      inner = fn (a: f32[k]) -> f32[k] { return add(a, a) }
      pair = (inner, inner)
      f = pair.1
      return (f(x), f(y))
    }
    """
    first, second = run_everywhere(parse_module(text), X, Y[:2])
    assert (first.tolist(), second.tolist()) == ([2, -4, 6], [20, 40])


def test_an_inner_functions_dimension_is_known_only_at_run_time() -> None:
    text = """
    def main(x: f32[...], y: object) -> f32[_] {
      v = match_cast(x, f32[n])
      w = match_cast(y, f32[n])
      inner = fn (a: f32[n]) -> f32[n] { return add(a, w) }
      pair = (inner, inner)
      f = pair.0
      return f(v)
    }
    """
    assert run_everywhere(parse_module(text), X, Y).tolist() == [11, 18, 33]
    for machine in both(text):
        with pytest.raises(RelvmShapeError, match="match_cast w: expected dimension 0 to be 3, got 1"):
            machine["main"](X, Y[:1])


def test_lambda_lifting_leaves_its_input_unmodified() -> None:
    module = parse_module("""
    def main(x: f32[n]) -> f32[n] {
      f = fn f(a: f32[n], i: i64) -> f32[n] { return if i == 0 then x else f(a, i - 1) }
      g = (f, 1)
      h = g.0
      return h(x, 3)
    }
    """)
    before: list[str] = []
    seen = []

    def watch(step, module_before, module_after, seconds) -> None:
        if step.name == "lambda_lifting":
            seen.append(module_before)
            before.append(print_module(module_before))

    text = print_module(module)
    run_passes(module, build_pipeline("c"), observer=watch)
    assert print_module(module) == text and print_module(seen[0]) == before[0] and "fn f" in before[0]


def test_impure_local_functions_stay_impure() -> None:
    log: list[int] = []
    register_func("test.calls.log", lambda i: log.append(i), override=True)
    text = """
    def main(x: i64) => i64 {
      say = fn (i: i64) => i64 { _ = packed("test.calls.log", i)
                                 return i }
      unused = say(x)
      twice = fn (f: (i64) => i64, i: i64) => i64 { first = f(i)
                                                    return f(first + 1) }
      also_unused = twice(say, x)
      pure = fn (i: i64) -> i64 { return i + 1 }
      never = pure(x)
      return x
    }
    """
    for machine in both(text):
        log.clear()
        assert machine["main"](5) == 5 and log == [5, 5, 6]
    with pytest.raises(RelvmTypeError, match="declared as pure with ->"):
        vm.build(parse_module(text.replace("def main(x: i64) =>", "def main(x: i64) ->")))


def test_closures_in_tuples_and_returned_from_functions_reach_python() -> None:
    text = """
    def main(x: f32[n]) -> (((f32[n]) -> f32[n], i64), (f32[n]) -> f32[n]) {
      f = fn (a: f32[n]) -> f32[n] { return add(a, x) }
      return ((f, 3), @double)
    }
    def double(a: f32[n]) -> f32[n] = add(a, a)
    def apply(f: (f32[n]) -> f32[n], x: f32[n]) -> f32[n] = f(f(x))
    """
    for machine in both(text):
        (added, three), double = machine["main"](X)
        assert plain(added(Y)).tolist() == [11, 18, 33] and three == 3
        assert plain(machine["apply"](double, X)).tolist() == [4, -8, 12]
        assert plain(machine["apply"](machine["double"], X)).tolist() == [4, -8, 12]
        assert plain(machine["apply"](added, X)).tolist() == [3, -6, 9]


def test_higher_order_functions() -> None:
    text = """
    def compose(f: (f32[n]) -> f32[n], g: (f32[n]) -> f32[n]) -> ((f32[n]) -> f32[n]) {
      return fn (a: f32[n]) -> f32[n] { return f(g(a)) }
    }
    def main(x: f32[n]) -> f32[n] {
      inc = fn (a: f32[m]) -> f32[m] { return add(a, const(f32[], 1)) }
      dbl = fn (a: f32[m]) -> f32[m] { return add(a, a) }
      f = @compose(inc, @compose(dbl, inc))
      return f(x)
    }
    """
    assert run_everywhere(parse_module(text), X).tolist() == [5, -1, 9]
