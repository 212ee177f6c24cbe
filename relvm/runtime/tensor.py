"""Tensors of a machine as Python objects."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from relvm._native import ffi, lib
from relvm.display import Displayed, html_lines, short_text
from relvm.errors import RelvmTypeError
from relvm.numpy_dtypes import DTYPE_NAMES, STRINGS, dtype_number, numpy_dtype, unpack_strings
from relvm.runtime.binding import Reference, array_struct, is_writable
from relvm.runtime.dlpack import dlpack_of_array

_LONG_STRINGS_BYTES = 1 << 20
_MAX_ELEMENTS_SHOWN = 100  # for larger tensors, some elements are omitted
_CHANGING = {"byteswap", "fill", "partition", "put", "resize", "setfield", "setflags", "sort"}  # methods that write
_MAX_AXES_SHOWN = 4  # maximum rank for which larger tensors are shown; up to six elements per axis


class Tensor(NDArrayOperatorsMixin, Displayed, Reference):
    """A tensor that a machine created: dense, row-major, on the CPU.

    NumPy (`np.asarray`) can access the elements without a copy, and so can any array library that supports DLPack.
    Such a view keeps the tensor alive.  The view is writable, unless the elements are a constant of the executable or
    belong to a read-only argument array.  A tensor of strings is copied, to an array of str objects.

    A tensor behaves like the array `tensor.numpy()`.  It has the attributes and methods of an array, such as `mean`,
    `astype` and `T`.  These, indexing, iteration, `in`, `bool`, `float`, `int`, arithmetic and comparisons have the
    same results as in NumPy: NumPy arrays and scalars.  `==` compares elements, so a tensor cannot be hashed.
    Assignments to elements, and `+=`, change the tensor.  They raise RelvmTypeError for strings, which are copies, and
    ValueError for read-only elements.
    """

    __slots__ = ("__weakref__",)
    __hash__ = None  # type: ignore[assignment]  # as for arrays, because == compares elements

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
    def size(self) -> int:
        """The number of elements."""
        return self.numpy().size

    @property
    def nbytes(self) -> int:
        """The size of the elements, in bytes.  For strings, it is the size of their packed form."""
        return lib.rvm_tensor_packed_bytes(self._c) if self.dtype == STRINGS else self.numpy().nbytes

    __array_struct__ = property(array_struct)  # NumPy converts tensors by it, if it has their dtypes

    @property
    def __array_interface__(self) -> dict[str, Any]:
        number = self._c.dtype
        dtype = numpy_dtype(number)
        if not _is_numpy_dtype(dtype):  # NumPy also asks for it if it then calls __array__, so this must be fast
            raise AttributeError(f"__array_interface__ does not support dtype {DTYPE_NAMES[number]}")
        return self._interface(dtype)

    def _interface(self, dtype: np.dtype) -> dict[str, Any]:
        dl = self._c.dl
        address = int(ffi.cast("intptr_t", dl.data)) + dl.byte_offset
        shape = tuple(ffi.unpack(dl.shape, dl.ndim))
        return {"version": 3, "shape": shape, "typestr": dtype.str, "data": (address, not is_writable(self))}

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        """Return the elements as an array.

        NumPy calls this method for strings and for dtypes of ml_dtypes, which the other array protocols do not support.
        """
        if self.dtype == STRINGS:
            packed = bytearray(lib.rvm_tensor_packed_bytes(self._c))
            status = lib.rvm_tensor_pack(self._c, ffi.from_buffer(packed), len(packed), ffi.NULL)
            assert status == 0, "a tensor of strings, and room for them"
            return unpack_strings(packed, self.shape).astype(dtype or STRINGS, copy=False)
        array = np.asarray(_UnsignedView(self)).view(self.dtype)
        return np.array(array, dtype, copy=copy)

    def numpy(self) -> np.ndarray:
        """Return the elements as an array.  The elements are not copied, except strings."""
        return np.asarray(self)

    def item(self) -> bool | int | float | str:
        """Return the only element of a tensor.  Raise ValueError if the number of elements is not 1."""
        return self.numpy().item()

    def __dlpack__(self, **options: Any) -> Any:
        return dlpack_of_array(self.numpy(), **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # kDLCPU

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python values, or as a single value if the tensor has no axes."""
        return self.numpy().tolist()

    # ---- as an array of NumPy ----

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, out: tuple = (), **options: Any) -> Any:
        """Apply a NumPy ufunc.  All operators except the comparisons == and != are ufuncs."""
        if out:
            options["out"] = tuple(map(_writable_array, out))
        result = getattr(function, method)(*map(_array, inputs), **options)
        return result if not out else out[0] if len(out) == 1 else out

    def __getattr__(self, name: str) -> Any:
        """Return the attribute or method `name` of the array, such as `mean`, `astype` or `T`."""
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"'Tensor' object has no attribute {name!r}", name=name, obj=self)
        return getattr(_writable_array(self) if name in _CHANGING else self.numpy(), name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in dir(np.ndarray) if not name.startswith("_"))})

    def __eq__(self, other: object) -> Any:  # not the ufunc, which cannot compare a string and a number
        return self.numpy() == _array(other)

    def __ne__(self, other: object) -> Any:
        return self.numpy() != _array(other)

    def __getitem__(self, key: Any) -> Any:
        return self.numpy()[_plain_key(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        _writable_array(self)[_plain_key(key)] = _array(value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.numpy())

    def __contains__(self, value: object) -> bool:
        return _array(value) in self.numpy()

    def __len__(self) -> int:
        return len(self.numpy())

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __int__(self) -> int:
        return int(self.numpy())

    def __float__(self) -> float:
        return float(self.numpy())

    def __complex__(self) -> complex:
        return complex(self.numpy())

    def __index__(self) -> int:
        return operator.index(self.numpy())

    # ---- as text ----

    def __str__(self) -> str:
        return f"Tensor({self._elements('Tensor(')}, shape={self.shape}, dtype={self.dtype})"

    def __format__(self, spec: str) -> str:
        """Return the tensor as text.  As in NumPy, a format such as ".2f" is allowed only for tensors without axes."""
        return format(self.numpy(), spec) if spec else str(self)

    def __repr__(self) -> str:
        return short_text(str(self))

    def _repr_html_(self) -> str:
        kind = f"{DTYPE_NAMES[dtype_number(self.dtype)]}[{', '.join(map(str, self.shape))}]"
        return html_lines(self._elements(""), f"Tensor {kind}, {self.nbytes:,} bytes")

    def _elements(self, prefix: str) -> str:
        """Return the elements as text.  If there are many elements, some are omitted.

        prefix: the text before the elements, which determines the indentation of the second and later lines.
        """
        if self.dtype == STRINGS and lib.rvm_tensor_packed_bytes(self._c) > _LONG_STRINGS_BYTES:
            return "..."
        array = self.numpy()
        if array.ndim > _MAX_AXES_SHOWN and array.size > _MAX_ELEMENTS_SHOWN:
            array = array.reshape(-1)
        return np.array2string(array, separator=", ", threshold=_MAX_ELEMENTS_SHOWN, prefix=prefix)


def _array(value: Any) -> Any:
    return value.numpy() if isinstance(value, Tensor) else value


def _plain_key(key: Any) -> Any:
    return tuple(map(_array, key)) if isinstance(key, tuple) else _array(key)


def _writable_array(value: Any) -> Any:
    """Return the array through which NumPy can change a tensor.  Return a value that is not a tensor unchanged."""
    if isinstance(value, Tensor) and value.dtype == STRINGS:
        raise RelvmTypeError("a tensor of strings cannot be changed; np.array(tensor) copies it to an array that can")
    return _array(value)


class _UnsignedView:
    """Exports the elements of a tensor to NumPy as unsigned integers of the same size.

    This is necessary for dtypes that NumPy does not have.
    """

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._tensor._interface(np.dtype(f"u{self._tensor.dtype.itemsize}"))


def _is_numpy_dtype(dtype: np.dtype) -> bool:
    return dtype.isbuiltin == 1 and dtype != STRINGS
