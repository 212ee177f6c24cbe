"""Inference of effects of functions, and claims of purity in programs."""

# ruff: noqa: F821

from __future__ import annotations

import pytest
from support.pipeline_parts import module_after

from relvm import script
from relvm.errors import RelvmTypeError
from relvm.frontend.text import parse_module
from relvm.ir.builder import Builder
from relvm.ir.type_inference import infer_types
from relvm.ir.types import OBJECT
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline


def purity(text: str) -> dict[str, bool]:
    return {f.name: f.pure for f in infer_types(parse_module(text)).functions}


def test_it_is_inferred_through_calls_in_any_order() -> None:
    text = """
    def outer(x: object) { return @middle(x) }
    def middle(x: object) { return @inner(x) }
    def inner(x: object) { return packed("test.note", x) }
    def other(x: object) { return packed_pure("test.pure", x) }"""
    assert purity(text) == {"outer": False, "middle": False, "inner": False, "other": True}


def test_a_call_that_only_types_show_to_be_impure() -> None:
    text = """
    def outer(t: (object,)) => object { return @middle(t) }
    def user(t: (object,)) { x = @middle(t)
                             return null }
    def middle(t: (object,)) { f = t.0
                               return f(1) }"""
    assert purity(text) == {"outer": False, "user": False, "middle": False}
    module = run_passes(parse_module(text), build_pipeline("numpy"))
    assert len(module["user"].body.bindings) > 1, "the call was removed"


def test_making_or_naming_an_impure_function_has_no_effect() -> None:
    text = """
    def note(x: object) => object { return packed("test.note", x) }
    def make(x: object) -> object { return fn (y: object) => object { return packed("test.note", (x, y)) } }
    def name() -> object { return @note }
    def call(x: object) { f = @make(x)
                          return f(x) }"""
    assert purity(text) == {"note": False, "make": True, "name": True, "call": False}


@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        ('def f(x: object) -> object { return packed("test.note", x) }', "f: .* packed function test.note may"),
        (
            'def g(x: object) { return packed("test.note", x) }\ndef f(x: object) -> object { return @g(x) }',
            "f: .* the call of g may",
        ),
        ("def f(g: (i64) => i64) -> i64 { return g(1) }", "f: .* the call of g may"),
        ("def f(g: object) -> object { return g(1) }", "f: .* the call of g may"),
        ("def f(x: object) -> object { _ = builtin.print(x)\n return x }", "f: .* builtin print may"),
        (
            'def f() => object { g = fn (y: object) -> object { return packed("test.note", y) }\n return g(1) }',
            "f: g: .* packed function test.note may",
        ),
    ],
)
def test_a_wrong_claim_names_the_call(text: str, culprit: str) -> None:
    with pytest.raises(RelvmTypeError, match=rf"{culprit} have effects; use => instead"):
        infer_types(parse_module(text))


def test_a_function_that_may_have_effects_need_not() -> None:
    assert purity("def f(x: object) => object { return x }") == {"f": False}


def test_the_arrow_of_python_claims_nothing() -> None:
    @script
    def main(x: object) -> object:
        def inner(y: object) -> object:
            return packed("test.note", y)

        return inner(x)

    assert not main.function.pure


def test_a_function_found_to_be_impure_after_it_was_used_as_a_value() -> None:
    @script
    class Model:
        def main(x: object, c: bool) -> object:
            pair = (note, x) if c else (note, 1)
            f = pair[0]
            return f(x)

        def note(x: object) -> object:
            return packed("test.note", x)

    assert not Model["main"].pure


def test_a_builder_infers_it() -> None:
    b = Builder()
    with b.function("note", [("x", OBJECT)]) as (x,):
        b.ret(b.packed("test.note", x))
    with b.function("main", [("x", OBJECT)]) as (x,):
        b.ret(b.call("note", x))
    assert [f.pure for f in b.module().functions] == [False, False]


def test_impure_local_functions_stay_impure_when_they_are_lifted() -> None:
    text = """
    def main(x: object) => object {
      note = fn (y: object) => object { return packed("test.note", (x, y)) }
      quiet = fn (y: object) -> object { return (x, y) }
      unused = note(x)
      unused_too = quiet(x)
      return (note, quiet)
    }"""
    module = module_after("lambda_lifting", parse_module(text), target="numpy")
    assert {f.name: f.pure for f in module.functions} == {"main": False, "main_note": False, "main_quiet": True}
    assert [b.var.name for b in module["main"].body.bindings] == ["note", "quiet", "unused", "result"]
