"""Tests of `relvm info`, `bench` and `completion`, of JSON, quiet and verbose output, and of suggestions for typos."""

from __future__ import annotations

import json
import subprocess
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from cli.test_commands import TEXT
from frontend.onnx_models import onnx
from support.command import relvm

from relvm.cli import bench
from relvm.cli.main import main
from relvm.ir.portable_random import PortableRandom
from relvm.runtime.result_digest import result_digest

MODEL = """<ir_version: 8, opset_import: ["": 17]>
g (float[n, 2] x) => (float[n, 2] z) <float[2] w = {1, 2}> { y = Add(x, w)  z = Mul(y, y) }"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    onnx.save(onnx.parser.parse_model(MODEL), tmp_path / "model.onnx")
    onnx.save(onnx.parser.parse_model(MODEL.replace("Mul(y, y)", "Nope(y)")), tmp_path / "unknown.onnx")
    (tmp_path / "model.relvm").write_text(TEXT)
    return tmp_path


def printed(done: subprocess.CompletedProcess) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_info_of_an_onnx_model(folder: Path) -> None:
    text = printed(relvm("info", "model.onnx", cwd=folder))
    assert "inputs:\n  x  tensor(float)[n, 2]\n" in text
    assert "symbolic sizes: n\nparameters: 2\nnodes: 2\noperators:\n  Add  1\n  Mul  1\nunsupported: none\n" in text
    found = json.loads(
        printed(relvm("info", "model.onnx", "--json", "--operations", "--random", "--dim", "n=3", cwd=folder))
    )
    assert found["operations"] == 12 and found["outputs"] == {"z": "tensor(float)[n, 2]"}


def test_the_names_of_sizes_that_info_prints_are_those_of_run_and_dim(tmp_path: Path) -> None:
    """Names in the file are accepted, too, and clashing names differ."""
    shape = ["p2o.Dim.1", "p2o_Dim.1", None, "?"]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Relu", ["x.1"], ["y"])],
        "g",
        [onnx.helper.make_tensor_value_info("x.1", onnx.TensorProto.FLOAT, shape)],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, shape)],
    )
    onnx.save(onnx.helper.make_model(graph, ir_version=9), tmp_path / "model.onnx")
    found = json.loads(printed(relvm("info", "model.onnx", "--json", cwd=tmp_path)))
    names = found["symbolic_sizes"]
    assert names == ["p2o_Dim_1", "p2o_Dim_1_1", "x_1_dim2", "x_1_dim3"]
    assert found["inputs"] == {"x.1": f"tensor(float)[{', '.join(names)}]"}
    assert found["outputs"] == {"y": "tensor(float)[p2o_Dim_1, p2o_Dim_1_1, ?, ?]"}
    chosen = relvm("run", "model.onnx", "--random", cwd=tmp_path)
    assert f"--random: {', '.join(f'{name}=1' for name in names)} " in chosen.stderr
    for spelled in (names, ["p2o.Dim.1", "p2o_Dim.1", "x.1_dim2", "x.1_dim3"]):
        options = [word for size, name in enumerate(spelled, 2) for word in ("--dim", f"{name}={size}")]
        assert printed(relvm("run", "model.onnx", "--random", *options, cwd=tmp_path)).startswith(
            "y: float32[2, 3, 4, 5]"
        )
    unknown = relvm("run", "model.onnx", "--random", "--dim", "p2o_Dmi_1=2", cwd=tmp_path)
    assert "unknown dimension p2o_Dmi_1; the model has p2o_Dim_1, " in unknown.stderr
    assert "did you mean p2o_Dim_1" in unknown.stderr


def test_info_names_what_is_unsupported(folder: Path) -> None:
    (reason,) = json.loads(printed(relvm("info", "unknown.onnx", "--json", cwd=folder)))["unsupported"]
    assert "operator Nope is not supported" in reason


def test_info_of_a_text_and_of_an_executable(folder: Path) -> None:
    assert json.loads(printed(relvm("info", "model.relvm", "--json", cwd=folder)))["operators"] == {"relu": 1, "add": 1}
    assert relvm("compile", "model.relvm", "--target", "bytecode", "-o", "m.rvm", cwd=folder).returncode == 0
    found = json.loads(printed(relvm("info", "m.rvm", "--json", cwd=folder)))
    assert found["functions"] == {"main": "(x: f32[n, 3]) -> (f32[n, 3], f32[n, 3])"}
    assert found["native_code"] == "none"


def test_verify_prints_digests_of_a_run(folder: Path) -> None:
    options = ("verify", "--bits", "model.relvm", "--dim", "n=2", "--target", "bytecode")
    lines = printed(relvm(*options, cwd=folder)).splitlines()
    rows = {line[:14].rstrip(): line[16:].replace(" ", "") for line in lines}
    assert list(rows) == ["inputs", "constants", "output output0", "output output1", "all outputs"]
    found = json.loads(printed(relvm(*options, "--json", cwd=folder)))
    x = PortableRandom(0).standard_normal((2, 3)).astype(np.float32)
    y = np.maximum(x, 0)
    assert found["inputs"] == result_digest((x,)) and found["inputs"][:24] == rows["inputs"]
    assert found["outputs"] == {"output0": result_digest(y), "output1": result_digest(x + y)}
    assert found["all"] == result_digest((y, x + y)) and found["all"][:24] == rows["all outputs"]
    other = json.loads(printed(relvm(*options, "--json", "--seed", "1", cwd=folder)))
    assert other["inputs"] != found["inputs"] and other["constants"] == found["constants"]


def test_verify_prints_the_same_digests_for_all_ways_to_run(folder: Path) -> None:
    ways = (("--target", "bytecode exact-fma", "--threads", "1"), ("--exec-mode", "compiled"), ("--unfused",))
    assert len({printed(relvm("verify", "--bits", "model.onnx", *way, cwd=folder)) for way in ways}) == 1
    assert relvm("compile", "model.onnx", "--target", "bytecode", "-o", "m.rvm", cwd=folder).returncode == 0
    built = printed(relvm("verify", "--bits", "m.rvm", cwd=folder))
    assert built == printed(relvm("verify", "--bits", "model.onnx", "--target", "bytecode", cwd=folder))


def test_bench_compares_with_onnxruntime(folder: Path) -> None:
    pytest.importorskip("onnxruntime")
    options = ("--seconds", "0.05", "--dim", "n=3", "--target", "bytecode", "--against", "onnxruntime")
    ours, theirs = json.loads(printed(relvm("bench", "model.onnx", *options, "--json", cwd=folder)))
    assert (ours["runtime"], theirs["runtime"], ours["ratio"]) == ("relvm", "onnxruntime", 1.0)
    assert theirs["ratio"] == pytest.approx(ours["seconds"] / theirs["seconds"])
    table = printed(relvm("bench", "model.onnx", *options, cwd=folder))
    assert [line.split()[0] for line in table.splitlines()] == ["runtime", "relvm", "onnxruntime"]
    assert all(len(line) <= 80 for line in table.splitlines())
    for row in (ours, theirs):
        assert row["quartiles"][0] <= row["seconds"] <= row["quartiles"][1]


def test_each_runtime_is_reported_when_its_measurement_ends() -> None:
    calls: list[str] = []
    runs = {name: partial(calls.append, name) for name in ("relvm", "peer")}
    measured = bench._measure_runs(runs, 0.0)
    name, times = next(measured)
    assert (name, len(times), calls.count("relvm"), calls.count("peer")) == ("relvm", 7, 7, 6)
    assert [name for name, _ in measured] == ["peer"] and calls.count("peer") == 7


@pytest.mark.parametrize(("share", "is_noted"), [(0.05, False), (0.3, True)])
def test_bench_tells_when_the_machine_is_busy(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], share: float, is_noted: bool
) -> None:
    monkeypatch.setattr("relvm.cli.bench._share_of_others", lambda before, after: share)
    assert main(["bench", str(folder / "model.relvm"), "--seconds", "0.01", "--target", "bytecode"]) == 0
    assert ("other programs took 30% of the processors" in capsys.readouterr().err) == is_noted


def test_what_bench_refuses(folder: Path) -> None:
    done = relvm("bench", "model.onnx", "--against", "onnxruntim", cwd=folder)
    assert done.returncode == 2 and "did you mean onnxruntime?" in done.stderr
    done = relvm("bench", "model.relvm", "--against", "onnxruntime", cwd=folder)
    assert done.returncode == 1 and "only for .onnx models" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (("rnu", "model.onnx"), "; did you mean run?"),
        (("run", "model.onnx", "--repaet", "3"), "; did you mean --repeat?"),
        (("show", "model.onnx", "--stage", "fuseops"), "; did you mean fuse_ops?"),
    ],
)
def test_a_mistyped_word_is_suggested(arguments: tuple[str, ...], suggestion: str, tmp_path: Path) -> None:
    done = relvm(*arguments, cwd=tmp_path)
    assert done.returncode == 2 and suggestion in done.stderr


@pytest.mark.parametrize("command", [("cache",), ("ops",), ("opcodes",), ("builtins",)])
def test_tables_as_json(command: tuple[str, ...], tmp_path: Path) -> None:
    assert json.loads(printed(relvm(*command, "--json", cwd=tmp_path)))


def test_verify_as_json(folder: Path) -> None:
    assert relvm("compile", "model.relvm", "--target", "bytecode", "-o", "m.rvm", cwd=folder).returncode == 0
    found = json.loads(printed(relvm("verify", "m.rvm", "--json", cwd=folder)))
    assert found["native_code"] == "none" and found["functions"]["bytecode"] == 1


def test_quiet_and_verbose(folder: Path) -> None:
    arguments = ("run", "model.relvm", "--random", "--dim", "n=2", "--target", "bytecode")
    assert "ms" in relvm(*arguments, cwd=folder).stderr
    assert relvm(*arguments, "-q", cwd=folder).stderr == ""
    assert "error" in relvm("run", "missing.relvm", "-q", cwd=folder).stderr
    assert relvm(*arguments, "-q", "-v", cwd=folder).returncode == 2


def test_completion_without_argcomplete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`relvm completion` names the package, and a shell that asks for completions gets none."""
    (tmp_path / "argcomplete.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = relvm("completion", "bash", cwd=tmp_path)
    assert done.returncode == 1
    assert "RelvmUnsupportedError: completion requires argcomplete: pip install 'relvm[completion]'" in done.stderr
    monkeypatch.setenv("_ARGCOMPLETE", "1")
    assert relvm("--version", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, tmp_path: Path) -> None:
    assert "_ARGCOMPLETE" in printed(relvm("completion", shell, cwd=tmp_path))
