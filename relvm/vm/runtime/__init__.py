"""What a deployed program needs: executables, machines and values.  Imports nothing of the compiler."""

from typing import Any

import relvm.vm.runtime.hooks  # noqa: F401  what the binding calls
from relvm.vm.runtime.closure import Closure
from relvm.vm.runtime.debugging import MachineDebugger, Place
from relvm.vm.runtime.executable import Executable, Stats, load
from relvm.vm.runtime.instrument import SKIP, Opaque
from relvm.vm.runtime.machine import VirtualMachine
from relvm.vm.runtime.packed import get_func, register_c_func, register_func, register_library, unregister_func
from relvm.vm.runtime.profile import Profile, ProfileRow
from relvm.vm.runtime.program import Shape
from relvm.vm.runtime.tensor import Tensor
from relvm.vm.runtime.timing import Timing

__all__ = [
    "SKIP",
    "Closure",
    "ExecBuilder",
    "Executable",
    "MachineDebugger",
    "Opaque",
    "Place",
    "Profile",
    "ProfileRow",
    "Shape",
    "Stats",
    "Tensor",
    "Timing",
    "VirtualMachine",
    "get_func",
    "load",
    "register_c_func",
    "register_func",
    "register_library",
    "unregister_func",
]


def __getattr__(name: str) -> Any:
    if name != "ExecBuilder":
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from relvm.vm.runtime.exec_builder import ExecBuilder  # a deployed program does without

    return ExecBuilder
