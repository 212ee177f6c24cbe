"""All tests of determinism: 29 models and the node cases of ONNX, in every way of ways.py.

`pytest tests/determinism/determinism_suite.py` takes hours on two cores.  RELVM_DETERMINISM_NATIVE=0 omits the native
code of operators and models, and takes about a quarter of an hour.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from aot.real_models import DIGITS
from determinism.cases import Calls, function_cases, model_cases, operator_cases
from determinism.emulated import AARCH64, WINDOWS
from determinism.ways import (
    Digests,
    bytecode,
    bytecode_ways,
    differences,
    emulated_ways,
    fusion_differences,
    native_targets,
    native_ways,
    run,
)

from benchmarks.models.catalogue import MODELS

MODEL_NAMES = (DIGITS, *MODELS)
BATCHES = 19  # of operator cases
# Models in which an operator that broadcasts is fused into a sum over an outer axis (docs/determinism.md).
FUSION_CHANGES_BITS = ("minilm_l3", "leader_fp")
IS_NATIVE = os.environ.get("RELVM_DETERMINISM_NATIVE", "1") != "0"


def _ways(calls: Calls, *, native: bool) -> Iterator[tuple[str, Callable[[], Digests]]]:
    executable = bytecode(calls)
    yield "", lambda: run(executable, calls)
    yield from bytecode_ways(calls, executable)
    for system in (AARCH64, WINDOWS):
        yield from emulated_ways(system, calls, executable, native=native)
    if native:
        yield from native_ways(calls, native_targets())


def expect_same_bits(calls: Calls, *, native: bool) -> None:
    AARCH64.expect_tools()
    WINDOWS.expect_tools()
    ways = _ways(calls, native=native)
    expected = next(ways)[1]()
    found = {way: differences(calls, expected, digests()) for way, digests in ways}
    if calls.name not in FUSION_CHANGES_BITS:
        found["fusion"] = fusion_differences(calls)
    assert not {way: names for way, names in found.items() if names}


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_a_model_has_the_same_bits_everywhere(name: str) -> None:
    (calls,) = model_cases([name])
    expect_same_bits(calls, native=IS_NATIVE)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_operators_have_the_same_bits_everywhere(batch: int) -> None:
    calls = list(operator_cases())[batch]
    expect_same_bits(calls, native=IS_NATIVE)


def test_the_batches_have_all_operator_cases() -> None:
    batches = list(operator_cases())
    assert len(batches) == BATCHES and sum(len(batch.calls) for batch in batches) >= 1800


def test_functions_have_the_same_bits_everywhere() -> None:
    expect_same_bits(function_cases(20000), native=IS_NATIVE)
