"""Tensors of a machine as Python objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from relvm._native import ffi, lib
from relvm.numpy_dtypes import STRINGS, numpy_dtype, unpack_strings
from relvm.runtime.binding import Reference, is_writable
from relvm.runtime.dlpack import dlpack_of_array

_LONG_STRINGS_BYTES = 1 << 20
_MAX_ELEMENTS_SHOWN = 100  # a larger tensor is shown with some elements left out
_MAX_AXES_SHOWN = 4  # of a larger tensor, up to six elements along each axis are shown


class Tensor(Reference):
    """A tensor that a machine created: dense, row-major, on the CPU.

    NumPy (`np.asarray`), and any other array library through DLPack, can access the elements without a copy.  Such a
    view keeps the tensor alive.  The view is writable, unless the elements are a constant of the executable or belong
    to a read-only argument array.  A tensor of strings is copied, to an array of str objects.
    """

    __slots__ = ("__weakref__",)

    @property
    def _c(self) -> Any:
        return ffi.cast("rvm_tensor *", self.address)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, a tuple of dimensions."""
        dl = self._c.dl
        return tuple(ffi.unpack(dl.shape, dl.ndim))

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the elements, a dtype of NumPy or ml_dtypes."""
        return numpy_dtype(self._c.dtype)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._c.dl.ndim

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if not _is_of_numpy(self.dtype):
            raise AttributeError(f"__array_interface__ does not support dtype {self.dtype}")
        return self._interface(self.dtype)

    def _interface(self, dtype: np.dtype) -> dict[str, Any]:
        dl = self._c.dl
        address = int(ffi.cast("intptr_t", dl.data)) + dl.byte_offset
        data = (address, not is_writable(self))
        return {"version": 3, "shape": self.shape, "typestr": dtype.str, "data": data}

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        """Return the elements as an array.  NumPy calls this method for strings and for dtypes of ml_dtypes, which the
        other array protocols do not support."""
        if self.dtype == STRINGS:
            packed = bytearray(lib.rvm_tensor_packed_bytes(self._c))
            status = lib.rvm_tensor_pack(self._c, ffi.from_buffer(packed), len(packed), ffi.NULL)
            assert status == 0, "a tensor of strings, and room for them"
            return unpack_strings(packed, self.shape).astype(dtype or STRINGS, copy=False)
        array = np.asarray(_Bits(self)).view(self.dtype)
        return np.array(array, dtype, copy=copy)

    def numpy(self) -> np.ndarray:
        """Return the elements as an array.  The elements are not copied, except strings."""
        return np.asarray(self)

    def item(self) -> bool | int | float | str:
        """Return the element of a tensor with one element.  Raise ValueError for any other number of elements."""
        return self.numpy().item()

    def __dlpack__(self, **options: Any) -> Any:
        return dlpack_of_array(self.numpy(), **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # kDLCPU

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __len__(self) -> int:
        return len(self.numpy())

    def __repr__(self) -> str:
        return f"Tensor({self._elements()}, shape={self.shape}, dtype={self.dtype})"

    def _elements(self) -> str:
        """Return the elements as text.  If there are many elements, leave out some of them."""
        if self.dtype == STRINGS and lib.rvm_tensor_packed_bytes(self._c) > _LONG_STRINGS_BYTES:
            return "..."
        array = self.numpy()
        if array.ndim > _MAX_AXES_SHOWN and array.size > _MAX_ELEMENTS_SHOWN:
            array = array.reshape(-1)
        return np.array2string(array, separator=", ", threshold=_MAX_ELEMENTS_SHOWN, prefix="Tensor(")


class _Bits:
    """The elements of a tensor as unsigned integers of the same size, for dtypes that NumPy does not have."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._tensor._interface(np.dtype(f"u{self._tensor.dtype.itemsize}"))


def _is_of_numpy(dtype: np.dtype) -> bool:
    return dtype.isbuiltin == 1 and dtype != STRINGS
