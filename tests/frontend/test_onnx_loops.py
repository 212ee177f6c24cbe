"""Tests of Loop and Scan, compared with ONNX Runtime: iteration counts, states, scan outputs, and unsupported nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from frontend.onnx_answers import assert_answers, c_answers, onnxruntime_answers
from frontend.onnx_models import make_model
from onnx import TensorProto, helper, parser

from relvm import vm
from relvm.errors import RelvmError, RelvmTypeError, RelvmUnsupportedError
from relvm.frontend.onnx import from_onnx
from relvm.frontend.text import parse_module
from relvm.ir.printer import print_module
from relvm.ir.type_inference import infer_types

F, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
X = np.float32([[1, 2, 3], [4, 5, 6], [7, 8, 9], [-1, 0, 1]])


def values(names: dict[str, tuple]) -> list:
    return [helper.make_tensor_value_info(name, *type_) for name, type_ in names.items()]


def body(nodes: list, inputs: dict[str, tuple], outputs: dict[str, tuple]):
    return helper.make_graph(nodes, "body", values(inputs), values(outputs))


def loop_body(nodes: list, states: dict[str, tuple], outputs: dict[str, tuple]):
    """Return the body of a Loop.

    i is the iteration number, c is the condition of this iteration, and c_ is the condition of the next iteration.
    """
    return body(nodes, {"i": (I64, []), "c": (BOOL, []), **states}, {"c_": (BOOL, []), **outputs})


KEEP = helper.make_node("Identity", ["c"], ["c_"])
SUM = [helper.make_node("Add", ["s", "x"], ["s_"]), helper.make_node("ReduceSum", ["s_"], ["r"], keepdims=0)]
ROW, NUMBER = (F, ["n", 3]), (F, [])


def same_as_onnxruntime(
    nodes: list, outputs: list[str], arrays: dict[str, Any], constants: dict[str, Any] | None = None
):
    """Assert that nodes have the same outputs as in ONNX Runtime.

    arrays: the inputs by name.  The first dimension of each array that has one is symbolic.
    """
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    inputs = [(name, a.dtype, ["n", *a.shape[1:]] if a.ndim else []) for name, a in arrays.items()]
    proto = make_model(nodes, inputs, outputs, constants)
    feeds = list(arrays.values())
    got, wanted = c_answers(proto, feeds), onnxruntime_answers(proto, feeds)
    # If there are no iterations, symbolic sizes of scan outputs are 0 in ONNX Runtime.
    wanted = [w.reshape(g.shape) if not w.size and g.ndim == w.ndim else w for g, w in zip(got, wanted, strict=True)]
    assert_answers(got, wanted)


def counted(limit: Any, condition: str = "", nodes: list | None = None):
    """Return nodes, outputs and constants of a Loop that computes y = x + x + ..., and collects the partial sums."""
    graph = loop_body([KEEP, *(nodes or SUM)], {"s": ROW}, {"s_": ROW, "r": NUMBER, "s2": ROW})
    graph.node.append(helper.make_node("Add", ["s_", "k"], ["s2"]))
    node = helper.make_node("Loop", ["m", condition, "x"], ["y", "r_all", "s_all"], body=graph)
    return [node], ["y", "r_all", "s_all"], {"m": np.array(limit, np.int64), "k": np.float32(0.5)}


@pytest.mark.parametrize("rounds", [1, 2, 7, 0])
def test_a_known_number_of_rounds(rounds: int) -> None:
    nodes, outputs, constants = counted(rounds)
    same_as_onnxruntime(nodes, outputs, {"x": X}, constants)


@pytest.mark.parametrize("rounds", [5, 0, -3])
def test_a_number_of_rounds_that_is_an_input(rounds: int) -> None:
    nodes, outputs, constants = counted(0)
    del constants["m"]
    same_as_onnxruntime(nodes, outputs, {"x": X, "m": np.int64(rounds)}, constants)


@pytest.mark.parametrize("go", [True, False])
def test_a_condition_that_only_starts(go: bool) -> None:
    nodes, outputs, constants = counted(3, "go")
    same_as_onnxruntime(nodes, outputs, {"x": X, "go": np.array(go)}, constants)


def test_a_round_for_each_row() -> None:
    nodes, outputs, _ = counted(0)
    before = [helper.make_node("Shape", ["x"], ["s0"]), helper.make_node("Gather", ["s0", "zero"], ["m"], axis=0)]
    constants = {"k": np.float32(1), "zero": np.array(0, np.int64)}
    same_as_onnxruntime([*before, *nodes], outputs, {"x": X}, constants)
    module = from_onnx(make_model([*before, *nodes], [("x", np.float32, ["n", 3])], outputs, constants))
    assert str(module["main"].body.type.fields[1]) == "f32[n]"  # one row for each iteration
    assert str(module["main"].body.type.fields[2]) == "f32[n, n, 3]"


@pytest.mark.parametrize("limit", [None, 4, 100])
def test_while(limit: int | None) -> None:
    """The loop doubles x until the largest element is at least 50."""
    graph = loop_body(
        [
            helper.make_node("Add", ["s", "s"], ["s_"]),
            helper.make_node("ReduceMax", ["s_"], ["top"], keepdims=0),
            helper.make_node("Less", ["top", "fifty"], ["c_"]),
            helper.make_node("Cast", ["i"], ["number"], to=F),
        ],
        {"s": ROW},
        {"s_": ROW, "number": NUMBER},
    )
    node = helper.make_node("Loop", ["m" if limit else "", "", "x"], ["y", "numbers"], body=graph)
    constants = {"fifty": np.float32(50)} | ({"m": np.array([limit], np.int64)} if limit else {})
    same_as_onnxruntime([node], ["y", "numbers"], {"x": X}, constants)


def test_sizes_that_a_round_changes() -> None:
    """The state grows in each iteration, and a row of the scan output is computed from it."""
    graph = loop_body(
        [
            KEEP,
            helper.make_node("Concat", ["s", "x"], ["s_"], axis=0),
            helper.make_node("ReduceSum", ["s_", "axes"], ["r"], keepdims=0),
        ],
        {"s": (F, None)},
        {"s_": (F, None), "r": (F, None)},
    )
    node = helper.make_node("Loop", ["m", "", "x"], ["y", "r_all"], body=graph)
    constants = {"m": np.array(3, np.int64), "axes": np.array([0], np.int64)}
    same_as_onnxruntime([node], ["y", "r_all"], {"x": X}, constants)


def test_a_state_that_stays_is_not_carried() -> None:
    graph = loop_body(
        [KEEP, helper.make_node("MatMul", ["s", "w"], ["s_"]), helper.make_node("Identity", ["w"], ["w_"])],
        {"s": ROW, "w": (F, [3, 3])},
        {"s_": ROW, "w_": (F, [3, 3])},
    )
    node = helper.make_node("Loop", ["m", "", "x", "weights"], ["y", "same"], body=graph)
    constants = {"m": np.array(2, np.int64), "weights": np.float32([[0, 1, 0], [0, 0, 1], [1, 0, 2]])}
    same_as_onnxruntime([node], ["y", "same"], {"x": X}, constants)


def test_the_module_can_be_written_and_read() -> None:
    graph = loop_body(
        [KEEP, helper.make_node("Concat", ["state/0:1", "x"], ["s_"], axis=0)],
        {"state/0:1": (F, None)},
        {"s_": (F, None), "s_2": NUMBER},
    )
    graph.node.append(helper.make_node("ReduceSum", ["s_"], ["s_2"], keepdims=0))
    node = helper.make_node("Loop", ["m", "", "x"], ["y", "r"], body=graph)
    proto = make_model([node], [("x", np.float32, ["n", 3])], ["y", "r"], {"m": np.array(3, np.int64)})
    text = print_module(infer_types(from_onnx(proto)))
    assert print_module(infer_types(parse_module(text))) == text
    assert "state_0_1: f32[state_0_1_dim0, 3], rows: list[f32[]])" in text


def test_many_rounds() -> None:
    nodes, outputs, constants = counted(20_000)
    same_as_onnxruntime(nodes, outputs, {"x": X}, constants)


def test_loops_and_branches_inside_loops() -> None:
    inner = body(
        [
            helper.make_node("Identity", ["d"], ["d_"]),
            helper.make_node("Add", ["t", "s"], ["t_"]),
            helper.make_node("Mul", ["t_", "k"], ["t_row"]),
        ],
        {"j": (I64, []), "d": (BOOL, []), "t": ROW},
        {"d_": (BOOL, []), "t_": ROW, "t_row": ROW},
    )
    negated = helper.make_graph([helper.make_node("Neg", ["u"], ["v1"])], "then", [], values({"v1": ROW}))
    plain = helper.make_graph([helper.make_node("Add", ["u", "x"], ["v2"])], "else", [], values({"v2": ROW}))
    outer = loop_body(
        [
            helper.make_node("Identity", ["c"], ["c_"]),
            helper.make_node("Loop", ["i", "", "s"], ["u", "u_rows"], body=inner),
            helper.make_node("ReduceSum", ["u_rows"], ["r"], keepdims=0),
            helper.make_node("Greater", ["r", "k"], ["positive"]),
            helper.make_node("If", ["positive"], ["s_"], then_branch=negated, else_branch=plain),
        ],
        {"s": ROW},
        {"s_": ROW, "r": NUMBER},
    )
    node = helper.make_node("Loop", ["m", "", "x"], ["y", "r_all"], body=outer)
    same_as_onnxruntime([node], ["y", "r_all"], {"x": X}, {"m": np.array(4, np.int64), "k": np.float32(0.5)})


@pytest.mark.parametrize("reverse", [(0, 0), (1, 0), (0, 1)])
def test_scan(reverse: tuple[int, int]) -> None:
    graph = body(
        [
            helper.make_node("Add", ["s", "a"], ["s_"]),
            helper.make_node("Mul", ["s_", "b"], ["row"]),
            helper.make_node("ReduceSum", ["row"], ["number"], keepdims=0),
        ],
        {"s": (F, ["n"]), "a": (F, ["n"]), "b": NUMBER},
        {"s_": (F, ["n"]), "row": (F, ["n"]), "number": NUMBER},
    )
    node = helper.make_node(
        "Scan",
        ["s0", "x", "b_all"],
        ["y", "rows", "numbers"],
        body=graph,
        num_scan_inputs=2,
        scan_input_axes=[1, -1],
        scan_input_directions=[reverse[0], 1 - reverse[0]],
        scan_output_axes=[-1, 0],
        scan_output_directions=[reverse[1], 0],
    )
    arrays = {"x": X, "s0": np.float32([1, 2, 3, 4])}
    same_as_onnxruntime([node], ["y", "rows", "numbers"], arrays, {"b_all": np.float32([2, -1, 3])})


def test_scan_over_a_size_with_a_name() -> None:
    graph = body(
        [helper.make_node("Add", ["s", "a"], ["s_"]), helper.make_node("Identity", ["s_"], ["row"])],
        {"s": (F, [3]), "a": (F, [3])},
        {"s_": (F, [3]), "row": (F, [3])},
    )
    node = helper.make_node("Scan", ["s0", "x"], ["y", "rows"], body=graph, num_scan_inputs=1)
    for rows in (1, 2, 5, 100):
        x = np.random.default_rng(rows).standard_normal((rows, 3)).astype(np.float32)
        same_as_onnxruntime([node], ["y", "rows"], {"x": x}, {"s0": np.zeros(3, np.float32)})


def test_what_is_refused() -> None:
    graph = loop_body([KEEP, helper.make_node("Cast", ["s"], ["s_"], to=I64)], {"s": ROW}, {"s_": (I64, ["n", 3])})
    node = helper.make_node("Loop", ["m", "", "x"], ["y"], body=graph)
    constants = {"m": np.array(2, np.int64)}
    with pytest.raises(RelvmError, match=r"Loop, opset 17.*s is f32\[n, 3\] before the loop but i64\[n, 3\] after"):
        from_onnx(make_model([node], [("x", np.float32, ["n", 3])], ["y"], constants))
    node = helper.make_node("Loop", ["m", ""], ["y"], body=graph)
    with pytest.raises(
        RelvmError, match="the body has 3 inputs and 2 outputs, which do not match the 2 inputs of the node"
    ):
        from_onnx(make_model([node], [("x", np.float32, ["n", 3])], ["y"], constants))


@pytest.mark.parametrize(
    ("limit", "condition", "of_body", "message"),
    [
        (np.float64(2), None, [], r"input 0 \(M\) is tensor\(double\), expected tensor\(int64\)"),
        (np.array(True), None, [], r"input 0 \(M\) is tensor\(bool\)"),
        (np.int64(2), np.int64(1), [], r"input 1 \(cond\) is tensor\(int64\), expected tensor\(bool\)"),
        (np.int64(2), None, [helper.make_node("Cast", ["i"], ["c_"], to=F)], "the body's condition is f32.*of bool"),
        (np.int64(2), None, [helper.make_node("Identity", ["i"], ["c_"])], "the body's condition is i64.*of bool"),
    ],
    ids=["a fraction of rounds", "a truth of rounds", "a number as condition", "a fraction after", "a number after"],
)
def test_counts_and_conditions_of_other_types(
    limit: np.generic, condition: np.generic | None, of_body: list, message: str
) -> None:
    graph = loop_body([*(of_body or [KEEP]), SUM[0]], {"s": ROW}, {"s_": ROW})
    constants = {"m": np.array(limit)} | ({} if condition is None else {"k": np.array(condition)})
    node = helper.make_node("Loop", ["m", "" if condition is None else "k", "x"], ["y"], body=graph)
    with pytest.raises(RelvmTypeError, match=message):
        from_onnx(make_model([node], [("x", np.float32, ["n", 3])], ["y"], constants))


def test_rows_of_unknown_rank_are_stacked_in_order_or_refused() -> None:
    text = """<ir_version: 10, opset_import: ["" : 20]>
    g (float[3, 4] x, bool c) => (float[] y) {{
      axis = Constant<value = int64[1] {{0}}>()
      y = Scan<num_scan_inputs=1, scan_output_directions=[{reverse}], body = b (float[4] row) => (float[] out) {{
        out = If(c) <then_branch = t () => (float[] a) {{ a = Identity(row) }},
          else_branch = f () => (float[] b) {{ b = Unsqueeze(row, axis) }}>
      }}>(x)
    }}"""
    module = from_onnx(parser.parse_model(text.format(reverse=0)))
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for c, expected in ((True, x), (False, x[:, None])):
        found = vm.VirtualMachine(vm.build(module, target="bytecode"))["main"](x, np.array(c))
        np.testing.assert_array_equal(found.numpy(), expected)
    with pytest.raises(RelvmUnsupportedError, match="scan_output_directions: cannot reverse a scan output whose rank"):
        from_onnx(parser.parse_model(text.format(reverse=1)))
