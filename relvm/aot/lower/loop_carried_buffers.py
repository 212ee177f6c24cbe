"""Buffers for loop-carried tensors: tensors that a loop passes from one iteration to the next.

A loop passes a tensor by assigning a new value to a tensor parameter, which is a pointer in C.  If the new value is a
constant or an input of the caller, only the pointer changes.  The same is true if the new value is another parameter
that never has a computed value.  A computed value is copied to the home of the parameter, a storage that only this
parameter uses.  The copy is necessary because the next iteration overwrites the memory in which the value was computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from relvm.aot.lower.assign_storage import MemoryKind, TensorStorage
from relvm.aot.lower.ir import Branch, Continue, Copy, Move, Statement, statements_in

Body = tuple[Statement, ...]


def give_homes(bodies: Sequence[Body], storages: list[TensorStorage]) -> list[Body]:
    """Return `bodies` with `Move.home` set for each loop-carried tensor that must be copied to memory of its own.

    The copies are made one after another.  If a new value is the old value of another parameter that is also copied, it
    is first saved in a further storage, so that it cannot be overwritten too early.

    Parameters
    ----------
    bodies
        The sections of a function, in which no Move has a home yet.
    storages
        The storages of the function.  The new storages are appended to it.
    """
    moves = [m for body in bodies for s in statements_in(body) if isinstance(s, Continue) for m in s.moves]
    homes = _Homes(storages, _moving(moves, storages))
    return [homes.body(body) for body in bodies]


def _moving(moves: Sequence[Move], storages: Sequence[TensorStorage]) -> set[int]:
    """Return the storage indices of the parameters that can have a computed value.

    Other parameters only have constants and inputs of the caller as values.   moves: the moves of all Continues.
    """
    moving: set[int] = set()
    while True:
        more = {m.param for m in moves if m.source in moving or not _stays(storages[m.source])} - moving
        if not more:
            return moving
        moving |= more


def _stays(storage: TensorStorage) -> bool:
    return storage.place in (MemoryKind.INPUT, MemoryKind.CONSTANT)


class _Homes:
    def __init__(self, storages: list[TensorStorage], moving: set[int]) -> None:
        self.storages = storages
        self.moving = moving
        self.homes: dict[int, int] = {}

    def body(self, body: Body) -> Body:
        made: list[Statement] = []
        for statement in body:
            match statement:
                case Branch(cond, then, orelse):
                    made.append(Branch(cond, self.body(then), self.body(orelse)))
                case Continue():
                    made += self.repeat(statement)
                case _:
                    made.append(statement)
        return tuple(made)

    def repeat(self, repeat: Continue) -> list[Statement]:
        copied = {m.param for m in repeat.moves if self.is_copied(m)}
        before: list[Statement] = []
        moves = []
        for move in repeat.moves:
            if move.param not in copied:
                moves.append(move)
                continue
            source = move.source
            if source in copied:
                source = self.add(f"{self.storages[source].name}_before", move.param)
                before.append(Copy(move.source, source, move.size_bytes))
            if move.param not in self.homes:
                self.homes[move.param] = self.add(f"{self.storages[move.param].name}_next", move.param)
            moves.append(replace(move, source=source, home=self.homes[move.param]))
        return [*before, replace(repeat, moves=tuple(moves))]

    def is_copied(self, move: Move) -> bool:
        return move.source in self.moving or not _stays(self.storages[move.source])

    def add(self, name: str, like: int) -> int:
        self.storages.append(replace(self.storages[like], name=name, place=MemoryKind.WORKSPACE))
        return len(self.storages) - 1
