"""Copy coalescing: compute a value directly in the register to which it would be copied."""

from __future__ import annotations

from dataclasses import replace

from relvm.lir.routine import (
    COPY,
    CallStatement,
    LirModule,
    Operand,
    PrimStatement,
    Register,
    Statement,
    map_blocks,
    map_operands,
    merge_origins,
    operands_of,
    statements_in,
    written_registers,
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
    return module.map_bodies(lambda routine: _coalesce_block(routine.body))


def _coalesce_block(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Return the block `body` without unnecessary copies, also inside nested ifs."""
    body = tuple(map_blocks(_coalesce_block, statement) for statement in body)
    match body:
        case [*before, CallStatement(function=name, args=(Register(index),), destination=int(target)) as copy] if (
            name == COPY and any(index in written_registers(statement) for statement in statements_in(tuple(before)))
        ):
            return tuple(_redirect(statement, index, copy, target) for statement in before)
    return body


def _redirect(statement: Statement, register: int, copy: CallStatement, target: int) -> Statement:
    """Return `statement` with register `register` replaced by `target`, the destination register of `copy`.

    A statement that computes the value of `register` gets the comment of `copy`.  Unless it is a call of a kernel, it
    also gets the source locations (origins) of `copy`, in addition to its own.
    """

    def operand(value: Operand) -> Operand:
        return Register(target) if value == Register(register) else value

    def block(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return tuple(_redirect(inner, register, copy, target) for inner in body)

    redirected = map_blocks(block, map_operands(operand, statement))
    if not isinstance(redirected, CallStatement | PrimStatement):
        return redirected
    if redirected.destination is None and redirected.comment and copy.comment:
        names = redirected.comment.split(", ")
        written = operands_of(statement)[-len(names) :]  # the last arguments of a kernel are the tensors that it writes
        names = [
            copy.comment if value == Register(register) else name for name, value in zip(names, written, strict=True)
        ]
        return replace(redirected, comment=", ".join(names))
    if redirected.destination != register:
        return redirected
    comment, origins = copy.comment or redirected.comment, merge_origins(redirected.origins, copy.origins)
    return replace(redirected, destination=target, comment=comment, origins=origins)
