"""The process in which `relvm.limited_build` builds a model."""

from __future__ import annotations

import json
import math
import os
import sys
import threading
from pathlib import Path
from typing import Any

from relvm.compiler.build_model import build_model
from relvm.errors import RelvmError
from relvm.frontend.read_model import read_model
from relvm.runtime.executable import Executable
from relvm.system.posix import limit_memory, limit_processor_time


def main(request: str, files: tuple[int, int]) -> None:
    """Build a model, and write the executable or the error to files.

    request: the options of the build as JSON.  The bytes of a model without a path are read from standard input.
    files: the descriptors of the files for the executable and for the answer: `null`, or the error as JSON.
    """
    result, answer = files
    outcome: dict[str, Any] | None
    threading.stack_size(1 << 20)  # stacks count as memory
    try:
        executable = _build(json.loads(request))
        with os.fdopen(result, "wb") as file:
            file.write(executable.to_buffer())
        outcome = None
    except Exception as error:
        limit_memory(None)  # for the report
        outcome = {"error": _public_name(type(error)), "message": str(error)}
        if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
            outcome["error"] = "MemoryError"
        if isinstance(error, OSError):
            outcome = {"error": "OSError", "message": error.strerror, "errno": error.errno, "filename": error.filename}
        elif not isinstance(error, RelvmError) and outcome["error"] != "MemoryError":
            sys.excepthook(type(error), error, error.__traceback__)  # a fault of relvm
    with os.fdopen(answer, "w", encoding="utf-8", errors="backslashreplace") as file:
        json.dump(outcome, file)
    os._exit(0)  # without waiting for a compilation in the background


def _build(request: dict[str, Any]) -> Executable:
    import relvm.compiler.build
    import relvm.frontend.onnx  # before the limit counts

    limit_memory(request["max_bytes"])
    if request["max_seconds"] is not None:
        # The process that started this one limits the elapsed time.  If that process is killed, this limit ends the
        # build, and each process of the C compiler.
        limit_processor_time(math.ceil(request["max_seconds"] * (os.cpu_count() or 1)) + 1)
    dims = {name: tuple(v) if isinstance(v, list) else v for name, v in (request["dims"] or {}).items()}
    mode, target, fused = request["exec_mode"], request["target"], request["fused"]
    weights, function = request["weights"], request["function"]
    model = Path(request["path"]) if "path" in request else sys.stdin.buffer.read()
    if request["replaces"] is not None:
        module = read_model(model, dims, weights, function)
        return relvm.compiler.build.compile_again(
            module, target, lambda part: None, bytes.fromhex(request["replaces"]), fused=fused
        )
    if request["portable"] or request["debug"]:
        flags = {name: request[name] for name in ("debug", "portable")}
        module = read_model(model, dims, weights, function)
        return relvm.compiler.build.build(module, mode, target, fused=fused, **flags)
    return build_model(model, dims, mode, target, weights=weights, function=function, fused=fused)


def _public_name(error: type[BaseException]) -> str:
    """Return the name of the class in relvm.errors that an internal class of errors derives from, or its own name."""
    return next((each.__name__ for each in error.__mro__ if each.__module__ == RelvmError.__module__), error.__name__)
