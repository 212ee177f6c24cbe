"""A cache folder that other users can change is not used, and nothing in the folder leads out of it."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from relvm import vm
from relvm.cli.main import main
from relvm.compiler import build_cache, disk_cache
from relvm.errors import RelvmUnsupportedError
from relvm.explore.views import machine_peak
from relvm.frontend.onnx import from_onnx
from relvm.frontend.text import parse_module
from relvm.runtime.cache_folder import UnsafeFolderError, open_cache
from relvm.runtime.trust import is_built_here, record_built
from relvm.system import posix

KINDS = ("compiled", "builds", "claims", "peaks", "built")
ANOTHER_USER = 54321
X = np.ones(4, np.float32)
TEXT = """<ir_version: 8, opset_import: ["": 17]>
g (float[4] x) => (float[4] y) { c = Constant<value_float: float = NUMBER>() y = Mul(x, c) }"""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can create files of another user")


def run() -> list[float]:
    """Build a program with native code, and return the result of a call."""
    machine = vm.VirtualMachine(vm.build(parse_module("def main(x: f32[4]) = add(x, x)"), "compiled"))
    return np.asarray(machine["main"](X)).tolist()


def in_new_folder(path: Path, mode: int) -> Path:
    path.mkdir(parents=True)
    path.chmod(mode)
    return path / "cache"


def a_folder_with_mode(mode: int) -> Callable[[Path], Path]:
    return lambda tmp_path: in_new_folder(tmp_path / "shared" / "cache", mode).parent


def a_link(tmp_path: Path) -> Path:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    return tmp_path / "link"


def of_another_user(tmp_path: Path) -> Path:
    os.chown(in_new_folder(tmp_path / "theirs", 0o755).parent, ANOTHER_USER, ANOTHER_USER)
    return tmp_path / "theirs"


def below_a_link_of_another_user(tmp_path: Path) -> Path:
    a_link(tmp_path)
    os.lchown(tmp_path / "link", ANOTHER_USER, ANOTHER_USER)
    return tmp_path / "link" / "cache"


def below_a_link_through_a_shared_folder(tmp_path: Path) -> Path:
    """The link is the user's own, but other users can replace the folder that it leads to."""
    in_new_folder(tmp_path / "shared", 0o777)
    (tmp_path / "shared" / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "shared" / "there")
    return tmp_path / "link" / "cache"


UNSAFE = {
    "writable by all": (a_folder_with_mode(0o777), r"other users can write to it \(mode 777; chmod go-w"),
    "writable by a group": (a_folder_with_mode(0o770), "other users can write to it"),
    "writable by all, with the sticky bit": (a_folder_with_mode(0o1777), "other users can write to it"),
    "a link": (a_link, "it is a symbolic link"),
    "below a folder that all can write to": (
        lambda tmp_path: in_new_folder(tmp_path / "shared", 0o777),
        "other users can write to it",
    ),
    "far below a folder that all can write to": (
        lambda tmp_path: in_new_folder(tmp_path / "shared", 0o777) / "a" / "b",
        "other users can write to it",
    ),
    "below a link through a shared folder": (below_a_link_through_a_shared_folder, "other users can write to it"),
}
UNSAFE_OF_OTHERS = {
    "of another user": (of_another_user, r"it belongs to another user \(id 54321\)"),
    "below a folder of another user": (lambda tmp_path: of_another_user(tmp_path) / "cache", "belongs to another user"),
    "below a link of another user": (below_a_link_of_another_user, "a symbolic link of another user"),
}


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        *(pytest.param(*case, id=name) for name, case in UNSAFE.items()),
        *(pytest.param(*case, id=name, marks=as_root) for name, case in UNSAFE_OF_OTHERS.items()),
    ],
)
def test_an_unsafe_folder_is_not_used(
    make: Callable[[Path], Path],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    cache = make(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setenv("RELVM_CACHE_DIR", str(cache))
    with caplog.at_level(logging.WARNING, "relvm"):
        assert run() == run() == [2, 2, 2, 2]
        assert disk_cache.read("compiled", "a") is None and not is_built_here(b"a")
        with pytest.raises(UnsafeFolderError, match=reason):
            record_built(b"a")
        assert not disk_cache.cached_files()
    assert sorted(tmp_path.rglob("*")) == before
    (warning,) = caplog.messages
    assert warning.startswith("the cache is not used, because its folder is not safe: ")
    assert main(["cache", "--clear"]) == 1


def test_the_command_names_an_unsafe_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    cache = a_folder_with_mode(0o777)(tmp_path)
    monkeypatch.setenv("RELVM_CACHE_DIR", str(cache))
    for arguments in (["cache"], ["cache", "--json"], ["cache", "--clear"]):
        assert main(arguments) == 1
        shown = capsys.readouterr()
        assert not shown.out and f"{cache}: other users can write to it (mode 777; chmod go-w" in shown.err


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda tmp_path: in_new_folder(tmp_path / "own", 0o700), id="own folder"),
        pytest.param(lambda tmp_path: in_new_folder(tmp_path / "sticky", 0o1777), id="below a folder like /tmp"),
        pytest.param(lambda tmp_path: a_link(tmp_path) / "a" / "cache", id="below an own link"),
    ],
)
def test_a_safe_folder_is_used(make: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = make(tmp_path)
    monkeypatch.setenv("RELVM_CACHE_DIR", str(cache))
    run()
    assert list((cache / "compiled").iterdir()) and list((cache / "built").iterdir())
    assert all(path.stat().st_mode & 0o077 == 0 for path in [cache, *cache.rglob("*")])


def victim_of(tmp_path: Path) -> Path:
    """Return a folder with a file for each name that relvm could use, and with old files that look abandoned."""
    victim = tmp_path / "victim"
    victim.mkdir()
    for name in ("profile", "0" * 64, "a.0123456789abcdef.part"):
        (victim / name).write_bytes(b"precious")
        os.utime(victim / name, (0, 0))
    return victim


def state(folder: Path) -> list[tuple]:
    return [
        (path.name, path.read_bytes(), path.stat().st_mode, path.stat().st_mtime) for path in sorted(folder.iterdir())
    ]


def use_all_kinds(name: str) -> None:
    """Write, read, lock and remove a file of each kind."""
    for kind in ("compiled", "builds", "peaks"):
        disk_cache.write(kind, name, b"new")
        disk_cache.read(kind, name)
    with build_cache.lock_entry(build_cache.CacheEntry(name)):
        pass
    build_cache.cached_executable(build_cache.CacheEntry(name))
    is_built_here(name.encode())
    with contextlib.suppress(OSError):
        record_built(name.encode())
    disk_cache.remove_least_recently_used(0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_link_in_the_place_of_a_folder_is_not_followed(
    kind: str, cache: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    victim = victim_of(tmp_path)
    before = state(victim)
    cache.mkdir()
    (cache / kind).symlink_to(victim)
    use_all_kinds("a")
    use_all_kinds("0" * 64)
    assert state(victim) == before
    assert run() == [2, 2, 2, 2]
    assert f"{cache / kind}: it is a symbolic link or a file" in caplog.text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "make", [os.symlink, lambda victim, path: os.mkfifo(path), lambda victim, path: os.mkdir(path)]
)
def test_what_is_no_regular_file_is_not_used(
    kind: str, make: Callable, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link, a pipe without a writer, or a folder in the place of a file."""
    monkeypatch.setattr(build_cache, "_sources_digest", lambda: "0")
    victim = victim_of(tmp_path)
    before = state(victim)
    names = {"built": cache_folder_record(b"a"), "builds": "a-0", "claims": "a-0"}
    (cache / kind).mkdir(parents=True)
    make(victim / "profile", cache / kind / names.get(kind, "a"))
    assert not is_built_here(b"a")
    use_all_kinds("a")
    assert state(victim) == before


def cache_folder_record(part: bytes) -> str:
    from relvm.runtime.trust import _record_name

    return _record_name((part,))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", [0o666, 0o620])
def test_a_file_that_others_can_write_to_is_not_used(kind: str, mode: int, cache: Path) -> None:
    with open_cache(create=True).create(kind, "a"):
        pass
    assert open_cache().contains(kind, "a")
    (cache / kind / "a").chmod(mode)
    assert not open_cache().contains(kind, "a")
    with pytest.raises(PermissionError, match="expected a regular file that nobody else can write to"):
        open_cache().open(kind, "a")


def test_a_folder_that_is_swapped_after_the_check_is_not_used(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The swap takes place between the check of the folder and the use of a file in it."""
    theirs = tmp_path / "theirs"
    for folder, is_recorded in ((cache, False), (theirs, True)):
        monkeypatch.setenv("RELVM_CACHE_DIR", str(folder))
        if is_recorded:
            record_built(b"a")
        disk_cache.write("compiled", "a", b"ours" if folder == cache else b"theirs")
    monkeypatch.setenv("RELVM_CACHE_DIR", str(cache))
    (cache / "built").mkdir(0o700)
    check = posix._expect_private

    def swap(status: os.stat_result, path: str) -> None:
        check(status, path)
        if path in (str(cache / "compiled"), str(cache / "built")):
            os.rename(path, f"{path}.old")
            os.symlink(theirs / os.path.basename(path), path)

    monkeypatch.setattr(posix, "_expect_private", swap)
    assert disk_cache.read("compiled", "a") == b"ours"
    assert not is_built_here(b"a")


def test_permissions_are_checked_at_each_access(cache: Path) -> None:
    record_built(b"a")
    assert is_built_here(b"a")
    cache.chmod(0o777)
    assert not is_built_here(b"a")
    cache.chmod(0o700)
    assert is_built_here(b"a")
    cache.rename(cache.with_name("moved"))
    assert not is_built_here(b"a")
    record_built(b"a")
    assert is_built_here(b"a")


def test_an_executable_under_the_name_of_another_model_is_not_used(cache: Path, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    modules = []
    for number in (3, 5):
        text = TEXT.replace("NUMBER", f"{number}.0")
        onnx.save(onnx.parser.parse_model(text), tmp_path / f"{number}.onnx")
        modules.append(from_onnx(tmp_path / f"{number}.onnx"))

    def result(module, mode: str) -> list[float]:
        return np.asarray(vm.VirtualMachine(vm.build(module, mode))["main"](X)).tolist()

    for mode in ("bytecode", "compiled"):
        files = []
        for module, expected in zip(modules, (3, 5), strict=True):
            known = set((cache / "builds").glob("*"))
            assert result(module, mode) == [expected] * 4
            files += set((cache / "builds").iterdir()) - known
        contents = [file.read_bytes() for file in files]
        for file, content in zip(files, reversed(contents), strict=True):
            file.write_bytes(content)
        assert result(modules[0], mode) == [3] * 4 and result(modules[1], mode) == [5] * 4


def test_peaks_under_the_name_of_another_machine_are_not_used(cache: Path) -> None:
    disk_cache.write("peaks", "a", b'{"operations": 1.0, "bytes": 2.0}')
    assert machine_peak._read_peaks("a", 1) == machine_peak.Peaks(1.0, 2.0, 1)
    (cache / "peaks" / "a").rename(cache / "peaks" / "b")
    assert machine_peak._read_peaks("b", 1) is None


def test_native_code_needs_permission_if_the_folder_of_records_is_unsafe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELVM_CACHE_DIR", str(a_folder_with_mode(0o777)(tmp_path)))
    vm.build(parse_module("def main(i: i64) -> i64 = i + 1"), "compiled").save(tmp_path / "saved.rvm")
    with pytest.raises(RelvmUnsupportedError, match="was not built on this machine; pass trust_native=True"):
        vm.load(tmp_path / "saved.rvm")
    assert vm.VirtualMachine(vm.load(tmp_path / "saved.rvm", trust_native=True))["main"](1) == 2
