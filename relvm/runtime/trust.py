"""Which native code may run without being asked: what this user built on this machine.

What is built is recorded by a SHA-256 in the folder `built` of the cache directory: each library of the ahead-of-time
compiler, each executable with native code as a whole, and each object of the compiler with what it was made of.
Anything else needs the caller's word (`trust_native=True`).
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

Part = bytes | memoryview


def cache_directory() -> Path:
    """Where compiled libraries and their records are kept: RELVM_CACHE_DIR, or relvm/ in the user's cache directory."""
    from pathlib import Path  # as hashlib below: only native code needs it, and a deployed program's memory is counted

    if chosen := os.environ.get("RELVM_CACHE_DIR"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "relvm"


def record_built(*parts: Part) -> None:
    """Record what was built here, by all that gives it its meaning: a library, the parts of an executable.

    Raises
    ------
    OSError
        The cache directory cannot be written.
    """
    place = _record(parts)
    place.parent.mkdir(parents=True, exist_ok=True)
    if not _is_private(place.parent):
        place.parent.chmod(0o700)
    place.touch()


def is_built_here(*parts: Part) -> bool:
    """Return whether the very same parts were recorded, by this user on this machine.

    A folder of records that another user owns or can write to says nothing, nor does a link to one.
    """
    place = _record(parts)
    return _is_private(place.parent) and place.exists()


def _record(parts: tuple[Part, ...]) -> Path:
    import hashlib  # brings OpenSSL, 4 MB that a deployed program does without

    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return cache_directory() / "built" / digest.hexdigest()


def _is_private(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022
