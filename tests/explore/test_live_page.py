"""Tests of `relvm explore` in a browser: editing a program, stages, errors and options."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from explore.test_page import choose, lines, open_page, titles, wait

By = pytest.importorskip("selenium.webdriver.common.by").By
Keys = pytest.importorskip("selenium.webdriver.common.keys").Keys

TEXT = """\
def main(x: f32[n, 4]) -> f32[n, 4] {
  a = relu(add(x, x))
  b = relu(add(x, x))
  return add(a, b)
}
"""


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Start a server for model.relvm, which saves to out.relvm, and yield its address."""
    (tmp_path / "model.relvm").write_text(TEXT)
    command = [sys.executable, "-P", "-m", "relvm", "explore", "model.relvm", "-o", "out.relvm", "--no-browser"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server:
        yield server.stdout.readline().split()[2]
        server.terminate()


def text_of(page, selector: str) -> str:
    """Return the text of an element, read at once, because a build can replace the element at any time."""
    return page.execute_script("return document.querySelector(arguments[0]).textContent", selector)


def row(page, name: str):
    """Return the row of a stage in the list."""
    found = page.find_elements(By.CSS_SELECTOR, ".row")
    return next(each for each in found if name in each.text.split())


def test_editing_shows_new_stages_errors_and_options(browser, address: str, tmp_path: Path) -> None:
    open_page(browser, address)
    status, problem = browser.find_element(By.ID, "status"), browser.find_element(By.ID, "problem")
    wait(browser, lambda: status.text.startswith("Built in "))
    choose(browser, "dce")
    assert sum("relu(" in line for line in lines(browser, "right")) == 1  # cse has merged two calls

    # A new line, and a selected line that stays selected.
    next(
        each
        for each in browser.find_elements(By.CSS_SELECTOR, "#right .line[data-n]")
        if "relu(" in each.get_property("textContent")
    ).click()
    (selected,) = lines(browser, "right", ".selected")
    lit = browser.find_elements(By.CSS_SELECTOR, "#program-lines .pinned")
    assert [each.get_attribute("data-n") for each in lit] == ["2", "3"]
    text = browser.find_element(By.ID, "text")
    browser.execute_script("arguments[0].focus(); arguments[0].setSelectionRange(37, 37)", text)
    text.send_keys(Keys.ENTER, "c = exp(x)")
    wait(browser, lambda: "c: " in text_of(browser, "#left .lines"))
    assert titles(browser) == ["cse", "dce"] and lines(browser, "right", ".selected") == [selected]
    assert text.get_property("value").split("\n")[1] == "  c = exp(x)"

    # After an error, the previous stages remain.
    text.send_keys(Keys.BACKSPACE * 2, "add(x, y))")
    wait(browser, problem.is_displayed)
    assert problem.text.startswith("2:18: ") and "y" in problem.text
    assert browser.find_element(By.CSS_SELECTOR, "#program-lines .error").text == "y"
    assert browser.find_element(By.TAG_NAME, "body").get_attribute("class") == "stale"
    assert lines(browser, "right", ".selected") == [selected]
    browser.execute_script("arguments[0].setSelectionRange(0, 0)", text)
    problem.click()
    assert browser.execute_script("return [arguments[0].selectionStart, arguments[0].selectionEnd]", text) == [55, 56]
    text.send_keys("x")
    wait(browser, lambda: not problem.is_displayed() and "c: " in text_of(browser, "#left .lines"))

    # Omit a pass, and change an option.
    row(browser, "cse").find_element(By.TAG_NAME, "input").click()
    wait(browser, lambda: browser.find_elements(By.CLASS_NAME, "omitted"))
    choose(browser, "dce")
    assert titles(browser) == ["canonicalize", "dce"]
    assert sum("relu(" in line for line in lines(browser, "right")) == 2
    assert not row(browser, "to_anf").find_element(By.TAG_NAME, "input").is_enabled()
    browser.find_element(By.CSS_SELECTOR, "[data-option=fused]").click()
    wait(browser, lambda: "fuse_ops" not in text_of(browser, "#stages"))

    # The text, the options and the stage survive a reload.  The button "Save" writes the text.
    browser.refresh()
    wait(browser, lambda: browser.find_element(By.ID, "status").text.startswith("Built in "))
    assert titles(browser)[1] == "dce" and sum("relu(" in line for line in lines(browser, "right")) == 2
    assert not browser.find_element(By.CSS_SELECTOR, "[data-option=fused]").is_selected()
    browser.find_element(By.ID, "save").click()
    wait(browser, lambda: browser.find_element(By.ID, "status").text == "Saved to out.relvm.")
    assert (tmp_path / "out.relvm").read_text() == TEXT.replace("{\n", "{\n  c = exp(add(x, x))\n", 1)
    assert browser.get_log("browser") == []
    browser.execute_script("localStorage.clear()")


RUN = """\
def main(x: f32[4, 64], i: i64) -> f32[1, 64] {
  a = softmax(exp(x), axis=1)
  return gather(a, const(i64[1], [0]))
}
"""


def write(page, text: str) -> None:
    """Replace the text in the editor."""
    page.execute_script(
        "const text = document.getElementById('text'); text.value = arguments[0];"
        "text.dispatchEvent(new Event('input'))",
        text,
    )


def test_a_run_shows_times_outputs_and_the_shares_of_kernels(browser, address: str) -> None:
    open_page(browser, address)
    wait(browser, lambda: text_of(browser, "#status").startswith("Built in "))
    result, problem = browser.find_element(By.ID, "run-result"), browser.find_element(By.ID, "problem")
    assert not result.is_displayed()
    write(browser, RUN)
    browser.find_element(By.ID, "run").click()
    wait(browser, result.is_displayed)
    assert re.match(r"main best [\d.]+ .?s, median [\d.]+ .?s of \d+ runs", result.text)
    rows = [row.text.split(maxsplit=2)[:2] for row in result.find_elements(By.TAG_NAME, "tr")]
    assert rows[1] == ["x", "float32[4,"] and rows[2] == ["i", "int64"] and rows[4][1].startswith("float32[1,")
    assert browser.find_elements(By.CSS_SELECTOR, "#right .time")

    # An error of a run appears at its place.  The next text is not marked.
    write(browser, RUN.replace("[0]", "[9]"))
    assert result.get_attribute("class") == "outdated"
    browser.find_element(By.ID, "run").click()
    wait(browser, problem.is_displayed)
    assert problem.text.startswith("3:10: gather: index 9")
    assert browser.find_element(By.CSS_SELECTOR, "#program-lines .error").text == "gather"
    assert "stale" not in browser.find_element(By.TAG_NAME, "body").get_attribute("class")
    write(browser, RUN)
    wait(browser, lambda: not problem.is_displayed())
    assert not browser.find_elements(By.CSS_SELECTOR, ".time")
    assert browser.get_log("browser") == []


def test_assembly_is_a_stage_that_is_linked_to_the_others(browser, address: str) -> None:
    open_page(browser, address)
    wait(browser, lambda: text_of(browser, "#status").startswith("Built in "))
    assert "assembly" not in text_of(browser, "#stages")
    browser.find_element(By.CSS_SELECTOR, "[data-option=assembly]").click()
    wait(browser, lambda: "assembly" in text_of(browser, "#stages"))
    choose(browser, "assembly")
    assert titles(browser) == ["c", "assembly"]
    shown = lines(browser, "right")
    assert any(re.match(r"kernel_\w+:$", each) for each in shown) and not any(".loc" in each for each in shown)
    next(
        each
        for each in browser.find_elements(By.CSS_SELECTOR, "#right .line.traced")
        if re.match(r"  # c:\d+: .* = ", each.get_property("textContent"))
    ).click()
    (selected,) = lines(browser, "right", ".selected")
    number, _, text = selected.removeprefix("  # c:").partition(": ")
    assert lines(browser, "left")[int(number) - 1].strip() == text
    assert text in [each.strip() for each in lines(browser, "left", ".pinned")]
    assert browser.find_elements(By.CSS_SELECTOR, "#program-lines .pinned")
    assert browser.get_log("browser") == []
