"""Fuzz tests of the ONNX importer: a damaged model is imported or raises a RelvmError, within a time limit."""

from __future__ import annotations

import warnings
from collections import Counter

from frontend.onnx_models import onnx
from frontend.onnx_suite import suite_models
from limits import at_most, rounds
from onnx_mutations import mutated

from relvm.errors import RelvmError
from relvm.frontend.onnx import from_onnx
from relvm.ir.type_inference import infer_types
from relvm.ir.verifier import Stage, verify

LARGEST_BYTES = 2000  # limit on the size of a model


def models() -> list[onnx.ModelProto]:
    """Return the small models among the onnx package's test cases for single operators."""
    return [model for model in suite_models() if model.ByteSize() <= LARGEST_BYTES]


def take(model: onnx.ModelProto | bytes) -> str:
    """Import a model and return the outcome."""
    try:
        module = from_onnx(model)
    except RelvmError as error:
        assert str(error)
        return "refused"
    verify(infer_types(module), Stage.TYPED)
    return "imported"


def test_changed_models() -> None:
    came, given = Counter(), models()
    for seed, random in rounds(200):
        model = mutated(given, random)
        try:
            with at_most(100), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                came[take(model)] += 1
        except BaseException as error:
            error.add_note(f"seed {seed}; the model is {model}")
            raise
    print(dict(came))
    assert min(came["refused"], came["imported"]) > 20, came
