"""Tensors shared with PyTorch and JAX.  test_array_libraries.py runs this file where both are installed."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest
import torch

import relvm
import relvm.onnxruntime as ort
from relvm import vm
from relvm.errors import RelvmTypeError
from relvm.frontend.text import parse_module
from relvm.numpy_dtypes import numpy_dtype
from relvm.tables import DTYPES

jax.config.update("jax_enable_x64", True)

SHARED = [row for row in DTYPES if row.bits >= 8 and row.name != "str"]
WITH_TORCH = [row for row in SHARED if hasattr(torch, row.numpy)]
WITH_JAX = [row for row in SHARED if row.name != "f8e8m0fnu"]  # JAX 0.10 does not export f8e8m0fnu
MODEL = '<ir_version: 8, opset_import: ["": 17]> g (float[n, m] x) => (float[n, m] z) { z = Add(x, x) }'


def machine_of(dtype: str) -> vm.VirtualMachine:
    text = f"def main(x: {dtype}[n, m]) -> {dtype}[n, m] = x"
    return vm.VirtualMachine(vm.build(parse_module(text), target="bytecode"), results_may_share=True)


@pytest.fixture(scope="module")
def identity() -> Any:
    return machine_of("f32")["main"]


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "add.onnx"
    onnx.save(onnx.parser.parse_model(MODEL), path)
    return path


def address(array: Any) -> int:
    """Return the address of the first element of an array of any library."""
    if isinstance(array, torch.Tensor):
        return array.data_ptr()
    if isinstance(array, jax.Array):
        return array.unsafe_buffer_pointer()
    array = np.asarray(array)
    return array.view(f"u{array.itemsize}").__array_interface__["data"][0]


@pytest.mark.parametrize("row", WITH_TORCH, ids=lambda row: row.name)
def test_torch_tensors_come_in_and_go_out_without_a_copy(row: Any) -> None:
    source = torch.arange(6).reshape(2, 3).to(getattr(torch, row.numpy))
    tensor = machine_of(row.name)["main"](source)
    assert (tensor.dtype, tensor.shape) == (numpy_dtype(row.index), (2, 3))
    back = torch.from_dlpack(tensor)
    assert back.dtype == source.dtype and torch.equal(back.float(), source.float())
    assert address(source) == address(tensor) == address(back)


@pytest.mark.parametrize("row", WITH_JAX, ids=lambda row: row.name)
def test_jax_arrays_come_in_without_a_copy(row: Any) -> None:
    source = jnp.arange(6).reshape(2, 3).astype(getattr(jnp, row.numpy))
    tensor = machine_of(row.name)["main"](source)
    assert (tensor.dtype, tensor.shape) == (numpy_dtype(row.index), (2, 3))
    assert tensor.numpy().tobytes() == np.asarray(source).tobytes()
    assert address(source) == address(tensor) and not tensor.numpy().flags.writeable


@pytest.mark.parametrize("row", WITH_JAX, ids=lambda row: row.name)
def test_tensors_go_to_jax_without_a_copy(row: Any) -> None:
    machine = machine_of(row.name)
    values = np.arange(6).reshape(2, 3).astype(numpy_dtype(row.index))
    tensor = vm.VirtualMachine(machine.executable)["main"](values)  # the machine owns the memory
    shared = jax.dlpack.from_dlpack(tensor)
    assert shared.dtype == tensor.dtype and np.asarray(shared).tobytes() == values.tobytes()
    assert address(shared) == address(tensor)


def test_jax_takes_a_copy_of_read_only_elements(identity: Any) -> None:
    tensor = identity(jnp.ones((2, 3), jnp.float32))
    with pytest.raises(BufferError, match=r"the elements are read-only.*pass np.array\(tensor\) instead"):
        jax.dlpack.from_dlpack(tensor)
    assert jax.dlpack.from_dlpack(np.array(tensor)).shape == jnp.asarray(tensor).shape == (2, 3)


def test_numpy_shares_the_elements_of_other_libraries(identity: Any) -> None:
    source = torch.ones(2, 3)
    shared = np.from_dlpack(identity(source))
    source[0, 0] = 7
    assert shared[0, 0] == 7 and address(shared) == address(source)


@pytest.mark.parametrize(
    "source",
    [torch.arange(6.0).reshape(3, 2).T, torch.arange(12.0).reshape(2, 6)[:, ::2], torch.ones(1).expand(2, 3)],
    ids=["transposed", "strided", "expanded"],
)
def test_tensors_that_are_not_contiguous_are_copied(source: torch.Tensor, identity: Any) -> None:
    tensor = identity(source)
    np.testing.assert_array_equal(tensor, source.numpy())
    assert address(tensor) != address(source)


def test_lazy_negation_is_refused(identity: Any) -> None:
    source = torch.full((2, 3), 1 + 2j, dtype=torch.complex64).conj().imag
    assert source.is_neg() and np.from_dlpack(source)[0, 0] == 2  # a bug of PyTorch
    with pytest.raises(RelvmTypeError, match=r"not negated yet \(lazy negation\); pass tensor.resolve_neg\(\)"):
        identity(source)
    np.testing.assert_array_equal(identity(source.resolve_neg()), np.full((2, 3), -2.0))


@pytest.mark.parametrize("source", [torch.zeros(0, 3), jnp.zeros((0, 3), jnp.float32)], ids=["torch", "jax"])
def test_empty_tensors(source: Any, identity: Any) -> None:
    tensor = identity(source)
    assert tensor.shape == (0, 3) == tuple(torch.from_dlpack(tensor).shape)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: torch.ones(2, 3, requires_grad=True), r"torch.Tensor .*require gradient, use tensor.detach\(\)"),
        (lambda: torch.nn.Parameter(torch.ones(2, 3)), r"Parameter .*require gradient, use tensor.detach\(\)"),
        (lambda: torch.ones(2, 3, device="meta"), "torch.Tensor .*device type meta"),
        (lambda: torch.eye(3).to_sparse(), "torch.Tensor .*layout other than torch.strided"),
        (lambda: torch.ones(2, 3, dtype=torch.complex64), "unsupported tensor dtype complex64"),
        (lambda: torch.ones(2, 3, dtype=torch.bfloat16), "expected a tensor of rank 2 and dtype f32, .* dtype bf16"),
        (lambda: jnp.ones((2, 3), jnp.int4), "no DLPack equivalent"),
        (lambda: jnp.ones((2, 3), jnp.float64), "expected a tensor of rank 2 and dtype f32, .* dtype f64"),
    ],
)
def test_what_cannot_be_shared_is_refused(make: Any, message: str, identity: Any) -> None:
    with pytest.raises(RelvmTypeError, match=f"main: argument x: .*{message}"):
        identity(make())


def test_values_that_are_traced_are_refused(identity: Any) -> None:
    with pytest.raises(RelvmTypeError, match=r"main: argument x: .*Tracer"):
        jax.jit(identity)(jnp.ones((2, 3), jnp.float32))


def torch_tensor() -> tuple[torch.Tensor, weakref.ref]:
    """Return a tensor, and a weak reference to the array that owns its memory."""
    array = np.ones((2, 3), np.float32)
    return torch.from_numpy(array), weakref.ref(array)


def test_elements_outlive_the_tensor_that_brought_them(identity: Any) -> None:
    source, gone = torch_tensor()
    tensor = identity(source)
    del source
    gc.collect()
    back = torch.from_dlpack(tensor)
    del tensor
    gc.collect()
    assert gone() is not None and back.sum() == 6
    del back
    gc.collect()
    assert gone() is None


def test_elements_of_a_result_outlive_the_machine() -> None:
    machine = vm.VirtualMachine(machine_of("f32").executable)
    source, gone = torch_tensor()
    result = torch.from_dlpack(machine["main"](source))
    shared = jax.dlpack.from_dlpack(machine["main"](source))
    del machine, source
    gc.collect()
    assert gone() is None
    assert result.sum() == 6 == shared.sum()


@pytest.mark.parametrize("source", [torch.ones(2, 3), jnp.ones((2, 3), jnp.float32)], ids=["torch", "jax"])
def test_models_and_sessions_take_them(source: Any, model_file: Path) -> None:
    expected = np.full((2, 3), 2)
    model = relvm.load_model(model_file, target="bytecode", exec_mode="bytecode")
    np.testing.assert_array_equal(model(source), expected)
    np.testing.assert_array_equal(model(x=source), expected)
    session = ort.InferenceSession(model_file)
    np.testing.assert_array_equal(session.run(None, {"x": source})[0], expected)
    np.testing.assert_array_equal(session.run(None, {"x": ort.OrtValue.from_dlpack(source)})[0], expected)
    assert address(ort.OrtValue.from_dlpack(source).numpy()) == address(source)


def test_sessions_name_the_input(model_file: Path) -> None:
    session = ort.InferenceSession(model_file)
    with pytest.raises(RelvmTypeError, match=r"input x: cannot convert torch.Tensor .*use tensor.detach\(\)"):
        session.run(None, {"x": torch.ones(2, 3, requires_grad=True)})


def test_ort_values_go_out_without_a_copy() -> None:
    value = ort.OrtValue.ortvalue_from_numpy(np.ones((2, 3), np.float32))
    assert address(torch.from_dlpack(value)) == value.data_ptr() == address(np.from_dlpack(value))
