"""Tests of the fused operators that ONNX Runtime's optimizer creates, compared with ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from frontend.onnx_answers import against_onnxruntime
from frontend.onnx_models import parse_model

from relvm.errors import RelvmError, RelvmUnsupportedError
from relvm.frontend.onnx import from_onnx

RANDOM = np.random.default_rng(21)


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


ACTIVATIONS = parse_model("""
    g (float[n, k] x, float[k] bias) => (a, b, c, d, e, f)
    {
      a = com.microsoft.Gelu(x)
      b = com.microsoft.BiasGelu(x, bias)
      c = com.microsoft.FastGelu(x)
      d = com.microsoft.FastGelu(x, bias)
      e = com.microsoft.QuickGelu(x)
      f = com.microsoft.QuickGelu<alpha = 0.5>(x)
    }""")


def test_activations() -> None:
    against_onnxruntime(ACTIVATIONS, numbers(4, 19) * 3, numbers(19))


DISTANCES = parse_model("""
    g (float[n, k] x, float[m, k] y) => (a, b, c)
    {
      a = com.microsoft.CDist(x, y)
      b = com.microsoft.CDist<metric = "sqeuclidean">(x, y)
      c = com.microsoft.CDist<metric = "euclidean">(x, y)
    }""")


def test_distances() -> None:
    for n, m, k in ((3, 5, 4), (1, 1, 1), (0, 2, 3)):
        against_onnxruntime(DISTANCES, numbers(n, k), numbers(m, k), rtol=1e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('CDist<metric = "cosine">(x, y)', "metric 'cosine' is not supported: expected euclidean or sqeuclidean"),
        ("CDist(v, y)", "input 0 has type .*, expected rank 2"),
        ("CDist(x, y)", "the rows have 3 and 4 elements, expected the same number"),
    ],
)
def test_distances_that_are_refused(call: str, message: str) -> None:
    model = parse_model(f"g (float[2, 3] x, float[2, 4] y, float[3] v) => (a) {{ a = com.microsoft.{call} }}")
    with pytest.raises(RelvmError, match=message):
        from_onnx(model)


PRODUCTS = parse_model("""
    g (float[n, k] x, float[b, k, m] y, float[k] v, float[m, k] z) => (a, b, c, d)
    {
      a = com.microsoft.FusedMatMul<alpha = 0.25>(x, y)
      t = Transpose<perm = [1, 0]>(x)
      b = com.microsoft.FusedMatMul<transA = 1, transB = 1, alpha = 3.0>(t, z)
      c = com.microsoft.FusedMatMul<transB = 1>(x, z)
      d = com.microsoft.FusedMatMul<transA = 1>(v, y)
    }""")


def test_products() -> None:
    against_onnxruntime(PRODUCTS, numbers(3, 5), numbers(2, 5, 4), numbers(5), numbers(4, 5))


def test_transposed_batches_are_refused() -> None:
    text = "g (float[n, n, n] x) => (y) { y = com.microsoft.FusedMatMul<transBatchA = 1>(x, x) }"
    with pytest.raises(RelvmUnsupportedError, match=r"FusedMatMul.*transBatchA"):
        from_onnx(parse_model(text))


ACTIVATED = parse_model("""
    g (float[b, 2, h, w] x, float[3, 2, 3, 3] weights, float[3] bias, float[b, 3, h, w] sum,
       float[n, k] a, float[k, m] b, float[m] c) => (p, q, r, s, t, u, v)
    {
      p = com.microsoft.FusedConv<activation = "Relu", pads = [1, 1, 1, 1]>(x, weights, bias, sum)
      q = com.microsoft.FusedConv<activation = "Clip", activation_params = [-1.0, 2.0]>(x, weights)
      r = com.microsoft.FusedConv<activation = "LeakyRelu", activation_params = [0.2], group = 1>(x, weights, bias)
      s = com.microsoft.FusedConv<activation = "HardSigmoid", activation_params = [0.3, 0.4]>(x, weights)
      t = com.microsoft.FusedGemm<activation = "Tanh", alpha = 0.5>(a, b, c)
      u = com.microsoft.FusedGemm<activation = "LeakyRelu", activation_alpha = 0.3>(a, b, c)
      v = com.microsoft.FusedGemm<activation = "Sigmoid">(a, b)
    }""")


def test_products_and_convolutions_with_activations() -> None:
    image = numbers(2, 2, 5, 4), numbers(3, 2, 3, 3), numbers(3), numbers(2, 3, 5, 4)
    against_onnxruntime(ACTIVATED, *image, numbers(3, 5), numbers(5, 4), numbers(4))


def test_other_activations_are_refused() -> None:
    text = 'g (float[n, n] x) => (y) { y = com.microsoft.FusedGemm<activation = "Elu">(x, x) }'
    with pytest.raises(RelvmUnsupportedError, match=r"FusedGemm.*'Elu'"):
        from_onnx(parse_model(text))


NORMALIZATIONS = parse_model("""
    g (float[b, n, 8] x, float[b, n, 8] skip, float[8] gamma, float[8] beta, float[8] bias) => (p, q, r, s, t, u, v, w)
    {
      p = com.microsoft.SkipLayerNormalization<epsilon = 0.001>(x, skip, gamma)
      q, m, i, r = com.microsoft.SkipLayerNormalization(x, skip, gamma, beta, bias)
      s = com.microsoft.SkipSimplifiedLayerNormalization<epsilon = 0.001>(x, skip, gamma)
      t, m1, i1, u = com.microsoft.SkipSimplifiedLayerNormalization(x, skip, gamma, bias)
      v = SimplifiedLayerNormalization(x, gamma)
      w = SimplifiedLayerNormalization<axis = 2, epsilon = 0.5>(x, gamma)
    }""")


def test_normalizations() -> None:
    against_onnxruntime(NORMALIZATIONS, numbers(2, 3, 8), numbers(2, 3, 8), *(numbers(8) for _ in range(3)))


EMBEDDING = """
    g (int32[b, n] words, int32[b, n] segments, float[11, 8] table, float[7, 8] places, float[2, 8] parts,
       float[8] gamma, float[8] beta, int32[b, n] mask, int32[b, n] positions) => (p, q, r, s, t)
    {
      p, q = com.microsoft.EmbedLayerNormalization(words, segments, table, places, parts, gamma, beta, mask)
      r, s, t = com.microsoft.EmbedLayerNormalization<epsilon = 0.01>(
        words, , table, places, , gamma, beta, , positions)
    }"""


def test_embeddings() -> None:
    words, segments, mask, positions = (RANDOM.integers(0, high, (2, 5), np.int32) for high in (11, 2, 2, 7))
    tables = numbers(11, 8), numbers(7, 8), numbers(2, 8), numbers(8), numbers(8)
    against_onnxruntime(parse_model(EMBEDDING), words, segments, *tables, mask, positions)
