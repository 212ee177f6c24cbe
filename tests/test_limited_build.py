"""Builds with limits: whatever the model contains, its build ends at the limits of time and memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.c_compiler import started_compilers, stuck_compiler

import relvm
from relvm import vm
from relvm.cli.main import main
from relvm.compiler.find_compiler import find_compiler
from relvm.errors import (
    RelvmArgumentError,
    RelvmFormatError,
    RelvmMemoryError,
    RelvmSyntaxError,
    RelvmTimeoutError,
    RelvmTypeError,
    RelvmUnsupportedError,
)
from relvm.limited_build import BuildLimits, build_limited

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of a build need Linux")

LIMITS = BuildLimits(max_seconds=100, max_bytes=256 << 20)
TIGHT = BuildLimits(max_seconds=100, max_bytes=24 << 20)
PROGRAM = "def main(x: f32[n, 4]) -> f32[n, 4] = relu(add(x, x))\n"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.relvm"
    path.write_text(PROGRAM)
    return path


def onnx_model(nodes: list[onnx.NodeProto], outputs: list[str], **initializers: np.ndarray) -> bytes:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [onnx.numpy_helper.from_array(value, name) for name, value in initializers.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=9).SerializeToString()


def doubled_constant() -> bytes:
    """A constant that doubles 40 times."""
    nodes = [helper.make_node("Concat", [f"c{i}", f"c{i}"], [f"c{i + 1}"], axis=0) for i in range(40)]
    nodes += [
        helper.make_node("ReduceMax", ["c40"], ["m"], keepdims=0),
        helper.make_node("Add", ["x", "m"], ["y"]),
    ]
    return onnx_model(nodes, ["y"], c0=np.ones(1024, np.float32))


def many_nodes() -> bytes:
    nodes = [helper.make_node("Add", ["x" if i == 0 else f"y{i - 1}", "x"], [f"y{i}"]) for i in range(6000)]
    return onnx_model(nodes, [f"y{i}" for i in range(0, 6000, 10)])


def many_functions() -> str:
    functions = (f"def f{i}(x: f32[n, {i}]) -> f32[n, {i}] = softmax(add(x, x), axis=1)\n" for i in range(1, 3000))
    return "".join(functions)


@pytest.mark.parametrize("model", [doubled_constant, many_nodes, many_functions])
def test_a_model_that_needs_much_memory_ends_at_the_limit(model: Callable[[], bytes | str], tmp_path: Path) -> None:
    source: Any = model()
    if isinstance(source, str):
        (tmp_path / "m.relvm").write_text(source)
        source = tmp_path / "m.relvm"
    with pytest.raises(RelvmMemoryError, match=r"the build exceeded its limit of 25165824 bytes \(max_bytes\)"):
        build_limited(source, TIGHT)


def test_a_build_ends_at_the_limit_of_time(program: Path) -> None:
    with pytest.raises(RelvmTimeoutError, match=r"the build exceeded its limit of 0\.001 seconds \(max_seconds\)"):
        build_limited(program, BuildLimits(max_seconds=0.001))


@pytest.mark.parametrize("mode", ["bytecode", "compiled", "auto"])
def test_the_result_is_that_of_a_build_without_limits(program: Path, mode: str) -> None:
    x = np.array([[1, -2, 3, -4]], np.float32)
    model = relvm.load_model(program, exec_mode=mode, limits=LIMITS)
    np.testing.assert_array_equal(model(x).numpy(), np.maximum(2 * x, 0))
    if mode == "auto" and find_compiler():
        model.wait_compiled()
        np.testing.assert_array_equal(model(x).numpy(), np.maximum(2 * x, 0))
    plain = vm.build(program, mode, "c").program
    assert [entry.name for entry in model.executable.program.functions] == [entry.name for entry in plain.functions]


def test_the_bytes_of_a_model(tmp_path: Path) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    content = onnx_model(nodes, ["y"])
    for source in (content, bytearray(content), onnx.load_model_from_string(content)):
        model = relvm.load_model(source, exec_mode="bytecode", limits=LIMITS, dims={"n": (1, 8)})
        np.testing.assert_array_equal(model(np.float32([-1, 2])), np.float32([0, 2]))


def test_errors_are_those_of_a_build_without_limits(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        build_limited(tmp_path / "absent.relvm", LIMITS)
    (tmp_path / "bad.relvm").write_text("def main(")
    with pytest.raises(RelvmSyntaxError, match="expected a parameter, got the end of the text"):
        build_limited(tmp_path / "bad.relvm", LIMITS)
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    with pytest.raises(RelvmFormatError):
        build_limited(tmp_path / "bad.onnx", LIMITS)


def test_an_internal_class_of_errors_has_a_public_name(tmp_path: Path) -> None:
    parameters = ", ".join(f"x{i}: f32[n{i}]" for i in range(2500))
    operands = ", ".join(f"x{i}" for i in range(2500))
    (tmp_path / "wide.relvm").write_text(f"def main({parameters}) = concat({operands}, axis=0)\n")
    for limits in (None, LIMITS):
        with pytest.raises(RelvmUnsupportedError, match="a dimension has"):
            relvm.load_model(tmp_path / "wide.relvm", limits=limits)


def test_invalid_limits(program: Path, tmp_path: Path) -> None:
    for arguments in ({"max_seconds": "1"}, {"max_bytes": 2.5}, {"max_seconds": True}):
        with pytest.raises(RelvmTypeError, match=r"expected (a number|an integer)"):
            BuildLimits(**arguments)
    for arguments in ({"max_seconds": 0}, {"max_bytes": 1000}, {"max_seconds": -1}):
        with pytest.raises(RelvmArgumentError, match="expected a number above"):
            BuildLimits(**arguments)
    with pytest.raises(RelvmTypeError, match="limits: expected a BuildLimits"):
        relvm.load_model(program, limits={"max_seconds": 1})
    with pytest.raises(RelvmTypeError, match=r"weights: with limits, expected the path of a \.safetensors file"):
        relvm.load_model(program, limits=LIMITS, weights={"x": np.ones(3)})
    vm.build(program).save(tmp_path / "m.rvm")
    with pytest.raises(RelvmArgumentError, match="limits: only for compiling a model"):
        relvm.load_model(tmp_path / "m.rvm", limits=LIMITS)


LEFTOVERS = """
import os, sys
from relvm.errors import RelvmTimeoutError
from relvm.limited_build import BuildLimits, build_limited
before = os.listdir("/proc/self/fd")
for seconds in (60, 0.001, 60):
    try:
        build_limited(sys.argv[1], BuildLimits(max_seconds=seconds))
    except RelvmTimeoutError:
        assert seconds == 0.001
assert os.listdir("/proc/self/fd") == before
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("none")
"""


def test_no_descriptor_and_no_process_is_left(program: Path) -> None:
    """In a process of its own, which has no other children."""
    done = subprocess.run([sys.executable, "-c", LEFTOVERS, program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("none\n", "")


@pytest.mark.skipif(find_compiler() is None, reason="no C compiler")
def test_no_temporary_file_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The build is ended while the C compiler runs."""
    for name, value in stuck_compiler(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(tempfile, "tempdir", None)
    (tmp_path / "m.relvm").write_text(PROGRAM)
    with pytest.raises(RelvmTimeoutError):
        build_limited(tmp_path / "m.relvm", BuildLimits(max_seconds=10), exec_mode="compiled")
    assert started_compilers(tmp_path)
    assert not list((tmp_path / "temporary").iterdir())


def test_the_command_line(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    limits = ["--limit-seconds", "100", "--limit-bytes", str(256 << 20)]
    assert main(["run", str(program), "--random", *limits]) == 0
    assert main(["compile", str(program), "-o", str(tmp_path / "m.rvm"), *limits]) == 0
    assert vm.load(tmp_path / "m.rvm").functions
    capsys.readouterr()
    assert main(["run", str(program), "--random", "--limit-seconds", "0.001"]) != 0
    assert "the build exceeded its limit of 0.001 seconds" in capsys.readouterr().err
