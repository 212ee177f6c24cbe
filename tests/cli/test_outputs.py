"""Tests of outputs that cannot be written, and of invalid option values."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

MODEL = "def main(x: f32[n, 200]) -> f32[n, 200] = add(x, relu(x))\n"


def relvm(*arguments: str, cwd: Path, max_file: int | None = None) -> subprocess.CompletedProcess:
    """Run the command.  max_file: a limit on the size of files in bytes, which simulates a full disk."""

    def limit() -> None:
        if max_file is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (max_file, max_file))

    command = [sys.executable, "-m", "relvm", *arguments]
    return subprocess.run(
        command, cwd=cwd, input="", capture_output=True, text=True, env=os.environ, timeout=120, preexec_fn=limit
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model.relvm").write_text(MODEL)
    (tmp_path / "fixed.relvm").write_text(MODEL.replace("n, ", "200, "))
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        "run fixed.relvm --random --target numpy --output out.npz",
        "compile fixed.relvm --target numpy -o out.rvm",
        "export fixed.relvm -o out.tar",
        "export fixed.relvm -o folder --show storage --draw out.svg",
        "show fixed.relvm --html out.html",
        "run fixed.relvm --random --target numpy --timeline out.html",
        "show fixed.relvm --graph out.html",
        "show fixed.relvm --picture dataflow -o out.html",
        "show fixed.relvm --picture dataflow -o out.svg",
        "show fixed.relvm --picture memory -o out.png",
    ],
)
def test_on_a_full_disk_the_file_stays_what_it_was(folder: Path, arguments: str) -> None:
    if "--target" not in arguments:  # fill the cache of compiled code
        assert relvm(*arguments.split(), cwd=folder).returncode == 0
    output = folder / f"out.{arguments.rpartition('out.')[2]}"
    output.write_text("earlier")
    done = relvm(*arguments.split(), cwd=folder, max_file=1000)
    assert done.returncode == 1 and done.stderr.endswith(": File too large\n"), done.stderr
    assert done.stderr.count("\n") == 1 and output.name in done.stderr
    assert output.read_text() == "earlier"
    assert not list(folder.glob("*.part"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", ""),
        ("verify", ""),
        ("run", "fixed.relvm", "--random", "--output", ""),
        ("compile", "fixed.relvm", "-o", ""),
        ("export", "fixed.relvm", "-o", ""),
        ("export", "fixed.relvm", "-o", "folder", "--draw", ""),
        ("show", "fixed.relvm", "--html", ""),
        ("show", "fixed.relvm", "--graph", ""),
        ("show", "fixed.relvm", "--picture", "dataflow", "-o", ""),
        ("map", "fixed.relvm", "--inputs", "", "--output", "out"),
        ("map", "fixed.relvm", "--inputs", "in", "--output", ""),
    ],
)
def test_an_empty_name_of_a_file_is_refused(folder: Path, arguments: tuple[str, ...]) -> None:
    before = sorted(folder.iterdir())
    done = relvm(*arguments, cwd=folder)
    assert done.returncode == 2 and "expected a file name, got nothing" in done.stderr, done.stderr
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "fixed.relvm", "--random", "--dim", "n=2"), "--dim n: no input has a symbolic size"),
        (("run", "model.relvm", "--random", "--dim", "m=2"), "--dim m: expected one of n"),
        (("run", "model.relvm", "--random", "--dim", "n=" + "9" * 5000), "expected NAME=SIZE"),
        (("run", "model.relvm", "--random", "--dim", "n=" + "9" * 19), "expected NAME=SIZE"),
        (("run", "model.relvm", "--random", "--dim", "n=2..1"), "expected NAME=SIZE"),
        (("run", "model.relvm", "--random", "--dim", "n=2", "--dim", "n=3"), "--dim n=3: n is given twice"),
        (("show", "model.relvm", "--graph", "out.svg"), "--graph out.svg: expected a file name ending in .html"),
        (("export", "fixed.relvm", "-o", "folder", "--pool", "p=" + "9" * 5000), "expected NAME or NAME=BYTES"),
        (
            ("compare", "fixed.relvm", "--modes", "bytecode"),
            "expected at least two distinct modes, got bytecode",
        ),
        (("run", "loop.relvm", "--random"), "loop.relvm: expected a file, got a cycle of symbolic links"),
        (("show", "dangling.relvm"), "relvm: error: dangling.relvm: No such file or directory"),
    ],
)
def test_values_without_a_meaning_are_refused(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    (folder / "loop.relvm").symlink_to("loop.relvm")
    (folder / "dangling.relvm").symlink_to("nowhere")
    done = relvm(*arguments, cwd=folder)
    assert done.returncode == 1 and message in done.stderr and done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize(
    ("dtype", "numbers"),
    [
        ("i8", ["300", "-129", "nan", "inf", "1.5", "9" * 400]),
        ("u8", ["-1", "256"]),
        ("i4", ["8", "-9"]),
        ("bool", ["2"]),
        ("f32", ["9" * 400]),
    ],
)
def test_numbers_that_a_type_does_not_have_are_refused(folder: Path, dtype: str, numbers: list[str]) -> None:
    (folder / "scalar.relvm").write_text(f"def main(x: {dtype}[]) -> {dtype}[] = x\n")
    for number in numbers:
        done = relvm("run", "scalar.relvm", "--target", "numpy", "--input", f"x={number}", cwd=folder)
        assert done.returncode == 1 and f": expected a number of type {dtype}\n" in done.stderr, done.stderr
    done = relvm("run", "scalar.relvm", "--target", "numpy", "--input", "x=1", cwd=folder)
    assert done.returncode == 0, done.stderr


def test_numbers_of_breakpoints_have_64_bits(folder: Path) -> None:
    command = [sys.executable, "-m", "relvm", "debug", "fixed.relvm", "--random"]
    commands = f"break {'9' * 5000}\ndelete {'9' * 5000}\nprint r{'9' * 5000}\n"
    done = subprocess.run(command, cwd=folder, input=commands, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    assert [line.startswith("Relvm") for line in done.stdout.splitlines()] == [True] * 3
