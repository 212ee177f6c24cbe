"""Tests of the highlighting of removed values in later stages, in their replacements or their users."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relvm.explore import Exploration, explore
from relvm.frontend.text import parse_module
from relvm.ir.builder import Builder
from relvm.ir.dtypes import F32
from relvm.ir.expr import Binding, MatchCast, Module, Var, constant
from relvm.ir.node import walk
from relvm.ir.types import TensorType
from relvm.ir.visitor import structural_equal
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline
from relvm.passes.source_locations import MOST


def explored(body: str, rest: str = "") -> Exploration:
    """Explore a function main of x: f32[n, 4] and c: bool.  Each line of `body` is one statement."""
    return explore(parse_module(f"def main(x: f32[n, 4], c: bool) {{\n{body}\n}}\n{rest}", "model.relvm"))


def lit(found: Exploration, words: str, stage: str) -> list[str]:
    """Return the lines of a stage that originate from the first line of the source that contains `words`."""
    line = next(number for number, line in enumerate(found["given"].lines, 1) if words in line.text)
    return [found[stage].lines[number - 1].text.strip() for number in found.trace("given", line)[stage]]


# A pass, a body, a part of the line that the pass removes, and a part of a line that has its origins afterwards.
REMOVED = {
    "a name for a value": ("to_anf", "a = x\nreturn relu(a)", "a = x", "= relu(x)"),
    "a call": ("inline", "a = @f(x)\nreturn exp(a)", "a = @f", "= negative(x)"),
    "a parameter": ("inline", "a = @f(x)\nreturn exp(a)", "def f(y", "= negative(x)"),
    "an operator on constants": (
        "constant_folding",
        "k = exp(const(f32[1], [0]))\na = add(x, k)\nreturn relu(a)",
        "k = exp",
        "a: f32[n, 4] = add(x, const(f32[1], [1.0]))",
    ),
    "operators on what is folded": (
        "constant_folding",
        "k = exp(const(f32[1], [0]))\nm = add(k, k)\na = add(x, m)\nreturn relu(a)",
        "k = exp",
        "a: f32[n, 4] = add(x, const(f32[1], [2.0]))",
    ),
    "arithmetic": ("constant_folding", "k = 1 + 2\nm = dim(n) + k\nreturn (x, m)", "k = 1 + 2", "m: i64 = dim(n) + 3"),
    "a condition": ("constant_folding", "a = if 1 > 0 then exp(x) else x\nreturn relu(a)", "a = if", "= relu("),
    "an item": ("constant_folding", "t = (exp(x), x)\na = t.0\nreturn relu(a)", "a = t.0", "= relu("),
    "a tuple": ("constant_folding", "t = (exp(x), x)\na = t.0\nreturn relu(a)", "t = (", "= relu("),
    "an operator that changes nothing": (
        "canonicalize",
        "a = multiply(x, const(f32[1], [1]))\nreturn relu(a)",
        "a = multiply",
        "= relu(x)",
    ),
    "what a rule sees through": (
        "canonicalize",
        "a = negative(x)\nb = negative(a)\nreturn relu(b)",
        "a = negative",
        "= relu(x)",
    ),
    "the result": (
        "canonicalize",
        "a = relu(x)\nb = negative(negative(a))\nreturn b",
        "b = negative",
        "a: f32[n, 4] =",
    ),
    "what is computed twice": (
        "cse",
        "a = exp(x)\nb = exp(x)\nreturn (relu(a), negative(b))",
        "b = exp",
        "a: f32[n, 4] = exp(x)",
    ),
    "a factor": (
        "fold_scales",
        "a = matmul(x, const(f32[4, 1], [[1], [2], [3], [4]]))\nb = multiply(a, const(f32[1], [3]))\nreturn relu(b)",
        "b = multiply",
        "a: f32[n, 1] = matmul(",
    ),
    "a factor of the result": (
        "fold_scales",
        "a = matmul(x, const(f32[4, 1], [[1], [2], [3], [4]]))\nb = multiply(a, const(f32[1], [3]))\nreturn b",
        "b = multiply",
        "a: f32[n, 1] = matmul(",
    ),
    "a factor of the input": (
        "fold_scales",
        "a = multiply(x, const(f32[1], [3]))\nb = matmul(a, const(f32[4, 1], [[1], [2], [3], [4]]))\nreturn b",
        "a = multiply",
        "b: f32[n, 1] = matmul(",
    ),
    "the scores of attention": (
        "fuse_attention",
        "q = reshape(x, shape(1, 1, n, 4))\ns = matmul(q, q, transpose_b=true)\np = softmax(s, axis=-1)\n"
        "a = matmul(p, q)\nreturn a",
        "s = matmul",
        "a: f32[1, 1, n, 4] = attention(",
    ),
    "operators that a kernel computes": (
        "lower_to_kernels",
        "a = exp(x)\nb = negative(a)\nreturn b",
        "a = exp",
        "= kernel ",
    ),
    "what only moves a value": (
        "routine",
        "a = exp(x)\nb = if c then a else x\nreturn b",
        "return b",
        '"vm.builtin.copy"',
    ),
}
FUNCTION = "private def f(y: f32[n, 4]) -> f32[n, 4] {\nreturn negative(y)\n}"


@pytest.mark.parametrize("what", REMOVED)
def test_what_a_pass_removes_is_lit_in_what_is_left(what: str) -> None:
    stage, body, removed, left = REMOVED[what]
    found = explored(body, FUNCTION if "@f" in body else "")
    assert any(left in line for line in lit(found, removed, stage))
    for later in found.names[found.names.index(stage) :]:
        is_of_kernels = later in ("kernels", "c")  # not every value is computed in a kernel
        assert is_of_kernels or lit(found, removed, later), later


def test_what_nothing_uses_becomes_nothing() -> None:
    found = explored("a = exp(x)\nb = negative(a)\nreturn relu(x)")
    assert lit(found, "a = exp", "constant_folding") and not lit(found, "a = exp", "dce")


def test_a_line_lights_no_other_value() -> None:
    found = explored("k = exp(const(f32[1], [0]))\na = add(x, k)\nb = negative(x)\nreturn (a, b)")
    assert not any("negative" in line for line in lit(found, "k = exp", "constant_folding"))


def test_the_program_is_the_same_without_origins() -> None:
    text = "def main(x: f32[4]) -> f32[4] {\n  a = add(x, exp(const(f32[1], [0])))\n  return add(a, add(x, x))\n}"
    passes = build_pipeline("c")[:10]
    named, unnamed = (run_passes(parse_module(text, name), passes) for name in ("model.relvm", ""))
    assert structural_equal(named, unnamed)


def chain(length: int) -> Module:
    """Return a chain of `length` constant operators, followed by `length` uses of the last one."""
    builder = Builder()
    with builder.function("main", [("x", TensorType(F32, (4,)))]) as (x,):
        builder.place = "value 0"
        value = builder.op("exp", constant(np.zeros(4, np.float32)))
        for number in range(length):
            builder.place = f"value {number + 1}"
            value = builder.op("tanh", value)
        for number in range(length):
            builder.place = f"use {number}"
            x = builder.op("add", x, value)
        builder.ret(x)
    return builder.module()


def test_what_stands_for_thousands_of_values_has_few_origins() -> None:
    passes = [step for step in build_pipeline("c") if step.name in ("to_anf", "constant_folding")]
    module = run_passes(chain(1000), passes)
    counts = {len(item.origins) for item in walk(module) if isinstance(item, Var) and item.name.startswith("add")}
    assert max(counts) <= MOST and len(module["main"].body.bindings) == 1000


def test_a_node_that_is_folded_is_lit_to_the_end(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    nodes = [
        onnx.helper.make_node("MatMul", ["x", "w"], ["y"], name="product"),
        onnx.helper.make_node("Mul", ["y", "s"], ["z"], name="factor"),
    ]
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", 4]) for name in ("x", "z")]
    arrays = {"w": np.ones((4, 4), np.float32), "s": np.full(1, 3, np.float32)}
    weights = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = onnx.helper.make_graph(nodes, "graph", values[:1], values[1:], weights)
    onnx.save(onnx.helper.make_model(graph), tmp_path / "model.onnx")
    found = explore(tmp_path / "model.onnx")
    (line,) = (line for line in found["routine"].lines if "call_cpacked" in line.text)
    assert ["'product'" in origin or "'factor'" in origin for origin in line.origins] == [True, True]


@pytest.mark.parametrize("operator", ["Loop", "Resize", "SequenceMap", "Unique", "StringSplit", "Attention"])
def test_every_value_of_an_imported_model_comes_from_somewhere(operator: str) -> None:
    suite = pytest.importorskip("frontend.onnx_suite")
    from relvm.frontend.onnx import from_onnx

    for name, case in list(suite.suite_cases((operator,)).items())[:10]:
        module = run_passes(from_onnx(case.model), build_pipeline("c")[:-4])
        bound = [item.var for item in walk(module) if isinstance(item, Binding | MatchCast)]
        assert all(var.origin for var in bound), name
