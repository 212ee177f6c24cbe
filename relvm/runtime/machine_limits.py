"""Checks of the limits and the number of threads of a machine."""

from __future__ import annotations

import math
import os
from numbers import Integral, Real
from typing import Any

from relvm._native import lib
from relvm.errors import RelvmArgumentError, RelvmToolchainError
from relvm.system import processor_count

LEVELS = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")


def requested_level() -> str:
    """Return the x86-64 level that the environment variable RELVM_CPU names, or "" if it is not set.

    Kernels use no features above this level.  Raise RelvmToolchainError if the value is not an x86-64 level.
    """
    requested = os.environ.get("RELVM_CPU", "")
    if requested and requested not in LEVELS:
        raise RelvmToolchainError(f"RELVM_CPU: expected one of {', '.join(LEVELS)}, got {requested!r}")
    return requested


def thread_count(name: str, requested: int | None) -> int:
    """Return the number of threads.

    This is `requested` if it is not None.  Otherwise it is the value of the environment variable RELVM_NUM_THREADS.  If
    that is not set, it is the number of processors that this process is allowed to use.  Raise RelvmArgumentError if
    the number is not an integer from 1 to 256.

    name: the name of the parameter in the message.
    """
    source = name
    number: Any = requested
    if requested is None:
        source, number = "RELVM_NUM_THREADS", os.environ.get("RELVM_NUM_THREADS") or _processors()
        if isinstance(number, str) and number.isascii() and number.isdigit():
            number = int(number)
    is_integer = isinstance(number, Integral) and not isinstance(number, bool)
    if not is_integer or not 1 <= number <= lib.RVM_MAX_THREADS:
        raise RelvmArgumentError(f"{source} is {number!r}, expected an integer from 1 to {lib.RVM_MAX_THREADS}")
    return int(number)


def expect_options(num_threads: int | None, max_bytes: int, max_steps: int, max_seconds: float) -> None:
    """Raise RelvmArgumentError if a machine would reject one of these options."""
    thread_count("num_threads", num_threads)
    expect_limit("max_bytes", max_bytes)
    expect_limit("max_steps", max_steps)
    nanoseconds(max_seconds)


def expect_limit(name: str, value: int) -> int:
    """Return the value of the option `name`, which is a limit, as an int.

    Raise RelvmArgumentError if it is not a 64-bit integer of at least 0.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= value < 1 << 63:
        raise RelvmArgumentError(f"{name} is {value!r}, expected a 64-bit integer of at least 0")
    return int(value)


def nanoseconds(seconds: float) -> int:
    """Convert the option `max_seconds` to nanoseconds, for C.

    The result is 0, which means no limit, if `seconds` is 0 or too large for the clock.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, Real) or not seconds >= 0:
        raise RelvmArgumentError(f"max_seconds is {seconds!r}, expected a number of at least 0")
    return 0 if seconds >= 9e9 else math.ceil(seconds * 1e9)


def _processors() -> int:
    return min(processor_count(), lib.RVM_MAX_THREADS)
