"""Tests of the timeline of a run: calls, picture, and the file for Perfetto."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from relvm import vm
from relvm.cli import main
from relvm.frontend.text import parse_module
from relvm.runtime.packed_func import register_func

PROGRAM = """
def main(x: f32[n]) => f32[n] {
  y = add(x, x)
  z = packed("test.timeline", y) : f32[n]
  return relu(z)
}
"""


def timeline(program: str = PROGRAM, size: int = 1000) -> vm.Timeline:
    register_func("test.timeline", lambda array: machine_of_kernel()["main"](array), override=True)
    machine = vm.VirtualMachine(vm.build(parse_module(program), target="bytecode"))
    found = machine.profile("main", np.ones(size, np.float32), timeline=True).timeline
    assert found is not None
    return found


def machine_of_kernel() -> vm.VirtualMachine:
    return vm.VirtualMachine(vm.build(parse_module("def main(x: f32[n]) -> f32[n] = exp(x)"), target="bytecode"))


def test_calls_have_kinds_times_and_bytes() -> None:
    found = timeline()
    kinds = {call.kind for call in found.calls}
    assert kinds == {"kernel", "packed", "builtin"}
    by_name = {call.name: call for call in found.calls}
    assert by_name["test.timeline"].bytes == 8000
    assert by_name["vm.builtin.alloc_storage"].bytes >= 4000
    kernels = sorted(call.start for call in found.calls if call.kind == "kernel")
    assert len(kernels) == 2 and kernels[0] < by_name["test.timeline"].start < kernels[1]
    assert min(call.start for call in found.calls) == 0 and found.dropped == 0
    assert all(call.depth == 0 and 0 <= call.start + call.seconds <= found.seconds for call in found.calls)


def test_the_profile_is_the_same_with_and_without() -> None:
    machine = vm.VirtualMachine(vm.build(parse_module("def main(x: f32[n]) -> f32[n] = exp(x)"), target="bytecode"))
    x = np.ones(10, np.float32)
    plain, recorded = (machine.profile("main", x, timeline=each) for each in (False, True))
    assert plain.timeline is None and recorded.timeline is not None
    counts = [{row.name: row.count for row in each.rows} for each in (plain, recorded)]
    assert counts[0] == counts[1]
    assert len(recorded.timeline.calls) == sum(counts[1].values())


def test_calls_beyond_the_limit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relvm.runtime.timeline.MAX_CALLS", 3)
    found = timeline()
    assert len(found.calls) == 3 and found.dropped > 0
    assert f"and {found.dropped} calls more" in str(found)


def test_the_trace_is_read_back(tmp_path: Path) -> None:
    found = timeline()
    found.save(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert [event["name"] for event in events] == [call.name for call in found.calls]
    assert all({"ts", "dur", "pid", "tid", "cat"} <= event.keys() for event in events)
    assert {event["name"] for event in trace["traceEvents"] if event["ph"] == "M"} == {"process_name", "thread_name"}
    with pytest.raises(OSError, match="missing"):
        found.save(tmp_path / "missing" / "trace.json")


def test_forms_escape_names() -> None:
    call = vm.TimelineCall("<script>\x1b", "kernel", 0.0, 1e-3, 4, 0)
    found = vm.Timeline("main", 1e-3, (call,))
    assert "\x1b" not in str(found) and "\x1b" not in repr(found)
    page = found._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page and "<rect" in page
    assert "<svg" in vm.Timeline("main", 1e-3, ())._repr_html_()


def test_the_command_line_saves_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.relvm").write_text("def main(x: f32[n]) -> f32[n] = exp(x)")
    out = tmp_path / "trace.json"
    model = str(tmp_path / "model.relvm")
    assert main(["run", model, "--random", "--dim", "n=3", "--target", "bytecode", "--trace", str(out)]) == 0
    assert "calls to" in capsys.readouterr().err
    assert any(event.get("cat") == "kernel" for event in json.loads(out.read_text())["traceEvents"])
    assert main(["run", model, "--random", "--trace", str(tmp_path / "missing" / "trace.json")]) == 1
