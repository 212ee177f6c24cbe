"""Choice of the loop that strips run over: usually the SIMD loop, but a loop around it if the SIMD loop is short.

Strips over an outer loop run the loops inside it once for a whole strip, with strided accesses.  Several iterations of
an outer loop, each with all iterations of its SIMD loop, may also be one strip: a block of rows.
Source: Nuzman and Zaks, Outer-Loop Vectorization: Revisited for Short SIMD Architectures, 2008.
"""

from __future__ import annotations

from collections.abc import Iterator

from relvm.codegen.kernel_registers import has_load, parts_of
from relvm.kernels.loop_ir import SUM_LANES, Assign, Let, Load, Local, Loop, Statement, Store, scalars_in, trip_count

MAX_WIDTH = 128  # of the rows of a block: a quarter of a strip
# A SIMD loop of fewer iterations costs more than strided accesses.  A reduction of floats in it is in order either way.
_SHORT = SUM_LANES


def suits_strips(loop: Loop) -> bool:
    """Return whether strips should run over this loop instead of the loops inside it.

    All loops inside are short, the iterations of this one are independent, and it has no other statements than
    definitions, assignments and stores.
    """
    count = trip_count(loop)
    if (count is not None and count < _SHORT) or not any(isinstance(item, Loop) for item in loop.body):
        return False
    if not all(map(_is_plain, loop.body)):
        return False
    statements = list(_statements(loop.body))
    return _are_independent(statements) and _assigns_own_locals(statements)


def suits_blocks(loop: Loop) -> bool:
    """Return whether a strip may be a block of rows: several iterations of this loop, each with all iterations of the
    SIMD loop inside it.

    The number of iterations of the SIMD loop is at most MAX_WIDTH, or is unknown but the same for all rows.
    """
    *before, inner = loop.body
    if not isinstance(inner, Loop) or not inner.simd or inner.reduce or trip_count(loop) == 1:
        return False
    width = trip_count(inner)
    if width is not None and not 0 < width <= MAX_WIDTH:
        return False
    statements = [*before, *inner.body]
    if not all(isinstance(item, Let) for item in before) or not all(isinstance(i, Let | Store) for i in inner.body):
        return False
    own = {loop.counter.name, *(item.local.name for item in before if isinstance(item, Let))}
    bounds = [part for bound in (inner.start, inner.stop) for part in parts_of(bound)]
    if any(isinstance(part, Load) or (isinstance(part, Local) and part.name in own) for part in bounds):
        return False
    return _are_independent(statements)


def _is_plain(statement: Statement) -> bool:
    if isinstance(statement, Loop):
        count = trip_count(statement)
        return count is not None and count < _SHORT and all(map(_is_plain, statement.body))
    return isinstance(statement, Let | Assign | Store)


def _statements(body: tuple[Statement, ...]) -> Iterator[Statement]:
    for statement in body:
        yield statement
        if isinstance(statement, Loop):
            yield from _statements(statement.body)


def _are_independent(statements: list[Statement]) -> bool:
    """Return whether no iteration reads what another one writes, and the order of writes does not matter."""
    stores = [item for item in statements if isinstance(item, Store)]
    stored = {store.buffer.name for store in stores}
    if len(stored) != len(stores) or any(has_load(index) for store in stores for index in store.indices):
        return False
    loads = (part for item in statements for part in scalars_in(item) if isinstance(part, Load))
    return all(load.buffer.name not in stored for load in loads)


def _assigns_own_locals(statements: list[Statement]) -> bool:
    own = {item.local.name for item in statements if isinstance(item, Let)}
    return all(item.local.name in own for item in statements if isinstance(item, Assign))
