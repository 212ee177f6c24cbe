"""Choice of the loop to vectorize, which is the loop whose iterations form strips.

Usually this is the SIMD loop.  If the SIMD loop is short, there are two alternatives.  In outer-loop vectorization, a
strip consists of iterations of an outer loop.  The loops inside it run once for the whole strip, with strided accesses.
In a block of rows, a strip consists of several iterations of an outer loop, each with all iterations of its SIMD loop.
Source: Nuzman and Zaks, Outer-Loop Vectorization: Revisited for Short SIMD Architectures, 2008.
"""

from __future__ import annotations

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

_MAX_WIDTH = 128  # maximum length of the rows in a block: a quarter of a strip
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
    statements = list(statements_in(loop.body))
    return _are_independent(statements) and _assigns_own_locals(statements)


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
    statements = [*before, *inner.body]
    if not all(isinstance(item, Let) for item in before) or not all(isinstance(i, Let | Store) for i in inner.body):
        return False
    inner_names = {loop.counter.name, *(item.local.name for item in before if isinstance(item, Let))}
    bounds = [part for bound in (inner.start, inner.stop) for part in parts_of(bound)]
    if any(isinstance(part, Load) or (isinstance(part, Local) and part.name in inner_names) for part in bounds):
        return False
    return _are_independent(statements)


def max_width(loop: Loop) -> int:
    """Return the maximum length of a row if strips consist of several iterations of `loop`."""
    return _MAX_GATHERED_WIDTH if _loads_position(loop) else _MAX_WIDTH


def _loads_position(loop: Loop) -> bool:
    """Return whether the position of an element that the rows of `loop` load depends on a loaded value."""
    loaded: set[str] = set()  # locals whose values depend on loaded values

    def depends_on_load(scalar: Scalar) -> bool:
        return has_load(scalar) or any(isinstance(part, Local) and part.name in loaded for part in parts_of(scalar))

    for item in statements_in(loop.body):
        loads = (part for part in scalars_in(item) if isinstance(part, Load))
        if any(map(depends_on_load, (index for load in loads for index in load.indices))):
            return True
        if isinstance(item, Let) and depends_on_load(item.value):
            loaded.add(item.local.name)
    return False


def _can_vectorize(statement: Statement) -> bool:
    if isinstance(statement, Loop):
        count = trip_count(statement)
        return count is not None and count < _SHORT and all(map(_can_vectorize, statement.body))
    return isinstance(statement, Let | Assign | Store)


def _are_independent(statements: list[Statement]) -> bool:
    """Return whether the iterations of a loop with these statements are independent.

    No iteration may read an element that another one writes, and the order of writes must not matter.
    """
    stores = [item for item in statements if isinstance(item, Store)]
    stored = {store.buffer.name for store in stores}
    if len(stored) != len(stores) or any(has_load(index) for store in stores for index in store.indices):
        return False
    loads = (part for item in statements for part in scalars_in(item) if isinstance(part, Load))
    return all(load.buffer.name not in stored for load in loads)


def _assigns_own_locals(statements: list[Statement]) -> bool:
    inner_names = {item.local.name for item in statements if isinstance(item, Let)}
    return all(item.local.name in inner_names for item in statements if isinstance(item, Assign))
