"""StableHLO programs: every mode and target gives the results of the specification."""

from __future__ import annotations

import numpy as np
import pytest
from frontend.stablehlo_programs import CASES, Case

from relvm import vm
from relvm.frontend.stablehlo import from_stablehlo


def results_of(case: Case, target: str) -> list[np.ndarray]:
    machine = vm.VirtualMachine(vm.build(from_stablehlo(case.text.encode()), target=target, verified=True))
    found = machine["main"](*case.args)
    return [each.numpy() for each in (found if isinstance(found, list | tuple) else (found,))]


@pytest.mark.parametrize("target", ["bytecode", "numpy"])
@pytest.mark.parametrize("name", CASES)
def test_programs_give_what_the_specification_gives(name: str, target: str) -> None:
    for found, expected in zip(results_of(CASES[name], target), CASES[name].results, strict=True):
        assert found.dtype == expected.dtype and found.shape == expected.shape
        if found.dtype.kind in "iub":
            np.testing.assert_array_equal(found, expected)
        else:
            rtol = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 1e-6}.get(found.dtype.name, 1e-9)
            np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=1e-30)
