"""Tests of pictures that are displayed in a notebook."""

from __future__ import annotations

import base64
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from relvm.explore import draw_dataflow, draw_liveness
from relvm.explore.draw.matplotlib_import import new_figure
from relvm.frontend.text import parse_module
from relvm.ir.expr import Module

SMALL = "def main(x: f32[n, 4]) -> f32[n, 4] { return relu(x) }"


def chain(length: int) -> Module:
    steps = "\n".join(f"  a{i + 1} = {'relu' if i % 3 else 'exp'}(add(a{i}, y))" for i in range(length))
    return parse_module(
        f"def main(a0: f32[n, 4], y: f32[n, 4]) -> f32[n, 4] {{\n{steps}\n  return a{length}\n}}", "chain.relvm"
    )


def png_size(data: str) -> tuple[int, int]:
    return struct.unpack(">II", base64.b64decode(data)[16:24])


def test_a_small_picture_is_svg() -> None:
    picture = draw_liveness(parse_module(SMALL))
    forms, metadata = picture._repr_mimebundle_()
    assert set(forms) == {"text/plain", "image/svg+xml", "image/png"}  # untrusted notebooks show PNG
    assert png_size(forms["image/png"])[0] == 2 * metadata["image/png"]["width"] == 1920
    root = ElementTree.fromstring(forms["image/svg+xml"])
    assert float(root.get("width").removesuffix("pt")) == pytest.approx(720)
    assert forms["text/plain"] == str(picture) == repr(picture)
    assert re.fullmatch(r"<picture of 10\.0 x [0-9.]+ inches; .*savefig writes it to a file>", repr(picture))
    assert picture._repr_mimebundle_()[0]["image/svg+xml"].count("<svg") == 1  # the picture can be displayed again


def test_a_large_picture_is_png_of_twice_the_resolution() -> None:
    picture = new_figure(8, 4)
    picture.subplots().scatter(range(5000), range(5000))
    forms, metadata = picture._repr_mimebundle_()
    assert set(forms) == {"text/plain", "image/png"}
    assert metadata == {"image/png": {"width": 768, "height": 384}} and png_size(forms["image/png"]) == (1536, 768)


def test_a_high_picture_is_in_a_box_that_scrolls() -> None:
    forms, metadata = draw_dataflow(chain(60))._repr_mimebundle_()
    size = metadata["image/png"]
    assert size["height"] > 5000
    assert png_size(forms["image/png"]) == pytest.approx((2 * size["width"], 2 * size["height"]), abs=1)
    assert f"width: {size['width']}px; height: {size['height']}px; max-width: none" in forms["text/html"]
    assert re.match(
        r'<div style="max-height: \d+px; overflow: auto"><img src="data:image/png;base64,', forms["text/html"]
    )


def test_a_picture_too_high_for_png_is_svg() -> None:
    picture = new_figure(2, 1000)
    picture.subplots().scatter(range(5000), range(5000))
    forms, metadata = picture._repr_mimebundle_()
    assert set(forms) == {"text/plain", "text/html"} and metadata == {}
    assert 'src="data:image/svg+xml;base64,' in forms["text/html"]


def test_a_file_has_a_size_that_viewers_can_show(tmp_path: Path) -> None:
    tiny = draw_dataflow(parse_module("def main(x: i64) -> i64 = x"))
    tiny.savefig(tmp_path / "tiny.png")
    high = new_figure(2, 1000)
    high.savefig(tmp_path / "high.png")
    high.savefig(tmp_path / "high.svg")
    wide = draw_dataflow(chain(200))
    wide.savefig(tmp_path / "long.png", dpi=300)

    def size(name: str) -> tuple[int, int]:
        return struct.unpack(">II", (tmp_path / name).read_bytes()[16:24])

    assert size("tiny.png")[0] >= 320 and size("tiny.png")[1] >= 120
    assert size("high.png") == (32, 16_000) and 'height="72000pt"' in (tmp_path / "high.svg").read_text()
    assert max(size("long.png")) <= 16_000


def test_matplotlib_keeps_its_state() -> None:
    code = """
import sys, matplotlib
names = set(matplotlib.rcParams) - {"backend"}  # reading the backend imports pyplot
before = {name: matplotlib.rcParams[name] for name in names}
from relvm.explore import draw_dataflow
from relvm.frontend.text import parse_module
draw_dataflow(parse_module("def main(x: f32[n]) -> f32[n] { return relu(x) }"))._repr_mimebundle_()
assert {name: matplotlib.rcParams[name] for name in names} == before
print("matplotlib.pyplot" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_ipython_shows_the_picture_with_and_without_its_own_form() -> None:
    """After pyplot is imported, IPython has its own display format for figures."""
    formatters = pytest.importorskip("IPython.core.formatters")
    formatter = formatters.DisplayFormatter()
    picture = draw_dataflow(parse_module(SMALL))
    assert set(formatter.format(picture)[0]) == {"text/plain", "image/svg+xml", "image/png"}
    formatter.formatters["image/png"].for_type_by_name("matplotlib.figure", "Figure", lambda figure: "of IPython")
    assert formatter.format(picture)[0]["image/svg+xml"].startswith("<?xml")
