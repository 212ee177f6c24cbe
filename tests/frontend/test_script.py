"""Tests of the meaning of each Python construct that scripts support."""

# ruff: noqa: F722, F821, F841, UP037, SIM300 (scripts are not Python)
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import relvm.ops as ops
from relvm import script
from relvm.errors import RelvmNameError, RelvmTypeError
from relvm.frontend.script import module_of
from relvm.ir.expr import Constant, Module
from relvm.ir.interpreter import evaluate
from relvm.ir.node import walk
from relvm.ir.printer import print_module
from relvm.ir.verifier import Stage, verify

F = np.float32
X = np.array([[1, -2, 3, -4], [-5, 6, -7, 8]], F)
WEIGHT = np.eye(4, dtype=F) * 2
FACTOR = 3


@dataclass(frozen=True)
class Settings:
    slope: float
    names: tuple


SETTINGS = Settings(0.5, ("a", "b"))


def run(function, *args, name=None, packed=None):
    """Run the function of a script after checking its module, and return the result."""
    module = function if isinstance(function, Module) else function.module
    verify(module, Stage.TYPED)
    return evaluate(module, name or getattr(function, "name", "main"), *args, packed=packed)


def same(got, expected):
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_operators_of_python():
    @script
    def f(x: f32[n, 4], y: f32[n, 4]):
        return -x + y - x * y / x**y, x @ WEIGHT, x < y, x <= y, x > y, x >= y, x == y, x != y

    y = np.abs(X)
    got = run(f, X, y)
    with np.errstate(invalid="ignore"):
        expected = (-X + y - X * y / X**y, X @ WEIGHT, X < y, X <= y, X > y, X >= y, X == y, X != y)
    for part, want in zip(got, expected, strict=True):
        same(part, want)


def test_logic_of_bool_tensors():
    @script
    def f(x: bool[n], y: bool[n]):
        return x & y, x | y, ~x, not x

    x, y = np.array([True, True, False]), np.array([True, False, False])
    for part, want in zip(run(f, x, y), (x & y, x | y, ~x, ~x), strict=True):
        np.testing.assert_array_equal(part, want)


def test_operators_by_name_and_as_attributes_with_attributes():
    @script
    def f(x: f32[n, 4]):
        return ops.softmax(relu(x), axis=0)

    e = np.exp(np.maximum(X, 0) - np.maximum(X, 0).max(0))
    same(run(f, X), e / e.sum(0))


def test_numbers_take_the_dtype_of_the_tensor():
    @script
    def f(x: f64[n], i: i32[n]):
        return x * 2 + 0.1, i + 1, 2 - i

    got = run(f, np.array([1.0, 2.0]), np.array([1, 2], np.int32))
    assert [part.dtype for part in got] == [np.float64, np.int32, np.int32]
    same(got[0], [2.1, 4.1])
    same(got[2], [1, 0])


def test_values_around_the_function_are_captured():
    bias = np.arange(4, dtype=F)

    @script
    def f(x: f32[n, 4]):
        return x @ WEIGHT + bias * FACTOR * SETTINGS.slope

    same(run(f, X), X @ WEIGHT + np.arange(4, dtype=F) * 1.5)


def test_an_array_used_twice_is_one_constant():
    @script
    def f(x: f32[4, 4]):
        return x @ WEIGHT @ WEIGHT

    constants = {id(item.value) for item in walk(f.module) if isinstance(item, Constant)}
    assert len(constants) == 1


def test_python_conditions_choose_in_advance():
    @script
    def f(x: f32[n]):
        if FACTOR == 3:
            y = x * (FACTOR + 1) ** 2
        else:
            y = nothing_of_this_name
        return y if SETTINGS.names[1] == "b" else nothing_of_this_name

    assert "if" not in print_module(f.module)
    same(run(f, X[0]), X[0] * 16)


def test_assignments_and_tuples():
    @script
    def f(x: f32[n], pair: (f32[n], (f32[n], i64))):
        """A docstring."""
        a = b = x
        a, b = -b, a + 1
        (c, (d, i)), e = pair, pair[0]
        a += 10
        g: f32[n] = a * 1
        pass
        return g, b, c, d, i, e, pair[-1][0]

    x, p, q = X[0], X[1], X[0] + 5
    for part, want in zip(run(f, x, (p, (q, 7))), (-x + 10, x + 1, p, q, 7, p, q), strict=True):
        same(part, want)


def test_an_if_merges_what_it_assigns():
    @script
    def f(c: bool, d: bool, x: f32[n]):
        y = x
        if c:
            y = y + 1
            z = -y
            unused = relu(y)
        elif d:
            z = y * 2
        else:
            z = y
            y = y * 3
        return y, z, x if c else y

    x = X[0]
    expected = {
        (True, False): (x + 1, -x - 1, x),
        (False, True): (x, x * 2, x),
        (False, False): (x * 3, x, x * 3),
    }
    for (c, d), want in expected.items():
        for part, value in zip(run(f, c, d, x), want, strict=True):
            same(part, value)


def test_an_if_inside_an_if_keeps_what_is_used_after_both():
    @script
    def f(c: bool, d: bool, x: f32[n]):
        y = x
        if c:
            if d:
                y = x + 1
            y = y * 2
        return y

    for c, d, want in [(True, True, (X[0] + 1) * 2), (True, False, X[0] * 2), (False, True, X[0])]:
        same(run(f, c, d, X[0]), want)


def test_branches_that_return():
    @script
    def f(c: bool, d: bool, x: f32[n]) -> f32[n]:
        if c:
            if d:
                return x
            y = x + 1
        else:
            y = x + 2
        if d:
            return y * 10
        else:
            return y

    x = X[0]
    for c, d, want in [(True, True, x), (True, False, x + 1), (False, True, (x + 2) * 10), (False, False, x + 2)]:
        same(run(f, c, d, x), want)


def test_an_if_without_a_value_keeps_its_effects():
    @script
    def f(c: bool, x: f32[n]):
        if c:
            packed("test.note", x)
        return x

    seen = []
    run(f, True, X[0], packed={"test.note": seen.append})
    run(f, False, X[0], packed={"test.note": seen.append})
    assert len(seen) == 1


def test_a_condition_may_be_a_tensor():
    @script
    def f(x: f32[()]):
        return x if x > 0 else -x

    assert run(f, np.array(-3, F)) == run(f, np.array(3, F)) == 3


def test_a_nested_def_is_a_closure_and_may_call_itself():
    @script
    def f(x: f32[n], k: f32[()]) -> f32[n]:
        one = const("f32[]", 1)

        def power(i: f32[()]) -> f32[n]:
            if i <= 0:
                return x * 0 + one
            return power(i - 1) * x

        return power(k)

    same(run(f, X[0], np.array(3, F)), X[0] ** 3)


def test_lambdas_take_their_types_from_where_they_go():
    @script
    class Lambdas:
        def apply(f: "(f32[k]) -> f32[k]", x: f32[n]):
            return f(x)

        def make(x: f32[n]) -> "(f32[n]) -> f32[n]":
            return lambda y: y + x

        def main(x: f32[n]):
            double = lambda y: y * 2  # noqa: E731
            thunk = (lambda: x, 1)[0]
            return double(x), double(double(x)), apply(lambda y: y - y, x), make(x)(x), thunk()

    x = X[0]
    for part, want in zip(run(Lambdas, x, name="main"), (x * 2, x * 4, x * 0, x * 2, x), strict=True):
        same(part, want)


def test_a_lambda_sees_the_variables_as_they_were():
    @script
    def f(x: f32[n]):
        y = x + 1
        g = lambda: y  # noqa: E731
        y = x + 2
        return g() - y

    same(run(f, X[0]), [-1] * 4)


@script
def before(x: f32[n]):
    return after(x) + 1


@script
def after(x: f32[n]) -> f32[n]:
    return x * 2 if n_is_small(x) else before(x)


@script
def n_is_small(x: f32[n]):
    return less(sum(x), 100)


def test_functions_call_functions_defined_before_and_after_and_are_in_the_module():
    assert [f.name for f in before.module.functions] == ["before", "after", "n_is_small"]
    assert [f.name for f in module_of(after, before).functions][:2] == ["after", "before"]
    same(run(before, X[0]), X[0] * 2 + 1)
    assert before.function.name == "before"


def test_a_function_is_a_value():
    @script
    def f(x: f32[n]):
        g = after
        return g(x), after

    assert run(f, X[0])[1].function.name == "after"


def test_packed_calls_casts_and_shapes():
    @script
    def f(x: f32[n, 4]) -> f32[m]:
        y = packed("test.first_row", x, result="f32[k]", pure=True)
        z = match_cast(y, "f32[m]")
        v = packed("test.any", x, "text", None, 1, f32)
        w = match_cast(v, f32[m])
        return reshape(z, shape(m)) + w

    packed_functions = {"test.first_row": lambda x: x[0], "test.any": lambda x, *rest: x[1]}
    same(run(f, X, packed=packed_functions), X[0] + X[1])
    assert not f.function.pure


def test_a_shape_of_numbers_is_a_tuple():
    @script
    def f(x: f32[2, 4]):
        return reshape(x, (4, 2))

    assert run(f, X).shape == (4, 2)


def test_an_annotation_that_cannot_be_proven_is_checked():
    @script
    def f(x: f32[n], y: object) -> f32[n]:
        z: f32[n] = y
        return x + z

    same(run(f, X[0], X[1]), X[0] + X[1])
    assert 'z = match_cast(y, f32[n], "test_script.py:' in print_module(f.module)


def test_annotations_may_be_strings():
    @script
    def f(x: "f32[n * 2, (m + 1) // 2]", y: "f32[n]", z: "shape[m]") -> "object":
        return x

    assert "x: f32[n * 2, ((m + 1) // 2)]" in print_module(f.module)


def test_a_class_is_a_module():
    @script
    class Model:
        scale = 4

        def helper(x: f32[n]):
            return x * scale

        def main(x: f32[n]) -> f32[n]:
            return helper(x)

    assert isinstance(Model, Module)
    assert [f.name for f in Model.functions] == ["helper", "main"]
    same(run(Model, X[0], name="main"), X[0] * 4)


def test_a_class_may_be_recursive_and_mutually_so():
    @script
    class Parity:
        def even(n: f32[()]) -> bool[()]:
            return odd(n - 1) if n > 0 else True

        def odd(n: f32[()]) -> bool[()]:
            return even(n - 1) if n > 0 else False

    assert run(Parity, np.array(4, F), name="even") and not run(Parity, np.array(3, F), name="even")


def test_constants_of_a_given_type():
    @script
    def f():
        return const(f32[2, 2], [[1, 2], [3, -4]]), const("i8[1]", [FACTOR])

    got = run(f)
    np.testing.assert_array_equal(got[0], np.array([[1, 2], [3, -4]], F))
    assert got[1].dtype == np.int8


def test_what_is_not_called_with_scripts_is_refused():
    with pytest.raises(RelvmTypeError, match="script: expected a function or a class, got 3"):
        script(3)
    with pytest.raises(RelvmTypeError, match="module_of: expected functions decorated with @script"):
        module_of(run)
    with pytest.raises(RelvmTypeError, match="class Settings has no functions"):
        script(type("Settings", (), {"a": 1}))


def test_two_functions_of_one_name_are_refused():
    def other():
        @script
        def after(x: f32[n]):
            return x

        return after

    with pytest.raises(RelvmNameError, match="two functions are named after"):
        module_of(after, other())
