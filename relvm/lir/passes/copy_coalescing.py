"""Values made where they are wanted."""

from __future__ import annotations

from dataclasses import replace

from relvm.lir.routine import (
    CallStatement,
    IfStatement,
    LirModule,
    Operand,
    PrimStatement,
    Register,
    ResetStatement,
    Statement,
    TailCallStatement,
    joined,
)

_COPY = "vm.builtin.copy"


def copy_coalescing(module: LirModule) -> LirModule:
    """Have the value that a block ends with be made in the register that the block's last statement would copy it to:

    anylist_setitem_call_packed(r, 5, ...)
    kernel(ctx_ptr, ..., anylist_getitem(r, 5))                        anylist_setitem_call_packed(r, 3, ...)
    anylist_setitem_call_packed(r, 3, "vm.builtin.copy", r[5])    ->   kernel(ctx_ptr, ..., anylist_getitem(r, 3))

    So no register of the block holds the value for longer than it is needed.  What is made outside of the block, and
    what is a constant, is copied.  A value's register is its own, and nothing reads where the copy goes before it.
    """
    return replace(module, routines=tuple(replace(each, body=_block(each.body)) for each in module.routines))


def _block(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """The block, and those in its ifs, without the copies that can be spared."""
    body = tuple(map(_inside, body))
    match body:
        case [*before, CallStatement(function=name, args=(Register(index),), destination=int(target)) as copy] if (
            name == _COPY and any(_makes(statement, index) for statement in before)
        ):
            return tuple(_moved(statement, index, copy, target) for statement in before)
    return body


def _inside(statement: Statement) -> Statement:
    if isinstance(statement, IfStatement):
        return replace(statement, then=_block(statement.then), orelse=_block(statement.orelse))
    return statement


def _makes(statement: Statement, register: int) -> bool:
    """Whether it puts a value into the register."""
    match statement:
        case CallStatement(destination=destination) | PrimStatement(destination=destination):
            return destination == register
        case IfStatement(then=then, orelse=orelse):
            return any(_makes(inner, register) for inner in (*then, *orelse))
    return False


def _moved(statement: Statement, register: int, copy: CallStatement, target: int) -> Statement:
    """The statement with the register `target`, which `copy` goes to, in the place of `register`; what makes the value
    is called what the copy is, and has its origins, too."""

    def operand(value: Operand) -> Operand:
        return Register(target) if value == Register(register) else value

    match statement:
        case ResetStatement():
            return statement
        case TailCallStatement(args=args):
            return replace(statement, args=tuple(map(operand, args)))
        case IfStatement(cond, then, orelse):
            then, orelse = (
                tuple(_moved(inner, register, copy, target) for inner in branch) for branch in (then, orelse)
            )
            return replace(statement, cond=operand(cond), then=then, orelse=orelse)
    moved = replace(statement, args=tuple(map(operand, statement.args)))
    if statement.destination is None and statement.comment and copy.comment:  # a kernel, which names what it writes
        names = statement.comment.split(", ")
        written = statement.args[-len(names) :]
        names = [
            copy.comment if value == Register(register) else name for name, value in zip(names, written, strict=True)
        ]
        return replace(moved, comment=", ".join(names))
    if statement.destination != register:
        return moved
    comment, origins = copy.comment or statement.comment, joined(statement.origins, copy.origins)
    return replace(moved, destination=target, comment=comment, origins=origins)
