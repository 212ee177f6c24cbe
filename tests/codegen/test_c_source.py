"""The C of an executable: translation units of three kinds in one text, which is taken apart again."""

from __future__ import annotations

import pytest

from relvm import vm
from relvm.codegen.c.module import CSource, parse_source, print_c, source_text
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.text import parse_module
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline

# Kernels in two units, kernels that round to whole numbers, and routines.
KINDS = """
def main(x: f32[n], c: bool) -> f32[n] {{
{lines}
  return if c then round(multiply(v12, x)) else @other(v12)
}}
def other(x: f32[n]) -> f32[n] {{ return @"/* unit: kernels */"(x) }}
def "/* unit: kernels */"(x: f32[n]) -> f32[n] {{ return relu(x) }}
"""
NAMES = ("abs", "exp", "sqrt", "sin", "cos", "tan", "tanh", "erf", "sigmoid", "relu", "negative", "floor", "log")
LINES = "\n".join(f"  v{i} = {name}({f'v{i - 1}' if i else 'x'})" for i, name in enumerate(NAMES))
PLAIN = "def main(x: i64) -> i64 = x + 1"
# The comment of a fused kernel begins with the name of a value.
UNIT = "def main(x: f32[n]) -> f32[n] {\n  unit = abs(x)\n  return exp(unit)\n}"


def printed(text: str, compiled: bool) -> CSource:
    lir = vm.lower(run_passes(parse_module(text), build_pipeline("c", fused=text == UNIT)))
    return print_c(lir, routines=[routine.name for routine in lir.routines] if compiled else ())


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("text", [KINDS.format(lines=LINES), PLAIN, UNIT], ids=["all kinds", "no kernels", "values"])
def test_units_in_one_text_are_taken_apart(text: str, compiled: bool) -> None:
    source = printed(text, compiled)
    assert parse_source(source_text(source)) == source
    if text not in (PLAIN, UNIT):
        assert len(source.kernels) == 2 and len(source.exact) == 1 and bool(source.routines) == compiled


SOURCE = source_text(printed(KINDS.format(lines=LINES), True))
HEAD, _, UNITS = SOURCE.partition("\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "does not say which headers"),
        (UNITS, "does not say which headers"),
        (HEAD.replace("relvm: ", "relvm: 0") + "\n" + UNITS, "the headers of another version"),
        (HEAD + "\n" + UNITS.replace("unit: exact kernels", "unit: quick kernels"), "not divided into units"),
        (HEAD + "\n" + UNITS.replace("unit: exact kernels", "unit: routines"), "not divided into units"),
        (HEAD + "\nint x;\n" + UNITS, "not divided into units"),
    ],
    ids=["empty", "no head", "other headers", "an unknown kind", "another order", "something before"],
)
def test_another_text_is_refused(text: str, words: str) -> None:
    with pytest.raises(RelvmUnsupportedError, match=words):
        parse_source(text)
