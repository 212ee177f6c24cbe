"""Python hooks for csrc/python/binding.c.

The C code handles ordinary calls.  It calls these hooks in all other cases, such as errors and less common types.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from relvm._native import ffi
from relvm.errors import RelvmBusyError, RelvmNameError, RelvmTypeError
from relvm.runtime import binding
from relvm.runtime.binding import Objects, Reference
from relvm.runtime.callbacks import no_python_caller_error, store_exception
from relvm.runtime.closure import Closure, argument_error
from relvm.runtime.convert import located, other_to_python, store_other
from relvm.runtime.donated import Donated
from relvm.runtime.status import failure, uncopyable
from relvm.runtime.tensor import Tensor


def _value(address: int) -> Any:
    return ffi.cast("rvm_value *", address)


def _busy(subject: Any, objects: Objects) -> RelvmBusyError:
    name = subject if isinstance(subject, str) else subject.name
    return RelvmBusyError(f"{name}: the machine is running in another thread; create one machine per thread")


def _uncopyable(reference: Reference) -> RelvmTypeError:
    if isinstance(reference, Tensor):
        return uncopyable(reference, "np.array(tensor) copies it")
    return uncopyable(reference)


binding.install(
    array=np.ndarray,
    scalar=np.generic,
    donated=Donated,
    tensor=Tensor,
    closure=Closure,
    plain=lambda callee, k, value: callee.plain_argument(k, value),
    store=store_other,
    take=other_to_python,
    failure=lambda status, address: failure(status, _value(address)),
    ended=lambda callee, arguments, status, address: callee.run_error(arguments, status, _value(address)),
    busy=_busy,
    argument_error=argument_error,
    keep_exception=store_exception,
    unregistered=lambda named: RelvmNameError(f"the packed function {named.name} is no longer registered"),
    no_caller=lambda named: no_python_caller_error(named.name),
    uncopyable=_uncopyable,
    result_error=lambda named, error: located(error, f"the result of {named.name}"),
)
