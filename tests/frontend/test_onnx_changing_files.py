"""If a model file changes after it was read, the version that was read is built, and cached under its own key."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest
from frontend.onnx_models import make_model, onnx
from onnx import helper

import relvm
from relvm import vm
from relvm.compiler import build_model
from relvm.compiler.upgrade import compile_in_background
from relvm.errors import RelvmError, RelvmFormatError
from relvm.frontend.onnx import from_onnx

SIZE = 4096  # number of elements; so large weights are not parsed by protobuf


def save(path: Path, value: float, *, external: bool = False) -> None:
    """Save a model that adds `value` to each element.  external: whether the weights are in a separate file."""
    model = make_model(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        [("x", np.float32, [SIZE])],
        ["y"],
        {"w": np.full(SIZE, value, np.float32)},
    )
    onnx.save(model, path, save_as_external_data=external, location="weights", size_threshold=0)


def answer(module) -> float:
    result = vm.VirtualMachine(vm.build(module, "bytecode", "c"))["main"](np.zeros(SIZE, np.float32)).numpy()
    assert (result == result[0]).all()
    return float(result[0])


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELVM_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.parametrize("external", [False, True])
def test_a_file_that_is_replaced(tmp_path: Path, cache: None, external: bool) -> None:
    path = tmp_path / "model.onnx"
    save(path, 1.0, external=external)
    module = from_onnx(path)
    for file in ("model.onnx", "weights"):
        (tmp_path / file).unlink(missing_ok=True)
    save(path, 2.0, external=external)
    assert answer(module) == 1.0
    assert answer(from_onnx(path)) == 2.0


@pytest.mark.parametrize("external", [False, True])
def test_a_file_that_is_replaced_before_its_native_code_is_compiled(
    tmp_path: Path, cache: None, monkeypatch: pytest.MonkeyPatch, external: bool
) -> None:
    """The loaded model keeps working, and the code of the new model is not cached under the key of the old one."""
    path, x = tmp_path / "model.onnx", np.zeros(SIZE, np.float32)
    save(path, 1.0, external=external)
    with monkeypatch.context() as patch:
        patch.setenv("RELVM_CC", "none")
        assert relvm.load_model(path)(x).numpy()[0] == 1.0
    for thread in threading.enumerate():
        if thread.name == "relvm cache":
            thread.join()  # the bytecode is then in the cache

    def replace_and_compile(*arguments: object) -> None:
        save(path, 2.0, external=external)
        compile_in_background(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(build_model, "compile_in_background", replace_and_compile)
        model = relvm.load_model(path)
    with pytest.raises(RelvmFormatError, match=r"model\.onnx: the file has changed since the model was loaded"):
        model.wait_compiled(60)
    assert model(x).numpy()[0] == 1.0
    save(path, 1.0, external=external)
    assert relvm.load_model(path)(x).numpy()[0] == 1.0


@pytest.mark.parametrize("external", [False, True])
def test_a_file_that_is_written_over_in_place_and_cut(tmp_path: Path, cache: None, external: bool) -> None:
    path, other = tmp_path / "model.onnx", tmp_path / "other"
    other.mkdir()
    save(path, 1.0, external=external)
    save(other / "model.onnx", 2.0, external=external)
    module = from_onnx(path)
    held = "weights" if external else "model.onnx"
    (tmp_path / held).write_bytes((other / held).read_bytes())
    assert answer(module) == 1.0
    again = from_onnx(path)
    os.truncate(tmp_path / held, 100)
    assert answer(again) == 2.0


@pytest.mark.parametrize("path", ["nul\0tail", "\ud800", 3, None])
def test_what_no_file_is_named(path: object) -> None:
    with pytest.raises(RelvmError):
        from_onnx(path)


def test_a_pipe_is_no_model(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.onnx")
    with pytest.raises(RelvmFormatError, match="expected a file, got a device or a pipe"):
        from_onnx(tmp_path / "model.onnx")
