"""Measure the algorithms of f32 convolutions, on one thread:   python -m benchmarks.convolutions [--peers] [--every N]

The grid (convolutions.csv) has 300 convolutions of the models of benchmarks.models, without repetitions.  Each is
measured with a bias and a relu, with each algorithm that can compute it, and with the one that relvm chooses.  The loss
of the choice is its time divided by the time of the fastest algorithm.  With --peers, ONNX Runtime and OpenVINO take
part, if they are installed.

Functions take turns.  A time is the minimum of many calls, because other programs only make calls slower.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

import numpy as np
import onnx
from onnx import helper, numpy_helper

from benchmarks.models.engines import onnxruntime_runner, openvino_runner
from relvm import vm
from relvm.frontend.onnx import from_onnx
from relvm.ir.dtypes import BOOL
from relvm.ir.loop_ir import Literal
from relvm.kernels.conv.direct import DirectShape, direct_shape
from relvm.kernels.conv.sliding_window import Window, window_of
from relvm.kernels.conv.window_product import can_multiply_windows
from relvm.ops.conv_winograd import MAX_CHANNELS
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline

GRID = Path(__file__).with_suffix(".csv")
_ROUNDS, _SECONDS = 5, 0.05
_OPERATORS = {"conv_packed": "windows in place", "conv_winograd": "Winograd"}

Sizes = tuple[int, ...]
Shape = tuple[Sizes, Sizes, Sizes, Sizes, Sizes, int]  # input, weights, strides, pads, dilations, groups


def grid() -> Iterator[Shape]:
    with GRID.open(newline="") as file:
        for row in csv.DictReader(file):
            *sizes, groups = row.values()
            x, w, strides, pads, dilations = (tuple(map(int, text.split("x"))) for text in sizes)
            yield x, w, strides, pads, dilations, int(groups)


def model(shape: Shape) -> onnx.ModelProto:
    x, w, strides, pads, dilations, groups = shape
    random = np.random.default_rng(0)
    weights = (random.standard_normal(w) / math.sqrt(math.prod(w[1:]))).astype(np.float32)
    bias = random.standard_normal(w[0]).astype(np.float32)
    attributes = {"strides": strides, "pads": pads, "dilations": dilations, "group": groups}
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w", "b"], ["c"], **attributes), helper.make_node("Relu", ["c"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x)],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(bias, "b")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def operations(shape: Shape) -> int:
    """Return the number of operations of a direct convolution.  An addition counts as one, and so does a product."""
    x, w, strides, pads, dilations, _ = shape
    rank = len(w) - 2
    dims = (
        (x[2 + n] + pads[n] + pads[rank + n] - (w[2 + n] - 1) * dilations[n] - 1) // strides[n] + 1 for n in range(rank)
    )
    return 2 * x[0] * math.prod(dims) * math.prod(w)


def _algorithms(shape: Shape) -> Iterator[str]:
    """Yield the names of the algorithms that can compute a convolution."""
    _, w, strides, pads, dilations, groups = shape
    yield "im2col or sums"
    window = window_of("conv", w[2:], strides, pads, dilations)
    if not window.is_pointwise() and direct_shape(window, w[1]):
        yield "direct"
    if groups > 1:
        return
    if can_multiply_windows(window):
        yield "windows in place"
    if w[2:] == (3, 3) and {*strides, dilations[1]} == {1} and w[1] <= MAX_CHANNELS:
        yield "Winograd"


def _choice(proto: onnx.ModelProto) -> str:
    """Return the name of the algorithm that relvm chooses for the convolution of a model."""
    passes = [one for one in build_pipeline("c") if one.name in ("infer_types", "to_anf", "pack_weights")]
    names = {binding.value.op.name for binding in run_passes(from_onnx(proto), passes)["main"].body.bindings}
    if found := [name for op, name in _OPERATORS.items() if op in names]:
        return found[0]
    return "direct" if "rvm_direct_tile_f32" in vm.build(from_onnx(proto), "compiled").source else "im2col or sums"


def _direct_shape(batch, channels: int, filters: int, dims, window: Window, **_) -> DirectShape | None:
    """Take the place of `direct_shape_if_faster`, as if direct convolutions were always faster."""
    return direct_shape(window, channels)


def _relvm(proto: onnx.ModelProto, x: np.ndarray, algorithm: str) -> Callable:
    """Return a function that runs a model whose convolution is computed by the given algorithm."""
    direct = _direct_shape if algorithm == "direct" else lambda *_, **options: None
    in_tiles, in_place = Literal(algorithm == "Winograd", BOOL), algorithm == "windows in place"
    with (
        mock.patch("relvm.passes.pack_weights._is_winograd_faster", lambda *_: in_tiles),
        mock.patch("relvm.passes.pack_weights.is_window_product_faster", lambda *_: in_place),
        mock.patch("relvm.ops.convolution.direct_shape_if_faster", direct),
    ):
        executable = vm.build(from_onnx(proto), "compiled")
    run = vm.VirtualMachine(executable, num_threads=1)["main"]
    return lambda: run(x)


def _peers(proto: onnx.ModelProto, x: np.ndarray) -> dict[str, Callable]:
    runners = {"onnxruntime": onnxruntime_runner, "openvino": openvino_runner}
    found = {name: runner(proto.SerializeToString(), 1) for name, runner in runners.items() if find_spec(name)}
    return {name: lambda run=run: run({"x": x}) for name, run in found.items()}


def _milliseconds(runs: dict[str, Callable]) -> dict[str, float]:
    best = dict.fromkeys(runs, math.inf)
    for _ in range(_ROUNDS):
        for name, run in runs.items():
            end = time.perf_counter() + _SECONDS
            while time.perf_counter() < end:
                started = time.perf_counter()
                run()
                best[name] = min(best[name], time.perf_counter() - started)
    return {name: 1e3 * seconds for name, seconds in best.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", action="store_true", help="measure ONNX Runtime and OpenVINO, too")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="measure every Nth convolution")
    options = parser.parse_args()
    losses, ratios = [], []
    print("| input | weights | strides | pads | dilations | groups | chosen | milliseconds | GFLOP/s | loss |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for shape in list(grid())[:: options.every]:
        proto, x = model(shape), np.random.default_rng(1).standard_normal(shape[0]).astype(np.float32)
        runs, chosen = {name: _relvm(proto, x, name) for name in _algorithms(shape)}, _choice(proto)
        peers = _peers(proto, x) if options.peers else {}
        times = _milliseconds(runs | peers)
        losses.append(times[chosen] / min(times[name] for name in runs))
        ratios += [times[chosen] / min(times[name] for name in peers)] if peers else []
        shown = ", ".join(f"{name} {milliseconds:.4f}" for name, milliseconds in times.items())
        cells = (*("x".join(map(str, sizes)) for sizes in shape[:5]), shape[5], chosen, shown)
        speed = operations(shape) / times[chosen] / 1e6
        print("| " + " | ".join(map(str, (*cells, f"{speed:.0f}", f"{losses[-1]:.2f}"))) + " |", flush=True)
    print(
        f"\nloss of the choice: {statistics.geometric_mean(losses):.3f} (geometric mean), {max(losses):.2f} (largest)"
    )
    if ratios:
        above = sum(ratio > 1 for ratio in ratios)
        print(
            f"time / time of the faster peer: {statistics.geometric_mean(ratios):.2f}, {above} of {len(ratios)} above 1"
        )


if __name__ == "__main__":
    main()
