"""ONNX's own suite of backends, as it stands, in both modes.

tests/frontend/onnx_excluded.py lists the cases that relvm does not pass, each with the reason.  They are run and
expected to fail: those that are refused by a typed error alone, and one that begins to pass must be taken off the list.
"""

from __future__ import annotations

import unittest
import warnings
from collections.abc import Iterator

import pytest
from frontend.onnx_excluded import OTHERWISE, RANDOM, REFUSED
from frontend.onnx_models import onnx
from modes import MODES
from onnx.backend.test import BackendTest

from relvm.errors import RelvmError
from relvm.onnx_backend import RelvmBackend

VERSION, CASES, PASSING = "1.23.2", 2033, 2008  # of onnx, of its suite, of these at least


class BytecodeBackend(RelvmBackend):
    exec_mode = "bytecode"


class CompiledBackend(RelvmBackend):
    exec_mode = "compiled"


def suite(mode: str, backend: type[RelvmBackend]) -> dict[str, type[unittest.TestCase]]:
    """The suite's classes of cases for the CPU."""
    with warnings.catch_warnings():  # of NumPy, about overflow that the cases mean
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
    """The suite keeps what its real models are given and give in a folder."""
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
