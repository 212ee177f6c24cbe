"""The C++ project in examples/cpp: the commands of docs/cpp.md build it with sanitizers, and its program works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.documents import ROOT, blocks, small_model

import relvm
from relvm import vm
from relvm.frontend.text import parse_module

SANITIZED = "-fsanitize=address,undefined -fno-sanitize-recover=all -Werror"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the commands of the page in a folder with a model and a link to the examples, and return the folder."""
    folder = tmp_path_factory.mktemp("cpp")
    (folder / "examples").symlink_to(ROOT / "examples")
    onnx.save(small_model(), folder / "model.onnx")
    (commands,) = (text for language, text in blocks(ROOT / "docs/cpp.md") if language == "sh")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    bash = [shutil.which("bash") or "bash", "-euo", "pipefail", "-c", commands]
    environment = os.environ | {"PATH": path, "CXXFLAGS": SANITIZED}
    done = subprocess.run(bash, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def classify(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess:
    return subprocess.run([folder / "build/classify", *arguments], cwd=folder, capture_output=True, text=True)


def test_the_program_prints_the_classes_of_python(folder: Path) -> None:
    done = classify(folder, "model.rvm", "1", "3")
    images = np.repeat(np.float32([0, 0.1, 0.2]), 3 * 32 * 32).reshape(3, 3, 32, 32)
    classes = relvm.load_model(folder / "model.onnx")(images).numpy().argmax(axis=1)
    lines = [line.partition(",")[0] for line in done.stdout.splitlines()]
    rows = [f"image {number}: class {label}" for number, label in enumerate(classes)]
    assert (done.returncode, lines, done.stderr) == (0, ["batch of 1", rows[0], "batch of 3", *rows], "")


def test_an_output_can_be_a_constant_of_the_executable(folder: Path, tmp_path: Path) -> None:
    module = parse_module("def main(x: f32[n, 3, 32, 32]) -> f32[1, 2] = const(f32[1, 2], [[1, 2]])")
    vm.build(module, target="bytecode").save(tmp_path / "constant.rvm")
    done = classify(folder, tmp_path / "constant.rvm", "4")
    assert (done.returncode, done.stdout) == (0, "batch of 1\nimage 0: class 1, score 2\n"), done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.rvm", "1"], "missing.rvm: No such file or directory"),
        ([".", "1"], ".: Is a directory"),
        (["model.onnx", "1"], "executable: not a relvm executable (wrong magic number)"),
        (["model.rvm", "one"], "batch: expected a number, got one"),
        (["model.rvm", "-1"], "tensor: a dimension is negative, or the size exceeds 64 bits"),
    ],
)
def test_failures_are_exceptions(folder: Path, arguments: list[str], message: str) -> None:
    done = classify(folder, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"error: {message}\n")


def test_a_wrong_shape_names_the_input(folder: Path, tmp_path: Path) -> None:
    vm.build(parse_module("def main(x: f32[n, 3, 16, 16]) = x"), target="bytecode").save(tmp_path / "small.rvm")
    done = classify(folder, tmp_path / "small.rvm", "1")
    assert done.returncode == 1
    assert done.stderr.startswith("error: main: argument x: expected dimension 2 to be 16, got 32\n  in main at")
