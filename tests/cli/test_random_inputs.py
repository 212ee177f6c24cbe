"""Tests of `relvm run --random`: the sizes of random inputs fit the model and the given inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from frontend.onnx_models import make_model, onnx
from onnx import helper
from support.command import relvm


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    nodes = [helper.make_node("Conv", ["in:0", "w"], ["a"]), helper.make_node("Mul", ["a", "scale"], ["y"])]
    inputs = [("in:0", np.float32, ["batch", 3, "height", "width"]), ("scale", np.float32, [])]
    model = make_model(nodes, inputs, ["y"], {"w": np.ones((2, 3, 7, 7), np.float32)})
    onnx.save(model, tmp_path / "model.onnx")
    np.save(tmp_path / "x.npy", np.ones((1, 3, 9, 7), np.float32))
    return tmp_path


@pytest.mark.parametrize(
    ("options", "note"),
    [
        ((), "--random: batch=1, height=224, width=224 "),
        (("--input", "scale=2.5"), "--random: batch=1, height=224, width=224 "),
        (("--dim", "height=9"), "--random: batch=1, width=224 "),
        (("--dim", "height=9", "--dim", "width=7", "--dim", "batch=2"), ""),
        (("--input", "in:0=x.npy"), ""),
    ],
)
def test_sizes_are_chosen_that_fit(folder: Path, options: tuple[str, ...], note: str) -> None:
    done = relvm("run", "model.onnx", "--target", "numpy", "--random", *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert ("--random: " in done.stderr) == bool(note) and note in done.stderr


def test_inputs_are_given_as_they_are_printed(folder: Path) -> None:
    given = ("--input", "in:0=x.npy", "--input", "scale=2")
    done = relvm("run", "model.onnx", "--target", "numpy", *given, "--output", "o.npz", cwd=folder)
    assert done.returncode == 0, done.stderr
    with np.load(folder / "o.npz") as outputs:
        np.testing.assert_array_equal(outputs["y"], np.full((1, 2, 3, 1), 2 * 3 * 49))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "model.onnx", "--input", "scale=2"), "missing inputs: in:0 (f32[batch, 3, height, width]); give them"),
        (("run", "m.rvm", "--random", "--dim", "height=6"), "found no working sizes for batch, width"),
        (("run", "m.rvm", "--random", "--dim", "hight=9"), "hight: expected one of batch, height, width; did you"),
        (("run", "model.onnx", "--random", "--output", "no/o.npz"), "no/o.npz: the folder no does not exist"),
        (("compile", "model.onnx", "-o", "no/m.rvm"), "-o no/m.rvm: the folder no does not exist"),
        (("compile", "model.onnx", "-o", "folder.rvm"), "-o folder.rvm: expected a file, but it is a folder"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said_before_the_build(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    (folder / "folder.rvm").mkdir()
    if "m.rvm" in arguments:
        assert relvm("compile", "model.onnx", "--target", "numpy", "-o", "m.rvm", cwd=folder).returncode == 0
    done = relvm(*arguments, "--target", "auto", cwd=folder)
    assert done.returncode != 0 and message in done.stderr, done.stderr


def test_an_export_chooses_sizes_that_its_memory_plan_needs(folder: Path) -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Concat", ["a", "x"], ["y"], axis=1)]
    model = make_model(nodes, [("x", np.float32, ["batch", 4])], ["y"], {"w": np.ones((4, 3), np.float32)})
    onnx.save(model, folder / "dynamic.onnx")
    done = relvm("export", "dynamic.onnx", "-o", "made", "--random", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "exporting for batch=1 only" in done.stderr
    assert (folder / "made" / "metadata.json").exists()
    refused = relvm("export", "dynamic.onnx", "-o", "other", cwd=folder)
    assert refused.returncode == 1 and "give the inputs sizes, --dim batch=1" in refused.stderr
