"""The distributions of relvm.  `relvm-runtime` runs compiled models.  `relvm`, which requires it, adds the compiler.

Both install modules in the package `relvm` (release/split_wheel.py).
"""

from __future__ import annotations

import os
import sys
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
