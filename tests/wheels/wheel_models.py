"""The model that the main job of the README runs, and its results."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import parser

from relvm import vm

PROGRAM = Path(__file__).parent / "main_job.py"
SIGNATURE = "<Model (image: f32[batch, 3, 8, 8]) -> (scores: f32[batch, 10])>"


def write_job(folder: Path) -> None:
    """Write main_job.py and the model that it loads, model.onnx, to a folder."""
    shutil.copy(PROGRAM, folder)
    filters, weights = (", ".join(f"{value:.3f}" for value in function(np.arange(n))) for function, n in _WEIGHTS)
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    network (float[batch, 3, 8, 8] image) => (float[batch, 10] scores)
    <float[4, 3, 3, 3] filters = {{{filters}}}, float[10, 64] weights = {{{weights}}}> {{
      a = Conv <pads = [1, 1, 1, 1]> (image, filters)
      b = Relu(a)
      c = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (b)
      d = Flatten(c)
      e = Gemm <transB = 1> (d, weights)
      scores = Softmax(e)
    }}"""
    onnx.save(parser.parse_model(text), str(folder / "model.onnx"))


_WEIGHTS: tuple[tuple[Callable, int], ...] = ((np.sin, 108), (np.cos, 640))


def rows() -> np.ndarray:
    """Return the input of main_job.py."""
    return np.arange(2 * 3 * 8 * 8, dtype=np.float32).reshape(2, 3, 8, 8) % 7 - 3


def expected(folder: Path) -> list:
    """Return the result of the model in `folder` on this machine, with kernels as bytecode."""
    executable = vm.build(folder / "model.onnx", "bytecode", "bytecode")
    return vm.VirtualMachine(executable)["main"](rows()).numpy().tolist()


def results(output: str) -> list:
    """Return the results that main_job.py printed, after checking the signature that it printed."""
    signature, line = output.splitlines()
    assert signature == SIGNATURE
    return json.loads(line)
