"""Executables of every released version can be loaded, and return the same results (see docs/executable.md)."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path

import pytest

import relvm
from relvm import vm
from relvm._native import ffi, lib

VERSIONS = Path(__file__).parent / "versions"
sys.path.insert(0, str(VERSIONS))
from make_version import relied_on, results  # noqa: E402

KEPT = sorted(VERSIONS.glob("*.rvm"))


def kept_of(path: Path) -> dict:
    return json.loads(path.with_suffix(".json").read_text())


def test_the_present_version_is_kept() -> None:
    paths = {VERSIONS / f"{relvm.__version__}{suffix}.rvm" for suffix in ("", "-kernels")}
    assert paths <= set(KEPT), f"before a release: python {VERSIONS / 'make_version.py'}, and commit what it writes"


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_a_file_of_an_earlier_version_runs(path: Path) -> None:
    assert path.stat().st_size < 8192
    assert results(vm.load(path)) == kept_of(path)["results"]
    vm.Executable.check(path)


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_what_files_of_an_earlier_version_rely_on_is_as_it_was(path: Path) -> None:
    now = relied_on()
    for table, rows in kept_of(path)["relied_on"].items():
        changed = {name: (what, now[table].get(name)) for name, what in rows.items() if now[table].get(name) != what}
        assert not changed, f"{table}: a row that is there stays as it is; new rows go to the end"


def sealed(content: bytearray) -> bytes:
    """Return the file with a corrected header checksum.  `content` is modified."""
    content[24:28] = bytes(4)
    (count,) = struct.unpack_from("<I", content, 12)
    head = ffi.from_buffer(bytes(content[: 64 + 32 * count]))
    content[24:28] = struct.pack("<I", lib.rvm_crc32c(0, head, len(head)))
    return bytes(content)


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_a_higher_minor_version_is_read(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[10:12] = struct.pack("<H", 65535)
    assert results(vm.Executable.from_bytes(sealed(content))) == kept_of(path)["results"]
