"""Reading of model files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from relvm.errors import RelvmArgumentError, RelvmFormatError
from relvm.ir.expr import Module
from relvm.runtime.file_io import read_text


def read_model(path: Path, dims: Mapping[str, int | tuple[int, int] | None] | None = None) -> Module:
    """Read the module in an .onnx or .relvm file.

    Parameters
    ----------
    dims
        Sizes of an ONNX model's symbolic dimensions, as for `from_onnx`.

    Raises
    ------
    OSError
        The file cannot be read.
    RelvmFormatError
        The suffix is neither .onnx nor .relvm, or the file is not a regular file or not valid text.
    RelvmArgumentError
        `dims` is given for a .relvm file, which states its sizes itself.
    """
    match path.suffix:  # import only the reader of this file type
        case ".onnx":
            from relvm.frontend.onnx import from_onnx

            return from_onnx(path, dims=dims)
        case ".relvm":
            from relvm.frontend.text.parser import parse_module

            if dims:
                raise RelvmArgumentError(
                    f"dims: {', '.join(dims)}: only an ONNX model accepts dims; edit the sizes in {path} instead"
                )
            return parse_module(read_text(path), str(path))
    raise RelvmFormatError(
        f"{path}: expected a model (.onnx or .relvm), got a file with the suffix {path.suffix or '(none)'}"
    )
