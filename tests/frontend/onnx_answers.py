"""Results of ONNX models in relvm and ONNX Runtime, and their comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frontend.onnx_models import onnx
from support.modes import C_WAYS, FEWER_WAYS, assert_same_bits, machines, machines_of_forms, plain

from relvm.frontend.onnx import from_onnx
from relvm.ir.dtypes import dtype_of
from relvm.ir.expr import Module
from relvm.runtime.virtual_machine import VirtualMachine

_LAST_PLACES = {"float16": 2**-9, "bfloat16": 2**-6}  # relative tolerances: two units in the last place

Machines = Mapping[tuple[str, str], VirtualMachine]


def machines_of_models(models: Mapping[str, onnx.ModelProto], ways: Sequence[tuple[str, str]] = FEWER_WAYS) -> Machines:
    """Build one module with a function for each model, and return a machine for each execution mode and target."""
    functions = [replace(from_onnx(model)["main"], name=name) for name, model in models.items()]
    return machines_of_forms(Module(tuple(functions)), ways)


def answers(made: Machines, name: str, arrays: Sequence[np.ndarray]) -> dict[str, list[np.ndarray]]:
    """Return the outputs of a function for each target, after checking that all modes have bit-identical results."""
    results: dict[str, Any] = {}
    for (_, target), machine in made.items():
        result = plain(machine[name](*arrays))
        assert_same_bits(results.setdefault(target, result), result)
    return {target: outputs(result) for target, result in results.items()}


def outputs(result: Any) -> list[np.ndarray]:
    """Return the list of the ONNX outputs in a function's result, which is a tuple if there are several outputs."""
    return list(result) if isinstance(result, tuple) else [result]


def c_answers(model: onnx.ModelProto, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the outputs of a model with C kernels, after checking that both modes have bit-identical results."""
    return answers(machines(from_onnx(model), C_WAYS), "main", arrays)["c"]


def onnxruntime_answers(
    model: onnx.ModelProto | Path, arrays: Sequence[np.ndarray], exact_bytes: bool = False
) -> list[np.ndarray]:
    """Return ONNX Runtime's outputs, computed without graph optimizations.

    On x86 processors without VNNI, ONNX Runtime's products of u8 and i8 saturate at 16 bits.  With `exact_bytes`,
    constant weights are converted to u8 to avoid this, which requires its graph optimizations.  Tests without
    `exact_bytes` use weights of 7 bits.
    """
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if exact_bytes:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.add_session_config_entry("session.x64quantprecision", "1")
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    content = str(model) if isinstance(model, Path) else model.SerializeToString()
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    names = [item.name for item in session.get_inputs()]
    return session.run(None, dict(zip(names, arrays, strict=True)))


def assert_answers(
    got: Sequence[np.ndarray], wanted: Sequence[np.ndarray], rtol: float = 1e-5, atol: float = 1e-6
) -> None:
    """Assert that dtypes and shapes are equal, integers are equal, and floats are equal up to the tolerances."""
    assert len(got) == len(wanted)
    for ours, theirs in zip(got, wanted, strict=True):
        if isinstance(ours, list) or ours is None:
            assert type(theirs) is type(ours)
            assert_answers(ours or [], theirs or [], rtol, atol)
            continue
        theirs = np.asarray(theirs)
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), f"{ours.shape} and {theirs.shape}"
        if dtype_of(ours.dtype).is_float:
            wide = (array.astype(np.float64) for array in (ours, theirs))
            np.testing.assert_allclose(*wide, rtol=max(rtol, _LAST_PLACES.get(ours.dtype.name, 0)), atol=atol)
        else:
            np.testing.assert_array_equal(ours, theirs)


def against_onnxruntime(model: onnx.ModelProto, *arrays: np.ndarray, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Assert that a model with C kernels has the same outputs as in ONNX Runtime."""
    assert_answers(c_answers(model, arrays), onnxruntime_answers(model, arrays), rtol, atol)
