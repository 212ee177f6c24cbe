"""Runners: functions of an executable that can be pickled, and the virtual machines of a process that run them.

This module imports only what a deployed program needs, so that workers start quickly.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import Any

import numpy as np

from relvm.data_classes import dataclass
from relvm.distributed.inputs import FunctionSignature
from relvm.errors import RelvmNameError, RelvmTypeError, expect_type, near_matches
from relvm.quoting import terminal
from relvm.runtime.machine_limits import expect_options
from relvm.system import watch_forks
from relvm.vm import Executable, Shape, Tensor, VirtualMachine

EXECUTABLES_KEPT = 4  # maximum number of executables that a process keeps loaded, with their virtual machines

_PLAIN = (bool, int, float, str, type(None), np.dtype, Shape)


class Runner:
    """A function of an executable as a callable that can be pickled, for Dask, Ray, multiprocessing and similar
    libraries.

    A pickled Runner contains the bytes of the executable and the other parameters below.  A process that unpickles a
    Runner loads the executable at the first call.  The process then reuses the executable and its virtual machines for
    all runners with the same executable (by SHA-256) and the same options.  Threads that call a runner at the same time
    use separate virtual machines.

    Results are the same as those of the function, with NumPy arrays instead of tensors.

    Parameters
    ----------
    executable
        The executable.  If it was built with exec_mode="auto", the processes run its bytecode.
    function
        The name of a function of the executable.
    trust_native
        Whether processes may run native code of the executable that was not compiled on their machine.  By setting it,
        the creator of the runner vouches for the native code in every process that receives the runner.
    functions
        The names of the registered functions that the executable may call.  A name that ends with * stands for all
        names with that prefix.  With None, the executable may only call the kernels of target "numpy".
    num_threads
        The number of threads for kernels.  The default is one, because there is usually a process for each processor.
    max_bytes, max_steps, max_seconds
        Limits of each run: on memory in bytes, on steps, and on time in seconds.  0 means no limit.

    Attributes
    ----------
    content, digest
        The bytes of the executable, and their SHA-256 in hexadecimal.
    signature
        The inputs and outputs of the function.
    loading, options
        The options for loading the executable, and the options of its virtual machines.

    Raises
    ------
    RelvmTypeError
        `executable` is not an Executable, `function` is not a name, or `functions` is not a list of names.
    RelvmNameError
        The executable has no such function, or the function is private to the program.
    RelvmArgumentError
        `num_threads` or a limit is out of range.

    Examples
    --------
    >>> import pickle
    >>> import numpy as np
    >>> from relvm import vm
    >>> from relvm.distributed import Runner
    >>> from relvm.frontend.text import parse_module
    >>> executable = vm.build(parse_module("def main(x: f32[n]) -> f32[n] = add(x, x)"), target="numpy")
    >>> runner = pickle.loads(pickle.dumps(Runner(executable)))
    >>> runner(np.float32([1, 2]))
    array([2., 4.], dtype=float32)
    """

    def __init__(
        self,
        executable: Executable,
        function: str = "main",
        *,
        trust_native: bool = False,
        functions: Iterable[str] | None = None,
        num_threads: int = 1,
        max_bytes: int = 0,
        max_steps: int = 0,
        max_seconds: float = 0,
    ) -> None:
        expect_type("Runner", executable, Executable, "an Executable")
        if isinstance(functions, str | bytes) or not isinstance(functions, Iterable | None):
            raise RelvmTypeError(f"functions: expected a list of names, got {functions!r}")
        _expect_function(executable, function)
        self.content = executable.to_bytes()
        self.digest = hashlib.sha256(self.content).hexdigest()
        self.function = function
        self.loading = (trust_native, None if functions is None else tuple(functions))
        expect_options(num_threads, max_bytes, max_steps, max_seconds)
        limits = {"max_bytes": max_bytes, "max_steps": max_steps, "max_seconds": max_seconds}
        self.options: dict[str, Any] = {"num_threads": num_threads, **limits}
        self.signature = FunctionSignature.of(executable, function)

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        """Call the function with `arguments`, by position, and `named`, by parameter.

        Raises
        ------
        RelvmError
            Loading the executable, creating a virtual machine or the run failed.
        RelvmTypeError
            The result belongs to its virtual machine: a function, a closure or an opaque value.
        """
        with machine_of(self) as machine:
            return _to_portable(self.function, machine[self.function](*arguments, **named))

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + len(self.content)  # tells Dask the cost of sending it

    def __repr__(self) -> str:
        return f"<Runner of {terminal(self.function)} of the executable {self.digest[:12]}>"


@contextmanager
def machine_of(runner: Runner) -> Iterator[VirtualMachine]:
    """Context manager: yield a virtual machine of this process that nothing else uses during the block.

    The context manager raises the errors of loading the executable and of creating the virtual machine.

    runner: the runner that the machine is for.
    """
    loaded = _load_executable(runner)
    machine = loaded.take() or VirtualMachine(loaded.executable, **runner.options)
    try:
        yield machine
    finally:
        loaded.idle.append(machine)


def load_runnable(content: bytes, *, trust_native: bool, functions: tuple[str, ...] | None) -> Executable:
    """Load the executable in `content`.  If this process cannot run it, adapt it with `relvm.vm.adapt`.

    Raises
    ------
    RelvmUnsupportedError
        The native code is not trusted here, or is for another processor, and the executable cannot be adapted.  The
        error is also raised if the executable calls a function that is not in `functions`.
    RelvmFormatError
        The bytes are damaged.
    """
    executable = Executable.from_bytes(content, trust_native=trust_native, functions=functions, elsewhere=True)
    if executable.unsupported_reason:
        from relvm.vm import adapt  # imported only here, because it imports the compiler

        executable = adapt(executable)
    return executable


@dataclass
class _LoadedExecutable:
    """An executable that this process has loaded, and its idle virtual machines."""

    executable: Executable
    idle: list[VirtualMachine] = field(default_factory=list)

    def take(self) -> VirtualMachine | None:
        try:
            return self.idle.pop()
        except IndexError:
            return None


_loaded: OrderedDict[tuple, _LoadedExecutable] = OrderedDict()
_lock = threading.Lock()


def _load_executable(runner: Runner) -> _LoadedExecutable:
    """Return the executable of a runner.  The first call in a process loads it.

    If too many executables are loaded, the least recently used one is dropped.
    """
    key = (runner.digest, runner.loading, *runner.options.values())
    with _lock:
        loaded = _loaded.pop(key, None)
        if loaded is None:
            trust_native, functions = runner.loading
            loaded = _LoadedExecutable(load_runnable(runner.content, trust_native=trust_native, functions=functions))
        _loaded[key] = loaded
        if len(_loaded) > EXECUTABLES_KEPT:
            _loaded.popitem(last=False)
    return loaded


def _replace_lock() -> None:
    """Replace the lock in a forked child, because the thread that holds the lock does not exist there."""
    global _lock
    _lock = threading.Lock()


watch_forks(in_child=_replace_lock)


def _expect_function(executable: Executable, name: str) -> None:
    expect_type("function", name, str, "a function name")
    known = {n: e for n, e in executable.functions.items() if e.kind in ("bytecode", "native") and not e.private}
    if name not in known:
        has = ", ".join(known) or "none"
        raise RelvmNameError(
            f"the executable has no function {name}; its functions are {has}{near_matches(str(name), known)}"
        )


def _to_portable(function: str, value: Any) -> Any:
    """Convert `value`, a result of `function`, so that it does not refer to a virtual machine: tensors become NumPy
    arrays.

    Raise RelvmTypeError if a part of the result cannot be converted.
    """
    match value:
        case Tensor():
            return value.numpy()
        case Shape():
            return value
        case tuple() | list():
            return type(value)(_to_portable(function, item) for item in value)
    if not isinstance(value, _PLAIN):
        what = type(value).__name__
        raise RelvmTypeError(
            f"{function} returned a {what}, which belongs to its machine and cannot be sent to another process"
        )
    return value
