"""Which native code may run without being asked: what this user's own compiler made on this machine.

Each library that is compiled is recorded by its SHA-256 in the cache directory.  An executable with that very library
is as trustworthy as the compiler; any other native code needs the caller's word (`trust_native=True`).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def cache_directory() -> Path:
    """Where compiled libraries and their records are kept: RELVM_CACHE_DIR, or relvm/ in the user's cache directory."""
    from pathlib import Path  # as hashlib below: only native code needs it, and a deployed program's memory is counted

    if chosen := os.environ.get("RELVM_CACHE_DIR"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "relvm"


def record_built(library: bytes) -> None:
    """Records a library that was compiled here.  OSError where the cache cannot be written."""
    place = _record(library)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.touch()


def is_built_here(library: bytes | memoryview) -> bool:
    """Whether the very same library was compiled by this user on this machine."""
    return _record(library).exists()


def _record(library: bytes | memoryview) -> Path:
    import hashlib  # brings OpenSSL, 4 MB that a deployed program does without

    return cache_directory() / "built" / hashlib.sha256(library).hexdigest()
