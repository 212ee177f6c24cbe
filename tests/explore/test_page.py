"""The page of an exploration in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from relvm.explore import explore
from relvm.frontend.text import parse_module

By = pytest.importorskip("selenium.webdriver.common.by").By


def open_page(browser, folder: Path, text: str) -> None:
    explore(parse_module(text, "model.relvm"), exec_mode="compiled", title="</script> & <b>").save(folder / "page.html")
    browser.get_log("browser")
    browser.get((folder / "page.html").as_uri())


def choose(browser, name: str) -> None:
    """Puts a stage on the right, and the one before it on the left."""
    stages = browser.find_elements(By.CSS_SELECTOR, ".stage")
    next(stage for stage in stages if f"\n{name}\n" in f"\n{stage.text}\n").click()


def lines(browser, side: str, kind: str = "") -> list[str]:
    found = browser.find_elements(By.CSS_SELECTOR, f"#{side} .line[data-n]{kind}")
    return [element.get_property("textContent") for element in found]


SMALL = """
def main(x: f32[n, 4], y: f32[n, 4]) -> f32[n, 4] {
  a = multiply(x, const(f32[1], [2]))
  b = relu(add(a, y))
  return transpose(transpose(exp(softmax(b, axis=1)), perm=(1, 0)), perm=(1, 0))
}"""


@pytest.fixture
def page(browser, tmp_path: Path):
    open_page(browser, tmp_path, SMALL)
    yield browser
    assert browser.get_log("browser") == []  # no script has failed


def test_the_page_shows_stages_beside_each_other(page) -> None:
    assert page.title == "</script> & <b>"
    choose(page, "fuse_ops")
    assert page.find_element(By.CSS_SELECTOR, "#left h2").text.startswith("decompose")
    assert any("= fused {" in line for line in lines(page, "right", ".added"))
    assert not any("= fused {" in line for line in lines(page, "left"))
    common = "def main(x: f32[n, 4], y: f32[n, 4]) -> f32[n, 4] {"
    assert common in lines(page, "left") and common in lines(page, "right")
    assert common not in lines(page, "left", ".removed")


def test_lines_that_are_the_same_are_at_the_same_height(page) -> None:
    choose(page, "fuse_ops")
    places = [
        {
            element.get_property("textContent"): element.rect["y"]
            for element in page.find_elements(By.CSS_SELECTOR, f"#{side} .line[data-n]:not(.added, .removed)")
        }
        for side in ("left", "right")
    ]
    assert places[0].keys() == places[1].keys() != set()
    assert all(abs(y - places[1][text]) < 1 for text, y in places[0].items())


def test_a_click_lights_what_a_line_came_from_and_became(page) -> None:
    choose(page, "c")
    (kernel,) = (
        element
        for element in page.find_elements(By.CSS_SELECTOR, "#right .line[data-n]")
        if element.get_property("textContent").startswith("rvm_status kernel_multiply_add_relu")
        and element.get_property("textContent").endswith("{")
    )
    kernel.click()
    assert kernel.get_property("textContent") in lines(page, "right", ".pinned")
    assert any("multiply_add_relu" in line for line in lines(page, "left", ".pinned"))
    choose(page, "to_anf")
    lit = [line.split(":")[0].strip() for line in lines(page, "right", ".pinned")]
    assert lit == ["a", "value", "b", "value_1", "value_2"]  # not the transpositions
    page.find_element(By.TAG_NAME, "body").send_keys("\ue00c")  # Escape
    assert lines(page, "right", ".pinned") == []


def test_the_search_counts_lines_of_all_stages(page) -> None:
    choose(page, "to_anf")
    page.find_element(By.ID, "search").send_keys("TRANSPOSE")
    assert all("transpose" in line for line in lines(page, "right", ".hit"))
    assert len(lines(page, "right", ".hit")) == 2
    counts = {
        stage.find_elements(By.TAG_NAME, "span")[1].text: stage.find_element(By.CLASS_NAME, "count").text
        for stage in page.find_elements(By.CSS_SELECTOR, ".stage")
    }
    assert counts["given"] == "1" and counts["to_anf"] == "2" and counts["routine"] == ""


def test_a_model_of_a_thousand_bindings_opens_in_time(browser, tmp_path: Path) -> None:
    """Two seconds are what is promised; a machine that does other things at the same time gets longer."""
    steps = "\n".join(f"  a{i + 1} = {'relu' if i % 3 else 'exp'}(add(a{i}, y))" for i in range(1000))
    open_page(browser, tmp_path, f"def main(a0: f32[n, 4], y: f32[n, 4]) -> f32[n, 4] {{\n{steps}\n  return a1000\n}}")
    took = browser.execute_script(
        "const t = performance.getEntriesByType('navigation')[0]; return t.loadEventEnd - t.startTime"
    )
    assert 0 < took < 10_000
    assert len(lines(browser, "right")) > 1000
