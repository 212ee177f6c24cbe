"""What runs where the batches are: a function of an executable that pickles, and the machines of a process.

Imports what a deployed program needs and no more, since a worker's start is waited for.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relvm.distributed.inputs import FunctionSignature
from relvm.errors import RelvmNameError, RelvmTypeError, expect_type, near_matches
from relvm.quoting import terminal
from relvm.runtime.virtual_machine import expect_options
from relvm.vm import Executable, Shape, Tensor, VirtualMachine

EXECUTABLES_KEPT = 4  # of a process, with their machines: those that were used last

_PLAIN = (bool, int, float, str, type(None), np.dtype, Shape)


class Runner:
    """A function of an executable as a callable that pickles: for Dask, Ray, multiprocessing and their like.

    It pickles as the executable's bytes and what is said here.  A process makes the executable runnable when it first
    calls it, and keeps it, with its machines, by the SHA-256 of the bytes: runners that are sent again find it there.
    Each thread that calls it at a time has a machine of its own.

    Results are NumPy arrays where the machine has tensors, in tuples and lists as the function gives them.

    Parameters
    ----------
    executable
        Where it was built with exec_mode="auto", its bytecode.
    function
        Which of its functions.
    trust_native
        Whether a process runs the executable's native code though it was not compiled there.  That is the word of
        whoever makes the runner, for each process that it reaches: say so where all of them are your own.
    functions
        The registered functions that it may call, as for `relvm.vm.load`.
    num_threads
        Of a machine's kernels: one, as there is a process for each processor, unless you say otherwise.
    max_bytes, max_steps, max_seconds
        Limits of each run, as those of `relvm.vm.VirtualMachine`.

    Attributes
    ----------
    content, digest
        The executable's bytes, and their SHA-256 in hexadecimal.
    signature
        The function's inputs and outputs.
    loading, options
        What is said of the executable, and of its machines.

    Raises
    ------
    RelvmTypeError
        `executable` is no Executable, `function` no name, or `functions` no list of names.
    RelvmNameError
        It has no such function, or not one that hosts can call.
    RelvmArgumentError
        `num_threads` or a limit is out of its range.

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

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """What the function gives for `arguments`, by position, and `named`, by parameter.

        Raises
        ------
        RelvmError
            What loading the executable, making a machine of it, or the run raises.
        RelvmTypeError
            A result that belongs to its machine: a function, a closure or an opaque value.
        """
        with machine_of(self) as machine:
            return _portable(self.function, machine[self.function](*arguments, **named))

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + len(self.content)  # so that Dask knows what sending it takes

    def __repr__(self) -> str:
        return f"<Runner of {terminal(self.function)} of the executable {self.digest[:12]}>"


@contextmanager
def machine_of(runner: Runner) -> Iterator[VirtualMachine]:
    """A machine of this process for a runner, which is nobody else's during the block.  Raises what making one does."""
    made = _made_of(runner)
    machine = made.take() or VirtualMachine(made.executable, **runner.options)
    try:
        yield machine
    finally:
        made.idle.append(machine)


def runnable(content: bytes, *, trust_native: bool, functions: tuple[str, ...] | None) -> Executable:
    """The executable in `content` in a form that this process can run: as `relvm.vm.adapt` makes it, which logs it.

    Raises
    ------
    RelvmUnsupportedError
        Its native code is not trusted here, or is for another processor, and there is nothing to take instead; it
        calls a function that it may not call.
    RelvmFormatError
        The bytes are damaged.
    """
    executable = Executable.from_bytes(content, trust_native=trust_native, functions=functions, elsewhere=True)
    if executable.unsupported_reason:
        from relvm.vm import adapt  # only now: the compiler comes with it

        executable = adapt(executable)
    return executable


@dataclass
class _Made:
    """An executable of this process, and its machines that nobody uses."""

    executable: Executable
    idle: list[VirtualMachine] = field(default_factory=list)

    def take(self) -> VirtualMachine | None:
        try:
            return self.idle.pop()
        except IndexError:
            return None


_made: OrderedDict[tuple, _Made] = OrderedDict()
_lock = threading.Lock()


def _made_of(runner: Runner) -> _Made:
    """That of a runner, made at the first call in this process; the one used longest ago goes."""
    key = (runner.digest, runner.loading, *runner.options.values())
    with _lock:
        made = _made.pop(key, None)
        if made is None:
            trust_native, functions = runner.loading
            made = _Made(runnable(runner.content, trust_native=trust_native, functions=functions))
        _made[key] = made
        if len(_made) > EXECUTABLES_KEPT:
            _made.popitem(last=False)
    return made


def _unlock() -> None:
    """A child of fork has no thread that would give the lock back."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)


def _expect_function(executable: Executable, name: str) -> None:
    expect_type("function", name, str, "a name")
    known = {n: e for n, e in executable.functions.items() if e.kind in ("bytecode", "native") and not e.private}
    if name not in known:
        has = ", ".join(known) or "none"
        raise RelvmNameError(f"the executable has no function {name}: there are {has}{near_matches(str(name), known)}")


def _portable(function: str, value: Any) -> Any:
    """A result without what belongs to a machine."""
    match value:
        case Tensor():
            return value.numpy()
        case Shape():
            return value
        case tuple() | list():
            return type(value)(_portable(function, item) for item in value)
    if not isinstance(value, _PLAIN):
        what = type(value).__name__
        raise RelvmTypeError(f"{function} gives a {what}, which belongs to its machine and cannot be sent elsewhere")
    return value
