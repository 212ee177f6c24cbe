"""`relvm config`: where the C runtime of this installation is, for C programs that embed it."""

from __future__ import annotations

import argparse
from pathlib import Path

from relvm import __version__, _native
from relvm.cli.arguments import Parser
from relvm.cli.common_arguments import add_json
from relvm.cli.output import put, put_json
from relvm.errors import RelvmToolchainError
from relvm.tables import csrc_directory

KEYS = ("version", "include_dir", "library", "cmake_dir", "pkg_config_dir", "cflags", "libs")


def add_arguments(parser: Parser) -> None:
    parser.example = "cc program.c $(relvm config --cflags --libs) -o program"
    parser.description = (
        "Print paths and options for C programs that embed the runtime. For the compiler: cc program.c $(relvm "
        "config --cflags --libs). For CMake: cmake -Drelvm_DIR=$(relvm config --cmake-dir) ...; the target is "
        "relvm::relvm. Without an option, everything is printed."
    )
    parser.add_argument("--include-dir", action="store_true", help="directory of relvm.h")
    parser.add_argument("--library", action="store_true", help="path of the static library")
    parser.add_argument("--cmake-dir", action="store_true", help="directory of relvmConfig.cmake")
    parser.add_argument("--pkg-config-dir", action="store_true", help="directory of relvm.pc, for PKG_CONFIG_PATH")
    parser.add_argument("--cflags", action="store_true", help="options for the compiler")
    parser.add_argument("--libs", action="store_true", help="options for the linker")
    parser.add_argument("--version", action="store_true", help="version of relvm")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print how to compile C code against this installation: its version, folders, library and compiler flags.

    Options such as --library select values, which are printed on one line without names.  Without such an option, each
    value is printed on a line with its name.  With --json, the selected values, or all, are printed as a JSON object.

    Raises
    ------
    RelvmToolchainError
        A selected value does not exist, because this installation contains no C library.
    """
    values = _config_values()
    chosen = [key for key in KEYS if getattr(options, key)]
    if missing := [key for key in chosen if values[key] is None]:
        raise RelvmToolchainError(
            f"--{missing[0].replace('_', '-')}: this installation of relvm contains no C library, because it was built "
            "without an archiver; install a wheel, or install ar and build relvm again"
        )
    if options.json:
        put_json({key: values[key] for key in chosen or KEYS})
    elif chosen:
        put(*(values[key] for key in chosen))
    else:
        for key in KEYS:
            put(f"{key.replace('_', '-')}: {values[key] or 'none'}")
    return 0


def _config_values() -> dict[str, str | None]:
    """Return the values that `relvm config` prints, by name.  A value is None if this installation does not have it."""
    package = Path(_native.__file__).resolve().parent
    include, archive, cmake = csrc_directory() / "include", package / "lib" / "librelvm.a", package / "cmake"
    library = str(archive) if archive.exists() else None
    return {
        "version": __version__,
        "include_dir": str(include),
        "library": library,
        "cmake_dir": str(cmake) if library and cmake.is_dir() else None,
        "pkg_config_dir": str(package / "lib" / "pkgconfig") if library else None,
        "cflags": f"-I{include} -I{include.parent / 'tables'}",
        "libs": f"{library} -lm -ldl -lpthread" if library else None,
    }
