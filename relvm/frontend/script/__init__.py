"""The script frontend: Python functions as programs, by the decorators `script` and `kernel`."""

from relvm.frontend.script.decorator import Script, kernel, module_of, script
from relvm.frontend.script.kernels import ScriptKernel
from relvm.frontend.script.names import call_kernel, grid, parallel, simd

__all__ = ["Script", "ScriptKernel", "call_kernel", "grid", "kernel", "module_of", "parallel", "script", "simd"]
