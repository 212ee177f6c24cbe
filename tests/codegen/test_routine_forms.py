"""Routines of the same form are printed as the same C code, except for numbers."""

from __future__ import annotations

import re

from support.routine_forms import first_of_each_form

from relvm import vm
from relvm.codegen.c.module import print_c
from relvm.compiler.build import lower
from relvm.frontend.text import parse_module
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline

FUNCTIONS = {  # for each function, the name of the first function of the same form, and the text
    "exp_2": ("exp_2", "(x: f32[n, 2]) -> f32[n, 2] = exp(x)"),
    "exp_3": ("exp_2", "(x: f32[n, 3]) -> f32[n, 3] = exp(x)"),
    "exp_of_f64": ("exp_of_f64", "(x: f64[n, 3]) -> f64[n, 3] = exp(x)"),
    "log": ("log", "(x: f32[n, 3]) -> f32[n, 3] = log(x)"),
    "known_sizes": ("known_sizes", "(x: f32[2, 3]) -> f32[2, 3] = exp(x)"),
    "two": ("two", "(x: f32[n, 2], y: f32[n, 2]) -> f32[n, 2] = add(x, y)"),
    "another_two": ("two", "(x: f32[5, m], y: f32[5, m]) -> f32[5, m] = add(x, y)"),
    "plus": ("plus", "(i: i64) -> i64 = i + 1"),
    "plus_7": ("plus", "(i: i64) -> i64 = i + 7"),
    "minus": ("minus", "(i: i64) -> i64 = i - 1"),
    "plus_float": ("plus_float", "(i: f64) -> f64 = i + 1.0"),
    "calls": ("calls", "(i: i64) -> i64 = @plus(i) + 1"),
    "calls_another": ("calls_another", "(i: i64) -> i64 = @minus(i) + 1"),
    "branches": ("branches", "(i: i64) -> i64 = if i < 3 then i + 1 else i"),
    "branches_7": ("branches", "(i: i64) -> i64 = if i < 7 then i + 7 else i"),
}
MODULE = parse_module("\n".join(f"def {name}{text}" for name, (_, text) in FUNCTIONS.items()))


def test_the_first_of_each_form() -> None:
    firsts = first_of_each_form(vm.build(MODULE, target="numpy"))
    assert set(first_of_each_form(vm.build(MODULE))) == {first for first, _ in FUNCTIONS.values()}
    assert {"exp_2", "log", "two", "plus", "minus"} <= set(firsts)


def test_a_form_has_one_text_in_c_but_for_numbers() -> None:
    lir = lower(run_passes(MODULE, build_pipeline("c")))
    texts = {name: without_numbers(name, print_c(lir, routines={name}).routines) for name in FUNCTIONS}
    for name, (first, _) in FUNCTIONS.items():
        assert texts[name] == texts[first]
    assert len({texts[name] for name in ("exp_2", "exp_of_f64", "log", "two", "plus", "minus", "branches")}) == 7


def without_numbers(name: str, text: str) -> str:
    """Return the C code of a routine without its name, comments, prototypes of kernels, and numbers."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL).replace(f"__vmtir__{name}", "ROUTINE")
    text = re.sub(r"^.*\);$", "", text, count=text.count("void *self"), flags=re.MULTILINE)
    return re.sub(r"_\d+\b", "", re.sub(r"(?<![\w.])-?\d+(\.\d+)?", "#", text))
