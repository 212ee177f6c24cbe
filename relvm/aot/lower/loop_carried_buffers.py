"""Buffers for loop-carried tensors: tensors that a loop passes from one iteration to the next.

A loop passes a tensor by assigning a new value to a tensor parameter, which is a pointer in C.  If the new value is a
constant or an input of the caller, only the pointer changes.  The same is true if the new value is another parameter
that never has a computed value.  A computed value is copied to a separate storage that only this parameter uses.  The
copy is necessary because the next iteration overwrites the memory in which the value was computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from relvm.aot.lower.ir import Branch, Continue, Copy, MemoryKind, Statement, TensorStorage, statements_in

Body = tuple[Statement, ...]


def add_copy_storages(bodies: Sequence[Body], storages: list[TensorStorage]) -> list[Body]:
    """Add a storage for each tensor parameter whose new value must be copied.  Return the changed `bodies`.

    In the result, `Move.copy_to` is the added storage.  A `Continue` copies the new values one after another.  If the
    new value of a parameter is the old value of another copied parameter, an earlier copy could overwrite this old
    value.  A `Copy` before the `Continue` therefore saves the old value in an additional storage.

    Parameters
    ----------
    bodies
        The sections of a function.  `Move.copy_to` is None in all of them.
    storages
        The storages of the function.  The new storages are appended to it.
    """
    computed = _find_computed(bodies, storages)
    copy_storages: dict[int, int] = {}  # a parameter -> the storage to which its new values are copied

    def new_storage(name: str, param: int) -> int:
        storages.append(replace(storages[param], name=name, kind=MemoryKind.WORKSPACE))
        return len(storages) - 1

    def add_to_body(body: Body) -> Body:
        return tuple(new for statement in body for new in add_to_statement(statement))

    def add_to_statement(statement: Statement) -> list[Statement]:
        match statement:
            case Branch(cond, then, orelse):
                return [Branch(cond, add_to_body(then), add_to_body(orelse))]
            case Continue():
                return add_to_continue(statement)
        return [statement]

    def add_to_continue(jump: Continue) -> list[Statement]:
        copied = {move.param for move in jump.moves if move.source in computed}
        before: list[Statement] = []
        moves = []
        for move in jump.moves:
            source, param, copy_to = move.source, move.param, None
            if source in computed:
                if source in copied:
                    source = new_storage(f"{storages[source].name}_before", param)
                    before.append(Copy(move.source, source, move.size_bytes))
                if param not in copy_storages:
                    copy_storages[param] = new_storage(f"{storages[param].name}_next", param)
                copy_to = copy_storages[param]
            moves.append(replace(move, source=source, copy_to=copy_to))
        return [*before, replace(jump, moves=tuple(moves))]

    return list(map(add_to_body, bodies))


def _find_computed(bodies: Sequence[Body], storages: Sequence[TensorStorage]) -> set[int]:
    """Find the storages that can have a computed value, including tensor parameters.  Return their indices.

    Other storages only have constants and inputs of the caller as values.
    """
    moves = [m for body in bodies for s in statements_in(body) if isinstance(s, Continue) for m in s.moves]
    read_only = (MemoryKind.INPUT, MemoryKind.CONSTANT)
    computed = {number for number, storage in enumerate(storages) if storage.kind not in read_only}
    while added := {move.param for move in moves if move.source in computed} - computed:
        computed |= added
    return computed
