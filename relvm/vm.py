"""Building and running: `build`, `load`, `Executable`, `VirtualMachine`, `ThreadPoolRunner`, `register_func`.

The names of the compiler, and ExecBuilder, are imported at first use.  A program that only loads and runs an executable
therefore never imports the compiler.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from relvm.bytecode.program import Shape
from relvm.runtime.closure import Closure
from relvm.runtime.debug_hook import CodeLocation, MachineDebugger
from relvm.runtime.donated import Donated
from relvm.runtime.executable import Executable, Stats, load
from relvm.runtime.executor import DebugExecutor, Executor, MachineExecutor, RecordedCall
from relvm.runtime.instrument import SKIP, Opaque
from relvm.runtime.packed_func import get_func, register_c_func, register_func, register_library, unregister_func
from relvm.runtime.profiler import Profile, ProfileRow
from relvm.runtime.tensor import Tensor
from relvm.runtime.time_evaluator import Timing
from relvm.runtime.timeline import Timeline, TimelineCall
from relvm.runtime.virtual_machine import VirtualMachine

if TYPE_CHECKING:
    from relvm.bundle import bundle
    from relvm.compiler.adapt import adapt
    from relvm.compiler.build import build, lower
    from relvm.compiler.export_library import export_library
    from relvm.compiler.find_compiler import find_compiler
    from relvm.compiler.selective import export_selective
    from relvm.runtime.exec_builder import ExecBuilder
    from relvm.runtime.thread_pool import ThreadPoolRunner

_AT_FIRST_USE = {
    "ExecBuilder": "relvm.runtime.exec_builder",
    "ThreadPoolRunner": "relvm.runtime.thread_pool",
    "adapt": "relvm.compiler.adapt",
    "build": "relvm.compiler.build",
    "bundle": "relvm.bundle",
    "lower": "relvm.compiler.build",
    "export_library": "relvm.compiler.export_library",
    "export_selective": "relvm.compiler.selective",
    "find_compiler": "relvm.compiler.find_compiler",
}

__all__ = [
    "SKIP",
    "Closure",
    "CodeLocation",
    "DebugExecutor",
    "Donated",
    "ExecBuilder",
    "Executable",
    "Executor",
    "MachineDebugger",
    "MachineExecutor",
    "Opaque",
    "Profile",
    "ProfileRow",
    "RecordedCall",
    "Shape",
    "Stats",
    "Tensor",
    "ThreadPoolRunner",
    "Timeline",
    "TimelineCall",
    "Timing",
    "VirtualMachine",
    "adapt",
    "build",
    "bundle",
    "export_library",
    "export_selective",
    "find_compiler",
    "get_func",
    "load",
    "lower",
    "register_c_func",
    "register_func",
    "register_library",
    "unregister_func",
]


def __getattr__(name: str) -> Any:
    if name not in _AT_FIRST_USE:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(importlib.import_module(_AT_FIRST_USE[name]), name)


def __dir__() -> list[str]:
    """Return the names of the public interface, for completion and `help`."""
    return sorted(__all__)
