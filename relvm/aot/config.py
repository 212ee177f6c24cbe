"""The options of an ahead-of-time export."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

from relvm.aot.boards import Board, find_board
from relvm.data_classes import dataclass
from relvm.errors import RelvmArgumentError, expect_choice, expect_type
from relvm.kernels.kernel_builder import FAVOURS
from relvm.quoting import c_identifier
from relvm.tables import find_header

_CHOICES = {
    "runtime": ("bare", "hosted"),
    "interface": ("c", "packed"),
    "workspace": ("static", "caller"),
    "favour": FAVOURS,
}

_MAX_ALIGNMENT = 1 << 16  # linkers of microcontrollers accept it
_MAX_NAME = 64  # maximum length in characters
_NAME = f"a C identifier of up to {_MAX_NAME} characters that begins with a letter and is not reserved in C"
_HEADERS_OF_C = re.findall(
    r"\w+",
    """
    assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic
    stdbit stdbool stdckdint stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype
    """,
)


def _is_name(name: Any) -> bool:
    is_identifier = isinstance(name, str) and re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) is not None
    return is_identifier and len(name) <= _MAX_NAME and c_identifier(name) == name and name not in ("rvm", "relvm")


def _expect_limit(name: str, limit: Any) -> None:
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
        raise RelvmArgumentError(f"{name}: the limit in bytes must be an integer of at least 0, got {limit!r}")


def _is_power_of_two(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number > 0 and number & (number - 1) == 0


class CallKind(Enum):
    """The calling convention of kernels in lowered code.

    UNPACKED: a C function that takes pointers and sizes.
    CPACKED: a C function that takes an array of values.  It is called directly.
    PACKED: a C function that takes an array of values.  It is called by name: if the host has registered a function of
    this name, the registered function replaces the kernel of the export.
    """

    UNPACKED = "call_unpacked"
    CPACKED = "call_cpacked"
    PACKED = "call_packed"


@dataclass(frozen=True)
class Pool:
    """A memory pool for tensors.

    name: the name of the pool in C.   limit_bytes: its maximum size, or None for no limit.

    Raise RelvmArgumentError if the name or the limit is invalid.
    """

    name: str
    limit_bytes: int | None = None

    def __post_init__(self) -> None:
        if not _is_name(self.name):
            raise RelvmArgumentError(f"pools: {self.name!r}: expected {_NAME}")
        if self.name.upper() == "CONSTANTS":
            raise RelvmArgumentError(f"pools: the name {self.name} is reserved for the constants; choose another name")
        _expect_limit(self.name, self.limit_bytes)


@dataclass(frozen=True)
class AotConfig:
    """The options of an export.

    Attributes
    ----------
    name
        Name of the model in C, and prefix of the symbols of the model.
    runtime
        "bare": C sources that need only a compiler.  "hosted": a library for `AotExecutor`.  In a hosted export,
        functions registered by the host can replace kernels.
    interface
        The calling convention of the entry point.  "c": the entry point takes a struct of inputs and a struct of
        outputs.  "packed": the entry point takes an array of values.  The default is "c" if the runtime and `unpacked`
        allow it, otherwise "packed".
    unpacked
        The calling convention of the kernels.  True, the default for the bare runtime: a kernel takes pointers and
        sizes as separate C parameters.  False, the default for the hosted runtime: a kernel takes one array of values,
        as in the VM.
    alignment
        Alignment in bytes of every tensor in a pool, a power of two.  Elements are always aligned to their own size.
    pools
        Memory pools for tensors that exist only during a run, in order of preference.  A tensor that does not fit into
        one pool is placed in a later pool.
    constants_limit_bytes
        Maximum size of all constants, or None for no limit.
    favour
        The goal for which kernels are optimized.  "memory", the default for the bare runtime: kernels need less scratch
        memory, because they copy smaller parts of a matrix at a time.  On processors with vector instructions, such
        kernels take up to two thirds more time than those for "speed".  "size", for microcontrollers: kernels also have
        less code, because convolutions, poolings and matrix products are plain loops, and decision trees have smaller
        tables.  "speed", the default for the hosted runtime: kernels are the same as in the VM.
    workspace
        "static", the default for the bare runtime: the pools are arrays of the export.  "caller", the only choice for
        the hosted runtime: the caller provides the pools.
    board
        None, or the name of a board in BOARDS.  The default of `favour` is then "size", the Makefile compiles for this
        board, and a model that needs more flash or RAM than the board has is an error.

    Raises
    ------
    RelvmArgumentError
        An option has an invalid value, or options contradict each other.
    RelvmNameError
        There is no such board.
    RelvmUnsupportedError
        Exports cannot run on the board.
    """

    name: str = "model"
    runtime: str = "bare"
    interface: str = None  # type: ignore[assignment]  # __post_init__ replaces None by the default
    unpacked: bool = None  # type: ignore[assignment]
    alignment: int = 16
    pools: tuple[Pool, ...] = (Pool("workspace"),)
    constants_limit_bytes: int | None = None
    workspace: str | None = None
    favour: str | None = None
    board: str | None = None

    def __post_init__(self) -> None:
        expect_choice("runtime", self.runtime, _CHOICES["runtime"])
        if self.interface is None:
            needs_packed = self.runtime == "hosted" or self.unpacked is False
            object.__setattr__(self, "interface", "packed" if needs_packed else "c")
        if self.unpacked is None:
            object.__setattr__(self, "unpacked", self.runtime != "hosted")
        for option, choices in _CHOICES.items():
            value = getattr(self, option)
            if option not in ("workspace", "favour") or value is not None:
                expect_choice(option, value, choices)
        # The name is the beginning of all names in C, so it can consist of capitals only, as a macro.
        if not _is_name(self.name.lower() if isinstance(self.name, str) and self.name.isupper() else self.name):
            raise RelvmArgumentError(f"name={self.name!r}: expected {_NAME}")
        lower = self.name.lower()  # some file systems do not distinguish case
        if lower in _HEADERS_OF_C or find_header(f"{lower}.h"):
            raise RelvmArgumentError(f"name={self.name!r}: {lower}.h is a required header; choose another name")
        if not isinstance(self.unpacked, bool):
            raise RelvmArgumentError(f"unpacked={self.unpacked!r}: expected True or False")
        if not _is_power_of_two(self.alignment) or self.alignment > _MAX_ALIGNMENT:
            raise RelvmArgumentError(f"alignment={self.alignment!r}: expected a power of two up to {_MAX_ALIGNMENT}")
        self._expect_pools()
        self._expect_calls()
        if self.board is not None:
            expect_type("board", self.board, str, "the name of a board")
            find_board(self.board)
            if self.runtime == "hosted":
                raise RelvmArgumentError(f"board={self.board!r}: a board requires runtime='bare'")

    def _expect_pools(self) -> None:
        if not isinstance(self.pools, tuple) or not all(isinstance(pool, Pool) for pool in self.pools):
            raise RelvmArgumentError(f"pools={self.pools!r}: expected a tuple of Pool objects")
        names = [pool.name for pool in self.pools]
        for name in names:
            if [other.upper() for other in names].count(name.upper()) > 1:  # the names of size macros are in upper case
                raise RelvmArgumentError(f"pools: two pools are named {name}; choose unique names")
        if not names:
            raise RelvmArgumentError("pools: expected at least one pool, got none")
        _expect_limit("constants", self.constants_limit_bytes)

    def _expect_calls(self) -> None:
        """Check that the runtime supports the interface and the calling convention of kernels.

        Raise RelvmArgumentError otherwise.
        """
        combination = f"runtime={self.runtime!r}, interface={self.interface!r}, unpacked={self.unpacked}"
        if self.runtime == "bare" and self.interface == "c" and not self.unpacked:
            raise RelvmArgumentError(f'{combination}: runtime="bare" requires interface="packed" or unpacked=True')
        if self.runtime == "hosted" and (self.interface != "packed" or self.unpacked):
            raise RelvmArgumentError(f'{combination}: runtime="hosted" requires interface="packed" and unpacked=False')
        if self.runtime == "hosted" and self.workspace == "static":
            raise RelvmArgumentError(f"{combination}, workspace='static': runtime='hosted' requires workspace='caller'")

    @property
    def base_alignment(self) -> int:
        """The alignment of pools in bytes.  It is sufficient for elements of any dtype."""
        return max(self.alignment, 8)

    @property
    def kernel_favour(self) -> str:
        """The goal of the kernels that results from `favour` and `runtime`."""
        if self.favour is not None:
            return self.favour
        return "size" if self.board is not None else "memory" if self.runtime == "bare" else "speed"

    @property
    def known_board(self) -> Board | None:
        """The board for which the export is made, if it is for one."""
        return None if self.board is None else find_board(self.board)

    @property
    def caller_provides_pools(self) -> bool:
        """Whether the caller provides the pools."""
        return self.runtime == "hosted" or self.workspace == "caller"

    @property
    def calls(self) -> CallKind:
        """The calling convention of kernels that results from `runtime` and `unpacked`."""
        if self.unpacked:
            return CallKind.UNPACKED
        return CallKind.CPACKED if self.runtime == "bare" else CallKind.PACKED
