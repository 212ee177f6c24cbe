"""Loading of the shared library of a hosted export."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from typing import Any

import numpy as np

from relvm._native import ffi, lib
from relvm.aot.c.description import parse_config
from relvm.aot.metadata_model import VERSION, Metadata, SizeInfo, TensorInfo
from relvm.compiler.target import parse_target
from relvm.errors import RelvmFormatError, expect_type
from relvm.ir.dtypes import dtype_of
from relvm.runtime.status import failure
from relvm.system import load_library

# The symbols of an exported library.
_SYMBOL, _DESCRIPTION = "relvm_aot_library", "relvm_aot_description"


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
        The inputs, outputs, memory pools and sizes of the model.
    entry
        The name of the exported function.
    config
        The options of the export.
    target
        The target for which `compile_library` has compiled the library, or None if it was compiled otherwise.
    source
        The program in the text form, without large constants.
    lowered_text
        The lowered functions as text.

    Raises
    ------
    RelvmFormatError
        The library cannot be loaded, or is not a hosted export.
    """

    def __init__(self, library: bytes) -> None:
        expect_type("library", library, bytes, "the bytes of a library")
        self.library = library
        self._handle = _load(library)
        found = ffi.cast("rvm_aot_library *", _address(self._handle, _SYMBOL))
        described = ffi.cast("rvm_aot_description *", _address(self._handle, _DESCRIPTION))
        error = ffi.new("rvm_value *")
        if status := lib.rvm_aot_open(found, error):
            raise failure(status, error)
        self._descriptor = found
        self._description = described
        self.metadata = _metadata(found.metadata)
        self.entry = _text(described.entry)
        self.config = parse_config(_text(described.config))
        self.target = parse_target(_text(described.target)) if described.target else None
        self.source = _text(described.source)
        self.lowered_text = _text(described.lowered)

    @property
    def calls_host_functions(self) -> bool:
        """Whether the program can call functions of the host.

        This can be True by mistake, if a name in the program contains the text of such a call.
        """
        return "call_extern(" in self.lowered_text

    @property
    def params(self) -> dict[str, np.ndarray]:
        """Copies of the constants, by their names in C."""
        constants = (self._description.constants[i] for i in range(self._description.constant_count))
        return dict(map(_constant, constants))

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
            try:
                _handles[library] = load_library(library)
            except OSError as error:
                raise RelvmFormatError(f"cannot load the shared library: {error}") from None
        return _handles[library]


def _address(handle: ctypes.CDLL, symbol: str) -> int:
    with contextlib.suppress(ValueError):
        return ctypes.addressof(ctypes.c_char.in_dll(handle, symbol))
    raise RelvmFormatError(f"not a hosted export: the shared library does not define {symbol}")


def _constant(constant: Any) -> tuple[str, np.ndarray]:
    info = _tensor(constant.info)
    array = np.empty([int(dim) for dim in info.shape], dtype_of(info.dtype).numpy)
    if array.size:
        ffi.memmove(ffi.cast("void *", array.ctypes.data), constant.data, array.nbytes)
    return info.name, array


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
    return TensorInfo(_text(info.name), tuple(shape), _text(info.dtype), bool(info.is_updated))


def _size(info: Any) -> SizeInfo:
    return SizeInfo(_text(info.name), info.least, None if info.most < 0 else info.most)


def _text(text: Any) -> str:
    return ffi.string(text).decode()
