"""Building of models, using the cache of earlier builds."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from relvm.compiler import build_cache
from relvm.compiler.garbage_collection import no_garbage_collection
from relvm.compiler.upgrade import compile_in_background
from relvm.errors import RelvmArgumentError, RelvmFormatError, RelvmTypeError, expect_type
from relvm.frontend.model_cache_key import onnx_cache_key
from relvm.frontend.onnx_bytes import is_onnx, read_source
from relvm.runtime.background_compile import Publish
from relvm.runtime.executable import Executable

if TYPE_CHECKING:
    from relvm.ir.expr import Module

Dims = Mapping[str, int | tuple[int, int] | None]


def build_model(
    model: Any,
    dims: Dims,
    exec_mode: str,
    target: str,
    *,
    weights: Any = None,
    function: str = "main",
    fused: bool = True,
    progress: Callable | None = None,
) -> Executable:
    """Return the executable of a model, from the cache if possible.  Otherwise build it.

    model: a file or a model in memory, as for `read_model`.
    dims: the sizes of symbolic dimensions of an ONNX model or a .pt2 file, by name: an integer, a pair (minimum,
    maximum), or None.
    exec_mode, target, fused, progress: the options of `relvm.vm.build`, which compiles the model.
    weights: a mapping from names to arrays, or the path of a .safetensors file.
    function: the function in a .relvm or .mlir file whose parameters the weights replace.
    """
    if is_onnx(model):
        return build_onnx(model, dims, exec_mode, target, weights=weights, fused=fused, progress=progress)
    from relvm.compiler.build import build
    from relvm.frontend.read_model import read_model

    expect_type("dims", dims, Mapping, "a mapping of names to sizes")
    module = read_model(model, dims, weights, function)
    return build(module, exec_mode, target, fused=fused, progress=progress)


def build_onnx(
    model: Any,
    dims: Dims,
    exec_mode: str,
    target: str,
    *,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] | None = None,
    ranks: Mapping[str, int] = MappingProxyType({}),
    weights: Any = None,
    fused: bool = True,
    progress: Callable | None = None,
) -> Executable:
    """Return the executable of an ONNX model, from the cache if possible.  Otherwise build it.

    The cache contains executables that were built with exec_mode="auto", target="c" and without `weights`.  An
    executable from the cache is loaded without importing onnx or the compiler.

    Parameters
    ----------
    model, dims, inputs, outputs, ranks, weights
        The model and the options of `relvm.frontend.onnx.from_onnx`, which imports it.
    exec_mode, target, fused, progress
        The options of `relvm.vm.build`, which compiles it.
    """
    expect_type("dims", dims, Mapping, "a mapping of names to sizes")

    def imported(model: Any) -> Module:
        from relvm.frontend.onnx import from_onnx

        return from_onnx(model, dims=dims, inputs=inputs, outputs=outputs, ranks=ranks, weights=weights)

    def built(module: Module, exec_mode: str, progress: Callable | None) -> Executable:
        from relvm.compiler.build import build

        return build(module, exec_mode, target, fused=fused, progress=progress)

    def compiled(publish: Publish[Executable], digest: bytes) -> Executable:
        from relvm.compiler.build import compile_again
        from relvm.ir.cache_key import cache_key_of

        module = imported(model)
        if cache_key_of(module) != module_key:
            raise RelvmFormatError(f"{place}: the file has changed since the model was loaded; load the model again")
        return compile_again(module, target, publish, digest, fused=fused)

    is_cached = (exec_mode, target) == ("auto", "c") and all(isinstance(name, str) for name in dims)
    if not is_cached or weights is not None or not isinstance(model, str | os.PathLike | bytes):
        with no_garbage_collection():
            return built(imported(model), exec_mode, progress)
    source = read_source(model)
    place = source.place
    if source.digest:
        module_key = onnx_cache_key(source.digest, dims, inputs, outputs, ranks)
        entry = build_cache.find_auto_entry(module_key, (("source", place),), target, None, fused=fused)
        if executable := build_cache.cached_executable(entry):
            compile_in_background(executable, compiled, entry)
            return executable
    with no_garbage_collection():  # it would also take a sixth of the time to import the compiler
        module = imported(source)
        del source  # the build does not need the bytes of the file
        return built(module, exec_mode, progress)


def build_program(
    program: Any, dims: Dims, exec_mode: str, target: str, *, weights: Any, function: str
) -> tuple[Executable, Module]:
    """Build a module, or a function that is decorated by `script`.  Return the executable, and the module.

    dims: must be empty, because a program states its sizes itself.   The other parameters are those of `build_model`.

    Raises
    ------
    RelvmTypeError
        `program` is not a program.
    RelvmArgumentError
        `dims` is not empty.
    """
    from relvm.compiler.build import build
    from relvm.frontend.weights import bind_weights
    from relvm.ir.expr import Module

    module = getattr(program, "module", program)
    if not isinstance(module, Module):
        expected = "a path, the bytes of a model file, an onnx.ModelProto, a function with @script, or a module"
        raise RelvmTypeError(f"model: expected {expected}, got {type(program).__name__}")
    if dims:
        raise RelvmArgumentError(
            f"dims: {', '.join(dims)}: only an ONNX model and a .pt2 file accept dims; edit the program instead"
        )
    if weights is not None:
        module = bind_weights(module, weights, function=function)
    return build(module, exec_mode, target), module


def expect_to_build(program: object, options: Mapping[str, object]) -> None:
    """Raise RelvmArgumentError if a build option is given for a program that is already compiled.

    program: a description of the program, for the message.
    options: the values of the build options by name, in which None means that the option is not given.
    """
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise RelvmArgumentError(f"{', '.join(given)}: only for compiling a model, but {program} is already compiled")
