"""Loop variables: update the parameters of a tail-recursive routine directly in the parameter registers."""

from __future__ import annotations

from dataclasses import replace

from relvm.lir.routine import (
    LirModule,
    Operand,
    PrimStatement,
    Register,
    Routine,
    Statement,
    TailCallStatement,
    map_blocks,
)
from relvm.tables import PRIM_OPERATORS

_MAY_FAIL = frozenset(row.name for row in PRIM_OPERATORS if row.fails)


def tail_recursion_to_loop(module: LirModule) -> LirModule:
    """Compute the arguments of a recursive tail call directly in the parameter registers:

    anylist_setitem(r, 6, add_i64(r[0], 1))             anylist_setitem(r, 1, add_i64(r[1], r[0]))
    anylist_setitem(r, 7, add_i64(r[1], r[0]))     ->   anylist_setitem(r, 0, add_i64(r[0], 1))
    return tail_call("loop", r[6], r[7])                return tail_call("loop", r[0], r[1])

    If a statement writes a parameter and cannot fail, it is moved after the statements that still read the old value.
    """
    return module.map_bodies(lambda routine: _convert_block(routine.body, routine))


def _convert_block(body: tuple[Statement, ...], routine: Routine) -> tuple[Statement, ...]:
    match body:
        case [*before, TailCallStatement(function=function) as call] if function == routine.key:
            return _write_parameters(before, call, len(routine.params))
        case [*before, last]:
            return (*before, map_blocks(lambda block: _convert_block(block, routine), last))
    return body


def _write_parameters(before: list[Statement], call: TailCallStatement, params: int) -> tuple[Statement, ...]:
    """Return the rewritten statements of a block that ends with the recursive tail call `call`.

    In the rewritten statements, arithmetic that computes an argument of the call writes directly to the parameter
    register, where possible.

    before: the statements before `call`.
    params: the number of parameters.
    """
    start = len(before)
    arithmetic: list[PrimStatement] = []  # statements directly before the call, in reverse order
    while start and isinstance(statement := before[start - 1], PrimStatement):
        arithmetic.append(statement)
        start -= 1
    later: list[PrimStatement] = []
    args = list(call.args)
    for statement in arithmetic:
        value = Register(statement.destination)
        param = args.index(value) if value in args else -1
        if value.index <= params or param < 0 or _reads(args, Register(param), param) or _reads(args, value, param):
            later.insert(0, statement)
            continue
        target = Register(param)
        moved = replace(statement, destination=param)
        if not any(_reads(other.args, target) for other in later):
            later = [moved, *(replace(other, args=_replace_register(other.args, value, target)) for other in later)]
        elif statement.row not in _MAY_FAIL and not any(
            _reads(other.args, value) or _reads(statement.args, Register(other.destination)) for other in later
        ):
            later.append(moved)
        else:
            later.insert(0, statement)
            continue
        args[param] = target
    return (*before[:start], *later, replace(call, args=tuple(args)))


def _reads(args: list[Operand] | tuple[Operand, ...], register: Register, except_index: int = -1) -> bool:
    """Return whether one of the operands `args` is `register`, apart from the operand at index `except_index`."""
    return any(arg == register for i, arg in enumerate(args) if i != except_index)


def _replace_register(args: tuple[Operand, ...], old: Register, new: Register) -> tuple[Operand, ...]:
    return tuple(new if arg == old else arg for arg in args)
