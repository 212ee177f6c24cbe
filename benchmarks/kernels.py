"""Compare kernels with libraries, on one thread:   OPENBLAS_NUM_THREADS=1 python -m benchmarks.kernels

The table has billions of operations per second (a multiplication and an addition are two) for matrix products and
convolutions, with floats and with bytes (QLinearConv).  relvm's kernels are compared with NumPy's matrix product
(OpenBLAS) and with ONNX Runtime.  Weights are constants, which relvm and ONNX Runtime pack.

The last line has the microseconds of a network of three layers at batch size 1.  It includes TVM if RELVM_TVM_PYTHON
is an interpreter with apache-tvm and onnx.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from benchmarks.models.peers import tvm_milliseconds
from relvm import vm
from relvm.frontend.onnx import from_onnx

_RANDOM = np.random.default_rng(0)
_SECONDS, _ROUNDS = 0.15, 5

# Rows, columns and depth.
PRODUCTS = [(1, 512, 512), (16, 384, 384), (64, 768, 768), (128, 1536, 384), (512, 512, 512), (1024, 1024, 1024)]
# Channels, filters, height and width, window, stride, groups.
CONVOLUTIONS = [
    (3, 32, 112, 3, 2, 1),
    (24, 24, 104, 3, 1, 1),
    (64, 64, 56, 3, 1, 1),
    (96, 96, 52, 3, 1, 1),
    (256, 256, 14, 3, 1, 1),
    (96, 96, 52, 3, 2, 1),
    (64, 256, 56, 1, 1, 1),
    (192, 384, 20, 1, 1, 1),
    (64, 64, 112, 3, 1, 64),
    (192, 192, 28, 5, 1, 192),
]
# The same for 8-bit convolutions.
BYTE_CONVOLUTIONS = [
    (3, 32, 224, 3, 2, 1),
    (64, 64, 56, 3, 1, 1),
    (128, 128, 28, 3, 1, 1),
    (256, 256, 14, 3, 1, 1),
    (64, 128, 56, 3, 2, 1),
    (256, 64, 56, 1, 1, 1),
    (64, 256, 56, 1, 1, 1),
    (96, 96, 56, 3, 1, 96),
    (96, 96, 28, 5, 1, 96),
]


def _numbers(*shape: int) -> np.ndarray:
    return _RANDOM.standard_normal(shape).astype(np.float32) / np.float32(np.sqrt(shape[-1]))


def _model(nodes: list, constants: dict[str, np.ndarray], x: np.ndarray) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _runs(model: onnx.ModelProto, x: np.ndarray) -> dict[str, Callable]:
    run = vm.VirtualMachine(vm.build(from_onnx(model), "compiled"), num_threads=1)["main"]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return {"relvm": lambda: run(x), "onnxruntime": lambda: session.run(None, {"x": x})}


def _seconds(runs: dict[str, Callable]) -> dict[str, float]:
    """Return the median time of each function in seconds.  The functions take turns, in blocks of calls."""
    times: dict[str, list[float]] = {who: [] for who in runs}
    for _ in range(_ROUNDS):
        for who, run in runs.items():
            end = time.perf_counter() + _SECONDS
            while time.perf_counter() < end:
                started = time.perf_counter()
                run()
                times[who].append(time.perf_counter() - started)
    return {who: float(np.median(taken)) for who, taken in times.items()}


def _print(name: str, operations: float, seconds: dict[str, float]) -> None:
    cells = (f"{operations / seconds[who] / 1e9:.0f}" if who in seconds else "" for who in _WHO)
    print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


_WHO = ("relvm", "onnxruntime", "NumPy")


def main() -> None:
    print("| | " + " | ".join(_WHO) + " |\n|---|" + "---|" * len(_WHO))
    for rows, columns, depth in PRODUCTS:
        x, w = _numbers(rows, depth), _numbers(depth, columns)
        runs = _runs(_model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"w": w}, x), x)
        out = np.empty((rows, columns), np.float32)
        runs["NumPy"] = lambda x=x, w=w, out=out: np.matmul(x, w, out=out)
        _print(f"GEMM {rows} x {depth} x {columns}", 2 * rows * columns * depth, _seconds(runs))
    for sizes in CONVOLUTIONS:
        channels, filters, side, window, _, groups = sizes
        x, w = _numbers(1, channels, side, side), _numbers(filters, channels // groups, window, window)
        node = helper.make_node("Conv", ["x", "w", "b"], ["c"], **_attributes(*sizes))
        nodes = [node, helper.make_node("Relu", ["c"], ["y"])]
        seconds = _seconds(_runs(_model(nodes, {"w": w, "b": _numbers(filters)}, x), x))
        _print(_name(*sizes), _operations(*sizes), seconds)
    for sizes in BYTE_CONVOLUTIONS:
        _print(f"{_name(*sizes)}, 8-bit", _operations(*sizes), _seconds(_byte_runs(*sizes)))
    _network()


def _attributes(channels: int, filters: int, side: int, window: int, stride: int, groups: int) -> dict:
    return {"pads": [window // 2] * 4, "strides": [stride] * 2, "group": groups}


def _operations(channels: int, filters: int, side: int, window: int, stride: int, groups: int) -> float:
    return 2 * channels // groups * filters * window * window * ((side - 1) // stride + 1) ** 2


def _name(channels: int, filters: int, side: int, window: int, stride: int, groups: int) -> str:
    kind = "depthwise" if groups > 1 else "convolution"
    return f"{kind} {window} x {window}{', stride 2' if stride > 1 else ''}, {channels} to {filters}, {side} x {side}"


def _byte_runs(channels: int, filters: int, side: int, window: int, stride: int, groups: int) -> dict[str, Callable]:
    x = _RANDOM.integers(0, 256, (1, channels, side, side), np.uint8)
    constants = {
        "x_scale": np.float32(0.02),
        "x_zero": np.uint8(120),
        "w": _RANDOM.integers(-128, 128, (filters, channels // groups, window, window), np.int8),
        "w_scale": _RANDOM.uniform(0.001, 0.01, filters).astype(np.float32),
        "w_zero": np.zeros(filters, np.int8),
        "y_scale": np.float32(0.8),
        "y_zero": np.uint8(7),
        "b": _RANDOM.integers(-1000, 1000, filters, np.int32),
    }
    attributes = _attributes(channels, filters, side, window, stride, groups)
    node = helper.make_node("QLinearConv", ["x", *constants], ["y"], **attributes)
    return _runs(_model([node], {name: np.asarray(value) for name, value in constants.items()}, x), x)


def _network() -> None:
    """Print the times of a network with layers 256-512-512-10 at batch size 1."""
    sizes = (256, 512, 512, 10)
    constants, nodes, last = {}, [], "x"
    for layer, (depth, columns) in enumerate(pairwise(sizes)):
        constants |= {f"w{layer}": _numbers(depth, columns), f"b{layer}": _numbers(columns)}
        nodes.append(helper.make_node("Gemm", [last, f"w{layer}", f"b{layer}"], [f"g{layer}"]))
        last = "y" if layer == 2 else f"r{layer}"
        nodes.append(helper.make_node("Relu" if layer < 2 else "Identity", [f"g{layer}"], [last]))
    x = _numbers(1, 256)
    model = _model(nodes, constants, x)
    runs = _runs(model, x)

    def numpy_network() -> np.ndarray:
        value = x
        for layer in range(3):
            value = value @ constants[f"w{layer}"] + constants[f"b{layer}"]
            value = np.maximum(value, 0) if layer < 2 else value
        return value

    seconds = _seconds(runs | {"NumPy": numpy_network})
    found = [f"{who} {1e6 * seconds[who]:.1f}" for who in _WHO]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.onnx"
        onnx.save(model, path)
        if tvm := tvm_milliseconds(path, [{"x": x}], threads=1):
            found.append(f"TVM {1e3 * tvm[0]:.1f}")
    print("\n256-512-512-10 at batch 1, microseconds: " + ", ".join(found))


if __name__ == "__main__":
    main()
