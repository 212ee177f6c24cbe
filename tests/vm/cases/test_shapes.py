"""Tests of shapes at run time: checks, shape computations and error messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.modes import machines, plain, run_everywhere

from relvm import vm
from relvm.errors import RelvmArgumentError, RelvmShapeError, RelvmTypeError
from relvm.frontend.text import parse_module


def zeros(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.zeros(shape, dtype)


def run(text: str, *args: Any, packed: dict[str, Callable] | None = None) -> Any:
    return run_everywhere(parse_module(text), *args, packed=packed)


def refused(text: str, *args: Any, error: type[Exception] = RelvmShapeError, message: str) -> None:
    """Assert that main raises the error for these arguments in every mode and for every target."""
    for machine in machines(parse_module(text)).values():
        with pytest.raises(error, match=message):
            machine["main"](*args)


BY_HAND = """
def main(x: object) => object {
  heap = builtin.alloc_shape_heap(2)
  _ = builtin.check_tensor_info(x, 2, dtype(f32), "main: x")
  _ = builtin.match_shape(x, heap, 2, 1, 0, 1, 1, "main: x")
  return builtin.make_shape(heap, 3, 3, 1, 3, 0, 2, 2) : shape[_, _, _]
}
"""


def test_the_hand_written_shape_check() -> None:
    for machine in machines(parse_module(BY_HAND)).values():
        assert machine["main"](zeros(3, 5)) == vm.Shape((5, 3, 2))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "main: x: expected a tensor of rank 2 and dtype f32, got int"),
        (vm.Shape((2, 3)), "main: x: expected a tensor of rank 2 and dtype f32, got shape"),
        (zeros(3), "main: x: expected a tensor of rank 2 and dtype f32, got a tensor of rank 1 and dtype f32"),
        (zeros(3, 5, dtype="int32"), "main: x: expected a tensor of rank 2 and dtype f32, got .* rank 2 and dtype i32"),
    ],
    ids=["type", "a shape", "rank", "dtype"],
)
def test_the_hand_written_shape_check_refuses(value: Any, message: str) -> None:
    refused(BY_HAND, value, error=RelvmTypeError, message=message)


CAST = """
def main(x: f32[n]) => f32[m, n] {
  y = match_cast(packed("test.shapes.make", x), f32[m, n])
  return add(y, y)
}
"""


def test_match_cast_on_the_result_of_a_packed_function() -> None:
    result = run(CAST, zeros(3), packed={"test.shapes.make": lambda x: np.ones((2, len(x)), np.float32)})
    assert result.shape == (2, 3)


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        (zeros(2, 4), RelvmShapeError, "main: match_cast y: expected dimension 1 to be 3, got 4"),
        (zeros(3), RelvmTypeError, "main: match_cast y: expected a tensor of rank 2 .*, got a tensor of rank 1"),
        (zeros(2, 3, dtype="int64"), RelvmTypeError, "main: match_cast y: expected .* dtype f32, got .* dtype i64"),
        (1.5, RelvmTypeError, "main: match_cast y: expected a tensor .*, got float"),
    ],
    ids=["size", "rank", "dtype", "kind"],
)
def test_match_cast_on_the_result_of_a_packed_function_that_fails(made, error, message) -> None:
    vm.register_func("test.shapes.make", lambda x: made, override=True)
    refused(CAST, zeros(3), error=error, message=message)


def test_one_symbolic_dimension_of_two_arguments_that_disagree() -> None:
    text = "def main(x: f32[n, m], y: f32[m, n]) -> f32[n, n] = matmul(x, y)"
    run(text, zeros(2, 3), zeros(3, 2))
    refused(text, zeros(2, 3), zeros(3, 4), message="main: argument y: expected dimension 1 to be 2, got 4")
    refused(text, zeros(2, 3), zeros(2, 2), message="main: argument y: expected dimension 0 to be 3, got 2")


def test_one_symbolic_dimension_of_one_argument_that_disagrees_with_itself() -> None:
    refused("def main(x: f32[n, n]) = x", zeros(2, 3), message="argument x: expected dimension 1 to be 2, got 3")


@pytest.mark.parametrize("size", [(0, 0), (1, 2), (5, 3), (4, 100)])
def test_arithmetic_on_dimensions(size: tuple[int, int]) -> None:
    n, m = size
    text = """
    def main(x: f32[n], y: f32[m]) -> (shape[n * 2 + m // 3, n % 4 * m], f32[n * 2 + m // 3]) {
      return (shape(n * 2 + m // 3, n % 4 * m), broadcast_to(const(f32[], 1), shape(n * 2 + m // 3)))
    }"""
    shape, filled = run(text, zeros(n), zeros(m))
    assert shape == (n * 2 + m // 3, n % 4 * m) and filled.shape == (n * 2 + m // 3,)


def test_arithmetic_on_dimensions_is_checked_of_arguments() -> None:
    text = "def main(x: f32[n * 2 + m // 3], y: f32[n], z: f32[m]) -> shape[n, m] = shape(n, m)"
    assert run(text, zeros(5), zeros(2), zeros(4)) == (2, 4)
    refused(text, zeros(4), zeros(2), zeros(4), message="main: argument x: expected dimension 0 to be 5, got 4")


def test_the_shape_of_the_field_of_a_tuple() -> None:
    text = """
    def main(t: (i64, (f32[n, m], f32[...]))) -> (shape[n, m], shape[...]) {
      return (shape_of(t.1.0), shape_of(t.1.1))
    }"""
    assert run(text, (1, (zeros(2, 3), zeros(4)))) == ((2, 3), (4,))


def test_a_function_that_returns_a_shape() -> None:
    text = """
    def _half(x: f32[n, m]) -> shape[n // 2, m] = shape(n // 2, m)
    def main(x: f32[n, m]) -> f32[n // 2, m] = broadcast_to(const(f32[], 2), @_half(x))"""
    for each in (text, text.replace("def _half", "private def _half")):
        assert run(each, zeros(5, 2)).shape == (2, 2)


def test_a_function_that_takes_a_shape() -> None:
    text = "def main(s: shape[n, 2], x: f32[n]) -> shape[2, n] = shape(2, n)"
    for machine in machines(parse_module(text)).values():
        assert machine["main"](vm.Shape((3, 2)), zeros(3)) == vm.Shape((2, 3))
    message = "main: argument x: expected dimension 0 to be 3, got 4"
    refused(text, vm.Shape((3, 2)), zeros(4), message=message)
    refused(text, vm.Shape((3, 3)), zeros(3), message="main: argument s: expected dimension 1 to be 2, got 3")
    refused(text, (3, 2), zeros(3), error=RelvmTypeError, message="main: argument s: expected a shape, got tuple")


def test_symbolic_dimensions_of_two_functions() -> None:
    text = """
    def inner(a: f32[n, m], b: f32[m, k]) -> f32[n, k] = matmul(a, b)
    def main(x: f32[n, 3], y: f32[k, n]) -> f32[k, 3] {
      z = @inner(y, x)
      w: f32[k, 3] = @inner(z, const(f32[3, 3], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]))
      return add(z, w)
    }"""
    for each in (text, text.replace("def inner", "private def inner")):
        assert run(each, zeros(2, 3), zeros(4, 2)).shape == (4, 3)


@pytest.mark.parametrize("keyword", ["def", "private def"])
def test_symbolic_dimensions_of_two_functions_that_disagree(keyword: str) -> None:
    text = f"""
    {keyword} inner(a: f32[n], b: f32[n]) -> f32[n] = add(a, b)
    def main(x: f32[n], y: f32[m]) -> f32[n] = @inner(x, y)"""
    run(text, zeros(2), zeros(2))
    refused(text, zeros(2), zeros(3), message="inner: argument b: expected dimension 0 to be 2, got 3")


WEIGHTS = """
def main(x: f32[batch, 16], weights: (f32[16, 8], f32[8, out], f32[out])) -> f32[batch, out] {
  hidden = relu(matmul(x, weights.0))
  return add(matmul(hidden, weights.1), weights.2)
}
"""


def test_checks_on_lifted_weights_of_constant_and_dynamic_shapes() -> None:
    weights = (zeros(16, 8), zeros(8, 4), zeros(4))
    assert run(WEIGHTS, zeros(2, 16), weights).shape == (2, 4)
    wrong = [
        ((zeros(16, 9), zeros(8, 4), zeros(4)), "argument weights, item 0: expected dimension 1 to be 8, got 9"),
        ((zeros(16, 8), zeros(7, 4), zeros(4)), "argument weights, item 1: expected dimension 0 to be 8, got 7"),
        ((zeros(16, 8), zeros(8, 4), zeros(5)), "argument weights, item 2: expected dimension 0 to be 4, got 5"),
    ]
    for weights, message in wrong:
        refused(WEIGHTS, zeros(2, 16), weights, message=f"main: {message}")


def test_checks_on_weights_that_a_lifted_function_captures() -> None:
    text = """
    def main(x: f32[n, 4], w: f32[4, m], b: f32[m]) -> f32[n, m] {
      dense = fn (a: f32[k, 4]) -> f32[k, m] with (inline=false) { return add(matmul(a, w), b) }
      return dense(x)
    }"""
    assert run(text, zeros(2, 4), zeros(4, 3), zeros(3)).shape == (2, 3)
    refused(text, zeros(2, 4), zeros(4, 3), zeros(2), message="main: argument b: expected dimension 0 to be 3, got 2")


def test_a_return_value_is_checked_against_its_annotation() -> None:
    text = """
    def main(x: f32[n], y: f32[m]) => f32[m] {
      return packed("test.shapes.any", x) : f32[_]
    }"""
    run(text, zeros(3), zeros(3), packed={"test.shapes.any": lambda x: x})
    vm.register_func("test.shapes.any", lambda x: x, override=True)
    refused(text, zeros(3), zeros(2), message="main: match_cast result.*: expected dimension 0 to be 2, got 3")
    vm.register_func("test.shapes.any", lambda x: 1, override=True)
    refused(
        text, zeros(3), zeros(2), error=RelvmTypeError, message=r"the result of test\.shapes\.any: expected a tensor"
    )


def test_a_return_value_of_compound_size_is_checked_against_its_annotation() -> None:
    text = "def main(x: f32[n], y: f32[m]) -> f32[n * 2] = concat(x, y, axis=0)"
    run(text, zeros(3), zeros(3))
    refused(text, zeros(3), zeros(4), message="expected dimension 0 to be 6, got 7")


NESTED = "def main(t: (f32[n], ((f32[n * 2], shape[n]), (i64, bool)))) -> shape[n] = shape(n)"


@pytest.mark.parametrize(
    ("inner", "error", "message"),
    [
        (((zeros(5), vm.Shape((2,))), (1, True)), RelvmShapeError, "item 1, item 0, item 0: expected .* be 4, got 5"),
        (((zeros(4), vm.Shape((3,))), (1, True)), RelvmShapeError, "item 1, item 0, item 1: expected .* be 2, got 3"),
        (((zeros(4), vm.Shape((2,))), (1.5, True)), RelvmTypeError, "item 1, item 1, item 0: expected .*got float"),
        (((zeros(4), vm.Shape((2,))), (1,)), RelvmTypeError, "item 1, item 1: expected a tuple of 2 items, got 1"),
        (((zeros(4), vm.Shape((2,))), 7), RelvmTypeError, "item 1, item 1: expected a tuple, got int"),
        (((zeros(4, 1), vm.Shape((2,))), (1, True)), RelvmTypeError, "item 1, item 0, item 0: expected .* rank 1"),
    ],
    ids=["compound size", "size of a shape", "scalar", "fields", "no tuple", "rank"],
)
def test_shape_checks_of_nested_tuples(inner: tuple, error: type[Exception], message: str) -> None:
    refused(NESTED, (zeros(2), inner), error=error, message=f"main: argument t, {message}")
    for machine in machines(parse_module(NESTED)).values():
        good = ((zeros(4), vm.Shape((2,))), (1, True))
        assert plain(machine["main"]((zeros(2), good))) == (2,)


APPLY = "def main(f: (f32[n]) -> f32[n], x: f32[m]) -> f32[m] = f(x)"


@pytest.mark.parametrize(
    "value", [1, zeros(2), (zeros(2),), "text", None], ids=["int", "tensor", "tuple", "str", "None"]
)
def test_a_wrong_argument_where_a_closure_is_expected(value: Any) -> None:
    message = "main: argument f: expected a function, got"
    refused(APPLY, value, zeros(2), error=RelvmTypeError, message=message)


def test_a_value_of_unknown_type_that_is_called_and_is_no_closure() -> None:
    text = "def main(f: object, x: f32[m]) => object = f(x)"
    message = "expected argument 2 to be a function or closure, got a tensor"
    refused(text, zeros(2), zeros(2), error=RelvmTypeError, message=message)


def test_a_closure_that_takes_another_number_of_arguments() -> None:
    text = """
    def pair(x: f32[n], y: f32[n]) -> f32[n] = add(x, y)
    def give() -> object = @pair
    def main(f: (f32[n]) -> f32[n], x: f32[m]) -> f32[m] = f(x)"""
    for machine in machines(parse_module(text)).values():
        with pytest.raises(RelvmArgumentError, match=r"pair: expected 2 arguments .*, got 1"):
            machine["main"](machine["give"](), zeros(2))
