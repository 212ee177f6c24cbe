"""Recognition of StableHLO programs, without their reader."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

BYTECODE_MAGIC = b"ML\xefR"
_SUFFIXES = (".mlir", ".mlirbc")


def is_stablehlo(model: Any) -> bool:
    """Return whether a model is a StableHLO program: a file that is named .mlir, or MLIR bytecode.

    model: a path, or the contents of a file.  A file of another name is a program if it begins with MLIR bytecode.
    """
    if isinstance(model, bytes | bytearray | memoryview):
        return bytes(model[:4]) == BYTECODE_MAGIC
    if not isinstance(model, str | os.PathLike):
        return False
    path = Path(model)
    if path.suffix in _SUFFIXES:
        return True
    if path.suffix in (".onnx", ".relvm"):
        return False
    try:
        with path.open("rb") as file:
            return file.read(4) == BYTECODE_MAGIC
    except (OSError, ValueError):  # ValueError: the path contains a zero byte
        return False
