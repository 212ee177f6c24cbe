"""Only relvm.system depends on the operating system, and its modules for POSIX and for Windows have the same names."""

from __future__ import annotations

import ast
import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.documents import ROOT

import relvm.system
from relvm.system import posix, windows
from relvm.tables import CPU_FEATURES

PACKAGE = ROOT / "relvm"
# Modules and names of the standard library that not every system has.  signal.SIGINT exists everywhere.
MODULES = {"fcntl", "grp", "msvcrt", "posix", "pty", "pwd", "resource", "signal", "termios", "tty", "winreg", "_winapi"}
OS_NAMES = {
    *("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_PATH", "RTLD_LOCAL", "RTLD_NOW", "fork", "geteuid"),
    *("getuid", "killpg", "memfd_create", "mkfifo", "posix_spawn", "register_at_fork", "sched_getaffinity"),
    *("setpriority", "setsid", "sysconf", "uname", "utime", "wait", "waitpid"),
}
OTHER_NAMES = {("mmap", "MAP_PRIVATE"), ("mmap", "PROT_READ"), ("sys", "platform"), ("os", "name")}
ARGUMENTS = {"dir_fd", "pass_fds", "preexec_fn", "start_new_session", "creationflags"}
# The names of relvm.system.
NAMES = sorted(
    {name for name in vars(relvm.system) if hasattr(posix, name) and name[0] != "_"} - {"annotations", "sys"}
)
# A build with limits needs Linux, and says so elsewhere (relvm.system.can_limit_processes).
LINUX_ONLY = {"limited_build.py": {"os.memfd_create", "pass_fds="}}


def uses(path: Path) -> Iterator[str]:
    """Yield what a Python file uses that not every system has."""
    for item in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match item:
            case ast.Import(names=names):
                yield from (alias.name for alias in names if alias.name.partition(".")[0] in MODULES)
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] in MODULES:
                yield module
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                if (name == "os" and attribute in OS_NAMES) or (name, attribute) in OTHER_NAMES:
                    yield f"{name}.{attribute}"
            case ast.keyword(arg=str(name)) if name in ARGUMENTS:
                yield f"{name}="
            case ast.Constant(value=str(text)) if text.startswith(("/proc", "/dev/", "/tmp")):
                yield text
            case ast.Dict(keys=keys):
                found = {key.value for key in keys if isinstance(key, ast.Constant)} & ARGUMENTS
                yield from (f"{name}=" for name in found)


def test_only_relvm_system_depends_on_the_system() -> None:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith("system/") and (used := set(uses(path)) - LINUX_ONLY.get(name, set())):
            found[name] = used
    assert not found


def test_such_uses_are_found(tmp_path: Path) -> None:
    path = tmp_path / "seen.py"
    path.write_text(
        "import os, fcntl\nfrom signal import alarm\nos.open('/proc/self', os.O_PATH, dir_fd=3)\n"
        "subprocess.Popen(x, **{'pass_fds': 1})\n"
    )
    assert set(uses(path)) == {"fcntl", "signal", "/proc/self", "os.O_PATH", "dir_fd=", "pass_fds="}


def test_text_files_state_their_encoding() -> None:
    """Without it, Windows would use the code page of the user."""
    missing = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and _is_text(call) and "encoding" not in {word.arg for word in call.keywords}:
                missing.append(f"{path}:{call.lineno}")
    assert not missing


def _is_text(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(attr="write_text"):
            return True
        case ast.Attribute(attr="read_text"):
            return not call.args
        case ast.Name(id="open"):
            mode = call.args[1] if len(call.args) > 1 else ast.Constant("r")
            return not (isinstance(mode, ast.Constant) and "b" in str(mode.value))
        case _:
            return any(word.arg in ("text", "universal_newlines") for word in call.keywords)


@pytest.mark.parametrize("module", [posix, windows])
def test_each_module_has_all_names(module: object) -> None:
    assert not [name for name in NAMES if not hasattr(module, name)]


def test_the_modules_have_the_same_signatures() -> None:
    for name in NAMES:
        here, there = getattr(posix, name), getattr(windows, name)
        if inspect.isfunction(here):
            assert inspect.signature(here) == inspect.signature(there), name
    methods = {name: value for name, value in vars(posix.Folder).items() if not name.startswith("_")}
    for name in methods:
        assert inspect.signature(getattr(posix.Folder, name)) == inspect.signature(getattr(windows.Folder, name)), name


# ---- parts of the module for Windows that also run on other systems; tests/clients/test_windows_wheel.py runs it ----


def test_a_folder_by_its_path(tmp_path: Path) -> None:
    folder = windows.Folder.open_private(str(tmp_path / "a" / "b"), create=True)
    child = folder.open_child("kind", create=True)
    descriptor = child.create_file("x.part", 0o600)
    os.write(descriptor, b"content")
    os.close(descriptor)
    with pytest.raises(FileExistsError):
        child.create_file("x.part", 0o600)
    child.rename("x.part", "x")
    assert child.names() == ["x"] and child.status_of("x").st_size == 7
    os.close(child.open_private_file("x", os.O_RDONLY))
    child.touch("x")
    (tmp_path / "a" / "b" / "file").touch()
    with pytest.raises(NotADirectoryError):
        folder.open_child("file", create=True)
    with pytest.raises(FileNotFoundError):
        folder.open_child("none", create=False)
    with pytest.raises(NotADirectoryError):
        windows.Folder.open(str(tmp_path / "a" / "b" / "file"))
    with pytest.raises(PermissionError, match="expected a regular file"):
        folder.open_private_file("kind", os.O_RDONLY)
    child.remove("x")
    assert child.names() == []


def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "data").write_bytes(b"1")
    (tmp_path / "secret").write_bytes(b"2")
    with windows.find_beneath(tmp_path / "model", "data") as (path, opened):
        assert path == opened == os.path.realpath(tmp_path / "model" / "data")
    for name in ("../secret", "", "a\0b", str(tmp_path / "secret")):
        with (
            pytest.raises(ValueError, match="must be a file in the model's folder"),
            windows.find_beneath(tmp_path / "model", name),
        ):
            pass


def test_backslashes_of_a_command_remain() -> None:
    assert windows.split_command(r'"C:\Program Files\zig.exe" cc -target x') == [
        r"C:\Program Files\zig.exe",
        *("cc", "-target", "x"),
    ]
    with pytest.raises(ValueError, match="No closing quotation"):
        windows.split_command('"C:')


def test_the_folder_of_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALAPPDATA", "C:\\local")
    assert windows.cache_root() == "C:\\local"
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert posix.cache_root() == "/caches"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert posix.cache_root() == "/home/me/.cache"
    monkeypatch.setattr(posix, "IS_LINUX", False)
    assert posix.cache_root() == "/home/me/Library/Caches"


def test_a_file_is_found_without_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS."""
    monkeypatch.setattr(posix, "IS_LINUX", False)
    (tmp_path / "data").write_bytes(b"1")
    with posix.find_beneath(tmp_path, "data") as (path, opened):
        assert path == opened == os.path.realpath(tmp_path / "data")
    with pytest.raises(ValueError, match="must be a file"), posix.find_beneath(tmp_path, "../x"):
        pass


def test_macos_reports_the_features_of_the_table() -> None:
    """macos.c sets the bits of Linux for each feature of AArch64 in cpu_features.def.  No Mac has SVE."""
    text = (ROOT / "csrc" / "system" / "macos.c").read_text(encoding="utf-8")
    bits = {int(bit) for bit in re.findall(r'"hw\.optional\.arm\.FEAT_\w+", (\d+)', text)}
    first = {"HWCAP": 0, "HWCAP2": 32}
    rows = {row.name: first[row.word] + row.bit for row in CPU_FEATURES if row.word in first}
    assert bits == {bit for name, bit in rows.items() if name not in ("sve", "sve2")}
