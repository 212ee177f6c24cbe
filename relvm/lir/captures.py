"""What the body of a parallel loop uses that is declared outside of it."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

from relvm.lir.kernel import Allocate, Buffer, Declare, Local, Loop, Parallel


def captures(parallel: Parallel) -> tuple[list[Buffer], list[Local]]:
    """Buffers and locals, each once, in the order in which they are met."""
    found: dict[Buffer | Local, None] = {}
    own: set[Buffer | Local] = {parallel.first, parallel.last}
    waiting: list[object] = [parallel.body]
    while waiting:
        node = waiting.pop()
        match node:
            case tuple():
                waiting += reversed(node)
                continue
            case Local() | Buffer():
                found.setdefault(node)
                continue
            case Loop(counter):
                own.add(counter)
            case Declare(local):
                own.add(local)
            case Allocate(buffer):
                own.add(buffer)
        if is_dataclass(node):
            waiting += [getattr(node, one.name) for one in reversed(fields(node))]
    outside = [one for one in found if one not in own]
    buffers = [one for one in outside if isinstance(one, Buffer)]
    return buffers, [one for one in outside if isinstance(one, Local)]
