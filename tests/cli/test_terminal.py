"""Tests of output on a terminal: colors, and the progress line."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from relvm.cli import main
from relvm.cli.colors import colored, has_color
from relvm.cli.output import has_progress

MODEL = "def main(x: f32[n, 3]) -> f32[n, 3] = add(x, relu(x))\n"
RED, GREEN, YELLOW, END = "\x1b[1;31m", "\x1b[32m", "\x1b[1;33m", "\x1b[0m"
SETTINGS = ("NO_COLOR", "FORCE_COLOR", "TERM")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "model.relvm").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def on_terminal(*arguments: str, cwd: Path, **environment: str) -> str:
    """Run the command with standard error on a terminal, and return what it prints there."""
    ours, theirs = pty.openpty()
    inherited = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    with subprocess.Popen(
        [sys.executable, "-m", "relvm", *arguments],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env=inherited | {"TERM": "xterm"} | environment,
    ):
        os.close(theirs)
        printed = b""
        try:
            while part := os.read(ours, 4096):
                printed += part
        except OSError:  # raised on Linux when the other end is closed
            pass
    os.close(ours)
    return printed.decode()


@pytest.mark.parametrize(
    ("environment", "terminal", "expected"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "dumb"}, True, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
    ],
    ids=str,
)
def test_where_there_are_colors(
    environment: dict[str, str], terminal: bool, expected: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    assert has_color(sys.stderr) is expected
    assert colored("text", "bad", sys.stderr) == (f"{RED}text{END}" if expected else "text")
    assert colored("text", None, sys.stderr) == "text"


def colors_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[list[str], list[str]]:
    """Run the command with colors, and return the printed lines of standard output and of standard error."""
    main(arguments)
    out, error = capsys.readouterr()
    return out.splitlines(), error.splitlines()


def test_what_is_colored(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    compare = ("compare", "model.relvm", "--modes", "reference,bytecode", "--target", "bytecode")
    plain, _ = colors_of(capsys, *compare)
    assert not any("\x1b" in line for line in plain)
    monkeypatch.setenv("FORCE_COLOR", "1")
    colorful, _ = colors_of(capsys, *compare)
    assert colorful == [f"{GREEN}{plain[0]}{END}", *plain[1:]]
    profile, notes = colors_of(capsys, "run", "model.relvm", "--random", "--profile-kernels")
    assert sum(line.startswith(f"{YELLOW}*") for line in profile) >= 1
    assert not any("\x1b" in line for line in [*profile[:3], *notes])
    error = f"relvm: {RED}error:{END} missing.relvm: No such file or directory"
    assert colors_of(capsys, "run", "missing.relvm")[1] == [error]
    (folder / "bad.relvm").write_text("def main(\x1b[31m")
    _, [error, *_] = colors_of(capsys, "run", "bad.relvm")
    assert error.endswith("'\\x1b'") and error.count("\x1b") == 2  # the control character in the file is escaped


def test_json_has_no_colors(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    out, _ = colors_of(capsys, "run", "model.relvm", "--random", "--profile-kernels", "--json")
    assert not any("\x1b" in line for line in out)


def test_a_build_over_a_second_shows_its_step_on_a_terminal(folder: Path) -> None:
    slow = folder / "slow-cc"
    slow.write_text('#!/bin/sh\n[ "$1" = --version ] || sleep 1.2\nexec cc "$@"\n')
    slow.chmod(0o755)
    command = ("run", "model.relvm", "--random", "--exec-mode", "compiled")

    def printed(name: str, *options: str) -> str:
        environment = {"RELVM_CC": str(slow), "RELVM_CACHE_DIR": str(folder / name)}
        return on_terminal(*command, *options, cwd=folder, **environment)

    shown = printed("first")
    assert "\r\x1b[Krelvm: building: C compilation, 1 s" in shown
    assert "\r\x1b[Krelvm: " in shown and shown.rpartition("\x1b[K")[2].endswith(" ms\r\n")  # without the progress line
    assert printed("second", "-q") == ""


@pytest.mark.parametrize(
    ("terminal", "verbose", "quiet", "expected"),
    [(True, False, False, True), (False, False, False, False), (True, False, True, False), (True, True, False, False)],
)
def test_where_there_is_progress(
    terminal: bool, verbose: bool, quiet: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relvm.cli.output._is_quiet", quiet)
    monkeypatch.setattr("relvm.cli.output._is_verbose", verbose)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    assert has_progress() is expected


def test_there_is_no_progress_elsewhere(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from relvm.cli.progress import Progress

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("relvm.cli.progress._FIRST_SECONDS", 0.0)
        with Progress("building") as progress:
            assert progress._thread is None
    assert capsys.readouterr().err == ""
