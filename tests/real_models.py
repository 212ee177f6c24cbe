"""Real models and inputs for them, out of pip packages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from identify_file import features
from package_files import package_file


@dataclass(frozen=True)
class RealModel:
    """tolerance: how far outputs may be from ONNX Runtime's, relative to the largest value."""

    requirement: str
    member: str
    cases: tuple[dict[str, np.ndarray], ...]
    tolerance: float = 1e-4

    def path(self) -> Path:
        return package_file(self.requirement, self.member)


def _bytes(*texts: bytes) -> np.ndarray:
    return np.concatenate([features(text, 1024, 256) for text in texts])


_PYTHON = (
    b"import os\nimport sys\n\n\ndef main(argv):\n    for a in argv[1:]:\n        print(os.path.abspath(a))\n" * 20
)
_HTML = b"<!DOCTYPE html>\n<html><head><title>t</title></head><body>\n<p>hello <b>world</b></p>\n</body></html>\n" * 9


def _frames(seed: int) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal((1, 16, 96)) * 8).astype(np.float32)


MODELS = {
    "magika": RealModel(
        "magika==1.0.3",
        "magika/models/standard_v3_3/model.onnx",
        (
            {"bytes": _bytes(_PYTHON)},
            {"bytes": _bytes(_PYTHON, _HTML, _PYTHON[7:], _HTML[5:])},
            {"bytes": _bytes(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n")},
        ),
    ),
    # Seed 0 scores below a half and takes the else branch, seed 2 above and takes the other.
    "oww_hey_jarvis": RealModel(
        "openwakeword==0.4.0",
        "openwakeword/resources/models/hey_jarvis_v0.1.onnx",
        ({"x.1": _frames(0)}, {"x.1": _frames(2)}),
    ),
}


def onnxruntime_outputs(path: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What ONNX Runtime gives, by output name."""
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))
