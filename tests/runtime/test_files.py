"""Saved files are complete or absent, even after errors and in killed processes."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from relvm.compiler.find_compiler import find_compiler
from relvm.errors import RelvmError, RelvmFormatError
from relvm.runtime.file_io import complete_file, map_executable, open_file, read_buffer, read_file

# Python statements that write more than 500 bytes to the path `target`.
WRITERS = {
    "save": "from relvm.vm import Executable\nExecutable.from_program(program).save(target)",
    "export_library": "from relvm import vm\nvm.export_library(vm.Executable.from_program(program), target)",
    "archive": "from relvm.aot.project.tar import write_archive\nwrite_archive(target, 'x', {'y': bytes(9000)})",
    "export": "from relvm import aot\nfrom relvm.frontend.text import parse_module\n"
    "module = parse_module('def main(x: f32[4]) -> f32[4] { return exp(x) }')\n"
    "aot.build(module).write(Path(target).parent)",
    "cache": "os.environ['RELVM_CACHE_DIR'] = os.path.dirname(os.path.dirname(target))\n"
    "from relvm.compiler.disk_cache import write\nwrite('compiled', Path(target).name, bytes(9000))",
    "arrays": "import numpy as np\nfrom relvm.runtime.array_files import save_arrays\n"
    "save_arrays(target, {'y': np.zeros(9000)})",
}
TARGETS = {"export": "metadata.json", "cache": "compiled/target"}  # an export writes several files
NEEDS_COMPILER = {"export_library"}

PROLOGUE = """
import os, resource, signal, sys
from pathlib import Path
import numpy as np
from relvm.bytecode.program import Program
program = Program((), (np.arange(2000),))
target = sys.argv[1]
"""
DISK_FULL = "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nresource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))\n"
KILLED = """
replace = os.replace
def killing(old, new, **folders):
    os.kill(os.getpid(), signal.SIGKILL) if new == os.path.basename(target) else replace(old, new, **folders)
os.replace = killing
"""
HALF_WRITTEN = """
from relvm.runtime.file_io import complete_file
with complete_file(target) as partial:
    partial.write_bytes(bytes(100))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def run(text: str, target: Path) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-P", "-c", PROLOGUE + text, target], capture_output=True, text=True)


@pytest.fixture(params=WRITERS)
def writer(request: pytest.FixtureRequest) -> str:
    if request.param in NEEDS_COMPILER and find_compiler() is None:
        pytest.skip("no C compiler")
    return request.param


@pytest.fixture
def target(writer: str, tmp_path: Path) -> Path:
    path = tmp_path / TARGETS.get(writer, "target")
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"old")
    return path


def leftovers(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.part"))


def test_a_writer_replaces_the_file(writer: str, target: Path) -> None:
    assert run(WRITERS[writer], target).returncode == 0
    assert target.stat().st_size > 500 and not leftovers(target.parent)


def test_on_a_full_disk_the_old_file_stays(writer: str, target: Path) -> None:
    result = run(DISK_FULL + WRITERS[writer], target)
    assert target.read_bytes() == b"old" and not leftovers(target.parent)
    if writer == "cache":  # a cache that cannot be written is not an error
        assert (result.returncode, result.stderr) == (0, "")
    elif writer == "export_library":  # the linker reports the error
        assert result.returncode == 1 and re.search("RelvmToolchainError|OSError", result.stderr)
    else:
        assert result.returncode == 1 and re.search(r"(OS|RelvmFile)Error: \[Errno 27\] File too large", result.stderr)


def test_killed_before_the_end_the_old_file_stays(writer: str, target: Path) -> None:
    assert run(KILLED + WRITERS[writer], target).returncode == -signal.SIGKILL
    assert target.read_bytes() == b"old" and len(leftovers(target.parent)) == 1


def test_what_a_killed_process_left_goes_with_a_later_save(tmp_path: Path) -> None:
    target, other = tmp_path / "target", [tmp_path / "target2.0123456789abcdef.part", tmp_path / "target.old.part"]
    for path in other:
        path.touch()
        os.utime(path, (0, 0))
    assert run(HALF_WRITTEN, target).returncode == -signal.SIGKILL
    (left,) = set(leftovers(tmp_path)) - set(other)
    assert re.fullmatch(r"target\.[0-9a-f]{16}\.part", left.name) and left.stat().st_size == 100 and not target.exists()
    for age, stays in ((3000, True), (4000, False)):
        os.utime(left, (time.time() - age, time.time() - age))
        with complete_file(target) as partial:
            partial.write_bytes(b"new")
        assert target.read_bytes() == b"new" and left.exists() == stays and all(path.exists() for path in other)


def refuse(*_: object, **__: object) -> None:
    raise OSError("the disk is gone")


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_where_a_step_fails_the_old_file_stays(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"old")
    monkeypatch.setattr(os, step, refuse)
    with pytest.raises(OSError, match="the disk is gone"), complete_file(target) as partial:
        partial.write_bytes(b"new")
    assert target.read_bytes() == b"old" and not leftovers(tmp_path)


def test_the_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[tuple[str, str]] = []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        steps.append(("fsync", os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    def replaced(source: str, target: str, **folders: int) -> None:
        steps.append(("replace", str(tmp_path / source)))
        replace(source, target, **folders)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    with complete_file(tmp_path / "target") as partial:
        partial.write_bytes(b"new")
        (created,) = leftovers(tmp_path)
    assert steps == [("fsync", str(created)), ("replace", str(created)), ("fsync", str(tmp_path))]


def test_a_temporary_file_cannot_be_replaced_by_a_link(tmp_path: Path) -> None:
    """Another user who can write to the folder swaps the file for a link to a file of the victim."""
    target, victim = tmp_path / "target", tmp_path / "victim"
    victim.write_bytes(b"precious")
    with contextlib.suppress(OSError), complete_file(target) as partial:
        (created,) = leftovers(tmp_path)
        created.unlink()
        created.symlink_to(victim)
        partial.write_bytes(b"new")
        partial.chmod(0o600)
    assert victim.read_bytes() == b"precious" and victim.stat().st_mode & 0o777 != 0o600


def test_a_temporary_file_has_another_name_each_time(tmp_path: Path) -> None:
    names = set()
    for _ in range(2):
        with complete_file(tmp_path / "target"):
            names.update(leftovers(tmp_path))
    assert len(names) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can create a link of another user")
def test_a_link_of_another_user_is_not_followed(tmp_path: Path) -> None:
    victim, link = tmp_path / "victim", tmp_path / "link"
    victim.write_bytes(b"precious")
    link.symlink_to(victim)
    os.lchown(link, 54321, 54321)
    with pytest.raises(PermissionError, match="a symbolic link of another user"), complete_file(link) as partial:
        partial.write_bytes(b"new")
    assert victim.read_bytes() == b"precious"


@pytest.mark.parametrize(
    ("place", "error"),
    [("file/target", NotADirectoryError), ("absent/target", FileNotFoundError), ("folder", OSError), ("pipe", OSError)],
)
def test_where_no_file_can_be_the_error_is_the_systems(place: str, error: type[OSError], tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(error), complete_file(tmp_path / place) as partial:
        partial.write_bytes(b"new")
    assert sorted(tmp_path.iterdir()) == before and (tmp_path / "pipe").is_fifo()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_in_a_folder_that_may_not_be_written_the_old_file_stays(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"old")
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(PermissionError), complete_file(target) as partial:
            partial.write_bytes(b"new")
    finally:
        tmp_path.chmod(0o755)
    assert target.read_bytes() == b"old"


def test_an_error_of_the_system_names_the_file_that_was_to_be_written(tmp_path: Path) -> None:
    target = tmp_path / "y.rvm"
    with pytest.raises(OSError, match=rf"No space left on device: '{target}'$"), complete_file(target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    missing = tmp_path / "none/y.rvm"
    with pytest.raises(FileNotFoundError, match=rf"'{missing}'$"), complete_file(missing) as partial:
        partial.write_bytes(b"new")


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # no process writes to the pipe, so opening it would block
    for place in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(RelvmFormatError, match=f"{place}: expected a file, got a device or a pipe"):
            map_executable(place)


def test_what_a_link_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/target")
    with complete_file(tmp_path / "link") as partial:
        partial.write_bytes(b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "there" / "target").read_bytes() == b"new"


def test_a_failure_while_writing_is_what_is_raised(tmp_path: Path) -> None:
    with pytest.raises(RelvmError, match="why"), complete_file(tmp_path / "target") as partial:
        partial.write_bytes(b"half")
        raise RelvmError("why")
    with contextlib.suppress(KeyboardInterrupt), complete_file(tmp_path / "target"):
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("size_bytes", [0, 1, 100_000])
def test_a_buffer_holds_the_bytes_of_the_file(tmp_path: Path, size_bytes: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(size_bytes))
    buffer = read_buffer(path)
    assert buffer == read_file(path) and buffer.readonly
    path.write_bytes(bytes(size_bytes))
    assert size_bytes < 2 or buffer != read_file(path)  # a later change of the file has no effect


@pytest.mark.skipif(not Path("/proc/version").exists(), reason="needs /proc")
def test_a_file_that_does_not_state_its_size_is_read() -> None:
    assert os.stat("/proc/version").st_size == 0
    assert read_buffer("/proc/version") == read_file("/proc/version") != b""


def test_a_file_that_becomes_shorter_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(100))

    def truncated_later(path: Path, shown: object) -> Any:
        file = open_file(path, shown)
        monkeypatch.setattr(os, "fstat", lambda descriptor: os.stat_result([0] * 6 + [200] + [0] * 3))
        return file

    monkeypatch.setattr("relvm.runtime.file_io.open_file", truncated_later)
    with pytest.raises(RelvmFormatError, match=r"file: the file became shorter while it was read"):
        read_buffer(path)
