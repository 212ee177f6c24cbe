"""Real models that can be exported: small ones out of pip packages, and a classifier of scikit-learn's digits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from frontend.onnx_models import onnx
from models.paths import path_of
from skl2onnx import to_onnx
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

from benchmarks.models.catalogue import MODELS
from relvm import aot, vm
from relvm.frontend.onnx import from_onnx
from relvm.ir.expr import Module

DIGITS = "digits"
# The sizes of the models' symbolic dimensions: a number, or the least and the greatest.
DIMS = {
    "oww_alexa": {},
    "mtcnn_o": {"N": (1, 16)},
    "atspm_func_head": {"D": (1, 16), "K": (1, 10)},
    "swift_f0": {"samples": 8000},
    DIGITS: {"X_dim0": (1, 8)},
}
SMALL = (DIGITS, "oww_alexa")  # those that microcontrollers have room for


@dataclass(frozen=True)
class RealModel:
    """A model, and arguments to try it on."""

    module: Module
    calls: tuple[tuple[np.ndarray, ...], ...]


@cache
def real_model(name: str) -> RealModel:
    """A model by its name in DIMS; skips the test where its package cannot be had."""
    if name == DIGITS:
        images, _ = digits()
        return RealModel(from_onnx(digits_model(), dims=DIMS[name]), ((images[:1],), (images[8:11],), (images[-8:],)))
    model = MODELS[name]
    module = from_onnx(path_of(model), dims=DIMS[name])
    names = module["main"].input_names
    calls = [tuple(case[key] for key in names) for case in model.cases() if _fits(name, case)]
    return RealModel(module, (*calls, *map(_backwards, calls)))


def _fits(name: str, case: Mapping[str, np.ndarray]) -> bool:
    """Return whether a case of the catalogue has the sizes of DIMS."""
    return name != "swift_f0" or case["audio"].shape == (1, DIMS[name]["samples"])


def _backwards(call: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Arguments of the same shapes: the first back to front."""
    first, *others = call
    return (np.ascontiguousarray(first[..., ::-1]), *others)


def write_with_trial(model: RealModel, folder: Path, target: str = "c") -> None:
    """An export of a model, with a trial of its first call on what a machine of a target gives."""
    args = model.calls[0]
    result = vm.VirtualMachine(vm.build(model.module, "compiled", target))["main"](*args)
    aot.build(model.module).write(folder, (args, [result]))


@cache
def digits() -> tuple[np.ndarray, MLPClassifier]:
    """Images of digits, (1797, 64) in [0, 1], and a network that has learned them."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32)
    return images, MLPClassifier((32,), tol=1e-2, random_state=0).fit(images, labels)


def digits_model(*, zipmap: bool = True) -> onnx.ModelProto:
    """The network as an ONNX model of one input X.  zipmap: whether probabilities are a map, as skl2onnx makes them."""
    images, classifier = digits()
    return to_onnx(classifier, images[:1], options={id(classifier): {"zipmap": zipmap}})
