"""The cache folder: the only way to the files that relvm keeps for later processes.

On Linux and macOS, the folder is opened once, by a walk from the root folder, and everything in it is opened relative
to its descriptor.  Nobody but the user and root may be able to write to it, or to replace it by another folder.
Otherwise the folder is not used: a warning states the reason once, every access raises OSError, and relvm works as
without a cache.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import weakref
from collections.abc import Iterator
from io import BufferedReader, FileIO
from typing import TYPE_CHECKING

from relvm.quoting import terminal
from relvm.runtime.file_io import replacing_file
from relvm.system import Folder, cache_root, only_user_can_write
from relvm.system.errors import UnsafeFolderError

if TYPE_CHECKING:
    from pathlib import Path


def cache_directory() -> Path:
    """Return the path of the cache folder.

    This is RELVM_CACHE_DIR if it is set, otherwise relvm/ in the user's cache directory: XDG_CACHE_HOME or ~/.cache on
    Linux, ~/Library/Caches on macOS, and LOCALAPPDATA on Windows.

    Raises
    ------
    FileNotFoundError
        The user has no home directory, as in some containers, and no environment variable states a folder.
    """
    from pathlib import Path  # imported only here, to save memory

    if chosen := os.environ.get("RELVM_CACHE_DIR"):
        return Path(chosen)
    root = cache_root()
    if root is None:
        raise FileNotFoundError(
            errno.ENOENT, "the cache has no folder, because this user has no home directory; set RELVM_CACHE_DIR", "~"
        )
    return Path(root) / "relvm"


class CacheFolder:
    """The open cache folder.  Its files are in one folder for each kind, such as "builds" or "compiled".

    path: the absolute path, for messages.
    """

    def __init__(self, folder: Folder) -> None:
        """folder: the open folder, which is closed with this object."""
        self.path = folder.path
        self._folder = folder
        self._status = folder.status()
        weakref.finalize(self, folder.close).atexit = False

    def is_at(self, path: str) -> bool:
        """Return whether this folder is still the one at `path`, with the same owner and permissions."""
        if path != self.path:
            return False
        try:
            status = os.stat(path, follow_symlinks=False)
        except OSError:
            return False
        return all(getattr(status, field) == getattr(self._status, field) for field in _IDENTITY)

    def open(self, kind: str, name: str) -> BufferedReader:
        """Open a regular file for reading, which nobody else can write to.

        Raise OSError if there is no such file.
        """
        with self.folder(kind) as folder:
            return BufferedReader(FileIO(folder.open_private_file(name, os.O_RDONLY), "rb"))

    def contains(self, kind: str, name: str) -> bool:
        """Return whether there is a regular file with this name, which nobody else can write to."""
        try:
            with self.folder(kind) as folder:
                status = folder.status_of(name)
        except OSError:
            return False
        return stat.S_ISREG(status.st_mode) and only_user_can_write(status)

    def create(self, kind: str, name: str) -> BufferedReader:
        """Open a file like `open`, and create it if there is none.  Raise OSError if it cannot be created."""
        with self.folder(kind, create=True) as folder:
            return BufferedReader(FileIO(folder.open_private_file(name, os.O_RDWR | os.O_CREAT), "rb"))

    def write(self, kind: str, name: str, *parts: bytes | memoryview) -> None:
        """Create or replace a file atomically.  Raise OSError if it cannot be written."""
        with self.folder(kind, create=True) as folder, replacing_file(folder, name, 0o600) as (descriptor, _):
            for part in parts:
                view = memoryview(part).cast("B")
                while view:
                    view = view[os.write(descriptor, view) :]

    def files(self, kind: str) -> list[tuple[str, os.stat_result]]:
        """Return the name and the status of each regular file in the folder of a kind of files."""
        found = []
        with contextlib.suppress(OSError), self.folder(kind) as folder:
            for name in folder.names():
                with contextlib.suppress(OSError):  # another process can have removed the file
                    status = folder.status_of(name)
                    if stat.S_ISREG(status.st_mode):
                        found.append((name, status))
        return found

    def touch(self, kind: str, name: str) -> None:
        """Set the time of the last change of a file to now.  Raise OSError if there is none."""
        with self.folder(kind) as folder:
            folder.touch(name)

    def remove(self, kind: str, name: str) -> None:
        """Remove a file.  Raise OSError if it cannot be removed."""
        with self.folder(kind) as folder:
            folder.remove(name)

    @contextlib.contextmanager
    def folder(self, kind: str, *, create: bool = False) -> Iterator[Folder]:
        """A context manager that opens the folder of a kind.

        create: whether to create the folder if it does not exist.

        Raises
        ------
        OSError
            The folder does not exist, or is a link, or another user can write to it.
        """
        path = os.path.join(self.path, kind)
        try:
            folder = self._folder.open_child(kind, create=create)
        except NotADirectoryError:
            raise _report(UnsafeFolderError(errno.EPERM, "it is a symbolic link or a file", path)) from None
        except UnsafeFolderError as error:
            raise _report(error) from None
        with contextlib.closing(folder):
            yield folder


_IDENTITY = ("st_dev", "st_ino", "st_uid", "st_mode")
_current: CacheFolder | None = None
_reported: set[str] = set()  # the reasons for which folders are not used


def open_cache(*, create: bool = False) -> CacheFolder:
    """Return the open cache folder.

    create: whether to create the folder if it does not exist.

    Raises
    ------
    OSError
        The folder does not exist or cannot be opened, or the user has no home directory.  If another user can change
        the folder, the error is an UnsafeFolderError, which is also logged once.
    """
    global _current
    path = os.path.abspath(cache_directory())
    current = _current
    if current is None or not current.is_at(path):
        try:
            current = _current = CacheFolder(Folder.open_private(path, create=create))
        except UnsafeFolderError as error:
            raise _report(error) from None
    return current


def _report(error: UnsafeFolderError) -> UnsafeFolderError:
    """Log once that a folder of the cache is not used.  Return the error."""
    reason = terminal(f"{error.filename}: {error.strerror}")
    if reason not in _reported:
        _reported.add(reason)
        import logging  # imported only here, to save memory

        message = (
            "the cache is not used, because its folder is not safe: %s; set RELVM_CACHE_DIR to a folder of your own"
        )
        logging.getLogger("relvm").warning(message, reason)
    return error
