"""Buffers for loop-carried tensors: tensors that a loop passes from one iteration to the next.

A loop passes a tensor by assigning a new value to a tensor parameter, which is a pointer in C.  If the new value is a
constant or an input of the caller, only the pointer changes.  The same is true if the new value is another parameter
that never has a computed value.  A computed value is copied to a separate storage that only this parameter uses.  The
copy is necessary because the next iteration overwrites the memory in which the value was computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from relvm.aot.lower.ir import Branch, Continue, Copy, MemoryKind, Move, Statement, TensorStorage, statements_in

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
    moves = [m for body in bodies for s in statements_in(body) if isinstance(s, Continue) for m in s.moves]
    copy_storages = _CopyInserter(storages, _find_computed(moves, storages))
    return [copy_storages.body(body) for body in bodies]


def _find_computed(moves: Sequence[Move], storages: Sequence[TensorStorage]) -> set[int]:
    """Find the tensor parameters that can have a computed value.  Return the indices of their storages.

    Other parameters only have constants and inputs of the caller as values.   moves: the new values of parameters in
    all Continue statements.
    """
    computed: set[int] = set()
    while True:
        added = {m.param for m in moves if m.source in computed or not _is_read_only(storages[m.source])} - computed
        if not added:
            return computed
        computed |= added


def _is_read_only(storage: TensorStorage) -> bool:
    return storage.kind in (MemoryKind.INPUT, MemoryKind.CONSTANT)


class _CopyInserter:
    def __init__(self, storages: list[TensorStorage], computed: set[int]) -> None:
        self.storages = storages
        self.computed = computed
        self.copy_storages: dict[int, int] = {}

    def body(self, body: Body) -> Body:
        statements: list[Statement] = []
        for statement in body:
            match statement:
                case Branch(cond, then, orelse):
                    statements.append(Branch(cond, self.body(then), self.body(orelse)))
                case Continue():
                    statements += self.convert_continue(statement)
                case _:
                    statements.append(statement)
        return tuple(statements)

    def convert_continue(self, jump: Continue) -> list[Statement]:
        copied = {m.param for m in jump.moves if self.is_copied(m)}
        before: list[Statement] = []
        moves = []
        for move in jump.moves:
            if move.param not in copied:
                moves.append(move)
                continue
            source = move.source
            if source in copied:
                source = self.add(f"{self.storages[source].name}_before", move.param)
                before.append(Copy(move.source, source, move.size_bytes))
            if move.param not in self.copy_storages:
                self.copy_storages[move.param] = self.add(f"{self.storages[move.param].name}_next", move.param)
            moves.append(replace(move, source=source, copy_to=self.copy_storages[move.param]))
        return [*before, replace(jump, moves=tuple(moves))]

    def is_copied(self, move: Move) -> bool:
        return move.source in self.computed or not _is_read_only(self.storages[move.source])

    def add(self, name: str, param: int) -> int:
        self.storages.append(replace(self.storages[param], name=name, kind=MemoryKind.WORKSPACE))
        return len(self.storages) - 1
