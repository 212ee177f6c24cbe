"""Tests of the data in the pages of graphs: boxes of name scopes, layouts of boxes, and details of nodes."""

from __future__ import annotations

import json
import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from relvm.errors import RelvmArgumentError, RelvmTypeError
from relvm.explore import browse_dataflow
from relvm.explore.draw.graph import all_items
from relvm.explore.views.node_details import constant_statistics
from relvm.frontend.onnx import from_onnx
from relvm.frontend.text import parse_module
from relvm.ir.expr import Constant, Module

onnx = pytest.importorskip("onnx")


def page_data(page: str) -> dict[str, Any]:
    """Return the JSON data in a page."""
    (text,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    return json.loads(text)


def data_of(text: str, **options: Any) -> dict[str, Any]:
    return page_data(browse_dataflow(parse_module(text, "small.relvm"), **options).page())


def find(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """Return the item with a name, also if it is inside a box."""
    for item in items:
        if item["name"] == name:
            return item
        if found := find(item.get("inside", []), name):
            return found
    return {}


def onnx_module(*nodes: tuple[str, str, str]) -> Module:
    """Import a chain of unary nodes.  nodes: the name, the operator and the output of each node."""
    made, before = [], "x"
    for name, op, output in nodes:
        made.append(onnx.helper.make_node(op, [before], [output], name=name))
        before = output
    infos = [onnx.helper.make_tensor_value_info(each, 1, ["n", 4]) for each in ("x", before)]
    graph = onnx.helper.make_graph(made, "g", infos[:1], infos[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    return from_onnx(model)


SCOPED = (
    ("/net/a/first/Relu", "Relu", "p"),
    ("/net/a/first/Exp", "Exp", "q"),
    ("/net/a/Sin", "Sin", "r"),
    ("/net/b/Cos", "Cos", "s"),
    ("/net/Tanh", "Tanh", "y"),
)


def test_name_scopes_are_boxes() -> None:
    """The scope `net`, which contains everything, has no box.  The scope `b`, which has one node, has none, either."""
    page = browse_dataflow(onnx_module(*SCOPED), fused=False)
    assert str(page) == (
        "x: f32[n, 4]\n"
        "a: 3 values\n"
        "  first: 2 values\n"
        "    p = relu: f32[n, 4]  <- x\n"
        "    q = exp: f32[n, 4]  <- p\n"
        "  r = sin: f32[n, 4]  <- q\n"
        "s = cos: f32[n, 4]  <- r\n"
        "y = tanh: f32[n, 4]  <- s\n"
        "return y  <- y\n"
    )
    assert "values" not in str(browse_dataflow(onnx_module(*SCOPED), scopes=False))


def test_a_kernel_is_in_the_scope_of_all_its_operators() -> None:
    page = browse_dataflow(onnx_module(*SCOPED[:3], ("/net/a/Softmax", "Softmax", "t"), *SCOPED[4:]))
    kinds = [item.kind for item in page.graph.items]
    assert "group" in kinds or "scope" in kinds
    for item in all_items(page.graph.items):
        if item.kind == "scope":
            assert item.label != "first"  # its operators are fused with sin, which is in another scope


def test_edges_enter_and_leave_a_box_through_ports() -> None:
    data = page_data(browse_dataflow(onnx_module(*SCOPED), fused=False).page())
    (box,) = (item for item in data["items"] if item["label"] == "a")
    rows = [[place for place, _, _ in places] for _, _, places in data["views"][0]["boxes"][str(box["key"])]["rows"]]
    x, last = find(data["items"], "x")["key"], find(data["items"], "r")["key"]
    first = next(item["key"] for item in box["inside"] if item["label"] == "first")
    assert rows == [[f"i{x}"], [str(first)], [str(last)], [f"o{last}"]]
    outer = [[place for place, _, _ in places] for _, _, places in data["views"][0]["boxes"]["-1"]["rows"]]
    assert outer[:2] == [[str(x)], [str(box["key"])]]


def test_an_edge_that_passes_a_layer_has_a_lane() -> None:
    data = data_of("def main(x: f32[n]) -> f32[n] { a = exp(x)\nb = sin(a)\nreturn add(b, x) }", fused=False)
    keys = {name: find(data["items"], name)["key"] for name in ("x", "result")}
    routes = data["views"][0]["boxes"]["-1"]["routes"]
    (lanes,) = (lanes for edge, lanes in routes.items() if edge == f"{keys['x']} {keys['result']}")
    assert len(lanes) == 2


def test_nodes_have_their_details() -> None:
    data = data_of(
        "def main(x: f32[n, 4]) -> f32[n, 4] { return softmax(add(x, const(f32[4], [1, 0, 2, 3])), axis=1) }"
    )
    add = next(item for item in items_of(data) if item["label"] == "add")
    assert add["inputs"][0]["item"] == find(data["items"], "x")["key"]
    constant = data["constants"][add["inputs"][1]["constant"]]
    assert constant | {"bytes": 16, "min": "0", "max": "3", "mean": "1.5", "nan": 0, "inf": 0, "zeros": 1} == constant
    assert data["origins"][add["origins"][0]].startswith("small.relvm:1:")
    assert [item["kernel"] for item in items_of(data) if "kernel" in item] == ["add_max_subtract_and_3_f32"]
    assert data["profile"] is None


def items_of(data: dict[str, Any]) -> list[dict[str, Any]]:
    found, waiting = [], list(data["items"])
    while waiting:
        item = waiting.pop()
        found.append(item)
        waiting.extend(item.get("inside", []))
    return found


def test_links_are_unique() -> None:
    data = data_of("def main(x: f32[n], c: bool) -> f32[n] { b = if c then exp(x) else x\nreturn relu(b) }")
    links = [item["link"] for item in items_of(data)]
    assert len(links) == len(set(links)) and {"b", "b~2", "x"} <= set(links)


@pytest.mark.parametrize(
    "array, expected",
    [
        (
            np.float32([np.nan, np.inf, 0, 2, -np.inf]),
            {"min": "0", "max": "2", "mean": "1", "nan": 1, "inf": 2, "zeros": 1},
        ),
        (np.array([True, False, True]), {"min": "0", "max": "1", "mean": "0.666667", "nan": 0, "inf": 0, "zeros": 1}),
        (np.array([1, 2], ml_dtypes.bfloat16), {"min": "1", "max": "2", "mean": "1.5", "nan": 0, "inf": 0, "zeros": 0}),
        (np.float64([np.nan, np.nan]), {"nan": 2, "inf": 0, "zeros": 0}),
        (np.zeros((0, 3), np.float32), {}),
        (np.int64(7), {"value": "7"}),
    ],
    ids=["specials", "bool", "bf16", "no-finite", "empty", "scalar"],
)
def test_constants_have_statistics(array: np.ndarray, expected: dict[str, Any]) -> None:
    found = constant_statistics(Constant(np.asarray(array)))
    assert {name: value for name, value in found.items() if name not in ("type", "bytes")} == expected


def test_wrong_arguments_are_errors() -> None:
    module = parse_module("def main(x: f32[n]) -> f32[n] { return relu(x) }")
    with pytest.raises(RelvmTypeError, match="profile"):
        browse_dataflow(module, profile="fast")
    with pytest.raises(RelvmTypeError, match="scopes"):
        browse_dataflow(module, scopes=None)
    with pytest.raises(RelvmArgumentError, match="target"):
        browse_dataflow(module, target="cuda")
