"""ONNX graphs whose axes, shapes and counts are inputs: known only when the program runs."""

from __future__ import annotations

import numpy as np
import pytest
from frontend.onnx_answers import against_onnxruntime
from frontend.onnx_models import parse_model
from modes import WAYS, machines

from relvm.errors import RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.onnx import from_onnx

X = np.random.default_rng(5).standard_normal((3, 2, 4)).astype(np.float32)


def whole(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


# A graph, and values of its inputs behind x.
GRAPHS: dict[str, tuple[str, tuple[np.ndarray, ...]]] = {
    "two axes": (
        "g (float[n, 2, m] x, int64[2] axes) => (float[p] y) { y = ReduceMean<keepdims = 0>(x, axes) }",
        (whole(-1, 0),),
    ),
    "axes of unknown number": (
        "g (float[n, 2, m] x, int64[k] axes) => (float[p, q, r] y) { y = ReduceLogSumExp(x, axes) }",
        (whole(1, 2),),
    ),
    "no axes, which are all": (
        "g (float[n, 2, m] x, int64[k] axes) => (float[p, q, r] y) { y = ReduceMax(x, axes) }",
        (whole(),),
    ),
    "no axes, which are none": (
        """g (float[n, 2, m] x, int64[k] axes) => (float[p, q, r] y)
           { y = ReduceL2<noop_with_empty_axes = 1>(x, axes) }""",
        (whole(),),
    ),
    "the mean of integers": (
        """g (float[n, 2, m] x, int64[1] axes) => (int32[p, q] y)
           { i = Cast<to = 6>(x)  y = ReduceMean<keepdims = 0>(i, axes) }""",
        (whole(-2),),
    ),
    "an axis of sums": (
        "g (float[n, 2, m] x, int64[1] axis) => (float[n, 2, m] y) { y = CumSum<reverse = 1>(x, axis) }",
        (whole(-2),),
    ),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_what_the_machine_knows(name: str) -> None:
    text, values = GRAPHS[name]
    against_onnxruntime(parse_model(text, 18), X, *values)


def test_axes_of_what_is_empty() -> None:
    text, _ = GRAPHS["two axes"]
    against_onnxruntime(parse_model(text.replace("Mean", "Sum"), 18), X[:0], whole(0, 1))


# A graph, values of its inputs behind x, and what the machine says of them.
WRONG: dict[str, tuple[str, tuple[np.ndarray, ...], str]] = {
    "an axis outside": (GRAPHS["two axes"][0], (whole(0, 3),), r"axes outside \[-3, 3\)"),
    "an axis given twice": (GRAPHS["two axes"][0], (whole(0, -3),), "axes given twice"),
    "an axis of sums outside": (GRAPHS["an axis of sums"][0], (whole(-4),), r"axes outside \[-3, 3\)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_at_run_time(name: str) -> None:
    text, values, message = WRONG[name]
    for machine in machines(from_onnx(parse_model(text, 18)), WAYS).values():
        with pytest.raises(RelvmShapeError, match=rf"node 'y'.*{message}"):
            machine["main"](X, *values)


def test_a_result_whose_rank_only_the_machine_knows_is_refused() -> None:
    text = GRAPHS["two axes"][0].replace("int64[2]", "int64[k]")
    with pytest.raises(RelvmUnsupportedError, match=r"ReduceMean.*how many numbers it holds must be known"):
        from_onnx(parse_model(text, 18))
