"""Tests of the picture of the memory of an export."""

from __future__ import annotations

from pathlib import Path

import pytest
from explore.drawn import boxes

from relvm import aot
from relvm.cli.main import main
from relvm.errors import RelvmNameError
from relvm.explore import draw_placement
from relvm.frontend.text import parse_module

TEXT = """
def main(x: f32[64], y: f32[64, 64]) -> f32[64] {
  a = softmax(matmul(x, y), axis=0)
  return @more(softmax(matmul(a, y), axis=0), y)
}
private def more(x: f32[64], y: f32[64, 64]) -> f32[64] with (inline=false) {
  return softmax(matmul(softmax(x, axis=0), y), axis=0)
}"""


def test_every_tensor_is_a_box_where_it_is() -> None:
    program = aot.build(parse_module(TEXT))
    found = program.placements["main"]
    (axes,) = draw_placement(program).axes
    assert boxes(axes) == [
        (each.name, each.first, each.last + 1, offset, offset + each.size_bytes)
        for offset, each in found.arenas[0].blocks()
    ]
    assert "memory of more" in {text.get_text() for text in axes.texts}
    assert axes.get_title() == f"main: workspace, {found.size_bytes[0]:,} bytes"
    alive, bound = axes.lines
    assert max(alive.get_ydata()) == bound.get_ydata()[0] == found.arenas[0].lower_bound_bytes


def test_each_pool_has_its_own_part() -> None:
    whole = aot.build(parse_module(TEXT)).sources.pool_bytes[0]
    config = aot.AotConfig(pools=(aot.Pool("fast", whole - 1), aot.Pool("slow")))
    figure = draw_placement(aot.build(parse_module(TEXT), config))
    assert [axes.get_title().split(",")[0] for axes in figure.axes] == ["main: fast", "main: slow"]


def test_other_functions_can_be_drawn() -> None:
    program = aot.build(parse_module(TEXT))
    assert draw_placement(program, "more").axes[0].get_title().startswith("more: workspace")
    with pytest.raises(RelvmNameError, match="no function mroe; did you mean more"):
        draw_placement(program, "mroe")


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_the_command_draws_a_file(suffix: str, tmp_path: Path) -> None:
    (tmp_path / "model.relvm").write_text(TEXT)
    picture = tmp_path / f"placement.{suffix}"
    command = ["export", str(tmp_path / "model.relvm"), "-o", str(tmp_path / "out"), "--draw", str(picture)]
    assert main(command) == 0
    assert picture.stat().st_size > 1000


def test_a_file_of_no_known_form_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "model.relvm").write_text(TEXT)
    command = ["export", str(tmp_path / "model.relvm"), "-o", str(tmp_path / "out"), "--draw", str(tmp_path / "a.xyz")]
    assert main(command) == 1
    assert "--draw" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
