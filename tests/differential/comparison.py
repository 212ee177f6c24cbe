"""Comparison of a random model with static sizes, with symbolic sizes, and in ONNX Runtime."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from differential.onnxruntime_process import OnnxRuntimeProcess, OnnxRuntimeRefusal
from differential.random_models import RandomModel, draw
from frontend.onnx_answers import outputs
from frontend.onnx_models import onnx
from onnx import helper
from support.modes import plain

from relvm import vm
from relvm.errors import RelvmError
from relvm.frontend.onnx import from_onnx

# Operators that turn NaN and infinities into ordinary numbers.  Their results can differ, because ONNX Runtime's vector
# code ignores NaN in some maxima, and returns a finite number for a maximum of -inf.
_UNLIKE_SPECIAL = {"ArgMax", "ArgMin", "TopK", "Cast", "Less", "Equal", "GreaterOrEqual"}
_LARGE = 100.0

Arrays = list[np.ndarray]


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def _resizes_by_corners(model: RandomModel) -> bool:
    return any(
        node.op_type == "Resize" and _attributes(node).get("coordinate_transformation_mode") == b"align_corners"
        for node in model.nodes
    )


def _pads_what_is_dilated(model: RandomModel) -> bool:
    pools = [_attributes(node) for node in model.nodes if node.op_type == "MaxPool"]
    return any(pool.get("auto_pad", b"").startswith(b"SAME") and "dilations" in pool for pool in pools)


def _normalizes_instances(model: RandomModel) -> bool:
    return any(node.op_type == "InstanceNormalization" for node in model.nodes)


def _orders_what_may_be_nan(model: RandomModel) -> bool:
    used = {node.op_type for node in model.nodes}
    return bool(used & _EXTREMES) and bool(used & {"Div", "Sqrt", "Exp"})


_EXTREMES = {"ArgMax", "ArgMin", "TopK", "ReduceMax", "ReduceMin", "MaxPool", "GlobalMaxPool", "Max", "Min"}


def _orders_what_is_interpolated(model: RandomModel) -> bool:
    used = {node.op_type for node in model.nodes}
    return "Resize" in used and bool(used & {"ArgMax", "ArgMin", "TopK"})


def _resizes_by_a_fraction(model: RandomModel) -> bool:
    scales = [model.constants[node.input[2]] for node in model.nodes if node.op_type == "Resize" and node.input[2]]
    return any(((each > 1) & (each < 2)).any() for each in scales)


def _pools_with_gaps(model: RandomModel) -> bool:
    pools = [_attributes(node) for node in model.nodes if node.op_type == "LpPool"]
    return any(
        pool.get("auto_pad", b"").startswith(b"SAME") and any(map(int.__lt__, pool["kernel_shape"], pool["strides"]))
        for pool in pools
    )


# Known differences from ONNX Runtime's results, each with its reason.
DIFFERENCES: dict[str, Callable[[RandomModel], bool]] = {
    "Resize by align_corners to a fractional size: the suite of ONNX keeps the fraction, ONNX Runtime rounds it": (
        _resizes_by_corners
    ),
    "auto_pad SAME with dilations: ONNX pads to ceil(size / stride), ONNX Runtime leaves the dilations out": (
        _pads_what_is_dilated
    ),
    "InstanceNormalization of equal elements: what rounding leaves of a variance of 0 is multiplied by 316": (
        _normalizes_instances
    ),
    "Extremes and positions of NaN: the first NaN here, as in NumPy; ONNX Runtime leaves some out": (
        _orders_what_may_be_nan
    ),
    "Positions in order of interpolated elements: those that are equal but for their last bit change places": (
        _orders_what_is_interpolated
    ),
    "Resize by a fraction that leaves an axis as long as it is: ONNX interpolates, ONNX Runtime copies": (
        _resizes_by_a_fraction
    ),
    "LpPool with auto_pad SAME and strides beyond the window: ONNX Runtime pads by negative numbers": (
        _pools_with_gaps
    ),
}


def difference(ours: Arrays, theirs: Arrays, *, special: bool = False) -> str:
    """Describe the first difference, or return '' if there is none.  special: the inputs had special numbers."""
    if len(ours) != len(theirs):
        return f"{len(ours)} outputs and {len(theirs)}"
    for i, (x, y) in enumerate(zip(map(np.asarray, ours), map(np.asarray, theirs), strict=True)):
        if (x.dtype, x.shape) != (y.dtype, y.shape):
            return f"output {i}: {x.dtype}{x.shape} and {y.dtype}{y.shape}"
        if x.dtype.kind != "f":
            if not np.array_equal(x, y):
                return f"output {i}: {x.ravel()[:8]} and {y.ravel()[:8]}"
            continue
        with np.errstate(all="ignore"):
            finite = np.abs(y[np.isfinite(y)]).astype(np.float64)
            scale = float(finite.max()) if finite.size else 1.0
            close = np.isclose(x, y, rtol=2e-4, atol=max(1e-5, 2e-6 * scale), equal_nan=True)
            if special:
                close |= ~np.isfinite(x) | ~np.isfinite(y) | (scale > 1e30)
        if not close.all():
            return f"output {i}: {x[~close].ravel()[:6]} and {y[~close].ravel()[:6]}"
    return ""


def is_special(arrays: Arrays) -> bool:
    """Return whether an input has special numbers: not finite, above 100 or below 1e-30 in magnitude (such as 0)."""
    return any(bool((~np.isfinite(a) | (np.abs(a) > _LARGE) | (np.abs(a) < 1e-30)).any()) for a in arrays)


@dataclass
class Report:
    """The results of a comparison.

    counts: the number of runs by outcome.   faults: descriptions of failures, a line each.
    """

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


class Comparison:
    """Compares models and collects the results in a report.

    build: a function that builds a machine from a model.
    """

    def __init__(self, onnxruntime: OnnxRuntimeProcess, build: Callable[[onnx.ModelProto], Any] | None = None) -> None:
        self.onnxruntime = onnxruntime
        self.build = build or (lambda model: vm.VirtualMachine(vm.build(from_onnx(model), "bytecode", "numpy")))
        self.report = Report()

    def attempt(self, place: str, function: Callable[[], Arrays]) -> Arrays | None:
        """Call the function and return its result, or None if it raises an error.

        Errors other than relvm's typed errors are reported as faults.
        """
        try:
            return function()
        except RelvmError:
            return None
        except Exception as error:
            self.report.faults.append(f"{place}: {type(error).__name__}: {error}")
            return None

    def model(self, seed: int, runs: int = 3) -> None:
        """Compare the model that is drawn from a seed, with inputs of several sizes."""
        model = draw(seed, self.onnxruntime.run)
        random = np.random.default_rng([seed, 1])
        symbolic = self.attempt(f"seed {seed}, building", lambda: self.build(model.proto()))
        for number in range(runs):
            sizes = model.sizes if number == 0 else model.other_sizes(random)
            arrays = model.arrays(sizes, random)
            special = is_special(arrays)
            if special and any(node.op_type in _UNLIKE_SPECIAL for node in model.nodes):
                arrays = [np.where(np.isfinite(a) & (np.abs(a) < _LARGE), a, np.float32(1)) for a in arrays]
            self.run(f"seed {seed}, run {number}", model, symbolic, sizes, arrays, special)

    def run(
        self, place: str, model: RandomModel, symbolic: Any, sizes: dict[str, int], arrays: Arrays, special: bool
    ) -> None:
        def of(machine: Any) -> Arrays:
            return outputs(plain(machine["main"](*arrays)))

        static = self.attempt(f"{place}, static", lambda: of(self.build(model.proto(sizes))))
        dynamic = None if symbolic is None else self.attempt(f"{place}, dynamic", lambda: of(symbolic))
        try:
            theirs = self.onnxruntime.run(model.proto(sizes), arrays)
        except OnnxRuntimeRefusal:
            theirs = None
        counts, faults = self.report.counts, self.report.faults
        counts["runs"] += 1
        if static is not None and dynamic is not None and (found := difference(static, dynamic, special=special)):
            faults.append(f"{place}: static and dynamic: {found}")
        if theirs is None:
            counts["refused by ONNX Runtime"] += 1
            counts["refused by ONNX Runtime only"] += static is not None and dynamic is not None
            if (static is None) != (dynamic is None):
                counts[f"{'dynamic' if static is None else 'static'} where ONNX Runtime refuses"] += 1
            return
        counts["refused by relvm, static"] += static is None
        counts["refused by relvm, dynamic"] += dynamic is None
        counts["answered by all"] += static is not None and dynamic is not None
        listed = any(applies(model) for applies in DIFFERENCES.values())
        for name, ours in (("static", static), ("dynamic", dynamic)):
            found = "" if ours is None else difference(ours, theirs, special=special)
            if found and listed:
                counts["listed differences"] += 1
            elif found:
                faults.append(f"{place}: {name} and ONNX Runtime: {found}")
