"""Building and running: `build`, `load`, `Executable`, `VirtualMachine`, `register_func`.

Names are imported at first use, so that a program which only loads and runs an executable never imports the compiler.
"""

from __future__ import annotations

import importlib

_HOMES = {
    "build": "relvm.vm.build",
    "lower": "relvm.vm.build",
    "EXEC_MODES": "relvm.vm.build",
    "find_compiler": "relvm.vm.toolchain",
    "Executable": "relvm.vm.runtime",
    "Shape": "relvm.vm.runtime",
    "Tensor": "relvm.vm.runtime",
    "VirtualMachine": "relvm.vm.runtime",
    "load": "relvm.vm.runtime",
    "register_func": "relvm.vm.runtime",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
