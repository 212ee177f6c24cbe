"""Errors in the text form state the location, what was expected, and what was found."""

from __future__ import annotations

import pytest

from relvm.errors import RelvmArgumentError, RelvmNameError, RelvmSyntaxError, RelvmUnsupportedError
from relvm.frontend.text import parse_expr, parse_module, parse_type
from relvm.frontend.text.lexer import DEEPEST_NESTING
from relvm.ir.printer import print_module
from relvm.ir.type_inference import infer_types
from relvm.ir.visitor import structural_equal

# The text, in which the mark ¦ precedes the location of the error, the error class, and the message.
CASES = [
    ("¦relu(x)", RelvmSyntaxError, "expected def, got relu"),
    ("def ¦(x: f32[n]) { return x }", RelvmSyntaxError, "expected the name of a function, got ("),
    ("def ¦if() { return 1 }", RelvmSyntaxError, "got the keyword if"),
    ("def f(x¦) { return x }", RelvmSyntaxError, "expected : and the parameter's type, got )"),
    ("def f(x: i64, ¦x: i64) { return x }", RelvmSyntaxError, "two parameters are named x"),
    ("def f(x: i64 ¦y: i64) { return x }", RelvmSyntaxError, "expected , or ), got y"),
    ("def f() ¦return 1", RelvmSyntaxError, "expected the function body, which begins with { or =, got return"),
    ("def f() { x = 1\n¦", RelvmSyntaxError, "expected a binding or return, got the end of the text"),
    ("def f() { x = 1 ¦y = 2; return x }", RelvmSyntaxError, "expected a new line or ; after the binding, got y"),
    ("def f() { x ¦1\n return x }", RelvmSyntaxError, "expected =, got 1"),
    ("def f() { return 1 ¦2 }", RelvmSyntaxError, "expected }, got 2"),
    ("def f() { return 1 } ¦}", RelvmSyntaxError, "expected def, got }"),
    ("def f() = 1\ndef ¦f() = 2", RelvmSyntaxError, "function f is defined twice"),
    ("def f() = ¦", RelvmSyntaxError, "expected an expression, got the end of the text"),
    ("def f() = ¦return", RelvmSyntaxError, "expected an expression, got the keyword return"),
    ("def f() = if true then 1¦", RelvmSyntaxError, "expected else, got the end of the text"),
    ("def f() = (1, 2¦", RelvmSyntaxError, "expected , or ), got the end of the text"),
    ("def f() = ¦9223372036854775808", RelvmSyntaxError, "out of the range of int64"),
    (f"def f() = ¦{'9' * 5000}", RelvmSyntaxError, "too many digits"),
    ('def f() = ¦"open', RelvmSyntaxError, "unterminated string"),
    ('def f() = ¦"\\q"', RelvmSyntaxError, "invalid string: Invalid \\escape"),
    ('def f() = ¦"\\ud800"', RelvmSyntaxError, "invalid string: unpaired surrogate '\\ud800'"),
    ("def f() = ¦$", RelvmSyntaxError, "unexpected character '$'"),
    ("def f() = ¦match_cast(1, i64)", RelvmSyntaxError, "match_cast is only allowed right after the = of a binding"),
    ("def f() { x: i64 = ¦match_cast(1, i64)\n return x }", RelvmSyntaxError, "match_cast already states the type"),
    ("def f() = relu ¦1", RelvmSyntaxError, "expected the arguments of operator relu, got 1"),
    ("def f(x: f32[]) = softmax(axis=0, ¦x)", RelvmSyntaxError, "arguments must precede attributes"),
    ("def f(x: f32[]) = softmax(x, axis=0, ¦axis=0)", RelvmSyntaxError, "attribute axis is given twice"),
    ("def f(x: f32[]) = ¦add(x, y=0)", RelvmArgumentError, "y is an argument; pass it by position"),
    ("def f(x: f32[]) => object { y = fused { return x } ¦* 2\n return y }", RelvmSyntaxError, "after the binding"),
    ("def f(x: f32[]) = softmax(x, axis=¦x)", RelvmSyntaxError, "expected a number, a string, a dtype"),
    ("def f() with (a¦) = 1", RelvmSyntaxError, "expected =, got )"),
    ("module ¦f", RelvmSyntaxError, "expected with, got f"),
    ("def f() = const(¦f32[n], [1])", RelvmSyntaxError, "a shape of integers, got f32[n]"),
    ("def f() = const(f32[2], ¦[1])", RelvmSyntaxError, "expected 2 items, got 1"),
    ("def f() = const(f32[1], [1, ¦2])", RelvmSyntaxError, "expected 1 item, got more"),
    ("def f() = const(f32[1], ¦1)", RelvmSyntaxError, "expected [ and a list of 1 item, got 1"),
    ("def f() = const(i64[1], [¦1.5])", RelvmSyntaxError, "expected an integer element of i64, got 1.5"),
    ("def f() = const(u8[1], ¦[256])", RelvmSyntaxError, "an element is out of the range of u8"),
    ("def f() = const(bool[1], [¦1])", RelvmSyntaxError, "expected true or false, got 1"),
    ('def f() = const(f32[1], ¦"AAAA")', RelvmSyntaxError, "f32[1]: expected 4 bytes, got 3"),
    ('def f() = const(f32[1], ¦"!")', RelvmSyntaxError, "invalid base64"),
    (
        "def f(x: ¦f32) = x",
        RelvmSyntaxError,
        "a scalar must be bool, i64 or f64, got f32; write f32[] for a 0-d tensor",
    ),
    ("def f(x: ¦f33[n]) = x", RelvmNameError, "no type f33; did you mean f32"),
    ("def f(x: ¦1) = x", RelvmSyntaxError, "expected a type, got 1"),
    ("def f(x: shape¦) = x", RelvmSyntaxError, "expected [, got )"),
    ("def f(x: f32[¦n, _]) = x", RelvmSyntaxError, "expected either all dimensions to be _ or none"),
    ("def f(x: f32[n + ¦_]) = x", RelvmSyntaxError, "expected a dimension, got _"),
    ("def f(x: f32[¦-1]) = x", RelvmSyntaxError, "a dimension must be at least 0, got -1"),
    ("def f(x: f32[n ¦// 0]) = x", RelvmSyntaxError, "division of a dimension by 0"),
    ("def f(x: f32[n¦) = x", RelvmSyntaxError, "expected , or ], got )"),
    ("private ¦f() = 1", RelvmSyntaxError, "expected def, got f"),
    ("def f(x: (i64 ¦= x", RelvmSyntaxError, "expected , or ), got ="),
    ("def f(xs: i64) = ¦x", RelvmNameError, "no variable x; did you mean xs?"),
    ("def f(x: f32[n]) = ¦relus(x)", RelvmNameError, "no operator or variable relus; did you mean relu"),
    ("def f() { x = 1\n return { y = 2\n return y } }\ndef g() = ¦x", RelvmNameError, "no variable x"),
    ("def f() { y = { x = 1\n return x }\n return ¦x }", RelvmNameError, "no variable x"),
    ("def f() { g = fn h(x: i64) = h(x)\n return ¦h(1) }", RelvmNameError, "no operator or variable h"),
    ("def helper() = 1\ndef f() = @¦helpe()", RelvmNameError, "no function helpe; did you mean helper?"),
    ("def f() = prim.¦ad(1, 2)", RelvmNameError, "no scalar function ad; did you mean"),
    ("def f() = dtype(¦f17)", RelvmNameError, "no dtype f17; did you mean"),
    ("def f() = builtin.¦prin(1)", RelvmNameError, "no builtin prin; did you mean print?"),
    ("def f(x: f32[n]) = ¦relu(x, x)", RelvmArgumentError, "too many positional arguments"),
    ("def f(x: f32[n]) = ¦softmax(x, axs=1)", RelvmArgumentError, "axs"),
]


@pytest.mark.parametrize(("marked", "kind", "message"), CASES, ids=[case[0][:60] for case in CASES])
def test_an_error_names_its_place(marked, kind, message):
    before, _, _ = marked.partition("¦")
    text = marked.replace("¦", "")
    with pytest.raises(kind) as caught:
        parse_module(text, "model.relvm")
    error = caught.value
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    assert message in error.reason
    assert (error.filename, error.lineno, error.offset) == ("model.relvm", line, column)
    shown = text.split("\n")[line - 1][: column + 149]
    assert str(error) == f"model.relvm:{line}:{column}: {error.reason}\n  {shown}\n  {' ' * (column - 1)}^"


def test_an_empty_text_is_an_empty_module():
    assert parse_module(" # nothing\n\n").functions == ()


def test_the_caret_is_under_the_place_behind_tabs():
    with pytest.raises(RelvmSyntaxError) as caught:
        parse_module("def f() {\n\treturn 1 2 }")
    assert str(caught.value).split("\n")[1:] == ["  \treturn 1 2 }", "  \t         ^"]


def test_of_a_long_line_the_part_around_the_place_is_shown():
    with pytest.raises(RelvmSyntaxError) as caught:
        parse_module(f"def f() = ({'1, ' * 1000}2 3{', 4' * 1000})")
    _, shown, caret = str(caught.value).split("\n")
    assert shown == f"  {('1, ' * 100)[-148:]}2 3{(', 4' * 100)[:149]}"
    assert caret == f"  {' ' * 150}^"


NESTINGS = {
    "parentheses": ("(", "x", ")"),
    "tuples": ("(", "x", ",)"),
    "calls": ("relu(", "x", ")"),
    "branches": ("if true then x else ", "x", ""),
    "conditions": ("if ", "true", " then true else false"),
    "blocks": ("{ return ", "x", " }"),
    "bindings": ("{ y = ", "x", "\n return y }"),
    "functions": ("fn () = ", "x", ""),
    "packed calls": ('packed("p", ', "x", ")"),
    "kills": ("kill ", "x", ""),
}


@pytest.mark.parametrize("name", NESTINGS)
@pytest.mark.parametrize("depth", [DEEPEST_NESTING + 1, 100_000])
def test_nesting_that_is_too_deep_is_a_syntax_error(name, depth):
    start, middle, end = NESTINGS[name]
    with pytest.raises(RelvmSyntaxError, match=f"nested more than {DEEPEST_NESTING} levels deep"):
        parse_module(f"def f(x: f32[]) = {start * depth}{middle}{end * depth}")


@pytest.mark.parametrize("name", [name for name in NESTINGS if name != "kills"])
def test_nesting_that_is_deep_parses_infers_and_prints(name):
    start, middle, end = NESTINGS[name]
    depth = DEEPEST_NESTING // 2 - 2
    module = parse_module(f"def f(x: f32[]) = {start * depth}{middle}{end * depth}")
    assert structural_equal(parse_module(print_module(infer_types(module))), infer_types(module))


def test_types_nested_too_deep():
    with pytest.raises(RelvmSyntaxError, match="levels deep"):
        parse_type("(" * 300 + "f32[]" + ")" * 300)


@pytest.mark.parametrize("kind", ["optional[", "list[", "(i64) -> "])
def test_a_type_that_is_too_deep_has_its_place(kind: str) -> None:
    end = "]" * 101 if kind.endswith("[") else ""
    with pytest.raises(RelvmUnsupportedError, match=r"1:\d+: a type nests 101 types") as caught:
        parse_module(f"def f(x: {kind * 101}f32[]{end}) = x")
    assert caught.value.lineno == 1 and str(caught.value).count("<text>") == 1


@pytest.mark.parametrize("inside", ["(" * 300 + "n" + ")" * 300, "-" * 300 + "n", "min(n, " * 300 + "n" + ")" * 300])
def test_dimensions_nested_too_deep(inside):
    with pytest.raises(RelvmSyntaxError, match="levels deep"):
        parse_type(f"f32[{inside}]")


def test_a_list_of_attributes_nested_too_deep():
    with pytest.raises(RelvmSyntaxError, match="levels deep"):
        parse_module(f"module with (a={'(' * 300}{')' * 300})")


@pytest.mark.parametrize(("parse", "text"), [(parse_type, "f32[n] f32"), (parse_expr, "1 2")])
def test_text_after_the_end(parse, text):
    with pytest.raises(RelvmSyntaxError, match="expected the end of the text, got"):
        parse(text)
