"""Tests of `relvm explore` in a browser: editing a program, stages, errors and options."""

from __future__ import annotations

import base64
import json
import random
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from explore.test_page import choose, lines, open_page, titles, wait

from relvm.explore.live.app import MAX_BYTES
from relvm.explore.live.build_request import BuildRequest

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


def packed(content: bytes) -> str:
    """Return the text of a link with this content."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return base64.urlsafe_b64encode(deflate.compress(content) + deflate.flush()).decode().rstrip("=")


def link_of(**values: object) -> str:
    """Return the fragment for a request with these values, and others for which the page is not asked."""
    request = json.loads(BuildRequest(TEXT).to_json())
    return f"#program={packed(json.dumps(request | {'model': ''} | values).encode())}"


def options_of(page) -> dict[str, object]:
    return page.execute_script(
        "return Object.fromEntries([...document.querySelectorAll('[data-option]')].map((input) =>"
        " [input.dataset.option, input.type === 'checkbox' ? input.checked : input.value]))"
    )


def program(page) -> str:
    return page.execute_script("return document.getElementById('text').value")


def test_a_copied_link_restores_the_program_the_options_and_the_selected_line(browser, address: str) -> None:
    open_page(browser, address)
    wait(browser, lambda: text_of(browser, "#status").startswith("Built in "))
    text = f"# é 🙂 </script>\n{TEXT}"
    write(browser, text)
    for option in ("fused", "assembly"):
        browser.find_element(By.CSS_SELECTOR, f"[data-option={option}]").click()
    browser.find_element(By.CSS_SELECTOR, "[data-option=exec_mode] option:last-child").click()
    wait(browser, lambda: "assembly" in text_of(browser, "#stages"))
    row(browser, "cse").find_element(By.TAG_NAME, "input").click()
    wait(browser, lambda: browser.find_elements(By.CLASS_NAME, "omitted"))
    choose(browser, "dce")
    browser.find_elements(By.CSS_SELECTOR, "#right .line[data-n]")[2].click()
    (selected,) = lines(browser, "right", ".selected")
    options = options_of(browser)
    browser.execute_script("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    browser.find_element(By.ID, "copy-link").click()
    wait(browser, lambda: text_of(browser, "#status").startswith("Copied a link of "))
    copied = browser.execute_script("return window.copied")
    assert re.fullmatch(r"#program=[\w-]+&stage=dce&line=3", copied)  # nothing of the address before the fragment

    # Opened by a paste: the text that it replaces can be brought back.
    browser.find_element(By.CSS_SELECTOR, "[data-option=fused]").click()
    other = "def main(x: f32[n]) -> f32[n] = exp(x)\n"
    write(browser, other)
    wait(browser, lambda: "exp(" in text_of(browser, "#left .lines"))
    browser.execute_script(
        "const clipboardData = new DataTransfer(); clipboardData.setData('text/plain', arguments[0]);"
        "document.body.dispatchEvent(new ClipboardEvent('paste', {clipboardData, bubbles: true, cancelable: true}))",
        copied,
    )
    wait(browser, lambda: lines(browser, "right", ".selected") == [selected])
    assert program(browser) == text and options_of(browser) == options
    assert titles(browser)[1] == "dce" and text_of(browser, ".omitted") == "cse"
    browser.execute_script("document.getElementById('text').focus(); document.execCommand('undo')")
    assert program(browser) == other

    # Opened as an address, by a page that shows another program.  A later reload keeps what is written then.
    wait(browser, lambda: "exp(" in text_of(browser, "#left .lines"))
    open_page(browser, address + copied)
    wait(browser, lambda: lines(browser, "right", ".selected") == [selected])
    assert program(browser) == text and options_of(browser) == options
    assert "program=" not in browser.current_url
    assert not browser.find_element(By.ID, "run-result").is_displayed()
    assert browser.get_log("browser") == []


DAMAGED = {
    "not_base64": ("#program=!", "it is damaged or incomplete"),
    "nothing": ("#program=", "it is damaged or incomplete"),
    "cut_off": (link_of()[:-9], "it is damaged or incomplete"),
    "not_json": (f"#program={packed(b'{')}", "it is damaged or incomplete"),
    "not_utf8": (f"#program={packed(bytes([34, 255, 34]))}", "it is damaged or incomplete"),
    "null": (f"#program={packed(b'null')}", "it was not made by this version of relvm"),
    "another_field": (link_of(run=True), "it was not made by this version of relvm"),
    "a_list_of_others": (link_of(without=[1]), "it was not made by this version of relvm"),
    "a_number_as_text": (link_of(text=1), "it was not made by this version of relvm"),
    "a_choice": (link_of(target="<img src=x onerror=alert(1)>"), "unknown option target=<img src=x onerror=alert(1)>"),
    "a_model": (link_of(model="<b>.onnx"), "it contains options for the ONNX model <b>.onnx, not for model.relvm"),
    "a_bomb": (f"#program={packed(b' ' * (20 * MAX_BYTES))}", "its program has more than 1,048,576 bytes"),
    "a_long_one": (f"#program={'A' * 40_000}", "it has more than 32,768 characters"),
}


def test_damaged_and_hostile_links_change_nothing(browser, address: str) -> None:
    open_page(browser, address + DAMAGED["cut_off"][0])
    wait(browser, lambda: text_of(browser, "#status").startswith("Built in "))  # the program of the server
    notice = browser.find_element(By.ID, "notice")
    assert notice.text == "The link was not opened: it is damaged or incomplete."
    options = options_of(browser)
    choose(browser, "dce")
    here = browser.current_url
    for link, words in DAMAGED.values():
        notice.click()
        assert not notice.is_displayed()
        browser.execute_script("location.hash = arguments[0]", f"{link}&stage=c")
        wait(browser, notice.is_displayed)
        assert words in notice.text, link[:40]
        assert program(browser) == TEXT and options_of(browser) == options
        assert titles(browser)[1] == "dce" and browser.current_url == here

    # A program that is wrong is like one that is typed: its error is shown, and it stays text.
    browser.execute_script("location.hash = arguments[0]", link_of(text="</script><script>alert(1)</script>"))
    wait(browser, lambda: browser.find_element(By.ID, "problem").is_displayed())
    assert not notice.is_displayed() and program(browser) == "</script><script>alert(1)</script>"
    write(browser, random.Random(0).randbytes(40_000).hex())
    browser.find_element(By.ID, "copy-link").click()
    wait(browser, notice.is_displayed)
    assert notice.text.startswith("No link was copied: the program is too large for a link: it takes ")
    assert browser.get_log("browser") == []


def graph_nodes(page) -> list[str]:
    """Return the labels of the nodes and boxes that the graph shows, or nothing while it is loaded."""
    page.switch_to.frame("graph")
    try:
        return page.execute_script(
            "return typeof places === 'undefined' ? []"
            " : [...places.keys()].filter((key) => key !== ROOT).map((key) => items[key].label)"
        )
    finally:
        page.switch_to.default_content()


def in_graph(page, script: str):
    page.switch_to.frame("graph")
    try:
        return page.execute_script(script)
    finally:
        page.switch_to.default_content()


def test_the_graph_is_beside_the_editor_and_follows_it(browser, address: str) -> None:
    open_page(browser, address)
    wait(browser, lambda: text_of(browser, "#status").startswith("Built in "))
    write(
        browser,
        "def main(x: f32[n, 4], w: f32[4, 4], c: bool) -> f32[n, 4] {\n  k = if c then sin(x) else cos(x)\n"
        "  a = matmul(k, w)\n  return softmax(a, axis=1)\n}\n",
    )
    browser.find_element(By.ID, "to-graph").click()  # the build that is due asks for the graph
    wait(browser, lambda: "matmul" in graph_nodes(browser))
    assert browser.find_element(By.ID, "text").is_displayed()
    assert not browser.find_element(By.ID, "right").is_displayed()

    # From a node to the lines of the editor, and from a line to its node.
    in_graph(browser, "select(items.find((item) => item.label === 'matmul').key)")
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "#program-lines .pinned"))
    pinned = browser.find_elements(By.CSS_SELECTOR, "#program-lines .pinned")
    assert [each.get_attribute("data-n") for each in pinned] == ["3"]
    text = browser.find_element(By.ID, "text")
    browser.execute_script(
        "const text = arguments[0], at = text.value.indexOf('softmax'); text.setSelectionRange(at, at); text.click()",
        text,
    )
    wait(
        browser,
        lambda: (
            "softmax" not in in_graph(browser, "return panel.textContent")
            and "divide" in in_graph(browser, "return panel.textContent")
        ),
    )

    # After an edit, the graph shows the new program.  What is open and selected stays.
    in_graph(browser, "select(items.find((item) => item.label === 'matmul').key); view.x += 40; moved()")
    opened, corner = in_graph(browser, "return [[...isOpen].length, cornerOf(selected)]")
    write(
        browser,
        program(browser).replace("  return", "  b = exp(matmul(a, w))\n  return").replace("softmax(a", "softmax(b"),
    )
    wait(
        browser, lambda: graph_nodes(browser).count("matmul") + sum("exp" in each for each in graph_nodes(browser)) > 2
    )
    wait(browser, lambda: in_graph(browser, "return selected !== null && items[selected].name") == "a")
    assert in_graph(browser, "return [[...isOpen].length, cornerOf(selected)]") == [opened, corner]
    assert "graph=a" in browser.current_url

    # After an error, the previous graph stays.  The button leads back to the stages.
    write(browser, program(browser).replace("softmax", "softmux"))
    wait(browser, lambda: browser.find_element(By.ID, "problem").is_displayed())
    assert "matmul" in graph_nodes(browser)
    browser.find_element(By.ID, "to-graph").click()
    assert browser.find_element(By.ID, "right").is_displayed()
    assert browser.get_log("browser") == []


def test_long_literals_are_folded_in_the_editor_only(browser, address: str, tmp_path: Path) -> None:
    numbers = f"[{', '.join(str(i) for i in range(64))}]"
    encoded = base64.b64encode(bytes(4 * 100)).decode()
    text = (
        f"def main(x: f32[64], y: f32[100]) -> (f32[64], f32[100]) {{\n"
        f"  a = add(x, const(f32[64], {numbers}))\n"
        f'  return (add(a, const(f32[64], {numbers})), add(y, const(f32[100], "{encoded}")))\n}}\n'
    )
    open_page(browser, address + link_of(text=text))
    wait(browser, lambda: "f32[100]" in text_of(browser, "#left .lines"))
    marks = [f"\u27e8#1: {len(numbers)} characters\u27e9", f"\u27e8#2: {len(encoded) + 2} characters\u27e9"]
    shown = text.replace(numbers, marks[0]).replace(f'"{encoded}"', marks[1])
    assert program(browser) == shown
    folded = browser.find_elements(By.CSS_SELECTOR, "#program-lines .folded")
    assert [each.text for each in folded] == [marks[0], marks[0], marks[1]]

    # An error behind folded literals is underlined where it is.
    write(browser, shown.replace("add(y", "add(z"))
    wait(browser, lambda: browser.find_element(By.ID, "problem").is_displayed())
    assert browser.find_element(By.CSS_SELECTOR, "#program-lines .error").text == "z"
    column = text.split("\n")[2].index("add(y") + len("add(y")
    assert text_of(browser, "#problem").startswith(f"3:{column}: ")
    write(browser, shown)

    # Copied, linked and saved text has the literals, and a pasted literal is folded.
    copied, pasted = browser.execute_script(
        "const text = document.getElementById('text'), clipboardData = new DataTransfer();"
        "const options = {clipboardData, bubbles: true, cancelable: true};"
        "const fire = (name) => text.dispatchEvent(new ClipboardEvent(name, options));"
        "text.focus(); text.select(); fire('copy'); const copied = clipboardData.getData('text/plain');"
        "text.value = ''; fire('paste'); return [copied, text.value]"
    )
    assert (copied, pasted) == (text, shown)
    browser.find_element(By.ID, "save").click()
    saved = tmp_path / "out.relvm"
    wait(browser, lambda: saved.exists() and saved.read_text() == text)

    # The setting "full text" shows the literals.
    full = browser.find_element(By.CSS_SELECTOR, "[data-setting=names]")
    full.click()
    assert program(browser) == text
    full.click()
    assert program(browser) == shown

    # A text that looks like a mark is not taken for one.
    strange = f"# {marks[0]} \u27e8#9: x\u27e9\n{text}"
    open_page(browser, address + link_of(text=strange))
    wait(browser, lambda: program(browser).startswith("# "))
    browser.find_element(By.ID, "save").click()
    wait(browser, lambda: saved.read_text() == strange)
    assert browser.get_log("browser") == []
