"""Trust in native code: code that this user built on this machine runs without confirmation.

A build is recorded as an empty file in the folder `built` of the cache directory.  The name of this record is a SHA-256
hash of what was built: the library of an ahead-of-time export, an executable with native code (without the elements of
its tensors), or the contents and name of a file that the C compiler wrote to the cache.  Native code without a record
requires the caller's permission (`trust_native=True`).
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

Part = bytes | memoryview
_ROOT = 0  # the id of the user who can change any file


def cache_directory() -> Path:
    """Return the directory for compiled libraries and the records of builds.

    This is RELVM_CACHE_DIR if it is set, otherwise relvm/ in the user's cache directory.
    """
    from pathlib import Path  # imported here, like hashlib below, to save memory in programs without native code

    if chosen := os.environ.get("RELVM_CACHE_DIR"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "relvm"


def record_built(*parts: Part) -> None:
    """Record that this user built native code on this machine.

    parts: everything that determines the meaning of the code: the bytes of a library, or the parts of an executable.

    Raises
    ------
    OSError
        The cache directory cannot be written.
    """
    record = _record_path(parts)
    record.parent.mkdir(parents=True, exist_ok=True)
    if not _is_private(record.parent):
        record.parent.chmod(0o700)
    record.touch()


def is_built_here(*parts: Part) -> bool:
    """Return whether `record_built` has recorded native code with exactly these parts for this user on this machine.

    The folder of records is ignored if another user owns it or can write to it, or if it is a symbolic link.
    """
    record = _record_path(parts)
    return _is_private(record.parent) and record.exists()


def _record_path(parts: tuple[Part, ...]) -> Path:
    import hashlib  # imported only here, because it loads OpenSSL (4 MB)

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
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and only_user_can_write(status)


def only_user_can_write(status: os.stat_result) -> bool:
    """Return whether only root and the user of this process can write to a file or folder.

    status: the status of the file, of which the owner and the mode are checked.  Access control lists need no check,
    because the group bits of the mode limit them.
    """
    return status.st_uid in (os.geteuid(), _ROOT) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
