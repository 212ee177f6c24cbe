"""The result of each LIR pass for the routines in *.cases."""

from __future__ import annotations

from pathlib import Path

from support.golden_cases import Case, check_case, golden

from relvm.codegen.lower_to_lir import lower_to_routines
from relvm.frontend.text import parse_module
from relvm.lir.printer import format_module
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import LIR_PASSES, build_pipeline


def after(name: str, text: str) -> str:
    """Return the routines after the pass `name` and all passes before it, as text."""
    lir = lower_to_routines(run_passes(parse_module(text), build_pipeline("numpy")))
    for step in LIR_PASSES:
        lir = step(lir)
        if step.__name__ == name:
            return format_module(lir)
    raise AssertionError(name)


@golden(*(Path(__file__).parent / f"{step.__name__}.cases" for step in LIR_PASSES))
def test_golden_cases(case: Case, update: bool) -> None:
    check_case(case, after(case.path.stem, case.source), update)
