"""Tests of the quantized operators of ONNX and ONNX Runtime, compared with ONNX Runtime.

The tests cover dtypes, blocks, constant weights, and unsupported nodes."""

from __future__ import annotations

import numpy as np
import pytest
from frontend.onnx_answers import against_onnxruntime, answers, assert_answers, c_answers, onnxruntime_answers
from frontend.onnx_models import make_model, onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator
from support.modes import machines

from relvm.errors import RelvmError
from relvm.frontend.onnx import from_onnx
from relvm.ir.printer import print_module

MICROSOFT = "com.microsoft"


def numbers(dtype: str, *shape: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return random.normal(0, 3, shape).astype(dtype)
    info = np.iinfo(dtype)
    return random.integers(info.min, info.max, shape, dtype, endpoint=True)


def weights(dtype: str, *shape: int) -> np.ndarray:
    """Return random weights.  i8 weights have only 7 bits, because ONNX Runtime can saturate products of u8 and i8."""
    return numbers(dtype, *shape) // np.array(2 if dtype == "int8" else 1, dtype)


def check(op: str, arrays: list, domain: str = "", outputs: int = 1, opset: int = 17, exact: bool = True, **attributes):
    """Assert that a node has the same outputs as in ONNX Runtime.

    The first size of the first input is symbolic, and so is that of each other input with the same rank and first size.

    arrays: the inputs, with None for an omitted input.   outputs: the number of outputs.   exact: whether integers must
    be equal, or may differ by one.
    """
    names = ["" if array is None else f"x{i}" for i, array in enumerate(arrays)]
    given = [(name, np.asarray(array)) for name, array in zip(names, arrays, strict=True) if name]
    first = given[0][1]
    alike = [array.ndim == first.ndim and array.shape[0] == first.shape[0] for _, array in given]
    inputs = [
        (name, array.dtype, ["n", *array.shape[1:]] if same else array.shape)
        for (name, array), same in zip(given, alike, strict=True)
    ]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    proto = make_model([node], inputs, results, opset=opset)
    feeds = [array for _, array in given]
    got, wanted = c_answers(proto, feeds), onnxruntime_answers(proto, feeds)
    (assert_answers if exact else assert_close_to_integers)(got, wanted)


def assert_close_to_integers(got: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    """Assert that integers differ by at most one, as if a sum of floats was halfway between two integers."""
    got, wanted = ([array.astype(np.int32) for array in arrays] for arrays in (got, wanted))
    assert all(np.abs(g - w).max() <= 1 for g, w in zip(got, wanted, strict=True))


F = np.float32
SCALE = np.float32(0.043)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
def test_quantize_and_dequantize(dtype: str) -> None:
    opset = 21 if "16" in dtype else 17
    x, zero = numbers("float32", 6, 5), np.array(3, dtype)
    x[0] = [np.inf, -np.inf, 1e30, -1e30, 0.0]
    x[1] = SCALE * F([0.5, 1.5, 2.5, -0.5, -1.5])
    check("QuantizeLinear", [x, SCALE, zero], opset=opset)
    many, zeros = np.abs(numbers("float32", 5)) + F(0.01), numbers(dtype, 5)
    check("QuantizeLinear", [x, many, zeros], opset=opset, axis=-1)
    q = numbers(dtype, 6, 5)
    check("DequantizeLinear", [q, SCALE, zero], opset=opset)
    check("DequantizeLinear", [q, many, zeros], opset=opset, axis=1)
    check("DequantizeLinear", [q, F([0.5]), None], opset=opset)


def test_quantize_without_a_zero_point() -> None:
    check("QuantizeLinear", [numbers("float32", 4, 3), SCALE, None])
    check("QuantizeLinear", [numbers("float32", 4, 3), SCALE, None], opset=21, output_dtype=3)
    check("DequantizeLinear", [numbers("int32", 4, 3), SCALE, None])


@pytest.mark.parametrize(("size", "block"), [(6, 3), (7, 3), (5, 8)])
def test_blocks(size: int, block: int) -> None:
    count = -(-size // block)
    scale, zero = np.abs(numbers("float32", 2, count, 3)) + F(0.1), numbers("int8", 2, count, 3)
    for op, dtype in (("QuantizeLinear", "float32"), ("DequantizeLinear", "int8")):
        node = helper.make_node(op, ["x", "s", "z"], ["y"], axis=-2, block_size=block)
        x = numbers(dtype, 2, size, 3)
        inputs = [("x", x.dtype, x.shape), ("s", scale.dtype, scale.shape), ("z", zero.dtype, zero.shape)]
        repeated = [np.repeat(v, block, 1)[:, :size].astype(F) for v in (scale, zero)]
        wanted = (x.astype(F) - repeated[1]) * repeated[0]
        if dtype == "float32":
            wanted = np.clip(np.rint(x / repeated[0]) + repeated[1], -128, 127).astype(np.int8)
        assert_answers(c_answers(make_model([node], inputs, ["y"], opset=21), [x, scale, zero]), [wanted])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "int4", "uint4"])
def test_quantize_special_numbers(dtype: str) -> None:
    """NaN, as a number or as a quotient, becomes the lowest number of the dtype."""
    wanted_type = getattr(onnx.TensorProto, dtype.upper())
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s"], ["q"], output_dtype=wanted_type),
        helper.make_node("Cast", ["q"], ["y"], to=onnx.TensorProto.INT32),
    ]
    proto = make_model(nodes, [("x", F, ["n"]), ("s", F, [])], ["y"], opset=21)
    made = machines(from_onnx(proto))
    x = F([np.nan, np.inf, -np.inf, 1e30, -1e30, 3e9, 0.0, -0.0, 5.0, -5.0] * 4)
    for scale in map(F, ([0.5, -0.5, 0.0, np.nan, np.inf, 1e-45])):
        feeds = [x, np.asarray(scale)]
        wanted = onnxruntime_answers(proto, feeds)
        for got in answers(made, "main", feeds).values():
            assert_answers(got, wanted)
    # The reference implementation agrees on NaN, but not on numbers outside int32.
    with np.errstate(invalid="ignore"):
        lowest = ReferenceEvaluator(proto).run(None, {"x": F([np.nan]), "s": F(0.5)})[0]
    assert lowest.tolist() == wanted[0][:1].tolist()


DYNAMIC = [numbers("float32", 20), np.abs(numbers("float32", 3)), -np.abs(numbers("float32", 3)), np.zeros(3, F)]
INFINITE = [[np.inf, 1, 2], [-np.inf, 1, 2], [np.inf, -np.inf, 0], [-np.inf], [3e38, -3e38], [1e-45, 0], [-1e-45, 1]]
NOT_A_NUMBER = [[np.nan, 1, 2], [np.nan, np.nan], [np.nan, np.inf], [np.nan, -np.inf]]


def test_dynamic_quantize() -> None:
    """The results are those of ONNX Runtime, and those of the reference implementation where the two agree."""
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"])
    proto = make_model([node], [("x", F, ["n"])], "qsz")
    made = machines(from_onnx(proto))
    for x in map(F, (*DYNAMIC, *INFINITE, *NOT_A_NUMBER)):
        wanted = onnxruntime_answers(proto, [x])
        for got in answers(made, "main", [x]).values():
            assert_answers(got, wanted)
        if not np.isnan(x).any() and x.any():
            with np.errstate(all="ignore"):
                assert_answers(ReferenceEvaluator(proto).run(None, {"x": x}), wanted)


@pytest.mark.parametrize("b_dtype", ["int8", "uint8"])
@pytest.mark.parametrize(
    ("a", "b"), [((3, 5), (5, 4)), ((2, 3, 5), (5, 4)), ((2, 3, 5), (2, 5, 4)), ((9, 200), (200, 70))]
)
def test_matmul_integer(a: tuple, b: tuple, b_dtype: str) -> None:
    left, right = numbers("uint8", *a), weights(b_dtype, *b)
    check("MatMulInteger", [left, right])
    check("MatMulInteger", [left, right, np.uint8([7]), np.array(3, b_dtype)])
    if len(b) == 2:
        check("MatMulInteger", [left, right, None, numbers(b_dtype, b[-1])])


def test_matmul_integer_of_vectors_and_rows() -> None:
    """Compare with NumPy, because ONNX Runtime does not support a zero point for each row."""
    a, b, rows = numbers("uint8", 3, 5), numbers("int8", 5, 4), numbers("uint8", 3)
    node = helper.make_node("MatMulInteger", ["a", "b", "z"], ["y"])
    proto = make_model([node], [("a", a.dtype, ["m", 5]), ("b", b.dtype, [5, 4]), ("z", rows.dtype, ["m"])], ["y"])
    wanted = (a.astype(np.int32) - rows[:, None]) @ b.astype(np.int32)
    assert_answers(c_answers(proto, [a, b, rows]), [wanted])
    for x, y in ((a[0], b), (a, b[:, 0]), (a[0], b[:, 0])):
        node = helper.make_node("MatMulInteger", ["a", "b"], ["y"])
        proto = make_model([node], [("a", x.dtype, x.shape), ("b", y.dtype, y.shape)], ["y"])
        assert_answers(c_answers(proto, [x, np.ascontiguousarray(y)]), [x.astype(np.int32) @ y.astype(np.int32)])


@pytest.mark.parametrize(
    "attributes", [{}, {"pads": [1, 2, 0, 1], "strides": [2, 1]}, {"group": 2}, {"auto_pad": "SAME_UPPER"}], ids=str
)
def test_convolutions(attributes: dict) -> None:
    x, w = numbers("uint8", 2, 4, 7, 6), weights("int8", 6, 4 // attributes.get("group", 1), 3, 2)
    check("ConvInteger", [x, w.view(np.uint8), np.uint8(120), np.uint8(9)], **attributes)
    scales = np.abs(numbers("float32", 6)) * F(0.01) + F(0.001)
    zeros, bias = np.zeros(6, np.int8), numbers("int16", 6).astype(np.int32)
    many = [x, SCALE, np.uint8(120), w, scales, zeros, F(0.3), np.uint8(5), bias]
    check("QLinearConv", many, exact=False, **attributes)
    check("QLinearConv", [*many[:4], F(0.02), np.int8(4), F(0.7), np.uint8(5)], exact=False, **attributes)


@pytest.mark.parametrize(
    "attributes",
    [{"pads": [1, 2, 0, 1], "strides": [2, 1]}, {"group": 2, "auto_pad": "SAME_UPPER"}, {"group": 4}],
    ids=str,
)
def test_convolutions_with_constant_weights(attributes: dict) -> None:
    x, w = numbers("uint8", 2, 4, 7, 6), weights("int8", 12, 4 // attributes.get("group", 1), 3, 2)
    given = {"s": SCALE, "z": np.uint8(120), "w": w, "ws": np.abs(numbers("float32", 12)) * F(0.01) + F(0.001)}
    given |= {"wz": np.full(12, 3, np.int8), "ys": F(0.3), "yz": np.uint8(5)}
    given |= {"b": numbers("int16", 12).astype(np.int32)}
    node = helper.make_node("QLinearConv", ["x", *given], ["y"], **attributes)
    proto = make_model([node], [("x", x.dtype, ["n", 4, 7, 6])], ["y"], given)
    assert_close_to_integers(c_answers(proto, [x]), onnxruntime_answers(proto, [x]))
    assert "conv_integer" in print_module(from_onnx(proto))
    given = {"w": w.view(np.uint8) // 2 + np.uint8(40), "z": np.uint8(120), "wz": np.uint8(101)}
    node = helper.make_node("ConvInteger", ["x", "w", "z", "wz"], ["y"], **attributes)
    proto = make_model([node], [("x", x.dtype, ["n", 4, 7, 6])], ["y"], given)
    assert_answers(c_answers(proto, [x]), onnxruntime_answers(proto, [x]))
    assert "conv_integer" in print_module(from_onnx(proto))


def test_weights_far_from_their_zero_point_are_no_bytes() -> None:
    x, w = numbers("uint8", 2, 4, 7, 6), np.uint8([0, 9, 200, 255]).reshape(4, 1, 1, 1)
    node = helper.make_node("ConvInteger", ["x", "w", "z", "wz"], ["y"], group=4)
    proto = make_model([node], [("x", x.dtype, x.shape)], ["y"], {"w": w, "z": np.uint8(120), "wz": np.uint8(101)})
    assert_answers(c_answers(proto, [x]), onnxruntime_answers(proto, [x]))
    assert "conv_integer" not in print_module(from_onnx(proto))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_qlinear_matmul(dtype: str) -> None:
    a, b, zero = numbers(dtype, 3, 5), weights("int8", 5, 4), np.array(3, dtype)
    given = [a, SCALE, zero, b, F([0.1, 0.2, 0.03, 0.4]), numbers("int8", 4), F(0.9), zero]
    check("QLinearMatMul", given, exact=False)
    check("QLinearMatMul", [*given[:4], F(0.1), np.int8(2), *given[6:]], exact=False)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_elementwise_of_onnxruntime(dtype: str) -> None:
    a, b, zero = numbers(dtype, 3, 4), numbers(dtype, 3, 4, seed=1), np.array(5, dtype)
    for op in ("QLinearAdd", "QLinearMul"):
        check(op, [a, SCALE, zero, b, F(0.07), zero, F(0.2), zero], MICROSOFT, exact=False)
        check(op, [a, SCALE, zero, b[:1], F(0.07), zero, F(0.2), zero], MICROSOFT, exact=False)
    check("QLinearSigmoid", [a, SCALE, zero, F(1 / 256), None], MICROSOFT, exact=False)
    check("QLinearLeakyRelu", [a, SCALE, zero, F(0.05), zero], MICROSOFT, exact=False, alpha=0.2)
    parts = [F(0.1), zero, a, SCALE, zero, b, F(0.2), zero]
    node = helper.make_node("QLinearConcat", [f"x{i}" for i in range(8)], ["y"], domain=MICROSOFT, axis=1)
    parts = list(map(np.asarray, parts))
    inputs = [(f"x{i}", part.dtype, part.shape) for i, part in enumerate(parts)]
    proto = make_model([node], inputs, ["y"])
    against_onnxruntime(proto, *parts)


@pytest.mark.parametrize("channels_last", [0, 1])
def test_pools_of_onnxruntime(channels_last: int) -> None:
    x, zero = numbers("uint8", 2, 3, 6, 5), np.uint8(100)
    given = [x, SCALE, zero, F(0.02), zero]
    check("QLinearGlobalAveragePool", given, MICROSOFT, exact=False, channels_last=channels_last)
    window = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1], "count_include_pad": 1}
    check("QLinearAveragePool", given, MICROSOFT, exact=False, channels_last=channels_last, **window)


def test_products_to_floats_of_onnxruntime() -> None:
    a, b, bias = numbers("float32", 3, 5), weights("int8", 5, 4), numbers("float32", 4)
    scales, zeros = np.abs(numbers("float32", 4)), numbers("int8", 4)
    check("DynamicQuantizeMatMul", [a, b, scales, zeros, bias], MICROSOFT)
    check("DynamicQuantizeMatMul", [a, b, SCALE, None], MICROSOFT)
    q = numbers("uint8", 3, 5)
    check("MatMulIntegerToFloat", [q, b, SCALE, scales, np.uint8(9), zeros, bias], MICROSOFT)
    check("MatMulIntegerToFloat", [q, b, SCALE, F(0.2)], MICROSOFT)


def test_what_is_refused() -> None:
    x, scale = numbers("float32", 2, 3), np.float32(0.5)
    wrong = [
        ("QuantizeLinear", [x, scale], {"output_dtype": 6}, "output_dtype is i32"),
        ("DequantizeLinear", [x, scale], {}, r"input 0 \(x\) is tensor\(float\)"),
        (
            "QuantizeLinear",
            [x, np.ones((2, 2), F), np.ones((2, 2), np.uint8)],
            {},
            "one element for each index along the axis",
        ),
        ("QuantizeLinear", [x, np.ones((2, 3), F)], {"block_size": 2}, "expected 2 blocks, got 3"),
    ]
    for op, arrays, attributes, message in wrong:
        names = [f"x{i}" for i in range(len(arrays))]
        node = helper.make_node(op, names, ["y"], **attributes)
        inputs = [(name, np.asarray(array).dtype, np.shape(array)) for name, array in zip(names, arrays, strict=True)]
        with pytest.raises(RelvmError, match=message):
            from_onnx(make_model([node], inputs, ["y"], opset=21))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize(("opset", "axis"), [(13, -1), (13, 1), (12, 1)])
def test_qlinear_softmax(dtype: str, opset: int, axis: int) -> None:
    zero = np.array(0 if dtype == "uint8" else -128, dtype)
    arrays = [numbers(dtype, 3, 4, 5), F(0.05), np.array(9, dtype), F(1 / 256), zero]
    names = [f"x{i}" for i in range(5)]
    node = helper.make_node("QLinearSoftmax", names, ["y"], domain=MICROSOFT, opset=opset, axis=axis)
    inputs = [(f"x{i}", np.asarray(array).dtype, np.asarray(array).shape) for i, array in enumerate(arrays)]
    proto = make_model([node], inputs, ["y"])
    feeds = [np.asarray(array) for array in arrays]
    assert_close_to_integers(c_answers(proto, feeds), onnxruntime_answers(proto, feeds))


@pytest.mark.parametrize("b_dtype", ["int8", "uint8"])
def test_qgemm(b_dtype: str) -> None:
    a, bias = numbers("uint8", 3, 6), numbers("int16", 4).astype(np.int32)
    zero, scales = np.array(3, b_dtype), np.abs(numbers("float32", 4)) / 100
    x = [a, F(0.02), np.uint8(7), weights(b_dtype, 6, 4), F(0.03), zero, bias]
    check("QGemm", x, MICROSOFT, alpha=0.5)
    check("QGemm", [*x, F(0.7), np.uint8(100)], MICROSOFT, exact=False)
    turned = [np.ascontiguousarray(a.T), *x[1:3], np.ascontiguousarray(x[3].T), scales, numbers(b_dtype, 4), None]
    check("QGemm", turned, MICROSOFT, transA=1, transB=1)
