"""Tests of values and sizes at the edge of what an operator accepts: negative sizes, empty axes, huge exponents."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from frontend.onnx_answers import assert_answers, onnxruntime_answers, outputs
from frontend.onnx_models import make_model, parse_model
from onnx import helper
from support.modes import machines, plain

from relvm.errors import RelvmShapeError
from relvm.frontend.onnx import from_onnx

WAYS = [("bytecode", "numpy"), ("bytecode", "bytecode")]
F32 = np.float32
RANDOM = np.random.default_rng(7)


def expect(model: Any, expected: Any, *arrays: np.ndarray, rtol: float = 1e-5, atol: float = 0) -> None:
    for machine in machines(from_onnx(model), WAYS).values():
        assert_answers(outputs(plain(machine["main"](*arrays))), [expected], rtol, atol)


def node_model(op: str, arrays: tuple, attributes: dict, opset: int, *, symbolic: bool = False) -> Any:
    """Return a model with one node.  symbolic: whether each size of each input has a name of its own."""
    names = [f"x{i}" for i in range(len(arrays))]
    inputs = [
        (name, array.dtype, [f"{name}_{axis}" for axis in range(array.ndim)] if symbolic else list(array.shape))
        for name, array in zip(names, arrays, strict=True)
    ]
    return make_model([helper.make_node(op, names, ["y"], **attributes)], inputs, ["y"], {}, opset)


# Computations on n = the size of x minus 4, which is negative for a small x, and their results in NumPy.
NEGATIVE = {
    "y = Identity(n)": lambda x, n: np.array([n]),
    "y = Abs(n)": lambda x, n: np.array([abs(n)]),
    "y = Cast<to = 1>(n)": lambda x, n: F32([n]),
    "y = Relu(n)": lambda x, n: np.array([max(n, 0)]),
    "m = Mul(n, n)  y = Sub(n, m)": lambda x, n: np.array([n - n * n]),
    "y = Slice(x, zero, n)": lambda x, n: x[:n],
    "y = Slice(x, two, n, zero, minus)": lambda x, n: x[2:n:-1],
    "p = Concat<axis = 0>(n, four)  y = Pad(x, p)": lambda x, n: np.pad(x[max(-n, 0) :], (max(n, 0), 4)),
}


@pytest.mark.parametrize("text", NEGATIVE)
def test_integers_computed_from_sizes_may_be_negative(text: str) -> None:
    known = "<int64[1] zero = {0}, int64[1] two = {2}, int64[1] four = {4}, int64[1] minus = {-1}>"
    model = parse_model(f"g (float[k] x) => (y) {known} {{ s = Shape(x)  n = Sub(s, four)  {text} }}", 18)
    for size in (1, 3, 4, 9):
        x = np.arange(size, dtype=F32)
        if "Pad" not in text or size >= 2:
            expect(model, NEGATIVE[text](x, size - 4), x)


@pytest.mark.parametrize("lengths", [("k", "2", "2"), ("2", "k", "k"), ("k", "k", "2"), ("k", "k", "k")])
def test_slices_whose_number_of_axes_is_symbolic(lengths: tuple[str, ...]) -> None:
    """At least one of the lists of ends, axes and steps has a known length."""
    ends, axes, steps = lengths
    model = parse_model(
        f"g (float[2, 3, 4] x, int64[2] starts, int64[{ends}] ends, int64[{axes}] axes, int64[{steps}] steps)"
        " => (float[p, q, r] y) { y = Slice(x, starts, ends, axes, steps) }",
        18,
    )
    x = np.arange(24, dtype=F32).reshape(2, 3, 4)
    numbers = ([-1, 3], [9, 0], [1, -1], [1, -2])
    expect(model, x[:, -1:9, 3:0:-2], x, *map(np.array, numbers))


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(
    ("op", "shape", "attributes", "opset"),
    [
        ("LRN", (1, 0, 2), {"size": 3}, 13),
        ("LRN", (1, 3, 0), {"size": 3}, 13),
        ("LRN", (0, 3, 2), {"size": 3}, 13),
        ("Hardmax", (2, 0, 3), {"axis": 1}, 13),
        ("Hardmax", (2, 0, 3), {"axis": 1}, 11),
        ("Hardmax", (0, 3), {"axis": 1}, 13),
    ],
)
def test_results_without_elements(op: str, shape: tuple, attributes: dict, opset: int, symbolic: bool) -> None:
    x = np.zeros(shape, F32)
    expect(node_model(op, (x,), attributes, opset, symbolic=symbolic), x, x)


@pytest.mark.parametrize("op", ["Elu", "Selu", "Celu"])
def test_exponential_units_near_0(op: str) -> None:
    x = F32([-1e-22, -1e-8, -0.001, -1, -100, -np.inf, 0, 2])
    below, scale = np.expm1(x.astype(np.float64)), 1.0
    if op == "Selu":
        below, scale = below * 1.67326319217681884765625, 1.05070102214813232421875
    expected = np.where(x < 0, below, x) * scale
    expect(node_model(op, (x,), {}, 17), expected.astype(F32), x, rtol=1e-6)


@pytest.mark.parametrize(
    ("base", "exponent"),
    [
        (F32([-1, 2]), np.uint32([2**32 - 1, 3])),
        (np.float16([-0.0, 2]), np.int32([-2049, 3])),
        (F32([-1, -2]), np.int64([2**24 + 1, 3])),
        (F32([-1, 2]), np.float64([2**24 + 1, 0.5])),
        (np.int32([-2, 3]), F32([3, 2])),
    ],
)
def test_powers_are_computed_with_the_value_of_the_exponent(base: np.ndarray, exponent: np.ndarray) -> None:
    with np.errstate(divide="ignore"):
        expected = np.power(base.astype(np.float64), exponent.astype(np.float64)).astype(base.dtype)
    expect(node_model("Pow", (base, exponent), {}, 15), expected, base, exponent)
    known = make_model(
        [helper.make_node("Pow", ["x", "e"], ["y"])], [("x", base.dtype, [2])], ["y"], {"e": exponent}, 15
    )
    expect(known, expected, base)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_shrink_of_64_bit_integers(dtype: type) -> None:
    x = np.array([2**62, 3, 1, 0, 5], dtype)
    expect(node_model("Shrink", (x,), {"lambd": 1.5, "bias": 2.0}, 9), np.array([2**62, 1, 0, 0, 3], dtype), x)


def test_strings_are_padded_with_empty_strings() -> None:
    text = """g (string[n, 3] x) => (string[m, 3] y, string[n, 3] z) <int64[4] pads = {1, 0, 1, 0}>
              { y = Pad(x, pads)  z = Trilu<upper = 0>(x) }"""
    for rows in ([], [["a", "b", "c"], ["d", "e", "f"]]):
        x = np.array(rows, object).reshape(-1, 3)
        wanted = [np.full((len(rows) + 2, 3), "", object), x.copy()]
        wanted[0][1:-1] = x
        for i, row in enumerate(wanted[1]):
            row[i + 1 :] = ""
        for machine in machines(from_onnx(parse_model(text, 19)), WAYS).values():
            for got, array in zip(outputs(plain(machine["main"](x))), wanted, strict=True):
                assert got.tolist() == array.tolist()


def quantized(*shape: int) -> np.ndarray:
    return RANDOM.integers(0, 255, shape).astype(np.uint8)


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(F32)


def scales(*shape: int) -> np.ndarray:
    return np.abs(numbers(*shape)) + F32(0.1)


SCALE, ZERO, MICROSOFT = F32(0.125), np.uint8(3), "com.microsoft"

# The operator, its domain, inputs and attributes.  Each size of each input gets a name of its own.
NAMED = {
    **{
        f"{op} of {a} and {b}": (
            op, MICROSOFT, (quantized(*a), SCALE, ZERO, quantized(*b), SCALE, ZERO, F32(0.25), ZERO), {}
        )
        for op in ("QLinearAdd", "QLinearMul") for a, b in (((2, 3), (1, 3)), ((1, 3), (2, 1)), ((2, 3), (2, 3)))
    },
    "SkipLayerNormalization": (
        "SkipLayerNormalization", MICROSOFT, (numbers(2, 3, 4), numbers(1, 3, 4), numbers(4), numbers(4)), {}
    ),
    "Attention": ("Attention", "", (numbers(1, 2, 3, 4), numbers(1, 2, 5, 4), numbers(1, 2, 5, 4)), {"is_causal": 1}),
    "Attention of grouped heads": (
        "Attention", "", (numbers(1, 4, 3, 4), numbers(1, 2, 5, 4), numbers(1, 2, 5, 4), numbers(3, 5)), {}
    ),
    "Attention of rank 3": (
        "Attention", "", (numbers(1, 3, 8), numbers(1, 5, 8), numbers(1, 5, 8)), {"q_num_heads": 2, "kv_num_heads": 2}
    ),
    "RotaryEmbedding": (
        "RotaryEmbedding", "", (numbers(1, 2, 3, 4), numbers(6, 2), numbers(6, 2), np.array([[0, 2, 5]])), {}
    ),
    "RotaryEmbedding of rank 3": (
        "RotaryEmbedding", "", (numbers(1, 3, 8), numbers(1, 3, 2), numbers(1, 3, 2)), {"num_heads": 2}
    ),
    "blocks of rows": (
        "QuantizeLinear", "", (numbers(5, 4), scales(3, 4), quantized(3, 4)), {"axis": 0, "block_size": 2}
    ),
    "blocks of columns": (
        "DequantizeLinear", "", (quantized(4, 6), scales(4, 2), quantized(4, 2)), {"axis": 1, "block_size": 3}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_named_sizes(name: str) -> None:
    op, domain, arrays, attributes = NAMED[name]
    names = [f"x{i}" for i in range(len(arrays))]
    node = helper.make_node(op, names, ["y"], domain=domain, **attributes)
    sized = [i for i, array in enumerate(arrays) if array.ndim]
    inputs = [(names[i], arrays[i].dtype, [f"{names[i]}_{axis}" for axis in range(arrays[i].ndim)]) for i in sized]
    constants = {names[i]: arrays[i] for i in range(len(arrays)) if i not in sized}
    model = make_model([node], inputs, ["y"], constants, 23)
    if domain:
        model.opset_import.append(helper.make_opsetid(domain, 1))
    feeds = [arrays[i] for i in sized]
    (expected,) = onnxruntime_answers(model, feeds)
    if not op.startswith("QLinear"):
        expect(model, expected, *feeds, rtol=1e-4, atol=1e-5)
        return
    for machine in machines(from_onnx(model), WAYS).values():
        (got,) = outputs(plain(machine["main"](*feeds)))
        assert got.dtype == expected.dtype
        # ONNX Runtime rounds in another order, so a value next to a half can differ by one step.
        np.testing.assert_allclose(got.astype(np.int64), expected.astype(np.int64), atol=1, rtol=0)


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(
    ("op", "arrays", "attributes", "message"),
    [
        ("AveragePool", (numbers(1, 1, 2),), {"kernel_shape": [3]}, "window 3 exceeds padded input size 2"),
        ("ArgMax", (numbers(1, 0),), {"axis": 1}, "expected at least 1 element along axis 1 of x, got 0"),
        ("Concat", (numbers(1, 2), numbers(1, 3)), {"axis": 0}, ""),
    ],
)
def test_messages_name_the_node_and_its_operator(
    op: str, arrays: tuple, attributes: dict, message: str, symbolic: bool
) -> None:
    """They do not name the relvm operators of which the node is composed."""
    with pytest.raises(RelvmShapeError) as raised:
        for machine in machines(from_onnx(node_model(op, arrays, attributes, 17, symbolic=symbolic)), WAYS).values():
            machine["main"](*arrays)
    text = str(raised.value).partition("\n")[0]
    assert re.fullmatch(rf"\w+: node 'y' \({op}, opset 17\): .*{re.escape(message)}.*", text)
    assert not re.search(r"\): (average_pool|argmax|concat|match_cast)", text)
