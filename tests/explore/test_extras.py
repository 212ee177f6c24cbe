"""Tests of functions that work without the libraries of the extra `explore`."""

from __future__ import annotations

import sys

import pytest

from relvm import explore
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.text import parse_module
from relvm.ir.expr import Module
from relvm.runtime.profiler import Profile, ProfileRow

ROWS = (ProfileRow("relu_f32", "kernel", 1, 0.5, 0.5, 8, 1),)
SHOWN = {
    "calls": (explore.draw_calls, explore.format_calls),
    "dataflow": (explore.draw_dataflow, explore.format_dataflow),
    "liveness": (explore.draw_liveness, explore.format_liveness),
    "memory": (explore.draw_memory, explore.format_memory),
    "profile": (explore.draw_profile, explore.format_profile),
    "roofline": (explore.draw_roofline, explore.format_profile),
}


@pytest.mark.parametrize("name", SHOWN)
def test_texts_need_no_library_and_pictures_say_which(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = "relvm.explore.draw.picture"  # imports matplotlib
    for module in [each for each in sys.modules if each == picture or each.split(".")[0] in ("matplotlib", "rich")]:
        monkeypatch.delitem(sys.modules, module)
    for module in ("matplotlib", "matplotlib.figure", "rich"):
        monkeypatch.setitem(sys.modules, module, None)
    draw, write = SHOWN[name]
    given = (
        (Profile("main", 1.0, ROWS), explore.Peaks(1e9, 1e9)) if name in ("profile", "roofline") else (small_module(),)
    )
    assert "main" in write(*given) or "return" in write(*given)
    with pytest.raises(RelvmUnsupportedError, match=r"pip install 'relvm\[explore\]'"):
        draw(*given)


def test_every_picture_has_a_text() -> None:
    pictures = {name.removeprefix("draw_") for name in explore.__all__ if name.startswith("draw_")}
    texts = {name.removeprefix("format_") for name in explore.__all__ if name.startswith("format_")}
    assert pictures - {"placement"} == set(SHOWN)  # relvm.aot.lower.place_storage prints placements
    assert pictures - {"placement", "roofline"} == texts  # format_profile also prints the data of a roofline


def small_module() -> Module:
    return parse_module("def main(x: f32[8]) -> f32[8] { return softmax(relu(x), axis=0) }")
