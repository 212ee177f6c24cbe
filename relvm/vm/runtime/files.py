"""Executables in files: mapped when they are read, complete when they appear."""

from __future__ import annotations

import contextlib
import mmap
import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from relvm.errors import RelvmFormatError
from relvm.vm.runtime.elf import MAGIC, find_section

if TYPE_CHECKING:
    from pathlib import Path

LIBRARY_SECTION = ".relvm"  # csrc/library/module.c


def map_executable(path: str | os.PathLike) -> memoryview:
    """The bytes of the executable that a file is, or, of an exported library, of the one in it: nothing of it runs.

    Raises
    ------
    OSError
        The file cannot be read.
    RelvmFormatError
        It is empty, or a shared library that is damaged or has no executable in it.
    """
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise RelvmFormatError(f"{path}: the file is empty")
        content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    if content[: len(MAGIC)] != MAGIC:
        return content
    try:
        section = find_section(content, LIBRARY_SECTION)
    except RelvmFormatError as error:
        raise RelvmFormatError(f"{path}: {error}") from None
    if section is None:
        raise RelvmFormatError(f"{path}: a shared library without an executable in it; export_library makes one")
    return section


@contextlib.contextmanager
def complete_file(path: str | os.PathLike) -> Iterator[Path]:
    """A name to write to: what is there at the end of the block takes the place of `path`, unless the block fails."""
    from pathlib import Path  # only what writes needs it: a deployed program's memory is counted

    target = Path(path)
    partial = target.with_name(f"{target.name}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        yield partial
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
