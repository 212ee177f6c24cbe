"""Builds with limits on time and memory: a model is read, imported and compiled in a process of its own.

The operating system enforces the limits, so they hold for every part of a build, whatever the model contains.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

import relvm.errors
from relvm.data_classes import dataclass
from relvm.errors import (
    RelvmArgumentError,
    RelvmError,
    RelvmMemoryError,
    RelvmTimeoutError,
    RelvmTypeError,
    RelvmUnsupportedError,
    expect_type,
)
from relvm.runtime.child_processes import child_process, temporary_environment, temporary_folder
from relvm.runtime.executable import Executable
from relvm.system import can_limit_processes, name_of_end

_WORKER = "relvm.limited_build_worker"
_LEAST_BYTES = 1 << 20


@dataclass(frozen=True)
class BuildLimits:
    """Limits on the build of a model that is not trusted.

    Attributes
    ----------
    max_seconds
        The maximum time in seconds for reading, importing and compiling the model, including the start of the process
        that builds it (about half a second), or None for no limit.
    max_bytes
        The maximum number of bytes of memory that the build allocates, or None for no limit.  The limit holds for the
        process that builds the model, and for each process of the C compiler.

    Raises
    ------
    RelvmTypeError
        `max_seconds` is not a number, or `max_bytes` is not an integer.
    RelvmArgumentError
        A limit is out of range: `max_seconds` must be above 0, and `max_bytes` above 1 MiB.
    """

    max_seconds: float | None = None
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        for name, value, kind, least in (
            ("max_seconds", self.max_seconds, int | float, 0),
            ("max_bytes", self.max_bytes, int, _LEAST_BYTES),
        ):
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, kind):
                kinds = "an integer" if kind is int else "a number"
                raise RelvmTypeError(f"BuildLimits: {name}: expected {kinds}, got {value!r}")
            if not least < value < 1 << 62:
                raise RelvmArgumentError(f"BuildLimits: {name}: expected a number above {least}, got {value!r}")


def build_limited(
    model: str | os.PathLike[str] | bytes,
    limits: BuildLimits,
    *,
    dims: Mapping[str, int | tuple[int, int] | None] | None = None,
    weights: str | os.PathLike[str] | None = None,
    function: str = "main",
    exec_mode: str = "bytecode",
    target: str = "c",
    fused: bool = True,
    debug: bool = False,
    portable: bool = False,
    replaces: bytes | None = None,
) -> Executable:
    """Build a model in another process.  If the build exceeds a limit, end it and raise an error.

    Parameters
    ----------
    model
        A file, or the bytes of a model file, as for `relvm.load_model`.
    limits
        The limits.
    dims, weights, function, exec_mode, target, fused
        The options of `relvm.compiler.build_model.build_model`, apart from arrays as weights.
    debug, portable
        Whether the executable is for a debugger, and whether it also contains the program for target "bytecode", as for
        `relvm.vm.build`.
    replaces
        The digest of an executable that an earlier call with exec_mode="auto" returned.  The result then contains the
        native code that replaces the bytecode of that executable.

    Raises
    ------
    RelvmTimeoutError
        The build takes longer than `max_seconds`.
    RelvmMemoryError
        The build needs more memory than `max_bytes`, or a signal ended the process while `max_bytes` was in force.
    RelvmUnsupportedError
        This is not Linux.
    OSError, RelvmError
        The errors of `relvm.load_model`.
    """
    expect_type("limits", limits, BuildLimits, "a BuildLimits")
    if not can_limit_processes:
        raise RelvmUnsupportedError("limits: builds with limits need Linux")
    if weights is not None and not isinstance(weights, str | os.PathLike):
        raise RelvmTypeError("weights: with limits, expected the path of a .safetensors file")
    request = {
        "max_bytes": limits.max_bytes,
        "max_seconds": limits.max_seconds,
        "dims": None if dims is None else {name: list(v) if isinstance(v, tuple) else v for name, v in dims.items()},
        "weights": None if weights is None else os.fspath(weights),
        "function": function,
        "exec_mode": exec_mode,
        "target": target,
        "fused": fused,
        "debug": debug,
        "portable": portable,
        "replaces": None if replaces is None else replaces.hex(),
    }
    content = model if isinstance(model, bytes) else b""
    if not isinstance(model, bytes):
        request["path"] = os.fspath(model)
    result, answer = os.memfd_create("relvm build"), os.memfd_create("relvm answer")
    try:
        status = _run_worker(json.dumps(request), content, (result, answer), limits.max_seconds)
        if status != 0:
            _raise_end(status, limits)
        with os.fdopen(os.dup(answer), "rb") as file:
            file.seek(0)
            outcome = json.loads(file.read())
        if outcome:
            _raise_error(outcome, limits)
        return Executable.from_bytes(_content(result), trust_native=True, functions=["*"], elsewhere=True)
    finally:
        os.close(result)
        os.close(answer)


def _content(file: int) -> bytes:
    with os.fdopen(os.dup(file), "rb") as opened:
        opened.seek(0)
        return opened.read()


def _run_worker(request: str, content: bytes, files: tuple[int, int], max_seconds: float | None) -> int:
    """Run the worker process, and return its exit status.   files: the descriptors for the result and the answer."""
    setup = f"import sys; sys.path[:] = {sys.path!r}; from {_WORKER} import main; main({request!r}, {files!r})"
    quiet = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # each thread of a library needs memory
    # A process that is killed does not remove its temporary files.
    with temporary_folder() as folder:
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "pass_fds": files}
        environment = temporary_environment(folder) | quiet
        with child_process([sys.executable, "-c", setup], env=environment, **options) as process:
            try:
                process.communicate(content, timeout=max_seconds)
            except subprocess.TimeoutExpired:
                message = f"the build exceeded its limit of {max_seconds:g} seconds (max_seconds)"
                raise RelvmTimeoutError(message) from None
    return process.returncode


def _raise_end(status: int, limits: BuildLimits) -> NoReturn:
    """Raise the error of a process that ended without an answer."""
    if status < 0 and limits.max_bytes is not None:
        raise RelvmMemoryError(_memory_message(limits))
    raise RelvmError(f"the process that builds the model ended {name_of_end(status)}")


def _memory_message(limits: BuildLimits) -> str:
    return f"the build exceeded its limit of {limits.max_bytes} bytes (max_bytes)"


def _raise_error(outcome: dict[str, Any], limits: BuildLimits) -> NoReturn:
    """Raise the error that the worker reports."""
    name, message = str(outcome["error"]), str(outcome["message"])
    if name == "OSError":
        raise OSError(outcome["errno"], message, outcome["filename"])
    if name in ("MemoryError", "RelvmMemoryError") and limits.max_bytes is not None:
        raise RelvmMemoryError(_memory_message(limits))
    error = getattr(relvm.errors, name, None)
    if isinstance(error, type) and issubclass(error, RelvmError):
        raise error(message)
    raise RelvmError(f"the build failed: {name}: {message}")
