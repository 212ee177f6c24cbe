"""Linux and macOS."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import stat
import sys
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any

from relvm.system.errors import UnsafeFolderError, not_private, outside

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

IS_LINUX = sys.platform.startswith("linux")
can_limit_processes = IS_LINUX  # with limit_memory and limit_processor_time
library_suffix = ".so" if IS_LINUX else ".dylib"

# ---- files ----

_ROOT = 0  # the id of the user who can change any file
_BLOCK_BYTES = 512  # the unit of st_blocks on every file system
_MAP_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if IS_LINUX else 0x40)  # in Python's module from 3.13 on


def map_copy_on_write(descriptor: int) -> mmap.mmap:
    """Map an open file into memory.  Writes to the mapping stay in this process."""
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    return mmap.mmap(descriptor, 0, mmap.MAP_PRIVATE | _MAP_NORESERVE, protection)


def open_at_once(path: str, flags: int) -> int:
    """Open a file and return its descriptor, without waiting, even if the file is a pipe without a writer."""
    return os.open(path, flags | os.O_NONBLOCK)


def stored_bytes(status: os.stat_result) -> int:
    """Return the number of bytes that a file takes on the disk."""
    return status.st_blocks * _BLOCK_BYTES


def only_user_can_write(status: os.stat_result) -> bool:
    """Return whether only root and the user of this process can write to a file or folder.

    status: the status of the file, of which the owner and the mode are checked.  POSIX access control lists need
    no check, because the group bits of the mode limit them.
    """
    return is_own(status) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def is_own(status: os.stat_result) -> bool:
    """Return whether a file, folder or symbolic link belongs to the user of this process, or to root."""
    return status.st_uid in (os.geteuid(), _ROOT)


def try_lock(file: IO[bytes]) -> bool:
    """Lock an open file, until it is closed or the process ends.  Return False if another process has locked it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def load_library(content: bytes) -> ctypes.CDLL:
    """Load a shared library, which is never closed.  Raise OSError if it cannot be loaded."""
    import ctypes  # only few processes need both
    import tempfile

    with tempfile.NamedTemporaryFile(prefix="relvm-", suffix=library_suffix) as file:
        file.write(content)
        file.flush()
        return ctypes.CDLL(file.name, mode=os.RTLD_NOW | os.RTLD_LOCAL)


@contextlib.contextmanager
def find_beneath(folder: str | os.PathLike, name: str) -> Iterator[tuple[str, str]]:
    """A context manager that finds a file inside a folder, so that the name in a model cannot lead to other files.

    It yields the path of the file with all symbolic links resolved, and a path that opens the file.  On Linux, the
    latter is a path in /proc that opens exactly the file that was checked, even if the file is replaced meanwhile.

    Raises
    ------
    ValueError
        The file is outside the folder, after symbolic links are resolved.
    OSError
        The file does not exist, or the system has no /proc.  The error number is ELOOP for a cycle of links.
    """
    outer = os.path.realpath(folder)
    path = os.path.join(outer, name if name and "\0" not in name else "..")
    if not IS_LINUX:
        own_path = os.path.realpath(path)
        _expect_inside(own_path, outer, name)
        yield os.path.realpath(path, strict=True), own_path
        return
    try:
        descriptor = os.open(path, os.O_PATH)  # this does not open devices and pipes
    except OSError:
        _expect_inside(os.path.realpath(path), outer, name)
        raise
    try:
        opened = f"/proc/self/fd/{descriptor}"
        own_path = os.readlink(opened)
        _expect_inside(own_path, outer, name)
        yield own_path, opened
    finally:
        os.close(descriptor)


def _expect_inside(path: str, folder: str, name: str) -> None:
    if os.path.commonpath((path, folder)) != folder:
        raise outside(name)


# ---- folders ----

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WALK = getattr(os, "O_PATH", os.O_RDONLY)  # macOS has no O_PATH
_MAX_LINKS = 40  # as in Linux


class Folder:
    """An open folder.  Its files and folders are opened relative to its descriptor, so nobody can replace it meanwhile.

    path: its path, for messages.
    """

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def open(cls, path: str) -> Folder:
        """Open a folder, which may be a link.  Raise OSError if there is none."""
        return cls(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY))

    @classmethod
    def open_private(cls, path: str, *, create: bool) -> Folder:
        """Open a folder that nobody else can change or replace, by a walk from the root folder.

        Every folder on the way must belong to the user or root, and no other user may be able to replace the next one:
        only a folder with the sticky bit, such as /tmp, may be writable by others.  The last folder must not be a link,
        and no other user may be able to write to it.

        path: its absolute path.   create: whether to create folders that do not exist.

        Raises
        ------
        OSError
            The folder does not exist or cannot be opened.  If another user can change or replace it, the error is an
            UnsafeFolderError.
        """
        return cls(path, _open_path(path, create=create))

    def close(self) -> None:
        os.close(self._descriptor)

    def status(self) -> os.stat_result:
        return os.fstat(self._descriptor)

    def open_child(self, name: str, *, create: bool) -> Folder:
        """Open a folder in this folder, which nobody else can change.

        create: whether to create it if it does not exist.   Raise NotADirectoryError if it is a link or a file.
        """
        path = os.path.join(self.path, name)
        folder = Folder(path, _open_child(self._descriptor, name, os.O_RDONLY, create=create))
        try:
            _expect_private(folder.status(), path)
        except UnsafeFolderError:
            folder.close()
            raise
        return folder

    def open_private_file(self, name: str, flags: int) -> int:
        """Open a regular file, and return its descriptor.  Opening follows no link, and waits for no pipe.

        Raise PermissionError if it is not a regular file, or if another user can write to it.

        flags: flags of os.open.
        """
        descriptor = os.open(name, flags | _FILE, 0o600, dir_fd=self._descriptor)
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and only_user_can_write(status):
            return descriptor
        os.close(descriptor)
        raise not_private(name)

    def create_file(self, name: str, mode: int) -> int:
        """Create a file, and return its descriptor.  Raise FileExistsError if it exists.

        mode: the permissions of the file.  Those that the umask of the process masks are not set.
        """
        return os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode, dir_fd=self._descriptor)

    def path_of(self, name: str, descriptor: int) -> str:
        """Return a path of an open file, which on Linux opens exactly this file.  Child processes cannot use it."""
        return f"/proc/self/fd/{descriptor}" if IS_LINUX else os.path.join(self.path, name)

    def status_of(self, name: str) -> os.stat_result:
        """Return the status of a file, without following a link."""
        return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)

    def names(self) -> list[str]:
        return os.listdir(self._descriptor)

    def touch(self, name: str) -> None:
        """Set the time of the last change of a file to now, without following a link."""
        os.utime(name, dir_fd=self._descriptor, follow_symlinks=False)

    def remove(self, name: str) -> None:
        os.unlink(name, dir_fd=self._descriptor)

    def rename(self, name: str, new: str) -> None:
        """Rename a file.  A file with the new name is replaced."""
        os.replace(name, new, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def sync(self) -> None:
        """Write the names of new files to the disk, if the file system can."""
        with contextlib.suppress(OSError):
            os.fsync(self._descriptor)


def cache_root() -> str | None:
    """Return the folder of the user's caches, or None if the user has no home directory."""
    if caches := os.environ.get("XDG_CACHE_HOME"):
        return caches
    home = os.path.expanduser("~")
    return None if home == "~" else os.path.join(home, ".cache" if IS_LINUX else "Library/Caches")


def _open_path(path: str, *, create: bool) -> int:
    names = path.split("/")[:0:-1]  # the next name is the last one
    links = 0
    place = "/"
    descriptor = os.open(place, _WALK | _FOLDER)
    try:
        while names:
            name = names.pop()
            if name in ("", "."):
                continue
            _expect_keeps_entries(os.fstat(descriptor), place)
            here = os.path.normpath(os.path.join(place, name))
            try:
                child = _open_child(descriptor, name, _WALK, create=create)
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
                child = os.open(here, _WALK | _FOLDER)
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
        return _open_directory(folder, name, flags)
    except FileNotFoundError:
        if not create:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=folder)
    return _open_directory(folder, name, flags)


def _open_directory(folder: int, name: str, flags: int) -> int:
    try:
        return os.open(name, flags | _FOLDER, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP:  # on macOS, for a link
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name) from None
        raise


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


# ---- processes ----


def watch_forks(
    before: Callable[[], Any] | None = None,
    in_parent: Callable[[], Any] | None = None,
    in_child: Callable[[], Any] | None = None,
) -> None:
    """Call functions at each fork of the process: before it, and after it in the parent and in the child."""
    given = {"before": before, "after_in_parent": in_parent, "after_in_child": in_child}
    os.register_at_fork(**{name: function for name, function in given.items() if function is not None})


def own_session() -> dict[str, Any]:
    """Return the arguments of subprocess.Popen that start a process in a session of its own.

    `end_processes` can end such a process together with all processes that it starts.  The process does not receive
    Ctrl-C from the terminal.
    """
    return {"start_new_session": True}


def end_processes(process: int) -> None:
    """End a process in a session of its own, which has not been waited for, and all processes that it has started."""
    import signal  # a start from the cache needs none of the signals

    with contextlib.suppress(ProcessLookupError):  # all of them have ended
        os.killpg(process, signal.SIGKILL)


def lower_priority(thread: int, niceness: int) -> None:
    """On Linux, lower the priority of a thread, and of the processes that it starts.   thread: its native id."""
    if IS_LINUX:
        os.setpriority(os.PRIO_PROCESS, thread, niceness)


def processor_count() -> int:
    """Return the number of processors that this process is allowed to use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor_seconds() -> float:
    """Return the processor time of all processes since the system started, or 0 if the system does not state it."""
    with contextlib.suppress(OSError, ValueError), open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _idle, _waiting, *others = map(int, file.read().split()[1:9])
        return (user + nice + system + sum(others)) / os.sysconf("SC_CLK_TCK")
    return 0.0


@contextlib.contextmanager
def block_interrupts() -> Iterator[Callable[[], object]]:
    """A context manager that blocks SIGINT in this thread and in the processes that it starts.

    It yields a function that unblocks SIGINT in this thread before the end of the block.
    """
    import signal

    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

    def restore() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    try:
        yield restore
    finally:
        restore()


def end_after(seconds: int) -> None:
    """End this process after some seconds, unless this function is called again.   seconds: 0 for never."""
    import signal

    signal.alarm(seconds)


def has_ended_late(status: int) -> bool:
    """Return whether `end_after` ended a process, given its return code."""
    import signal

    return status == -signal.SIGALRM


def name_of_end(status: int) -> str:
    """Return a description of how a process ended, given its return code."""
    import signal

    return f"by the signal {signal.Signals(-status).name}" if status < 0 else f"with the exit status {status}"


def split_command(text: str) -> list[str]:
    """Split the words of a command.  Raise ValueError if a quotation mark is not closed."""
    import shlex  # a start from the cache does not need it

    return shlex.split(text)


def limit_memory(max_bytes: int | None) -> None:
    """Allow this process `max_bytes` more memory than it has now.  If `max_bytes` is None, lift the limit."""
    import resource  # only few processes need it

    limit = most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if max_bytes is not None:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            used = next(int(line.split()[1]) << 10 for line in file if line.startswith("VmData:"))
        limit = used + max_bytes if most == resource.RLIM_INFINITY else min(used + max_bytes, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, most))


def limit_processor_time(seconds: int) -> None:
    """Limit the processor time of this process, and of each process that it starts."""
    import resource

    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    limit = seconds if most == resource.RLIM_INFINITY else min(seconds, most)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
