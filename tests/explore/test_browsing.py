"""Pages of graphs whose boxes open and close by a click."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from explore.drawn import arrows, rectangles

from relvm.errors import RelvmArgumentError
from relvm.explore import browse_calls, browse_dataflow, format_dataflow
from relvm.explore.draw.graph import PAD
from relvm.explore.views.interactive_graph import GraphPage
from relvm.frontend.text import parse_module

By = pytest.importorskip("selenium.webdriver.common.by").By

SCALE = 120  # pixels an inch, as the page has it

# Values of different titles; edges that pass several layers, from one value and from several.
TEXT = """
def main(x: f32[n, 64], w: f32[64, 64], c: bool) -> f32[n, 64] {
  a = relu(add(matmul(x, w), const(f32[], 1.0)))
  b = if c then { d = exp(a); return matmul(d, w) } else a
  e = transpose(matmul(b, w), perm=(1, 0))
  g = matmul(transpose(e, perm=(1, 0)), w)
  return add(add(multiply(b, g), x), a)
}"""
CALLS = """
def main(x: f32[n], i: i64) => f32[n] { return add(@even(exp(x), i), @once(exp(x), i)) }
def even(x: f32[n], i: i64) -> f32[n] { return if i == 0 then x else @odd(relu(x), i - 1) }
def odd(x: f32[n], i: i64) -> f32[n] { return if i == 0 then tanh(x) else @even(x, i - 1) }
def once(x: f32[n], i: i64) => f32[n] { return if i == 0 then x else @once(packed("host.f", x) : f32[n], i - 1) }
"""


@pytest.fixture
def opened(browser, tmp_path: Path):
    """Shows a page."""

    def show(page: GraphPage):
        page.save(tmp_path / "graph.html")
        browser.get_log("browser")
        browser.get((tmp_path / "graph.html").as_uri())
        return browser

    yield show
    assert browser.get_log("browser") == []  # no script has failed


def group(browser, title: str):
    """What has that first line."""
    return next(each for each in groups(browser) if title_of(browser, each) == title)


def groups(browser) -> list:
    return browser.find_elements(By.CSS_SELECTOR, ".item")


def title_of(browser, element) -> str:
    return element.find_element(By.CSS_SELECTOR, "text:not(.sign)").get_property("textContent")


def click(browser, title: str) -> None:
    """At the left upper corner of its rectangle, which no other covers."""
    browser.execute_script(
        """const box = arguments[0].querySelector("rect").getBoundingClientRect();
           const hit = document.elementFromPoint(box.left + 3, box.top + 3);
           hit.dispatchEvent(new MouseEvent("click", {bubbles: true}))""",
        group(browser, title),
    )


def shown(browser) -> list[str]:
    return [title_of(browser, each) for each in groups(browser)]


def drawn(browser) -> dict[str, tuple[float, ...]]:
    """Left, right, top and bottom of every item, in inches."""
    found = {}
    for each in groups(browser):
        rect = each.find_element(By.TAG_NAME, "rect")
        x, y, width, height = (float(rect.get_attribute(name)) / SCALE for name in ("x", "y", "width", "height"))
        found[title_of(browser, each)] = (x, x + width, y, y + height)
    return found


def drawn_arrows(browser) -> list[str]:
    names = {each.get_attribute("data-key"): title_of(browser, each) for each in groups(browser)}
    lines = browser.find_elements(By.CSS_SELECTOR, ".arrow")
    return [f"{names[a.get_attribute('data-source')]} -> {names[a.get_attribute('data-target')]}" for a in lines]


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("browse", [browse_dataflow, browse_calls])
def test_everything_is_where_the_picture_has_it(opened, browse, depth: int) -> None:
    page = browse(parse_module(TEXT if browse is browse_dataflow else CALLS), depth=depth)
    browser = opened(page)
    (axes,) = page.figure().axes
    expected = rectangles(axes)
    lower = min(top for _, _, top, _ in expected.values()) - PAD  # the picture has its title there
    got = drawn(browser)
    assert got.keys() == expected.keys()
    for title, (left, right, top, bottom) in expected.items():
        assert got[title] == pytest.approx((left, right, top - lower, bottom - lower), abs=1e-6)
    assert sorted(drawn_arrows(browser)) == sorted(arrows(axes))


def test_a_click_on_a_box_opens_and_closes_it(opened) -> None:
    browser = opened(browse_dataflow(parse_module(TEXT)))
    address = browser.current_url
    closed = shown(browser)
    assert "then" not in closed and "d = exp" not in closed
    click(browser, "b = if")
    assert {"if c", "then", "else"} <= set(shown(browser)) and "d = exp" not in shown(browser)
    assert group(browser, "b = if").get_attribute("aria-expanded") == "true"
    click(browser, "then")
    assert "d = exp" in shown(browser)
    click(browser, "d = exp")  # a value: nothing happens
    assert "d = exp" in shown(browser)
    click(browser, "b = if")
    assert shown(browser) == closed
    click(browser, "b = if")
    assert "d = exp" in shown(browser)  # as it was left
    assert browser.current_url == address


def test_the_keyboard_opens_a_box(opened) -> None:
    browser = opened(browse_dataflow(parse_module(TEXT)))
    group(browser, "b = if").send_keys("\ue007")
    assert "then" in shown(browser)
    browser.switch_to.active_element.send_keys(" ")
    assert "then" not in shown(browser)


def test_all_boxes_open_and_close_by_a_button(opened) -> None:
    page = browse_dataflow(parse_module(TEXT))
    browser = opened(page)
    closed = shown(browser)
    browser.find_element(By.ID, "open").click()
    assert len(shown(browser)) == len(format_dataflow(parse_module(TEXT)).splitlines())
    browser.find_element(By.ID, "close").click()
    assert shown(browser) == closed


def test_what_is_clicked_stays_where_it_is(opened) -> None:
    browser = opened(browse_dataflow(parse_module(TEXT)))
    last = shown(browser)[-1]
    browser.execute_script("arguments[0].scrollIntoView()", group(browser, last))
    before = group(browser, "b = if").find_element(By.TAG_NAME, "rect").rect
    click(browser, "b = if")
    after = group(browser, "b = if").find_element(By.TAG_NAME, "rect").rect
    assert before["y"] == pytest.approx(after["y"], abs=2)


def test_calls_have_their_kernels_inside(opened) -> None:
    browser = opened(browse_calls(parse_module(CALLS)))
    assert sorted(shown(browser)) == ["even", "main", "odd", "once", "packed host.f"]
    click(browser, "main")
    assert "exp_f32" in shown(browser) and "relu_f32" not in shown(browser)
    assert {"even -> odd", "odd -> even", "once -> once"} <= set(drawn_arrows(browser))
    assert len(browser.find_elements(By.CSS_SELECTOR, ".arrow.marked")) == 3


def test_a_title_that_looks_like_html_is_text(opened) -> None:
    page = browse_dataflow(parse_module(TEXT))
    browser = opened(GraphPage("</script> & <b>", page.graph, 0))
    assert browser.title == "</script> & <b>" and len(shown(browser)) > 3


def test_a_notebook_shows_the_page_in_a_frame() -> None:
    page = browse_dataflow(parse_module(TEXT), depth=1)
    (content,) = re.findall(r'^<iframe srcdoc="([^"]*)"', page._repr_html_())
    assert html.unescape(content) == page.page()
    assert str(page) == format_dataflow(parse_module(TEXT))


def test_a_negative_depth_is_an_error() -> None:
    module = parse_module(TEXT)
    for browse in (browse_dataflow, browse_calls):
        with pytest.raises(RelvmArgumentError, match="depth=-1: expected an integer of at least 0"):
            browse(module, depth=-1)
        with pytest.raises(RelvmArgumentError, match="depth=-2: expected an integer of at least 0"):
            browse(module).figure(-2)
