"""Tests of ONNX's Attention with symbolic sizes, compared with NumPy, and of unsupported nodes."""

from __future__ import annotations

import numpy as np
import pytest
from frontend.onnx_answers import against_onnxruntime
from frontend.onnx_models import parse_model
from support.modes import machines, plain

from relvm.errors import RelvmShapeError
from relvm.frontend.onnx import from_onnx

ATTENTION = parse_model(
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


def test_a_cap_below_0_is_none() -> None:
    graph = "g (float[n, 2, s, 4] q, float[n, 2, t, 4] k) => (y) { y = Attention<softcap = -2.0> (q, k, k) }"
    random = np.random.default_rng(3)
    arrays = [random.standard_normal((1, 2, size, 4)).astype(np.float32) for size in (3, 5)]
    against_onnxruntime(parse_model(graph, 23), *arrays, rtol=1e-4)


def test_heads_that_do_not_divide_are_refused() -> None:
    text = "g (float[b, n, 6] x) => (y) { y = Attention<q_num_heads = 4, kv_num_heads = 2>(x, x, x) }"
    with pytest.raises(RelvmShapeError, match=r"cannot split .* into 4 heads"):
        from_onnx(parse_model(text, 23))
