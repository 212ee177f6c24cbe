"""Tests of `run --json` and `compare --json`: standard output is one JSON value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from relvm.cli import main


@pytest.fixture
def model(tmp_path: Path) -> str:
    (tmp_path / "model.relvm").write_text("def main(x: f32[n]) -> f32[n] = add(x, x)")
    return str(tmp_path / "model.relvm")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_run_prints_outputs_and_times(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "run", model, "--random", "--dim", "n=3", "--target", "bytecode", "--repeat", "4")
    assert found["outputs"] == [{"name": "output", "dtype": "float32", "shape": [3]}]
    assert len(found["seconds"]) == 4 and min(found["seconds"]) > 0
    assert "profile" not in found


def test_run_prints_profiles(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    profile = printed(capsys, "run", model, "--random", "--dim", "n=3", "--profile-kernels")["profile"]
    rows = {row["kind"]: row for row in profile["rows"]}
    assert rows["kernel"]["count"] == 1 and rows["kernel"]["operations"] == 3
    (kernel,) = profile["kernels"]
    assert kernel["name"] == rows["kernel"]["name"] and kernel["rows"][0]["count"] >= 1


def test_a_table_and_json_exclude_each_other(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", model, "--random", "--roofline", "--json"]) == 1
    assert "--roofline prints a table, which --json excludes" in capsys.readouterr().err


def test_compare_prints_every_value(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "compare", model, "--modes", "reference,bytecode", "--target", "bytecode")
    assert found["modes"] == ["reference", "bytecode"] and found["agrees"] is True
    row = found["rows"][-1]
    assert row["name"] == "returned" and row["differences"] == {"bytecode": 0.0} and not row["differs"]
