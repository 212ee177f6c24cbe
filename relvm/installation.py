"""The distributions of relvm.  `relvm-runtime` runs compiled models.  `relvm`, which requires it, adds the compiler.

Both install modules in the package `relvm` (release/split_wheel.py).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.machinery import PathFinder

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def has_compiler() -> bool:
    """Return whether the compiler is installed, and not only `relvm-runtime`."""
    return PathFinder.find_spec("build", [os.path.join(_PACKAGE, "compiler")]) is not None


def expect_installed(what: str) -> None:
    """Raise RelvmNotInstalledError if only `relvm-runtime` is installed.

    what: the part of the compiler that is needed, for the message.
    """
    if not has_compiler():
        from relvm.errors import RelvmNotInstalledError  # imported here, because almost no program needs it

        raise RelvmNotInstalledError(
            f"{what} is not installed: relvm-runtime only runs compiled models (.rvm);"
            " install the compiler: pip install relvm"
        )


class MissingModules:
    """An import hook that names the distribution of modules that are not installed.

    It is the last hook, so it is called only for names that no other hook finds.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Raise RelvmNotInstalledError for a module of relvm if only `relvm-runtime` is installed."""
        if name.startswith("relvm."):
            expect_installed(name)


def report_missing_modules() -> None:
    """Add the import hook `MissingModules`, if it has not been added yet."""
    if MissingModules not in sys.meta_path:
        sys.meta_path.append(MissingModules)


def record_row(path: str, content: bytes) -> bytes:
    """Return the row of a file in RECORD, the list of the files of an installed package: `path,sha256=digest,bytes`.

    Source: Python Packaging User Guide, Recording installed projects.
    """
    import base64  # imported here, because few programs write a RECORD, or run from a checkout without one
    import hashlib

    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(content)}".encode()


def record_file(files: Mapping[str, bytes], own: str) -> bytes:
    """Return the file RECORD of a wheel.

    files: the contents of the other files by path.
    own: the path of the file RECORD.
    """
    rows = [record_row(path, files[path]) for path in sorted(files)]
    return b"".join(row + b"\n" for row in (*rows, f"{own},,".encode()))
