"""Golden tests of the canonical form of routines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.golden_cases import Case, check_case, golden

from relvm.codegen.lower_to_lir import lower_to_routines
from relvm.errors import RelvmVerifyError
from relvm.frontend.text import parse_module
from relvm.ir.type_inference import infer_types
from relvm.kernels.kernel import Kernel
from relvm.lir.passes.devirtualize_calls import devirtualize_calls
from relvm.lir.printer import format_module
from relvm.passes.to_anf import to_anf


def routines(text: str):
    module = replace(
        to_anf(infer_types(parse_module(text))), kernels=(("shape_func", Kernel("shape_func", (), (), (), "")),)
    )
    return lower_to_routines(module)


@golden(Path(__file__).parent / "lower_to_lir.cases")
def test_golden_routines(case: Case, update: bool) -> None:
    check_case(case, format_module(routines(case.source)), update)


def test_direct_calls_drop_the_detour_through_a_closure() -> None:
    text = "def callee(x: object) -> object { return x }\ndef main(x: object) -> object { return @callee(x) }"
    before, after = routines(text), devirtualize_calls(routines(text))
    assert 'invoke_closure", ctx_ptr, anylist_getitem(f, 0), anylist_getitem(r, 0)' in format_module(before)
    assert 'call_routine(r, 2, "callee", anylist_getitem(r, 0))' in format_module(after)


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        (
            "def main(x: object) -> object { f = fn (y: object) -> object { return (y, x) }\n return f }",
            "lambda_lifting",
        ),
        ("def main(x: f32[n]) -> shape[n] { return shape(n) }", "lower_shapes"),
        ("def main(x: f32[n]) -> f32[n] { return relu(x) }", "lower_to_kernels"),
    ],
    ids=["a local function", "a symbolic shape", "an operator"],
)
def test_what_an_earlier_pass_should_have_lowered_names_that_pass(text, missing) -> None:
    with pytest.raises(RelvmVerifyError, match=missing):
        routines(text)
