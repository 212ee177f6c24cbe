"""Models in files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from relvm.errors import RelvmArgumentError, RelvmFormatError
from relvm.ir.expr import Module
from relvm.runtime.file_io import read_text


def read_model(path: Path, dims: Mapping[str, int | tuple[int, int] | None] | None = None) -> Module:
    """The module in an .onnx or .relvm file.

    Parameters
    ----------
    dims
        Sizes of an ONNX model's symbolic dimensions, as `from_onnx` takes them.

    Raises
    ------
    OSError
        The file cannot be read.
    RelvmFormatError
        A file of another kind, or one that is no regular file or no text.
    RelvmArgumentError
        There are `dims` for a text, whose sizes are its own.
    """
    match path.suffix:  # what reads the other kind is not imported
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
