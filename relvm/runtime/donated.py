"""Arguments whose memory a run may overwrite."""

from __future__ import annotations

from typing import Any

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmTypeError

__all__ = ["Donated"]


class Donated:
    """An array that the caller of a function gives up: `function(Donated(x))`.

    A program updates a tensor in place if the program does not use the old elements afterwards, and if nothing else
    refers to the tensor.  An array of the caller is therefore copied before its first update.  The program updates a
    donated array directly, without a copy.  Its elements are undefined after the call, and the results of the call can
    have its memory.  Nothing else that is still used, such as a view, a Tensor or another argument of the call, may
    have the same memory.

    An array whose memory is not aligned to 64 bytes is copied nevertheless.  An instance of Donated is for one call.

    Parameters
    ----------
    array
        A writable NumPy array that is dense and row-major.

    Raises
    ------
    RelvmTypeError
        `array` is not such an array.

    Examples
    --------
    >>> from relvm import vm
    >>> state = np.zeros(3, np.float32)
    >>> argument = vm.Donated(state)
    """

    __slots__ = ("_array", "_is_view")

    _array: np.ndarray | None
    _is_view: bool  # whether the memory may be written although the array is read-only

    def __init__(self, array: Any) -> None:
        if not isinstance(array, np.ndarray) or not array.flags.writeable or not array.flags.c_contiguous:
            found = "a read-only or strided array" if isinstance(array, np.ndarray) else type(array).__name__
            raise RelvmTypeError(f"Donated: expected a writable, dense, row-major array, got {found}; copy it")
        self._array = array
        self._is_view = False

    @classmethod
    def of_view(cls, array: np.ndarray) -> Donated:
        """Return a donation of memory that may be written although the array is read-only."""
        donated = cls.__new__(cls)
        donated._array = array
        donated._is_view = True
        return donated

    def take(self) -> np.ndarray:
        """Return the array, for a call.

        Raises
        ------
        RelvmArgumentError
            An earlier call has taken the array.
        RelvmTypeError
            The array has become read-only.
        """
        array = self._array
        if not isinstance(array, np.ndarray):
            raise RelvmArgumentError("Donated: an earlier call has taken the array; donate another one")
        if not self._is_view and not array.flags.writeable:
            raise RelvmTypeError("Donated: the array has become read-only; copy it")
        self._array = None
        return array
