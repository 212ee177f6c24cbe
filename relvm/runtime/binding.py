"""The extension module _binding (csrc/python/binding.c).

It is linked into the library of the cffi module, so that both modules share one runtime.

Objects
    The Python side of a machine.  `begin` makes the calling thread the current thread of the machine, until `end`.
    Only the current thread may access the values of the machine, because reference counts in C are not atomic.  The
    machine is freed together with the last Python object that refers to a part of it.
Reference
    A reference to an object of a machine.  When the Reference is freed, the object is released immediately, or later by
    the current thread of the machine.
Callable
    A Reference to a function or closure, called as `callee(*arguments)`.  If the Callable is not `direct`, or if
    arguments are passed by name, the call goes to the method `call_indirect` of the subtype.
"""

from __future__ import annotations

import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location

import relvm._native as _native

_NAME = "relvm._binding"
_spec = spec_from_file_location(_NAME, _native.__file__, loader=ExtensionFileLoader(_NAME, _native.__file__))
assert _spec is not None and _spec.loader is not None
_module = module_from_spec(_spec)
_spec.loader.exec_module(_module)
sys.modules[_NAME] = _module

# This module was loaded by the lines above.  relvm/_binding.pyi contains its types.
from relvm._binding import (  # noqa: E402
    ITEM_BYTES,
    OBJECT_BYTES,
    SEQUENCE_BYTES,
    Callable,
    Objects,
    Reference,
    active,
    array_struct,
    check_onnx,
    data_address,
    hold,
    install,
    is_own,
    is_writable,
    onnx_table,
    read_onnx,
    set_exchange,
    store,
    take,
    take_result,
)
from relvm._binding import call_packed as CALL_PACKED  # noqa: E402
from relvm._binding import release_object as RELEASE_OBJECT  # noqa: E402

__all__ = [
    "CALL_PACKED",
    "ITEM_BYTES",
    "OBJECT_BYTES",
    "RELEASE_OBJECT",
    "SEQUENCE_BYTES",
    "Callable",
    "Objects",
    "Reference",
    "active",
    "array_struct",
    "check_onnx",
    "data_address",
    "hold",
    "install",
    "is_own",
    "is_writable",
    "onnx_table",
    "read_onnx",
    "set_exchange",
    "store",
    "take",
    "take_result",
]
