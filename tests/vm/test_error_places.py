"""Errors in programs have a source location, in the same form for all passes."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest
from modes import MODES

from relvm import ops, vm
from relvm.errors import (
    RelvmArgumentError,
    RelvmError,
    RelvmIndexError,
    RelvmShapeError,
    RelvmTypeError,
    RelvmUnsupportedError,
    located,
)
from relvm.frontend.script import module_of, script
from relvm.frontend.text import parse_module
from relvm.ir.builder import Builder
from relvm.ir.dtypes import F32
from relvm.ir.types import TensorType

# The error, the program, its error class, and the location at the start of the message.
TEXTS = {
    "an operator inside an expression": (
        "def main(x: f32[4]) {\n  a = relu(x)\n  return matmul(a, add(a, const(f32[3], [1, 2, 3])))\n}",
        RelvmShapeError,
        "model.relvm:3:20: main: add: ",
    ),
    "the result's type": ("def main(x: f32[4]) -> f32[3] {\n  return x\n}", RelvmTypeError, "model.relvm:2:10: main: "),
    "a binding": ("def main(x: f32[4]) {\n  a = x.0\n  return a\n}", RelvmTypeError, "model.relvm:2:3: main: a: "),
    "an annotated type": ("def main(x: f32[4]) {\n  a: f32[5] = x\n  return a\n}", RelvmTypeError, "model.relvm:2:3: "),
    "a condition": (
        "def main(x: f32[4]) {\n  return if x then x else x\n}",
        RelvmTypeError,
        "model.relvm:2:10: main: the condition",
    ),
    "a call": (
        "def main(x: f32[4]) -> f32[4] {\n  return @f(x, x)\n}\ndef f(x: f32[4]) -> f32[4] = x",
        RelvmArgumentError,
        "model.relvm:2:10: main: f takes",
    ),
    "a branch": (
        "def main(x: f32[4], c: bool) {\n  a = if c then x else {\n    b = x.1\n    return b\n  }\n  return a\n}",
        RelvmTypeError,
        "model.relvm:3:5: main: b: ",
    ),
    "a local function": (
        "def main(x: f32[4]) {\n  f = fn (y: f32[n]) {\n    return transpose(y, perm=(1,))\n  }\n  return f(x)\n}",
        RelvmTypeError,
        "model.relvm:3:12: main: ",
    ),
    "what follows a local function": (
        "def main(x: f32[4]) {\n  f = fn (y: f32[n]) {\n    return y\n  }\n  return (f, x).2\n}",
        RelvmTypeError,
        "model.relvm:5:10: main: ",
    ),
    "a parameter": ("def f() = 1\ndef main(x: f32[n + 1]) = x", RelvmError, "model.relvm:2:10: main: dimension n"),
    "an effect": (
        'def main(x: f32[4]) -> object {\n  return packed("f", x)\n}',
        RelvmTypeError,
        "model.relvm:1:9: main: declared as pure with ->",
    ),
    "what has no kernel": (
        "def main(x: f32[...]) {\n  a = exp(x)\n  return a\n}",
        RelvmUnsupportedError,
        "model.relvm:2:3: exp: an argument has type",
    ),
    "several concatenations of unknown ranks": (
        "def main(x: f32[...], y: f32[...]) {\n  a = concat(x, y, axis=0)\n  return concat(a, y, axis=0)\n}",
        RelvmUnsupportedError,
        "model.relvm:2:3: concat: an argument has type",
    ),
    "a product of scaled elements and of a matrix of unknown rank": (
        "def main(x: f32[2, 3], w: f32[...]) {\n  a = multiply(x, const(f32[], 2.0))\n  return matmul(a, w)\n}",
        RelvmUnsupportedError,
        "model.relvm:3:10: matmul: an argument has type",
    ),
}


@pytest.mark.parametrize("what", TEXTS)
def test_a_message_begins_with_the_place_in_the_text(what: str) -> None:
    text, kind, start = TEXTS[what]
    with pytest.raises(kind) as raised:
        vm.build(parse_module(text, "model.relvm"))
    assert str(raised.value).startswith(start)
    assert start.startswith(f"{raised.value.origin}: ")
    assert str(raised.value).count("model.relvm") == 1


@pytest.mark.parametrize(
    ("operator", "attributes", "message"), [("concat", {"axis": 3}, "main: concat: "), ("reshape", {}, "reshape")]
)
def test_a_builder_says_the_line_that_called_it(operator: str, attributes: dict[str, int], message: str) -> None:
    builder = Builder()
    with (
        pytest.raises(RelvmError) as raised,
        builder.function("main", [("x", TensorType(F32, (4,)))]) as (x,),
    ):
        line = inspect.currentframe().f_lineno + 1
        builder.op(operator, x, **attributes)
    assert str(raised.value).startswith(f"{__file__}:{line}: {message}")


def test_a_builder_that_has_a_place_leaves_it_to_who_set_it() -> None:
    builder = Builder()
    builder.place = "row 7"
    with (
        pytest.raises(RelvmTypeError, match=r"^main: concat: "),
        builder.function("main", [("x", TensorType(F32, (4,)))]) as (x,),
    ):
        builder.op("concat", x, axis=3)


@script
def unknown(x: "f32[...]") -> "f32[...]":  # noqa: F821, UP037
    return ops.exp(x)


def test_what_a_script_cannot_be_built_to_has_its_line() -> None:
    with pytest.raises(RelvmUnsupportedError, match=r": exp: an argument has type f32\[\.\.\.\]") as raised:
        vm.build(module_of(unknown))
    file, line, _ = raised.value.origin.rsplit(":", 2)
    assert Path(file).read_text().split("\n")[int(line) - 1].strip() == "return ops.exp(x)"


def test_what_a_model_cannot_be_built_to_has_its_node() -> None:
    onnx = pytest.importorskip("onnx")
    from relvm.frontend.onnx import from_onnx

    node = onnx.helper.make_node("Exp", ["x"], ["y"], name="growth")
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in ("x", "y")]
    graph = onnx.helper.make_graph([node], "graph", values[:1], values[1:])
    with pytest.raises(RelvmUnsupportedError, match=r"node 'growth' \(Exp, opset \d+\): .*an argument has type"):
        vm.build(from_onnx(onnx.helper.make_model(graph)))


def test_a_place_is_stated_once() -> None:
    error = located(RelvmTypeError("no"), "a:1")
    assert str(located(error, "b:2")) == "a:1: no" and isinstance(error, RelvmTypeError)
    unknown_place = RelvmTypeError("no")
    assert located(unknown_place, "") is unknown_place


# ---- run time ----


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("failing", ["matched", "branch", "operator", "tail", "closure", "long_branch"])
def test_a_run_that_fails_says_where_in_the_source_each_call_is(mode: str, failing: str) -> None:
    """This holds for bytecode and for compiled functions that are built with debug=True."""
    text = """
def matched(x: f32[n], k: i64) -> f32[4] {
  y = match_cast(x, f32[4])
  return y
}
def branch(x: f32[n], k: i64) -> i64 {
  a = if k == 0 then {
    b = k + 1
    c = 7 % k
    return b + c
  } else k
  return a
}
def operator(x: f32[n], k: i64) -> i64 {
  return 7 // k
}
def tail(x: f32[n], k: i64) -> i64 {
  z = k + 1
  return @operator(x, z - 1)
}
def closure(x: f32[n], k: i64) -> i64 {
  f = if k == 0 then @operator else @tail
  z = f(x, k)
  return z + 1
}
def long_branch(x: f32[n], k: i64) -> i64 = if k == 0 then {
  a0 = k + 1
LINES
  b = a220 // k
  return b + 1
} else k
"""
    steps = "\n".join(f"  a{i} = a{i - 1} + k" for i in range(1, 221))  # too many for one C function
    text = text.replace("LINES", steps)
    places = {
        "matched": ["in matched at instruction 2 (<text>:3:3)"],
        "branch": ["in branch at instruction 5: c (<text>:9:5)"],
        "operator": ["in operator at instruction 2: result (<text>:15:10)"],
        "tail": ["in operator at instruction 2: result (<text>:15:10)"],
        "closure": [
            "in operator at instruction 2: result (<text>:15:10)",
            "in closure at instruction 7: z (<text>:23:3)",
        ],
        "long_branch": ["in long_branch at instruction 225: b (<text>:248:3)"],
    }
    machine = vm.VirtualMachine(vm.build(parse_module(text), mode, debug=True))
    with pytest.raises(RelvmError) as caught:
        machine[failing](np.ones(3, np.float32), 0)
    assert [line.strip() for line in caught.value.__notes__[0].splitlines()] == places[failing]


@pytest.mark.parametrize("target", ["c", "bytecode"])
@pytest.mark.parametrize("mode", MODES)
def test_a_run_that_fails_in_an_operator_says_which(mode: str, target: str) -> None:
    """This does not need debug=True.  The file is not named, because the executable does not depend on it."""
    text = """def main(x: f32[n], i: i64[2], j: i64) -> f32[2] {
  a = relu(gather(add(x, x), i))
  b = gather(x, i)
  c = 7 // j
  return add(a, b)
}"""
    machine = vm.VirtualMachine(vm.build(parse_module(text, "folder/model.relvm"), mode, target))
    x = np.ones(4, np.float32)
    for i, j, kind, place in [([1, 7], 1, RelvmIndexError, "line 2, column 12"), ([1, 2], 0, RelvmError, "line 4")]:
        with pytest.raises(kind) as caught:
            machine["main"](x, np.int64(i), j)
        assert f"({place}" in caught.value.__notes__[0]
        assert "folder" not in caught.value.__notes__[0]


@pytest.mark.parametrize("mode", MODES)
def test_it_says_so_too_where_a_debugger_has_called_the_machine_meanwhile(mode: str) -> None:
    text = """
def seven(k: i64) -> i64 = k + 7
def main(k: i64) -> i64 {
  c = 7 // k
  return c + 1
}
"""
    machine = vm.VirtualMachine(vm.build(parse_module(text), mode, debug=True))
    told = []
    machine.attach_debugger(lambda failed: told.append(machine["seven"](1)))
    with pytest.raises(RelvmError) as caught:
        machine["main"](0)
    assert told == [8]
    assert caught.value.__notes__ == ["  in main at instruction 1: c (<text>:4:3)"]
