"""from_torch: modules, functions and exported programs in memory.  Without PyTorch, these tests are skipped.

Run them with `pytest -q tests/frontend/test_torch_traced.py` where PyTorch is installed (docs/testing.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relvm import vm
from relvm.errors import RelvmArgumentError, RelvmShapeError, RelvmTypeError, RelvmUnsupportedError
from relvm.frontend.torch import from_torch

torch = pytest.importorskip("torch", reason="PyTorch is not installed: from_torch is NOT tested (docs/testing.md)")


def run(module: Any, *args: Any) -> list[np.ndarray]:
    machine = vm.VirtualMachine(vm.build(module, target="bytecode"))
    result = machine["main"](*[arg.numpy() for arg in args])
    return [each.numpy() for each in (result if isinstance(result, list | tuple) else (result,))]


def test_a_module_with_a_dynamic_batch() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    batch = torch.export.Dim("batch", max=16)
    imported = from_torch(module, (torch.randn(3, 4),), dynamic_shapes=({0: batch},))
    for size in (2, 5):
        x = torch.randn(size, 4)
        np.testing.assert_allclose(run(imported, x)[0], module(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_a_function() -> None:
    imported = from_torch(lambda x, scale: (x * scale).softmax(-1), (torch.randn(2, 3),), {"scale": 2.0})
    x = torch.randn(2, 3)
    np.testing.assert_allclose(run(imported, x)[0], (x * 2).softmax(-1).numpy(), rtol=1e-5)


def test_an_exported_program_as_it_is() -> None:
    class InPlace(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            y = x.clone()
            y[0] += 1
            y[:, 1] = 7
            return y

    program = torch.export.export(InPlace(), (torch.zeros(2, 3),))
    for decompose in (True, False):
        (found,) = run(from_torch(program, decompose=decompose), torch.zeros(2, 3))
        np.testing.assert_array_equal(found, [[1, 7, 1], [0, 7, 0]])


def test_an_update_that_may_change_another_tensor_is_refused() -> None:
    class Shared(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            y = x.clone()
            z = y.reshape(-1)
            y.add_(1)
            return z

    program = torch.export.export(Shared(), (torch.zeros(2, 3),))
    with pytest.raises(RelvmUnsupportedError, match="may share the memory of"):
        from_torch(program, decompose=False)
    np.testing.assert_array_equal(run(from_torch(program), torch.zeros(2, 3))[0], np.ones(6))


def in_place(x: Any, function: Any) -> Any:
    y = x.clone()
    z = function(y)
    y.add_(10)
    return z + 0


@pytest.mark.parametrize(
    "function",
    [
        lambda y: y.reshape(6)[1:3],
        lambda y: y.reshape(6).reshape(3, 2),
        lambda y: torch.einsum("ij->ji", y),
        lambda y: torch.meshgrid(y[0], y[1], indexing="ij")[0],
        lambda y: y.view(6) * 1 if y.t_() is None else y,
    ],
)
def test_memory_that_may_be_shared_in_several_steps(function: Any) -> None:
    class Shared(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return in_place(x, function)

    x = torch.arange(6.0).reshape(2, 3)
    program = torch.export.export(Shared(), (x,))
    with pytest.raises(RelvmUnsupportedError, match=r"may share the memory of|a change of the axes"):
        from_torch(program, decompose=False)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_numbers_are_not_rounded_to_narrow_floats(dtype: str) -> None:
    x = (torch.rand(200) * 4 - 2).to(getattr(torch, dtype))
    for function in (lambda x: x * 70000.0, lambda x: x / 70000.0, lambda x: x * 0.1, lambda x: 0.1 / x):
        machine = vm.VirtualMachine(vm.build(from_torch(function, (x,)), target="bytecode"))
        found = torch.from_dlpack(machine["main"](x))
        assert torch.equal(found, function(x))


def test_a_size_with_a_lower_bound_only() -> None:
    size = torch.export.Dim("size", min=3)
    imported = from_torch(torch.nn.Softmax(-1), (torch.randn(6),), dynamic_shapes=({0: size},))
    np.testing.assert_allclose(run(imported, torch.zeros(4))[0], np.full(4, 0.25), rtol=1e-6)
    with pytest.raises(RelvmShapeError, match="at least 3"):
        run(imported, torch.zeros(2))


def test_weights_share_the_memory_of_the_module() -> None:
    from relvm.frontend.torch.traced import program_of

    module = torch.nn.Linear(4, 8)
    program = program_of(torch.export.export(module, (torch.zeros(1, 4),)))
    assert np.shares_memory(program.tensors["weight"], module.weight.detach().numpy())


def test_random_numbers_are_refused_by_name() -> None:
    with pytest.raises(RelvmUnsupportedError, match=r"aten\.rand_like\.default.*random numbers are not supported"):
        from_torch(torch.rand_like, (torch.zeros(2),))


def test_wrong_arguments() -> None:
    with pytest.raises(RelvmTypeError, match="model is int, expected"):
        from_torch(3)
    program = torch.export.export(torch.nn.ReLU(), (torch.zeros(2),))
    with pytest.raises(RelvmArgumentError, match="are part of the exported program"):
        from_torch(program, (torch.zeros(2),))
