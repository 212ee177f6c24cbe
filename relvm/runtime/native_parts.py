"""The parts of an executable that must not change if its native code is to be trusted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from relvm.bytecode.container import unpack_sections
from relvm.errors import RelvmFormatError, RelvmUnsupportedError
from relvm.runtime.trust import Part


def native_parts(buffer: Any, where: str) -> tuple[Part, ...]:
    """Return the parts of an executable that must not change if its native code is to be trusted.

    These are all sections except the elements of tensors.  `record_built` records them when the executable is built.
    Return an empty tuple if there is no native code.

    where: the beginning of error messages.
    """
    sections = _sections(buffer, where)
    return tuple(_parts(sections)) if "native" in sections else ()


def _parts(sections: dict[str, memoryview]) -> Iterator[Part]:
    for name in sorted(sections.keys() - {"data"}):
        yield name.encode()
        try:
            inner = unpack_sections(sections[name]) if name == "portable" else None
        except (RelvmFormatError, RelvmUnsupportedError):
            inner = None  # code that uses the portable program rejects it
        if inner is None:
            yield sections[name]
        else:
            yield from _parts(inner)


def _sections(buffer: Any, where: str) -> dict[str, memoryview]:
    """Return the contents of the sections of an executable, by name.

    where: the beginning of error messages.
    """
    try:
        return unpack_sections(buffer)
    except (RelvmFormatError, RelvmUnsupportedError) as error:
        raise type(error)(f"{where}: {error}" if where else str(error)) from None
