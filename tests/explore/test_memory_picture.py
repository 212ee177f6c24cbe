"""Tests of the picture of a memory plan."""

from __future__ import annotations

import pytest
from explore.drawn import boxes

from relvm.errors import RelvmArgumentError, RelvmNameError
from relvm.explore import draw_memory, format_memory
from relvm.frontend.text import parse_module
from relvm.ir.expr import Module
from relvm.ir.verifier import Stage
from relvm.passes.memory.plan_memory import memory_plans
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline

TEXT = """
def main(x: f32[4, 8]) -> f32[1] {
  a = concat(x, x, x, axis=0)
  b = pad(a, pads=(-4, 0, 0, 4))
  c = relu(matmul(a, b))
  d = max(c, axes=(1,))
  e = softmax(reshape(d, shape(1, 12)), axis=1)
  return max(e, axes=(1,))
}
def choose(c: bool, x: f32[n, 8]) -> f32[n, 8] {
  return if c then softmax(softmax(x, axis=1), axis=1) else x
}
def same(x: f32[n]) -> f32[n] { return x }
"""


@pytest.fixture(scope="module")
def module() -> Module:
    return parse_module(TEXT)


def test_every_tensor_is_a_box_in_the_frame_of_its_storage(module: Module) -> None:
    (axes,) = draw_memory(module, fused=False).axes
    legal = run_passes(module, [step for step in build_pipeline("c", fused=False) if step.to <= Stage.LOWERED])
    plan = dict(memory_plans(legal))["main"]
    frames = [(*patch.get_xy(), patch.get_width(), patch.get_height()) for patch in axes.patches]
    drawn = iter(boxes(axes))
    for storage, (left, low, width, height) in zip(plan.storages, frames, strict=True):
        assert (left, height) == (storage.slots[0].first, storage.size_bytes)
        for slot, offset in zip(storage.slots, storage.offsets, strict=True):
            name, *place = next(drawn)
            assert name.split(" > ")[-1] == slot.values[-1].name
            assert place == [slot.first, slot.last + 1, low + offset, low + offset + slot.size_bytes]
            assert slot.last + 1 <= left + width
    assert next(drawn, None) is None


def test_the_lines_are_what_is_alive_held_and_the_least(module: Module) -> None:
    (axes,) = draw_memory(module, fused=False).axes
    alive, bound, held = axes.lines
    assert max(alive.get_ydata()) == bound.get_ydata()[0] == 1344
    assert max(held.get_ydata()) == 1348
    assert all(h >= a for h, a in zip(held.get_ydata(), alive.get_ydata(), strict=True))
    assert axes.get_title() == "main: 7 tensors in 2 storages, 1 of them in place; 1,348 bytes held at once"


def test_storages_that_are_held_at_once_do_not_overlap(module: Module) -> None:
    (axes,) = draw_memory(module, "choose", dims={"n": 10}).axes
    assert axes.get_title().startswith("choose, result: then: 2 tensors in 2 storages")
    (_, first0, last0, low0, high0), (_, first1, last1, low1, high1) = boxes(axes)
    assert high0 - low0 == high1 - low1 == 320
    assert first1 < last0 and first0 < last1
    assert high0 <= low1 or high1 <= low0


def test_a_size_that_is_not_known_is_asked_for(module: Module) -> None:
    with pytest.raises(RelvmArgumentError, match=r"choose, result: then: the number of bytes, n \* 32, depends on n"):
        draw_memory(module, "choose")


def test_a_function_without_tensors_is_an_empty_picture(module: Module) -> None:
    (axes,) = draw_memory(module, "same").axes
    assert boxes(axes) == [] and axes.get_title().startswith("same: 0 tensors")


def test_the_text_is_of_one_function_or_of_all(module: Module) -> None:
    whole = format_memory(module)
    assert "main: " in whole and "choose, result: then: 2 tensors" in whole
    one = format_memory(module, "choose")
    assert one in whole and "main" not in one


@pytest.mark.parametrize("show", [draw_memory, format_memory])
def test_names_that_are_not_there_are_errors(module: Module, show) -> None:
    with pytest.raises(RelvmNameError, match="no function mian in the built module; did you mean main"):
        show(module, "mian")
    with pytest.raises(RelvmArgumentError, match="target='d'"):
        show(module, target="d")
