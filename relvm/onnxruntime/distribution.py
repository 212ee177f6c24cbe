"""Package metadata for the name onnxruntime, because some packages read its version with `importlib.metadata`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from typing import Any

_NAME = "onnxruntime"


class _OnnxruntimeMetadata(Distribution):
    """Metadata of a package named onnxruntime, so that programs can read its version although it is not installed."""

    def __init__(self, version: str) -> None:
        self._version = version

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return (
            f"Metadata-Version: 2.1\nName: {_NAME}\nVersion: {self._version}\nSummary: The API of {_NAME}, by relvm\n"
        )

    def locate_file(self, path: Any) -> Path:
        return Path(__file__).resolve().parent / path


class _MetadataFinder(DistributionFinder):
    """An entry of sys.meta_path that provides the metadata of onnxruntime to `importlib.metadata`, but no modules."""

    def __init__(self, version: str) -> None:
        self._version = version

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        return None

    def find_distributions(
        self,
        context: DistributionFinder.Context = DistributionFinder.Context(),  # noqa: B008  (has no state)
    ) -> Iterator[Distribution]:
        if context.name is None or re.sub(r"[-_.]+", "-", context.name).lower() == _NAME:
            yield _OnnxruntimeMetadata(self._version)


def add_metadata(version: str) -> None:
    """Make `importlib.metadata` report `version` for onnxruntime, unless onnxruntime itself is installed."""
    if not any(isinstance(finder, _MetadataFinder) for finder in sys.meta_path):
        sys.meta_path.append(_MetadataFinder(version))  # at the end, so that an installed onnxruntime takes precedence


def remove_metadata() -> None:
    """Undo `add_metadata`."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _MetadataFinder)]
