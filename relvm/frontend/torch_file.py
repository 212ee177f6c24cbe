"""Recognition of exported programs of PyTorch, without their reader."""

from __future__ import annotations

import os
from typing import Any

SUFFIX = ".pt2"
_ZIP_MAGIC = b"PK\3\4"


def is_exported_program(model: Any) -> bool:
    """Return whether a model is an exported program: a file that is named .pt2, or the contents of a zip archive.

    model: a path, or the contents of a file.
    """
    if isinstance(model, bytes | bytearray | memoryview):
        return bytes(model[:4]) == _ZIP_MAGIC
    return isinstance(model, str | os.PathLike) and os.fsdecode(model).endswith(SUFFIX)
