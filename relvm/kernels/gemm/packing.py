"""How a constant matrix lies where products read it in order: in panels of columns, and nothing between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmShapeError
from relvm.ir.operator import expect
from relvm.ir.types import TensorType
from relvm.kernels.gemm.gemm import STEP, panel_width


def pack_columns(b: np.ndarray) -> np.ndarray:
    """The elements of a matrix (depth, columns): panels of `panel_width` columns, the last of those that are left, each
    row by row; then as many zeros as a tile, whose columns are a multiple of STEP, reads behind the last row."""
    width = panel_width(b.shape[1])
    panels = [b[:, start : start + width].ravel() for start in range(0, b.shape[1], width)]
    return np.concatenate([*panels, np.zeros(_spare(b.shape[1]), b.dtype)])


def unpack_columns(packed: np.ndarray, columns: int) -> np.ndarray:
    """The matrix of which `pack_columns` made this."""
    width, depth = panel_width(columns), (packed.size - _spare(columns)) // columns
    starts = range(0, columns, width)
    panels = [packed[start * depth : min(start + width, columns) * depth].reshape(depth, -1) for start in starts]
    return np.concatenate(panels, axis=1)


def packed_rows(name: str, b: TensorType, columns: int) -> int:
    """How many rows a matrix of so many columns has that lies in `b`, of rank 1 and known size.

    Raises RelvmArgumentError: `columns` is no number of columns.  RelvmShapeError: no matrix has that size.
    """
    is_count = isinstance(columns, int) and not isinstance(columns, bool) and columns > 0
    expect(is_count, "{}: columns is {!r}, expected a number above 0", name, columns, error=RelvmArgumentError)
    elements: Any = b.known_shape[0]
    rows, rest = divmod(elements - _spare(columns), columns)
    message = "{}: b has {} elements, expected rows of {} and {} more"
    expect(rows >= 0 and rest == 0, message, name, elements, columns, _spare(columns), error=RelvmShapeError)
    return rows


def _spare(columns: int) -> int:
    return -columns % STEP
