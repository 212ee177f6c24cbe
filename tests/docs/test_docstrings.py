"""A docstring that names errors names every error that the function itself raises."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

import pytest
from support.documents import ROOT

from relvm import errors

# Functions that raise RelvmTypeError if an argument has the wrong type.
CHECKS = ("expect_type", "expect_name", "expect_path")
DOCUMENTED = [
    pytest.param(node, id=f"{path.relative_to(ROOT)}:{node.name}")
    for path in sorted((ROOT / "relvm").rglob("*.py"))
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    if isinstance(node, ast.FunctionDef) and re.search(r"\bRaises\n---|\bRaise [A-Z]", ast.get_docstring(node) or "")
]


def names_of(error: str) -> set[str]:
    """Return the names of an exception class and of those that it is derived from, or an empty set for other names."""
    kind = getattr(errors, error, None) or getattr(builtins, error, None)
    if not isinstance(kind, type) or not issubclass(kind, Exception):
        return set()
    return {each.__name__ for each in kind.__mro__} - {"object", "BaseException", "Exception"}


def raised(node: ast.AST, caught: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield the errors that the code of a function raises itself.   caught: those that it handles."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(child, ast.Try):
            handled = {
                each.id for handler in child.handlers for each in ast.walk(handler) if isinstance(each, ast.Name)
            }
            yield from raised(ast.Module(child.body, []), caught | handled)
            yield from raised(ast.Module([*child.handlers, *child.orelse, *child.finalbody], []), caught)
            continue
        match child:
            case ast.Raise(exc=ast.Call(func=ast.Name(id=name))) if names_of(name):
                found = name
            case ast.Call(func=ast.Name(id=name)) if name in CHECKS:
                found = "RelvmTypeError"
            case _:
                found = ""
        if found and not names_of(found) & caught:
            yield found
        yield from raised(child, caught)


@pytest.mark.parametrize("function", DOCUMENTED)
def test_every_error_is_named(function: ast.FunctionDef) -> None:
    text = ast.get_docstring(function) or ""
    words = set(re.findall(r"\w+", text.partition("Raises\n---")[2] or text))
    assert [error for error in raised(function) if error != "AssertionError" and not names_of(error) & words] == []


def test_errors_are_found() -> None:
    text = """
def f(x):
    expect_type("x", x, int, "an int")
    try:
        raise RelvmFormatError("caught")
    except RelvmFormatError:
        raise RelvmShapeError("not caught")
"""
    assert list(raised(ast.parse(text).body[0])) == ["RelvmTypeError", "RelvmShapeError"]
