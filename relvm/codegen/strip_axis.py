"""Choice of the loop to vectorize, which is the loop whose iterations form strips.

Usually this is the SIMD loop.  If the SIMD loop is short, there are two alternatives.  In outer-loop vectorization, a
strip consists of iterations of an outer loop.  The loops inside it run once for the whole strip, with strided accesses.
In a block of rows, a strip consists of several iterations of an outer loop, each with all iterations of its SIMD loop.
To make blocks possible and long, loops are split and interchanged.
Source: Nuzman and Zaks, Outer-Loop Vectorization: Revisited for Short SIMD Architectures, 2008.
"""

from __future__ import annotations

from dataclasses import replace

from relvm.codegen.kernel_registers import STRIP
from relvm.ir.loop_ir import (
    SUM_LANES,
    Assign,
    Let,
    Load,
    Local,
    Loop,
    Scalar,
    Statement,
    Store,
    has_load,
    parts_of,
    scalars_in,
    statements_in,
    trip_count,
)
from relvm.kernels.independence import stores_are_independent

_MAX_WIDTH = 128  # maximum length of the rows in a block: a quarter of a strip
_LEAST_WIDTH = 4  # rows of fewer elements are slower than strided accesses in an outer loop
_MAX_GATHERED_WIDTH = 32  # the same if the position of a row is loaded, because it then becomes one index per element
# A SIMD loop with fewer iterations is slower than strided accesses in an outer loop.  The order of float reductions is
# the same in both cases.
_SHORT = SUM_LANES


def suits_strips(loop: Loop) -> bool:
    """Return whether to vectorize `loop`, which is not a SIMD loop, instead of the loops inside it.

    All loops inside it must be short, and its iterations must be independent.  Its statements must all be loops,
    definitions, assignments or stores.
    """
    count = trip_count(loop)
    if (count is not None and count < _SHORT) or not all(map(_can_vectorize, loop.body)):
        return False
    if _suits_wide_blocks(loop):
        return False
    return _are_independent(loop) and _assigns_own_locals(loop)


def suits_blocks(loop: Loop) -> bool:
    """Return whether a strip can consist of several iterations of `loop`, each with all iterations of its SIMD loop.

    The iterations of the SIMD loop for one iteration of `loop` are a row.  All rows must have the same length, which
    must be at most `max_width(loop)` or unknown.
    """
    *before, inner = loop.body
    if not isinstance(inner, Loop) or inner.kind != "simd" or inner.reduce or trip_count(loop) == 1:
        return False
    width = trip_count(inner)
    if width is not None and not 0 < width <= max_width(loop):
        return False
    if not all(isinstance(item, Let) for item in before) or not all(isinstance(i, Let | Store) for i in inner.body):
        return False
    inner_names = {loop.counter.name, *(item.local.name for item in before if isinstance(item, Let))}
    bounds = [part for bound in (inner.start, inner.stop) for part in parts_of(bound)]
    if any(isinstance(part, Load) or (isinstance(part, Local) and part.name in inner_names) for part in bounds):
        return False
    return _are_independent(loop, runs_inner_loops_in_order=True)


def _suits_wide_blocks(loop: Loop) -> bool:
    """Return whether `loop` suits blocks, whose rows are long enough to be faster than strided accesses."""
    inner = loop.body[-1] if loop.body else None
    is_wide = isinstance(inner, Loop) and (trip_count(inner) or 0) >= _LEAST_WIDTH
    return is_wide and suits_blocks(loop) and not _loads_position(loop)


def for_blocks(loop: Loop) -> tuple[Loop, ...]:
    """Return the loops that replace `loop` so that strips become blocks of rows, or () to keep `loop`.

    A loop around several SIMD loops is split into one loop for each of them.  If a loop around SIMD loops is inside a
    loop with more iterations, the two are interchanged, so that a block has more rows.
    """
    return _split(loop) or _interchange(loop)


def _split(loop: Loop) -> tuple[Loop, ...]:
    inner = [item for item in loop.body if isinstance(item, Loop)]
    if loop.kind != "range" or len(inner) < 2 or not all(isinstance(item, Let | Loop) for item in loop.body):
        return ()
    if any(isinstance(item, Assign) for item in statements_in(loop.body)):  # a loop may read what another one assigns
        return ()
    parts = tuple(replace(loop, body=(*_needed(loop.body, row), row)) for row in inner)
    if any(row.kind != "simd" or trip_count(row) is None for row in inner) or not any(map(_suits_wide_blocks, parts)):
        return ()
    return parts if _are_independent(loop) else ()


def _needed(body: tuple[Statement, ...], row: Loop) -> list[Let]:
    """Return the definitions in `body` on which its SIMD loop `row` depends."""
    names = {
        part.name
        for item in statements_in((row,))
        for scalar in scalars_in(item)
        for part in parts_of(scalar)
        if isinstance(part, Local)
    }
    found: list[Let] = []
    for item in reversed(body):
        if isinstance(item, Let) and item.local.name in names:
            names |= {part.name for part in parts_of(item.value) if isinstance(part, Local)}
            found.insert(0, item)
    return found


def _interchange(loop: Loop) -> tuple[Loop, ...]:
    if loop.kind != "range" or len(loop.body) != 1:
        return ()
    (inner,) = loop.body
    if not isinstance(inner, Loop) or inner.kind != "range":
        return ()
    outer_count, inner_count = trip_count(loop), trip_count(inner)
    if outer_count is None or inner_count is None or outer_count <= inner_count or not _suits_wide_blocks(inner):
        return ()
    row = inner.body[-1]
    assert isinstance(row, Loop)
    changed = replace(loop, body=inner.body)
    if inner_count * (trip_count(row) or STRIP) >= STRIP or not suits_blocks(changed):
        return ()
    return (replace(inner, body=(changed,)),) if _are_independent(loop) else ()


def max_width(loop: Loop) -> int:
    """Return the maximum length of a row if strips consist of several iterations of `loop`."""
    return _MAX_GATHERED_WIDTH if _loads_position(loop) else _MAX_WIDTH


def _loads_position(loop: Loop) -> bool:
    """Return whether the rows of `loop` load from positions that depend on loaded values, one for each row.

    If each element of a row has such a position of its own, its index is computed for each length of the rows.
    """
    *_, inner = loop.body
    assert isinstance(inner, Loop)
    loaded: set[str] = set()  # locals whose values depend on loaded values
    varying = {inner.counter.name}  # locals whose values differ between the elements of a row

    def is_loaded(part: Scalar) -> bool:
        return isinstance(part, Load) or (isinstance(part, Local) and part.name in loaded)

    def varies(scalar: Scalar) -> bool:
        return any(isinstance(part, Local) and part.name in varying for part in parts_of(scalar))

    def is_of_row(index: Scalar) -> bool:
        values = list(filter(is_loaded, parts_of(index)))
        return bool(values) and not any(map(varies, values))

    for item in (*loop.body[:-1], *inner.body):
        loads = (part for part in scalars_in(item) if isinstance(part, Load))
        if any(map(is_of_row, (index for load in loads for index in load.indices))):
            return True
        if isinstance(item, Let):
            if any(map(is_loaded, parts_of(item.value))):
                loaded.add(item.local.name)
            if varies(item.value):
                varying.add(item.local.name)
    return False


def _can_vectorize(statement: Statement) -> bool:
    if isinstance(statement, Loop):
        count = trip_count(statement)
        return count is not None and count < _SHORT and all(map(_can_vectorize, statement.body))
    return isinstance(statement, Let | Assign | Store)


def _are_independent(loop: Loop, *, runs_inner_loops_in_order: bool = False) -> bool:
    """Return whether the iterations of `loop` are independent, so that each of its statements can run for all of them.

    No iteration may read an element that another one writes, and the order of writes must not matter.

    runs_inner_loops_in_order: whether each statement still runs for one iteration of `loop` after the other, with all
    iterations of the inner loops.
    """
    statements = list(statements_in(loop.body))
    stores = [item for item in statements if isinstance(item, Store)]
    stored = {store.buffer.name for store in stores}
    if any(has_load(index) for store in stores for index in store.indices):
        return False
    loads = (part for item in statements for part in scalars_in(item) if isinstance(part, Load))
    if any(load.buffer.name in stored for load in loads):
        return False
    has_inner = any(isinstance(item, Loop) for item in statements)
    keeps_order = len(stored) == len(stores) and (runs_inner_loops_in_order or not has_inner)
    return keeps_order or stores_are_independent(loop)


def _assigns_own_locals(loop: Loop) -> bool:
    statements = list(statements_in(loop.body))
    inner_names = {item.local.name for item in statements if isinstance(item, Let)}
    return all(item.local.name in inner_names for item in statements if isinstance(item, Assign))
