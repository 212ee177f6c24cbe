"""Every command that has the option --dim sets sizes with it, also a size of 0."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from frontend.onnx_models import onnx

from relvm.cli.help import COMMANDS as ALL_COMMANDS
from relvm.cli.main import main, make_parser

MODEL = """<ir_version: 8, opset_import: ["": 17]>
g (float[n, 3, 8, 8] x) => (float[n, 2] y, float[2] z) <float[3, 2] w = {1, 2, 3, 4, 5, 6}> {
  p = GlobalAveragePool(x)  f = Flatten(p)  m = MatMul(f, w)
  y = Softmax(m)  z = ReduceMean<axes = [0], keepdims = 0>(y) }"""
PROGRAM = "def main(x: f32[n, 3]) -> f32[n, 3] = softmax(relu(x), axis=1)"
COMMANDS = {
    "run": ["--random", "--profile", "--roofline", "r.svg", "--timeline", "t.html", "--target", "bytecode"],
    "info": ["--random", "--operations", "--target", "bytecode"],
    "bench": ["--seconds", "0.01", "--target", "bytecode"],
    "map": ["--inputs", "in", "-o", "out", "--target", "bytecode", "--workers", "1"],
    "compile": ["--target", "bytecode", "-o", "m.rvm"],
    "bundle": ["--target", "bytecode", "-o", "packages"],
    "export": ["--random", "-o", "exported"],
    "quantize": ["-o", "q.onnx", "--mode", "int8-weights"],
    "show": ["--picture", "memory"],
    "compare": ["--modes", "reference,bytecode", "--target", "bytecode"],
    "debug": ["--random", "--target", "bytecode"],
    "verify": ["--bits", "--target", "bytecode"],
}
EXPORTED = Path(__file__).parents[1] / "frontend" / "pt2" / "mlp.pt2"  # its input has the shape (s77, 6)
PROGRAM_COMMANDS = ("run", "bench", "compare", "debug")  # in which --dim sets the sizes of random inputs


def test_every_command_with_sizes_is_tested() -> None:
    """`explore` starts a server, and passes --dim to the functions that `show` calls."""
    parsers = make_parser(ALL_COMMANDS).get_default("parsers")
    assert {name for name, each in parsers.items() if "--dim" in each._option_string_actions} == {*COMMANDS, "explore"}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("command", "file"),
    [*((name, "model.onnx") for name in COMMANDS), *((name, "program.relvm") for name in PROGRAM_COMMANDS)],
)
def test_a_size_of_zero(
    command: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(onnx.parser.parse_model(MODEL), "model.onnx")
    Path("program.relvm").write_text(PROGRAM)
    Path("in").mkdir()
    np.save("in/0.npy", np.zeros((0, 3, 8, 8), np.float32))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert main([command, file, "--dim", "n=0", *COMMANDS[command]]) == 0
    assert "Warning" not in capsys.readouterr().err


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "quantize"])  # which reads ONNX models only
def test_a_size_of_an_exported_program(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    np.save("in/0.npy", np.zeros((3, 6), np.float32))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    arguments = [command, str(EXPORTED), *COMMANDS[command]]
    assert main([*arguments, "--dim", "s77=3"]) == 0
    assert "s77" not in capsys.readouterr().out
    assert main([*arguments, "--dim", "s78=3"]) == 1
    assert "unknown dimension s78; the model has s77" in capsys.readouterr().err
