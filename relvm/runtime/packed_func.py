"""Packed functions of the host, in Python or C: registered by name, called by machines."""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable, Iterable
from typing import Any

from relvm._native import ffi, lib
from relvm.errors import RelvmBusyError, RelvmNameError, RelvmTypeError, expect_name, expect_type, near_matches
from relvm.runtime import binding
from relvm.runtime.convert import HostFunction
from relvm.runtime.status import failure

# What a library provider is: given a full name, the function of that name, or None when it has none.
Provider = Callable[[str], Callable[..., Any] | None]


class _Named(HostFunction):
    """What C is given as `self` of a name: machines find the function that has the name at the time of the call."""

    __slots__ = ("address",)

    def __init__(self, name: str) -> None:
        super().__init__(name, None)
        self.address = ffi.cast("void *", binding.hold(self))


_CALL_PACKED = ffi.cast("rvm_packed_function", binding.CALL_PACKED)
_lock = threading.RLock()
_named: dict[str, _Named] = {}  # for ever: machines hold the addresses
_libraries: dict[str, Provider] = {}

if hasattr(os, "register_at_fork"):  # no other thread may hold it in the child, where that thread is not
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


def register_func(name: str, function: Callable[..., Any] | None = None, *, override: bool = False) -> Any:
    """Make a Python function a packed function; without `function`, a decorator that does so.

    Machines, those made before included, call the function that has the name at the time of the call.  It gets the
    arguments as Python values (tensors as Tensor) and may return any value that a machine takes.  What it raises
    reaches the caller of the machine as it is, the machine's trace added as a note.

    Parameters
    ----------
    name
        As programs call it, e.g. "my.library.add".
    function
        Anything that can be called; None: what the decorator decorates.
    override
        Take the name from the function that has it.

    Raises
    ------
    RelvmTypeError
        It is no name, or nothing that can be called.
    RelvmBusyError
        The name is taken, and not `override`.
    """
    expect_name("register_func: name", name)
    if function is None:
        return lambda decorated: register_func(name, decorated, override=override)
    expect_type(f"register_func: {name}", function, Callable, "a callable")
    with _lock:
        named = _named.get(name) or _Named(name)
        error = ffi.new("rvm_value *")
        status = lib.rvm_register(name.encode(), _CALL_PACKED, named.address, override, error)
        if status:
            raise failure(status, error)
        named.function = function
        _named[name] = named
    return function


def register_c_func(name: str, address: int, *, override: bool = False) -> None:
    """Make a C function a packed function; machines made from now on call it, without a detour through Python.

    Parameters
    ----------
    name
        As programs call it.
    address
        Of a `rvm_status f(void *self, const rvm_value *arguments, int32_t count, rvm_value *result)` as
        csrc/include/relvm.h has it (self: NULL), e.g. `ctypes.cast(library.f, ctypes.c_void_p).value`.  Its library
        must stay loaded.
    override
        Take the name from the function that has it.

    Raises
    ------
    RelvmBusyError
        The name is taken, and not `override`.
    """
    expect_name("register_c_func: name", name)
    try:
        address = operator.index(address)
    except TypeError:
        raise RelvmTypeError(f"{name}: expected the address of a C function, got {address!r}") from None
    if not 0 < address < 1 << 8 * ffi.sizeof("void *"):
        raise RelvmTypeError(f"{name}: expected the address of a C function, got {address!r}")
    with _lock:
        error = ffi.new("rvm_value *")
        function = ffi.cast("rvm_packed_function", address)
        status = lib.rvm_register(name.encode(), function, ffi.NULL, override, error)
        if status:
            raise failure(status, error)
        if name in _named:
            _named[name].function = None


def unregister_func(name: str) -> None:
    """Take a name away.  Machines that call it raise RelvmNameError.  Raises RelvmNameError: no function has it."""
    expect_name("unregister_func: name", name)
    with _lock:
        error = ffi.new("rvm_value *")
        status = lib.rvm_unregister(name.encode(), error)
        if status:
            raise failure(status, error)
        if name in _named:
            _named[name].function = None


def get_func(name: str) -> Callable[..., Any]:
    """The Python function registered under `name`.  Raises RelvmNameError: there is none."""
    expect_name("get_func: name", name)
    named = _named.get(name)
    if named is None or named.function is None:
        known = [each.name for each in _named.values() if each.function]
        raise RelvmNameError(f"no Python function is registered as {name}{near_matches(name, known)}")
    return named.function


def register_library(prefix: str, provider: Provider) -> None:
    """Have `provider` asked for packed functions whose names begin with `prefix`, when a machine first needs them.

    Parameters
    ----------
    prefix
        With its last dot, e.g. "reference.".
    provider
        Called with the full name; the function, or None when there is none of that name.

    Raises
    ------
    RelvmBusyError
        The prefix has another provider.
    """
    expect_name("register_library: prefix", prefix)
    expect_type("register_library: provider", provider, Callable, "a callable")
    with _lock:
        if _libraries.setdefault(prefix, provider) is not provider:
            raise RelvmBusyError(f"the prefix {prefix} has a provider already")


def provide(names: Iterable[str]) -> None:
    """Register those of `names` that are not registered and that a library has."""
    with _lock:
        for name in names:
            if lib.rvm_is_registered(name.encode()):
                continue
            providers = (provider for prefix, provider in _libraries.items() if name.startswith(prefix))
            found = next((function for function in (each(name) for each in providers) if function), None)
            if found:
                register_func(name, found)
