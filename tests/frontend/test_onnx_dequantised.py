"""Tests of QDQ fusion: integer products replace DequantizeLinear, a float product and QuantizeLinear."""

from __future__ import annotations

import numpy as np
import pytest
from frontend.onnx_answers import assert_answers, c_answers, onnxruntime_answers
from frontend.onnx_models import parse_model

from relvm.frontend.onnx import from_onnx
from relvm.ir.printer import print_module

RANDOM = np.random.default_rng(5)


def check(text: str, *arrays: np.ndarray, expected: str, absent: str) -> None:
    """Assert that a graph has the same results as in ONNX Runtime without optimizations.

    expected, absent: operators that the imported program must and must not contain.
    """
    proto = parse_model(text, opset=21)
    program = print_module(from_onnx(proto))
    assert f"= {expected}(" in program
    assert f"= {absent}(" not in program
    got, wanted = c_answers(proto, arrays), onnxruntime_answers(proto, arrays)
    for ours, theirs in zip(got, wanted, strict=True):
        if ours.dtype.kind == "f":
            assert_answers([ours], [theirs], rtol=1e-5, atol=1e-4)
        else:  # results can differ by one if a sum of floats is halfway between two integers
            assert ours.dtype == theirs.dtype
            assert np.abs(ours.astype(int) - theirs.astype(int)).max() <= 1


def numbers(dtype: str, *shape: int) -> np.ndarray:
    info = np.iinfo(dtype)
    return RANDOM.integers(info.min, info.max, shape, dtype, endpoint=True)


def text_of(dtype: str, array: np.ndarray) -> str:
    sizes = ",".join(map(str, array.shape))
    return f"{dtype}[{sizes}] {{{', '.join(map(str, array.reshape(-1).tolist()))}}}"


PRODUCT = """
g (uint8[n, 5] x) => (y)
<float s = {{0.02}}, uint8 z = {{120}}, float t = {{0.5}}, uint8 u = {{7}}, {weights}, float[4] c = {{1, -2, 3, 0}}>
{{
  a = DequantizeLinear(x, s, z)
  b = DequantizeLinear<axis = {axis}>(w, ws, wz)
  p = {op}
  y = QuantizeLinear(p, t, u)
}}
"""
COLUMNS = "float[4] ws = {0.01, 0.02, 0.5, 1.0}, int8[4] wz = {0, 3, -7, 100}"
SINGLE = "float ws = {0.01}, int8 wz = {-3}"


@pytest.mark.parametrize("numbers_of", [COLUMNS, SINGLE])
@pytest.mark.parametrize(
    ("shape", "axis", "op"),
    [
        ((5, 4), 1, "MatMul(a, b)"),
        ((5, 4), -1, "Gemm<alpha = 0.5, beta = 2.0>(a, b, c)"),
        ((4, 5), 0, "Gemm<transB = 1>(a, b, c)"),
    ],
)
def test_products(shape: tuple[int, int], axis: int, op: str, numbers_of: str) -> None:
    weights = f"int8[{shape[0]},{shape[1]}] w = {text_of('', numbers('int8', *shape)).partition(']')[2]}, {numbers_of}"
    check(
        PRODUCT.format(weights=weights, axis=axis, op=op),
        numbers("uint8", 3, 5),
        expected="matmul_integer",
        absent="matmul",
    )


def test_a_scale_for_each_row_of_the_right_side_is_no_product_of_bytes() -> None:
    weights = f"int8[5,4] w = {text_of('', numbers('int8', 5, 4)).partition(']')[2]}"
    rows = "float[5] ws = {0.01, 0.02, 0.5, 1.0, 2.0}, int8[5] wz = {0, 3, -7, 100, 1}"
    text = PRODUCT.format(weights=f"{weights}, {rows}", axis=0, op="MatMul(a, b)")
    check(text, numbers("uint8", 3, 5), expected="matmul", absent="matmul_integer")


def test_products_of_two_computed_tensors() -> None:
    """The reshapes and transposes before the product, as in attention, move quantized bytes."""
    text = """
    g (int8[n, 6, 8] x, uint8[n, 6, 8] y) => (p, q)
    <float s = {0.02}, int8 z = {12}, float t = {0.05}, uint8 u = {7}, int64[4] shape = {0, 6, 2, 4}>
    {
      a = DequantizeLinear(x, s, z)
      b = DequantizeLinear(y, t, u)
      heads = Reshape(a, shape)
      heads_y = Reshape(b, shape)
      left = Transpose<perm = [0, 2, 1, 3]>(heads)
      right = Transpose<perm = [0, 2, 3, 1]>(heads_y)
      p = MatMul(left, right)
      q = QuantizeLinear(left, s, z)
    }"""
    arrays = numbers("int8", 2, 6, 8), numbers("uint8", 2, 6, 8)
    check(text, *arrays, expected="matmul_integer", absent="round")


CONVOLUTION = """
g (uint8[n, 4, 7, 6] x) => (y)
<float s = {{0.02}}, uint8 z = {{120}}, float t = {{0.5}}, uint8 u = {{7}}, {weights}, int32[4] c = {{100, -200, 3, 0}}>
{{
  a = DequantizeLinear(x, s, z)
  b = DequantizeLinear<axis = 0>(w, ws, wz)
  bias = DequantizeLinear(c, s)
  p = Conv<pads = [1, 0, 1, 1], strides = [1, 2], group = {groups}>(a, b, bias)
  r = Relu(p)
  y = QuantizeLinear(r, t, u)
}}
"""


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("numbers_of", ["float[4] ws = {0.01, 0.02, 0.5, 1.0}, int8[4] wz = {0, 0, 0, 0}", SINGLE])
def test_convolutions(groups: int, numbers_of: str) -> None:
    values = np.clip(numbers("int8", 4, 4 // groups, 3, 2), -120, 120)
    weights = f"int8[4,{4 // groups},3,2] w = {text_of('', values).partition(']')[2]}, {numbers_of}"
    text = CONVOLUTION.format(weights=weights, groups=groups)
    check(text, numbers("uint8", 2, 4, 7, 6), expected="conv_integer", absent="conv")


def test_rows_of_a_table_and_windows_are_bytes() -> None:
    text = f"""
    g (int64[n, 3] places, int8[n, 2, 6, 6] image) => (rows, largest)
    <int8[9, 4] table = {text_of("", numbers("int8", 9, 4)).partition("]")[2]}, float s = {{0.25}}, int8 z = {{3}}>
    {{
      wide = DequantizeLinear(table, s, z)
      rows = Gather<axis = 0>(wide, places)
      i = DequantizeLinear(image, s, z)
      m = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(i)
      largest = QuantizeLinear(m, s, z)
    }}"""
    places = RANDOM.integers(0, 9, (2, 3))
    check(text, places, numbers("int8", 2, 2, 6, 6), expected="gather", absent="round")


@pytest.mark.parametrize("zero", [3, 4])
def test_bytes_are_given_back_where_the_numbers_are_the_same(zero: int) -> None:
    text = f"""
    g (int8[n] x) => (y)
    <float s = {{0.3}}, float t = {{0.3}}, int8 z = {{3}}, int8 u = {{{zero}}}>
    {{
      a = DequantizeLinear(x, s, z)
      y = QuantizeLinear(a, t, u)
    }}"""
    proto, x = parse_model(text), np.arange(-128, 128).astype(np.int8)
    assert ("saturating_cast(" in print_module(from_onnx(proto))) == (zero == 4)
    assert_answers(c_answers(proto, [x]), onnxruntime_answers(proto, [x]))


@pytest.mark.parametrize("size", [1, 3])
def test_a_squeeze_of_axes_that_only_the_machine_knows(size: int) -> None:
    program = """
    g (uint8[n, 1, 4] x) => (y)
    <float s = {0.5}, uint8 z = {100}>
    {
      a = DequantizeLinear(x, s, z)
      b = Squeeze(a)
      c = QuantizeLinear(b, s, z)
      y = DequantizeLinear(c, s, z)
    }
    """
    proto, x = parse_model(program, opset=21), numbers("uint8", size, 1, 4)
    assert_answers(c_answers(proto, [x]), onnxruntime_answers(proto, [x]), rtol=1e-6, atol=1e-6)
