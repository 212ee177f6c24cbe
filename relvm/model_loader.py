"""`relvm.load_model`: load a model file, and return a machine that runs it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from relvm.compiler import build_cache
from relvm.compiler.adapt import adapt
from relvm.compiler.upgrade import compile_in_background
from relvm.errors import RelvmArgumentError, expect_path, expect_type
from relvm.frontend.model_origin import content_digest, onnx_origin
from relvm.runtime.executable import Executable, load
from relvm.runtime.file_io import EXECUTABLE_SUFFIXES, read_file
from relvm.runtime.virtual_machine import VirtualMachine

__all__ = ["load_model"]

_Dims = Mapping[str, int | tuple[int, int] | None]


def load_model(
    path: str | os.PathLike,
    *,
    dims: _Dims | None = None,
    exec_mode: str | None = None,
    target: str | None = None,
    trust_native: bool = False,
    **options: Any,
) -> VirtualMachine:
    """Load a model file and return a machine that runs it.

    Parameters
    ----------
    path
        An .onnx model, a .relvm text, or an executable (.rvm, .so).
    dims
        The sizes of symbolic dimensions of an ONNX model, as for `from_onnx`.
    exec_mode
        As for `relvm.vm.build`.  The default is "auto": the machine needs no compiler and immediately runs kernel
        bytecode.  If there is a C compiler, native code is compiled in the background and cached for the next start.
    target
        As for `relvm.vm.build`.  The default is "c".
    trust_native
        Whether to run native code in an executable that this user did not build on this machine.
    **options
        The options of `relvm.vm.VirtualMachine`.

    Returns
    -------
    VirtualMachine
        The machine.  Call its functions by name: `machine["main"](x)`.

    Raises
    ------
    OSError
        The file cannot be read.
    RelvmFormatError
        The file has another suffix, or is damaged.
    RelvmArgumentError
        `dims`, `exec_mode` or `target` is invalid, or is given for an executable, which is already compiled.
    RelvmError
        The errors of `from_onnx`, `relvm.vm.build`, `relvm.vm.load` and `VirtualMachine`.

    Examples
    --------
    >>> import numpy as np
    >>> import relvm
    >>> machine = relvm.load_model("examples/c/model.relvm")
    >>> machine["main"](np.ones((1, 4), np.float32))
    Tensor([[0.125, 2.75 ]], shape=(1, 2), dtype=float32)
    """
    expect_path("path", path)
    path = Path(path)
    if path.suffix not in EXECUTABLE_SUFFIXES:
        executable = build_file(path, dims or {}, exec_mode or "auto", target or "c")
        return VirtualMachine(executable, **options)
    expect_to_build(path, {"dims": dims, "exec_mode": exec_mode, "target": target})
    return VirtualMachine(adapt(load(path, trust_native=trust_native, elsewhere=True)), **options)


def build_file(
    path: Path, dims: _Dims, exec_mode: str, target: str, *, fused: bool = True, progress: Callable | None = None
) -> Executable:
    """Build the executable of a model file, or take it from the cache.

    If the cache contains the executable of an earlier build with "auto", neither onnx nor the compiler is imported.
    """
    expect_type("dims", dims, Mapping, "a mapping of names to sizes")
    if path.suffix == ".onnx" and (exec_mode, target) == ("auto", "c") and all(isinstance(name, str) for name in dims):
        origin = onnx_origin(content_digest(read_file(path)), dims, ())
        attributes = (("source", str(path)),)
        place = build_cache.auto_place(origin, attributes, target, None, fused=fused)
        executable = build_cache.cached_executable(place)
        if executable:
            if build_cache.has_bytecode(executable):
                compile_in_background(
                    executable, lambda publish: _built(path, dims, "compiled", target, fused, None), place
                )
            return executable
    return _built(path, dims, exec_mode, target, fused, progress)


def _built(path: Path, dims: _Dims, exec_mode: str, target: str, fused: bool, progress: Callable | None) -> Executable:
    from relvm.compiler.build import build
    from relvm.frontend.load_model import read_model

    return build(read_model(path, dims or None), exec_mode, target, fused=fused, progress=progress)


def expect_to_build(program: object, options: Mapping[str, object]) -> None:
    """Raise RelvmArgumentError if any build option is given.  Called for a program that is already compiled.

    program: the description of the program in the message.   options: the options by name; None if not given.
    """
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise RelvmArgumentError(f"{', '.join(given)}: only for compiling a model, but {program} is already compiled")
