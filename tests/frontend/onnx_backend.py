"""ONNX's own backend test suite, in both modes.

tests/frontend/onnx_excluded.py lists the cases that relvm does not pass, each with the reason.  They run and are
expected to fail.  A case with an unsupported model must raise a typed error.  A case that starts to pass must be
removed from the list.

Most cases are models of one operator.  To save more than half of the time, they are built together, as functions of a
few modules.  With RELVM_ONNX_BATCH=1, each model is built separately, as by users of the backend.
"""

from __future__ import annotations

import os
import unittest
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from frontend.onnx_answers import machines_of_models
from frontend.onnx_excluded import OTHERWISE, RANDOM, REFUSED
from frontend.onnx_models import onnx
from frontend.onnx_suite import node_cases
from onnx.backend.test import BackendTest
from support import modes
from support.modes import MODES, assert_same_bits, plain

from relvm.errors import RelvmError
from relvm.onnx_backend import RelvmBackend, RelvmRep
from relvm.runtime.virtual_machine import VirtualMachine

VERSION, CASES, PASSING = "1.23.2", 2033, 2008  # of onnx; cases in its suite; minimum of passing cases
BATCH = int(os.environ.get("RELVM_ONNX_BATCH", "100"))  # number of models that are built as one module


@cache
def batches() -> list[dict[str, onnx.ModelProto]]:
    """Return the models of single operators that relvm supports, in batches, in the order in which the cases run."""
    cases = sorted(node_cases().items())
    models = [(name, case.model) for name, case in cases if f"{name}_cpu" not in REFUSED]
    return [dict(models[first : first + BATCH]) for first in range(0, len(models), BATCH)]


@cache
def places() -> dict[int, tuple[int, str]]:
    """Return, by the `id` of each model in `batches`, the number of its batch and its name in the batch."""
    return {id(model): (i, name) for i, batch in enumerate(batches()) for name, model in batch.items()}


@cache
def machines(batch: int) -> dict[str, VirtualMachine]:
    """Return a machine for each mode.  In the full stage, the kernels of five of six batches are bytecode, not C."""
    target = "c" if modes.COMPILES_ALL or batch % 6 == 0 else "bytecode"
    made = machines_of_models(batches()[batch], [(mode, target) for mode in MODES])
    return {mode: machine for (mode, _), machine in made.items()}


class BatchBackend(RelvmBackend):
    """A backend that builds models of operators in batches, and compares the modes bit by bit.

    Other models are built as in RelvmBackend.
    """

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> RelvmRep:
        if BATCH == 1 or id(model) not in places():
            return super().prepare(model, device, **kwargs)
        batch, name = places()[id(model)]
        made = machines(batch)

        def main(*args: Any) -> Any:
            result = made[cls.exec_mode][name](*args)
            if cls.exec_mode != MODES[0]:
                assert_same_bits(plain(result), plain(made[MODES[0]][name](*args)))
            return result

        graph = model.graph
        return RelvmRep({"main": main}, [port.name for port in graph.input], [port.name for port in graph.output])


class BytecodeBackend(BatchBackend):
    exec_mode = "bytecode"


class CompiledBackend(BatchBackend):
    exec_mode = "compiled"


def suite(mode: str, backend: type[RelvmBackend]) -> dict[str, type[unittest.TestCase]]:
    """Return the suite's test classes with the cases for the CPU.  mode: part of the names of the classes."""
    with warnings.catch_warnings():  # NumPy warns about overflow, which is intended in these cases
        warnings.simplefilter("ignore")
        found = BackendTest(backend, __name__).test_cases
    classes = {}
    for name, cases in found.items():
        kept = {case: function for case, function in vars(cases).items() if case.endswith("_cpu")}
        fails = (AssertionError, TypeError)
        for excluded, errors in ((REFUSED, RelvmError), (OTHERWISE, fails), (RANDOM, fails)):
            for case in excluded.keys() & kept.keys():
                mark = pytest.mark.xfail(strict=excluded is not RANDOM, raises=errors, reason=excluded[case])
                kept[case] = mark(kept[case])
        classes[f"{name}{mode.title()}"] = type(f"{name}{mode.title()}", (unittest.TestCase,), kept)
    return classes


@pytest.fixture(autouse=True, scope="session")
def _models_of_the_suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Set the folder in which the suite stores real models and their test data."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ONNX_MODELS", str(tmp_path_factory.mktemp("onnx")))
        yield


SUITES = {mode: suite(mode, backend) for mode, backend in zip(MODES, (BytecodeBackend, CompiledBackend), strict=True)}
for classes in SUITES.values():
    globals().update(classes)


@pytest.mark.parametrize("mode", MODES)
def test_every_case_passes_but_for_those_listed(mode: str) -> None:
    names = {name for cases in SUITES[mode].values() for name in vars(cases) if name.startswith("test_")}
    if onnx.__version__ != VERSION:
        pytest.skip(f"the suite was counted with onnx {VERSION}")
    assert len(names) == CASES
    assert REFUSED.keys() | OTHERWISE.keys() | RANDOM.keys() <= names
    assert CASES - len(REFUSED) - len(OTHERWISE) - len(RANDOM) >= PASSING


@pytest.mark.skipif(BATCH == 1, reason="no batches")
def test_every_model_of_an_operator_is_in_a_batch_or_refused() -> None:
    cases = SUITES[MODES[0]]["OnnxBackendNodeModelTestBytecode"]
    names = {name.removesuffix("_cpu") for name in vars(cases) if name.endswith("_cpu")}
    batched = {name for batch in batches() for name in batch}
    assert batched.isdisjoint(name.removesuffix("_cpu") for name in REFUSED)
    assert names - batched <= {name.removesuffix("_cpu") for name in REFUSED}


@pytest.mark.skipif(BATCH == 1, reason="no batches")
@pytest.mark.parametrize("backend", [BytecodeBackend, CompiledBackend])
@pytest.mark.parametrize(
    "name", ["test_lstm_defaults", "test_if_opt", "test_sequence_map_add_2_sequences", "test_top_k"]
)
def test_a_model_in_a_batch_is_as_one_alone(backend: type[BatchBackend], name: str) -> None:
    case = node_cases()[name]
    ((inputs, _),) = case.data_sets
    together, alone = backend.prepare(case.model), super(BatchBackend, backend).prepare(case.model)
    assert (together.inputs, together.outputs) == (alone.inputs, alone.outputs)
    assert_same_bits(together.run(inputs), alone.run(inputs))
