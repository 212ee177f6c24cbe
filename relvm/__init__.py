"""relvm: a compiler for tensor programs.  It compiles a functional IR to register bytecode or native code, which a
small C runtime runs."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relvm.frontend.script import call_kernel, grid, kernel, parallel, script, simd
    from relvm.limited_build import BuildLimits
    from relvm.magics import load_ipython_extension as load_ipython_extension
    from relvm.model import Model, load_model
    from relvm.runtime.thread_pool import ThreadPoolRunner

__all__ = [
    "BuildLimits",
    "Model",
    "ThreadPoolRunner",
    "call_kernel",
    "grid",
    "kernel",
    "load_model",
    "parallel",
    "script",
    "simd",
]
__version__ = "0.1.0"

if find_spec("relvm._native") is None:
    raise ImportError(
        f"relvm's C runtime is not built in {__path__[0]}. In the checkout, run: pip install -e . --no-build-isolation"
    )


# Imported at first use, so that a program that only loads an executable never imports the compiler.
_AT_FIRST_USE = {
    "BuildLimits": "relvm.limited_build",
    "ThreadPoolRunner": "relvm.runtime.thread_pool",
    "Model": "relvm.model",
    "load_model": "relvm.model",
    "load_ipython_extension": "relvm.magics",
} | dict.fromkeys(("call_kernel", "grid", "kernel", "parallel", "script", "simd"), "relvm.frontend.script")


def __getattr__(name: str) -> Any:
    if name not in _AT_FIRST_USE:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(importlib.import_module(_AT_FIRST_USE[name]), name)
