"""Tests of ONNX operators before opset 7, compared with NumPy, because ONNX Runtime does not support them."""

from __future__ import annotations

import numpy as np
import pytest
from frontend.onnx_models import make_model, parse_model
from onnx import helper
from support.modes import WAYS, machines, plain

from relvm.errors import RelvmShapeError
from relvm.frontend.onnx import from_onnx

RANDOM = np.random.default_rng(9)
X = RANDOM.standard_normal((2, 3, 4)).astype(np.float32)
FUNCTIONS = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Greater": np.greater,
    "Pow": lambda x, y: np.abs(x) ** y,
}


def of_two(op: str, second: tuple[int, ...], **attributes):
    """Return a module that applies `op` to x and a second tensor.  Powers use |x|, to avoid NaN."""
    nodes = [helper.make_node("Abs" if op == "Pow" else "Identity", ["x"], ["z"])]
    nodes.append(helper.make_node(op, ["z", "y"], ["r"], **attributes))
    given = [("x", np.float32, ["n", 3, 4]), ("y", np.float32, list(second))]
    return from_onnx(make_model(nodes, given, ["r"], {}, 6))


@pytest.mark.parametrize("op", FUNCTIONS)
@pytest.mark.parametrize(
    ("shape", "axis", "laid"),
    [((3,), 1, (3, 1)), ((3,), -2, (3, 1)), ((3, 4), 1, (3, 4)), ((1, 3), 0, (1, 3, 1)), ((4,), None, (4,))],
)
def test_the_second_tensor_begins_at_an_axis(op: str, shape, axis, laid) -> None:
    attributes = {"broadcast": 1} if axis is None else {"broadcast": 1, "axis": axis}
    y = RANDOM.standard_normal(shape).astype(np.float32)
    for machine in machines(of_two(op, shape, **attributes), WAYS).values():
        np.testing.assert_allclose(plain(machine["main"](X, y)), FUNCTIONS[op](X, y.reshape(laid)), rtol=1e-5)


def test_a_second_tensor_that_ends_behind_the_first_is_refused() -> None:
    with pytest.raises(
        RelvmShapeError,
        match="cannot broadcast the second input, of rank 2, to the first, of rank 3, starting at axis 2",
    ):
        of_two("Add", (4, 1), broadcast=1, axis=2)


@pytest.mark.parametrize("count", [1, 3])
def test_slopes_of_channels(count: int) -> None:
    model = parse_model(
        f"g (float[n, 3, w] x, float[{count}] slope) => (float[n, 3, w] y) {{ y = PRelu(x, slope) }}", 6
    )
    slope = RANDOM.standard_normal(count).astype(np.float32)
    for machine in machines(from_onnx(model), WAYS).values():
        np.testing.assert_allclose(plain(machine["main"](X, slope)), np.where(X < 0, X * slope[:, None], X), rtol=1e-6)
