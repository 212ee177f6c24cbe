"""Analysis of the statements of a script: the names that they use and assign, and their jumps."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

LOOPS = (ast.While, ast.For)


def loaded_names(body: Iterable[ast.AST]) -> set[str]:
    """Return the names whose values statements use, also in nested functions."""
    used = [item for statement in body for item in ast.walk(statement)]
    names = {item.id for item in used if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load)}
    return names | {i.target.id for i in used if isinstance(i, ast.AugAssign) and isinstance(i.target, ast.Name)}


def stored_names(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield the names that statements assign, in order, without those that nested functions assign."""
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name):
                yield name
            case ast.If(body=then, orelse=orelse):
                yield from stored_names(then)
                yield from stored_names(orelse)
            case ast.While(body=inner):
                yield from stored_names(inner)
            case ast.For(target=target, body=inner):
                yield from stored_names([ast.Expr(target)])
                yield from stored_names(inner)
            case _:
                yield from _stored_in(statement)


def _stored_in(node: ast.AST) -> Iterator[str]:
    """Yield the names that `node` assigns.  Comprehensions have their own scope."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    if not isinstance(node, ast.comprehension):
        for child in ast.iter_child_nodes(node):
            yield from _stored_in(child)


def contains_return(statement: ast.stmt) -> bool:
    """Return whether a statement contains a return, other than in a nested function."""
    return _contains(statement, (ast.Return,), ())


def contains_loop_jump(statement: ast.stmt) -> bool:
    """Return whether a statement contains a break or continue of the loop around it."""
    return _contains(statement, (ast.Break, ast.Continue), LOOPS)


def contains_jump(statement: ast.stmt) -> bool:
    """Return whether a statement contains a return, or a break or continue of the loop around it."""
    return contains_return(statement) or contains_loop_jump(statement)


def can_fall_through(body: Iterable[ast.stmt]) -> bool:
    """Return whether control can reach the end of the statements.

    Control cannot reach the end if one of the statements ends every path with a return, break or continue.
    """
    return not any(map(_always_jumps, body))


def _always_jumps(statement: ast.stmt) -> bool:
    match statement:
        case ast.Return() | ast.Break() | ast.Continue():
            return True
        case ast.If(body=then, orelse=orelse):
            return not can_fall_through(then) and not can_fall_through(orelse)
    return False


def _contains(statement: ast.stmt, kinds: tuple[type, ...], skipped: tuple[type, ...]) -> bool:
    if isinstance(statement, kinds):
        return True
    if isinstance(statement, (ast.FunctionDef, *skipped)):
        return False
    children = (child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.stmt))
    return any(_contains(child, kinds, skipped) for child in children)
