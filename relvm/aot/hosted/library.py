"""Loading of the shared library of a hosted export."""

from __future__ import annotations

import contextlib
import ctypes
import os
import tempfile
import threading
from typing import Any

from relvm._native import ffi, lib
from relvm.aot.metadata_model import VERSION, Metadata, SizeInfo, TensorInfo
from relvm.errors import RelvmFormatError, expect_type
from relvm.runtime.status import failure

_SYMBOL = "relvm_aot_library"  # csrc/include/relvm.h


class AotLibrary:
    """A loaded shared library of a hosted export.

    Parameters
    ----------
    library
        A shared library, as bytes.

    Attributes
    ----------
    library
        The shared library, as bytes.
    metadata
        The inputs, outputs, memory pools and sizes of the model, read from the library.

    Raises
    ------
    RelvmFormatError
        The library cannot be loaded, or is not a hosted export.
    """

    def __init__(self, library: bytes) -> None:
        expect_type("library", library, bytes, "the bytes of a library")
        self.library = library
        self._handle = _load(library)
        found = ffi.cast("rvm_aot_library *", _address(self._handle))
        error = ffi.new("rvm_value *")
        if status := lib.rvm_aot_open(found, error):
            raise failure(status, error)
        self._descriptor = found
        self.metadata = _metadata(found.metadata)

    @property
    def run(self) -> Any:
        """The entry point of the model, as a cffi function pointer of type `rvm_packed_function`."""
        return self._descriptor.run


_lock = threading.Lock()
_handles: dict[bytes, ctypes.CDLL] = {}  # never closed, because machines and executors could still use their functions


def _load(library: bytes) -> ctypes.CDLL:
    """Load a library, and return its handle.  A library with the same bytes is loaded only once."""
    with _lock:
        if library not in _handles:
            with tempfile.NamedTemporaryFile(prefix="relvm-", suffix=".so") as file:
                file.write(library)
                file.flush()
                try:
                    _handles[library] = ctypes.CDLL(file.name, mode=os.RTLD_NOW | os.RTLD_LOCAL)
                except OSError as error:
                    raise RelvmFormatError(f"cannot load the shared library: {error}") from None
        return _handles[library]


def _address(handle: ctypes.CDLL) -> int:
    with contextlib.suppress(ValueError):
        return ctypes.addressof(ctypes.c_char.in_dll(handle, _SYMBOL))
    raise RelvmFormatError(f"not a hosted export: the shared library does not define {_SYMBOL}")


def _metadata(found: Any) -> Metadata:
    """Convert the C struct of metadata in a library to a Metadata object."""
    if found.version != VERSION:
        raise RelvmFormatError(f"expected metadata version {VERSION}, got {found.version}; export the library again")
    return Metadata(
        _text(found.mod_name),
        tuple(_tensor(found.inputs[i]) for i in range(found.input_count)),
        tuple(_tensor(found.outputs[i]) for i in range(found.output_count)),
        tuple(_tensor(found.pools[i]) for i in range(found.pool_count)),
        tuple(_size(found.sizes[i]) for i in range(found.size_count)),
        found.alignment,
        found.version,
    )


def _tensor(info: Any) -> TensorInfo:
    shape = (info.shape[i] if info.shape[i] >= 0 else _text(info.dims[i]) for i in range(info.rank))
    return TensorInfo(_text(info.name), tuple(shape), _text(info.dtype))


def _size(info: Any) -> SizeInfo:
    return SizeInfo(_text(info.name), info.least, None if info.most < 0 else info.most)


def _text(text: Any) -> str:
    return ffi.string(text).decode()
