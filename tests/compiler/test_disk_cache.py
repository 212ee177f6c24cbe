"""Tests of the size limit of the disk cache, and of the order of removal."""

from __future__ import annotations

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from relvm import vm
from relvm.cli.main import main
from relvm.compiler.disk_cache import (
    cached_files,
    key_suffix,
    limit_bytes,
    read,
    remove_least_recently_used,
    write,
)
from relvm.errors import RelvmArgumentError
from relvm.frontend.text import parse_module

pytestmark = pytest.mark.usefixtures("cache")


SUFFIX_BYTES = len(key_suffix("compiled", "a"))


def keep(cache: Path, name: str, size: int, used: float) -> Path:
    """Write a cache file of `size` bytes, and return its path."""
    write("compiled", name, bytes(size - SUFFIX_BYTES - len(name) + 1))
    place = cache / "compiled" / name
    with contextlib.suppress(FileNotFoundError):  # the file was too large, or was removed
        os.utime(place, (used, used))
    return place


def test_what_was_used_longest_ago_goes_first(cache: Path) -> None:
    places = [keep(cache, f"{name}", 100, used) for used, name in enumerate("abcdefgh")]
    assert read("compiled", "a") == bytes(100 - SUFFIX_BYTES)
    assert remove_least_recently_used(800) == 0 and all(place.exists() for place in places)
    assert remove_least_recently_used(799) == 300
    assert [place.name for place in places if not place.exists()] == ["b", "c", "d"]


def test_writing_keeps_within_the_limit(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELVM_CACHE_BYTES", "3300000")
    for number in range(9):
        keep(cache, f"{number}", 1_100_000, number)
    assert sum(file.size_bytes for file in cached_files()) <= 3_300_000


def test_what_is_larger_than_the_limit_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELVM_CACHE_BYTES", "0")
    write("compiled", "a", b"x")
    assert not cached_files()


def test_a_limit_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELVM_CACHE_BYTES", "2GB")
    with pytest.raises(RelvmArgumentError, match="RELVM_CACHE_BYTES: expected an integer number of bytes, got '2GB'"):
        limit_bytes()


def test_many_may_write_and_clear_at_once(cache: Path) -> None:
    def work(number: int) -> None:
        for name in "0abc":
            keep(cache, f"{name}{number % 3}", 1000, number)
            remove_least_recently_used(2000)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(40)))
    assert all(file.size_bytes == 1000 for file in cached_files())


def test_clearing_leaves_what_was_saved_usable(cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    module = parse_module("def main(i: i64) -> i64 = i + 1")
    vm.build(module, "compiled").save(tmp_path / "saved.rvm")
    assert main(["cache", "--clear"]) == 0
    shown = capsys.readouterr().out
    assert str(cache) in shown and "removed" in shown and not cached_files()
    assert vm.VirtualMachine(vm.load(tmp_path / "saved.rvm"))["main"](4) == 5
    assert vm.VirtualMachine(vm.build(module, "compiled"))["main"](4) == 5
    assert cached_files() and main(["cache"]) == 0 and f"{len(cached_files())} files" in capsys.readouterr().out
