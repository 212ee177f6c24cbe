"""Errors of all systems."""

from __future__ import annotations

import errno


class UnsafeFolderError(PermissionError):
    """Raised if other users can change a folder of the cache, or replace it by another one."""


def outside(name: str) -> ValueError:
    """Return the error for a file name in a model that refers to a file outside the model's folder."""
    return ValueError(f"external data must be a file in the model's folder, got {name!r}")


def not_private(name: str) -> PermissionError:
    """Return the error for the file `name`, which is not regular, or which other users can change."""
    return PermissionError(errno.EPERM, "expected a regular file that nobody else can write to", name)
