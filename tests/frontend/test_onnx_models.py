"""Real models, from the file to the answer, in both modes and on both kinds of kernels, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from modes import assert_same_bits, machines, plain
from real_models import MODELS, onnxruntime_outputs

from relvm.frontend.onnx import from_onnx


@pytest.mark.parametrize("name", MODELS)
def test_a_real_model_answers_as_onnxruntime_does(name: str) -> None:
    model = MODELS[name]
    module = from_onnx(model.path())
    attributes = dict(module["main"].attributes)
    ways = machines(module)
    for case in model.cases:
        expected = onnxruntime_outputs(model.path(), case)
        inputs = [case[n] for n in attributes["input_names"]]
        results = {way: plain(machine["main"](*inputs)) for way, machine in ways.items()}
        for target in ("c", "numpy"):
            assert_same_bits(results["bytecode", target], results["compiled", target])
            result = results["bytecode", target]
            outputs = result if isinstance(result, tuple) else (result,)
            for output_name, got in zip(attributes["output_names"], outputs, strict=True):
                want = expected[output_name]
                assert got.shape == want.shape and got.dtype == want.dtype
                assert np.abs(got - want).max() <= model.tolerance * max(1.0, float(np.abs(want).max()))


def test_one_executable_serves_every_batch_size() -> None:
    model = MODELS["magika"]
    machine = machines(from_onnx(model.path()))["compiled", "c"]
    both = plain(machine["main"](model.cases[1]["bytes"]))
    first = plain(machine["main"](model.cases[0]["bytes"]))
    assert both.shape == (4, 214) and first.shape == (1, 214)
    np.testing.assert_allclose(both[:1], first, atol=1e-6)
