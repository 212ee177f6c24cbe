"""Compiled and installed libraries are hardened, and depend only on the libraries that docs/security.md lists."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import requires
from pathlib import Path

import pytest

from relvm import _native, vm
from relvm.compiler.find_compiler import find_compiler
from relvm.frontend.text import parse_module

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "security.md").read_text()
ROW = re.compile(r"^\| (.+?) \| (.+) \| (.+) \|$", re.MULTILINE)

# System V ABI, chapter 5: types of program headers, tags of dynamic section entries, and the flags checked here.
DYNAMIC, STACK, RELRO = 2, 0x6474E551, 0x6474E552
NEEDED, STRING_TABLE, STRING_BYTES, FLAGS, FLAGS_1 = 1, 5, 10, 30, 0x6FFFFFFB
EXECUTABLE, BIND_NOW, NOW = 1, 8, 1


@dataclass(frozen=True)
class Library:
    """The checked properties of a shared library.  names: the dynamic symbols and the libraries that it needs."""

    stack_is_executable: bool
    has_relro: bool
    binds_now: bool
    needed: frozenset[str]
    names: bytes


def read(content: bytes) -> Library:
    """Read the properties of a 64-bit little-endian ELF file."""
    start, size, count = (struct.unpack_from(form, content, at)[0] for form, at in (("<Q", 32), ("<H", 54), ("<H", 56)))
    headers = [struct.unpack_from("<IIQQQQQQ", content, start + size * k) for k in range(count)]
    by_kind = {header[0]: header for header in headers}
    dynamic = list(_entries(content, by_kind[DYNAMIC]))
    of = dict(dynamic)
    table = next(at - h[3] + h[2] for h in headers if h[0] == 1 and h[3] <= (at := of[STRING_TABLE]) < h[3] + h[5])
    names = content[table : table + of[STRING_BYTES]]
    return Library(
        stack_is_executable=STACK not in by_kind or bool(by_kind[STACK][1] & EXECUTABLE),
        has_relro=RELRO in by_kind,
        binds_now=bool(of.get(FLAGS, 0) & BIND_NOW or of.get(FLAGS_1, 0) & NOW),
        needed=frozenset(names[at : names.index(0, at)].decode() for tag, at in dynamic if tag == NEEDED),
        names=names,
    )


def _entries(content: bytes, header: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    for at in range(header[2], header[2] + header[5], 16):
        tag, value = struct.unpack_from("<QQ", content, at)
        if tag == 0:
            return
        yield tag, value


def extension(folder: Path) -> bytes:
    return Path(_native.__file__).read_bytes()


def exported(folder: Path) -> bytes:
    vm.export_library(vm.build(MODULE, "compiled"), folder / "libmodel.so")
    return (folder / "libmodel.so").read_bytes()


def native_section(folder: Path) -> bytes:
    return vm.build(MODULE, "compiled").program.native.library


MODULE = parse_module("def main(x: f32[n, 8]) -> f32[n, 8] = softmax(x)")
# The names in the table of the document.
LIBRARIES: dict[str, Callable[[Path], bytes]] = {
    "the Python extension": extension,
    "an exported library": exported,
    "a native section": native_section,
}


def stated(what: str) -> frozenset[str]:
    """Return the libraries that, according to the document, a kind of library needs.  what: a key of LIBRARIES."""
    (needs,) = (row[2] for row in ROW.findall(DOCUMENT) if row[0] == what)
    return frozenset(re.findall(r"`([^`]+\.so[^`]*)`", needs))


@pytest.mark.parametrize("what", LIBRARIES)
def test_a_library_is_hardened_and_needs_what_the_document_says(what: str, tmp_path: Path) -> None:
    if what != "the Python extension" and find_compiler() is None:
        pytest.skip("no C compiler")
    library = read(LIBRARIES[what](tmp_path))
    assert not library.stack_is_executable
    assert library.has_relro and library.binds_now
    assert library.needed <= stated(what)
    if what != "a native section":  # a native section need not depend on any library
        assert library.needed
        assert b"\0__stack_chk_fail\0" in library.names and b"\0__vsnprintf_chk\0" in library.names


def test_every_package_that_is_required_is_in_the_bill() -> None:
    listed = {name for row in ROW.findall(DOCUMENT) for name in re.findall(r"^the package (\w+)$", row[0])}
    required = {re.match(r"\w+", each)[0] for each in requires("relvm") if "extra ==" not in each}
    assert listed == required
