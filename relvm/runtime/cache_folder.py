"""The cache folder: the only way to the files that relvm keeps for later processes.

The folder is opened once, by a walk from the root folder, and everything in it is opened relative to its descriptor.
Nobody but the user and root may be able to write to it, or to replace it by another folder.  Otherwise the folder is
not used: a warning states the reason once, every access raises OSError, and relvm works as without a cache.
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
from relvm.runtime.file_io import is_own, only_user_can_write, replacing_file

if TYPE_CHECKING:
    from pathlib import Path

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAX_LINKS = 40  # as in Linux


def cache_directory() -> Path:
    """Return the path of the cache folder.

    This is RELVM_CACHE_DIR if it is set, otherwise relvm/ in the user's cache directory.

    Raises
    ------
    FileNotFoundError
        The user has no home directory, as in some containers, and no environment variable states a folder.
    """
    from pathlib import Path  # imported only here, to save memory

    if chosen := os.environ.get("RELVM_CACHE_DIR"):
        return Path(chosen)
    if caches := os.environ.get("XDG_CACHE_HOME"):
        return Path(caches) / "relvm"
    home = os.path.expanduser("~")
    if home == "~":
        raise FileNotFoundError(
            errno.ENOENT, "the cache has no folder, because this user has no home directory; set RELVM_CACHE_DIR", home
        )
    return Path(home) / ".cache" / "relvm"


class UnsafeFolderError(PermissionError):
    """Raised if other users can change a folder of the cache, or replace it by another one."""


class CacheFolder:
    """The open cache folder.  Its files are in one folder for each kind, such as "builds" or "compiled".

    path: the absolute path, for messages.
    descriptor: the descriptor of the folder, which is closed with this object.
    """

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor
        self._status = os.fstat(descriptor)
        weakref.finalize(self, os.close, descriptor).atexit = False

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
            return BufferedReader(FileIO(_open_file(folder, name, os.O_RDONLY), "rb"))

    def contains(self, kind: str, name: str) -> bool:
        """Return whether there is a regular file with this name, which nobody else can write to."""
        try:
            with self.folder(kind) as folder:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            return False
        return stat.S_ISREG(status.st_mode) and only_user_can_write(status)

    def create(self, kind: str, name: str) -> BufferedReader:
        """Open a file like `open`, and create it if there is none.  Raise OSError if it cannot be created."""
        with self.folder(kind, create=True) as folder:
            return BufferedReader(FileIO(_open_file(folder, name, os.O_RDWR | os.O_CREAT), "rb"))

    def write(self, kind: str, name: str, *parts: bytes | memoryview) -> None:
        """Create or replace a file atomically.  Raise OSError if it cannot be written."""
        with self.folder(kind, create=True) as folder, replacing_file(folder, name, 0o600) as descriptor:
            for part in parts:
                view = memoryview(part).cast("B")
                while view:
                    view = view[os.write(descriptor, view) :]

    def files(self, kind: str) -> list[tuple[str, os.stat_result]]:
        """Return the name and the status of each regular file of a kind."""
        found = []
        with contextlib.suppress(OSError), self.folder(kind) as folder, os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # another process can have removed the file
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode):
                        found.append((entry.name, status))
        return found

    def remove(self, kind: str, name: str) -> None:
        """Remove a file.  Raise OSError if it cannot be removed."""
        with self.folder(kind) as folder:
            os.unlink(name, dir_fd=folder)

    @contextlib.contextmanager
    def folder(self, kind: str, *, create: bool = False) -> Iterator[int]:
        """A context manager that opens the folder of a kind, and yields its descriptor.

        create: whether to create the folder if it does not exist.

        Raises
        ------
        OSError
            The folder does not exist, or is a link, or another user can write to it.
        """
        path = os.path.join(self.path, kind)
        try:
            descriptor = _open_child(self.descriptor, kind, os.O_RDONLY, create=create)
        except NotADirectoryError:
            raise _report(UnsafeFolderError(errno.EPERM, "it is a symbolic link or a file", path)) from None
        try:
            _expect_private(os.fstat(descriptor), path)
            yield descriptor
        except UnsafeFolderError as error:
            raise _report(error) from None
        finally:
            os.close(descriptor)


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
            current = _current = CacheFolder(path, _open_path(path, create=create))
        except UnsafeFolderError as error:
            raise _report(error) from None
    return current


def _open_path(path: str, *, create: bool) -> int:
    """Open a folder by a walk from the root folder, and return its descriptor.

    Every folder on the way must belong to the user or root, and no other user may be able to replace the next one: only
    a folder with the sticky bit, such as /tmp, may be writable by others.  The last folder must not be a link, and no
    other user may be able to write to it.
    """
    names = path.split("/")[:0:-1]  # the next name is the last one
    links = 0
    place = "/"
    descriptor = os.open(place, os.O_PATH | _FOLDER)
    try:
        while names:
            name = names.pop()
            if name in ("", "."):
                continue
            _expect_keeps_entries(os.fstat(descriptor), place)
            here = os.path.normpath(os.path.join(place, name))
            try:
                child = _open_child(descriptor, name, os.O_PATH, create=create)
            except NotADirectoryError:
                status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                links += 1
                if not stat.S_ISLNK(status.st_mode) or links > _MAX_LINKS:
                    raise
                if not names or not is_own(status):
                    whose = "a symbolic link" if not names else "a symbolic link of another user"
                    raise UnsafeFolderError(errno.EPERM, f"it is {whose}", here) from None
                target = os.readlink(name, dir_fd=descriptor)
                names += reversed(target.split("/"))
                if not target.startswith("/"):
                    continue
                here = "/"
                child = os.open(here, os.O_PATH | _FOLDER)
            os.close(descriptor)
            descriptor, place = child, here
        _expect_private(os.fstat(descriptor), place)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _open_child(folder: int, name: str, flags: int, *, create: bool) -> int:
    """Open a folder in another folder, without following a link, and return its descriptor.

    Raise NotADirectoryError if it is a link or a file.   folder: the descriptor of the outer folder.
    """
    try:
        return os.open(name, flags | _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not create:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=folder)
    return os.open(name, flags | _FOLDER, dir_fd=folder)


def _open_file(folder: int, name: str, flags: int) -> int:
    """Open a regular file of a folder, and return its descriptor.  Opening follows no link, and waits for no pipe.

    Raise PermissionError if it is not a regular file, or if another user can write to it.

    folder: the descriptor of the folder.   flags: flags of os.open.
    """
    descriptor = os.open(name, flags | _FILE, 0o600, dir_fd=folder)
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and only_user_can_write(status):
        return descriptor
    os.close(descriptor)
    raise PermissionError(errno.EPERM, "expected a regular file that nobody else can write to", name)


def _expect_keeps_entries(status: os.stat_result, path: str) -> None:
    """Raise UnsafeFolderError if another user can replace entries of the user in a folder."""
    if is_own(status) and status.st_mode & stat.S_ISVTX:
        return
    _expect_private(status, path)


def _expect_private(status: os.stat_result, path: str) -> None:
    """Raise UnsafeFolderError if another user owns a folder or can write to it."""
    if not is_own(status):
        raise UnsafeFolderError(errno.EPERM, f"it belongs to another user (id {status.st_uid})", path)
    if not only_user_can_write(status):
        mode = stat.S_IMODE(status.st_mode)
        message = f"other users can write to it (mode {mode:o}; chmod go-w removes this permission)"
        raise UnsafeFolderError(errno.EPERM, message, path)


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
