"""Tests of `relvm fmt`."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from relvm.cli import main

UGLY, NICE = "def f( x:i64 )->i64=x\n", "def f(x: i64) -> i64 = x\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Write an unformatted file and a formatted file."""
    ugly, nice = tmp_path / "ugly.relvm", tmp_path / "nice.relvm"
    ugly.write_text(UGLY)
    nice.write_text(NICE)
    ugly.chmod(0o640)
    return ugly, nice


def test_files_are_formatted_in_place(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fmt", *map(str, files)]) == 0
    assert [file.read_text() for file in files] == [NICE, NICE]
    assert files[0].stat().st_mode & 0o777 == 0o640
    assert "formatted 1 of 2 files" in capsys.readouterr().err


def test_check_changes_nothing(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fmt", "--check", *map(str, files)]) == 1
    assert files[0].read_text() == UGLY
    assert capsys.readouterr().out == f"would format {files[0]}\n"
    assert main(["fmt", "--check", str(files[1])]) == 0


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(UGLY))
    assert main(["fmt", "-"]) == 0
    assert capsys.readouterr().out == NICE


def test_a_file_with_an_error_does_not_stop_the_others(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong, missing = tmp_path / "wrong.relvm", tmp_path / "missing.relvm"
    wrong.write_text("def $")
    assert main(["fmt", str(wrong), str(missing), str(files[0])]) == 1
    assert files[0].read_text() == NICE
    printed = capsys.readouterr().err
    assert "wrong.relvm:1:5" in printed and "missing.relvm" in printed and "formatted 1 of 3 files" in printed


def test_other_files_are_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("def")
    assert main(["fmt", str(tmp_path / "notes.txt")]) == 1
    assert "expected a .relvm file" in capsys.readouterr().err
    (tmp_path / "wrong.relvm").write_text("def $")
    assert main(["fmt", str(tmp_path / "wrong.relvm")]) == 1
    assert "wrong.relvm:1:5: unexpected character" in capsys.readouterr().err
