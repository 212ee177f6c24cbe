"""Tests of the text form of kernels: printed kernels parse to the same kernels, and errors have locations."""

from __future__ import annotations

import pytest

from relvm.errors import (
    RelvmArgumentError,
    RelvmError,
    RelvmNameError,
    RelvmShapeError,
    RelvmSyntaxError,
    RelvmTypeError,
)
from relvm.frontend.text import parse_module
from relvm.frontend.text.lexer import DEEPEST_NESTING
from relvm.ir.printer import print_module
from relvm.ir.type_inference import infer_types

HEAD = "kernel k(x: f32[n, m], at: i64[l]) -> (out: f32[n, m], to: i64[l]) {\n"
FILL = "\n  out[0, 0] = 1.0\n  to[0] = 1\n}\n"

# Statements in the form in which they are printed.
BODIES = {
    "a grid": "  for i, j in grid(n, m) {\n    out[i, j] = x[i, j] * 2.0\n  }",
    "loops of each kind": (
        "  for j in parallel(m) {\n    let total = 0.0\n"
        "    for i in simd(1, n) {\n      total = total + x[i, j]\n    }\n"
        "    for i in range(n) {\n      out[i, j] = total\n    }\n  }"
    ),
    "no grid: the inner size depends on the counter": (
        "  for i in range(n) {\n    for j in range(min(i, m)) {\n      out[i, j] = 1.0\n    }\n  }"
    ),
    "branches": (
        "  for i in range(l) {\n    if 0 <= at[i] and at[i] < n {\n      out[at[i], 0] = 1.0\n    } else {\n"
        "      to[i] = -1\n    }\n  }"
    ),
    "precedence": (
        "  let a = (n + m) * l - n // (m % 3)\n  let b = not (a < 3 or a == n) and a != m\n  let c = a - (n - m)\n"
        "  let d = -(a + 1) * -n"
    ),
    "conditional expressions": (
        "  let a = if n < m then (if n < l then n else l) else m\n  let b = (if n < m then n else m) + 1\n"
        "  let c = f32(a) * (if n < m then f32(2.0) else 3.0)"
    ),
    "literals that tell their dtype": (
        "  let a = i8(3)\n  let b = f64(0.5)\n  let c = u8(7) + 1\n  let d = inf\n  let e = -inf\n  let f = nan\n"
        "  let g = true\n  let h = max(f64(1.0), 2.0)\n  let i = -f64(1.0)\n  let j = f16(0.5)\n"
        "  let k = u64(18446744073709551615)"
    ),
    "functions": (
        "  let a = exp(x[0, 0]) + power(x[0, 1], 2.0) - abs(x[1, 0])\n  let b = fma(a, a, 1.0)\n"
        "  let c = min(max(n, m), abs(l))\n  let d = i32(round(a))\n  let e = bool(a)"
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_kernel_is_printed_as_it_is_read(name: str) -> None:
    text = HEAD + BODIES[name] + FILL
    assert print_module(parse_module(text)) == text


def test_short_forms_are_printed_in_full() -> None:
    text = "kernel k(s: f16, x: f32[n]) -> (out: f32[n]) { for i in range(0, n) { out[i] += x[i]; out[i] *= f32(s) } }"
    printed = """\
kernel k(s: f16[], x: f32[n]) -> (out: f32[n]) {
  for i in range(n) {
    out[i] = out[i] + x[i]
    out[i] = out[i] * f32(s)
  }
}
"""
    assert print_module(parse_module(text)) == printed
    assert print_module(parse_module(printed)) == printed


# The kernel, in which the mark ¦ precedes the location of the error, the error class, and the message.  A single
# statement stands for a kernel that contains it.
CASES = [
    ("kernel ¦(x: f32[n]) -> (out: f32[n]) { }", RelvmSyntaxError, "expected the name of a kernel, got ("),
    ("kernel k(x: f32[n]) ¦{ }", RelvmSyntaxError, "expected -> and the outputs of the kernel, got {"),
    ("kernel k¦(x: f32[n]) -> () { }", RelvmTypeError, "kernel k has no output"),
    ("kernel k¦(x: f32[n]) -> (out: f32[n]) { }", RelvmTypeError, "kernel k never writes its output out"),
    (
        "kernel k¦(x: f32[n + 1]) -> (out: f32[]) { out = 1.0 }",
        RelvmNameError,
        "no axis of a parameter has exactly the size n",
    ),
    (
        "kernel k(¦x: str[n]) -> (out: f32[]) { out = 1.0 }",
        RelvmTypeError,
        "known dtype and shape (f32[n, m]), got str[n]",
    ),
    ("kernel k(¦x: f32[_]) -> (out: f32[]) { out = 1.0 }", RelvmTypeError, "got f32[_]"),
    ("kernel k(¦x: object) -> (out: f32[]) { out = 1.0 }", RelvmTypeError, "got object"),
    ("kernel k(x: f32[n], ¦x: f32[n]) -> (out: f32[]) { out = 1.0 }", RelvmNameError, "two parameters are named x"),
    ("kernel k(x: f32[n]) -> (¦for: f32[]) { }", RelvmSyntaxError, "expected a parameter, got the keyword for"),
    ("kernel k(x: f32) -> (y: f32) { y = x }\ndef ¦k() = 1", RelvmSyntaxError, "function k is defined twice"),
    ("def k() = 1\nkernel ¦k(x: f32) -> (y: f32) { y = x }", RelvmSyntaxError, "k is defined twice"),
    ("for i in ¦whatever(n) { }", RelvmSyntaxError, "expected one of grid, range, simd, parallel, got whatever"),
    ("for i, j in ¦range(n) { }", RelvmSyntaxError, "range: expected one counter"),
    ("for i in ¦grid(n, m) { }", RelvmSyntaxError, "grid: expected 1 size, one for each counter, got 2"),
    ("for i in ¦simd(1, n, 2) { }", RelvmSyntaxError, "the arguments (stop) or (start, stop)"),
    ("for ¦x in range(n) { }", RelvmNameError, "x is defined twice; use another name"),
    ("for i in range(n) { for ¦i in range(n) { } }", RelvmNameError, "i is defined twice"),
    ("for i in ¦range(x[0, 0]) { }", RelvmTypeError, "expected an i64, got f32; convert it with i64(x)"),
    ("for i in range(n) { ¦i = 3 }", RelvmTypeError, "i is a loop counter, which cannot be assigned"),
    ("¦n = 3", RelvmTypeError, "n is a parameter or dimension, which cannot be assigned"),
    ("¦x[0, 0] = 1.0", RelvmTypeError, "x is an input, which cannot be written"),
    ("¦out[0] = 1.0", RelvmArgumentError, "out has rank 2, got 1 index"),
    ("¦out[0, 0] = n", RelvmTypeError, "out has dtype f32, got i64; convert the value: f32(x)"),
    ("¦out[0, 0] = true", RelvmTypeError, "True cannot be used as f32"),
    ("out[0, 0] = ¦x", RelvmTypeError, "x is a tensor; expected an element of it, x[i0, i1]"),
    ("¦out[x[0, 0], 0] = 1.0", RelvmTypeError, "expected an i64, got f32"),
    ("let a = 1\n ¦a = 1.5", RelvmTypeError, "1.5 cannot be used as i64"),
    ("let a = 1\n ¦a = x[0, 0]", RelvmTypeError, "a has dtype i64, got f32; convert the value: i64(x)"),
    ("let a = 1\n let ¦a = 2", RelvmNameError, "a is defined twice"),
    (
        "for i in range(n) { let a = 1.0 }\n out[0, 0] = ¦a",
        RelvmNameError,
        "a is defined only in a block that has ended",
    ),
    ("let a = ¦nope", RelvmNameError, "no variable, parameter or dimension nope"),
    ("let a = ¦n[0]", RelvmTypeError, "n is a scalar and has no elements"),
    ("let a = ¦flor(x[0, 0])", RelvmNameError, "no function flor; did you mean floor?"),
    ("let a = ¦exp(n)", RelvmTypeError, "exp: expected f32 or f64, got i64; convert it with f32(x)"),
    ("let a = ¦fma(x[0, 0], 1.0)", RelvmArgumentError, "fma: expected 3 arguments, got 2"),
    ("let a = ¦f32(1, 2)", RelvmSyntaxError, "f32: expected one value, got 2"),
    ("let a = x[0, 0] ¦+ n", RelvmTypeError, "add: operands have dtypes f32 and i64; convert one of them"),
    ("let a = n ¦/ 2", RelvmTypeError, "/: expected f32 or f64, got i64; use //"),
    ("let a = x[0, 0] ¦// 2.0", RelvmTypeError, "// and %: expected integers, got f32"),
    ("let a = 1 ¦// 0", RelvmTypeError, "floordiv of 1 and 0"),
    ("let a = f16(1.0) ¦* 2.0", RelvmTypeError, "got f16; convert it, for example f32(x)"),
    ("let a = ¦if n then 1 else 2", RelvmTypeError, "expected a bool, got i64; compare it, for example x != 0"),
    ("let a = ¦if n < 1 then n else x[0, 0]", RelvmTypeError, "if: operands have dtypes i64 and f32"),
    ("let a = n ¦and true", RelvmTypeError, "expected a bool, got i64"),
    ("let a = 1 < n ¦< 2", RelvmSyntaxError, "comparisons cannot be chained; combine them with and"),
    ("let a = 1 ¦let b = 2", RelvmSyntaxError, "expected a new line or ; after the statement, got let"),
    ("let a = ¦-true", RelvmTypeError, "-: expected a number, got a bool"),
    ("let a = true ¦< false", RelvmTypeError, "lt: expected numbers, got True and False"),
    ("let a = true ¦+ 1", RelvmTypeError, "add: expected numbers, got True and 1"),
    ("let a = u8(1) ¦+ 300", RelvmTypeError, "300 cannot be used as u8"),
]


def kernel_of(text: str) -> str:
    return text if "kernel" in text else HEAD + "  " + text + FILL


@pytest.mark.parametrize(("marked", "kind", "message"), CASES, ids=[case[0] for case in CASES])
def test_errors_point_at_what_is_wrong(marked: str, kind: type[RelvmError], message: str) -> None:
    marked = kernel_of(marked)
    place = marked.index("¦")
    with pytest.raises(kind) as raised:
        parse_module(marked.replace("¦", ""))
    assert message in str(raised.value)
    line, column = marked[:place].count("\n") + 1, place - marked.rfind("\n", 0, place)
    assert str(raised.value).startswith(f"<text>:{line}:{column}: ")


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        ("kernel twise(x)", RelvmNameError, "no kernel twise; did you mean twice?"),
        ("kernel twice(x, x)", RelvmArgumentError, "kernel twice takes 1 argument, got 2"),
        ("kernel twice(i)", RelvmTypeError, "kernel twice: argument x: expected"),
        ("kernel twice(z)", RelvmTypeError, "kernel twice: argument x: expected dtype f32, got i64"),
        ("kernel twice(x) : f32[n, n]", RelvmTypeError, "kernel twice: the stated result: expected rank 2, got 1"),
        ("kernel twice(y)", RelvmTypeError, "kernel twice: the size n is not known here; use match_cast"),
        ("kernel fill(1.0)", RelvmTypeError, "kernel fill: the size n is not known here"),
        ("kernel fill(1.0) : f32[q]", RelvmNameError, "dimension q is not defined here"),
        ("kernel shorter(const(f32[2], [1, 2]))", RelvmShapeError, "kernel shorter: the result would be f32[-3]"),
        ("kernel quotient(x, const(f32[0], []))", RelvmShapeError, "f32[(n // m)]: division of a dimension by 0"),
        ("kernel count(1.5) : i64[n]", RelvmTypeError, "incompatible with a scalar of type f64"),
    ],
)
def test_calls_are_checked(call: str, kind: type[RelvmError], message: str) -> None:
    kernels = """
kernel twice(x: f32[n]) -> (out: f32[n]) { for i in simd(n) { out[i] = 2.0 * x[i] } }
kernel fill(s: f32) -> (out: f32[n]) { for i in simd(n) { out[i] = s } }
kernel shorter(x: f32[n]) -> (out: f32[n - 5]) { for i in simd(n - 5) { out[i] = x[i] } }
kernel quotient(x: f32[n], y: f32[m]) -> (out: f32[n // m]) { out[0] = 1.0 }
kernel count(s: i64) -> (out: i64[n]) { for i in simd(n) { out[i] = s } }
"""
    text = f"{kernels}def main(x: f32[n], y: f32[_], z: i64[n], i: i64) = {call}"
    with pytest.raises(kind) as raised:
        infer_types(parse_module(text))
    assert message in str(raised.value)
    assert "<text>:7:" in str(raised.value)


@pytest.mark.parametrize(
    "deep",
    [
        "let a = " + "(" * DEEPEST_NESTING + "1" + ")" * DEEPEST_NESTING,
        "let a = " + "-" * (DEEPEST_NESTING + 5) + "n",
        "let a = n" + " + n" * 10_000,
        "".join(f"for i{i} in range(n) {{" for i in range(DEEPEST_NESTING))
        + "}" * DEEPEST_NESTING
        + "}" * DEEPEST_NESTING,
        "if n < 1 { " * DEEPEST_NESTING + "}" * DEEPEST_NESTING,
        "if n < 1 { }" + " else if n < 1 { }" * DEEPEST_NESTING,
        "let a = not " * 1 + "not " * DEEPEST_NESTING + "true",
    ],
)
def test_nesting_that_is_too_deep_is_a_syntax_error(deep: str) -> None:
    with pytest.raises(RelvmSyntaxError, match=f"nested more than {DEEPEST_NESTING} levels deep"):
        parse_module(HEAD + deep + FILL)
