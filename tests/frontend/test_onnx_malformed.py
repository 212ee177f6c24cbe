"""Malformed models are rejected with an error that describes the problem, and have no other effect."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from frontend.onnx_models import make_model, parse_model
from onnx import ModelProto, helper, numpy_helper
from support.modes import machines

from relvm.errors import RelvmArgumentError, RelvmError
from relvm.frontend.onnx import from_onnx

F, I64 = np.float32, np.int64
X = ("x", F, [2, 3])


def node(op: str, inputs: str = "x", outputs: str = "y", **attributes) -> ModelProto:
    """Return a model of one node.  Its inputs can be x, f32[2, 3], and the constants i, i64[1], and k, i64[]."""
    made = helper.make_node(op, inputs.split(), outputs.split(), **attributes)
    return make_model([made], [X], outputs.split(), {"i": np.array([2], I64), "k": np.array(2, I64)})


def text(body: str, head: str = "float[2, 3] x, bool c", result: str = "float[2, 3] y") -> ModelProto:
    return parse_model(f"g ({head}) => ({result}) {{ {body} }}")


def changed(change: Callable[[ModelProto], object], model: ModelProto | None = None) -> ModelProto:
    model = model or node("Relu")
    change(model)
    return model


def with_functions(count: int, calls: int) -> ModelProto:
    """Return a model with `count` functions, each of which calls the next one `calls` times."""
    model = make_model([helper.make_node("f0", ["x"], ["y"], domain="own")], [X], ["y"])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    for i in range(count):
        names = [f"v{j}" for j in range(calls + 1)]
        one = {"op_type": f"f{i + 1}", "domain": "own"} if i + 1 < count else {"op_type": "Neg"}
        nodes = [helper.make_node(inputs=[a], outputs=[b], **one) for a, b in itertools.pairwise(names)]
        model.functions.append(helper.make_function("own", f"f{i}", names[:1], names[-1:], nodes, opsets))
    return model


def nested(depth: int) -> ModelProto:
    """Return a model with nested Ifs."""
    model = make_model([], [X, ("c", bool, [])], ["y"])
    graph = model.graph
    for _ in range(depth):
        outer = graph.node.add(op_type="If", input=["c"], output=[graph.output[0].name])
        for name in ("else_branch", "then_branch"):
            attribute = outer.attribute.add(name=name, type=5)
            attribute.g.output.add(name="r")
            if name == "else_branch":
                attribute.g.node.add(op_type="Neg", input=["x"], output=["r"])
        graph = attribute.g
    graph.node.add(op_type="Neg", input=["x"], output=[graph.output[0].name])
    return model


BRANCH = "then_branch = t () => (z) { z = Neg (x) }, else_branch = e () => (z) { z = %s }"

GRAMS = {"max_gram_length": 1, "min_gram_length": 1, "mode": "TF", "ngram_counts": [0], "pool_int64s": [1]}

# For each model, a pattern that the error message must match.
REFUSED = {
    "a value made twice": (
        text("y = Relu (x) y = Neg (x)"),
        r"node 'y' \(Neg\) redefines 'y', which node 'y' \(Relu\)",
    ),
    "a value of one node twice": (node("Split", "x", "y y", axis=1), "redefines 'y', which"),
    "an input made again": (text("x = Relu (x) y = Neg (x)"), "redefines 'x', which the graph already defines"),
    "a circle": (
        text("a = Add (x, b) b = Neg (a) y = Neg (b)"),
        "uses 'b' before .* computes it: nodes must be topologically sorted and acyclic",
    ),
    "a node of itself": (text("y = Add (x, y)"), "uses 'y' before"),
    "a branch uses what is made of it": (
        text(f"y = If (c) <{BRANCH % 'Neg (a)'}> a = Relu (y)"),
        "value 'a' is used, but neither an input nor an earlier node defines it",
    ),
    "inputs of one name": (changed(lambda m: m.graph.input.add().CopyFrom(m.graph.input[0])), "two inputs.*'x'"),
    "initializers of one name": (
        changed(lambda m: m.graph.initializer.add().CopyFrom(m.graph.initializer[0])),
        "two initializers.*'i'",
    ),
    "an output that nothing makes": (changed(lambda m: m.graph.output.add(name="z")), "test: output 'z'"),
    "opsets that differ": (
        changed(lambda m: m.opset_import.add(domain="ai.onnx", version=11)),
        "contains both 17 and 11",
    ),
    "opset 0": (changed(lambda m: setattr(m.opset_import[0], "version", 0)), "opset 0 of ai.onnx"),
    "an opset that no int holds": (
        changed(lambda m: m.opset_import.add(domain="my.domain", version=2**31)),
        "opset 2147483648 of my.domain, expected an integer of 1 to 2147483647",
    ),
    "an opset of the future": (changed(lambda m: setattr(m.opset_import[0], "version", 10**6)), "opset 1000000"),
    "an IR of the future": (changed(lambda m: setattr(m, "ir_version", 10**6)), "ir_version 1000000"),
    "a name of a megabyte": (node("Q" * 10**6), "operator Q{100}[.]{3} is not supported$"),
    "too few inputs": (node("Add"), r"Add, opset 17\): expected 2 inputs, got 1"),
    "too many inputs": (node("Relu", "x x"), "expected 1 input, got 2"),
    "too many outputs": (node("Relu", "x", "y z"), "expected 1 output, got 2"),
    "an input left out": (changed(lambda m: m.graph.node[0].input.__setitem__(0, "")), r"input 0 \(X\) is missing"),
    "an attribute too many": (node("Relu", axis=1), "unknown attribute axis"),
    "an attribute twice": (
        changed(
            lambda m: m.graph.node[0].attribute.add().CopyFrom(m.graph.node[0].attribute[0]), node("Elu", alpha=1.0)
        ),
        "alpha is given twice",
    ),
    "an attribute missing": (node("Cast"), "attribute to is missing"),
    "an attribute of another type": (node("Softmax", axis=1.0), "axis has type FLOAT, expected INT"),
    "a flag that is neither": (node("ReduceMax", keepdims=7), "keepdims is 7, expected 0 or 1"),
    "an attribute of a function": (
        changed(lambda m: m.graph.node[0].attribute.add(name="alpha", type=1, ref_attr_name="a"), node("Elu")),
        "alpha refers to a function attribute",
    ),
    "an element type that is not taken": (node("Gather", "x x"), r"input 1 \(indices\) is tensor\(float\)"),
    "element types that differ": (
        node("Add", "x i"),
        r"input 1 \(B\) is tensor\(int64\), but input 0 is tensor\(float\)",
    ),
    "an element type stated": (text("y = Relu (x)", result="int64[2, 3] y"), "the element type INT64"),
    "a default of another type": (
        changed(lambda m: m.graph.initializer.append(numpy_helper.from_array(np.array([1]), "x"))),
        "initializer 'x' is i64",
    ),
    "branches of two outputs and one": (
        text(f"y = If (c) <{BRANCH.replace('(z) { z = Neg (x) }', '(z, a) { z = Neg (x) a = Neg (x) }') % 'Neg (x)'}>"),
        "0 inputs and 2 outputs",
    ),
    "branches of two element types": (
        text(f"y = If (c) <{BRANCH % 'Cast <to = 7> (x)'}>"),
        "branches return incompatible types: f32.*i64",
    ),
    "a condition of two elements": (text(f"y = If (c) <{BRANCH % 'Neg (x)'}>", "float[2, 3] x, bool[2] c"), "elements"),
    "a loop without an end": (
        text("y = Loop (, , x) <body = b (int64 i, bool d, float[2, 3] s) => (bool d, float[2, 3] t) { t = Neg (s) }>"),
        "never ends",
    ),
    "more sequences than inputs": (
        changed(
            lambda m: setattr(m.opset_import[0], "version", 8),
            node("Scan", "i x", body=helper.make_graph([], "b", [], []), num_scan_inputs=10**9),
        ),
        "num_scan_inputs is 1000000000",
    ),
    "a function that repeats without bound": (with_functions(40, 2), r"the model has \d+ nodes after inlining"),
    "functions too deep": (with_functions(60, 1), "function calls are nested more than"),
    "graphs too deep": (nested(60), "subgraphs are nested more than"),
    "messages too deep": (nested(300), r"\[0\], byte \d+: messages are nested more deeply, but the limit is 200"),
    "an axis outside": (node("Flatten", axis=3), r"axis is 3, which is outside \[-2, 3\)"),
    "an axis of a norm outside": (node("LayerNormalization", "x x", axis=2), r"axis is 2, which is outside \[-2, 2\)"),
    "more axes than there can be": (
        make_model([helper.make_node("Reshape", ["x", "s"], ["y"])], [X], ["y"], {"s": np.array([6, *[1] * 99])}),
        "rank 100 exceeds the maximum rank of 64",
    ),
    "a Range to infinity": (
        make_model(
            [helper.make_node("Range", ["a", "b", "d"], ["y"])], [], ["y"], {"a": F(0), "b": F(np.inf), "d": F(1)}
        ),
        "Range",
    ),
    "fewer steps than axes": (
        text("a = Constant <value_ints = [0, 1]> () s = Constant <value_ints = [1]> () y = Slice (x, a, a, a, s)"),
        "the node is malformed",
    ),
    "fewer axes than bounds": (
        text("b = Constant <value_ints = [1, 1]> () a = Constant <value_ints = [1]> () y = Slice (x, b, b, a, b)"),
        "the node is malformed",
    ),
    "a scale of infinity": (
        make_model([helper.make_node("Resize", ["x", "", "s"], ["y"])], [X], ["y"], {"s": F([1, np.inf])}),
        "Resize",
    ),
    "a window of 2^60 channels": (
        make_model([helper.make_node("LRN", ["x"], ["y"], size=2**60)], [("x", F, [1, 2, 3, 3])], ["y"]),
        "size is 1152921504606846976, expected 1 to",
    ),
    "a vector of 8 TiB": (
        node("TfIdfVectorizer", "i", **GRAMS, max_skip_count=0, ngram_indexes=[2**40]),
        "ngram_indexes",
    ),
    "two sequences for one element": (
        node("TfIdfVectorizer", "i", **(GRAMS | {"pool_int64s": [1, 2]}), max_skip_count=0, ngram_indexes=[0, 0]),
        "duplicate ngram_indexes",
    ),
    "sequences of elements far apart": (
        node("TfIdfVectorizer", "i", **GRAMS, max_skip_count=2**60, ngram_indexes=[0]),
        "max_skip_count",
    ),
    "more sizes than a tensor has": (
        make_model([helper.make_node("ConstantOfShape", ["s"], ["y"])], [("s", I64, [2**40])], ["y"]),
        "at most 1024 elements",
    ),
    "an axis of scales outside": (
        make_model(
            [helper.make_node("QuantizeLinear", ["x", "s"], ["y"], axis=-(2**63))], [X], ["y"], {"s": F([1, 2])}
        ),
        "QuantizeLinear: axis is",
    ),
    "a tensor of 2^66 bytes": (
        make_model([helper.make_node("ConstantOfShape", ["s"], ["y"])], [], ["y"], {"s": np.array([2**60, 16])}),
        "exceeds 2.63 bytes",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    model, message = REFUSED[name]
    with pytest.raises(RelvmError, match=message):
        from_onnx(model)


@pytest.mark.parametrize("model", [None, 5, ModelProto().graph])
def test_what_is_no_model_at_all(model) -> None:
    with pytest.raises(RelvmArgumentError, match="expected a path, bytes"):
        from_onnx(model)


# Invalid sizes that are only known at run time: the operator, the sizes and the inputs.
LATE = [
    ("ConstantOfShape", [2**60, 2**60], "s"),
    ("ConstantOfShape", [-5], "s"),
    ("Expand", [2**62, 2, 3], "x s"),
    ("Tile", [2**62, 2**62], "x s"),
    ("Reshape", [2**62, 6], "x s"),
]


@pytest.mark.parametrize(("op", "sizes", "inputs"), LATE)
def test_sizes_without_bound_fail_when_they_come(op: str, sizes: list[int], inputs: str) -> None:
    names = inputs.split()
    given = {"x": (X, np.ones((2, 3), F)), "s": (("s", I64, [len(sizes)]), np.array(sizes, I64))}
    model = make_model([helper.make_node(op, names, ["y"])], [given[name][0] for name in names], ["y"])
    for machine in machines(from_onnx(model)).values():
        with pytest.raises(RelvmError):
            machine["main"](*(given[name][1] for name in names))


# Unusual but valid models.
ACCEPTED = {
    "an input is an output": text("", result="float[2, 3] x"),
    "an output twice": changed(lambda m: m.graph.output.add().CopyFrom(m.graph.output[0])),
    "a default": changed(lambda m: m.graph.initializer.append(numpy_helper.from_array(np.ones((2, 3), F), "x"))),
    "sizes of other names": text("y = Relu (x)", "float[n, 3] x", "float[m, 3] y"),
    "an opset twice": changed(lambda m: m.opset_import.add(domain="ai.onnx", version=17)),
    "a branch's value of a name around it": text(f"y = If (c) <{BRANCH.replace('z', 'y') % 'Neg (x)'}>"),
    "graphs in graphs": nested(40),
    "functions of functions": with_functions(40, 1),
    "a long chain": make_model(
        [helper.make_node("Neg", [f"v{i}" if i else "x"], [f"v{i + 1}"]) for i in range(10**4)], [X], ["v10000"]
    ),
    "names of no letters": make_model([helper.make_node("Neg", ["a\0b"], ["\n"])], [("a\0b", F, [2])], ["\n"]),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str) -> None:
    assert from_onnx(ACCEPTED[name])["main"].body.type is not None


# ONNX requires topological order, but tools that modify models often do not maintain it.
UNORDERED = {
    "two nodes": "y = Neg (a) a = Relu (x)",
    "three nodes": "b = Neg (a) y = Neg (d) d = Neg (b) a = Relu (x)",
    "behind an If that uses it": f"y = If (c) <{BRANCH % 'Neg (late)'}> late = Relu (x)",
    "inside a branch": "y = If (c) <then_branch = t () => (z) { z = Neg (x) }, "
    "else_branch = e () => (z) { z = Neg (a) a = Relu (x) }>",
}


@pytest.mark.parametrize("name", UNORDERED)
def test_nodes_may_stand_in_any_order(name: str) -> None:
    model = text(UNORDERED[name])
    before = model.SerializeToString()
    x = np.array([[1, -2, 3], [-4, 5, -6]], F)
    for machine in machines(from_onnx(model)).values():
        np.testing.assert_array_equal(machine["main"](x, np.array(False)), -np.maximum(x, 0))
    assert model.SerializeToString() == before
