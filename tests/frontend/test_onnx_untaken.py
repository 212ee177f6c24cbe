"""Tests of nodes that fail whenever they run, in branches that are not taken and in loops without iterations."""

from __future__ import annotations

import numpy as np
import pytest
from frontend.onnx_models import parse_model
from support.modes import machines, plain

from relvm.errors import RelvmError, RelvmIndexError, RelvmShapeError, RelvmTypeError
from relvm.frontend.onnx import from_onnx

WAYS = [("bytecode", "numpy"), ("compiled", "c")]
X = np.arange(3, dtype=np.float32)
VALUES = "two = Constant<value = int64[1] {2}>()  seven = Constant<value = int64 {7}>()"

# Nodes that compute r from x, the name of the node that fails, the class of the error, and a part of the message.
FAILING = {
    "an item after the end": (
        "q = SequenceConstruct(x)  r = SequenceAt(q, seven)", "r", RelvmIndexError, "position 7 is out of range"
    ),
    "an item of an empty sequence": (
        "q = SequenceEmpty()  r = SequenceAt(q, seven)", "r", RelvmIndexError, "the sequence has 0 items"
    ),
    "an erased item of an empty sequence": (
        "q = SequenceEmpty()  p = SequenceErase(q)  w = SequenceInsert(p, x)  zero = Sub(seven, seven)"
        "  r = SequenceAt(w, zero)", "p", RelvmIndexError, "the sequence has 0 items"
    ),
    "the items of an empty sequence": (
        "q = SequenceEmpty()  r = ConcatFromSequence<axis = 0>(q)", "r", RelvmTypeError, "expected a list with items"
    ),
    "a constant index": (
        "c = Constant<value = float[2] {1, 2}>()  r = Gather(c, two)", "r", RelvmIndexError, "index 2 is outside axis 0"
    ),
    "an axis of a shape": (
        "w = Shape(x)  n = Gather(w, two)  r = Expand(x, n)", "n", RelvmIndexError, "out of bounds"
    ),
    "a shape": ("r = Reshape(x, two)", "r", RelvmShapeError, "3 elements"),
    "sizes of parts": ("p = Concat<axis = 0>(two, two)  r, q = Split(x, p)", "r", RelvmShapeError, "3"),
    "an axis of another size": (
        "zero = Sub(two, two)  q = Squeeze(x, zero)  r = Unsqueeze(q, zero)", "q", RelvmShapeError, "got 3"
    ),
    "sizes that do not broadcast": ("r = Expand(x, two)", "r", RelvmShapeError, "size 3 cannot be broadcast to 2"),
    "a missing optional value": (
        "q = Optional<type = float[n]>()  r = OptionalGetElement(q)", "r", RelvmTypeError, "the optional has no value"
    ),
}  # fmt: skip


def graph(kind: str, nodes: str, sizes: str) -> str:
    """Return the text of a model whose input `runs` is the number of times that `nodes` are executed, 0 or 1."""
    nodes = f"{VALUES}  {nodes}"
    match kind:
        case "If":
            inner = (
                f"then_branch = t () => (float[k] r) {{ {nodes} }}, else_branch = e () => (float[k] v) {{ v = Abs(x) }}"
            )
            call = f"taken = Cast<to = 9>(runs)  y = If<{inner}>(taken)"
        case "Loop":
            signature = "(int64 i, bool go, float[k] s) => (bool on, float[k] t, float[k] r)"
            inner = f"body = b {signature} {{ on = Identity(go)  t = Abs(s)  {nodes} }}"
            call = f"yes = Constant<value = bool {{1}}>()  y, rows = Loop<{inner}>(runs, yes, x)"
        case _:
            inner = f"body = b (float[k] s, float e) => (float[k] t, float[k] r) {{ t = Abs(s)  {nodes} }}"
            call = f"empty = Expand(zero, some)  y, rows = Scan<num_scan_inputs = 1, {inner}>(x, empty)"
    head = "zero = Constant<value = float {0}>()  one = Constant<value = int64[1] {1}>()  some = Reshape(runs, one)"
    return f"g (float[{sizes}] x, int64 runs) => (float[a] y) {{ {head}  {call} }}"


@pytest.mark.parametrize("kind", ["If", "Loop", "Scan"])
@pytest.mark.parametrize("name", FAILING)
def test_a_node_fails_only_if_it_runs(name: str, kind: str) -> None:
    nodes, node, error, message = FAILING[name]
    for sizes in ("3", "n"):
        model = parse_model(graph(kind, nodes, sizes), 18)
        for machine in machines(from_onnx(model), WAYS[: 1 + (kind == "If" and sizes == "3")]).values():
            np.testing.assert_array_equal(plain(machine["main"](X, np.array(0))), X)
            with pytest.raises(RelvmError, match=message) as raised:
                machine["main"](X, np.array(1))
            assert type(raised.value) is error
            assert f"node '{node}'" in str(raised.value) or sizes == "n"


def test_nested_branches_that_all_fail() -> None:
    """The inner If fails in both branches, so it is a node that always fails."""
    branch = "{0} = {1} () => (float[k] {1}r) {{ {1}r = Reshape(x, two) }}"
    inner = f"r = If<{branch.format('then_branch', 'p')}, {branch.format('else_branch', 'q')}>(again)"
    model = parse_model(graph("If", inner, "3").replace("int64 runs)", "int64 runs, bool again)"), 18)
    (machine,) = machines(from_onnx(model), WAYS[:1]).values()
    np.testing.assert_array_equal(plain(machine["main"](X, np.array(0), np.array(True))), X)
    with pytest.raises(RelvmShapeError, match="node 'pr'"):
        machine["main"](X, np.array(1), np.array(True))


def test_a_loop_that_certainly_fails_is_refused() -> None:
    text = graph("Loop", FAILING["a shape"][0], "3").replace("runs, yes, x", "one, yes, x")
    with pytest.raises(RelvmShapeError, match="node 'r'"):
        from_onnx(parse_model(text, 18))


def test_a_node_outside_of_branches_is_an_error_of_the_model() -> None:
    with pytest.raises(RelvmIndexError, match=r"node 'n'.*out of bounds"):
        from_onnx(
            parse_model(
                f"g (float[3] x) => (float[k] y) {{ {VALUES} s = Shape(x) n = Gather(s, two) y = Expand(x, n) }}", 18
            )
        )
