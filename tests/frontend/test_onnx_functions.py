"""Tests of functions of models and of ONNX: attributes, scopes, opsets, nested calls, and unsupported functions."""

from __future__ import annotations

import numpy as np
import pytest
from frontend.onnx_answers import assert_answers, onnxruntime_answers, outputs
from frontend.onnx_models import onnx
from onnx import parser
from support.modes import run_everywhere

from relvm.errors import RelvmFormatError, RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.onnx import from_onnx
from relvm.ir.types import TensorType

X = np.random.default_rng(3).standard_normal((2, 3)).astype(np.float32)


def model_of(graph: str, *functions: str, opset: int = 18) -> onnx.ModelProto:
    """Return a model with a graph and functions of the domain `own`, all in ONNX's text form."""
    head = f'<ir_version: 10, opset_import: ["" : {opset}, "own" : 1]>'
    model = parser.parse_model(f"{head} {graph}")
    model.functions.extend(parser.parse_function(function) for function in functions)
    return model


def check(model: onnx.ModelProto, *arrays: np.ndarray) -> None:
    assert_answers(outputs(run_everywhere(from_onnx(model), *arrays)), onnxruntime_answers(model, arrays))


SCALED = """<domain: "own", opset_import: ["" : 18]> scaled <factor, axis: int = 1> (x) => (y)
{
  f = Constant <value_float: float = @factor> ()
  scaled = Mul(x, f)
  y = Concat <axis: int = @axis> (scaled, x)
}"""


def test_attributes_are_the_calls_or_the_functions_defaults() -> None:
    graph = (
        "g (float[2, 3] x) => (a, b) { a = own.scaled <factor = 2.0> (x) b = own.scaled <factor = 3.0, axis = 0> (x) }"
    )
    check(model_of(graph, SCALED), X)


def test_names_inside_are_not_those_outside() -> None:
    """Both the caller and the function have values named `scaled` and `f`."""
    graph = """g (float[2, 3] x) => (y, z)
    { scaled = Neg(x) f = Abs(x) y = own.scaled <factor = 2.0> (scaled) z = Sub(scaled, f) }"""
    check(model_of(graph, SCALED), X)


def test_a_function_sees_none_of_the_callers_values() -> None:
    function = '<domain: "own", opset_import: ["" : 18]> outer (x) => (y) { y = Add(x, hidden) }'
    graph = "g (float[2, 3] x) => (y) { hidden = Neg(x) y = own.outer(x) }"
    with pytest.raises(RelvmFormatError, match=r"own.outer|outer.*hidden"):
        from_onnx(model_of(graph, function))


def test_a_function_calls_another_in_its_graphs_too() -> None:
    function = """<domain: "own", opset_import: ["" : 18, "own" : 1]> either <factor> (x, cond) => (y)
    {
      y = If (cond) <
        then_branch = t () => (y) { y = own.scaled <factor: float = @factor> (x) },
        else_branch = e () => (y) { n = Neg(x) y = own.scaled <factor: float = @factor> (n) }>
    }"""
    graph = "g (float[2, 3] x, bool c) => (y) { y = own.either <factor = 2.5> (x, c) }"
    for cond in (True, False):
        check(model_of(graph, SCALED, function), X, np.array(cond))


def test_a_function_has_opsets_of_its_own() -> None:
    """The function uses opset 11, in which axes are an attribute and Softmax flattens its input to a matrix."""
    function = """<domain: "own", opset_import: ["" : 11]> old (x) => (y)
    { wide = Unsqueeze <axes = [0]> (x) soft = Softmax <axis = 1> (wide) y = Squeeze <axes = [0]> (soft) }"""
    graph = "g (float[2, 3] x) => (y) { a = own.old(x) axes = Constant <value_ints = [0]> () y = Unsqueeze(a, axes) }"
    got = outputs(run_everywhere(from_onnx(model_of(graph, function)), X))
    powers = np.exp(X)
    assert_answers(got, [(powers / powers.sum())[None]])


def test_an_input_and_an_output_may_be_left_out() -> None:
    function = """<domain: "own", opset_import: ["" : 18]> clipped (x, low, high) => (y, z)
    { y = Clip(x, low, high) z = Neg(x) }"""
    graph = """g (float[2, 3] x) => (a, b)
    { h = Constant <value_float = 0.25> () a = own.clipped(x, "", h) "", b = own.clipped(x) }"""
    got = outputs(run_everywhere(from_onnx(model_of(graph, function)), X))
    assert_answers(got, [np.minimum(X, np.float32(0.25)), -X])


def test_overloads_are_functions_of_one_name() -> None:
    functions = [
        f'<domain: "own", opset_import: ["" : 18], overload: "{overload}"> f (x) => (y) {{ y = {op}(x) }}'
        for overload, op in (("first", "Neg"), ("second", "Abs"))
    ]
    graph = "g (float[2, 3] x) => (a, b) { a = own.f:first (x) b = own.f:second (x) }"
    assert_answers(outputs(run_everywhere(from_onnx(model_of(graph, *functions)), X)), [-X, np.abs(X)])


def test_a_function_of_the_model_goes_before_an_operator() -> None:
    function = '<domain: "", opset_import: ["" : 18]> Neg (x) => (y) { y = Abs(x) }'
    assert_answers(
        outputs(run_everywhere(from_onnx(model_of("g (float[2, 3] x) => (y) { y = Neg(x) }", function)), X)),
        [np.abs(X)],
    )


def test_a_function_of_the_model_computes_with_sizes() -> None:
    function = '<domain: "", opset_import: ["" : 18]> Neg (x) => (y) { y = Add(x, x) }'
    model = model_of("g (float[n, 3] x) => (y) { s = Shape(x) y = Neg(s) }", function)
    assert_answers(outputs(run_everywhere(from_onnx(model), X)), [np.array([4, 6])])


def test_an_identity_of_another_domain_in_a_loop() -> None:
    function = '<domain: "own", opset_import: ["" : 18]> Identity (x) => (y) { y = Neg(x) }'
    graph = """g (float[2, 3] x) => (y) { n = Constant <value_int = 3> () y = Loop (n, "", x) <
        body = b (int64 i, bool c, float[2, 3] s) => (d, t) { d = Identity(c) t = own.Identity(s) }> }"""
    assert_answers(outputs(run_everywhere(from_onnx(model_of(graph, function)), X)), [-X])


def test_shapes_are_computed_through_calls() -> None:
    function = """<domain: "own", opset_import: ["" : 18]> flat (x, like) => (y)
    { shape = Shape(like) y = Reshape(x, shape) }"""
    model = model_of("g (float[n, 6] x, float[3, m] like) => (y) { t = Transpose(like) y = own.flat(x, t) }", function)
    result = from_onnx(model)["main"].body.result.type
    assert isinstance(result, TensorType) and str(result) == "f32[m, 3]"
    check(model, np.arange(12, dtype=np.float32).reshape(2, 6), np.zeros((3, 4), np.float32))


@pytest.mark.parametrize(
    ("functions", "call", "message"),
    [
        (
            ['<domain: "own", opset_import: ["" : 18, "own" : 1]> f (x) => (y) { y = own.g(x) }',
             '<domain: "own", opset_import: ["" : 18, "own" : 1]> g (x) => (y) { y = own.f(x) }'],
            "own.f(x)",
            "own.f calls itself",
        ),
        ([SCALED], "own.scaled(x)", "missing attribute factor, which function own.scaled requires"),
        ([SCALED], "own.scaled <factor = 1.0> (x, x)", "got 2 inputs and 1 output, but function own.scaled takes 1"),
        (['<domain: "own", opset_import: []> f (x) => (y) { y = Neg(x) }'], "own.f(x)", "imports no opset"),
        ([], "own.f(x)", r"operator own\.f is not supported"),
        (
            ['<domain: "own", opset_import: ["" : 18]> f (x, z) => (z) { w = Neg(x) }'],
            "own.f(x)",
            "output 'z' is an input of this function that the calling node omits",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_call_is_said(functions: list[str], call: str, message: str) -> None:
    with pytest.raises((RelvmFormatError, RelvmUnsupportedError), match=message):
        from_onnx(model_of(f"g (float[2, 3] x) => (y) {{ y = {call} }}", *functions))


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_losses_of_symbolic_size(reduction: str) -> None:
    """The losses are functions of ONNX.  Some labels are equal to ignore_index."""
    attributes = f'reduction = "{reduction}", ignore_index = 9'
    model = model_of(
        f"""g (float[n, c, h] x, int64[n, h] labels, float[c] weights) => (a, p, b)
        {{ a, p = SoftmaxCrossEntropyLoss <{attributes}> (x, labels, weights)
           b = NegativeLogLikelihoodLoss <{attributes}> (x, labels) }}"""
    )
    random = np.random.default_rng(5)
    x, labels = random.standard_normal((3, 5, 4)).astype(np.float32), random.integers(0, 5, (3, 4))
    labels[0, 1] = labels[2, 2] = 9
    check(model, x, labels, random.uniform(0.5, 2, 5).astype(np.float32))


def test_an_error_names_the_call_and_the_node_inside() -> None:
    function = '<domain: "own", opset_import: ["" : 18]> f (x) => (y) { t = Transpose(x) y = Add(x, t) }'
    expected = r"node 'z' \(f, opset 1\): node 'y' \(Add, opset 18\): dimension 0 does not broadcast"
    with pytest.raises(RelvmShapeError, match=expected):
        from_onnx(model_of("g (float[2, 3] x) => (z) { z = own.f(x) }", function))


def test_an_initializer_without_values_in_a_function_of_the_onnx_package() -> None:
    """The onnx package creates the body of FlexAttention as text, and cannot parse this text here."""
    shape = [1, 2, 3, 4]
    names = ("q", "k", "v", "y")
    values = {name: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in names}
    scores = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in ("s", "t")]
    modified = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["s", "bias"], ["t"])], "score", scores[:1], scores[1:]
    )
    modified.initializer.add(name="backend-test", data_type=onnx.TensorProto.FLOAT, float_data=[0.5])
    node = onnx.helper.make_node("FlexAttention", ["q", "k", "v"], ["y"], domain="ai.onnx.preview", score_mod=modified)
    graph = onnx.helper.make_graph([node], "g", [values["q"], values["k"], values["v"]], [values["y"]])
    opsets = [onnx.helper.make_opsetid("", 26), onnx.helper.make_opsetid("ai.onnx.preview", 1)]
    with pytest.raises(RelvmFormatError, match="failed to build function FlexAttention"):
        from_onnx(onnx.helper.make_model(graph, opset_imports=opsets))
