"""Arguments whose memory a run may overwrite."""

from __future__ import annotations

from typing import Any

import numpy as np

from relvm.errors import RelvmTypeError

__all__ = ["Donated"]


class Donated:
    """An array that the caller of a function gives up: `function(Donated(x))`.

    A program updates a tensor in place if it does not use it afterwards, and if nothing else refers to it.  An array of
    the caller is therefore copied before its first update.  The program updates a donated array itself.  Its elements
    are undefined after the call, and the results of the call can have its memory.

    An array whose memory is not aligned to 64 bytes is copied nevertheless.

    Parameters
    ----------
    array
        A writable NumPy array that is dense and row-major.

    Raises
    ------
    RelvmTypeError
        `array` is no such array.

    Examples
    --------
    >>> from relvm import vm
    >>> state = np.zeros(3, np.float32)
    >>> argument = vm.Donated(state)
    """

    __slots__ = ("array",)

    array: np.ndarray

    def __init__(self, array: Any) -> None:
        if not isinstance(array, np.ndarray) or not array.flags.writeable or not array.flags.c_contiguous:
            found = "a read-only or strided array" if isinstance(array, np.ndarray) else type(array).__name__
            raise RelvmTypeError(f"Donated: expected a writable, dense, row-major array, got {found}; copy it")
        self.array = array

    @classmethod
    def of_view(cls, array: np.ndarray) -> Donated:
        """Return a donation of memory that may be written although the array is read-only."""
        donated = cls.__new__(cls)
        donated.array = array
        return donated
