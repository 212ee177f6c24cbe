"""Models for tests of the session API, and outcomes of calls in a comparable form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto, helper, parser

_HEAD = '<ir_version: 8, opset_import: ["": 17]>\n'


def model(text: str) -> bytes:
    """Return the bytes of a model whose graph is in ONNX's text form."""
    return parser.parse_model(_HEAD + text).SerializeToString()


TWO = model("g (float[n, 2] x, float[n, 2] y) => (float[n, 2] z, float[n, 2] w) { z = Add(x, y)  w = Mul(x, y) }")
STRINGS = model("g (string[n] x) => (string[n] z) { z = Identity(x) }")
HALVES = model("g (float16[n] x) => (float16[n] z) { z = Add(x, x) }")
SCALED = model("g (float[n] x, float s) => (float[n] z) { z = Mul(x, s) }")
RESHAPE = model("g (float[n, 2] x, int64[2] s) => (float[a, b] z) { z = Reshape(x, s) }")
GATHER = model("g (float[n] x, int64[m] i) => (float[m] z) { z = Gather(x, i) }")
WRONG_SHAPES = model(  # ONNX Runtime infers shapes again after it has removed the Identity
    "g (float[n, 8] x) => (float[] a, float b, float[n, 5] c, float[7] d, float[k, m] e, float[3, 8] f)"
    "{ t = Identity(x)  a = Relu(t)  b = Relu(t)  c = Relu(t)  d = Relu(t)  e = Relu(t)  f = Relu(t) }"
)
UNKNOWN = model("g (float[2] x) => (float[2] z) { z = Nope(x) }")
UNDEFINED = model("g (float[2] x) => (float[2] z) { z = Add(x, q) }")


def with_initializer(ir_version: int) -> bytes:
    """Return the bytes of a model whose input b has an initializer."""
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xbz"]
    initial = helper.make_tensor("b", TensorProto.FLOAT, [2], [1, 2])
    node = helper.make_node("Add", ["x", "b"], ["z"])
    graph = helper.make_graph([node], "g", infos[:2], infos[2:], [initial], doc_string="about the graph")
    made = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=ir_version,
        producer_name="me",
        model_version=7,
        domain="here",
        doc_string="about",
    )
    helper.set_model_props(made, {"names": "['a']", "stride": "32"})
    return made.SerializeToString()


def sequences() -> tuple[bytes, bytes]:
    """Return the bytes of a model that outputs a sequence, and of a model with a sequence as input."""
    x, z, at = (helper.make_tensor_value_info(*each) for each in (("x", 1, ["n"]), ("z", 1, None), ("i", 7, [])))
    s = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    graphs = [
        helper.make_graph([helper.make_node("SequenceConstruct", ["x", "x"], ["s"])], "g", [x], [s]),
        helper.make_graph([helper.make_node("SequenceAt", ["s", "i"], ["z"])], "g", [s, at], [z]),
    ]
    opsets = [helper.make_opsetid("", 17)]
    made, taken = (helper.make_model(each, opset_imports=opsets, ir_version=8) for each in graphs)
    return made.SerializeToString(), taken.SerializeToString()


def outcome(action: Callable[[], Any]) -> Any:
    """Return the result of a call, with arrays as lists, or the name of the exception that it raises."""
    try:
        return _plain(action())
    except Exception as error:
        return type(error).__name__


def _plain(value: Any) -> Any:
    match value:
        case np.ndarray():
            return str(value.dtype), value.shape, value.tolist(), value.flags.writeable
        case list() | tuple():
            return list(map(_plain, value))
    return value
