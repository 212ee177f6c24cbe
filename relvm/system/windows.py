"""Windows.

Windows has no forks, no signals except at the console, and no modes of files: the access control lists of the user's
profile, in which the cache is by default, keep other users out.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any

from relvm.system.errors import not_private, outside

__all__ = [
    "Folder",
    "block_interrupts",
    "cache_root",
    "can_limit_processes",
    "end_after",
    "end_processes",
    "find_beneath",
    "has_ended_late",
    "is_own",
    "library_suffix",
    "load_library",
    "lower_priority",
    "map_copy_on_write",
    "name_of_end",
    "only_user_can_write",
    "open_at_once",
    "own_session",
    "processor_count",
    "processor_seconds",
    "split_command",
    "stored_bytes",
    "try_lock",
    "watch_forks",
]

if TYPE_CHECKING:
    import ctypes

can_limit_processes = False
library_suffix = ".dll"

# ---- files ----

_OPEN = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
_REPARSE_POINT = 0x400  # FILE_ATTRIBUTE_REPARSE_POINT: links and junctions
_LOCKED_BYTE = 0


def map_copy_on_write(descriptor: int) -> mmap.mmap:
    """Map an open file into memory.  Writes to the mapping stay in this process."""
    return mmap.mmap(descriptor, 0, access=mmap.ACCESS_COPY)


def open_at_once(path: str, flags: int) -> int:
    """Open a file and return its descriptor."""
    return os.open(path, flags | _OPEN)


def stored_bytes(status: os.stat_result) -> int:
    """Return the size of a file.  Python does not state how much of it is on the disk."""
    return status.st_size


def only_user_can_write(status: os.stat_result) -> bool:
    """Return True, because the status of a file does not state who can write to it."""
    return True


def is_own(status: os.stat_result) -> bool:
    """Return True, because the status of a file does not state its owner."""
    return True


def try_lock(file: IO[bytes]) -> bool:
    """Lock an open file, until it is closed or the process ends.  Return False if another process has locked it."""
    import msvcrt

    file.seek(_LOCKED_BYTE)
    try:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except PermissionError:
        return False
    except OSError as error:
        if error.errno != errno.EDEADLK:
            raise
        return False
    return True


def load_library(content: bytes) -> ctypes.CDLL:
    """Load a shared library, which is never closed.  Raise OSError if it cannot be loaded.

    The file of a loaded library cannot be removed, so it remains in the folder of temporary files.
    """
    import ctypes  # only few processes need both
    import tempfile

    with tempfile.NamedTemporaryFile(prefix="relvm-", suffix=library_suffix, delete=False) as file:
        file.write(content)
    return ctypes.CDLL(file.name)


@contextlib.contextmanager
def find_beneath(folder: str | os.PathLike, name: str) -> Iterator[tuple[str, str]]:
    """A context manager that finds a file inside a folder, so that the name in a model cannot lead to other files.

    It yields the path of the file with all links resolved, twice.

    Raises
    ------
    ValueError
        The file is outside the folder, after links are resolved.
    OSError
        The file does not exist.
    """
    outer = os.path.realpath(folder)
    path = os.path.realpath(os.path.join(outer, name if name and "\0" not in name else ".."))
    if os.path.splitdrive(path)[0] != os.path.splitdrive(outer)[0] or os.path.commonpath((path, outer)) != outer:
        raise outside(name)
    os.stat(path)
    yield path, path


# ---- folders ----


class Folder:
    """A folder, found by its path.   path: its path."""

    def __init__(self, path: str) -> None:
        self.path = path

    @classmethod
    def open(cls, path: str) -> Folder:
        """Return the folder at a path, which may be a link.  Raise OSError if there is none."""
        if not stat.S_ISDIR(os.stat(path).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return cls(path)

    @classmethod
    def open_private(cls, path: str, *, create: bool) -> Folder:
        """Return the folder at a path.   create: whether to create folders that do not exist.

        Raise OSError if there is none.
        """
        if create:
            os.makedirs(path, exist_ok=True)
        return cls.open(path)

    def close(self) -> None:
        """Do nothing."""

    def status(self) -> os.stat_result:
        return os.stat(self.path)

    def open_child(self, name: str, *, create: bool) -> Folder:
        """Return a folder in this folder.   create: whether to create it if it does not exist.

        Raise NotADirectoryError if it is a link or a file.
        """
        path = os.path.join(self.path, name)
        if create:
            with contextlib.suppress(FileExistsError):
                os.mkdir(path)
        status = os.lstat(path)
        if not stat.S_ISDIR(status.st_mode) or _is_link(status):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return Folder(path)

    def open_private_file(self, name: str, flags: int) -> int:
        """Open a regular file, and return its descriptor.   flags: flags of os.open.

        Raise PermissionError if it is a link or a device.
        """
        path = os.path.join(self.path, name)
        with contextlib.suppress(FileNotFoundError):
            status = os.lstat(path)
            if not stat.S_ISREG(status.st_mode) or _is_link(status):
                raise not_private(name)
        return os.open(path, flags | _OPEN, 0o600)

    def create_file(self, name: str, mode: int) -> int:
        """Create a file, and return its descriptor.  Raise FileExistsError if it exists.

        mode: the permissions of the file.  Windows heeds only the write permission of the owner.
        """
        return os.open(os.path.join(self.path, name), os.O_RDWR | os.O_CREAT | os.O_EXCL | _OPEN, mode)

    def path_of(self, name: str, descriptor: int) -> str:
        """Return the path of an open file."""
        return os.path.join(self.path, name)

    def status_of(self, name: str) -> os.stat_result:
        """Return the status of a file, without following a link."""
        return os.lstat(os.path.join(self.path, name))

    def names(self) -> list[str]:
        return os.listdir(self.path)

    def touch(self, name: str) -> None:
        """Set the time of the last change of a file to now."""
        os.utime(os.path.join(self.path, name))

    def remove(self, name: str) -> None:
        os.unlink(os.path.join(self.path, name))

    def rename(self, name: str, new: str) -> None:
        """Rename a file.  A file with the new name is replaced, unless a process has opened it."""
        os.replace(os.path.join(self.path, name), os.path.join(self.path, new))

    def sync(self) -> None:
        """Do nothing: NTFS keeps a journal of names."""


def _is_link(status: os.stat_result) -> bool:
    return bool(getattr(status, "st_file_attributes", 0) & _REPARSE_POINT)


def cache_root() -> str | None:
    """Return the folder of the user's caches, or None if the user has no profile."""
    if caches := os.environ.get("LOCALAPPDATA"):
        return caches
    home = os.path.expanduser("~")
    return None if home == "~" else os.path.join(home, "AppData", "Local")


# ---- processes ----

_LATE = 124  # the exit status of a process that `end_after` ends
_INTERRUPTED = 0xC000013A - (1 << 32)  # STATUS_CONTROL_C_EXIT
_timer: threading.Timer | None = None


def watch_forks(
    before: Callable[[], Any] | None = None,
    in_parent: Callable[[], Any] | None = None,
    in_child: Callable[[], Any] | None = None,
) -> None:
    """Do nothing, because there are no forks."""


def own_session() -> dict[str, Any]:
    """Return the arguments of subprocess.Popen for a process that does not receive Ctrl-C from the console."""
    return {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}


def end_processes(process: int) -> None:
    """End a process, which has not been waited for, and all processes that it has started."""
    command = ["taskkill", "/T", "/F", "/PID", str(process)]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)


def lower_priority(thread: int, niceness: int) -> None:
    """Do nothing: processes do not inherit the priority of a thread."""


def processor_count() -> int:
    """Return the number of processors."""
    return os.cpu_count() or 1


def processor_seconds() -> float:
    """Return 0: Python does not state the processor time of all processes."""
    return 0.0


@contextlib.contextmanager
def block_interrupts() -> Iterator[Callable[[], object]]:
    """A context manager that yields a function without effect.

    It does not block Ctrl-C, because Windows sends Ctrl-C to all processes.
    """
    yield lambda: None


def end_after(seconds: int) -> None:
    """End this process after some seconds, unless this function is called again.   seconds: 0 for never."""
    global _timer
    if _timer is not None:
        _timer.cancel()
    _timer = threading.Timer(seconds, os._exit, (_LATE,)) if seconds else None
    if _timer is not None:
        _timer.daemon = True
        _timer.start()


def has_ended_late(status: int) -> bool:
    """Return whether `end_after` ended a process, given its return code."""
    return status == _LATE


def name_of_end(status: int) -> str:
    """Return a description of how a process ended, given its return code."""
    return "by Ctrl-C" if status == _INTERRUPTED else f"with the exit status {status}"


def split_command(text: str) -> list[str]:
    """Split the words of a command, in which a backslash is part of a path.

    Raise ValueError if a quotation mark is not closed.
    """
    import shlex  # a start from the cache does not need it

    words = shlex.split(text, posix=False)  # keeps the quotation marks
    return [word[1:-1] if len(word) > 1 and word[0] == word[-1] == '"' else word for word in words]
