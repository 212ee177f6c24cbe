"""The import of JAX, which is an optional dependency."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from relvm.errors import RelvmUnsupportedError


def import_jax(what: str) -> Any:
    """Import JAX, and return its module.

    what: the function that needs JAX, for the message.

    Raises
    ------
    RelvmUnsupportedError
        JAX is not installed, or is too old.
    """
    try:
        import jax
        import jax.export
        import jax.extend.core
    except ImportError as error:
        raise RelvmUnsupportedError(f"{what} needs JAX 0.10 or newer: pip install 'relvm[jax]' ({error})") from None
    return jax


def trace_context() -> Callable[[], Hashable]:
    """Return a function that returns the current settings of JAX that affect tracing, as a hashable value."""
    import_jax("relvm.jax.jit")
    from jax._src.config import trace_context as current  # JAX has no public name for it

    return current
