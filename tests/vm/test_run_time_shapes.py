"""Tests of sizes known only at run time: operators require relations between them, which are checked."""

from __future__ import annotations

import numpy as np
import pytest
from support.modes import machines, run_everywhere

from relvm import vm
from relvm.errors import RelvmShapeError
from relvm.frontend.text import parse_module
from relvm.ir.interpreter import evaluate
from relvm.ir.type_inference import infer_types

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def expect_shape_error(text: str, message: str, *args) -> None:
    for machine in machines(parse_module(text)).values():
        with pytest.raises(RelvmShapeError, match=message):
            machine["main"](*args)


ADD = "def main(x: f32[_, _], y: f32[_, _]) -> f32[_, _] = add(x, y)"


def test_two_arguments_of_unknown_sizes() -> None:
    run_everywhere(parse_module(ADD), X, X + 1)
    expect_shape_error(ADD, "main: add: argument y: expected dimension 1 to be 3, got 2", X, X[:, :2].copy())


def test_what_has_unknown_sizes_is_used_by_a_group_of_operators() -> None:
    text = "def main(x: f32[n, n], y: f32[_, _]) -> f32[] = add(sum(x), sum(y))"
    for machine in machines(parse_module(text)).values():
        assert machine["main"](X[:, :2].copy(), X).item() == X[:, :2].sum() + X.sum()


def test_a_size_that_happens_to_be_1_is_not_repeated() -> None:
    expect_shape_error(ADD, "main: add: argument y: expected dimension 0 to be 2, got 1", X, X[:1])


def test_a_size_known_to_be_1_is_repeated() -> None:
    text = "def main(x: f32[_, _], y: f32[1, m]) -> object = add(x, y)"
    run_everywhere(parse_module(text), X, X[:1])
    expect_shape_error(text, "main: add: argument x: expected dimension 1 to be 2, got 3", X, X[:1, :2].copy())


def test_a_named_size_and_one_without_a_name() -> None:
    text = "def main(x: f32[_, _], w: f32[k, 4]) -> object = matmul(x, w)"
    run_everywhere(parse_module(text), X, np.ones((3, 4), np.float32))
    expect_shape_error(text, "main: matmul: argument a: expected .*1 to be 2, got 3", X, np.ones((2, 4), np.float32))


def test_a_long_way_through_operators_branches_and_tuples() -> None:
    text = """
    def main(x: f32[_, _], y: f32[_, _], c: bool) -> object {
      z = add(x, y)
      t = (z, multiply(z, x))
      w = if c then matmul(transpose(t.0, perm=(1, 0)), t.1) else matmul(transpose(x, perm=(1, 0)), x)
      return (w, add(exp(z), y), concat(x, y, z, axis=0))
    }"""
    for c in (True, False):
        run_everywhere(parse_module(text), X, X + 1, c)
    expect_shape_error(text, "main: add: argument y: expected dimension 0 to be 2, got 1", X, X[:1], True)


def test_any_number_of_arguments() -> None:
    text = "def main(x: f32[_, _], y: f32[_, _]) -> object = concat(x, x, y, axis=0)"
    run_everywhere(parse_module(text), X, X[:1])
    expect_shape_error(text, r"main: concat: argument xs\[2\]: expected .*1 to be 3, got 2", X, X[:, :2].copy())


def test_a_compound_size_is_related_to_its_factor() -> None:
    text = "def main(x: f32[_, _, _], w: f32[2, m, 3]) -> object = conv(x, w, groups=2)"
    w = np.ones((2, 1, 3), np.float32)
    run_everywhere(parse_module(text), np.ones((1, 2, 4), np.float32), w)
    expect_shape_error(text, "main: conv: argument x: expected .*1 to be 2, got 3", np.ones((1, 3, 4), np.float32), w)


def test_a_size_that_an_operator_needs_to_be_1() -> None:
    text = "def main(x: f32[_, _]) -> object = squeeze(x, axes=(0,))"
    run_everywhere(parse_module(text), X[:1])
    expect_shape_error(text, "main: squeeze: argument x: expected dimension 0 to be 1, got 2", X)


def test_a_square_from_one_argument_given_twice() -> None:
    text = "def main(x: f32[_, _]) -> object = matmul(x, x)"
    run_everywhere(parse_module(text), X[:, :2].copy())
    expect_shape_error(text, "main: matmul: argument a: expected dimension 1 to be 2, got 3", X)


def test_two_sizes_with_names_must_be_proven_equal() -> None:
    with pytest.raises(RelvmShapeError, match=r"main: .*add: dimension 0 does not broadcast: n and m"):
        vm.build(parse_module("def main(x: f32[n], y: f32[m]) = add(x, y)"))


def test_sizes_that_cannot_be_equal_are_found_while_compiling() -> None:
    text = "def main(x: f32[_], y: f32[3], z: f32[4]) -> object = add(where(less(x, x), x, y), z)"
    with pytest.raises(RelvmShapeError, match="main: add: dimension 0 does not broadcast: 3 and 4"):
        vm.build(parse_module(text))


@pytest.mark.parametrize(
    ("dim", "args"), [("n * 4", (2**62, 1)), ("n // m", (3, 0)), ("n % m", (3, 0)), ("-n", (-(2**63), 1))]
)
def test_a_dimension_that_has_no_value_is_an_error_in_every_mode(dim, args) -> None:
    module = parse_module(f"def main(n: i64(n), m: i64(m)) -> i64 = dim({dim})")
    with pytest.raises(RelvmShapeError):
        evaluate(infer_types(module), "main", *args)
    for machine in machines(module).values():
        with pytest.raises(RelvmShapeError):
            machine["main"](*args)
