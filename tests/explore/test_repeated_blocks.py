"""Tests of folding repeated blocks, of hiding bookkeeping, and of short names for sizes, without a browser."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from relvm.explore import browse_dataflow
from relvm.explore.draw.graph import Item, all_items, collapse, format_graph
from relvm.explore.views.bookkeeping import hide_bookkeeping
from relvm.explore.views.interactive_graph import GraphPage
from relvm.frontend.onnx import from_onnx
from relvm.frontend.text import parse_module

onnx = pytest.importorskip("onnx")


def graph_of(body: str, result: str) -> GraphPage:
    text = f"def main(x: f32[n, 4], w: f32[4, 4], k: i64) -> f32[n, 4] {{\n{body}\nreturn {result}\n}}"
    return browse_dataflow(parse_module(text), fused=False)


def folded(page: GraphPage) -> dict[str, str]:
    """Return the label and the detail of each box of repeated blocks."""
    return {item.label: item.detail for item in all_items(page.graph.items) if item.kind == "repeat"}


def shown(page: GraphPage) -> str:
    """Return the text of the graph without bookkeeping and with all boxes closed."""
    return format_graph(collapse(hide_bookkeeping(replace(page.graph, sizes={})), 0))


def chain(*blocks: tuple[int, tuple[str, ...]]) -> GraphPage:
    """A chain of unary operators: for each block, how often it occurs, and its operators."""
    lines, last = [], "x"
    for count, ops in blocks:
        for op in ops * count:
            lines.append(f"v{len(lines)} = {op}({last})")
            last = f"v{len(lines) - 1}"
    return graph_of("\n".join(lines), last)


def test_each_run_of_a_block_is_folded() -> None:
    page = chain((60, ("exp", "sin", "cos")), (2, ("tanh",)), (30, ("relu", "exp")))
    assert folded(page) == {
        "block 0 \u2026 block 59": "60 \u00d7 3 values\nexp, sin, cos",
        "block 60 \u2026 block 89": "30 \u00d7 2 values\nrelu, exp",
    }
    assert [line.split(" = ")[-1].split(":")[0].split("  <-")[0] for line in shown(page).splitlines()] == [
        "x",
        "w",
        "k",
        "block 0 \u2026 block 59",
        "tanh",
        "tanh",
        "block 60 \u2026 block 89",
        "return v241",
    ]


def test_a_repeated_operator_needs_no_blocks() -> None:
    assert folded(chain((300, ("exp",)))) == {"300 \u00d7 exp": ""}


@pytest.mark.parametrize(
    "page",
    [
        chain((40, ("exp", "sin", "cos"))),
        chain((1, tuple(random.Random(0).choices(("exp", "sin", "cos", "tanh", "relu", "sqrt"), k=300)))),
    ],
    ids=["small", "irregular"],
)
def test_other_graphs_are_not_folded(page: GraphPage) -> None:
    assert folded(page) == {}


def test_blocks_with_other_edges_are_not_copies() -> None:
    """In the second half, the sum has another second operand."""
    body = []
    for i in range(80):
        last = f"c{i - 1}" if i else "x"
        body += [f"a{i} = exp({last})", f"b{i} = sin(a{i})", f"c{i} = add(b{i}, {last if i < 40 else f'a{i}'})"]
    page = graph_of("\n".join(body), "c79")
    assert list(folded(page)) == ["block 0 \u2026 block 39", "block 40 \u2026 block 79"]


def test_a_copy_begins_where_few_values_are_passed_on() -> None:
    """Each layer ends with its residual addition, although the sequence of operators also repeats from others on."""
    body = ["v0 = exp(x)"]
    for i in range(60):
        body += [f"a{i} = matmul(v{i}, w)", f"b{i} = relu(a{i})", f"v{i + 1} = add(v{i}, b{i})"]
    page = graph_of("\n".join(body), "v60")
    (repeat,) = (item for item in page.graph.items if item.kind == "repeat")
    assert [item.label for item in repeat.inside[0].inside] == ["matmul", "relu", "add"]
    assert len(repeat.inside) == 60


def test_names_of_onnx_nodes_are_the_captions() -> None:
    nodes, before = [], "x"
    for layer in range(12):
        for op in ("Exp", "Sin", "Cos", "Tanh") * 4:
            name = f"/model/layers.{layer}/{op}_{len(nodes)}"
            nodes.append(onnx.helper.make_node(op, [before], [name], name=name))
            before = name
    infos = [onnx.helper.make_tensor_value_info(each, 1, ["n", 4]) for each in ("x", before)]
    graph = onnx.helper.make_graph(nodes, "g", infos[:1], infos[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    page = browse_dataflow(from_onnx(model), fused=False)
    assert list(folded(page)) == ["layers.0 \u2026 layers.11"]
    (repeat,) = (item for item in page.graph.items if item.kind == "repeat")
    assert [item.label for item in repeat.inside] == [f"layers.{layer}" for layer in range(12)]


def test_the_page_of_a_large_model_is_small() -> None:
    page = chain((300, ("exp", "sin", "cos", "relu", "tanh", "exp", "sin", "cos", "relu")))
    assert sum(not item.inside for item in all_items(page.graph.items)) > 2700
    assert len(page.page().encode()) < 2_000_000
    assert len(shown(page).splitlines()) < 10


def test_edges_lead_through_bookkeeping() -> None:
    """An edge for a value is always drawn.  One for a size is not drawn if others already lead there."""
    text = """
    def main(x: f32[n, 4], k: i64, j: i64) => (object, f32[n, 4]) {
      p = packed("host.pair", x, k) : (f32[n, 4], i64)
      a = exp(p.0)
      b = add(a, p.0)
      return (packed("host.use", b, p.1 + j) : object, b)
    }"""
    page = browse_dataflow(parse_module(text), fused=False)
    arrows = {(arrow.source, arrow.target) for arrow in hide_bookkeeping(page.graph).arrows}
    names = {item.key: item.label.split()[-1] if item.label else item.name for item in all_items(page.graph.items)}
    assert {(names[a], names[b]) for a, b in arrows} == {
        ("x", "host.pair"),
        ("k", "host.pair"),
        ("host.pair", "exp"),
        ("exp", "add"),
        ("host.pair", "add"),
        ("add", "host.use"),
        ("j", "host.use"),
        ("host.use", "result"),
        ("add", "result"),
    }


def test_integer_tensors_that_only_sizes_use_are_bookkeeping() -> None:
    """`count` is only used as a size.  `index` is also used by an operator."""
    text = """
    def main(x: f32[n, 4], p: i64[], q: i64[]) => (object, object, i64[]) {
      count = add(p, q)
      index = multiply(p, q)
      a = packed("host.take", x, to_scalar(count)) : object
      b = packed("host.take", x, to_scalar(index)) : object
      return (a, b, negative(index))
    }"""
    page = browse_dataflow(parse_module(text), fused=False)
    hidden = {item.name for item in all_items(page.graph.items) if item.is_bookkeeping}
    assert "count" in hidden and "index" not in hidden
    lines = shown(page).splitlines()
    assert "a = packed host.take: object  <- x, q, p" in lines
    assert "b = packed host.take: object  <- x, index" in lines


def test_tensors_computed_from_sizes_are_bookkeeping() -> None:
    """Such as indices of positions, and zeros that fill a tensor.  Tensors computed from the data are not."""
    text = """
    def main(x: f32[n, 4], table: f32[9, 4], ids: i64[n]) => f32[n, 4] {
      positions = multiply(shape_to_tensor(shape(n)), const(i64[1], [2]))
      rows = remainder(broadcast_to(positions, shape(n)), const(i64[], 9))
      fill = broadcast_to(const(f32[], 1.0), shape(n, 4))
      scaled = multiply(fill, const(f32[], 3.0))
      known = match_cast(ids, i64[n])
      shifted = add(known, const(i64[], 1))
      return add(add(x, scaled), add(gather(table, rows, axis=0), gather(table, shifted, axis=0)))
    }"""
    page = browse_dataflow(parse_module(text), fused=False, target="bytecode")
    hidden = {item.name for item in all_items(page.graph.items) if item.is_bookkeeping}
    assert {"positions", "rows", "fill"} <= hidden and not {"shifted", "scaled", "x", "ids"} & hidden
    assert any("<- ids" in line and line.startswith("shifted = add") for line in shown(page).splitlines())


def item_named(page: GraphPage, name: str) -> Item:
    return next(item for item in all_items(page.graph.items) if item.name == name)


def test_short_names_of_sizes_are_new() -> None:
    """d0 is a size of the program, so that d1 is the first short name."""
    text = "def main(x: f32[d0, number_of_all_tokens]) -> f32[d0, number_of_all_tokens * 2] {\n"
    page = browse_dataflow(parse_module(f"{text} y = concat(x, x, axis=1)\n return y }}"))
    assert item_named(page, "x").detail == "f32[d0, d1]"
    assert item_named(page, "y").detail == "f32[d0, d2]"
    assert page.graph.sizes == {"d1": "number_of_all_tokens", "d2": "d1 * 2"}
    assert str(page).splitlines()[-2:] == ["d1 = number_of_all_tokens", "d2 = d1 * 2"]
