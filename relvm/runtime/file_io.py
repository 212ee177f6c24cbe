"""Executable files: memory-mapped when read, replaced atomically when written."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import re
import stat
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from relvm.bytecode.container import section_slices
from relvm.errors import RelvmFormatError, RelvmUnsupportedError, expect_path, missing_file
from relvm.runtime.elf import MAGIC, find_section
from relvm.system import (
    Folder,
    find_beneath,
    is_own,
    map_copy_on_write,
    only_user_can_write,
    open_at_once,
    stored_bytes,
)

if TYPE_CHECKING:
    from io import BufferedReader
    from pathlib import Path

SOURCE_SUFFIXES = (".onnx", ".relvm", ".mlir", ".pt2")
EXECUTABLE_SUFFIXES = (".rvm", ".so")  # saved executables, and shared libraries that contain an executable
LIBRARY_SECTION = ".relvm"  # the ELF section of a module library that contains the executable
_PARTIAL = ".part"
_ABANDONED_SECONDS = 3600
_RANDOM_BYTES = 8  # in the name of a temporary file
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
        content = _map_file(file, path)
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


def map_cached(file: BufferedReader, path: str, suffix: bytes) -> memoryview | None:
    """Map an executable of the cache, like `map_executable`, and return it without the suffix that follows it.

    Return None if the file ends with something else.   file: the open file.   path: its path, for messages.
    """
    content = _map_file(file, path)
    if content[-len(suffix) :] != suffix:
        return None
    content = content[: -len(suffix)]
    _copy_metadata_pages(content)
    return content.toreadonly()


def _map_file(file: BufferedReader, path: str | os.PathLike) -> memoryview:
    status = os.fstat(file.fileno())
    if status.st_size == 0:
        raise RelvmFormatError(f"{path}: the file is empty")
    if only_user_can_write(status):
        return memoryview(map_copy_on_write(file.fileno()))
    content = memoryview(mmap.mmap(-1, status.st_size))  # aligned to a page, as a mapped file
    if file.readinto(content) != status.st_size:
        raise _became_shorter(path)
    return content


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


def map_file(path: str | os.PathLike) -> memoryview:
    """Map a file into memory.

    Later writes to the file can change the contents.  A file that another user can write to is read completely instead
    of mapped.

    Raises
    ------
    OSError
        The file cannot be read.
    RelvmFormatError
        The path is a device or a pipe, or the file is sparse or empty.
    """
    with open_file(path) as file:
        return _map_file(file, path).toreadonly()


def read_file(path: str | os.PathLike) -> bytes:
    """Return the current bytes of a file.

    Raise OSError if the file cannot be read, and RelvmFormatError if it is a device, a pipe or a sparse file.
    """
    with open_file(path) as file:
        return file.read()


def read_buffer(path: str | os.PathLike, shown: str | os.PathLike | None = None) -> memoryview:
    """Return the current bytes of a file, like `read_file`, but faster for large files.

    The result is in memory that NumPy allocates with large pages.  A `bytes` object uses small pages, and the operating
    system needs more time to provide them.

    shown: the path in error messages, by default `path`.

    Raises
    ------
    OSError
        The file cannot be read.
    RelvmFormatError
        The path is a device, a pipe or a sparse file, or the file becomes shorter while it is read.
    """
    with open_file(path, shown) as file:
        size_bytes = os.fstat(file.fileno()).st_size
        if not size_bytes:
            return memoryview(file.read())  # some file systems, such as /proc, do not state the size
        content = memoryview(np.empty(size_bytes, np.uint8).data)
        if file.readinto(content) != len(content):
            raise _became_shorter(path if shown is None else shown)
    return content.toreadonly()


@contextlib.contextmanager
def open_beneath(folder: str | os.PathLike, name: str) -> Iterator[tuple[str, str]]:
    """A context manager that finds a file inside a folder, so that the name in a model cannot lead to other files.

    It yields the path of the file with all symbolic links resolved, and a path that opens the file.  On Linux, the
    latter is a path in /proc that opens exactly the file that was checked, even if the file is replaced meanwhile.

    Raises
    ------
    ValueError
        The file is outside the folder, after symbolic links are resolved.
    OSError
        The file does not exist, or the system is Linux and /proc is not mounted.
    RelvmFormatError
        The path is a cycle of symbolic links.
    """
    try:
        with find_beneath(folder, name) as found:
            yield found
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _cycle(error.filename) from None
        raise


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


def open_file(path: str | os.PathLike, shown: str | os.PathLike | None = None) -> BufferedReader:
    """Open a regular file for reading.  If `path` is a pipe, raise an error instead of waiting for a writer.

    shown: the path in error messages, by default `path`.

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
        file = open(path, "rb", opener=open_at_once)  # noqa: SIM115  (the caller closes it)
    except FileNotFoundError:
        raise missing_file(path) from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _cycle(path) from None
        raise
    path = path if shown is None else shown
    status = os.fstat(file.fileno())
    stored = stored_bytes(status)
    if stat.S_ISREG(status.st_mode) and not is_sparse(status.st_size, stored):
        return file
    file.close()
    if not stat.S_ISREG(status.st_mode):
        raise RelvmFormatError(f"{path}: expected a file, got a device or a pipe")
    raise RelvmFormatError(
        f"{path}: the file is sparse: it has {status.st_size:,} bytes, but only {stored:,} are stored on disk;"
        " copy it with cp --sparse=never"
    )


def _cycle(path: str | os.PathLike) -> RelvmFormatError:
    return RelvmFormatError(f"{path}: expected a file, got a cycle of symbolic links")


def is_sparse(size_bytes: int, stored_bytes: int) -> bool:
    """Return whether a large file or archive would take much more memory than disk space.

    This is so if `size_bytes` exceeds 1 GB and is more than 16 times `stored_bytes`.

    size_bytes: the size of the file, or of the unpacked members of the archive.
    stored_bytes: the number of bytes that the file or archive takes on the disk.
    """
    return size_bytes > _SPARSE_BYTES and stored_bytes < size_bytes // 16


@contextlib.contextmanager
def complete_file(path: str | os.PathLike) -> Iterator[Path]:
    """A context manager that yields the path of a temporary file, which the block writes.

    At the end of the block, the temporary file replaces `path` atomically.  If the block raises an exception, the
    temporary file is removed.

    The temporary file is a new file with a random name in the folder of `path`.  On Linux, the yielded path is that of
    its open descriptor in /proc, so that nobody can replace the file by a link before it is written.  Child processes
    cannot use this path.

    The data is first synced to the disk, so that after a system crash `path` is either the old or the new file.  If the
    process is killed, the temporary file, NAME.RANDOM.part, remains.  When `path` is written again, such files are
    removed if they are older than an hour.  If `path` is a symbolic link, its target is replaced.

    Raises
    ------
    RelvmTypeError
        `path` is not a path.
    OSError
        The file cannot be written, or `path` is a folder, a device, or a symbolic link of another user.  The error
        contains the path.
    """
    expect_path("path", path)
    from pathlib import Path  # imported only for writing, to save memory

    _expect_own_link(path)
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "expected a regular file to replace, found a folder or a device", os.fspath(path))
    partial: Path | None = None
    try:
        folder = Folder.open(os.fspath(target.parent))
        with contextlib.closing(folder), replacing_file(folder, target.name, 0o666) as (_, opened):
            partial = Path(opened)
            yield partial
    except OSError as error:
        unnamed = (None, os.fspath(target.parent), os.fspath(partial or target))  # a full disk: the error names no file
        if error.errno and (error.filename in unnamed or str(error.filename).endswith(_PARTIAL)):
            error.filename = os.fspath(path)
            if error.filename2:
                error.filename2 = None
        raise


@contextlib.contextmanager
def replacing_file(folder: Folder, name: str, mode: int) -> Iterator[tuple[int, str]]:
    """A context manager that yields the descriptor and a path of a new file, which the block writes.

    At the end of the block, the new file replaces the file `name` atomically, or becomes the file `name` if there is
    none.  If the block raises an exception, the new file is removed.  See `complete_file` for details.

    folder: the folder of the file.
    name: the name of the file in this folder.
    mode: the permissions of the new file.  Those that the umask of the process masks are not set.
    """
    _remove_abandoned(folder, name)
    partial = f"{name}.{os.urandom(_RANDOM_BYTES).hex()}{_PARTIAL}"
    descriptor = folder.create_file(partial, mode)
    try:
        try:
            yield descriptor, folder.path_of(partial, descriptor)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        folder.rename(partial, name)
    except BaseException:
        with contextlib.suppress(OSError):  # the original error is raised
            folder.remove(partial)
        raise
    folder.sync()


def _expect_own_link(path: str | os.PathLike) -> None:
    """Raise PermissionError if `path` is a symbolic link that another user has created, for example in /tmp."""
    try:
        status = os.lstat(path)
    except OSError:
        return  # the file does not exist
    if stat.S_ISLNK(status.st_mode) and not is_own(status):
        message = "the path is a symbolic link of another user; remove it, or write to its target"
        raise PermissionError(errno.EPERM, message, os.fspath(path))


def _remove_abandoned(folder: Folder, name: str) -> None:
    """Remove temporary files of `name` that are older than an hour.  No process writes such old files any more."""
    random = re.compile(rf"\.[0-9a-f]{{{2 * _RANDOM_BYTES}}}{re.escape(_PARTIAL)}")
    with contextlib.suppress(OSError):
        for entry in folder.names():
            if entry.startswith(name) and random.fullmatch(entry, len(name)):
                with contextlib.suppress(OSError):  # another process can have removed the file
                    if folder.status_of(entry).st_mtime < time.time() - _ABANDONED_SECONDS:
                        folder.remove(entry)
