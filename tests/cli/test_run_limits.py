"""Tests of numeric options and of the limits of a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.command import relvm
from support.modes import MODES

MODELS = {
    "spin": "def main(x: f32[2]) -> (f32[2], i64) = (x, @loop(1))\n"
    "def loop(i: i64) -> i64 = if i > 0 then @loop(i + 1) else i\n",
    "large": "def main(x: f32[2]) -> f32[8000, 8000, 2] = "
    "broadcast_to(reshape(x, shape(1, 1, 2)), shape(8000, 8000, 2))\n",
}
LIMITS = [
    ("spin", ("--max-seconds", "0.2"), "RelvmTimeoutError: the run exceeded its limit of 0.200 seconds"),
    ("spin", ("--max-steps", "1000000"), "RelvmTimeoutError: the run exceeded its limit of 1000000 steps"),
    ("large", ("--max-bytes", "1000000"), "of 1000000 bytes (--max-bytes) are in use"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in MODELS.items():
        (tmp_path / f"{name}.relvm").write_text(text)
    (tmp_path / "in").mkdir()
    np.save(tmp_path / "in" / "x.npy", np.float32([1, 2]))
    return tmp_path


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("model", "limit", "message"), LIMITS)
def test_run_ends_at_a_limit(folder: Path, mode: str, model: str, limit: tuple[str, str], message: str) -> None:
    done = relvm("run", f"{model}.relvm", "--random", "--exec-mode", mode, *limit, cwd=folder)
    assert done.returncode == 1 and message in done.stderr, done.stderr


@pytest.mark.parametrize(("model", "limit", "message"), LIMITS)
def test_map_ends_a_file_at_a_limit(folder: Path, model: str, limit: tuple[str, str], message: str) -> None:
    files = ("--inputs", "in", "--output", "out", "--workers", "1")
    done = relvm("map", f"{model}.relvm", *files, *limit, cwd=folder)
    assert done.returncode == 1 and message in done.stderr and "1 failed" in done.stderr, done.stderr
    assert not list((folder / "out").glob("*.npz"))


def test_a_run_within_its_limits_has_its_outputs(folder: Path) -> None:
    (folder / "add.relvm").write_text("def main(x: f32[2]) -> f32[2] = add(x, x)\n")
    limits = ("--max-seconds", "60", "--max-bytes", "1000000", "--max-steps", "1000000")
    done = relvm("run", "add.relvm", "--input", "x=in/x.npy", *limits, cwd=folder)
    assert done.returncode == 0 and "[2. 4.]" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("command", "option", "values"),
    [
        ("run", "--max-seconds", ["0", "-1", "nan", "inf", "1e400", "1e-20"]),
        ("run", "--max-bytes", ["0", "-1", "9" * 20]),
        ("map", "--max-steps", ["0", "-1", "9" * 20]),
        ("map", "--workers", ["0", "-1", "9" * 20]),
        ("map", "--threads", ["0", "-1", "9" * 20]),
        ("map", "--retries", ["-1", "9" * 20]),
        ("run", "--repeat", ["0", "-1"]),
        ("run", "--seed", ["-1"]),
        ("compare", "--tolerance", ["nan", "-1", "-inf"]),
    ],
)
def test_numbers_out_of_range_are_refused_before_the_model_is_read(
    folder: Path, command: str, option: str, values: list[str]
) -> None:
    files = ("--inputs", "in", "--output", "out") if command == "map" else ()
    for value in values:
        done = relvm(command, "nowhere.relvm", *files, f"{option}={value}", cwd=folder)
        assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
        assert done.stderr.startswith(f"relvm: error: RelvmArgumentError: {option} "), done.stderr
        assert ": expected at least " in done.stderr


@pytest.mark.parametrize("option", ["--max-seconds", "--max-bytes", "--repeat"])
def test_values_that_are_no_numbers_are_refused(folder: Path, option: str) -> None:
    for value in ("", "x", "9" * 5000 + ".", "\x1b[31m"):
        done = relvm("run", "nowhere.relvm", f"{option}={value}", cwd=folder)
        refused = (1, "RelvmArgumentError") if "." in value and option == "--max-seconds" else (2, "invalid")
        assert done.returncode == refused[0] and refused[1] in done.stderr and option in done.stderr, done.stderr
        assert "\x1b" not in done.stderr and len(done.stderr) < 6000
