"""Tests of interactive graphs in a browser: opening and closing boxes, zoom, search, the panel, links and colors."""

from __future__ import annotations

import html
import re
from pathlib import Path

import numpy as np
import pytest

from relvm import vm
from relvm.errors import RelvmArgumentError
from relvm.explore import browse_calls, browse_dataflow, explore, format_dataflow
from relvm.explore.draw import graph
from relvm.explore.views.interactive_graph import GraphPage
from relvm.frontend.text import parse_module

By = pytest.importorskip("selenium.webdriver.common.by").By
Keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
Actions = pytest.importorskip("selenium.webdriver.common.action_chains").ActionChains
ScrollOrigin = pytest.importorskip("selenium.webdriver.common.actions.wheel_input").ScrollOrigin
Wait = pytest.importorskip("selenium.webdriver.support.wait").WebDriverWait

# The values have different titles.  Edges from one or several values cross several layers.
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
    """Return a function that opens a graph in the browser."""

    def show(page: GraphPage, fragment: str = ""):
        page.save(tmp_path / "graph.html")
        browser.get("about:blank")
        browser.get_log("browser")
        browser.get((tmp_path / "graph.html").as_uri() + fragment)
        return browser

    yield show
    assert browser.get_log("browser") == []  # no script has logged an error


def shown(browser) -> list[str]:
    """Return the titles of the nodes and boxes shown."""
    return browser.execute_script(
        "return [...places.keys()].filter((key) => key !== ROOT).map((key) => titleOf(items[key]))"
    )


def element(browser, title: str):
    """Return the element of the node or box with a title, which must be drawn."""
    key = browser.execute_script("return items.find((item) => titleOf(item) === arguments[0]).key", title)
    return browser.find_element(By.CSS_SELECTOR, f'.item[tabindex][data-key="{key}"]')


def press(browser, keys: str) -> None:
    browser.find_element(By.TAG_NAME, "body").send_keys(keys)


def panel(browser) -> str:
    return browser.find_element(By.ID, "panel").text


def drawn_arrows(browser) -> set[str]:
    """Return the arrows drawn between the nodes and boxes shown."""
    return set(
        browser.execute_script(
            "const name = (key) => titleOf(items[seenAs(key)]);"
            "return pieces.filter((piece) => piece.ends).flatMap((piece) =>"
            " piece.arrows.map((n) => `${name(arrows[n].source)} -> ${name(arrows[n].target)}`))"
        )
    )


def overlapping(browser) -> list:
    """Return the pairs of shown items that overlap although neither contains the other, and items outside their box."""
    return browser.execute_script(
        """const keys = [...places.keys()].filter((key) => key !== ROOT), found = [];
           const box = (key) => places.get(key);
           for (const a of keys) for (const b of keys) {
             if (a >= b || isWithin(a, b) || isWithin(b, a)) continue;
             const [p, q] = [box(a), box(b)];
             if (p.x < q.x + q.width && q.x < p.x + p.width && p.y < q.y + q.height && q.y < p.y + p.height)
               found.push([titleOf(items[a]), titleOf(items[b])]);
           }
           for (const key of keys) {
             const [p, q] = [box(key), box(parent.get(key))];
             if (p.x < q.x || p.y < q.y || p.x + p.width > q.x + q.width || p.y + p.height > q.y + q.height)
               found.push([titleOf(items[key]), "its box"]);
           }
           return found"""
    )


def test_boxes_open_and_close(opened) -> None:
    """Boxes open by the triangle, a double click, the keyboard, or all at once.  Other items move, and none overlap."""
    browser = opened(browse_dataflow(parse_module(TEXT)))
    closed = shown(browser)
    assert "b = if" in closed and "then" not in closed
    title = element(browser, "b = if").find_element(By.CSS_SELECTOR, "text.label").rect
    element(browser, "b = if").find_element(By.CSS_SELECTOR, ".sign").click()
    assert {"if c", "then", "else"} <= set(shown(browser)) and "d = exp" not in shown(browser)
    assert element(browser, "b = if").get_attribute("aria-expanded") == "true"
    assert element(browser, "b = if").find_element(By.TAG_NAME, "rect").rect["y"] == pytest.approx(title["y"], abs=15)
    assert overlapping(browser) == []
    Actions(browser).double_click(element(browser, "then").find_element(By.TAG_NAME, "rect")).perform()
    assert "d = exp" in shown(browser)
    element(browser, "b = if").send_keys(Keys.ENTER)
    assert shown(browser) == closed
    browser.switch_to.active_element.send_keys(" ")
    assert "d = exp" in shown(browser)  # inner boxes stay open
    browser.find_element(By.ID, "open").click()
    assert len(shown(browser)) == len(format_dataflow(parse_module(TEXT)).splitlines())
    assert overlapping(browser) == []
    assert {"d = exp -> result = matmul", "if c -> then", "x -> value = matmul"} <= drawn_arrows(browser)
    browser.find_element(By.ID, "close").click()
    assert shown(browser) == closed
    assert {"b = if -> value_2 = matmul", "a = matmul add relu -> b = if"} <= drawn_arrows(browser)


def test_the_view_zooms_and_moves(opened) -> None:
    browser = opened(browse_dataflow(parse_module(TEXT)))
    state = "return [view.scale, view.x, view.y]"
    scale, x, y = browser.execute_script(state)
    press(browser, "+")
    assert browser.execute_script(state)[0] == pytest.approx(1.25 * scale)
    graph = browser.find_element(By.ID, "graph")
    origin = ScrollOrigin.from_element(graph)
    Actions(browser).scroll_from_origin(origin, 0, 200).perform()
    assert browser.execute_script(state)[0] < 1.25 * scale
    before = browser.execute_script(state)
    Actions(browser).move_to_element_with_offset(graph, -300, 200).click_and_hold().move_by_offset(
        40, 30
    ).release().perform()
    after = browser.execute_script(state)
    assert [after[1] - before[1], after[2] - before[2]] == pytest.approx([40, 30], abs=1)
    browser.find_element(By.ID, "fit").click()
    assert browser.execute_script(state) == pytest.approx([scale, x, y])


def test_a_search_opens_the_boxes_of_its_hits(opened) -> None:
    browser = opened(browse_dataflow(parse_module(TEXT)))
    press(browser, "/")
    browser.switch_to.active_element.send_keys("EXP")
    assert browser.find_element(By.ID, "position").text == "1 hit"
    assert "hit" in element(browser, "b = if").get_attribute("class").split()
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert browser.find_element(By.ID, "position").text == "1 of 1"
    assert "d = exp" in shown(browser) and panel(browser).startswith("exp\n")
    field = browser.find_element(By.ID, "search")
    field.clear()
    field.send_keys("f32[64, 64]", Keys.ENTER)
    assert panel(browser).startswith("w\n")


def test_the_panel_describes_the_selected_node(opened) -> None:
    browser = opened(browse_dataflow(parse_module(TEXT, "small.relvm"), depth=1))
    element(browser, "value_1 = add").click()
    text = panel(browser)
    for words in ("value_1", "f32[n, 64]", "matmul_add_relu_f32", "matmul value", "f32[] 1.0", "small.relvm:3:"):
        assert words in text, words
    assert browser.current_url.endswith("#node=value_1")
    browser.find_element(By.CSS_SELECTOR, "#panel td .go[data-go]").click()  # go to the box of the fused kernel
    assert panel(browser).startswith("matmul add relu\n")
    press(browser, "j")
    assert panel(browser).startswith("exp\n")  # the first user of the value, inside two boxes
    press(browser, Keys.ESCAPE)
    assert "boxes" in panel(browser) and "#node" not in browser.current_url.rstrip("#")


def test_a_link_shows_its_node(opened) -> None:
    browser = opened(browse_dataflow(parse_module(TEXT)), "#node=d")
    assert "d = exp" in shown(browser) and panel(browser).startswith("exp\n")
    browser.execute_script("location.hash = '#node=nowhere'")
    Wait(browser, 5).until(lambda _: "no node nowhere" in panel(browser))


def test_a_profile_colors_its_kernels(opened) -> None:
    module = parse_module(TEXT)
    arguments = np.ones((8, 64), np.float32), np.ones((64, 64), np.float32), True
    profile = vm.VirtualMachine(vm.build(module)).profile("main", *arguments)
    browser = opened(browse_dataflow(module, profile=profile))
    assert "hot" in element(browser, "a = matmul add relu").get_attribute("class").split()
    legend = browser.find_element(By.ID, "legend").text
    assert legend.startswith("time of a kernel: 0") and legend.endswith("s")
    assert "Longest times" in browser.find_element(By.ID, "panel").get_property("textContent")
    element(browser, "a = matmul add relu").click()
    for words in ("GB/s", "GFLOP/s", "calls", "share"):
        assert words in panel(browser), words
    with pytest.raises(RelvmArgumentError, match="profile: the module has no kernel matmul_"):
        browse_dataflow(parse_module(CALLS), profile=profile)


def test_the_scale_of_colors_is_that_of_kernels_also_for_closed_boxes(opened) -> None:
    module = parse_module(TEXT)
    arguments = np.ones((8, 64), np.float32), np.ones((64, 64), np.float32), True
    profile = vm.VirtualMachine(vm.build(module)).profile("main", *arguments)
    kernels = {row.name: row.seconds / row.count for row in profile.rows if row.kind == "kernel"}
    for depth in (0, 1, 3):
        browser = opened(browse_dataflow(module, profile=profile, depth=depth))
        assert browser.execute_script("return hottest") == pytest.approx(max(kernels.values()))
        shares = browser.execute_script(
            "return [...document.querySelectorAll('.item.hot')].map((each) => +each.style.getPropertyValue('--share'))"
        )
        assert shares and max(shares) == 1


def test_colors_follow_the_system_or_the_setting(opened) -> None:
    browser = opened(browse_dataflow(parse_module(TEXT)))

    def background() -> str:
        return browser.execute_script("return getComputedStyle(document.body).backgroundColor")

    browser.execute_script("set('theme', 'light dark')")
    found = []
    for system in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": system}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        found.append(background())
    assert found == ["rgb(255, 255, 255)", "rgb(13, 17, 23)"]
    browser.find_element(By.CSS_SELECTOR, "select option[value=light]").click()
    assert background() == found[0]
    browser.execute_script("set('theme', 'light dark')")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_every_kind_has_a_color() -> None:
    css = (Path(graph.__file__).parents[1] / "page_files" / "graph.css").read_text()
    for kind in graph.COLORS:
        assert f".item.{kind} {{" in css, kind


def test_calls_have_their_kernels_inside(opened) -> None:
    browser = opened(browse_calls(parse_module(CALLS)))
    assert sorted(shown(browser)) == ["even", "main", "odd", "once", "packed host.f"]
    element(browser, "main").find_element(By.CSS_SELECTOR, ".sign").click()
    assert "exp_f32" in shown(browser) and "relu_f32" not in shown(browser)
    assert {"even -> odd", "odd -> even", "once -> once"} <= drawn_arrows(browser)
    assert len(browser.find_elements(By.CSS_SELECTOR, ".arrow.marked")) == 3


def test_each_function_is_a_box(opened) -> None:
    browser = opened(browse_dataflow(parse_module(CALLS)))
    assert {"function main", "function even", "function odd", "function once"} <= set(shown(browser))
    element(browser, "value_1 = @even").click()
    browser.find_element(By.XPATH, "//aside//td[text()='calls']/..//button").click()
    assert panel(browser).startswith("function even\n")


def test_nodes_and_lines_of_stages_lead_to_each_other(browser, tmp_path: Path) -> None:
    explore(parse_module(TEXT, "small.relvm")).save(tmp_path / "stages.html")
    address = (tmp_path / "stages.html").as_uri()
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(f"{address}#stage=share_kernels&line=9")
    assert browser.find_element(By.CSS_SELECTOR, ".line.selected").text.strip() == "d: f32[n, 64] = exp(a)"
    press(browser, "g")
    Wait(browser, 10).until(lambda _: browser.current_url.endswith("graph=d"))
    browser.switch_to.frame("graph")
    assert panel(browser).startswith("exp\n")
    press(browser, "j")  # the user of d
    assert panel(browser).startswith("matmul\n")
    browser.find_element(By.CSS_SELECTOR, "[data-do=stage]").click()
    browser.switch_to.default_content()
    # The frame asks with a message, which the page handles later: the address changes last.
    Wait(browser, 10).until(lambda _: browser.current_url.endswith("#stage=share_kernels&line=10"))
    assert browser.find_element(By.CSS_SELECTOR, ".line.selected").text.strip() == "result: f32[n, 64] = matmul(d, w)"
    browser.get("about:blank")
    browser.get(f"{address}#stage=given&line=5&graph=g")  # a link to a node
    browser.switch_to.frame("graph")
    Wait(browser, 10).until(lambda _: panel(browser).startswith("matmul\n"))
    press(browser, "g")
    browser.switch_to.default_content()
    Wait(browser, 10).until(lambda _: not browser.find_element(By.ID, "graph").is_displayed())
    assert browser.find_element(By.ID, "left").is_displayed()
    assert browser.get_log("browser") == []


def test_a_title_that_looks_like_html_is_text(opened) -> None:
    page = browse_dataflow(parse_module(TEXT))
    browser = opened(GraphPage("</script> & <b>", page.graph, 0))
    assert browser.title == "</script> & <b>" and len(shown(browser)) > 3


def test_a_notebook_shows_the_page_in_a_frame() -> None:
    page = browse_dataflow(parse_module(TEXT), depth=1)
    (content,) = re.findall(r'<iframe srcdoc="([^"]*)"', page._repr_html_())
    assert html.unescape(content) == page.page()
    assert str(page) == format_dataflow(parse_module(TEXT))


def test_a_negative_depth_is_an_error() -> None:
    module = parse_module(TEXT)
    for browse in (browse_dataflow, browse_calls):
        with pytest.raises(RelvmArgumentError, match="depth=-1: expected an integer of at least 0"):
            browse(module, depth=-1)
        with pytest.raises(RelvmArgumentError, match="depth=-2: expected an integer of at least 0"):
            browse(module).figure(-2)
