"""Analysis of the statements of a script: the names that they use and assign, and their jumps."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

LOOPS = (ast.While, ast.For)


def loads(body: Iterable[ast.AST]) -> set[str]:
    """Return the names that statements use, including those in nested functions."""
    used = [item for statement in body for item in ast.walk(statement)]
    names = {item.id for item in used if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load)}
    return names | {i.target.id for i in used if isinstance(i, ast.AugAssign) and isinstance(i.target, ast.Name)}


def stores(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield the names that statements assign, in order.  Assignments in nested functions are not included."""
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name):
                yield name
            case ast.If(body=then, orelse=orelse):
                yield from stores(then)
                yield from stores(orelse)
            case ast.While(body=inner):
                yield from stores(inner)
            case ast.For(target=target, body=inner):
                yield from stores([ast.Expr(target)])
                yield from stores(inner)
            case _:
                for item in ast.walk(statement):
                    if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store):
                        yield item.id


def returns(statement: ast.stmt) -> bool:
    """Return whether a statement contains a return.  Nested functions are not included."""
    return _has(statement, (ast.Return,), ())


def ends_round(statement: ast.stmt) -> bool:
    """Return whether a statement contains a break or continue of the enclosing loop."""
    return _has(statement, (ast.Break, ast.Continue), LOOPS)


def jumps(statement: ast.stmt) -> bool:
    """Return whether a statement contains a return, or a break or continue of the enclosing loop."""
    return returns(statement) or ends_round(statement)


def falls_through(body: Iterable[ast.stmt]) -> bool:
    """Return whether control can reach the end of the statements, because no statement jumps on every path."""
    return not any(map(_always_jumps, body))


def _always_jumps(statement: ast.stmt) -> bool:
    match statement:
        case ast.Return() | ast.Break() | ast.Continue():
            return True
        case ast.If(body=then, orelse=orelse):
            return not falls_through(then) and not falls_through(orelse)
    return False


def _has(statement: ast.stmt, wanted: tuple[type, ...], outside: tuple[type, ...]) -> bool:
    if isinstance(statement, wanted):
        return True
    if isinstance(statement, (ast.FunctionDef, *outside)):
        return False
    children = (child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.stmt))
    return any(_has(child, wanted, outside) for child in children)
