"""relvm: a language for tensor programs, with a compiler and a virtual machine.

Run a model, which is an .onnx, .pt2, .mlir or .relvm file or a built executable (.rvm), on NumPy arrays:

>>> model = relvm.load_model("model.onnx")                      # doctest: +SKIP
>>> y = model(x)                                                # doctest: +SKIP

load_model, Model
    A model that is built, cached and run, as above.
script, kernel
    Decorators for programs and kernels that are written as Python functions.
language
    The operators and types that scripts import for type checkers and editors.
vm
    The compiler and the virtual machine: `vm.build`, `vm.VirtualMachine`, `vm.load`.
quantize
    Quantization of ONNX models to 8 and 4 bits.
onnxruntime
    The Python API of onnxruntime, on relvm.
jax
    JAX functions that relvm compiles and runs: `relvm.jax.jit`.
torch
    The backend of torch.compile: `relvm.torch.backend`.
explore
    Inspection of each stage of a build, comparison of values, a debugger and pictures.
aot
    Export of a program as C sources with static memory.
distributed
    Runs of many batches on several processes or machines.
BuildLimits
    Limits on the time and memory for the build of a model that you do not trust.
errors
    The exceptions.  All of them are subclasses of `errors.RelvmError`.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relvm import aot, distributed, errors, explore, jax, language, onnxruntime, torch, vm
    from relvm.frontend.script import call_kernel, grid, kernel, parallel, script, simd
    from relvm.limited_build import BuildLimits
    from relvm.magics import load_ipython_extension as load_ipython_extension
    from relvm.model import Model, load_model
    from relvm.quantization import quantize
    from relvm.runtime.thread_pool import ThreadPoolRunner

__all__ = [
    "BuildLimits",
    "Model",
    "ThreadPoolRunner",
    "aot",
    "call_kernel",
    "distributed",
    "errors",
    "explore",
    "grid",
    "jax",
    "kernel",
    "language",
    "load_model",
    "onnxruntime",
    "parallel",
    "quantize",
    "script",
    "simd",
    "torch",
    "vm",
]
__version__ = "0.1.0"


def _use_installed_package() -> None:
    """Load the installed package in place of this folder, which holds the sources without the compiled C runtime.

    Python finds this folder first if it is started in a checkout.  Raise ImportError if no package is installed.
    """
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    others = [folder for folder in sys.path if os.path.realpath(folder) != os.path.realpath(own)]
    installed = PathFinder.find_spec(__name__, others)
    if installed is None or installed.loader is None:
        raise ImportError(f"relvm is not installed; {own} only contains its sources. Run: pip install {own}")
    module = module_from_spec(installed)
    sys.modules[__name__] = module
    installed.loader.exec_module(module)


if find_spec("relvm._native") is None:
    _use_installed_package()

from relvm.installation import report_missing_modules  # noqa: E402  # of the installed package

report_missing_modules()


# Imported at first use, so that a program that only loads an executable never imports the compiler.
_SUBPACKAGES = ("aot", "distributed", "errors", "explore", "jax", "language", "onnxruntime", "torch", "vm")
_AT_FIRST_USE = {
    "BuildLimits": "relvm.limited_build",
    "ThreadPoolRunner": "relvm.runtime.thread_pool",
    "Model": "relvm.model",
    "load_model": "relvm.model",
    "quantize": "relvm.quantization",
    "load_ipython_extension": "relvm.magics",
} | dict.fromkeys(("call_kernel", "grid", "kernel", "parallel", "script", "simd"), "relvm.frontend.script")


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return importlib.import_module(f"relvm.{name}")
    if name not in _AT_FIRST_USE:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(importlib.import_module(_AT_FIRST_USE[name]), name)


def __dir__() -> list[str]:
    """Return the names of the public interface, for completion and `help`."""
    return sorted([*__all__, "__version__"])
