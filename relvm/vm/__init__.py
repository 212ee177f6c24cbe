"""Building and running: `build`, `load`, `Executable`, `VirtualMachine`, `ThreadPoolRunner`, `register_func`.

The compiler's names, and what is for people who write bytecode, are imported at first use, so that a program which only
loads and runs an executable never imports them.
"""

from __future__ import annotations

import importlib
from typing import Any

from relvm.vm.runtime import (
    SKIP,
    Executable,
    Opaque,
    Profile,
    Shape,
    Tensor,
    Timing,
    VirtualMachine,
    load,
    register_c_func,
    register_func,
    register_library,
    unregister_func,
)

_AT_FIRST_USE = {
    "ExecBuilder": "relvm.vm.runtime.exec_builder",
    "ThreadPoolRunner": "relvm.vm.thread_pool",
    "adapt": "relvm.vm.adapting",
    "build": "relvm.vm.building",
    "lower": "relvm.vm.building",
    "export_library": "relvm.vm.exporting",
    "find_compiler": "relvm.vm.toolchain",
}

__all__ = [
    "SKIP",
    "ExecBuilder",
    "Executable",
    "Opaque",
    "Profile",
    "Shape",
    "Tensor",
    "ThreadPoolRunner",
    "Timing",
    "VirtualMachine",
    "adapt",
    "build",
    "export_library",
    "find_compiler",
    "load",
    "lower",
    "register_c_func",
    "register_func",
    "unregister_func",
]


def _reference_kernel(name: str) -> Any:
    from relvm.vm.reference import reference_kernel

    return reference_kernel(name)


register_library("reference.", _reference_kernel)


def __getattr__(name: str) -> Any:
    if name not in _AT_FIRST_USE:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(importlib.import_module(_AT_FIRST_USE[name]), name)
