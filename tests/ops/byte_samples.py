"""Sample calls of matrix products and convolutions of 8-bit integers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from ops.sample_values import Sample, array

from relvm.ir.operator import operators
from relvm.ops.blockwise_quant_matmul import pack_block_values, pack_blocks
from relvm.ops.conv_int8_packed import pack_windows
from relvm.ops.matmul_int8 import pack_bytes


def integer_samples() -> Iterator[Sample]:
    def both(a: str, b: str, left: tuple, right: tuple, a_zero: tuple = (), b_zero: tuple = ()) -> Sample:
        zeros = _bytes(a, *a_zero), _bytes(b, *b_zero)
        return Sample("matmul_integer", (_bytes(a, *left), _bytes(b, *right), *zeros))

    for a, b in itertools.product(("i8", "u8"), repeat=2):
        yield both(a, b, (3, 5), (5, 4))
    yield both("u8", "i8", (11, 150), (150, 37), (11, 1), (1, 37))
    yield both("u8", "i8", (2, 3, 5), (5, 4), (), (1, 4))
    yield both("u8", "i8", (2, 3, 5), (5, 4), (2, 3, 1), (1, 1))
    yield both("i8", "u8", (2, 1, 3, 5), (7, 5, 4), (3, 1), (7, 1, 4))
    for left, right in (((0, 5), (5, 4)), ((3, 0), (0, 4)), ((3, 5), (5, 0)), ((0, 3, 5), (5, 4))):
        yield both("u8", "u8", left, right)
    for a, b in itertools.product(("i8", "u8"), repeat=2):  # partly filled words, two panels and two chunks
        yield both(a, b, (7, 2051), (2051, 70), (7, 1), (1, 70))
    for a, b, b_zero in itertools.product(("i8", "u8"), ("i8", "u8"), ((), (1, 37))):
        for left in ((13, 9), (9,), (2, 3, 9), (0, 9)):
            yield _packed_bytes(_bytes(a, *left), _bytes(b, 9, 37), _bytes(a), _bytes(b, *b_zero))
    for rows, depth, columns in ((6, 64, 64), (1, 2, 16), (5, 7, 129), (8, 9, 60), (3, 1, 48)):
        yield _packed_bytes(_bytes("u8", rows, depth), _bytes("i8", depth, columns), _bytes("u8"), np.int8(0))
    narrow = array("u8", 9, 37, special=False, low=100, high=140)  # minus the zero point, it fits i8
    yield _packed_bytes(_bytes("i8", 3, 9), narrow, _bytes("i8"), np.uint8(120))


def block_samples() -> Iterator[Sample]:
    """Yield calls with several chunks, an incomplete last block, and zero points that are bytes or floats."""
    for left, columns, bits, block in (
        ((3, 32), 5, 4, 16),
        ((32,), 70, 4, 32),
        ((2, 7, 72), 33, 8, 32),
        ((5, 41), 16, 2, 16),
        ((13, 1099), 65, 4, 128),
        ((4, 67), 130, 8, 4),
        ((0, 32), 5, 4, 16),
        ((3, 0), 5, 4, 16),
    ):
        depth = left[-1]
        numbers = array("u8", depth, columns, special=False, low=0, high=2**bits)
        packed, blocks = pack_blocks(numbers, bits, block), -(-depth // block)
        scales = np.abs(array("f32", blocks, columns, special=False)) / 1000
        for dtype in ("u8", "f32"):
            zeros = array(dtype, blocks, columns, low=0, high=2**bits, special=False)
            values = [pack_block_values(each) for each in (scales.astype(np.float32), zeros)]
            given = {"columns": columns, "bits": bits, "block": block}
            a = array("f32", *left, special=False)
            words = operators()["quantize_blocks"].numpy(a, block=block)
            for name, x in (("matmul_blockwise_quant", a), ("matmul_blockwise_int8", words)):
                keep = frozenset((x.shape[-1], columns, *packed.shape, *values[0].shape))
                yield Sample(name, (x, packed, *values), given, keep)


def block_row_samples() -> Iterator[Sample]:
    """Yield calls with an incomplete last block, and blocks that are zero, tiny, infinite or NaN."""
    special = np.array([0, -0.0, 1e-31, -7e-31, 1e-45, np.inf, -np.inf, np.nan, -np.nan, 3.4e38, 1.5, -2.5], np.float32)
    rows = np.zeros((len(special), 40), np.float32)
    rows[:, 17] = special
    rows[:, 3] = 1
    ties = (np.arange(64, dtype=np.float32) - 32 + np.float32(0.5))[None]
    ties[0, 0] = 127
    for x, block in (
        (rows, 16),
        (ties, 64),
        (array("f32", 2, 3, 50), 8),
        (array("f32", 129), 32),
        (array("f32", 0, 16), 16),
        (array("f32", 3, 0), 4),
    ):
        yield Sample("quantize_blocks", (x,), {"block": block}, frozenset(x.shape[-1:]))


def integer_convolution_samples() -> Iterator[Sample]:
    def of(x: np.ndarray, w: np.ndarray, **given: Any) -> Iterator[Sample]:
        zero = _bytes("i8" if x.dtype == np.int8 else "u8")
        yield Sample("conv_integer", (x, w, zero), given, frozenset((x.shape[1], *w.shape)))
        packed, sums = pack_windows(w)
        keep = frozenset((x.shape[1], *packed.shape, *sums.shape))
        yield Sample("conv_integer_packed", (x, packed, sums, zero), given, keep)

    for dtype in ("i8", "u8"):
        yield from of(_bytes(dtype, 2, 3, 8, 9), _bytes("i8", 9, 3, 3, 2), pads=(1, 0, 1, 2))
        yield from of(_bytes(dtype, 1, 5, 11, 7), _bytes("i8", 7, 5, 1, 1))
        strides = {"strides": (2, 3), "dilations": (1, 2), "groups": 2, "pads": (2, 3, 0, 1)}
        yield from of(_bytes(dtype, 2, 6, 9, 30), _bytes("i8", 14, 3, 3, 3), **strides)
    yield from of(_bytes("u8", 1, 4, 90), _bytes("i8", 6, 4, 5), pads=(4, 1))
    yield from of(_bytes("u8", 1, 2, 4, 5, 3), _bytes("i8", 2, 2, 2, 2, 2))
    for dtype in ("i8", "u8"):
        depthwise = {"groups": 3, "pads": (1, 2, 0, 1)}
        yield from of(_bytes(dtype, 2, 3, 7, 140), _bytes("i8", 3, 1, 3, 5), dilations=(2, 1), **depthwise)
        steps = {"strides": (3, 2), "dilations": (1, 3)}
        yield from of(_bytes(dtype, 2, 3, 11, 30), _bytes("i8", 6, 1, 4, 3), **steps, **depthwise)
    yield from of(_bytes("u8", 2, 5, 33), _bytes("i8", 5, 1, 9), groups=5, pads=(4, 4))
    yield from of(_bytes("u8", 1, 2, 9, 1), _bytes("i8", 2, 1, 3, 1), groups=2)
    yield from of(_bytes("u8", 1, 2, 3, 3, 3), _bytes("i8", 2, 1, 2, 2, 2), groups=2, pads=(1, 0, 0, 0, 1, 0))
    yield from of(_bytes("i8", 1, 601, 3, 3), _bytes("i8", 6, 601, 3, 3), pads=(1, 1, 1, 1))  # several chunks
    yield from of(_bytes("u8", 0, 3, 4, 4), _bytes("i8", 6, 3, 1, 1))


def _bytes(dtype: str, *shape: int) -> np.ndarray:
    return array(dtype, *shape, low=-128 if dtype == "i8" else 0, high=128 if dtype == "i8" else 256)


def _packed_bytes(a: np.ndarray, b: np.ndarray, a_zero: np.ndarray, b_zero: np.ndarray) -> Sample:
    panels, sums, zeros = pack_bytes(b, np.asarray(b_zero))
    keep = frozenset((a.shape[-1], b.shape[1], *panels.shape, *sums.shape, *zeros.shape))
    return Sample("matmul_integer_packed", (a, panels, sums, a_zero, zeros), {"columns": b.shape[1]}, keep)
