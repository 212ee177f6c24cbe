"""Memory plans of random programs overwrite no live value, and hold no more memory than separate storages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from memory_model import a_storage_for_each, planned, trace
from memory_programs import program
from support.modes import run_everywhere

from relvm.frontend.text import parse_module
from relvm.ir.expr import Module

PACKED = {"memory.same": lambda array: array, "memory.note": lambda array: ()}
SIZES = ({"n": 300, "m": 70}, {"n": 1, "m": 1}, {"n": 0, "m": 5}, {"n": 3, "m": 1000})


def bounded(module: Module, sizes: dict[str, int]) -> Module:
    """Return the module with `sizes` as upper bounds of the dimensions of main."""
    main = replace(module["main"], attributes=(("upper_bounds", tuple(sizes.items())),))
    return module.with_functions((module["helper"], main))


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("fixed", [False, True], ids=["symbolic", "bounded"])
def test_a_plan_is_safe_and_never_holds_more(seed: int, fixed: bool) -> None:
    module = parse_module(program(seed))
    plan, plain = planned(module), planned(module, a_storage_for_each)
    for sizes in SIZES:
        if fixed:
            plan = planned(bounded(module, sizes))
        for path in range(4):
            with_plan = trace(plan, "main", sizes, path)
            without = trace(plain, "main", sizes, path)
            assert max(with_plan.held) <= max(without.held)
            assert len(with_plan.at_calls) == len(without.at_calls)
            assert all(a <= b for a, b in zip(with_plan.at_calls, without.at_calls, strict=True))


@pytest.mark.parametrize("seed", range(8))
def test_planned_programs_give_what_the_reference_gives(seed: int) -> None:
    module = bounded(parse_module(program(seed)), {"n": 5, "m": 7})
    rng = np.random.default_rng(seed)
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((5, 7), (4, 7)))
    for condition in (True, False):
        run_everywhere(module, condition, x, y, packed=PACKED)


def test_plans_make_fewer_allocations() -> None:
    fewer = before = 0
    for seed in range(20):
        module = parse_module(program(seed))
        fewer += trace(planned(bounded(module, SIZES[0])), "main", SIZES[0], 0).allocations
        before += trace(planned(module, a_storage_for_each), "main", SIZES[0], 0).allocations
    assert fewer < 0.8 * before, (fewer, before)
