"""Reading of models."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relvm.errors import RelvmArgumentError, RelvmFormatError, missing_file
from relvm.frontend.onnx_bytes import is_onnx
from relvm.frontend.stablehlo_file import is_stablehlo
from relvm.frontend.torch_file import is_exported_program
from relvm.frontend.weights import Weights, bind_weights
from relvm.ir.expr import Module
from relvm.runtime.file_io import read_text


def read_model(
    model: Any,
    dims: Mapping[str, int | tuple[int, int] | None] | None = None,
    weights: Weights | str | os.PathLike[str] | None = None,
    function: str = "main",
) -> Module:
    """Read the module in an .onnx, .relvm, .mlir or .pt2 file, or in a model in memory.

    Parameters
    ----------
    model
        The path of the file; the bytes of an .onnx file, of a portable artifact of StableHLO or of a .pt2 file; or an
        onnx.ModelProto.  A file that contains a portable artifact can have any suffix.
    dims
        Sizes of symbolic dimensions of an ONNX model or a .pt2 file, as for `from_onnx` and `from_pt2`.
    weights
        A mapping from names to arrays, or the path of a .safetensors file.  The arrays replace initializers and inputs
        of an ONNX model, as for `from_onnx`; parameters, buffers and constants of a .pt2 file, as for `from_pt2`; or
        parameters of a function in another file, as for `bind_weights`.
    function
        The function whose parameters the weights replace, in a .relvm or .mlir file.

    Raises
    ------
    OSError
        The file cannot be read.
    RelvmFormatError
        The suffix is not .onnx, .relvm, .mlir or .pt2, or the file is not a regular file, not valid text or damaged.
    RelvmArgumentError
        `dims` is given for a .relvm or .mlir file.
    RelvmError
        The errors of `from_onnx`, `from_stablehlo`, `from_pt2` and `bind_weights`.
    """
    if is_onnx(model):  # import only the reader of this kind of model
        from relvm.frontend.onnx import from_onnx

        return from_onnx(model, dims=dims, weights=weights)
    if is_exported_program(model):
        from relvm.frontend.torch import from_pt2

        return from_pt2(model, dims=dims, weights=weights)
    if is_stablehlo(model):
        from relvm.frontend.stablehlo import from_stablehlo

        if dims:
            raise RelvmArgumentError(
                f"dims: {', '.join(dims)}: only an ONNX model and a .pt2 file accept dims; a StableHLO program gets its"
                " unknown sizes from its inputs"
            )
        module = from_stablehlo(model)
        return module if weights is None else bind_weights(module, weights, function=function)
    path = Path(model)
    if path.suffix == ".relvm":
        from relvm.frontend.text.parser import parse_module

        if dims:
            raise RelvmArgumentError(
                f"dims: {', '.join(dims)}: only an ONNX model and a .pt2 file accept dims; edit the sizes in {path}"
                " instead"
            )
        module = parse_module(read_text(path), str(path))
        return module if weights is None else bind_weights(module, weights, function=function)
    if not path.exists():
        raise missing_file(path)
    raise RelvmFormatError(
        f"{path}: expected a model (.onnx, .relvm, .mlir or .pt2), got a file with the suffix {path.suffix or '(none)'}"
    )
