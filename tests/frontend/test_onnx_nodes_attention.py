"""The ONNX suite's cases of attention, by NumPy's kernels: products and softmaxes are tested by themselves;
and a program with symbolic sizes in both modes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from frontend.node_cases import ATTENTION_OPERATORS, Suite
from frontend.onnx_graphs import model_of
from modes import machines, plain

from relvm import vm
from relvm.errors import RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.onnx import from_onnx
from relvm.ir.expr import Module

SUITE = Suite(ATTENTION_OPERATORS)


@cache
def machine() -> vm.VirtualMachine:
    functions = [replace(from_onnx(SUITE.model_and_inputs(name)[0])["main"], name=name) for name in SUITE.running]
    return vm.VirtualMachine(vm.build(Module(tuple(functions)), "bytecode", "numpy"))


@pytest.mark.parametrize("name", SUITE.running)
def test_case(name: str) -> None:
    result = plain(machine()[name](*SUITE.model_and_inputs(name)[1]))
    outputs = result if isinstance(result, tuple) else (result,)
    case = SUITE.cases[name]
    for got, want in zip(outputs, case.data_sets[0][1], strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=case.rtol, atol=1e-5)


ATTENTION = model_of(
    """
    g (float[b, n, 16] q, float[b, m, 8] k, float[b, m, 8] v, float[b, 2, past, 4] keys, float[b, 2, past, 4] values)
    => (y, all_keys, all_values, shares)
    {
      y, all_keys, all_values, shares = Attention<
        q_num_heads = 4, kv_num_heads = 2, is_causal = 1, softcap = 2.0, qk_matmul_output_mode = 3
      >(q, k, v, , keys, values)
    }""",
    23,
)


def test_symbolic_sizes_and_shared_heads() -> None:
    random = np.random.default_rng(5)
    made = machines(from_onnx(ATTENTION))
    for b, n, m, past in ((2, 3, 3, 4), (1, 5, 2, 0)):
        shapes = ((b, n, 16), (b, m, 8), (b, m, 8), (b, 2, past, 4), (b, 2, past, 4))
        q, k, v, keys, values = (random.standard_normal(shape).astype(np.float32) for shape in shapes)
        heads = q.reshape(b, n, 4, 4).transpose(0, 2, 1, 3)
        all_keys, all_values = (
            np.concatenate((old, new.reshape(b, m, 2, 4).transpose(0, 2, 1, 3)), 2)
            for old, new in ((keys, k), (values, v))
        )
        scores = heads @ all_keys.repeat(2, 1).swapaxes(2, 3) / 2
        scores = np.where(np.tri(n, past + m, past, bool), np.tanh(scores / 2) * 2, -np.inf)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        y = (shares @ all_values.repeat(2, 1)).transpose(0, 2, 1, 3).reshape(b, n, 16)
        for one in made.values():
            for got, want in zip(
                plain(one["main"](q, k, v, keys, values)), (y, all_keys, all_values, shares), strict=True
            ):
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_heads_that_do_not_divide_are_refused() -> None:
    text = "g (float[b, n, 6] x) => (y) { y = Attention<q_num_heads = 4, kv_num_heads = 2>(x, x, x) }"
    with pytest.raises(RelvmShapeError, match="4 heads of a tensor"):
        from_onnx(model_of(text, 23))
    text = "g (float[b, 2, n, h] x) => (y) { y = Attention(x, x, x) }"
    with pytest.raises(RelvmUnsupportedError, match="without a scale"):
        from_onnx(model_of(text, 23))
