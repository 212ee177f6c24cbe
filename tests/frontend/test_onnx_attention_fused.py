"""Tests of the attention operators of domain com.microsoft, compared with ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from frontend.onnx_answers import against_onnxruntime, assert_answers, c_answers, onnxruntime_answers
from frontend.onnx_models import make_model
from onnx import helper

from relvm.errors import RelvmUnsupportedError
from relvm.frontend.onnx import from_onnx

RANDOM = np.random.default_rng(8)
BATCH, LENGTH, KEYS, HEADS, SIZE = 3, 5, 6, 2, 16
WIDTH = HEADS * SIZE
SYMBOLS = {BATCH: "batch", LENGTH: "length"}


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def model(op: str, arrays: list, outputs: int, constants: dict[int, np.ndarray] | None = None, **attributes: object):
    """Return a model of one node, whose inputs have symbolic batch and length.

    arrays: the inputs, with None for an omitted input.   constants: the inputs that are initializers, by number.
    """
    names = ["" if array is None and i not in (constants or {}) else f"x{i}" for i, array in enumerate(arrays)]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, domain="com.microsoft", **attributes)
    inputs = [
        (name, array.dtype, [SYMBOLS.get(size, size) if axis < 2 else size for axis, size in enumerate(array.shape)])
        for name, array in zip(names, arrays, strict=True)
        if array is not None
    ]
    known = {f"x{i}": array for i, array in (constants or {}).items()}
    return make_model([node], inputs, results, known)


def check(
    op: str, arrays: list, outputs: int = 1, constants: dict[int, np.ndarray] | None = None, **attributes: object
):
    proto = model(op, arrays, outputs, constants, **attributes)
    against_onnxruntime(proto, *(array for array in arrays if array is not None), rtol=1e-4, atol=1e-5)


MASKS = {
    "none": None,
    "lengths": np.array([3, 5, 1], np.int32),
    "keys": np.array([[1, 1, 0, 1, 0], [1, 0, 1, 1, 1], [0, 0, 0, 0, 1]], np.int32),
    "scores": RANDOM.integers(0, 2, (BATCH, LENGTH, LENGTH), np.int32),
}


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("mask", MASKS)
def test_attention(mask: str, causal: int) -> None:
    constants = {1: numbers(WIDTH, 3 * WIDTH) / 4, 2: numbers(3 * WIDTH)}
    arrays = [numbers(BATCH, LENGTH, WIDTH), None, None, MASKS[mask]]
    check("Attention", arrays, constants=constants, num_heads=HEADS, unidirectional=causal)


def test_attention_with_a_past() -> None:
    constants = {1: numbers(WIDTH, 3 * WIDTH) / 4, 2: numbers(3 * WIDTH)}
    past = numbers(2, BATCH, HEADS, 4, SIZE)
    mask = np.ones((BATCH, LENGTH + 4), np.int32)
    mask[0, :2] = 0
    arrays = [numbers(BATCH, LENGTH, WIDTH), None, None, mask, past]
    check("Attention", arrays, 2, constants, num_heads=HEADS, unidirectional=1)


def test_heads_of_other_sizes_and_a_bias_of_scores() -> None:
    constants = {1: numbers(WIDTH, 2 * WIDTH + 6), 2: numbers(2 * WIDTH + 6)}
    arrays = [numbers(BATCH, LENGTH, WIDTH), None, None, None, None, numbers(1, HEADS, LENGTH, LENGTH)]
    check("Attention", arrays, 1, constants, num_heads=HEADS, scale=0.2, qkv_hidden_sizes=[WIDTH, WIDTH, 6])


def test_multi_head_attention() -> None:
    q, k, v = numbers(BATCH, LENGTH, WIDTH), numbers(BATCH, KEYS, WIDTH), numbers(BATCH, KEYS, WIDTH)
    check("MultiHeadAttention", [q, k, v], num_heads=HEADS)
    check("MultiHeadAttention", [q, k, v, numbers(3 * WIDTH)], num_heads=HEADS, scale=0.3)
    mask = np.array([[1, 1, 0, 1, 0, 1], [1, 0, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]], np.int32)
    check("MultiHeadAttention", [q, k, v, None, mask], num_heads=HEADS)
    check(
        "MultiHeadAttention", [q, k, v, None, np.array([2, 6, 3], np.int32)], num_heads=HEADS, mask_filter_value=-50.0
    )
    check("MultiHeadAttention", [q, k, v, None, None, numbers(1, HEADS, LENGTH, KEYS)], num_heads=HEADS)


def test_multi_head_attention_with_a_past() -> None:
    q, k, v = (numbers(BATCH, LENGTH, WIDTH) for _ in range(3))
    past = [numbers(BATCH, HEADS, 4, SIZE) for _ in range(2)]
    check("MultiHeadAttention", [q, k, v, None, None, None, *past], 3, num_heads=HEADS, unidirectional=1)


@pytest.mark.parametrize(
    ("queries", "keys", "past"), [(2, 6, 0), (1, 4, 0), (6, 2, 0), (LENGTH, KEYS, 0), (2, 3, 2), (3, 2, 2)]
)
@pytest.mark.parametrize("masked", [False, True])
def test_causal_attention_to_another_number_of_keys(queries: int, keys: int, past: int, masked: bool) -> None:
    """The last query attends to all keys, and query i to the keys up to i + past."""
    q, k, v = numbers(BATCH, queries, WIDTH), numbers(BATCH, keys, WIDTH), numbers(BATCH, keys, WIDTH)
    arrays = [q, k, v, None, None, None]
    if masked:
        arrays[4] = np.ones((BATCH, past + keys), np.int32)
        arrays[4][0, -1] = 0
    arrays += [numbers(BATCH, HEADS, past, SIZE) for _ in range(2)] if past else []
    check("MultiHeadAttention", arrays, 3 if past else 1, num_heads=HEADS, unidirectional=1)


def test_packed_tensors() -> None:
    """Packed tensors have the same results as unpacked ones.  ONNX Runtime supports them only on other devices."""
    q, every = numbers(BATCH, KEYS, WIDTH), numbers(BATCH, KEYS, HEADS, 3, SIZE)
    first, *others = (np.ascontiguousarray(every[:, :, :, i]).reshape(BATCH, KEYS, WIDTH) for i in range(3))
    for plain, packed in (([first, *others], [every]), ([q, *others], [q, every[:, :, :, 1:]])):
        packed = list(map(np.ascontiguousarray, packed))
        wanted = onnxruntime_answers(model("MultiHeadAttention", plain, 1, num_heads=HEADS), plain)
        got = c_answers(model("MultiHeadAttention", packed, 1, num_heads=HEADS), packed)
        assert_answers(got, wanted, rtol=1e-4, atol=1e-5)


def test_keys_and_values_that_are_heads_already() -> None:
    heads = [numbers(BATCH, HEADS, KEYS, SIZE) for _ in range(2)]
    check("MultiHeadAttention", [numbers(BATCH, LENGTH, WIDTH), *heads], num_heads=HEADS)


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding(interleaved: int) -> None:
    tables = {2: numbers(12, SIZE // 2), 3: numbers(12, SIZE // 2)}
    at = RANDOM.integers(0, 12, (BATCH, LENGTH))
    check("RotaryEmbedding", [numbers(BATCH, LENGTH, WIDTH), at, None, None], 1, tables, interleaved=interleaved)
    first = np.array([4])
    heads = numbers(BATCH, HEADS, LENGTH, SIZE)
    check("RotaryEmbedding", [heads, first, None, None], 1, tables, interleaved=interleaved)
    half = {2: numbers(12, SIZE // 4), 3: numbers(12, SIZE // 4)}
    attributes = {"num_heads": HEADS, "rotary_embedding_dim": SIZE // 2, "interleaved": interleaved}
    check("RotaryEmbedding", [numbers(BATCH, LENGTH, WIDTH), at, None, None], 1, half, **attributes)


def grouped(length: int, past: int, ends: list[int], total: int) -> list:
    batch = len(ends)
    q, k, v = numbers(batch, length, 2 * WIDTH), numbers(batch, length, WIDTH), numbers(batch, length, WIDTH)
    before = [numbers(batch, HEADS, past, SIZE) for _ in range(2)]
    return [q, k, v, *before, np.array(ends, np.int32), np.array(total, np.int32)]


COUNTS = {"num_heads": 2 * HEADS, "kv_num_heads": HEADS}


@pytest.mark.parametrize("rotary", [0, 1])
@pytest.mark.parametrize(("length", "past", "ends"), [(5, 0, [4] * 3), (1, 4, [4] * 3), (2, 4, [5])])
def test_group_query_attention(length: int, past: int, ends: list[int], rotary: int) -> None:
    arrays = grouped(length, past, ends, length + past)
    tables = {7: numbers(12, SIZE // 2), 8: numbers(12, SIZE // 2)} if rotary else None
    arrays += [None, None] if rotary else []
    check("GroupQueryAttention", arrays, 3, tables, do_rotary=rotary, **COUNTS)


def test_group_query_attention_within_a_window() -> None:
    arrays = grouped(5, 0, [4] * 3, 5)
    check("GroupQueryAttention", arrays, 3, local_window_size=2, softcap=3.0, scale=0.5, **COUNTS)


def test_group_query_attention_of_packed_tensors() -> None:
    _, _, _, *others = grouped(1, 2, [2] * 3, 3)
    check("GroupQueryAttention", [numbers(BATCH, 1, 4 * WIDTH), None, None, *others], 3, **COUNTS)


def test_sequences_of_several_lengths() -> None:
    """Each sequence of a batch has its own length, and the cache is longer than the sequences."""
    check("GroupQueryAttention", grouped(1, 4, [1, 3, 2], 4), 3, **COUNTS)


@pytest.mark.parametrize("attributes", [{"smooth_softmax": 1}, {"qk_output": 1}])
def test_what_is_refused(attributes: dict) -> None:
    with pytest.raises(RelvmUnsupportedError, match="GroupQueryAttention"):
        from_onnx(model("GroupQueryAttention", grouped(1, 4, [4] * 3, 5), 3, **attributes, **COUNTS))
