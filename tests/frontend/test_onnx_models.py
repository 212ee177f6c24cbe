"""Real models, from the file to the answer, in both modes and on both kinds of kernels, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from frontend.onnx_answers import answers, onnxruntime_answers
from identify_file import features
from modes import machines, plain

from benchmarks.models.catalogue import MODELS
from relvm.frontend.onnx import from_onnx

TOLERANCE = 1e-4  # relative to the largest value
CASES = {
    "magika": [*MODELS["magika"].cases(), {"bytes": features(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n", 1024, 256)}],
    "oww_hey_jarvis": MODELS["oww_hey_jarvis"].cases(),
}


@pytest.mark.parametrize("name", CASES)
def test_a_real_model_answers_as_onnxruntime_does(name: str) -> None:
    path = MODELS[name].path()
    module = from_onnx(path)
    made = machines(module)
    for case in CASES[name]:
        inputs = [case[n] for n in dict(module["main"].attributes)["input_names"]]
        expected = onnxruntime_answers(path, inputs)
        for results in answers(made, "main", inputs).values():
            for got, want in zip(results, expected, strict=True):
                assert got.shape == want.shape and got.dtype == want.dtype
                assert np.abs(got - want).max() <= TOLERANCE * max(1.0, float(np.abs(want).max()))


def test_one_executable_serves_every_batch_size() -> None:
    machine = machines(from_onnx(MODELS["magika"].path()))["compiled", "c"]
    one, four, _ = (plain(machine["main"](case["bytes"])) for case in CASES["magika"])
    assert four.shape == (4, 214) and one.shape == (1, 214)
    np.testing.assert_allclose(four[:1], one, atol=1e-6)
