"""Packed functions: functions of the host, in Python or C, that are registered by name and called by machines."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterable
from typing import Any

from relvm._native import ffi, lib
from relvm.errors import RelvmBusyError, RelvmNameError, RelvmTypeError, expect_name, expect_type, near_matches
from relvm.runtime import binding
from relvm.runtime.convert import HostFunction
from relvm.runtime.status import failure
from relvm.system import watch_forks
from relvm.tables import REFERENCE_PREFIX

# A library provider: a function that takes a full name, and returns the function of that name or None.
Provider = Callable[[str], Callable[..., Any] | None]


def _provide_operator(name: str) -> Callable[..., None] | None:
    from relvm.runtime.numpy_kernels import reference_kernel  # imported for target "numpy" only

    return reference_kernel(name)


class _RegisteredFunction(HostFunction):
    """The context object that the C callback of a registered Python function receives.

    function: the Python function that is registered under the name now, or None.  It can be replaced, so each call
    looks it up.
    """

    __slots__ = ("address",)

    def __init__(self, name: str) -> None:
        super().__init__(name, None)
        self.address = ffi.cast("void *", binding.hold(self))


_CALL_PACKED = ffi.cast("rvm_packed_function", binding.CALL_PACKED)
_lock = threading.RLock()
_registered: dict[str, _RegisteredFunction] = {}  # never freed, because machines store the addresses
_libraries: dict[str, Provider] = {REFERENCE_PREFIX: _provide_operator}

# A thread that owns the lock during a fork does not exist in the child.
watch_forks(before=_lock.acquire, in_parent=_lock.release, in_child=_lock.release)


def register_func(name: str, function: Callable[..., Any] | None = None, *, override: bool = False) -> Any:
    """Register a Python function as a packed function.  If `function` is None, return a decorator.

    All machines, including existing ones, look up the name at the time of the call.  The arguments of the function are
    Python values, in which tensors are Tensor objects.  The function can return any value that a machine accepts as an
    argument.  An exception raised by the function reaches the caller of the machine unchanged, with the machine's trace
    as a note.

    Parameters
    ----------
    name
        The name by which programs call the function, such as "my.library.add".
    function
        A callable, or None to use `register_func` as a decorator.
    override
        Whether to replace a function that is already registered under the name.

    Raises
    ------
    RelvmTypeError
        `name` is not a valid name, or `function` is not callable.
    RelvmBusyError
        The name is taken, and `override` is not set.  The error is also raised if the name belongs to a builtin, or
        begins with a prefix that `register_library` was called with.
    """
    expect_name("register_func: name", name)
    if function is None:
        return lambda decorated: register_func(name, decorated, override=override)
    expect_type(f"register_func: {name}", function, Callable, "a callable")
    _expect_no_library(name)
    return _register(name, function, override=override)


def _expect_no_library(name: str) -> None:
    """Raise RelvmBusyError if `name` begins with the prefix of a library."""
    for prefix in _libraries:
        if name.startswith(prefix):
            raise RelvmBusyError(f"register: names that begin with {prefix} belong to a library; choose another name")


def _register(name: str, function: Callable[..., Any], *, override: bool) -> Callable[..., Any]:
    with _lock:
        registered = _registered.get(name) or _RegisteredFunction(name)
        error = ffi.new("rvm_value *")
        status = lib.rvm_register(name.encode(), _CALL_PACKED, registered.address, override, error)
        if status:
            raise failure(status, error)
        registered.function = function
        _registered[name] = registered
    return function


def register_c_func(name: str, address: int, *, override: bool = False) -> None:
    """Register a C function as a packed function.  Machines created from now on call it directly, without Python.

    Parameters
    ----------
    name
        The name by which programs call the function.
    address
        The address of a function of the type that csrc/include/relvm.h declares:
        `rvm_status f(void *self, const rvm_value *arguments, int32_t count, rvm_value *result)`.  It is called with
        `self` = NULL.  An example of an address is `ctypes.cast(library.f, ctypes.c_void_p).value`.  The library of the
        function must stay loaded.
    override
        Whether to replace a function that is already registered under the name.

    Raises
    ------
    RelvmTypeError
        `name` is not a valid name, or `address` is not an address.
    RelvmBusyError
        The name is taken, and `override` is not set.  The error is also raised if the name belongs to a builtin, or
        begins with a prefix that `register_library` was called with.
    """
    expect_name("register_c_func: name", name)
    try:
        address = operator.index(address)
    except TypeError:
        raise RelvmTypeError(f"{name}: expected the address of a C function, got {address!r}") from None
    if not 0 < address < 1 << 8 * ffi.sizeof("void *"):
        raise RelvmTypeError(f"{name}: expected the address of a C function, got {address!r}")
    _expect_no_library(name)
    with _lock:
        error = ffi.new("rvm_value *")
        function = ffi.cast("rvm_packed_function", address)
        status = lib.rvm_register(name.encode(), function, ffi.NULL, override, error)
        if status:
            raise failure(status, error)
        if name in _registered:
            _registered[name].function = None


def unregister_func(name: str) -> None:
    """Remove the function registered under `name`.

    A program that calls it afterwards raises RelvmNameError.  Raise RelvmNameError if no function is registered under
    `name`, and RelvmTypeError if `name` is not a valid name.
    """
    expect_name("unregister_func: name", name)
    with _lock:
        error = ffi.new("rvm_value *")
        status = lib.rvm_unregister(name.encode(), error)
        if status:
            raise failure(status, error)
        if name in _registered:
            _registered[name].function = None


def get_func(name: str) -> Callable[..., Any]:
    """Return the Python function registered under `name`.

    Raise RelvmNameError if there is no such function, and RelvmTypeError if `name` is not a valid name.
    """
    expect_name("get_func: name", name)
    registered = _registered.get(name)
    if registered is None or registered.function is None:
        known = [each.name for each in _registered.values() if each.function]
        raise RelvmNameError(f"no Python function is registered as {name}{near_matches(name, known)}")
    return registered.function


def register_library(prefix: str, provider: Provider) -> None:
    """Register a provider of the packed functions whose names begin with `prefix`.

    The provider is called when a machine first needs such a function.

    Parameters
    ----------
    prefix
        The prefix, including the last dot, such as "reference.".
    provider
        A function that takes the full name of a packed function, and returns the function, or None if it does not
        exist.

    Raises
    ------
    RelvmTypeError
        `prefix` is not a valid name, or `provider` is not callable.
    RelvmBusyError
        The prefix has another provider.
    """
    expect_name("register_library: prefix", prefix)
    expect_type("register_library: provider", provider, Callable, "a callable")
    with _lock:
        if _libraries.setdefault(prefix, provider) is not provider:
            raise RelvmBusyError(f"the prefix {prefix} already has a provider")


def provide_all(names: Iterable[str]) -> None:
    """Register those functions of `names` that are not registered yet and that a library provider can provide."""
    with _lock:
        for name in names:
            if lib.rvm_is_registered(name.encode()):
                continue
            providers = (provider for prefix, provider in _libraries.items() if name.startswith(prefix))
            found = next((function for function in (each(name) for each in providers) if function), None)
            if found:
                _register(name, found, override=False)
