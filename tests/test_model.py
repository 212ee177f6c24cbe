"""Tests of `relvm.load_model`: all kinds of files, imports of a second start, errors, and the methods of a model."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
from frontend.onnx_models import onnx
from support.modes import assert_same_bits, plain

import relvm
from relvm import model as model_module
from relvm import script, vm
from relvm.errors import (
    RelvmArgumentError,
    RelvmFormatError,
    RelvmNameError,
    RelvmToolchainError,
    RelvmTypeError,
    RelvmUnsupportedError,
)
from relvm.frontend.text import parse_module

pytestmark = pytest.mark.usefixtures("cache")

MODEL = """<ir_version: 8, opset_import: ["": 17]>
g (float[n, 40] x) => (float[n, 40] y) { s = Softmax<axis = -1>(x)  t = Tanh(s)  y = Add(t, x) }"""
TEXT = "def main(x: f32[n]) -> f32[n] { return add(x, x) }"
X = np.random.default_rng(1).standard_normal((3, 40)).astype(np.float32)
START = """
import contextlib
import sys
import numpy as np
import relvm
machine = relvm.load_model(sys.argv[1]).machine()
machine["main"](np.ones((3, 40), np.float32))
compiler = {"onnx", "relvm.passes.pipeline", "relvm.codegen"}
print(*machine.function_kinds.values(), *sorted(compiler & sys.modules.keys()))
with contextlib.suppress(relvm.errors.RelvmToolchainError):  # there may be no compiler
    machine.wait_compiled()
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx.save(onnx.parser.parse_model(MODEL), tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def start(model: Path, **environment: str) -> str:
    """Load the model in a new process, and return the kinds of its functions and the modules it has imported."""
    command = [sys.executable, "-P", "-c", START, str(model)]
    return subprocess.run(
        command, env=os.environ | environment, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_an_onnx_model_runs_at_once_and_gives_the_same_bits_as_native_code(model: Path) -> None:
    machine = relvm.load_model(model).machine()
    first = plain(machine["main"](X))
    assert machine.wait_compiled()
    assert machine.function_kinds == {"main": "native"}
    assert_same_bits(plain(machine["main"](X)), first)
    np.testing.assert_allclose(first, np.tanh(np.exp(X) / np.exp(X).sum(-1, keepdims=True)) + X, rtol=1e-5)


def test_the_target_numpy_needs_no_other_import(model: Path) -> None:
    code = "import sys, numpy, relvm; print(relvm.load_model(sys.argv[1], target='numpy')(numpy.ones((3, 40), 'f4')))"
    command = [sys.executable, "-P", "-c", code, str(model)]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.startswith("Tensor(")


def test_a_second_start_loads_native_code_and_does_not_import_the_compiler(model: Path) -> None:
    everything = "relvm.codegen relvm.passes.pipeline"
    assert start(model) in (f"bytecode {everything}", f"native {everything}")  # waits for the native code
    assert start(model) == "native"
    assert start(model, RELVM_CC="none") == "native"


def test_a_second_start_without_a_compiler(model: Path) -> None:
    assert start(model, RELVM_CC="none") == "bytecode relvm.codegen relvm.passes.pipeline"
    assert start(model, RELVM_CC="none") == "bytecode"


def test_a_start_from_kept_bytecode_compiles(model: Path) -> None:
    start(model, RELVM_CC="none")
    machine = relvm.load_model(model).machine()
    assert machine.wait_compiled() and machine.function_kinds == {"main": "native"}
    assert start(model) == "native"


def test_processes_that_start_together_compile_once(model: Path, tmp_path: Path) -> None:
    counting = tmp_path / "counting"
    counting.write_text(f'#!/bin/sh\ncase "$*" in *-shared*) echo linked >> {tmp_path}/links;; esac\nexec gcc "$@"\n')
    counting.chmod(0o755)
    command = [sys.executable, "-P", "-c", START, str(model)]
    environment = os.environ | {"RELVM_CC": str(counting)}
    started = [subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) for _ in range(3)]
    assert [process.wait(120) for process in started] == [0, 0, 0]
    assert (tmp_path / "links").read_text() == "linked\n"
    assert start(model) == "native"


def test_a_process_ends_without_waiting_for_the_compiler(model: Path, tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.write_text('#!/bin/sh\ncase "$*" in *unit.c*) sleep 100;; esac\nexec gcc "$@"\n')
    slow.chmod(0o755)
    program = "import sys, relvm, numpy; print(relvm.load_model(sys.argv[1])(numpy.ones((3, 40), 'f4')).shape)"
    command = [sys.executable, "-P", "-c", program, str(model)]
    done = subprocess.run(
        command, env=os.environ | {"RELVM_CC": str(slow)}, check=True, capture_output=True, text=True, timeout=600
    )
    assert (done.stdout, done.stderr) == ("(3, 40)\n", "")


def test_other_sizes_and_contents_are_other_builds(model: Path) -> None:
    start(model)
    assert relvm.load_model(model, dims={"n": 3}).executable.signature["main"]["params"][0]["type"] == "f32[3, 40]"
    onnx.save(onnx.parser.parse_model(MODEL.replace("Tanh", "Exp")), model)
    wanted = np.exp(np.exp(X) / np.exp(X).sum(-1, keepdims=True)) + X
    np.testing.assert_allclose(plain(relvm.load_model(model)(X)), wanted, rtol=1e-5)


def test_without_a_compiler_there_will_be_no_native_code(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELVM_CC", "none")
    for _ in range(2):  # first built, then read from the cache
        machine = relvm.load_model(model).machine()
        machine["main"](X)
        with pytest.raises(RelvmToolchainError, match="no C compiler found"):
            machine.wait_compiled()


def test_texts_and_executables(tmp_path: Path) -> None:
    (tmp_path / "model.relvm").write_text(TEXT)
    vm.build(parse_module(TEXT), target="bytecode").save(tmp_path / "model.rvm")
    for name in ("model.relvm", "model.rvm"):
        machine = relvm.load_model(tmp_path / name, threads=1, max_bytes=1 << 20).machine()
        assert plain(machine["main"](np.float32([1, 2]))).tolist() == [2, 4]
        machine.wait_compiled() if name == "model.relvm" else None
    machine = relvm.load_model(str(tmp_path / "model.relvm"), exec_mode="compiled", target="bytecode").machine()
    assert machine.function_kinds == {"main": "native"}


def test_what_is_refused(tmp_path: Path, model: Path) -> None:
    vm.build(parse_module(TEXT), target="bytecode").save(tmp_path / "model.rvm")
    number: Any = 3
    pairs: Any = [("n", 1)]
    with pytest.raises(RelvmArgumentError, match=r"dims, target: only for compiling a model"):
        relvm.load_model(tmp_path / "model.rvm", dims={"n": 1}, target="c")
    with pytest.raises(RelvmTypeError, match=r"model: expected a path, the bytes .* or a module, got int"):
        relvm.load_model(number)
    (tmp_path / "model.pt").touch()
    for name, suggested in (
        ("modle.rvm", "model.rvm"),
        ("mod.rvm", "model.rvm"),
        ("model.p", "model.pt"),
        ("y.onnx", ""),
    ):
        with pytest.raises(FileNotFoundError) as missing:
            relvm.load_model(tmp_path / name)
        suggestion = str(missing.value).partition("; did you mean ")[2]
        assert suggestion.startswith(suggested) and bool(suggestion) == bool(suggested)
    with pytest.raises(RelvmFormatError, match=r"expected a model \(.onnx, .relvm, .mlir or .pt2\)"):
        relvm.load_model(tmp_path / "model.pt")
    with pytest.raises(RelvmNameError, match="unknown dimension m"):
        relvm.load_model(model, dims={"m": 1})
    with pytest.raises(RelvmTypeError, match="dims: expected a mapping"):
        relvm.load_model(model, dims=pairs)
    with pytest.raises(RelvmArgumentError, match="exec_mode"):
        relvm.load_model(model, exec_mode="fast")
    with pytest.raises(RelvmArgumentError, match="target"):
        relvm.load_model(model, target="d")
    (tmp_path / "damaged.onnx").write_bytes(b"\x00\x01")
    with pytest.raises(RelvmFormatError, match="is not an ONNX model"):
        relvm.load_model(tmp_path / "damaged.onnx")


TWO = """<ir_version: 8, opset_import: ["": 17]>
g (float[n, 2] xx1, float[n, 2] y) => (float[n, 2] sum, float[n, 2] difference)
{ sum = Add(xx1, y)  difference = Sub(xx1, y) }"""


@pytest.fixture
def two() -> bytes:
    return onnx.parser.parse_model(TWO).SerializeToString().replace(b"xx1", b"x.1")  # not a valid name in the text form


def test_a_model_is_called_by_position_and_by_name(two: bytes) -> None:
    x, y = np.float32([[1, 2]]), np.float32([[3, 5]])
    for source in (two, bytearray(two), onnx.load_from_string(two)):
        model = relvm.load_model(source)
        assert repr(model) == ("<Model (x.1: f32[n, 2], y: f32[n, 2]) -> (sum: f32[n, 2], difference: f32[n, 2])>")
        for result in (model(x, y), model(x, y=y), model(**{"x.1": x, "y": y})):
            assert [each.numpy().tolist() for each in result] == [[[4, 7]], [[-2, -3]]]
        assert [each.tolist() for each in model.run(None, {"x.1": x, "y": y})] == [[[4, 7]], [[-2, -3]]]
        (difference,) = model.run(["difference"], {"x.1": x, "y": y})
        assert difference.flags.writeable and difference.tolist() == [[-2, -3]]


def test_outputs_are_found_by_name(two: bytes, model: Path) -> None:
    x, y = np.float32([[1, 2]]), np.float32([[3, 5]])
    result = relvm.load_model(two)(x, y)
    assert isinstance(result, tuple) and len(result) == 2
    assert result["sum"] is result[0] and result["difference"] is result[-1] and result[:1] == (result[0],)
    assert dict(result) == dict(result.items()) and list(dict(result)) == ["sum", "difference"]
    total, _ = result
    assert total.tolist() == [[4, 7]]
    with pytest.raises(RelvmNameError, match="no output summ; did you mean sum"):
        result["summ"]
    with pytest.raises(IndexError):
        result[2]
    copy = pickle.loads(pickle.dumps(type(result)((1, 2))))
    assert copy == (1, 2) and copy["difference"] == 2
    assert isinstance(relvm.load_model(model)(X), vm.Tensor)


def test_a_model_names_what_to_write_for_other_libraries(two: bytes) -> None:
    model = relvm.load_model(two)
    assert model.inputs == {"x.1": "f32[n, 2]", "y": "f32[n, 2]"}
    assert model.outputs == {"sum": "f32[n, 2]", "difference": "f32[n, 2]"}
    for name, advice in [
        ("get_inputs", "; write model.inputs"),
        ("predict", r"; write model\(x\)"),
        ("input_nmes", "; did you mean input_names"),
        ("_nothing", "no attribute '_nothing'$"),
    ]:
        with pytest.raises(AttributeError, match=advice):
            getattr(model, name)
        assert not hasattr(model, name)
    for advice in model_module._OTHER_NAMES.values():
        for name in re.findall(r"model\.(\w+)", advice):
            assert hasattr(model, name)


@script
def double(x: Annotated[vm.Tensor, "f32[n]"]) -> Annotated[vm.Tensor, "f32[n]"]:
    return x + x


def test_scripts_and_modules_are_loaded() -> None:
    module = parse_module("def main(x: f32[n], w: f32[n]) -> f32[n] = multiply(x, w)")
    model = relvm.load_model(double, exec_mode="bytecode", target="numpy")
    assert model([1, 2]).tolist() == [2, 4] and repr(model) == "<Model (x: f32[n]) -> (output_0: f32[n])>"
    assert model.explore()["bytecode"].text
    assert pickle.loads(pickle.dumps(model))([3]).tolist() == [6]
    weighted = relvm.load_model(module, weights={"w": np.float32([2, 3])}, exec_mode="bytecode", target="numpy")
    assert weighted([1, 2]).tolist() == [2, 6]
    with pytest.raises(RelvmArgumentError, match=r"dims: n: only an ONNX model and a \.pt2 file accept dims"):
        relvm.load_model(double, dims={"n": 3})


def test_what_a_model_refuses(two: bytes) -> None:
    model, x = relvm.load_model(two), np.float32([[1, 2]])
    with pytest.raises(RelvmArgumentError, match=r"expected 2 arguments \(x\.1, y\), got 1"):
        model(x)
    with pytest.raises(RelvmArgumentError, match="unknown argument z"):
        model(x, x, z=x)
    with pytest.raises(RelvmTypeError, match="unknown option max_second; did you mean max_seconds"):
        relvm.load_model(two, max_second=1)
    with pytest.raises(RelvmNameError, match="no output summ; did you mean sum"):
        model.run(["summ"], {"x.1": x, "y": x})
    with pytest.raises(RelvmArgumentError, match=r"write \['sum'\]"):
        model.run("sum", {"x.1": x, "y": x})
    with model:
        model(x, x)
    with pytest.raises(RelvmArgumentError, match="the model is closed"):
        model(x, x)


def test_threads_share_a_model(two: bytes) -> None:
    model = relvm.load_model(two, threads=1)

    def run(number: int) -> float:
        x = np.full((3, 2), number, np.float32)
        return float(model(x, x)[0].numpy().sum())

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(run, range(300))) == [12 * number for number in range(300)]


def test_a_model_is_saved_and_pickled(two: bytes, tmp_path: Path) -> None:
    model, x = relvm.load_model(two, max_seconds=60), np.float32([[1, 2]])
    model.save(tmp_path / "first.rvm")
    model.wait_compiled()
    model.save(tmp_path / "compiled.rvm")
    copies = [relvm.load_model(tmp_path / name) for name in ("first.rvm", "compiled.rvm")]
    for copy in (*copies, pickle.loads(pickle.dumps(model))):
        assert copy.signature == model.signature
        assert [each.tolist() for each in copy.run(None, {"x.1": x, "y": x})] == [[[2, 4]], [[0, 0]]]
    assert copies[1].machine().function_kinds == {"main": "native"}
    with pytest.raises(RelvmUnsupportedError, match="does not contain its source"):
        copies[0].explore()


def test_a_model_is_profiled_and_explored(two: bytes, model: Path) -> None:
    assert relvm.load_model(two).profile(X[:, :2], y=X[:, :2]).rows
    for source in (two, model):
        assert "def main(" in relvm.load_model(source).explore()["given"].text


def test_build_reads_a_model_file(model: Path, tmp_path: Path) -> None:
    machine = vm.VirtualMachine(vm.build(model))
    np.testing.assert_array_equal(plain(machine["main"](X)), plain(relvm.load_model(model)(X)))
    vm.build(str(model)).save(tmp_path / "model.rvm")
    with pytest.raises(RelvmTypeError, match=r"relvm\.vm\.load"):
        vm.build(tmp_path / "model.rvm")
