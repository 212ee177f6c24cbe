"""Building of model files, using the cache of earlier builds."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from relvm.compiler import build_cache
from relvm.compiler.upgrade import compile_in_background
from relvm.errors import RelvmArgumentError, RelvmFormatError, expect_type
from relvm.frontend.model_origin import onnx_origin
from relvm.frontend.onnx_bytes import model_digest
from relvm.runtime.executable import Executable
from relvm.runtime.file_io import read_file

Dims = Mapping[str, int | tuple[int, int] | None]


def build_file(
    path: Path,
    dims: Dims,
    exec_mode: str,
    target: str,
    *,
    weights: Any = None,
    function: str = "main",
    fused: bool = True,
    progress: Callable | None = None,
) -> Executable:
    """Return the executable of an .onnx or .relvm file, from the cache if possible.  Otherwise build it.

    weights, function: as for `read_model`.   See `build_onnx` for the other options.
    """
    expect_type("dims", dims, Mapping, "a mapping of names to sizes")
    if path.suffix == ".onnx":
        return build_onnx(path, dims, exec_mode, target, weights=weights, fused=fused, progress=progress)
    from relvm.compiler.build import build
    from relvm.frontend.load_model import read_model

    module = read_model(path, dims or None, weights, function)
    return build(module, exec_mode, target, fused=fused, progress=progress)


def build_onnx(
    model: Any,
    dims: Dims,
    exec_mode: str,
    target: str,
    *,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] | None = None,
    weights: Any = None,
    fused: bool = True,
    progress: Callable | None = None,
) -> Executable:
    """Return the executable of an ONNX model, from the cache if possible.  Otherwise build it.

    If the cache contains the executable of an earlier build with "auto", neither onnx nor the compiler is imported.

    Parameters
    ----------
    model, dims, inputs, outputs, weights
        As for `from_onnx`.
    exec_mode, target, fused, progress
        As for `relvm.vm.build`.
    """
    expect_type("dims", dims, Mapping, "a mapping of names to sizes")

    def built(exec_mode: str, progress: Callable | None, origin: str | None = None) -> Executable:
        from relvm.compiler.build import build
        from relvm.frontend.onnx import from_onnx
        from relvm.ir.fingerprint import origin_of

        module = from_onnx(model, dims=dims, inputs=inputs, outputs=outputs, weights=weights)
        if origin is not None and origin_of(module) != origin:
            raise RelvmFormatError(f"{source}: the file has changed since the model was loaded; load it again")
        return build(module, exec_mode, target, fused=fused, progress=progress)

    is_file = isinstance(model, str | os.PathLike | bytes) and weights is None
    if is_file and (exec_mode, target) == ("auto", "c") and all(isinstance(name, str) for name in dims):
        if isinstance(model, bytes):
            source, (digest, _) = "model", model_digest(model, None)
        else:
            source, (digest, _) = str(model), model_digest(read_file(model), Path(model).parent)
        if not digest:
            return built(exec_mode, progress)
        origin = onnx_origin(digest, dims, inputs, outputs)
        place = build_cache.auto_cache_path(origin, (("source", source),), target, None, fused=fused)
        executable = build_cache.cached_executable(place)
        if executable:
            if build_cache.has_bytecode(executable):
                compile_in_background(executable, lambda publish: built("compiled", None, origin), place)
            return executable
    return built(exec_mode, progress)


def expect_to_build(program: object, options: Mapping[str, object]) -> None:
    """Raise RelvmArgumentError if a build option is given for a program that is already compiled.

    program: a description of the program, for the message.   options: the values of the build options by name, in which
    None means that the option is not given.
    """
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise RelvmArgumentError(f"{', '.join(given)}: only for compiling a model, but {program} is already compiled")
