"""Groups that differ only in scalar constants share a kernel, with the same results."""

from __future__ import annotations

import numpy as np
import pytest
from support.modes import MODES

from relvm import vm
from relvm.errors import RelvmVerifyError
from relvm.frontend.text import parse_module
from relvm.ir.expr import Module
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline

LAYERS = 4


def layers(shape: str) -> Module:
    """Return a module with several layers, each with its own scale and offset.  All results are returned, so the
    layers are separate groups."""
    lines = [
        f"  v{k + 1} = add(multiply(exp(v{k}), const({dtype}, {scale})), const({dtype}, {offset}))"
        for k in range(LAYERS)
        for dtype, scale, offset in [("f32[]", 0.5 ** (k + 1), -1 - k)]
    ]
    results = [f"v{k + 1}" for k in range(LAYERS)]
    types = ", ".join(f"f32[{shape}]" for _ in results)
    body = "\n".join((*lines, f"  return ({', '.join(results)})"))
    return parse_module(f"def main(v0: f32[{shape}]) -> ({types}) {{\n{body}\n}}")


def expected(x: np.ndarray) -> list[np.ndarray]:
    values = [x]
    for k in range(LAYERS):
        values.append((np.exp(values[-1]) * np.float32(0.5 ** (k + 1)) - np.float32(1 + k)).astype(np.float32))
    return values[1:]


@pytest.mark.parametrize("shape", ["n", "1", "3, 2"])
@pytest.mark.parametrize("mode", MODES)
def test_results(mode, shape: str) -> None:
    module = layers(shape)
    machine = vm.VirtualMachine(vm.build(module, mode))
    x = np.linspace(-1, 0, 6 if shape != "1" else 1, dtype=np.float32).reshape((3, 2) if "," in shape else -1)
    for _ in range(3):  # no run changes a constant
        for got, value in zip(machine["main"](x), expected(x), strict=True):
            np.testing.assert_allclose(got.numpy(), value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("without", "count"), [([], 1), (["share_kernels"], LAYERS)])
def test_number_of_kernels(without: list[str], count: int) -> None:
    lowered = run_passes(layers("n"), build_pipeline("bytecode", without=without), verified=True)
    assert len(lowered.kernels) == count


def test_groups_that_a_user_writes_are_rejected() -> None:
    text = "def main(x: f32[1]) -> f32[1] {\n  y = fused { t = exp(x)\n u = multiply(t, const(f32[], 2))\n return u }"
    with pytest.raises(RelvmVerifyError, match="Fused is not lowered"):
        vm.build(parse_module(text + "\n  return y\n}"))


def test_constants_are_read_without_a_copy() -> None:
    """The arguments of the kernel are entries of the constant table."""
    text = vm.build(layers("n"), "bytecode", "bytecode").as_text()
    calls = [line for line in text.splitlines() if ": call exp_multiply_add_f32(" in line]
    assert len(calls) == LAYERS and all(line.count(", c") == 2 for line in calls)
