"""Tests of what the page of a graph shows at first: hidden bookkeeping, readable text, folded blocks, free captions."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from explore.test_graph_data import onnx_module

from relvm.explore import browse_calls, browse_dataflow
from relvm.explore.views.interactive_graph import GraphPage
from relvm.frontend.text import parse_module
from relvm.ir.expr import Module

By = pytest.importorskip("selenium.webdriver.common.by").By
Actions = pytest.importorskip("selenium.webdriver.common.action_chains").ActionChains

CHECKED = """
def main(x: f32[n, 4], k: i64) => f32[m, 4] {
  a = packed("host.pair", x) : (object, f32[n, 4])
  b = match_cast(a.0, f32[m, 4])
  c = exp(b)
  d = match_cast(c, f32[m, 4])
  e = packed("host.sized", k * 2) : object
  f = match_cast(e, f32[m, 4])
  return add(add(d, f), sum(relu(a.1)))
}"""
BRANCHES = """
def main(x: f32[n, 64], w: f32[64, 64], c: bool) -> f32[n, 64] {
  a = relu(add(matmul(x, w), const(f32[], 1.0)))
  b = if c then { d = exp(a); return matmul(d, w) } else { e = matmul(a, w); return if c then exp(e) else matmul(e, w) }
  g = matmul(transpose(transpose(matmul(b, w), perm=(1, 0)), perm=(1, 0)), w)
  return add(add(multiply(b, g), x), a)
}"""
CALLS = """
def main(x: f32[n], i: i64) => f32[n] { return add(@even(exp(x), i), @even(sin(x), i)) }
def even(x: f32[n], i: i64) -> f32[n] { return if i == 0 then x else @odd(relu(x), i - 1) }
def odd(x: f32[n], i: i64) -> f32[n] { return if i == 0 then tanh(x) else @even(x, i - 1) }
"""

# The scope `a` is entered again after the scope `b`, so that edges lead from each box to the other.
INTERLEAVED = tuple(
    (f"/net/{scope}/{op}", op, f"{scope}{number}")
    for number, (scope, op) in enumerate(
        [("a", "Exp"), ("a", "Sin"), ("b", "Cos"), ("b", "Tanh"), ("a", "Relu"), ("a", "Exp"), ("b", "Sin")]
    )
)

# The lines of arrows that cross a caption, found at points two pixels apart.
CROSSINGS = """
const captions = [...document.querySelectorAll("#graph text:not(.sign)")]
  .map((text) => [text.textContent, text.getBoundingClientRect()]);
const found = [];
for (const arrow of document.querySelectorAll(".arrow")) {
  const matrix = arrow.getScreenCTM(), length = arrow.getTotalLength();
  for (let at = 0; at <= length; at += 2) {
    const { x, y } = arrow.getPointAtLength(at).matrixTransform(matrix);
    for (const [text, box] of captions)
      if (box.left < x && x < box.right && box.top < y && y < box.bottom) found.push([text, arrow.getAttribute("d")]);
  }
}
return [captions.length, found]"""

# The sizes on the screen, in pixels, of the texts that are on the screen.
TEXT_SIZES = """
return [...document.querySelectorAll("#graph text:not(.sign)")].filter((text) => {
  const { left, top } = text.getBoundingClientRect();
  return left >= 0 && top >= 0 && left < innerWidth && top < innerHeight;
}).map((text) => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)"""


def layers(count: int) -> Module:
    """A chain of layers with a residual connection, an input that all of them use, and other operators around."""
    lines = ["v0 = tanh(matmul(x, w))"]
    for i in range(count):
        lines += [
            f"a{i} = matmul(v{i}, w)",
            f"b{i} = matmul(softmax(add(a{i}, m), axis=1), w)",
            f"v{i + 1} = add(v{i}, matmul(relu(b{i}), w))",
        ]
    body = "\n  ".join(lines)
    text = f"def main(x: f32[n, 4], w: f32[4, 4], m: f32[n, 4]) -> f32[n, 4] {{\n  {body}\n  return sin(v{count})\n}}"
    return parse_module(text)


@pytest.fixture
def opened(browser, tmp_path: Path):
    """Return a function that opens a graph in a window whose contents have 1280 x 720 pixels."""

    def show(page: GraphPage):
        page.save(tmp_path / "graph.html")
        browser.get("about:blank")
        browser.get_log("browser")
        metrics = {"width": 1280, "height": 720, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        browser.get((tmp_path / "graph.html").as_uri())
        return browser

    yield show
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert browser.get_log("browser") == []


def shown(browser) -> list[str]:
    """Return the labels of the nodes and boxes shown."""
    return browser.execute_script(
        "return [...places.keys()].filter((key) => key !== ROOT).map((key) => items[key].label || items[key].name)"
    )


def drawn_arrows(browser) -> set[str]:
    return set(
        browser.execute_script(
            "const name = (key) => items[seenAs(key)].label || items[seenAs(key)].name;"
            "return pieces.filter((piece) => piece.ends).flatMap((piece) =>"
            " piece.arrows.map((n) => `${name(arrows[n].source)} -> ${name(arrows[n].target)}`))"
        )
    )


def toggle(browser, label: str) -> None:
    key = browser.execute_script("return items.find((item) => item.label === arguments[0]).key", label)
    browser.find_element(By.CSS_SELECTOR, f'.item[data-key="{key}"] .sign').click()


def test_bookkeeping_is_hidden_until_the_switch_shows_it(opened) -> None:
    browser = opened(browse_dataflow(parse_module(CHECKED), fused=False))
    labels = shown(browser)
    assert not {"match_cast", "item 0", "prim multiply"} & set(labels) and "packed host.pair" in labels
    assert {"packed host.pair -> exp", "packed host.pair -> relu", "k -> packed host.sized"} <= drawn_arrows(browser)
    browser.find_element(By.ID, "full").click()
    labels = shown(browser)
    assert labels.count("match_cast") == 3 and "item 0" in labels
    assert {"item 0 -> match_cast", "match_cast -> exp"} <= drawn_arrows(browser)
    assert "packed host.pair -> exp" not in drawn_arrows(browser)
    browser.find_element(By.TAG_NAME, "body").send_keys("b")
    assert "match_cast" not in shown(browser)
    assert not browser.find_element(By.ID, "full").is_selected()


def test_a_search_shows_hidden_hits(opened) -> None:
    browser = opened(browse_dataflow(parse_module(CHECKED), fused=False))
    browser.find_element(By.ID, "search").send_keys("match_cast\n")
    assert "match_cast" in shown(browser) and browser.find_element(By.ID, "full").is_selected()


def test_a_graph_without_bookkeeping_has_no_switch(opened) -> None:
    browser = opened(browse_dataflow(parse_module(BRANCHES)))
    assert not browser.find_element(By.ID, "switch").is_displayed()


def test_a_graph_of_nothing_but_bookkeeping_shows_it(opened) -> None:
    browser = opened(browse_dataflow(parse_module("def main(i: i64) -> i64 { return i * 2 + i }")))
    assert any(label.startswith("prim") for label in shown(browser))


@pytest.mark.parametrize(
    "make",
    [
        lambda: browse_dataflow(parse_module(CHECKED)),
        lambda: browse_dataflow(parse_module(BRANCHES)),
        lambda: browse_dataflow(parse_module(CALLS)),
        lambda: browse_calls(parse_module(CALLS)),
        lambda: browse_dataflow(layers(60)),
        lambda: browse_dataflow(onnx_module(*INTERLEAVED), fused=False),
    ],
    ids=["bookkeeping", "branches", "functions", "calls", "layers", "interleaved"],
)
def test_captions_can_be_read(opened, make: Callable[[], GraphPage]) -> None:
    """At first, text has at least 11 pixels.  No arrow crosses a caption, whatever is open."""
    browser = opened(make())
    sizes = browser.execute_script(TEXT_SIZES)
    assert len(sizes) >= 4 and min(sizes) >= 11
    for action in ("", "setFull(true); openAll()"):
        # All items are drawn, also those outside the screen.
        everything = "eval('shownPart = () => [-1e7, -1e7, 1e7, 1e7]'); view.scale = 1; paint(); applyView();"
        browser.execute_script(f"{action}; {everything}")
        count, crossings = browser.execute_script(CROSSINGS)
        assert count >= len(sizes) and crossings == [], action


def test_repeated_blocks_are_folded(opened) -> None:
    browser = opened(browse_dataflow(layers(60), fused=False))
    labels = shown(browser)
    assert "block 0 \u2026 block 59" in labels and len(labels) < 12 and "relu" not in labels
    toggle(browser, "block 0 \u2026 block 59")
    labels = shown(browser)
    assert [f"block {i}" for i in range(60)] == [
        label for label in labels if label.startswith("block") and "\u2026" not in label
    ]
    toggle(browser, "block 1")
    assert shown(browser).count("relu") == 1
    toggle(browser, "block 0 \u2026 block 59")
    assert "block 1" not in shown(browser)


def test_a_legend_explains_the_colors_that_occur(opened) -> None:
    browser = opened(browse_dataflow(parse_module(BRANCHES)))
    colors = browser.find_element(By.ID, "colors")
    assert colors.text.splitlines() == [
        "input or result",
        "operator with a kernel of its own",
        "kernel of several operators",
        "if",
        "branch of an if",
    ]
    for kind in ("operator", "group"):
        swatch = colors.find_element(By.CSS_SELECTOR, f".{kind} i").value_of_css_property("background-color")
        drawn = browser.find_element(By.CSS_SELECTOR, f"#graph .item.{kind} > rect").value_of_css_property("fill")
        assert re.findall(r"\d+", swatch)[:3] == re.findall(r"\d+", drawn)[:3]


def test_long_sizes_have_short_names(opened) -> None:
    text = "def main(x: f32[batch_of_many_pictures, 4]) -> f32[batch_of_many_pictures * 2, 4] {\n"
    text += "  y = concat(x, x, axis=0)\n  return exp(y)\n}"
    browser = opened(browse_dataflow(parse_module(text), fused=False))
    texts = [each.text for each in browser.find_elements(By.CSS_SELECTOR, "#graph text")]
    assert "f32[d0, 4]" in texts and "f32[d1, 4]" in texts
    rows = browser.find_element(By.ID, "panel").text
    assert "d0 batch_of_many_pictures" in rows and "d1 d0 * 2" in rows
    key = browser.execute_script("return items.find((item) => item.label === 'exp').key")
    Actions(browser).move_to_element(browser.find_element(By.CSS_SELECTOR, f'.item[data-key="{key}"] > rect')).perform()
    assert "f32[batch_of_many_pictures * 2, 4]" in browser.find_element(By.ID, "tip").text
