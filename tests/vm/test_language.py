"""Tests of the core language in both modes and with both kinds of kernels, compared with the reference interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from support.modes import WAYS, machines, plain, run_everywhere

from relvm import vm
from relvm.errors import RelvmArgumentError, RelvmNameError, RelvmRecursionError, RelvmShapeError, RelvmTypeError
from relvm.frontend.text import parse_module
from relvm.runtime.packed_func import register_func
from relvm.runtime.virtual_machine import VirtualMachine

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2


def run(text: str, *args, **options):
    return run_everywhere(parse_module(text), *args, **options)


def test_operators_and_constants() -> None:
    result = run("def main(x: f32[n, 3]) -> f32[n, 3] { return add(relu(x), const(f32[3], [1, 2, 3])) }", X)
    np.testing.assert_array_equal(result, np.maximum(X, 0) + np.float32([1, 2, 3]))


def test_a_constant_is_a_result() -> None:
    run("def main() -> f32[2] { return const(f32[2], [1.5, -0.0]) }")


def test_an_argument_is_a_result() -> None:
    run("def main(x: f32[n, m]) -> f32[n, m] { return x }", X)


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_a_recursive_calls_sizes_are_not_the_callers(way) -> None:
    """The size of an argument of type object is not known, so the size of the result is checked at run time."""
    text = """
    def main(x: f32[k], o: object, i: i64) -> f32[k] {
      return if i == 0 then x else @main(o, x, i - 1)
    }"""
    main = machines(parse_module(text), [way])[way]["main"]
    two, three = np.zeros(2, np.float32), np.zeros(3, np.float32)
    assert main(two, two, 2).shape == (2,)
    with pytest.raises(RelvmShapeError, match="expected dimension 0 to be 2, got 3"):
        main(two, three, 1)


@pytest.mark.parametrize("value", [True, 3, 2.5])
def test_a_scalar_is_a_result(value) -> None:
    kind = {bool: "bool", int: "i64", float: "f64"}[type(value)]
    assert run(f"def main(x: {kind}) -> {kind} {{ return x }}", value) == value


def test_tuples_nest_and_are_taken_apart() -> None:
    text = """
    def main(x: f32[n, m], t: (f32[n, m], (f32[n, m], i64))) -> ((f32[n, m], i64), f32[n, m]) {
      inner = t.1
      return ((inner.0, inner.1), add(x, t.0))
    }"""
    run(text, X, (X + 1, (X + 2, 7)))


def test_an_empty_tuple_is_a_value() -> None:
    assert run("def main() -> () { return () }") == ()


@pytest.mark.parametrize("cond", [True, False])
def test_if_on_a_scalar(cond) -> None:
    run("def main(c: bool, x: f32[n, m]) -> f32[n, m] { return if c then relu(x) else negative(x) }", cond, X)


@pytest.mark.parametrize("dtype", ["bool", "i8", "i64", "u8"])
@pytest.mark.parametrize("value", [0, 1])
def test_if_on_a_tensor(dtype, value) -> None:
    text = f"def main(c: {dtype}[], x: f32[n, m]) -> f32[n, m] {{ return if c then relu(x) else negative(x) }}"
    run(text, np.array(value, dtype={"i8": "int8", "i64": "int64", "u8": "uint8"}.get(dtype, dtype)), X)


@pytest.mark.parametrize("cond", ["true", "false", "1", "const(bool[], true)"])
def test_if_on_a_constant(cond) -> None:
    run(f"def main(x: f32[n, m]) -> f32[n, m] {{ return if {cond} then relu(x) else negative(x) }}", X)


def test_if_inside_if_with_values_of_both_levels() -> None:
    text = """
    def main(a: bool, b: bool, x: f32[n, m]) -> f32[n, m] {
      y = add(x, x)
      z = if a then { w = multiply(y, x)
                      return if b then add(w, y) else w } else { return subtract(y, x) }
      return add(z, y)
    }"""
    for a in (True, False):
        for b in (True, False):
            run(text, a, b, X)


def test_a_function_calls_another() -> None:
    text = """
    def twice(x: f32[n]) -> f32[n] { return add(x, x) }
    def main(x: f32[m], y: f32[k]) -> (f32[m], f32[k]) { return (@twice(x), @twice(@twice(y))) }"""
    run(text, X[0], X.reshape(-1))


FACTORIAL = """
def factorial(n: i64[]) -> i64[] {
  return if less(n, const(i64[], 2)) then const(i64[], 1) else multiply(n, @factorial(subtract(n, const(i64[], 1))))
}"""


def test_recursion() -> None:
    assert run(FACTORIAL, np.array(10, np.int64), name="factorial") == 3628800


def test_mutual_recursion() -> None:
    text = """
    def even(n: i64[]) -> bool[] {
      return if less(n, const(i64[], 1)) then const(bool[], true) else @odd(subtract(n, const(i64[], 1)))
    }
    def odd(n: i64[]) -> bool[] {
      return if less(n, const(i64[], 1)) then const(bool[], false) else @even(subtract(n, const(i64[], 1)))
    }"""
    assert run(text, np.array(7, np.int64), name="odd")


def test_recursion_without_end_is_an_error_and_the_machine_lives_on() -> None:
    text = "def main(n: i64[]) -> i64[] { return add(@main(n), n) }\ndef id(n: i64[]) -> i64[] { return n }"
    for machine in machines(parse_module(text)).values():
        with pytest.raises(RelvmRecursionError):
            machine["main"](np.array(1, np.int64))
        assert plain(machine["id"](np.array(4, np.int64))) == 4


def test_a_closure_captures_a_value() -> None:
    text = """
    def main(x: f32[n], y: f32[n]) -> f32[n] {
      f = fn (a: f32[n]) -> f32[n] { return add(a, y) }
      return f(f(x))
    }"""
    run(text, X[0], X[1])


def test_a_closure_that_captures_nothing() -> None:
    run("def main(x: f32[n]) -> f32[n] { f = fn (a: f32[k]) -> f32[k] { return relu(a) }\n return f(x) }", X[0])


def test_a_closure_in_a_closure() -> None:
    text = """
    def main(x: f32[n], y: f32[n]) -> f32[n] {
      f = fn (a: f32[n]) -> f32[n] {
        g = fn (b: f32[n]) -> f32[n] { return add(add(a, b), y) }
        return g(x)
      }
      return f(y)
    }"""
    run(text, X[0], X[1])


def test_a_local_function_calls_itself() -> None:
    text = """
    def main(n: i64[], step: i64[]) -> i64[] {
      count = fn count(k: i64[]) -> i64[] {
        return if less(k, const(i64[], 1)) then step else add(count(subtract(k, const(i64[], 1))), step)
      }
      return count(n)
    }"""
    assert run(text, np.array(5, np.int64), np.array(3, np.int64)) == 18


def test_a_local_function_named_as_a_function_of_the_module() -> None:
    text = """
    def twice(x: f32[n]) -> f32[n] { return add(x, x) }
    def main(x: f32[n]) -> f32[n] {
      twice = fn (a: f32[n]) -> f32[n] { return relu(a) }
      return add(twice(x), @twice(x))
    }"""
    run(text, X[0])


def test_functions_are_passed_and_returned() -> None:
    text = """
    def apply(f: (f32[n]) -> f32[n], x: f32[n]) -> f32[n] { return f(x) }
    def adder(y: f32[n]) -> (f32[n]) -> f32[n] {
      f = fn (x: f32[n]) -> f32[n] { return add(x, y) }
      return f
    }
    def main(x: f32[n], y: f32[n]) -> f32[n] {
      g = @adder(y)
      return @apply(g, x)
    }"""
    run(text, X[0], X[1])


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_a_closure_goes_out_to_python_and_comes_back(way) -> None:
    text = """
    def adder(y: f32[n]) -> (f32[n]) -> f32[n] {
      f = fn (x: f32[n]) -> f32[n] { return add(x, y) }
      return f
    }
    def apply(f: (f32[n]) -> f32[n], x: f32[n]) -> f32[n] { return f(x) }"""
    machine = VirtualMachine(vm.build(parse_module(text), *way))
    closure = machine["adder"](X[0])
    machine["adder"](X[1])
    np.testing.assert_array_equal(plain(closure(X[1])), X[0] + X[1])
    np.testing.assert_array_equal(plain(machine["apply"](closure, X[1])), X[0] + X[1])


def test_packed_functions_from_python() -> None:
    text = 'def main(x: f32[n, m]) => f32[n, m] { return packed("test.language.add", x, x) : f32[n, m] }'
    run(text, X, packed={"test.language.add": lambda a, b: a + b})


def test_the_result_of_a_packed_function_is_checked_by_match_cast() -> None:
    text = """
    def main(x: f32[n, m]) => f32[n, k] {
      y = packed("test.language.columns", x) : object
      z = match_cast(y, f32[n, k])
      return add(z, z)
    }"""
    run(text, X, packed={"test.language.columns": lambda a: np.ascontiguousarray(a[:, :2])})


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_what_a_packed_function_returns_is_checked_against_its_type(way) -> None:
    text = """
    def main(x: f32[n, m]) => f32[n, k] {
      y = packed("test.language.anything", x) : f32[n, k]
      return add(y, y)
    }"""
    register_func("test.language.anything", lambda x: x, override=True)
    machine = VirtualMachine(vm.build(parse_module(text), *way))
    for bad, error in ((3, RelvmTypeError), (X.astype(np.int32), RelvmTypeError), (X[:1], RelvmShapeError)):
        register_func("test.language.anything", lambda x, bad=bad: bad, override=True)
        with pytest.raises(error, match=r"the result of test\.language\.anything"):
            machine["main"](X)
    register_func("test.language.anything", lambda x: X[:, :1].copy(), override=True)
    np.testing.assert_array_equal(plain(machine["main"](X)), 2 * X[:, :1])


def test_an_effect_happens_once_and_in_order() -> None:
    seen: list[float] = []
    register_func("test.language.note", lambda t: seen.append(float(t.numpy().sum())), override=True)
    text = """
    def main(x: f32[n]) => f32[n] {
      _ = packed("test.language.note", x) : object
      y = add(x, x)
      _ = packed("test.language.note", y) : object
      return y
    }"""
    for machine in machines(parse_module(text)).values():
        seen.clear()
        machine["main"](np.ones(3, np.float32))
        assert seen == [3.0, 6.0]


def test_symbolic_shapes_serve_every_size() -> None:
    module = parse_module("""
    def main(x: f32[n, m], y: f32[m]) -> (f32[n, m], f32[n * m], f32[n + n, m]) {
      z = add(x, y)
      return (z, reshape(z, shape(n * m)), concat(z, z, axis=0))
    }""")
    for shape in ((2, 3), (0, 4), (5, 1), (1, 1)):
        run_everywhere(module, np.ones(shape, np.float32), np.arange(shape[1], dtype=np.float32))


def test_dimensions_are_computed() -> None:
    text = """
    def main(x: f32[n, m]) -> shape[n * 2 + m // 3, m % 2, max(n, m) - min(n, m)] {
      return shape(n * 2 + m // 3, m % 2, max(n, m) - min(n, m))
    }"""
    for size in ((2, 7), (9, 4), (0, 0)):
        run(text, np.zeros(size, np.float32))


BAD = "def main(x: f32[n, 4], y: f32[n]) -> f32[n, 4] { return add(x, reshape(y, shape(n, 1))) }"
GOOD_X, GOOD_Y = np.zeros((3, 4), np.float32), np.zeros(3, np.float32)


@pytest.mark.parametrize("way", WAYS, ids="-".join)
@pytest.mark.parametrize(
    ("args", "error", "words"),
    [
        ((GOOD_X,), RelvmArgumentError, ("main", "x", "y", "1")),
        ((GOOD_X, GOOD_Y, GOOD_Y), RelvmArgumentError, ("main", "3")),
        ((GOOD_X[0], GOOD_Y), RelvmTypeError, ("argument x", "rank 2", "rank 1")),
        ((GOOD_X.astype(np.float64), GOOD_Y), RelvmTypeError, ("argument x", "f32", "f64")),
        ((np.zeros((3, 5), np.float32), GOOD_Y), RelvmShapeError, ("argument x", "dimension 1", "4", "5")),
        ((GOOD_X, np.zeros(2, np.float32)), RelvmShapeError, ("argument y", "dimension 0", "3", "2")),
        ((GOOD_X, 1), RelvmTypeError, ("argument y", "tensor", "int")),
    ],
    ids=["too few", "too many", "rank", "dtype", "shape", "disagreeing sizes", "kind"],
)
def test_what_does_not_fit_is_refused_by_name(way, args, error, words) -> None:
    machine = VirtualMachine(vm.build(parse_module(BAD), *way))
    with pytest.raises(error) as caught:
        machine["main"](*args)
    for word in words:
        assert word in str(caught.value), f"{word!r} is not in {caught.value}"
    machine["main"](GOOD_X, GOOD_Y)


def test_an_unknown_function_is_named_with_its_near_matches() -> None:
    machine = VirtualMachine(vm.build(parse_module(FACTORIAL)))
    with pytest.raises(RelvmNameError, match=r"factorail.*factorial"):
        machine["factorail"]


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_an_unknown_packed_function_is_named(way) -> None:
    text = 'def main(x: f32[n]) => object { return packed("test.language.nowhere", x) : object }'
    with pytest.raises(RelvmNameError, match=r"test\.language\.nowhere"):
        VirtualMachine(vm.build(parse_module(text), *way))


def test_a_scalar_that_comes_as_anything_is_computed_with() -> None:
    text = """
    def main(x: object, n: i64) -> (i64, object) {
      k = match_cast(x, i64)
      return (k * k + n, x)
    }"""
    assert run(text, 7, 1) == (50, 7)


@pytest.mark.parametrize("way", [("bytecode", "bytecode"), ("compiled", "bytecode")])
@pytest.mark.parametrize("arguments", ["", ", @g", ", @g, 1", ", @g, 1, 2, 3"])
@pytest.mark.parametrize("result", ["y", "(y, 1)"], ids=["tail call", "call"])
def test_a_builtin_call_with_a_wrong_number_of_arguments_fails_when_it_runs(way, arguments: str, result: str) -> None:
    text = f"""
def g(a: i64, b: i64) -> i64 with (inline=false) = a + b
def main() => object {{
  y = packed("vm.builtin.invoke_closure"{arguments}) : object
  return {result}
}}
"""
    machine = vm.VirtualMachine(vm.build(parse_module(text), *way))
    with pytest.raises(RelvmArgumentError, match=r"expected 2 arguments|wrong number of arguments"):
        machine["main"]()


def test_a_packed_function_without_a_result_gives_the_empty_tuple() -> None:
    text = """
    def main(x: i64) => ((), i64) {
      nothing = packed("test.language.nothing", x) : ()
      return (nothing, x)
    }"""
    assert run(text, 3, packed={"test.language.nothing": lambda x: None}) == ((), 3)


def test_functions_of_the_branches_of_an_if_have_dimensions_of_their_own() -> None:
    text = """
    def main(c: bool, x: f32[n, m]) -> f32[n, m] {
      f = if c then fn (a: f32[k, l]) -> f32[k, l] { return add(a, a) }
          else fn (b: f32[i, j]) -> f32[i, j] { return relu(b) }
      return f(x)
    }"""
    for c in (True, False):
        run(text, c, X)


def test_a_closure_whose_match_cast_is_to_a_size_around_it() -> None:
    text = """
    def make(x: f32[n], c: bool) -> (bool) -> f32[n] {
      closure = fn (d: bool) -> f32[n] {
        v = if d then exp(broadcast_to(const(f32[], 0), shape(n))) else broadcast_to(const(f32[], 2), shape(n))
        checked = match_cast(v, f32[n])
        return checked
      }
      return closure
    }
    def main(x: f32[n], c: bool) -> f32[n] {
      f = @make(x, c)
      return f(c)
    }"""
    assert run(text, X[0], True).tolist() == [1, 1, 1]


def test_the_value_of_a_builtin_without_a_result_is_null() -> None:
    text = 'def main(c: bool, n: i64) => object { checked = builtin.assert(c, "no"); return (n, checked) }'
    for machine in machines(parse_module(text)).values():
        assert machine["main"](True, 7) == (7, None)
