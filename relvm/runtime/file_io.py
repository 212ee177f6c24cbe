"""Executable files: memory-mapped when read, replaced atomically when written."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import stat
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from relvm.bytecode.container import section_slices
from relvm.errors import RelvmFormatError, RelvmUnsupportedError, expect_path
from relvm.runtime.elf import MAGIC, find_section
from relvm.runtime.trust import only_user_can_write

if TYPE_CHECKING:
    from io import BufferedReader
    from pathlib import Path

SOURCE_SUFFIXES = (".onnx", ".relvm")
EXECUTABLE_SUFFIXES = (".rvm", ".so")  # saved executables, and shared libraries that contain an executable
LIBRARY_SECTION = ".relvm"  # csrc/library/module.c
_PARTIAL = ".part"
_MAP_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)  # the value on Linux; defined in Python from 3.13 on
_ABANDONED_SECONDS = 3600
_BLOCK_BYTES = 512  # the unit of st_blocks on every file system
_SPARSE_BYTES = 1 << 30


def map_executable(path: str | os.PathLike) -> memoryview:
    """Map the executable in a file, or in an exported library, into memory, without running any of its code.

    Later writes to the file can change the elements of tensors, but nothing else, because all other pages are copied.
    A file that another user can write to is read completely instead of mapped.

    Raises
    ------
    RelvmTypeError
        `path` is not a path.
    OSError
        The file cannot be read.
    RelvmFormatError
        The path is a device or a pipe; the file is sparse or empty; its name ends like that of a model's source (such
        as .onnx); or the file is a shared library that is damaged or contains no executable.
    """
    expect_path("path", path)  # reject a number, which would be a file descriptor
    with open_file(path) as file:
        if os.fsdecode(path).endswith(SOURCE_SUFFIXES):
            raise RelvmFormatError(
                f"{path}: expected an executable ({', '.join(EXECUTABLE_SUFFIXES)}), got the source of a model;"
                " compile it with relvm.vm.build or `relvm compile`, or load it with relvm.load_model"
            )
        status = os.fstat(file.fileno())
        if status.st_size == 0:
            raise RelvmFormatError(f"{path}: the file is empty")
        if only_user_can_write(status):
            protection = mmap.PROT_READ | mmap.PROT_WRITE  # a private mapping: writes stay in this process
            content = memoryview(mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE | _MAP_NORESERVE, protection))
        else:
            content = memoryview(mmap.mmap(-1, status.st_size))  # aligned to a page, as a mapped file
            if file.readinto(content) != status.st_size:
                raise _became_shorter(path)
    if content[: len(MAGIC)] != MAGIC:
        _copy_metadata_pages(content)
        return content.toreadonly()
    try:
        section = find_section(content, LIBRARY_SECTION)
    except RelvmFormatError as error:
        raise RelvmFormatError(f"{path}: {error}") from None
    if section is None:
        raise RelvmFormatError(f"{path}: the shared library contains no executable; create one with export_library")
    _copy_metadata_pages(section)
    return section.toreadonly()


def _copy_metadata_pages(executable: memoryview) -> None:
    """Make copies of the pages of a mapped executable, so that later writes to the file do not change them.

    The executable is in a private mapping of the file.  Pages that contain only elements of tensors are not copied.
    """
    _copy_pages(executable[: mmap.PAGESIZE])  # the table of sections
    try:
        slices = section_slices(executable)
    except (RelvmFormatError, RelvmUnsupportedError):
        return  # such a file is rejected later
    for name, section in slices.items():
        if name == "portable":
            _copy_metadata_pages(executable[section])
        elif name != "data":
            _copy_pages(executable[section])


def _copy_pages(part: memoryview) -> None:
    for start in range(0, len(part), mmap.PAGESIZE):
        part[start] = part[start]
    if len(part):
        part[-1] = part[-1]


def read_file(path: str | os.PathLike) -> bytes:
    """Return the current bytes of a file.

    Raise OSError if the file cannot be read, and RelvmFormatError if it is a device, a pipe or a sparse file.
    """
    with open_file(path) as file:
        return file.read()


def read_buffer(path: str | os.PathLike) -> memoryview:
    """Return the current bytes of a file, like `read_file`, but faster for large files.

    The result is in memory that NumPy allocates with large pages.  A `bytes` object uses small pages, and the operating
    system needs more time to provide them.

    Raises
    ------
    OSError
        The file cannot be read.
    RelvmFormatError
        The path is a device, a pipe or a sparse file, or the file becomes shorter while it is read.
    """
    with open_file(path) as file:
        size_bytes = os.fstat(file.fileno()).st_size
        if not size_bytes:
            return memoryview(file.read())  # some file systems, such as /proc, do not state the size
        content = memoryview(np.empty(size_bytes, np.uint8).data)
        if file.readinto(content) != len(content):
            raise _became_shorter(path)
    return content.toreadonly()


def _became_shorter(path: str | os.PathLike) -> RelvmFormatError:
    return RelvmFormatError(f"{path}: the file became shorter while it was read")


def read_text(path: str | os.PathLike) -> str:
    """Return the current text of a UTF-8 file, without a byte order mark.  All line ends are converted to a newline.

    Raises
    ------
    OSError
        The file cannot be read.
    RelvmFormatError
        The path is a device, a pipe or a sparse file, or the file is not UTF-8 text.
    """
    try:
        return read_file(path).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise RelvmFormatError(f"{path}: expected UTF-8 text: {error}") from None


def open_file(path: str | os.PathLike) -> BufferedReader:
    """Open a regular file for reading.  If `path` is a pipe, raise an error instead of waiting for a writer.

    Raises
    ------
    RelvmTypeError
        `path` is not a path.
    OSError
        The file cannot be read.
    RelvmFormatError
        The path is a device, a pipe, a cycle of symbolic links, or a sparse file.  A file is sparse if it is larger
        than 1 GB and the disk stores less than a sixteenth of it.  Reading it would take much memory for zeros.
    """
    expect_path("path", path)
    try:
        file = open(path, "rb", opener=_open_nonblocking)  # noqa: SIM115  (the caller closes it)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise RelvmFormatError(f"{path}: expected a file, got a cycle of symbolic links") from None
        raise
    status = os.fstat(file.fileno())
    stored = status.st_blocks * _BLOCK_BYTES
    if stat.S_ISREG(status.st_mode) and not is_sparse(status.st_size, stored):
        return file
    file.close()
    if not stat.S_ISREG(status.st_mode):
        raise RelvmFormatError(f"{path}: expected a file, got a device or a pipe")
    raise RelvmFormatError(
        f"{path}: the file is sparse: it has {status.st_size:,} bytes, but only {stored:,} are stored on disk;"
        " copy it with cp --sparse=never"
    )


def is_sparse(size_bytes: int, stored_bytes: int) -> bool:
    """Return whether a large file or archive would take much more memory than disk space.

    This is so if `size_bytes` exceeds 1 GB and is more than 16 times `stored_bytes`.

    size_bytes: the size of the file, or of the unpacked members of the archive.
    stored_bytes: the number of bytes that the file or archive takes on the disk.
    """
    return size_bytes > _SPARSE_BYTES and stored_bytes < size_bytes // 16


@contextlib.contextmanager
def complete_file(path: str | os.PathLike) -> Iterator[Path]:
    """A context manager that yields the name of a temporary file, which the block writes.

    At the end of the block, the temporary file replaces `path` atomically.  If the block raises an exception, the
    temporary file is removed.

    The data is first synced to the disk, so that after a system crash `path` is either the old or the new file.  If the
    process is killed, the temporary file, NAME.PROCESS.THREAD.part, remains.  When `path` is written again, such files
    are removed if they are older than an hour.  If `path` is a symbolic link, its target is replaced.

    Raises
    ------
    RelvmTypeError
        `path` is not a path.
    OSError
        The file cannot be written, or `path` is a folder or a device.  The error contains the path.
    """
    expect_path("path", path)
    from pathlib import Path  # imported only for writing, to save memory

    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "expected a regular file to replace, found a folder or a device", os.fspath(path))
    _remove_abandoned(target)
    partial = target.with_name(f"{target.name}.{os.getpid()}.{threading.get_ident()}{_PARTIAL}")
    try:
        yield partial
        _sync(partial)
        os.replace(partial, target)
    except OSError as error:
        if error.errno and not error.filename2 and error.filename in (None, os.fspath(partial)):
            error.filename = os.fspath(path)  # the error for a full disk does not name the file
        raise
    finally:
        with contextlib.suppress(OSError):  # already gone or never created; the original error is raised
            partial.unlink()
    with contextlib.suppress(OSError):  # the file is complete; not every file system can sync folders
        _sync(target.parent)


def _open_nonblocking(path: str, flags: int) -> int:
    """Open a file and return its descriptor, without blocking, even if the file is a pipe without a writer."""
    return os.open(path, flags | os.O_NONBLOCK)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_abandoned(target: Path) -> None:
    """Remove temporary files of `target` that are older than an hour.  No process writes such old files any more."""
    with contextlib.suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if entry.name.startswith(f"{target.name}.") and entry.name.endswith(_PARTIAL):
                with contextlib.suppress(OSError):  # another process can have removed the file
                    if entry.stat().st_mtime < time.time() - _ABANDONED_SECONDS:
                        os.unlink(entry.path)
