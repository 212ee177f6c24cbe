"""relvm: a functional IR for tensor programs, compiled to register bytecode or to native code, run by a small C
runtime."""

from __future__ import annotations

import importlib

__version__ = "0.1.0"


# Imported at first use: a program that only loads an executable never imports the compiler.
_AT_FIRST_USE = {"ThreadPoolRunner": "relvm.vm.thread_pool", "script": "relvm.frontend.script"}


def __getattr__(name: str):
    if name not in _AT_FIRST_USE:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(importlib.import_module(_AT_FIRST_USE[name]), name)
