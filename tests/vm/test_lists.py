"""Tests of lists and nullable values, in every mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.list_programs import function
from support.modes import MODES, machines, plain, run_everywhere

from relvm import vm
from relvm.errors import RelvmError, RelvmIndexError, RelvmShapeError, RelvmTypeError
from relvm.frontend.text import parse_module
from relvm.ir.interpreter import evaluate
from relvm.ir.printer import print_module
from relvm.ir.type_inference import infer_types
from relvm.ir.visitor import structural_equal

X = np.arange(12, dtype=np.float32).reshape(3, 4)

PROGRAM = """
def everything(xs: list[f32[_, _]], x: f32[n, 4], i: i64, o: optional[f32[n, 4]])
    -> (f32[_, _], f32[_, _, _], i64, list[f32[4]], list[f32[_, _]], optional[f32[n, 4]]) {
  a = list_append(xs, x)
  b = list_insert(a, -1, x)
  c = list_erase(b, i)
  rows = list_unstack(x, axis=0)
  y = if is_null(o) then x else {
    value = match_cast(o, f32[n, 4])
    return add(value, x)
  }
  kept: optional[f32[n, 4]] = if i == 0 then y else null
  return (list_concat(c, axis=0), list_stack(list_append(make_list(x), y), axis=1), list_length(c), rows, c, kept)
}

def sizes(x: f32[n], xs: list[f32[n]]) -> list[f32[n]] = list_append(xs, x)

def twice(x: f32[n], ys: list[f32[n * 2]]) -> i64 = list_length(ys)

def deep(l: list[(i64, optional[list[f32[2]]])]) -> i64 = list_length(l)

def value(o: optional[f32[n]], x: f32[n]) -> f32[n] {
  y = match_cast(o, f32[n], "the value")
  return add(x, y)
}
"""


@pytest.mark.parametrize(
    ("xs", "i", "o"), [([X, X[:1]], 0, None), ([], 1, X), ([X[:0]], -1, X), ((X,), 2, None)], ids=range(4)
)
def test_all_operators(xs: Any, i: int, o: Any) -> None:
    run_everywhere(parse_module(PROGRAM), xs, X, i, o, name="everything")


def test_types_can_be_written_and_read() -> None:
    module = infer_types(parse_module(PROGRAM))
    assert structural_equal(parse_module(print_module(module)), module)


@pytest.fixture(params=MODES, scope="module")
def machine(request: pytest.FixtureRequest) -> vm.VirtualMachine:
    return vm.VirtualMachine(vm.build(parse_module(PROGRAM), request.param))


WRONG = [
    ("sizes", (X[0], 3), RelvmTypeError, "sizes: argument xs: expected a list, got int"),
    ("sizes", (X[0], [X[0], X]), RelvmTypeError, "argument xs, item 1: expected a tensor of rank 1 and dtype f32"),
    ("sizes", (X[0], [X[0, :2]]), RelvmShapeError, "argument xs, item 0: expected dimension 0 to be 4, got 2"),
    ("twice", (X[0], [X[0, :2]]), RelvmShapeError, "argument ys, item 0: expected dimension 0 to be 8, got 2"),
    ("deep", ([(1, None), (2,)],), RelvmTypeError, "argument l, item 1: expected a tuple of 2 items, got tuple"),
    ("deep", ([(1.5, None)],), RelvmTypeError, "argument l, item 0, item 0: expected an i64 scalar, got float"),
    ("deep", ([(1, [None])],), RelvmTypeError, "argument l, item 0, item 1, item 0: expected a tensor of rank 1"),
    ("deep", ([(1, [X[0]])],), RelvmShapeError, "item 0, item 1, item 0: expected dimension 0 to be 2, got 4"),
    ("value", (None, X[0]), RelvmTypeError, "the value: expected a tensor of rank 1 and dtype f32, got nil"),
    ("value", (X, X[0]), RelvmTypeError, "argument o: expected a tensor of rank 1 and dtype f32"),
    ("everything", ([], X, 5, None), RelvmIndexError, "list_erase: index 5 is out of range; the list has 2 items"),
]


@pytest.mark.parametrize(("name", "args", "error", "message"), WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_told(machine: vm.VirtualMachine, name: str, args: tuple, error: type, message: str) -> None:
    with pytest.raises(error) as raised:
        machine[name](*args)
    assert message in str(raised.value)
    with pytest.raises(error):
        evaluate(infer_types(parse_module(PROGRAM)), name, *args)


def test_deep_lists_are_taken(machine: vm.VirtualMachine) -> None:
    assert machine["deep"]([(1, None), (2, []), (3, [X[0, :2], X[1, :2]])]) == 3


def test_an_argument_that_is_kept_is_not_changed(machine: vm.VirtualMachine) -> None:
    given = [X[0]]
    machine.set_input("sizes", X[1], given)
    for _ in range(2):
        machine.invoke_stateful("sizes")
        assert len(machine.get_outputs("sizes")) == 2
    machine.clear_input("sizes")
    assert len(given) == 1


LOOP = """
def main(n: i64, x: f32[2]) -> (list[f32[2]], i64) {
  loop = fn loop(i: i64, l: list[f32[2]], bad: i64) -> (list[f32[2]], i64) {
    return if i == n then (l, bad) else {
      before = list_length(l)
      one = list_append(l, x)
      two = if i % 2 == 0 then list_append(one, x) else one
      return loop(i + 1, two, bad + prim.i64(before != (3 * i + 1) // 2))
    }
  }
  return loop(0, make_list(), 0)
}
"""


@pytest.mark.parametrize("mode", MODES)
def test_a_hundred_thousand_appends(mode: str) -> None:
    """Each append must be in place.  Copying the list at each append would take 10**10 steps."""
    main = vm.VirtualMachine(vm.build(parse_module(LOOP), mode))["main"]
    made, bad = main(100_000, X[0, :2])
    assert (len(made), bad) == (150_000, 0)


COUNT = 40


@pytest.mark.parametrize("first", [0, 1000, 2000])
def test_random_programs(first: int) -> None:
    """The reference interpreter, bytecode and compiled code agree.  Bytecode and compiled code raise equal errors."""
    module = parse_module("\n".join(map(function, range(first, first + COUNT))))
    typed, made = infer_types(module), machines(module, [(mode, "numpy") for mode in MODES])
    for k in range(first, first + COUNT):
        for args in ((k % 5, [1, 2], [[3], []], None), (0, [], [], 4), (-2, [5], [[1, 2, 3]] * 3, k)):
            expected = outcome(lambda k=k, args=args: evaluate(typed, f"f{k}", *args))
            bytecode, compiled = (outcome(lambda k=k, m=m, args=args: plain(m[f"f{k}"](*args))) for m in made.values())
            assert bytecode == compiled, f"{function(k)} of {args}"
            # Compiled programs omit unused calls, which can fail in the reference interpreter.
            assert bytecode == expected or isinstance(expected, type), f"{function(k)} of {args}"


def outcome(run: Any) -> Any:
    try:
        return run()
    except RelvmError as error:
        return type(error)
