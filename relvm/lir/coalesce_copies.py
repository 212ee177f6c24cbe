"""Values made where they are wanted."""

from __future__ import annotations

from dataclasses import replace

from relvm.lir.routine import (
    CallStatement,
    IfStatement,
    LirModule,
    PrimStatement,
    Register,
    ResetStatement,
    Routine,
    Statement,
)

_COPY = "vm.builtin.copy"


def coalesce_copies(module: LirModule) -> LirModule:
    """Have what a block ends with put its value where the block's last statement would copy it to:

    anylist_setitem(r, 5, add_i64(...))
    anylist_setitem_call_packed(r, 3, "vm.builtin.copy", anylist_getitem(r, 5))  ->  anylist_setitem(r, 3, add_i64(...))

    An if before such a copy has its branches copy there; where the copy is all a branch does, nothing is gained, and it
    stays.  A value's register is written once and, but for the copy, not read after the statement that makes it.
    """
    return replace(module, routines=tuple(_routine(routine) for routine in module.routines))


def _routine(routine: Routine) -> Routine:
    return replace(routine, body=_block(routine.body, len(routine.params)))


def _block(body: tuple[Statement, ...], params: int) -> tuple[Statement, ...]:
    """The block, and those in its ifs, without the copies that can be spared.  params: registers of the caller's."""
    *before, last = [_inside(statement, params) for statement in body]
    match last:
        case CallStatement(function=name, args=(Register(index),), destination=int(destination)) if (
            name == _COPY and index > params
        ):
            made = _made_in(before, index, destination, last.comment)
            if made is not None:
                return made
    return (*before, last)


def _inside(statement: Statement, params: int) -> Statement:
    match statement:
        case IfStatement(_, then, orelse):
            return replace(statement, then=_ended(then, params), orelse=_ended(orelse, params))
    return statement


def _ended(body: tuple[Statement, ...], params: int) -> tuple[Statement, ...]:
    return _block(body, params) if body else body


def _made_in(body: list[Statement], index: int, destination: int, name: str) -> tuple[Statement, ...] | None:
    """The statements with `destination` in the place of register `index`, if the last but for resets makes it.   name:
    what that is then."""
    at = len(body) - 1
    while at >= 0 and isinstance(body[at], ResetStatement) and body[at].register not in (index, destination):
        at -= 1
    if at < 0:
        return None
    resets = body[at + 1 :]
    match body[at]:
        case PrimStatement(args=args, destination=made) if made == index and Register(destination) not in args:
            return (*body[:at], _renamed(body[at], destination, name), *resets)
        case CallStatement(args=args, destination=made) if made == index and Register(destination) not in args:
            return (*body[:at], _renamed(body[at], destination, name), *resets)
        case IfStatement(cond, then, orelse) if cond != Register(destination):
            then, orelse = (_redirected(branch, index, destination, name) for branch in (then, orelse))
            if then is not None and orelse is not None:
                return (*body[:at], replace(body[at], then=then, orelse=orelse), *resets)
    return None


def _renamed(statement: CallStatement | PrimStatement, destination: int, name: str) -> Statement:
    return replace(statement, destination=destination, comment=name or statement.comment)


def _redirected(body: tuple[Statement, ...], index: int, destination: int, name: str) -> tuple[Statement, ...] | None:
    """A branch that ends with writing register `index`, writing `destination` instead."""
    match body:
        case [*before, CallStatement() | PrimStatement() as last] if last.destination == index:
            return (*before, _renamed(last, destination, name))
        case [*before, IfStatement(_, then, orelse) as last]:
            then, orelse = (_redirected(branch, index, destination, name) for branch in (then, orelse))
            if then is not None and orelse is not None:
                return (*before, replace(last, then=then, orelse=orelse))
    return None
