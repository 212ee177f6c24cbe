"""Real models that can be exported: small models from pip packages, and a classifier of scikit-learn's digits."""

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
# The sizes of the models' symbolic dimensions: a number, or the minimum and the maximum.
DIMS = {
    "oww_alexa": {},
    "mtcnn_o": {"N": (1, 16)},
    "atspm_func_head": {"D": (1, 16), "K": (1, 10)},
    "swift_f0": {"samples": 8000},
    DIGITS: {"X_dim0": (1, 8)},
}
SMALL = (DIGITS, "oww_alexa")  # models that fit into the memory of microcontrollers


@dataclass(frozen=True)
class RealModel:
    """A model, and the arguments of several calls."""

    module: Module
    calls: tuple[tuple[np.ndarray, ...], ...]


@cache
def real_model(name: str) -> RealModel:
    """Return the model with a name in DIMS.  Skip the test if the package with the model is not available."""
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
    """Return other arguments of the same shapes, in which the last axis of the first one is reversed."""
    first, *others = call
    return (np.ascontiguousarray(first[..., ::-1]), *others)


def write_with_trial(model: RealModel, folder: Path, target: str = "c") -> None:
    """Export a model with a self-test: its first call must have the result of a machine built for `target`."""
    args = model.calls[0]
    result = vm.VirtualMachine(vm.build(model.module, "compiled", target))["main"](*args)
    aot.build(model.module).write(folder, (args, [result]))


@cache
def digits() -> tuple[np.ndarray, MLPClassifier]:
    """Return images of digits, (1797, 64) in [0, 1], and a network trained on them."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32)
    return images, MLPClassifier((32,), tol=1e-2, random_state=0).fit(images, labels)


def digits_model(*, zipmap: bool = True) -> onnx.ModelProto:
    """Return the network as an ONNX model with one input X.  zipmap: whether skl2onnx adds a ZipMap."""
    images, classifier = digits()
    return to_onnx(classifier, images[:1], options={id(classifier): {"zipmap": zipmap}})
