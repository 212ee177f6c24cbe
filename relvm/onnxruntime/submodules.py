"""Submodules of onnxruntime that relvm does not have, such as onnxruntime.quantization.

These submodules are Python code that uses the API of onnxruntime.  If onnxruntime is installed, they are imported from
there, and run on relvm.  The C library of onnxruntime is not loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_NAME = "onnxruntime"


class _SubmoduleFinder:
    """An entry of sys.meta_path that finds the submodules of an installed onnxruntime.

    It comes before the finder of the file system, which would find relvm's own files under the name onnxruntime.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        parent, _, _ = name.rpartition(".")
        if parent.partition(".")[0] != _NAME:
            return None
        if parent in (_NAME, f"{_NAME}.capi"):  # modules of relvm, whose folders do not contain the submodules
            path = [folder + parent[len(_NAME) :].replace(".", "/") for folder in _installed_folders()]
            if not path:
                raise ModuleNotFoundError(
                    f"No module named {name!r}: relvm replaces onnxruntime without its submodules; if onnxruntime is"
                    " installed too, they are imported from there and run on relvm",
                    name=name,
                )
        spec = PathFinder.find_spec(name, path, target)
        if spec is None:
            raise ModuleNotFoundError(
                f"No module named {name!r}: neither relvm nor the installed onnxruntime has it", name=name
            )
        return spec


def _installed_folders() -> list[str]:
    """Return the folders of the installed package onnxruntime, which is not imported, or []."""
    spec = PathFinder.find_spec(_NAME)
    return list(spec.submodule_search_locations or ()) if spec else []


def add_finder() -> None:
    """Make the submodules of an installed onnxruntime importable."""
    sys.meta_path.insert(0, _SubmoduleFinder)


def remove_finder(replacements: dict[str, ModuleType]) -> None:
    """Undo `add_finder`, and remove all modules of onnxruntime, including relvm's replacements, from sys.modules.

    Submodules from the installed onnxruntime are also removed from the attributes of relvm's modules.

    replacements: a dict from a name, such as "onnxruntime.capi", to the module of relvm that is imported under it.
    """
    if _SubmoduleFinder in sys.meta_path:
        sys.meta_path.remove(_SubmoduleFinder)
    for name in [name for name in sys.modules if name == _NAME or name.startswith(f"{_NAME}.")]:
        parent, _, own = name.rpartition(".")
        if parent in replacements and name not in replacements:
            replacements[parent].__dict__.pop(own, None)
        del sys.modules[name]
