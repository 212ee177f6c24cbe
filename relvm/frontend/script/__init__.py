"""The script frontend: Python functions as programs, by the decorators `script` and `kernel`."""

from relvm.frontend.script.decorator import Script, kernel, module_of, script
from relvm.frontend.script.kernels import ScriptKernel
from relvm.frontend.script.names import call_kernel, const, grid, match_cast, packed, parallel, partial, shape, simd

__all__ = [
    "Script",
    "ScriptKernel",
    "call_kernel",
    "const",
    "grid",
    "kernel",
    "match_cast",
    "module_of",
    "packed",
    "parallel",
    "partial",
    "script",
    "shape",
    "simd",
]
