"""Python's garbage collection during builds."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """A context manager that disables Python's cyclic garbage collection.

    A build creates many objects, few of which belong to reference cycles.  The search for cycles would take a third of
    the time of a large build.  At the end, one search frees the cycles of the new objects, and moves the other new
    objects to the oldest generation.

    If garbage collection is already disabled, for example by a concurrent build, nothing changes.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.collect(1)
        gc.enable()
