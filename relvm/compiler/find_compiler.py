"""The search for a C compiler.

The environment variable RELVM_CC is the command of the compiler, or `none` to use no compiler.  If it is not set, CC is
the command.  If neither is set, the compiler is the first of gcc, clang and zig cc that is installed.  zig cc is also
found as the Python package ziglang.
"""

from __future__ import annotations

import functools
import os
import sys

from relvm.data_classes import value_record
from relvm.errors import RelvmToolchainError
from relvm.system import split_command


@value_record
class Compiler:
    """A C compiler.

    command: the words of the command that runs it.   version: the first line that `--version` prints.
    """

    command: tuple[str, ...]
    version: str

    @property
    def is_zig(self) -> bool:
        """Whether the compiler is zig cc, as a program or as the Python package ziglang, with or without options."""
        program, found, _ = _partition(self.command, "cc")
        return found and any("zig" in os.path.basename(word) for word in program)

    @property
    def is_clang(self) -> bool:
        """Whether the compiler is clang, which zig cc is, too."""
        return self.is_zig or "clang" in self.version

    def tool(self, name: str) -> Compiler:
        """Return another tool of zig, such as its archiver `ar`, without the options of the compiler."""
        return Compiler((*_partition(self.command, "cc")[0], name), self.version)


def _partition(words: tuple[str, ...], separator: str) -> tuple[tuple[str, ...], bool, tuple[str, ...]]:
    """Partition a command, like str.partition."""
    if separator not in words:
        return words, False, ()
    place = words.index(separator)
    return words[:place], True, words[place + 1 :]


@functools.lru_cache(maxsize=8)
def _find(setting: str | None, cc: str | None, path: str | None) -> Compiler | None:
    if setting == "none":
        return None
    chosen, variable = (setting, "RELVM_CC") if setting else (cc, "CC")
    try:
        words = tuple(split_command(chosen or ""))
    except ValueError as error:
        raise RelvmToolchainError(f"{variable}: {chosen!r} is not a valid command: {error}") from None
    candidates = [words] if words else [("gcc",), ("clang",), ("zig", "cc"), *_packages()]
    compiler = _find_first(tuple(candidates), path)
    if compiler and compiler.version.startswith("tcc "):
        raise RelvmToolchainError(
            f"{variable}: tcc is not supported, because it has neither vectors nor fused multiply-add; use gcc,"
            ' clang or zig cc, or target="bytecode", which needs no compiler'
        )
    if words and compiler is None:
        raise RelvmToolchainError(f"{variable}: the compiler {chosen!r} does not exist or does not run")
    return compiler


@functools.lru_cache(maxsize=8)
def _find_first(commands: tuple[tuple[str, ...], ...], path: str | None) -> Compiler | None:
    """Return the first of the compilers that is installed and runs, or None."""
    import shutil  # a start from the cache needs neither module
    import subprocess

    for command in commands:
        if not shutil.which(command[0], path=path):
            continue
        shown = subprocess.run(
            [*command, "--version"], capture_output=True, encoding="utf-8", errors="replace", stdin=subprocess.DEVNULL
        )
        version = (shown.stdout or shown.stderr).partition("\n")[0]
        if shown.returncode == 0 or version.startswith("tcc "):
            return Compiler(command, version)
    return None


def expect_zig() -> Compiler:
    """Return zig cc, which can compile for WebAssembly.

    Raises
    ------
    RelvmToolchainError
        zig cc is not installed, or RELVM_CC or CC names a compiler that does not run.
    """
    compiler = find_compiler()
    if compiler is not None and compiler.is_zig:
        return compiler
    compiler = _find_first((("zig", "cc"), *_packages()), os.environ.get("PATH"))
    if compiler is None:
        raise RelvmToolchainError("WebAssembly needs the C compiler zig cc: pip install ziglang")
    return compiler


def _packages() -> list[tuple[str, ...]]:
    """Return the commands of C compilers that are installed as Python packages."""
    import importlib.util

    return [(sys.executable, "-m", "ziglang", "cc")] if importlib.util.find_spec("ziglang") else []


def find_compiler() -> Compiler | None:
    """Return the C compiler, or None if no compiler is found.

    Raises
    ------
    RelvmToolchainError
        RELVM_CC or CC names a compiler that does not run.
    """
    return _find(os.environ.get("RELVM_CC"), os.environ.get("CC"), os.environ.get("PATH"))


def expect_compiler(otherwise: str = "") -> Compiler:
    """Return the C compiler.  Raise RelvmToolchainError if there is none.

    otherwise: the end of the error message, which says what to do instead.
    """
    compiler = find_compiler()
    if compiler is None:
        known = "install gcc, clang or zig cc (pip install ziglang), or set RELVM_CC or CC"
        raise RelvmToolchainError(f"no C compiler found ({known}){otherwise}")
    return compiler
