"""Tests of the timeline below the stages, in a browser."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from explore.test_page import lines, open_page, titles

from relvm import vm
from relvm.errors import RelvmTypeError
from relvm.explore import explore
from relvm.explore.stages import page as page_module
from relvm.explore.stages.page import page
from relvm.frontend.text import parse_module
from relvm.runtime.timeline import Timeline, TimelineCall

Actions = pytest.importorskip("selenium.webdriver.common.action_chains").ActionChains
By = pytest.importorskip("selenium.webdriver.common.by").By

MODULE = parse_module(
    "def main(x: f32[n, 4]) -> f32[n, 4] {\n  a = softmax(x, axis=1)\n  return transpose(a, perm=(1, 0))\n}".replace(
        "-> f32[n, 4]", "-> f32[4, n]"
    ),
    "model.relvm",
)


def test_a_click_on_a_bar_shows_the_kernel(browser, tmp_path: Path) -> None:
    machine = vm.VirtualMachine(vm.build(MODULE, target="bytecode"))
    recorded = machine.profile("main", np.ones((3, 4), np.float32), timeline=True).timeline
    kernels = [call.name for call in recorded.calls if call.kind == "kernel"]
    # Replace the times by fixed ones: kernels side by side, and below them one builtin, which has no lines.
    calls = tuple(TimelineCall(name, "kernel", 1e-3 * at, 9e-4, 8, 0) for at, name in enumerate(kernels))
    builtin = TimelineCall("vm.builtin.make_shape", "builtin", 0.0, 1e-3, 0, 0)
    explored = explore(MODULE, target="bytecode").with_timeline(Timeline("main", 0.01, (*calls, builtin), dropped=2))
    explored.save(tmp_path / "page.html")
    open_page(browser, (tmp_path / "page.html").as_uri())
    section = browser.find_element(By.ID, "timeline")
    assert section.find_element(By.ID, "timeline-title").text == f"main: {len(calls) + 1} calls, without 2 others"
    canvas, shown = section.find_element(By.TAG_NAME, "canvas"), browser.find_element(By.ID, "call")

    def point(x: float, row: int) -> Actions:
        """Return actions that move the pointer to a horizontal position in the plot, from 0 to 1, in a row."""
        width, height = canvas.size["width"], canvas.size["height"]
        across = 70 + x * (width - 70) - width / 2
        return Actions(browser).move_to_element_with_offset(canvas, int(across), int(22 * row + 11 - height / 2))

    point(0.1, 0).perform()
    assert shown.text == "vm.builtin.make_shape: 1.000 ms at 0.000 µs, 0 bytes"
    before = titles(browser)
    point(0.1, 0).click().perform()
    assert titles(browser) == before and lines(browser, "right", ".selected") == []
    last = (len(calls) - 0.5) / len(calls)
    point(last, 1).click().perform()
    assert titles(browser)[1] == "kernels"
    assert lines(browser, "right", ".selected") == [f"kernel {kernels[-1]}"]
    assert shown.text.startswith(f"{kernels[-1]}: 900.0 µs at ")

    # Zoom in on the first kernel, which is then where the last one was.  The key 0 shows all calls again.
    browser.execute_script("document.querySelector('#timeline canvas').focus()")
    canvas.send_keys("+")
    canvas.send_keys("\ue012" * 9)  # the key "left"
    point(0.5, 1).perform()
    assert shown.text.startswith(f"{kernels[0]}: ") or len(calls) > 2
    canvas.send_keys("0")
    point(last, 1).perform()
    assert shown.text.startswith(f"{kernels[-1]}: ")
    assert browser.get_log("browser") == []


def test_a_page_contains_the_longest_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "_MAX_CALLS", 2)
    calls = tuple(TimelineCall(f"f{k}", "kernel", k, seconds, 0, 0) for k, seconds in enumerate((0.5, 0.1, 0.7)))
    data = page_module._timeline_data(Timeline("main", 3.0, calls, dropped=4))
    assert data["names"] == ["f0", "f2"] and data["omitted"] == 5
    assert 'id="timeline"' in page("title", (), timeline=Timeline("main", 3.0, calls))
    assert 'id="timeline"' not in page("title", ())


def test_a_timeline_is_required() -> None:
    with pytest.raises(RelvmTypeError, match="timeline: expected the attribute timeline of a profile"):
        explore(MODULE).with_timeline({})


def test_kernels_show_their_share_of_the_time(browser, tmp_path: Path) -> None:
    """The page opens at the kernel that takes most of the time."""
    module = parse_module("def main(x: f32[n, 4]) -> f32[4, n] { return relu(transpose(x, perm=(1, 0))) }")
    explored = explore(module, target="bytecode", fused=False)
    recorded = vm.VirtualMachine(vm.build(module, target="bytecode", fused=False))
    timeline = recorded.profile("main", np.ones((3, 4), np.float32), timeline=True).timeline
    first, second = [call.name for call in timeline.calls if call.kind == "kernel"]
    calls = TimelineCall(first, "kernel", 0.0, 1e-3, 8, 0), TimelineCall(second, "kernel", 1e-3, 3e-3, 8, 0)
    explored.with_timeline(Timeline("main", 4e-3, calls)).save(tmp_path / "page.html")
    open_page(browser, (tmp_path / "page.html").as_uri())
    assert titles(browser) == [explored.graph.stage, "kernels"]
    for side in ("left", "right"):
        shares = [
            (
                row.get_property("textContent").strip(),
                row.find_element(By.CLASS_NAME, "time").get_attribute("data-text"),
            )
            for row in browser.find_elements(By.CSS_SELECTOR, f"#{side} .line:has(.time)")
        ]
        assert [share for _, share in shares] == ["25.0 %", "75.0 %"]
        if side == "right":
            assert [text for text, _ in shares] == [f"kernel {first}", f"kernel {second}"]
        for line in browser.find_elements(By.CSS_SELECTOR, f"#{side} .line:has(.time)"):  # they do not cover the code
            share, code = (line.find_element(By.CSS_SELECTOR, each).rect for each in (".time", "code"))
            assert share["x"] + share["width"] <= code["x"]
    row = browser.find_elements(By.CSS_SELECTOR, "#right .line:has(.time)")[1].rect
    box = browser.find_element(By.CSS_SELECTOR, "#right .lines").rect
    assert box["y"] <= row["y"] < box["y"] + box["height"]
    assert browser.get_log("browser") == []
