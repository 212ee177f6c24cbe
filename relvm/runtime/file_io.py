"""Executables in files: mapped when they are read, complete when they appear."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import stat
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

from relvm.bytecode.container import section_places
from relvm.errors import RelvmFormatError, RelvmUnsupportedError, expect_path
from relvm.runtime.elf import MAGIC, find_section

if TYPE_CHECKING:
    from pathlib import Path

EXECUTABLE_SUFFIXES = (".rvm", ".so")  # saved executables, and shared libraries that hold one
LIBRARY_SECTION = ".relvm"  # csrc/library/module.c
_PARTIAL = ".part"
_MAP_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)  # Linux's number; Python has it from 3.13 on
_ABANDONED_SECONDS = 3600
_BLOCK_BYTES = 512  # of st_blocks, whatever the file system has
_SPARSE_BYTES = 1 << 30


def map_executable(path: str | os.PathLike) -> memoryview:
    """The bytes of the executable that a file is, or, of an exported library, of the one in it: nothing of it runs.

    All but the elements of tensors are a copy, which no later write to the file changes.

    Raises
    ------
    RelvmTypeError
        It is no path.
    OSError
        The file cannot be read.
    RelvmFormatError
        `open_file` refuses it; it is empty, or a shared library that is damaged or has no executable in it.
    """
    expect_path("path", path)  # a number would be a descriptor
    with open_file(path) as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise RelvmFormatError(f"{path}: the file is empty")
        protection = mmap.PROT_READ | mmap.PROT_WRITE  # what is written becomes this process's own
        content = memoryview(mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE | _MAP_NORESERVE, protection))
    if content[: len(MAGIC)] != MAGIC:
        _detach(content)
        return content.toreadonly()
    try:
        section = find_section(content, LIBRARY_SECTION)
    except RelvmFormatError as error:
        raise RelvmFormatError(f"{path}: {error}") from None
    if section is None:
        raise RelvmFormatError(f"{path}: a shared library without an executable in it; export_library makes one")
    _detach(section)
    return section.toreadonly()


def _detach(executable: memoryview) -> None:
    """Copy the pages of a private mapping of an executable, but not those that hold nothing but elements of tensors."""
    _copy_pages(executable[: mmap.PAGESIZE])  # the table of sections is there
    try:
        places = section_places(executable)
    except (RelvmFormatError, RelvmUnsupportedError):
        return  # nor is it loaded
    for name, place in places.items():
        if name == "portable":
            _detach(executable[place])
        elif name != "data":
            _copy_pages(executable[place])


def _copy_pages(part: memoryview) -> None:
    for start in range(0, len(part), mmap.PAGESIZE):
        part[start] = part[start]
    if len(part):
        part[-1] = part[-1]


def read_file(path: str | os.PathLike) -> bytes:
    """The bytes of a file as it is now.  Raises as `open_file` does."""
    with open_file(path) as file:
        return file.read()


def read_text(path: str | os.PathLike) -> str:
    """The text of a UTF-8 file as it is now, its lines ended by a new line alone.

    Raises
    ------
    OSError
        The file cannot be read.
    RelvmFormatError
        `open_file` refuses it, or it is no UTF-8 text.
    """
    try:
        return read_file(path).decode().replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise RelvmFormatError(f"{path}: the file is not UTF-8 text: {error}") from None


def open_file(path: str | os.PathLike) -> BinaryIO:
    """Open a regular file for reading, without waiting for anything.

    Raises
    ------
    RelvmTypeError
        `path` is no path.
    OSError
        The file cannot be read.
    RelvmFormatError
        It is a device or a pipe, a circle of symbolic links, or a file of more than 1 GB of which the disk stores less
        than a sixteenth: to read the rest would take memory for zeros that the author did not have to store.
    """
    expect_path("path", path)
    try:
        file = open(path, "rb", opener=_open_at_once)  # noqa: SIM115  (the caller closes it)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise RelvmFormatError(f"{path}: expected a file, got symbolic links that lead in a circle") from None
        raise
    status = os.fstat(file.fileno())
    stored = status.st_blocks * _BLOCK_BYTES
    if stat.S_ISREG(status.st_mode) and not is_sparse(status.st_size, stored):
        return file
    file.close()
    if not stat.S_ISREG(status.st_mode):
        raise RelvmFormatError(f"{path}: expected a file, got a device or a pipe")
    raise RelvmFormatError(
        f"{path}: a sparse file of {status.st_size:,} bytes, of which the disk stores {stored:,};"
        " a copy by cp --sparse=never is read"
    )


def is_sparse(size_bytes: int, stored_bytes: int) -> bool:
    """Whether a file, or what an archive unpacks to, is more than 1 GB, of which less than a sixteenth is stored."""
    return size_bytes > _SPARSE_BYTES and stored_bytes < size_bytes // 16


@contextlib.contextmanager
def complete_file(path: str | os.PathLike) -> Iterator[Path]:
    """A name to write to: what is there at the end of the block takes the place of `path`, unless the block fails.

    It is on the disk before it does, so that after a crash of the system, too, `path` is the old file or the new one.
    A process that is killed meanwhile leaves what it has written, as NAME.PROCESS.THREAD.part; who writes `path` an
    hour later, or after that, removes it.  Of a symbolic link, what it leads to is replaced.

    Raises
    ------
    RelvmTypeError
        It is no path.
    OSError
        The file, which it names, cannot be written, or something other than a file, as a folder or device, is there.
    """
    expect_path("path", path)
    from pathlib import Path  # only what writes needs it: a deployed program's memory is counted

    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "what is there is no file that could be replaced", os.fspath(path))
    _remove_abandoned(target)
    partial = target.with_name(f"{target.name}.{os.getpid()}.{threading.get_ident()}{_PARTIAL}")
    try:
        yield partial
        _sync(partial)
        os.replace(partial, target)
    except OSError as error:
        if error.errno and not error.filename2 and error.filename in (None, os.fspath(partial)):
            error.filename = os.fspath(path)  # which a full disk does not name
        raise
    finally:
        with contextlib.suppress(OSError):  # it is gone, or was never made: what failed then says so
            partial.unlink()
    with contextlib.suppress(OSError):  # the file is there; not every file system syncs folders
        _sync(target.parent)


def _open_at_once(path: str, flags: int) -> int:
    """A descriptor; of a pipe, too, that nobody writes to yet."""
    return os.open(path, flags | os.O_NONBLOCK)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_abandoned(target: Path) -> None:
    """Those who still write have written in the last hour."""
    with contextlib.suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if entry.name.startswith(f"{target.name}.") and entry.name.endswith(_PARTIAL):
                with contextlib.suppress(OSError):  # another process may have removed it
                    if entry.stat().st_mtime < time.time() - _ABANDONED_SECONDS:
                        os.unlink(entry.path)
