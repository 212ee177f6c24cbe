"""Tests of the stage `assembly`: the assembly code of kernels."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from relvm.explore import explore
from relvm.frontend.text import parse_module

TEXT = """def main(x: f32[n, 4], y: f32[n, 4]) -> f32[n, 4] {
  a = exp(add(x, y))
  return softmax(a, axis=1)
}
"""


def test_instructions_follow_their_line_of_c() -> None:
    stages = explore(parse_module(TEXT, "model.relvm"), exec_mode="compiled", assembly=True)
    assert stages.names[-2:] == ("c", "assembly")
    c, assembly = stages["c"].lines, stages["assembly"].lines
    group, checked = None, 0
    for line in assembly:
        if found := re.fullmatch(r"  # c:(\d+): (.*)", line.text):
            group = c[int(found[1]) - 1]
            assert group.text.strip() == found[2]
        elif not line.text or re.match(r"\w", line.text):
            group = None
        if group is not None:
            assert line.origins == group.origins
            checked += bool(line.origins)
    assert checked > 0


def test_there_are_only_instructions_and_labels_that_are_used() -> None:
    text = explore(parse_module(TEXT), assembly=True)["assembly"].text
    for kernel in explore(parse_module(TEXT))["c"].text.split("rvm_status kernel_")[1::2]:
        assert f"\nkernel_{kernel.split('(')[0]}:\n" in f"\n{text}"
    assert not re.search(r"^\s+\.", text, re.MULTILINE)
    for label in re.findall(r"^(\.\w+):$", text, re.MULTILINE):
        assert re.search(rf"^  .*{re.escape(label)}\b", text, re.MULTILINE), label


def test_without_a_compiler_the_stage_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELVM_CC", "none")
    assert explore(parse_module(TEXT), assembly=True)["assembly"].text.startswith("no C compiler found (install ")


def test_without_kernels_there_is_no_assembly() -> None:
    assert "assembly" not in explore(parse_module(TEXT), target="numpy", assembly=True).names


def test_show_prints_the_assembly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.relvm").write_text(TEXT)
    command = [sys.executable, "-P", "-m", "relvm", "show", "model.relvm", "--stage", "assembly"]
    shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert shown == explore(parse_module(TEXT, "model.relvm"), assembly=True)["assembly"].text
    monkeypatch.setenv("RELVM_CC", "none")
    failed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert failed.returncode == 1 and "no C compiler found" in failed.stderr
