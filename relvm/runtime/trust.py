"""Trust in native code: code that this user built on this machine runs without confirmation.

A build is recorded as an empty file in the folder `built` of the cache directory.  The name of this record is a SHA-256
hash of what was built: the library of an ahead-of-time export, an executable with native code (without the elements of
its tensors), or the contents and name of a file that the C compiler wrote to the cache.  Native code without a record
requires the caller's permission (`trust_native=True`).
"""

from __future__ import annotations

from relvm.runtime.cache_folder import open_cache

Part = bytes | memoryview
_KIND = "built"


def record_built(*parts: Part) -> None:
    """Record that this user built native code on this machine.

    parts: everything that determines the meaning of the code: the bytes of a library, or the parts of an executable.

    Raises
    ------
    OSError
        The cache directory cannot be written, or is not safe (relvm/runtime/cache_folder.py).
    """
    open_cache(create=True).create(_KIND, _record_name(parts)).close()


def is_built_here(*parts: Part) -> bool:
    """Return whether `record_built` has recorded native code with exactly these parts for this user on this machine.

    Records that another user could have written are ignored.
    """
    try:
        return open_cache().contains(_KIND, _record_name(parts))
    except OSError:
        return False


def _record_name(parts: tuple[Part, ...]) -> str:
    import hashlib  # imported only here, because it loads OpenSSL (4 MB)

    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()
