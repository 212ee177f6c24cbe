"""Copy coalescing: compute a value directly in the register to which it would be copied."""

from __future__ import annotations

from dataclasses import replace

from relvm.lir.routine import (
    COPY,
    CallStatement,
    IfStatement,
    LirModule,
    Operand,
    PrimStatement,
    Register,
    ResetStatement,
    Statement,
    TailCallStatement,
    merge_origins,
)


def copy_coalescing(module: LirModule) -> LirModule:
    """Compute the result of a block directly in the register to which the last statement of the block copies it:

    anylist_setitem_call_packed(r, 5, ...)
    kernel(ctx_ptr, ..., anylist_getitem(r, 5))                        anylist_setitem_call_packed(r, 3, ...)
    anylist_setitem_call_packed(r, 3, "vm.builtin.copy", r[5])    ->   kernel(ctx_ptr, ..., anylist_getitem(r, 3))

    The copy would keep the value alive in a second register, longer than needed.  Constants, and values computed
    outside the block, are still copied.

    The change is correct because each value has its own register, and no statement before the copy reads the
    destination of the copy.
    """
    return replace(module, routines=tuple(replace(each, body=_coalesce_block(each.body)) for each in module.routines))


def _coalesce_block(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Return the block `body` without unnecessary copies, also inside nested ifs."""
    body = tuple(map(_coalesce_branches, body))
    match body:
        case [*before, CallStatement(function=name, args=(Register(index),), destination=int(target)) as copy] if (
            name == COPY and any(_writes(statement, index) for statement in before)
        ):
            return tuple(_redirect(statement, index, copy, target) for statement in before)
    return body


def _coalesce_branches(statement: Statement) -> Statement:
    if isinstance(statement, IfStatement):
        return replace(statement, then=_coalesce_block(statement.then), orelse=_coalesce_block(statement.orelse))
    return statement


def _writes(statement: Statement, register: int) -> bool:
    """Return whether `statement`, or a statement inside it, writes register `register`."""
    match statement:
        case CallStatement(destination=destination) | PrimStatement(destination=destination):
            return destination == register
        case IfStatement(then=then, orelse=orelse):
            return any(_writes(inner, register) for inner in (*then, *orelse))
    return False


def _redirect(statement: Statement, register: int, copy: CallStatement, target: int) -> Statement:
    """Return `statement` with register `register` replaced by `target`, the destination register of `copy`.

    A statement that computes the value of `register` gets the comment of `copy`.  Unless it is a call of a kernel, it
    also gets the source locations (origins) of `copy`, in addition to its own.
    """

    def operand(value: Operand) -> Operand:
        return Register(target) if value == Register(register) else value

    match statement:
        case ResetStatement():
            return statement
        case TailCallStatement(args=args):
            return replace(statement, args=tuple(map(operand, args)))
        case IfStatement(cond, then, orelse):
            then, orelse = (
                tuple(_redirect(inner, register, copy, target) for inner in branch) for branch in (then, orelse)
            )
            return replace(statement, cond=operand(cond), then=then, orelse=orelse)
    redirected = replace(statement, args=tuple(map(operand, statement.args)))
    if (
        statement.destination is None and statement.comment and copy.comment
    ):  # the arguments of a kernel include the tensors that it writes
        names = statement.comment.split(", ")
        written = statement.args[-len(names) :]
        names = [
            copy.comment if value == Register(register) else name for name, value in zip(names, written, strict=True)
        ]
        return replace(redirected, comment=", ".join(names))
    if statement.destination != register:
        return redirected
    comment, origins = copy.comment or statement.comment, merge_origins(statement.origins, copy.origins)
    return replace(redirected, destination=target, comment=comment, origins=origins)
