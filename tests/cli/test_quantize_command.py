"""`relvm quantize`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from relvm.cli import main

MODEL = '<ir_version: 8, opset_import: ["" : 17]> g (float[batch,16] x) => (float[batch,8] y) { y = MatMul(x, w) }'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a model, an input and calibration data."""
    model = onnx.parser.parse_model(MODEL)
    weights = np.linspace(-1, 1, 128, dtype=np.float32).reshape(16, 8)
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    onnx.save(model, tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.ones((3, 16), np.float32))
    (tmp_path / "samples").mkdir()
    for number in range(2):
        np.savez(tmp_path / "samples" / f"{number}.npz", x=np.full((1, 16), number, np.float32))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "heading", "measured"),
    [
        ([], "q.onnx: dynamic, ", "measured with relvm on 1 input"),
        (["--mode", "int4-weights", "--block-size", "8", "--dim", "batch=2"], "q.onnx: int4-weights, ", "on 1 input"),
        (["--mode", "static", "--calibration", "samples"], "q.onnx: static, ", "on 2 inputs"),
        (["--mode", "static", "--calibration", "samples/0.npz", "--calibration", "x.npy"], "static", "on 2 inputs"),
        (["--mode", "static", "--input", "x=x.npy"], "q.onnx: static, ", "on 1 input"),
        (["--mode", "static", "--calibration", "samples", "--input", "x=x.npy"], "q.onnx: static, ", "on 1 input"),
        (["--mode", "int8-weights", "--calibration", "samples"], "q.onnx: int8-weights, ", "on 2 inputs"),
    ],
)
def test_the_report(arguments: list[str], heading: str, measured: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quantize", "m.onnx", "-o", "q.onnx", *arguments]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[0].startswith(heading) or heading in lines[0]
    assert "MatMul            1      0" in lines
    assert measured in lines[-1]
    assert "random" not in printed.err.replace("--random: batch=1 (change with --dim)", "")
    assert Path("q.onnx").is_file()


def test_random_calibration_data_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quantize", "m.onnx", "-o", "q.onnx", "--mode", "static", "--random"]) == 0
    assert "the calibration data is random" in capsys.readouterr().err


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quantize", "m.onnx", "-o", "q.onnx", "--json", "--input", "x=x.npy"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["bytes_before"] == Path("m.onnx").stat().st_size
    assert report["operators"] == {"MatMul": {"quantized": 1, "float": 0}}
    assert [each["name"] for each in report["errors"]] == ["y"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["m.onnx", "-o", "q.onnx", "--mode", "static"], "--calibration FOLDER"),
        (["m.onnx", "-o", "no/q.onnx"], "the folder no does not exist"),
        (["m.relvm", "-o", "q.onnx"], "expected an .onnx model, got m.relvm"),
        (["n.onnx", "-o", "q.onnx"], "did you mean m.onnx"),
        (["m.onnx", "-o", "m.onnx"], "is the model itself"),
        (["m.onnx", "-o", "q.onnx", "--calibration", "empty"], "found no .npy or .npz files"),
        (["m.onnx", "-o", "q.onnx", "--block-size", "0"], "--block-size 0: expected at least 1"),
        (["m.onnx", "-o", "q.onnx", "--input", "z=x.npy"], "--input z: expected one of x"),
        (["m.onnx", "-o", "q.onnx", "--dim", "bach=2"], "bach"),
    ],
)
def test_mistakes(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quantize", *arguments]) == 1
    assert message in capsys.readouterr().err
    assert not Path("q.onnx").exists()
