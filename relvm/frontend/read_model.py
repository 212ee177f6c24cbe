"""Reading of models."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relvm.errors import RelvmArgumentError, RelvmFormatError, missing_file
from relvm.frontend.onnx_bytes import is_onnx
from relvm.frontend.weights import Weights, bind_weights
from relvm.ir.expr import Module
from relvm.runtime.file_io import read_text


def read_model(
    model: Any,
    dims: Mapping[str, int | tuple[int, int] | None] | None = None,
    weights: Weights | str | os.PathLike[str] | None = None,
    function: str = "main",
) -> Module:
    """Read the module in an .onnx or .relvm file, or in an ONNX model in memory.

    Parameters
    ----------
    model
        The path of the file, the bytes of an .onnx file, or an onnx.ModelProto.
    dims
        Sizes of an ONNX model's symbolic dimensions, as for `from_onnx`.
    weights
        A mapping from names to arrays, or the path of a .safetensors file.  The arrays replace initializers and inputs
        of an ONNX model, as for `from_onnx`, or parameters of a function in a .relvm file, as for `bind_weights`.
    function
        The function in a .relvm file whose parameters the weights replace.

    Raises
    ------
    OSError
        The file cannot be read.
    RelvmFormatError
        The suffix is neither .onnx nor .relvm, or the file is not a regular file or not valid text.
    RelvmArgumentError
        `dims` is given for a .relvm file, which states its sizes itself.
    RelvmError
        The errors of `from_onnx` and `bind_weights`.
    """
    if is_onnx(model):  # import only the reader of this kind of model
        from relvm.frontend.onnx import from_onnx

        return from_onnx(model, dims=dims, weights=weights)
    path = Path(model)
    if path.suffix == ".relvm":
        from relvm.frontend.text.parser import parse_module

        if dims:
            raise RelvmArgumentError(
                f"dims: {', '.join(dims)}: only an ONNX model accepts dims; edit the sizes in {path} instead"
            )
        module = parse_module(read_text(path), str(path))
        return module if weights is None else bind_weights(module, weights, function=function)
    if not path.exists():
        raise missing_file(path)
    raise RelvmFormatError(
        f"{path}: expected a model (.onnx or .relvm), got a file with the suffix {path.suffix or '(none)'}"
    )
