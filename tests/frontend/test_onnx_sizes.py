"""Tests of ONNX graphs with computed sizes: from symbolic dimensions, from constants, or known only at run time."""

from __future__ import annotations

import numpy as np
import pytest
from frontend.onnx_answers import against_onnxruntime
from frontend.onnx_models import make_model, parse_model
from onnx import TensorShapeProto, helper
from support.modes import C_WAYS, machines, plain

from relvm.errors import RelvmError, RelvmShapeError
from relvm.frontend.onnx import from_onnx
from relvm.ir.interpreter import evaluate
from relvm.ir.type_inference import infer_types

RANDOM = np.random.default_rng(3)

HALVED_AND_DOUBLED = parse_model("""
    g (float[n, 2, h, w] x) => (y)
    <float[4] scales = {1, 1, 2, 2}>
    {
      half = MaxPool<kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1>(x)
      whole = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">
                    (half, , scales)
      y = Add(x, whole)
    }""")


def test_sizes_that_cannot_be_proven_equal_are_checked_at_run_time() -> None:
    against_onnxruntime(HALVED_AND_DOUBLED, RANDOM.standard_normal((1, 2, 6, 8)).astype(np.float32))
    for machine in machines(from_onnx(HALVED_AND_DOUBLED), C_WAYS).values():
        with pytest.raises(RelvmShapeError, match=r"Add, opset 17"):
            machine["main"](np.zeros((1, 2, 7, 8), np.float32))


def test_sizes_that_are_known_to_differ_are_refused() -> None:
    model = parse_model("g (float[3, n] x, float[4, m] z) => (y) { y = Add(x, z) }")
    with pytest.raises(RelvmShapeError, match=r"Add.*3 and 4"):
        from_onnx(model)


REFUSED = {
    "parts of a shape": (
        """
        g (float[n, m, 3] x, float[k] z) => (a, b) <int64[1] three = {3}>
        {
          shape = Shape(x)
          first = Shape(z)
          rest = Sub(three, first)
          sizes = Concat<axis = 0>(first, rest)
          a, b = Split<axis = 0>(shape, sizes)
        }""",
        "the part sizes must be known, got k, .*",
    ),
    "biases of attention": (
        """
        g (float[n, k, w] x, float[24] b) => (y)
        { y = com.microsoft.MultiHeadAttention<num_heads = 2>(x, x, x, b) }""",
        "the widths of the biases must be known, got w, w, w",
    ),
    "no scale": (
        """
        g (uint8[n] x, float s, uint8 zero) => (y)
        { y = com.microsoft.QLinearSigmoid(x, , zero, s, zero) }""",
        "input 1 is missing",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_must_be_known(name: str) -> None:
    text, message = REFUSED[name]
    with pytest.raises(RelvmError, match=message):
        from_onnx(parse_model(text))


COMPUTED = {
    "a slice up to a symbolic place": """
        g (float[n, k] x) => (y)
        <int64[2] sizes = {3, 8}, int64[1] zero = {0}, int64[1] one = {1}>
        {
          table = ConstantOfShape<value = float[1] {2.5}>(sizes)
          stop = Shape<start = 1>(x)
          y = Slice(table, zero, stop, one)
        }""",
    "a slice from a symbolic place": """
        g (float[n, k] x) => (y)
        <int64[1] two = {2}, int64[1] zero = {0}, int64[1] minus = {-1}>
        {
          size = Shape<end = 1>(x)
          half = Div(size, two)
          bounds = Concat<axis = 0>(half, two)
          ends = Concat<axis = 0>(size, minus)
          y = Slice(x, bounds, ends)
        }""",
    "a slice of a shape by steps along all axes": """
        g (float[n, k] x) => (y)
        <int64[1] zero = {0}, int64[1] three = {3}, int64[1] two = {2}>
        {
          shape = Shape(x)
          twice = Concat<axis = 0>(shape, shape)
          y = Slice(twice, zero, three, , two)
        }""",
    "a margin that makes a multiple of 4": """
        g (float[n, k] x) => (y)
        <int64[1] four = {4}, int64[1] three = {3}, int64[3] none = {0, 0, 0}, float value = {1.5}>
        {
          size = Shape<start = 1>(x)
          more = Add(size, three)
          blocks = Div(more, four)
          whole = Mul(blocks, four)
          missing = Sub(whole, size)
          pads = Concat<axis = 0>(none, missing)
          y = Pad(x, pads, value)
        }""",
    "an edge of symbolic width": """
        g (float[n, k] x) => (y)
        <int64[1] zero = {0}>
        {
          size = Shape<start = 1>(x)
          pads = Concat<axis = 0>(zero, size, zero, size)
          y = Pad<mode = "edge">(x, pads)
        }""",
    "a margin of a computed value": """
        g (float[n, k] x) => (y)
        <int64[4] pads = {1, 0, 2, 3}>
        {
          value = ReduceMax<keepdims = 0>(x)
          y = Pad(x, pads, value)
        }""",
    "an expansion by a shape of which a part is -1": """
        g (float[n, k] x) => (y)
        <int64[1] two = {2}, int64[1] minus = {-1}>
        {
          size = Shape<start = 0, end = 1>(x)
          asked = Concat<axis = 0>(two, size, minus)
          rank = Shape(asked)
          ones = ConstantOfShape<value = int64[1] {1}>(rank)
          all = Mul(ones, minus)
          open = Equal(asked, all)
          shape = Where(open, ones, asked)
          y = Expand(x, shape)
        }""",
    "a shape with a negative number as a result": """
        g (float[n, k] x) => (y)
        <int64[1] minus = {-1}>
        {
          shape = Shape(x)
          y = Concat<axis = 0>(shape, minus)
        }""",
    "a size of a Resize that is twice another": """
        g (float[n, k] x) => (y)
        <int64[1] two = {2}, int64[1] three = {3}>
        {
          size = Shape<start = 0, end = 1>(x)
          more = Mul(size, two)
          sizes = Concat<axis = 0>(more, three)
          y = Resize<mode = "linear", coordinate_transformation_mode = "align_corners">(x, , , sizes)
        }""",
    "a Dropout whose mask is a result": """
        g (float[n, k] x) => (y, mask) { y, mask = Dropout(x) }""",
}


@pytest.mark.parametrize("name", COMPUTED)
def test_what_is_computed_of_sizes(name: str) -> None:
    against_onnxruntime(parse_model(COMPUTED[name]), RANDOM.standard_normal((5, 6)).astype(np.float32))


CONSTANT_MOVED = {
    "Gather": "i = Mul(two, zero)  y = Gather(table, i)",
    "Reshape": "s = Concat<axis = 0>(two, minus)  y = Reshape(table, s)",
    "Slice": "end = Sub(two, one)  y = Slice(table, zero, end)",
    "Squeeze": "at = Sub(two, two)  row = Unsqueeze(table, zero)  y = Squeeze(row, at)",
    "Unsqueeze": "at = Sub(two, one)  y = Unsqueeze(table, at)",
}


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "uint64", "float"])
@pytest.mark.parametrize("name", CONSTANT_MOVED)
def test_constants_that_are_moved_by_computed_sizes_keep_their_dtype(name: str, dtype: str) -> None:
    """The table has one dtype, and the size by which it is moved has another one."""
    model = parse_model(f"""
        g (float[n, 2] x) => (y)
        <{dtype}[4] table = {{1, 0, 0, 1}}, int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] minus = {{-1}}>
        {{
          two = Shape<start = 1>(x)
          {CONSTANT_MOVED[name]}
        }}""")
    against_onnxruntime(model, np.zeros((3, 2), np.float32))


@pytest.mark.parametrize("mode", ["reflect", "wrap"])
def test_a_margin_of_symbolic_size(mode: str) -> None:
    text = COMPUTED["an edge of symbolic width"].replace("edge", mode)
    x = RANDOM.standard_normal((2, 3)).astype(np.float32)
    for machine in machines(from_onnx(parse_model(text, 19))).values():
        np.testing.assert_array_equal(plain(machine["main"](x)), np.pad(x, ((0, 0), (3, 3)), mode))


BOUNDS = parse_model("""
    g (float[n, k] x, float[m] y) => (a, b, c)
    <int64[1] zero = {0}, int64[1] one = {1}, int64[1] far = {10000}>
    {
      n = Shape<end = 1>(x)
      k = Shape<start = 1>(x)
      m = Shape(y)
      apart = Sub(m, k)
      back = Neg(m)
      less = Sub(back, one)
      a = Slice(x, apart, far, one)
      b = Slice(x, back, far, one)
      c = Slice(x, less, apart, one)
    }""")


@pytest.mark.parametrize("m", [0, 1, 3, 5, 9])
def test_bounds_of_either_sign(m: int) -> None:
    against_onnxruntime(BOUNDS, RANDOM.standard_normal((2, 5)).astype(np.float32), np.ones(m, np.float32))


def test_sizes_without_a_name_are_different_ones() -> None:
    """Exporters write -1 or "?" for an unknown size, and two such sizes can differ."""
    model = parse_model("g (float[n, k] x) => (y) { y = Relu(x) }")
    dims = model.graph.input[0].type.tensor_type.shape.dim
    for one in ({"dim_value": -1}, {"dim_param": "?"}, {}):
        for dim in dims:
            dim.CopyFrom(TensorShapeProto.Dimension(**one))
        rows, columns = from_onnx(model)["main"].params[0].type.shape
        assert rows != columns and not isinstance(rows, int) and not isinstance(columns, int)


def test_statistics_that_are_known_are_one_scale_and_one_shift() -> None:
    node = helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"])
    constants = {name: np.float32([2, 3]) for name in "sbmv"}
    module = from_onnx(make_model([node], [("x", np.float32, ["n", 2, "w"])], ["y"], constants, 15))
    assert [binding.value.op.name for binding in module["main"].body.bindings] == ["multiply", "add"]
    x = RANDOM.standard_normal((4, 2, 3)).astype(np.float32)
    result = evaluate(infer_types(module), "main", x)
    scale = np.float64([2, 3]) / np.sqrt(np.float64([2, 3]) + 1e-5)
    np.testing.assert_allclose(result, (x - [[2], [3]]) * scale[:, None] + [[2], [3]], rtol=1e-5, atol=1e-5)
    for machine in machines(module).values():  # a fused product and sum are rounded only once
        np.testing.assert_allclose(plain(machine["main"](x)), result, rtol=1e-5, atol=1e-5)


UNIFIED = {
    "five names for the number of channels": (
        "g (float[n, c, w] x, float[s] scale, float[b] bias, float[m] mean, float[v] var) => (y) "
        "{ y = BatchNormalization(x, scale, bias, mean, var) }",
        [(2, 3, 4), (3,), (3,), (3,), (3,)],
        [(2, 3, 4), (3,), (3,), (3,), (2,)],
    ),
    "a bias for groups of filters": (
        "g (float[n, c, w] x, float[f, d, 3] filters, float[b] bias) => (y) { y = Conv<group = 2>(x, filters, bias) }",
        [(1, 4, 5), (6, 2, 3), (6,)],
        [(1, 4, 5), (6, 2, 3), (3,)],
    ),
    "items of a sequence": (
        "g (float[n, 2] x, float[m, k] z) => (y) "
        "{ items = SequenceConstruct(x, z) y = ConcatFromSequence<axis = 0>(items) }",
        [(3, 2), (1, 2)],
        [(3, 2), (1, 3)],
    ),
    "a batch that can be 1": (
        "g (uint8[n, 2, 3] x, uint8[m, 3, k] z) => (y) { y = MatMulInteger(x, z) }",
        [(4, 2, 3), (1, 3, 2)],
        [(4, 2, 3), (3, 3, 2)],
    ),
    "a scale that can be 1": (
        "g (float[n, k] x, float[m] scale) => (y) { y = LayerNormalization(x, scale) }",
        [(2, 4), (1,)],
        [(2, 4), (3,)],
    ),
}


@pytest.mark.parametrize("name", UNIFIED)
def test_different_names_of_one_size(name: str) -> None:
    """right, wrong: the shapes of the inputs of a valid and of an invalid call."""
    text, right, wrong = UNIFIED[name]
    model = parse_model(text)
    dtype = np.uint8 if "uint8" in text else np.float32
    against_onnxruntime(model, *(RANDOM.uniform(1, 4, shape).astype(dtype) for shape in right))
    for machine in machines(from_onnx(model), C_WAYS).values():
        with pytest.raises(RelvmShapeError):
            machine["main"](*(np.ones(shape, dtype) for shape in wrong))
