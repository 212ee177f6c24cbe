"""Every kind of Python syntax works in a script, or the error names it in Python's words and says what to write."""

from __future__ import annotations

import ast
import linecache
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relvm.errors import (
    RelvmArgumentError,
    RelvmAssertionError,
    RelvmError,
    RelvmShapeError,
    RelvmSyntaxError,
    RelvmTypeError,
)
from relvm.frontend.script import ScriptKernel, syntax_names
from relvm.ir.interpreter import evaluate
from relvm.vm import VirtualMachine, build

HEADER = """import math
import numpy as np
from relvm import kernel, script

K = 3


@script
def scaled(x: "f32[n]", factor: float = 2.0, *, shift: float = 0.0) -> "f32[n]":
    return x * factor + shift


def helper(x):
    return x + 1


"""

# A body of a function of x: f32[n] for each kind of statement and expression.
KINDS = {
    "AnnAssign": "y: 'f32[n]'\nreturn x",
    "Assert": "assert np.all(x > -9), 'too small'\nreturn x",
    "Assign": "y = x\nreturn y",
    "AsyncFor": "async for y in x:\n    pass\nreturn x",
    "AsyncFunctionDef": "async def f(): pass\nreturn x",
    "AsyncWith": "async with x:\n    pass\nreturn x",
    "Attribute": "return x.T",
    "AugAssign": "x += 1\nreturn x",
    "Await": "await x\nreturn x",
    "BinOp": "return x + 1",
    "BoolOp": "return x if K > 1 and K < 5 else -x",
    "Break": "for i in range(5):\n    if i > 2:\n        break\nreturn x",
    "Call": "return np.exp(x)",
    "ClassDef": "class A: pass\nreturn x",
    "Compare": "return x > 1",
    "Constant": "return x * 1j",
    "Continue": "for i in range(5):\n    if i > 2:\n        continue\nreturn x",
    "Delete": "del x",
    "Dict": "return {'a': x}",
    "DictComp": "return {k: x for k in range(3)}",
    "Expr": "x + 1\nreturn x",
    "For": "for i in range(3):\n    x = x + i\nreturn x",
    "FormattedValue": "y = f'{x}'\nreturn x",
    "FunctionDef": "def f(y: 'f32[n]'):\n    return y\nreturn f(x)",
    "GeneratorExp": "return sum(x * k for k in (1, 2))",
    "Global": "global K\nreturn x",
    "If": "if K:\n    return x\nreturn -x",
    "IfExp": "return x if K else -x",
    "Import": "import math\nreturn x",
    "ImportFrom": "from math import pi\nreturn x",
    "JoinedStr": "y = f'a'\nreturn x",
    "Lambda": "return (lambda y: y)(x)",
    "List": "return np.stack([x, x])",
    "ListComp": "return np.stack([x * k for k in range(3)])",
    "Match": "match K:\n    case 1:\n        return x",
    "Name": "return x",
    "NamedExpr": "return (y := x)",
    "Nonlocal": "def f():\n    nonlocal x\n    return x\nreturn f()",
    "Pass": "pass\nreturn x",
    "Raise": "raise ValueError",
    "Return": "return x",
    "Set": "return {1, 2}",
    "SetComp": "return {k for k in range(3)}",
    "Slice": "return x[1:]",
    "Starred": "return np.stack((*(x, x), x))",
    "Subscript": "return x[0]",
    "Try": "try:\n    return x\nexcept ValueError:\n    return x",
    "TryStar": "try:\n    pass\nexcept* ValueError:\n    pass\nreturn x",
    "Tuple": "return (x, x)",
    "UnaryOp": "return -x",
    "While": "while x.sum() < 3:\n    x = x + 1\nreturn x",
    "With": "with x:\n    return x",
    "Yield": "yield x",
    "YieldFrom": "yield from x",
}
if sys.version_info >= (3, 12):
    KINDS["TypeAlias"] = "type T = int\nreturn x"
if sys.version_info >= (3, 14):
    KINDS["Interpolation"] = KINDS["TemplateStr"] = "y = t'{x}'\nreturn x"
WORKS = set(
    "Assert Assign Attribute AugAssign BinOp BoolOp Break Call Compare Continue For FunctionDef GeneratorExp If IfExp "  # noqa: SIM905
    "Lambda List ListComp Name Pass Return Slice Starred Subscript Tuple UnaryOp While".split()
)


def load(source: str, path: Path, name: str = "program") -> dict[str, Any]:
    file = path / f"{name}.py"
    file.write_text(source)
    linecache.checkcache()
    names: dict[str, Any] = {"__name__": name}
    exec(compile(source, str(file), "exec", dont_inherit=True), names)
    return names


def script_of(body: str, path: Path, parameters: str = 'x: "f32[n]"') -> Any:
    is_async = re.search("await|async (for|with)", body)
    head = f"@script\n{'async ' if is_async else ''}def main({parameters}):\n"
    return load(HEADER + head + textwrap.indent(body, "    "), path)["main"]


def python_kinds() -> list[str]:
    """Return the names of all kinds of statements and expressions of this version of Python."""
    kinds = (kind for kind in vars(ast).values() if isinstance(kind, type) and issubclass(kind, ast.stmt | ast.expr))
    old = {"Num", "Str", "Bytes", "NameConstant", "Ellipsis"}
    return sorted({kind.__name__ for kind in kinds if kind.__module__ in ("ast", "_ast")} - {"stmt", "expr"} - old)


def test_every_kind_of_syntax_has_an_example() -> None:
    assert sorted(KINDS) == python_kinds()
    assert all(kind in syntax_names._SYNTAX for kind in python_kinds())


def test_every_operator_has_a_symbol() -> None:
    bases = (ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
    assert set(syntax_names.OPERATOR_SYMBOLS) == {kind for base in bases for kind in base.__subclasses__()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_of_syntax_works_or_is_named(kind: str, tmp_path: Path) -> None:
    if kind in WORKS:
        assert script_of(KINDS[kind], tmp_path).module
        return
    with pytest.raises(RelvmSyntaxError) as raised:
        script_of(KINDS[kind], tmp_path).module  # noqa: B018
    message = str(raised.value)
    assert re.search(r"program\.py:\d+:\d+: ", message)
    assert not re.search(rf"\b{kind}\b", message.split("\n")[0])
    if kind not in ("AsyncFor", "AsyncWith", "Await", "Constant"):
        name, advice = syntax_names._SYNTAX[kind]
        assert f"{name} is not supported in a script; {advice}" in message


@pytest.mark.parametrize("kind", KINDS)
def test_kernels_name_syntax_in_the_words_of_python(kind: str, tmp_path: Path) -> None:
    body = textwrap.indent(KINDS[kind], "    ")
    head = '@kernel\ndef main(x: "f32[n]", out: "f32[n]"):\n    out[0] = 1.0\n'
    head = head.replace("def", "async def") if kind in ("AsyncFor", "AsyncWith", "Await") else head
    try:
        kernel = load(HEADER + head + body, tmp_path)["main"]
        assert isinstance(kernel, ScriptKernel)
        kernel.definition  # noqa: B018
    except RelvmError as error:
        assert not re.search(rf"\b(statement|syntax|operator) {kind}\b", str(error))


# Bodies of functions of x: f32[n] that newcomers write, and the part of the error with the replacement.
ADVICE = [
    ("return helper(x)", RelvmTypeError, "a script cannot call helper.*; decorate helper with @script"),
    ("print(x)\nreturn x", RelvmTypeError, "a script cannot call print.*; remove it, and return the value"),
    ("return x if isinstance(x, list) else x", RelvmTypeError, "isinstance.*; remove it; types are known"),
    ("return math.exp(x)", RelvmTypeError, r"write np.exp\(...\) for tensors"),
    ("return 0 < x < 1", RelvmTypeError, "combine bool tensors with & | ~, choose elements with np.where"),
    ("return x if x > 0 else -x", RelvmTypeError, "choose elements with np.where"),
    ("return x.item()", RelvmTypeError, r"write float\(x\) or int\(x\)"),
    ("y = []\ny.append(x)\nreturn y", RelvmTypeError, "write a list comprehension"),
    ("y = range(3)\nreturn x + range(3)", RelvmTypeError, "can only be used in a for or a comprehension"),
    ("for i in len(x):\n    x = x + i\nreturn x", RelvmTypeError, r"cannot loop over a number; write range"),
    ("return scaled(x, facter=3.0)", RelvmArgumentError, r"unexpected keyword argument 'facter'; expected \(x, factor"),
    ("def f(y):\n    return y\nreturn f(x)", RelvmSyntaxError, 'needs a type, such as y: "f32'),
    ("return zip(x, (1, 2))", RelvmTypeError, "can only be used in a for"),
    (
        "for a, b in zip(x, (1, 2)):\n    x = x + a\nreturn x",
        RelvmTypeError,
        "zip: expected only tensors, or only tuples",
    ),
    ("assert K == 4, 'K must be 4'\nreturn x", RelvmAssertionError, "K must be 4"),
]


@pytest.mark.parametrize(("body", "kind", "message"), ADVICE, ids=[body for body, _, _ in ADVICE])
def test_an_error_says_what_to_write(body: str, kind: type[RelvmError], message: str, tmp_path: Path) -> None:
    with pytest.raises(kind, match=message) as raised:
        script_of(body, tmp_path).module  # noqa: B018
    assert re.search(r"program\.py:\d+:\d+: ", str(raised.value))


# Statements and expressions whose result is that of the same Python function on NumPy arrays.
SAME = [
    "s = 0.0\nfor i in range(len(x)):\n    s = s + x[i]\nreturn s",
    "s = 0\nfor v in x:\n    s += v\nreturn s",
    "s = np.zeros(3, np.float32)\nfor row in w:\n    s = s + row\nreturn s",
    "s = 0.0\nfor i, v in enumerate(x):\n    s = s + v * i\nreturn s",
    "s = 0.0\nfor i, v in enumerate(x, start=2):\n    s = s + v * i\nreturn s",
    "s = 0.0\nfor a, (k, b) in zip(x, enumerate(x * 2)):\n    s = s + a * b + k\nreturn s",
    "for v in x:\n    if v > 1:\n        break\n    x = x + v\nreturn x",
    "for i, c in zip(range(2), (1.0, 2.0)):\n    x = x * c + i\nreturn x",
    "for c in reversed([1.0, 2.0]):\n    x = x * c + 1\nreturn x",
    "for row in w[:2]:\n    for v in row:\n        x = x + v\nreturn x",
    "k = 7\nys = [x * k for k in range(3)]\nreturn sum(ys) * k",
    "return np.stack([row * 2 for row in w if K == 3])",
    "return sum(x * a * b for a in (1, 2) for b in (3, 4) if a != b)",
    "return scaled(x, shift=1.0)",
    "return scaled(factor=3.0, x=x)",
    "assert len(x) == 4 and K > 1, 'wrong size'\nreturn x",
    "return x[x > 0]",
    "return (x, x * 2, x * 3)[1:][0]",
    "return w + np.arange(3, dtype=np.float32)[None, ::-1][0] + np.float32([1, 2, 3, 4])[1:3][0]",
    "return w[w > 0]",
]


def numbers() -> tuple[np.ndarray, np.ndarray]:
    return np.array([1.5, -2, 3, 0.25], np.float32), np.arange(-3, 3, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("shapes", ['x: "f32[n]", w: "f32[2, 3]"', 'x: "f32[4]", w: "f32[2, 3]"'])
@pytest.mark.parametrize("body", SAME)
def test_a_body_has_the_value_that_python_computes(body: str, shapes: str, tmp_path: Path) -> None:
    arguments = numbers()
    expected = load(
        HEADER.replace("@script\n", "") + f"def main(x, w):\n{textwrap.indent(body, '    ')}", tmp_path, "py"
    )
    result = evaluate(script_of(body, tmp_path, shapes).module, "main", *arguments)
    np.testing.assert_allclose(result, expected["main"](*arguments), rtol=1e-6)


ASSIGNMENTS = [
    "x[0] = 7",
    "x[-1] = 7",
    "x[x < 0] = 0",
    "x[1:] = 0",
    "x[:-1] = 5",
    "x[1:3] += 2",
    "x[2] *= 3",
    "w[0] = w[1]",
    "w[1, 2] = 9",
    "w[:, 1] = 4",
    "w[-1, :2] = 4",
    "w[w > 1] = -1",
]


@pytest.mark.parametrize("statement", ASSIGNMENTS)
def test_the_advice_for_an_assignment_to_items_is_right(statement: str, tmp_path: Path) -> None:
    shapes = 'x: "f32[n]", w: "f32[2, 3]"'
    with pytest.raises(RelvmSyntaxError, match="tensors do not change; write ") as raised:
        script_of(f"{statement}\nreturn x, w", tmp_path, shapes).module  # noqa: B018
    advice = str(raised.value).split("\n")[0].partition("tensors do not change; write ")[2]
    x, w = numbers()
    result = evaluate(script_of(f"{advice}\nreturn x, w", tmp_path, shapes).module, "main", x, w)
    exec(statement, {"x": x, "w": w})
    for found, expected in zip(result, (x, w), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_result_type_that_is_wrong_names_both_types(tmp_path: Path) -> None:
    for annotation, body, reason in [
        ('"f32[3]"', "return w[0, :2]", r"expected f32\[3\], got f32\[2\]: expected dimension 0 to be 3"),
        ('"f32[n + 1]"', "return x", r"expected f32\[n \+ 1\], got f32\[n\]"),
        ('"f32[n, 1]"', "return x", r"expected f32\[n, 1\], got f32\[n\]: expected rank 2"),
        ('"i64[n]"', "return x", r"expected i64\[n\], got f32\[n\]"),
        ('"(f32[n], f32[n])"', "return x", r"expected \(f32\[n\], f32\[n\]\), got f32\[n\]"),
        ("float", "return x", r"expected f64, got f32\[n\]"),
    ]:
        source = f'@script\ndef main(x: "f32[n]", w: "f32[2, 3]") -> {annotation}:\n    {body}\n'
        with pytest.raises(RelvmTypeError, match=rf"program\.py:\d+:12: result: {reason}"):
            load(HEADER + source, tmp_path)["main"].module  # noqa: B018


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_an_error_at_run_time_names_the_line_and_the_function(mode: str, tmp_path: Path) -> None:
    source = HEADER + textwrap.dedent("""
        @script
        def main(x: "f32[n]") -> "f32[3]":
            y: "f32[3]" = x + 1
            return y

        @script
        def result(x: "f32[n]") -> "f32[3]":
            return x + 1

        @script
        def positive(x: "f32[n]"):
            assert x.sum() > 0, "the sum must be positive"
            return x
    """)
    names = load(source, tmp_path)
    lines = source.splitlines()
    x = -np.ones(2, np.float32)
    for name, line, kind, message in [
        (
            "main",
            '    y: "f32[3]" = x + 1',
            RelvmShapeError,
            r"y, declared as f32\[3\]: expected dimension 0 to be 3, got 2",
        ),
        ("result", "    return x + 1", RelvmShapeError, r"result, declared as f32\[3\]: expected dimension 0"),
        (
            "positive",
            '    assert x.sum() > 0, "the sum must be positive"',
            RelvmAssertionError,
            "the sum must be positive",
        ),
    ]:
        number = len(lines) - lines[::-1].index(line)
        machine = VirtualMachine(build(names[name], mode, "bytecode"))
        with pytest.raises(kind, match=rf"^program\.py:{number}: {name}: {message}"):
            machine[name](x)
