"""What an export is asked for, checked as a whole."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Any

from relvm.errors import RelvmArgumentError, expect_choice
from relvm.quoting import c_identifier
from relvm.tables import find_header

_CHOICES = {
    "runtime": ("bare", "hosted"),
    "interface": ("c", "packed"),
    "workspace": ("static", "caller"),
    "favour": ("memory", "speed"),
}

_MAX_ALIGNMENT = 1 << 16  # what linkers of microcontrollers take, too
_MAX_NAME = 64  # characters
_NAME = f"a C identifier of up to {_MAX_NAME} characters that begins with a letter and means nothing in C"
_HEADERS_OF_C = ("assert", "float", "limits", "math", "stddef", "stdint", "stdio", "stdlib", "string")


class CallKind(Enum):
    """How lowered code calls a kernel.

    UNPACKED: a C function of pointers and sizes.  CPACKED: a C function that takes an array of values, called directly.
    PACKED: the same, called by its name: what the host has registered under that, else the export's own.
    """

    UNPACKED = "call_unpacked"
    CPACKED = "call_cpacked"
    PACKED = "call_packed"


@dataclass(frozen=True)
class Pool:
    """Memory that tensors are placed in.  name: of the array in C.  limit_bytes: the most that may be used of it; None:
    no limit."""

    name: str
    limit_bytes: int | None = None


@dataclass(frozen=True)
class AotConfig:
    """An export.

    Attributes
    ----------
    name
        Of the model in C: a prefix of all that the export defines.
    runtime
        "bare": C sources that need nothing but a compiler.  "hosted": a library for `AotExecutor`, in which functions
        that the host has registered can take the places of kernels.
    interface
        "c": the entry takes a struct of inputs and one of outputs.  "packed": an array of values.
    unpacked
        Whether kernels take pointers and sizes; else an array of values, as in the machine.
    alignment
        Of every tensor in a pool, in bytes: a power of two.  A tensor's elements are aligned in any case.
    pools
        Where tensors that live only during a run may be, in order of preference: one goes into a later pool where it
        does not fit into an earlier one.
    constants_limit_bytes
        The most that constants may take; None: no limit.
    favour
        "memory": kernels copy less of a matrix at once, which takes up to two thirds more time where the processor has
        vectors, as is so by default where the runtime is bare.  "speed": they are the machine's.
    workspace
        "static": the pools are arrays of the export, as they are by default where the runtime is bare.  "caller": who
        runs the model gives them, as the hosted runtime does.

    Raises
    ------
    RelvmArgumentError
        A value that an option does not take, or options that do not go together; the message quotes each.
    """

    name: str = "model"
    runtime: str = "bare"
    interface: str = "c"
    unpacked: bool = True
    alignment: int = 16
    pools: tuple[Pool, ...] = (Pool("workspace"),)
    constants_limit_bytes: int | None = None
    workspace: str | None = None
    favour: str | None = None

    def __post_init__(self) -> None:
        for option, choices in _CHOICES.items():
            got = getattr(self, option)
            if option not in ("workspace", "favour") or got is not None:
                expect_choice(option, got, choices)
        if not _is_name(self.name):
            raise RelvmArgumentError(f"name={self.name!r}: expected {_NAME}")
        if self.name in _HEADERS_OF_C or find_header(f"{self.name}.h"):
            raise RelvmArgumentError(f"name={self.name!r}: a header that is needed is called {self.name}.h")
        if not isinstance(self.unpacked, bool):
            raise RelvmArgumentError(f"unpacked={self.unpacked!r}: expected True or False")
        if not _is_power_of_two(self.alignment) or self.alignment > _MAX_ALIGNMENT:
            raise RelvmArgumentError(f"alignment={self.alignment!r}: expected a power of two up to {_MAX_ALIGNMENT}")
        self._expect_pools()
        self._expect_calls()

    def _expect_pools(self) -> None:
        if not isinstance(self.pools, tuple) or not all(isinstance(pool, Pool) for pool in self.pools):
            raise RelvmArgumentError(f"pools={self.pools!r}: expected a tuple of Pool")
        names = [pool.name for pool in self.pools]
        for name in names:
            if not _is_name(name):
                raise RelvmArgumentError(f"pools: {name!r}: expected {_NAME}")
            if name.upper() == "CONSTANTS":
                raise RelvmArgumentError(f"pools: {name}: so the constants are called")
            if [other.upper() for other in names].count(name.upper()) > 1:  # as the macros of their sizes are named
                raise RelvmArgumentError(f"pools: two are named {name}")
        if not names:
            raise RelvmArgumentError("pools: expected one at least")
        limits = [(pool.name, pool.limit_bytes) for pool in self.pools]
        for name, limit in (*limits, ("constants", self.constants_limit_bytes)):
            if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
                raise RelvmArgumentError(f"the limit of {name}: expected a number of bytes, got {limit!r}")

    def _expect_calls(self) -> None:
        """The C runtime cannot look into an array of values by itself, and the hosted one calls by nothing else."""
        given = f"runtime={self.runtime!r}, interface={self.interface!r}, unpacked={self.unpacked}"
        if self.runtime == "bare" and self.interface == "c" and not self.unpacked:
            raise RelvmArgumentError(f'{given}: the bare runtime needs interface="packed" or unpacked=True')
        if self.runtime == "hosted" and (self.interface != "packed" or self.unpacked):
            raise RelvmArgumentError(f'{given}: the hosted runtime needs interface="packed" and unpacked=False')
        if self.runtime == "hosted" and self.workspace == "static":
            raise RelvmArgumentError(f"{given}, workspace='static': executors of the hosted runtime bring their own")

    @property
    def base_alignment(self) -> int:
        """Of a pool, in bytes: as much as any number needs, at least."""
        return max(self.alignment, 8)

    @property
    def is_compact(self) -> bool:
        """Whether kernels take little memory rather than little time."""
        return (self.favour or ("memory" if self.runtime == "bare" else "speed")) == "memory"

    @property
    def workspace_is_given(self) -> bool:
        """Whether who runs the model gives its pools."""
        return self.runtime == "hosted" or self.workspace == "caller"

    @property
    def calls(self) -> CallKind:
        """How lowered code calls kernels."""
        if self.unpacked:
            return CallKind.UNPACKED
        return CallKind.CPACKED if self.runtime == "bare" else CallKind.PACKED


def _is_name(name: Any) -> bool:
    is_identifier = isinstance(name, str) and re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) is not None
    return is_identifier and len(name) <= _MAX_NAME and c_identifier(name) == name and name not in ("rvm", "relvm")


def _is_power_of_two(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number > 0 and number & (number - 1) == 0
