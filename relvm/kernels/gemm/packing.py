"""Packing of constant matrices into contiguous panels of columns, in the order in which matrix products read them."""

from __future__ import annotations

from typing import Any

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmShapeError
from relvm.ir.operator import expect
from relvm.ir.types import TensorType
from relvm.kernels.gemm.gemm import STEP, panel_width


def pack_columns(b: np.ndarray) -> np.ndarray:
    """Pack the matrix `b` of shape (depth, columns) into panels.

    Each panel consists of `panel_width` adjacent columns, and is stored row by row.  The last panel can be narrower.
    Zeros are appended to the last panel, because a kernel reads a multiple of STEP columns of each row, and so reads
    past the end of the last row.
    """
    depth, columns = b.shape
    width = panel_width(columns)
    packed = np.empty(b.size + _padding_size(columns), b.dtype)
    for start in range(0, columns, width):
        panel = b[:, start : start + width]
        packed[start * depth : start * depth + panel.size].reshape(panel.shape)[:] = panel
    packed[b.size :] = 0
    return packed


def unpack_columns(packed: np.ndarray, columns: int) -> np.ndarray:
    """Reverse `pack_columns`: return the matrix, with `columns` columns, that was packed into the array `packed`."""
    width, depth = panel_width(columns), (packed.size - _padding_size(columns)) // columns
    starts = range(0, columns, width)
    panels = [packed[start * depth : min(start + width, columns) * depth].reshape(depth, -1) for start in starts]
    return np.concatenate(panels, axis=1)


def packed_row_count(name: str, b: TensorType, columns: int) -> int:
    """Return the number of rows of a packed matrix with `columns` columns.

    name: the name of the operator, for messages.
    b: the type of the packed matrix, of rank 1 and known size.

    Raise RelvmArgumentError if `columns` is not a positive integer, and RelvmShapeError if no packed matrix with this
    number of columns has the size of `b`.
    """
    is_count = isinstance(columns, int) and not isinstance(columns, bool) and columns > 0
    expect(is_count, "{}: columns is {!r}, expected an integer of at least 1", name, columns, error=RelvmArgumentError)
    elements: Any = b.known_shape[0]
    rows, rest = divmod(elements - _padding_size(columns), columns)
    message = "{}: b has {} elements, expected rows of {} and {} more"
    expect(rows >= 0 and rest == 0, message, name, elements, columns, _padding_size(columns), error=RelvmShapeError)
    return rows


def _padding_size(columns: int) -> int:
    return -columns % STEP
