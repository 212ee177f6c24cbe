"""Outputs of a model, by position and by name."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from relvm.errors import RelvmNameError
from relvm.runtime.named_outputs import outputs_class

SCORES, LABEL = np.zeros((2, 3), np.float32), np.array([7])
OUTPUTS = outputs_class(["scores", "label"])((SCORES, LABEL))


def test_outputs_are_a_tuple_and_a_mapping() -> None:
    scores, label = OUTPUTS
    assert scores is SCORES and label is LABEL and OUTPUTS[1] is LABEL and OUTPUTS[:1] == (SCORES,)
    assert OUTPUTS["scores"] is SCORES and dict(OUTPUTS)["label"] is LABEL and OUTPUTS.values() == (SCORES, LABEL)
    assert OUTPUTS.get("label") is LABEL and OUTPUTS.get("x") is None and OUTPUTS.get("x", 3) == 3


def test_names_are_contained() -> None:
    assert "scores" in OUTPUTS and "x" not in OUTPUTS
    assert 5 in outputs_class(["n"])((5,)) and 6 not in outputs_class(["n"])((5,))


def test_a_wrong_name_is_an_error_with_the_names() -> None:
    with pytest.raises(RelvmNameError, match="no output score; did you mean scores"):
        OUTPUTS["score"]
    with pytest.raises(AttributeError, match=r"no attribute scores; write outputs\['scores'\]"):
        _ = OUTPUTS.scores
    with pytest.raises(AttributeError, match="no attribute x; the outputs are scores, label"):
        _ = OUTPUTS.x


def test_a_repr_shows_names_and_has_ten_lines_at_most() -> None:
    assert repr(OUTPUTS).splitlines() == [
        "2 outputs",
        "  scores: float32[2, 3] 0.0, 0.0, 0.0, 0.0, ...",
        "  label: int64[1] 7",
    ]
    many = repr(outputs_class([f"y{i}" for i in range(30)])(range(30))).splitlines()
    assert len(many) == 10 and many[0] == "30 outputs" and many[-1] == "  ... 22 more"


def test_outputs_can_be_pickled() -> None:
    copied = pickle.loads(pickle.dumps(OUTPUTS))
    assert copied.names == ("scores", "label") and copied["label"].tolist() == [7]
