"""Measure products with blockwise quantized weights (MatMulNBits):   python -m benchmarks.blockwise [--rows 1,16]

Each model is one MatMulNBits with random weights.  relvm and ONNX Runtime run it with the accuracy levels 0 (f32
arithmetic) and 4 (activations of 8 bits).  Each engine has a process of its own, and the processes take turns.  A time
is the median of many calls.

For one row, the table also has the share of the measured memory bandwidth (relvm.explore.views.machine_peak): the bytes
of the weights, scales and zero points, divided by the time and by the bandwidth.  It can exceed 1 if the weights fit a
cache.
"""

from __future__ import annotations

import argparse
import itertools
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from benchmarks.engine_process import EngineProcess, serve
from benchmarks.models.engines import onnxruntime_runner
from relvm.explore.views.machine_peak import measured_peaks

ENGINES = ("relvm", "onnxruntime")
_SECONDS, _MIN_RUNS, _ROUNDS = 0.05, 3, 5
_TOLERANCE = {0: 1e-3, 4: 3e-2}  # largest difference of both engines, relative to the largest result, by accuracy level
SIZES = "768x768,768x3072,3072x768,2048x2048,4096x4096,768x32000"  # depth x columns


def model(depth: int, columns: int, bits: int, block: int, has_zeros: bool, level: int) -> onnx.ModelProto:
    """Return a model with one MatMulNBits, whose input `x` has any number of rows."""
    random = np.random.default_rng(0)
    blocks = -(-depth // block)
    constants = {
        "b": random.integers(0, 256, (columns, blocks, block * bits // 8), np.uint8),
        "scales": random.uniform(0.01, 0.03, columns * blocks).astype(np.float32),
    }
    if has_zeros:
        constants["zeros"] = random.integers(0, 256, columns * -(-blocks * bits // 8), np.uint8)
    attributes = {"K": depth, "N": columns, "bits": bits, "block_size": block, "accuracy_level": level}
    node = helper.make_node("MatMulNBits", ["x", *constants], ["y"], domain="com.microsoft", **attributes)
    graph = helper.make_graph(
        [node],
        "blockwise",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", depth])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", columns])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _serve(engine: str, path: Path, depth: int, threads: int) -> None:
    """Load a model.  Answer each number of rows with the microseconds of consecutive runs.  Save their result."""
    run: Callable[[np.ndarray], Any]
    if engine == "relvm":
        import relvm

        run = relvm.load_model(path, exec_mode="compiled", num_threads=threads)
    else:
        session = onnxruntime_runner(path, threads)

        def run(x: np.ndarray) -> Any:
            return session({"x": x})[0]

    def microseconds(rows: int) -> list[float]:
        x = np.random.default_rng(1).standard_normal((rows, depth)).astype(np.float32)
        np.save(path.with_name(f"{engine}.npy"), np.asarray(run(x)))
        times: list[float] = []
        end = time.perf_counter() + _SECONDS
        while len(times) < _MIN_RUNS or time.perf_counter() < end:
            begun = time.perf_counter()
            np.asarray(run(x))
            times.append(1e6 * (time.perf_counter() - begun))
        return times

    serve(microseconds)


def _measure(proto: onnx.ModelProto, depth: int, level: int, rows: list[int], threads: int) -> list[list[float]]:
    """Return, for each number of rows, the median microseconds of each engine."""
    answers = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.onnx"
        path.write_bytes(proto.SerializeToString())
        arguments = (str(path), str(depth), str(threads))
        processes = [EngineProcess("benchmarks.blockwise", "--serve", engine, *arguments) for engine in ENGINES]
        for count in rows:
            times: list[list[float]] = [[] for _ in ENGINES]
            for _ in range(_ROUNDS):
                for number, process in enumerate(processes):
                    times[number] += process.request(count)
            result, expected = (np.load(path.with_name(f"{engine}.npy")) for engine in ENGINES)
            np.testing.assert_allclose(result, expected, 0, _TOLERANCE[level] * np.abs(expected).max())
            answers.append([float(np.median(taken)) for taken in times])
        for process in processes:
            process.close()
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.blockwise")
    parser.add_argument("--sizes", default=SIZES, help="depth x columns, separated by commas")
    for name, values in {
        "bits": "4,8",
        "blocks": "32,128",
        "zeros": "0,1",
        "levels": "0,4",
        "rows": "1,2,4,8,16,64,128",
    }.items():
        numbers = [int(number) for number in values.split(",")]
        parser.add_argument(f"--{name}", default=numbers, type=lambda text: [int(number) for number in text.split(",")])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--serve", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        engine, path, depth, threads = options.serve
        _serve(engine, Path(path), int(depth), int(threads))
        return
    bandwidth = measured_peaks(options.threads).bytes
    engines = " | ".join(f"{engine} us" for engine in ENGINES)
    print(f"| depth x columns | bits | block | zero points | level | rows | {engines} | ratio | bandwidth |")
    print("|---" * 10 + "|")
    ratios: dict[int, list[float]] = {level: [] for level in options.levels}
    sizes = [tuple(map(int, size.split("x"))) for size in options.sizes.split(",")]
    for (depth, columns), *case, level in itertools.product(
        sizes, options.bits, options.blocks, options.zeros, options.levels
    ):
        proto = model(depth, columns, *case, level)
        size = sum(len(tensor.raw_data) for tensor in proto.graph.initializer)
        measured = _measure(proto, depth, level, options.rows, options.threads)
        for rows, (own, other) in zip(options.rows, measured, strict=True):
            ratios[level].append(own / other)
            share = f"{size / (own * 1e-6) / bandwidth:.2f}" if rows == 1 else ""
            bits, block, has_zeros = case
            cells = [f"{depth}x{columns}", bits, block, "yes" if has_zeros else "no", level, rows]
            cells += [f"{own:.0f}", f"{other:.0f}", f"{own / other:.2f}", share]
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
    for level, each in ratios.items():
        print(f"\nlevel {level}: geometric mean {math.exp(np.mean(np.log(each))):.2f}, largest {max(each):.2f}")


if __name__ == "__main__":
    main()
