"""Ordering of match_casts that passes insert.

A match_cast that binds a dimension variable must come before the match_casts that use the variable.
"""

from __future__ import annotations

from collections.abc import Iterable

from relvm.ir.bind_dims import plain_dim_vars
from relvm.ir.expr import MatchCast
from relvm.ir.symbolic import DimVar
from relvm.ir.types import type_vars


def sort_match_casts(casts: Iterable[MatchCast], unknown: Iterable[DimVar]) -> list[MatchCast] | None:
    """Sort match_casts so that every dimension variable is bound before another match_cast uses it.

    Return None if no such order exists.

    Parameters
    ----------
    casts
        The match_casts that a pass inserts.  A match_cast checks the type of a value at run time, and binds dimension
        variables in this type.
    unknown
        The dimension variables that are not bound before the first of `casts`.
    """
    unbound = set(unknown)
    waiting, ordered = list(casts), []
    while waiting:
        ready = next((cast for cast in waiting if _required_dims(cast).isdisjoint(unbound)), None)
        if ready is None:
            return None
        waiting.remove(ready)
        ordered.append(ready)
        unbound.difference_update(plain_dim_vars(ready.var.type))
    return ordered


def _required_dims(cast: MatchCast) -> set[DimVar]:
    """Return the dimension variables in the type of `cast` that must already be bound, because the cast does not bind
    them."""
    return set(type_vars(cast.var.type)).difference(plain_dim_vars(cast.var.type))
