"""Tests of the ONNX importer on small graphs: operators, shapes, control flow, and unsupported models."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from frontend.onnx_answers import assert_answers, outputs
from frontend.onnx_models import make_model, parse_model
from frontend.onnx_operators import OPERATORS
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from support.modes import machines, run_everywhere

from relvm.errors import (
    RelvmArgumentError,
    RelvmError,
    RelvmFormatError,
    RelvmNameError,
    RelvmShapeError,
    RelvmTypeError,
    RelvmUnsupportedError,
)
from relvm.frontend.onnx import from_onnx
from relvm.frontend.onnx.registry import supported_operators

F = np.float32


def against_onnx(proto, *arrays):
    """Run a model in every mode and target, and compare the results with the onnx package's reference evaluator."""
    names = [item.name for item in proto.graph.input if item.name not in {i.name for i in proto.graph.initializer}]
    expected = ReferenceEvaluator(proto).run(None, dict(zip(names, arrays, strict=True)))
    assert_answers(outputs(run_everywhere(from_onnx(proto), *arrays)), expected)


X = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
I64 = np.int64

CASES = {
    "Add": ([helper.make_node("Add", ["x", "w"], ["y"])], {"w": np.float32([1, 2, 3, 4])}),
    "Pow of another dtype": ([helper.make_node("Pow", ["x", "w"], ["y"])], {"w": np.array(2, I64)}),
    "Max of three": (
        [helper.make_node("Max", ["x", "w", "v"], ["y"])],
        {"w": np.float32(0), "v": np.float32([0.5] * 4)},
    ),
    "Sum": ([helper.make_node("Sum", ["x", "x", "x"], ["y"])], {}),
    "Mean": ([helper.make_node("Mean", ["x", "w"], ["y"])], {"w": np.float32(3)}),
    "Clip": ([helper.make_node("Clip", ["x", "", "w"], ["y"])], {"w": np.float32(0.5)}),
    "LeakyRelu": ([helper.make_node("LeakyRelu", ["x"], ["y"], alpha=0.2)], {}),
    "Cast": ([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.INT32)], {}),
    "Reshape with 0 and -1": ([helper.make_node("Reshape", ["x", "w"], ["y"])], {"w": np.array([0, -1], I64)}),
    "Flatten": ([helper.make_node("Flatten", ["x"], ["y"], axis=2)], {}),
    "Transpose": ([helper.make_node("Transpose", ["x"], ["y"], perm=[2, 0, 1])], {}),
    "Transpose without perm": ([helper.make_node("Transpose", ["x"], ["y"])], {}),
    "Unsqueeze": ([helper.make_node("Unsqueeze", ["x", "w"], ["y"])], {"w": np.array([0, -1], I64)}),
    "Expand both ways": ([helper.make_node("Expand", ["x", "w"], ["y"])], {"w": np.array([5, 1, 1, 4], I64)}),
    "Concat": ([helper.make_node("Concat", ["x", "x"], ["y"], axis=-2)], {}),
    "Slice": (
        [helper.make_node("Slice", ["x", "b", "e", "a", "s"], ["y"])],
        {
            "b": np.array([-1, 0], I64),
            "e": np.array([-100, 2], I64),
            "a": np.array([2, 1], I64),
            "s": np.array([-2, 1], I64),
        },
    ),
    "Gather": ([helper.make_node("Gather", ["x", "i"], ["y"], axis=1)], {"i": np.array([[0, -1], [2, 1]], I64)}),
    "ReduceSum": ([helper.make_node("ReduceSum", ["x", "a"], ["y"], keepdims=0)], {"a": np.array([1, -1], I64)}),
    "ReduceSum of nothing": ([helper.make_node("ReduceSum", ["x"], ["y"], noop_with_empty_axes=1)], {}),
    "ReduceMean of all": ([helper.make_node("ReduceMean", ["x"], ["y"], keepdims=1)], {}),
    "ReduceMax": ([helper.make_node("ReduceMax", ["x"], ["y"], axes=[0, 2])], {}),
    "ArgMax": ([helper.make_node("ArgMax", ["x"], ["y"], axis=1)], {}),
    "Softmax": ([helper.make_node("Softmax", ["x"], ["y"], axis=1)], {}),
    "MatMul": ([helper.make_node("MatMul", ["x", "w"], ["y"])], {"w": np.float32(np.arange(8).reshape(4, 2))}),
    "Where": (
        [helper.make_node("Greater", ["x", "w"], ["c"]), helper.make_node("Where", ["c", "x", "w"], ["y"])],
        {"w": np.float32(0)},
    ),
    "a shape that is computed": (
        [
            helper.make_node("Shape", ["x"], ["s"]),
            helper.make_node("Gather", ["s", "i"], ["n"]),
            helper.make_node("Concat", ["n", "w"], ["t"], axis=0),
            helper.make_node("Reshape", ["x", "t"], ["y"]),
        ],
        {"i": np.array([0], I64), "w": np.array([2, 6], I64)},
    ),
    "a size counted from the end": (
        [
            helper.make_node("Shape", ["x"], ["s"]),
            helper.make_node("Neg", ["s"], ["m"]),
            helper.make_node("Neg", ["m"], ["t"]),
            helper.make_node("Reshape", ["x", "t"], ["y"]),
        ],
        {},
    ),
    "a shape that is a result": ([helper.make_node("Shape", ["x"], ["y"])], {}),
}


def operators_of_suites() -> set[str]:
    """Return the operators that the other tests/frontend/test_onnx_*.py name in strings or in the text of graphs."""
    here = Path(__file__)
    texts = [path.read_text() for path in here.parent.glob("test_onnx_*.py") if path != here]
    named = re.compile(r'"([A-Z]\w+)"|= (?:[a-z.]+\.)?([A-Z]\w+)[<(]')
    return {name for text in texts for found in named.findall(text) for name in found}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("shape", [[2, 3, 4], ["n", 3, 4]], ids=["static", "symbolic"])
def test_operator(name: str, shape) -> None:
    nodes, initializers = CASES[name]
    proto = make_model(nodes, [("x", F, shape)], ["y"], initializers)
    against_onnx(proto, X)


@pytest.mark.parametrize("trans", [(0, 0), (1, 1)])
@pytest.mark.parametrize("bias", [True, False])
def test_gemm(trans, bias) -> None:
    a, b = np.float32(np.arange(12).reshape(3, 4)), np.float32(np.arange(8).reshape(4, 2))
    node = helper.make_node(
        "Gemm", ["a", "b", "c"][: 2 + bias], ["y"], alpha=0.5, beta=2.0, transA=trans[0], transB=trans[1]
    )
    a, b = (a.T.copy() if trans[0] else a), (b.T.copy() if trans[1] else b)
    initializers = {"b": b} | ({"c": np.float32([1, -1])} if bias else {})
    against_onnx(make_model([node], [("a", F, list(a.shape))], ["y"], initializers), a)


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"pads": [1, 2, 0, 1]},
        {"strides": [2, 1], "dilations": [1, 2]},
        {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
        {"group": 2},
    ],
    ids=["plain", "asymmetric pads", "strided and dilated", "same", "grouped"],
)
def test_conv(attributes) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 4, 7, 9)).astype(np.float32)
    w = rng.standard_normal((6, 4 // attributes.get("group", 1), 3, 2)).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], **attributes)
    proto = make_model([node], [("x", F, [2, 4, 7, 9])], ["y"], {"w": w, "b": np.float32(range(6))})
    against_onnx(proto, x)


def branch(name: str, nodes, output: str):
    return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)])


def test_if_sees_the_values_around_it() -> None:
    then = branch("then", [helper.make_node("Add", ["x", "w"], ["a"])], "a")
    inner = helper.make_node(
        "If", ["d"], ["b"], then_branch=then, else_branch=branch("e", [helper.make_node("Neg", ["x"], ["m"])], "m")
    )
    orelse = branch("else", [inner], "b")
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=orelse)
    inputs = [("x", F, ["n"]), ("c", bool, []), ("d", bool, [])]
    proto = make_model([node], inputs, ["y"], {"w": np.float32(10)})
    for c in (True, False):
        for d in (True, False):
            against_onnx(proto, X[0, 0], np.array(c), np.array(d))


def test_of_an_if_on_a_known_condition_only_the_branch_is_imported() -> None:
    """The rank of the If's result is that of the branch, so that operators such as Flatten can use it."""
    then = branch("then", [helper.make_node("Flatten", ["x"], ["a"])], "a")
    orelse = branch("else", [helper.make_node("NotImported", ["x"], ["b"])], "b")
    nodes = [
        helper.make_node("If", ["c"], ["f"], then_branch=then, else_branch=orelse),
        helper.make_node("Flatten", ["f"], ["y"], axis=0),
    ]
    proto = make_model(nodes, [("x", F, [2, 3, 4])], ["y"], {"c": np.array(True)})
    np.testing.assert_array_equal(run_everywhere(from_onnx(proto), X), X.reshape(1, 24))


UNRANKED = parse_model("g (float[] x, float[n] y) => (float[] z) { z = Softmax(x) }")


def test_the_rank_of_an_input_without_a_shape() -> None:
    for x in (X, X[0], X[0, 0]):
        ((machine),) = machines(from_onnx(UNRANKED, ranks={"x": x.ndim, "y": 1}), [("bytecode", "numpy")]).values()
        expected = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
        np.testing.assert_allclose(machine["main"](x, X[0, 0]).numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("ranks", "error", "message"),
    [
        ({"q": 1}, RelvmNameError, "the model has no input 'q'"),
        ({"x": -1}, RelvmArgumentError, "ranks: x is -1, expected an integer of at least 0"),
        ({"x": True}, RelvmArgumentError, "ranks: x is True"),
        ({"y": 2}, RelvmArgumentError, "ranks: input y has rank 1 in the model, got 2"),
        ({}, RelvmUnsupportedError, r"node 'z' \(Softmax.*known rank"),
    ],
)
def test_ranks_that_are_refused(ranks: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        from_onnx(UNRANKED, ranks=ranks)


def test_branches_of_different_ranks() -> None:
    """Operators after an If that need to know ranks are imported into each branch."""
    reduce = helper.make_node("ReduceSum", ["x", "axes"], ["a"], keepdims=0)
    then = branch("then", [reduce], "a")
    orelse = branch("else", [helper.make_node("Identity", ["x"], ["b"])], "b")
    nodes = [
        helper.make_node("If", ["c"], ["f"], then_branch=then, else_branch=orelse),
        helper.make_node("Flatten", ["f"], ["g"], axis=-1),
        helper.make_node("Neg", ["x"], ["y2"]),
        helper.make_node("If", ["d"], ["h"], then_branch=then, else_branch=orelse),
        helper.make_node("Softmax", ["h"], ["y"]),
    ]
    inputs = [("x", F, ["n", 3, 4]), ("c", bool, []), ("d", bool, [])]
    outputs = ["g", "y", "y2"]
    proto = make_model(nodes, inputs, outputs, {"axes": np.array([1], I64)})
    for c in (True, False):
        for d in (True, False):
            against_onnx(proto, X, np.array(c), np.array(d))


def test_a_squeeze_of_whatever_has_size_1() -> None:
    nodes = [helper.make_node("Squeeze", ["x"], ["s"]), helper.make_node("Softmax", ["s"], ["y"], axis=0)]
    proto = make_model(nodes, [("x", F, ["n", 1, 4])], ["y"])
    for rows in (1, 3):
        against_onnx(proto, np.ones((rows, 1, 4), np.float32))


def test_a_squeeze_of_two_unknown_sizes() -> None:
    nodes = [helper.make_node("Squeeze", ["x"], ["s"]), helper.make_node("Softmax", ["s"], ["y"], axis=0)]
    proto = make_model(nodes, [("x", F, ["n", "m", 1, 4])], ["y"])
    for rows, columns in ((1, 1), (1, 3), (3, 1), (2, 3), (0, 1)):
        against_onnx(proto, np.ones((rows, columns, 1, 4), np.float32))


def test_a_branch_that_cannot_be_followed_fails_when_it_is_taken() -> None:
    then = branch("then", [helper.make_node("ReduceSum", ["x", "axes"], ["a"], keepdims=0)], "a")
    orelse = branch("else", [helper.make_node("Identity", ["x"], ["b"])], "b")
    nodes = [
        helper.make_node("If", ["c"], ["f"], then_branch=then, else_branch=orelse),
        helper.make_node("Transpose", ["f"], ["y"], perm=[1, 0]),
    ]
    inputs = [("x", F, ["n", 3, 4]), ("c", bool, [])]
    proto = make_model(nodes, inputs, ["y"], {"axes": np.array([1], I64)})
    module = from_onnx(proto)
    np.testing.assert_allclose(run_everywhere(module, X, np.array(True)), X.sum(axis=1).T, rtol=1e-5)
    for machine in machines(module).values():
        with pytest.raises(RelvmArgumentError, match=r"Transpose, opset 17.*perm"):
            machine["main"](X, np.array(False))
    nodes[1].attribute[0].ints[:] = [3, 2, 1, 0]
    with pytest.raises(RelvmError, match=r"Transpose, opset 17.*perm"):
        from_onnx(make_model(nodes, inputs, ["y"], {"axes": np.array([1], I64)}))


def test_a_branch_that_is_not_for_the_sizes_that_are_fixed_fails_when_it_is_taken() -> None:
    then = branch("then", [helper.make_node("Add", ["x", "two"], ["a"])], "a")
    orelse = branch("else", [helper.make_node("Add", ["x", "three"], ["b"])], "b")
    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=orelse, name="which")]
    constants = {"two": np.ones((2, 4), np.float32), "three": np.ones((3, 4), np.float32)}
    proto = make_model(nodes, [("x", F, ["n", 4]), ("c", bool, [])], ["y"], constants)
    for rows, taken in ((2, True), (3, False)):
        module = from_onnx(proto, dims={"n": rows})
        x = np.full((rows, 4), 2, np.float32)
        np.testing.assert_array_equal(run_everywhere(module, x, np.array(taken)), x + 1)
        for machine in machines(module).values():
            with pytest.raises(RelvmTypeError, match=r"\(Add, opset 17\)"):
                machine["main"](x, np.array(not taken))
    with pytest.raises(RelvmShapeError, match=r"\(Add, opset 17\)"):
        from_onnx(proto, dims={"n": 4})


def test_a_dimension_may_be_fixed() -> None:
    proto = make_model([helper.make_node("Relu", ["x"], ["y"])], [("x", F, ["batch", 3])], ["y"])
    assert "f32[2, 3]" in str(from_onnx(proto, dims={"batch": 2})["main"].params[0].type)
    with pytest.raises(RelvmNameError, match=r"bach.*batch"):
        from_onnx(proto, dims={"bach": 2})


def test_names_that_are_no_identifiers() -> None:
    nodes = [helper.make_node("Add", ["a/0", "a.0"], ["1"])]
    proto = make_model(nodes, [("a/0", F, [2]), ("a.0", F, [2])], ["1"])
    function = from_onnx(proto)["main"]
    assert [p.name for p in function.params] == ["a_0", "a_0_1"]
    assert dict(function.attributes)["input_names"] == ("a/0", "a.0")


def test_an_unsupported_operator_names_the_node_the_operator_and_the_opset() -> None:
    proto = make_model(
        [helper.make_node("ImageDecoder", ["x"], ["y"], name="the node")],
        [("x", np.uint8, [2])],
        ["y"],
        opset=20,
    )
    with pytest.raises(RelvmUnsupportedError, match=r"the node.*ImageDecoder.*20"):
        from_onnx(proto)


def test_an_unsupported_element_type_is_named() -> None:
    proto = make_model([helper.make_node("Identity", ["x"], ["y"])], [("x", np.complex64, [2])], ["y"])
    with pytest.raises(RelvmUnsupportedError, match=r"input x.*COMPLEX64"):
        from_onnx(proto)


def test_what_is_no_model_is_refused(tmp_path) -> None:
    for content in (b"", b"not a model", bytes(range(256))):
        path = tmp_path / "bad.onnx"
        path.write_bytes(content)
        with pytest.raises(RelvmFormatError, match=r"bad\.onnx"):
            from_onnx(path)


def test_a_value_that_is_never_made_is_named() -> None:
    proto = make_model([helper.make_node("Relu", ["nowhere"], ["y"])], [("x", F, [2])], ["y"])
    with pytest.raises(RelvmFormatError, match="nowhere"):
        from_onnx(proto)


def test_every_converter_is_tried() -> None:
    tried = {node.op_type for nodes, _ in CASES.values() for node in nodes}
    elsewhere = {"Gemm", "Conv", "If"} | operators_of_suites()
    # _SAME_SEMANTICS contains ONNX operators that correspond to relvm operators, which have their own samples.
    from relvm.frontend.onnx.ops.elementwise import _SAME_SEMANTICS

    names = {name.rpartition(".")[2] for name in supported_operators()}
    assert not names - tried - elsewhere - set(_SAME_SEMANTICS) - OPERATORS.keys()


def test_the_default_domain_has_two_names() -> None:
    node = helper.make_node("Softmax", ["x"], ["y"])
    proto = make_model([node], [("x", F, [2, 3, 4])], ["y"])
    proto.opset_import[0].domain = "ai.onnx"
    result = run_everywhere(from_onnx(proto), X)
    np.testing.assert_allclose(result.sum(axis=-1), np.ones((2, 3)), rtol=1e-5)


def test_a_domain_without_an_opset_is_refused() -> None:
    proto = make_model([helper.make_node("Relu", ["x"], ["y"])], [("x", F, [2])], ["y"])
    proto.opset_import[0].domain = "somewhere.else"
    with pytest.raises(RelvmFormatError, match=r"Relu.*no opset"):
        from_onnx(proto)


def test_an_integer_to_the_power_of_a_float() -> None:
    node = helper.make_node("Pow", ["x", "e"], ["y"])
    exponents = {"e": np.float32([0.5, 0.5, -1, 2])}
    proto = make_model([node], [("x", np.int32, [4])], ["y"], exponents)
    result = run_everywhere(from_onnx(proto), np.int32([4, 9, 2, 3]))
    np.testing.assert_array_equal(result, np.int32([2, 3, 0, 9]))


def test_all_nodes_that_cannot_be_imported_are_named_at_once() -> None:
    model = parse_model(
        """agraph (float[n] x, bool c) => (float[n] y) {
             a = NoSuchOperator (x)
             b = Relu (a)
             d = com.microsoft.NorThis (x)
             e = If (c) <
               then_branch = t () => (z) { z = InABranch (x) },
               else_branch = f () => (z) { z = Relu (d) }
             >
             y = Add (b, e)
           }"""
    )
    with pytest.raises(RelvmUnsupportedError) as error:
        from_onnx(model)
    lines = str(error.value).splitlines()
    assert lines[0] == "agraph: 3 nodes cannot be imported:"
    assert [line.split(": ")[0] for line in lines[1:]] == [
        "  node 'a' (NoSuchOperator, opset 17)",
        "  node 'd' (NorThis, opset 1)",
        "  node 'z' (InABranch, opset 17)",
    ]


def test_a_dimension_may_be_bounded() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    model = make_model(nodes, [("x", np.float32, ["my batch", 4])], ["y"])
    module = from_onnx(model, dims={"my batch": (1, 32)})
    attributes = dict(module["main"].attributes)
    assert attributes["upper_bounds"] == (("my_batch", 32),) and attributes["lower_bounds"] == (("my_batch", 1),)
    for machine in machines(module).values():
        assert machine["main"](np.ones((32, 4), np.float32)).shape == (32, 4)
        with pytest.raises(RelvmShapeError, match="33"):
            machine["main"](np.ones((33, 4), np.float32))
        with pytest.raises(RelvmShapeError, match="0"):
            machine["main"](np.ones((0, 4), np.float32))


def test_dimensions_whose_names_are_the_same_identifier_stay_apart() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    module = from_onnx(make_model(nodes, [("x", np.float32, ["a b", "a.b"])], ["y"]), dims={"a.b": (2, 3)})
    first, second = module["main"].params[0].type.shape
    assert str(first) != str(second)
    assert dict(module["main"].attributes)["upper_bounds"] == ((str(second), 3),)


@pytest.mark.parametrize("size", [-1, (3, 2), (1, 2, 3), "4", 2.0, True, (-1, 4)])
def test_sizes_that_are_none_are_refused(size) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    with pytest.raises(RelvmArgumentError, match="dims: n is"):
        from_onnx(make_model(nodes, [("x", np.float32, ["n"])], ["y"]), dims={"n": size})
