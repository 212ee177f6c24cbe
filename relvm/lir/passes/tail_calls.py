"""Tail calls: calls at the end of a routine, whose result is the result of the routine."""

from __future__ import annotations

from dataclasses import replace

from relvm.lir.routine import (
    COPY,
    INVOKES,
    CallStatement,
    FunctionKey,
    IfStatement,
    LirModule,
    Register,
    ResetStatement,
    Statement,
    TailCallStatement,
    blocks_of,
    merge_origins,
)


def tail_calls(module: LirModule) -> LirModule:
    """Replace a call at the end of a routine by a tail call, which needs no stack space:

    anylist_setitem_call_packed(r, 4, "loop", ...)
    anylist_setitem_call_packed(r, 2, "vm.builtin.copy", anylist_getitem(r, 4))   ->   return tail_call("loop", ...)

    If an `if` precedes the copy, the copy is first moved to the ends of both branches.
    """
    functions = {routine.key for routine in module.routines} | set(INVOKES)
    return module.map_bodies(lambda routine: _convert_end(routine.body, len(routine.params), functions))


def _convert_end(body: tuple[Statement, ...], result: int, functions: set[FunctionKey]) -> tuple[Statement, ...]:
    """Replace calls at the end of a block, or at the ends of its branches, by tail calls where possible.

    body: the block.  Its last statement copies the result of the routine to register `result`.
    functions: the functions that tail calls can call.
    """
    *before, last = body
    assert isinstance(last, CallStatement) and last.function == COPY, f"a body that ends with {last}"
    value = last.args[0]
    if not isinstance(value, Register):
        return body
    while before and isinstance(before[-1], ResetStatement) and before[-1].register != value.index:
        before.pop()  # the tail call releases these registers, too
    match before:
        case [*start, CallStatement(function, args, destination, _) as call] if (
            destination == value.index and function in functions and (function not in INVOKES or len(args) > 1)
        ):  # a call of a closure without the closure fails
            return (*start, TailCallStatement(function, args, origins=merge_origins(call.origins, last.origins)))
        case [*start, IfStatement(_, then, orelse) as branches] if _ends_with_copy_to(
            then, value
        ) and _ends_with_copy_to(orelse, value):
            then, orelse = (
                _convert_end(_change_destination(branch, last), result, functions) for branch in (then, orelse)
            )
            if not (_ends_with_tail_call(then) or _ends_with_tail_call(orelse)):
                return body
            return (*start, replace(branches, then=then, orelse=orelse))
    return body


def _ends_with_copy_to(body: tuple[Statement, ...], result: Register) -> bool:
    """Return whether a branch of an `if` ends with a copy to the register for the result of the `if`.

    body: the branch.
    result: the register.
    """
    last = body[-1]
    return isinstance(last, CallStatement) and last.function == COPY and last.destination == result.index


def _change_destination(body: tuple[Statement, ...], copy: CallStatement) -> tuple[Statement, ...]:
    """Return `body` with the destination of its last statement replaced by the destination of `copy`.

    body: a branch of an `if`.  Its last statement must copy a value to a register.
    """
    match body:
        case [*before, CallStatement() as last]:
            origins = merge_origins(last.origins, copy.origins)
            return (*before, replace(last, destination=copy.destination, origins=origins))
    return body


def _ends_with_tail_call(body: tuple[Statement, ...]) -> bool:
    return isinstance(body[-1], TailCallStatement) or any(map(_ends_with_tail_call, blocks_of(body[-1])))
