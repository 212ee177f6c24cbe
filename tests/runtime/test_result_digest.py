"""Digests of results: equal for equal bits, and different for everything else but NaN."""

from __future__ import annotations

import hashlib

import ml_dtypes
import numpy as np
import pytest

from relvm import vm
from relvm.errors import RelvmTypeError
from relvm.frontend.text import parse_module
from relvm.runtime.result_digest import result_digest


def sha256(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()


def test_the_bytes_are_those_of_the_document() -> None:
    x = np.float32([[1, -0.0, np.nan]])
    assert result_digest(x) == sha256(b"tensor f32 1 3\n", bytes.fromhex("0000803f000000800000c07f"))
    assert result_digest((x, [None, True, 3])) == sha256(
        b"tuple 2\ntensor f32 1 3\n", bytes.fromhex("0000803f000000800000c07f"), b"list 3\nnone\nbool 1\nint 3\n"
    )
    assert result_digest("é") == sha256(b"str 2\n", "é".encode())
    assert result_digest(np.array(["a", "bc"], object)) == sha256(b"tensor str 2\n", np.int64([1, 3]).tobytes(), b"abc")


@pytest.mark.parametrize(
    "dtype",
    [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2],
)
def test_all_nans_of_a_dtype_are_equal(dtype: type) -> None:
    size = np.dtype(dtype).itemsize
    codes = np.arange(256 if size == 1 else 2**16, dtype="<u2")
    bits = codes.astype("u1") if size == 1 else (codes.astype(f"<u{size}") << np.array(8 * size - 16, f"<u{size}"))
    with np.errstate(invalid="ignore"):
        nans = bits.view(dtype)[np.isnan(bits.view(dtype))]
    assert len({result_digest(nan.reshape(1)) for nan in nans}) == 1 < len(nans)


def test_other_bits_types_and_shapes_differ() -> None:
    x = np.zeros(4, np.float32)
    others = [x, -x, x.reshape(2, 2), x.astype(np.int32), x[:3], (x,), [x], x + np.float32(1e-45), 0.0, -0.0, 0, False]
    assert len({result_digest(value) for value in others}) == len(others)


def test_a_result_of_a_machine() -> None:
    machine = vm.VirtualMachine(vm.build(parse_module("def main(x: f32[n]) -> f32[n] = relu(x)"), target="bytecode"))
    x = np.float32([-1, 2, np.nan])
    assert result_digest(machine["main"](x)) == result_digest(np.float32([0, 2, np.nan]))
    with pytest.raises(RelvmTypeError, match="a value of type function has no digest"):
        result_digest(sha256)
