"""Every error relvm raises on purpose.  A run-time failure's class is named in csrc/tables/status.def."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from relvm.quoting import terminal_message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class RelvmError(Exception):
    """Base of all of them.  The message, as `str` gives it, has no control characters: it is safe to print.

    Attributes
    ----------
    origin
        Where in the source of a program that is, which the message begins with: `file:line:column`, the line of Python
        that called a builder, the node of a model; empty where the message does not say it so.
    reason, filename, lineno, offset
        Of an error in a text or a script only: the message without its position, and the position, counted from 1.
    """

    origin: str = ""
    reason: str
    filename: str | None
    lineno: int | None
    offset: int | None

    def __str__(self) -> str:
        return terminal_message(super().__str__())


class RelvmTypeError(RelvmError, TypeError):
    """A value, or an expression, of the wrong kind, dtype or rank."""


class RelvmShapeError(RelvmTypeError, ValueError):
    """A shape that does not match what the program states.

    Attributes
    ----------
    unproven
        The two dimensions that an operator needs to be equal where it is not known whether they are; None otherwise.
    """

    unproven: tuple | None = None


class RelvmArgumentError(RelvmError, TypeError):
    """A wrong number of arguments, or an unknown argument name."""


class RelvmIndexError(RelvmError, IndexError):
    """An index outside its container."""


class RelvmArithmeticError(RelvmError, ArithmeticError):
    """Arithmetic on scalars that has no result: an integer division by zero, a shift by a negative number."""


class RelvmAssertionError(RelvmError, AssertionError):
    """An assertion of the program does not hold."""


class RelvmMemoryError(RelvmError, MemoryError):
    """An allocation failed or exceeds its limit."""


class RelvmRecursionError(RelvmError, RecursionError):
    """The machine's value stack or call depth is exhausted, or a program is nested too deeply to be built."""


class RelvmNameError(RelvmError, LookupError):
    """A name that no table knows: a function, an operator, a variable, an input.  The message lists near matches."""


class RelvmFormatError(RelvmError, ValueError):
    """A file that is damaged, truncated or malformed."""


class RelvmUnsupportedError(RelvmError, NotImplementedError):
    """Something this version, build, target or machine cannot do; the message says what."""


class RelvmBusyError(RelvmError, RuntimeError):
    """A machine is used by two threads at once, or a name is already taken."""


class RelvmInterrupted(RelvmError):
    """The run was stopped from outside."""


class RelvmTimeoutError(RelvmError, TimeoutError):
    """A run took more steps or more time than it may."""


class RelvmCallbackError(RelvmError, RuntimeError):
    """A packed function of the host failed without a Python exception of its own."""


class RelvmSyntaxError(RelvmError, SyntaxError):
    """Text or script that is not in the language; the message has the line and the column."""

    def __init__(self, message: str = "") -> None:
        super().__init__(terminal_message(message))  # Python prints `msg` where it shows a traceback

    def __str__(self) -> str:
        return terminal_message(str(self.msg))  # SyntaxError's own adds the place again


class RelvmVerifyError(RelvmError):
    """A module that breaks a rule of the stage it claims to be at; names the function, the binding and the rule."""


class RelvmBatchError(RelvmError):
    """A batch of a run on a cluster failed; `__cause__` is why.

    Attributes
    ----------
    batch
        Its name.
    """

    batch: str = ""


class RelvmToolchainError(RelvmError, RuntimeError):
    """No C compiler, or one that failed; the message has its command and its output."""


def located(error: RelvmError, origin: str) -> RelvmError:
    """An error like `error` that begins with `origin`, where in the source it is; `error` itself where that is empty
    or stated already."""
    if error.origin or not origin:
        return error
    found = type(error)(f"{origin}: {error}")
    found.origin = origin
    return found


def shortened(text: str, most: int = 100) -> str:
    """Return the text, or the beginning of one of more than `most` characters, for a message."""
    return text if len(text) <= most else f"{text[:most]}..."


@contextlib.contextmanager
def resources(what: str) -> Iterator[None]:
    """Give typed errors in a block that works on a program of any size and depth.

    Parameters
    ----------
    what
        The program, at the beginning of a message.

    Raises
    ------
    RelvmMemoryError
        There is not enough memory.
    RelvmRecursionError
        The program is nested more deeply than Python's stack allows.
    """
    try:
        yield
    except RelvmError:
        raise
    except MemoryError as error:
        raise RelvmMemoryError(f"{what}: not enough memory: {error}".removesuffix(": ")) from None
    except RecursionError:
        reason = "blocks, functions or calls of functions without result types are nested too deeply"
        raise RelvmRecursionError(
            f"{what}: {reason}; move inner parts into functions, and declare result types"
        ) from None


def near_matches(name: str, known: Iterable[str]) -> str:
    """`; did you mean a, b?` of what is known and near to `name`; an empty string where nothing is."""
    import difflib

    near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.6)
    return f"; did you mean {', '.join(near)}?" if near else ""


def expect_type(name: str, got: object, expected: Any, shown: str) -> None:
    """Raises RelvmTypeError: what was got for the argument `name`, `got`, is nothing of what is `expected`, which the
    message calls `shown`."""
    if not isinstance(got, expected):
        raise RelvmTypeError(f"{name}: expected {shown}, got {type(got).__name__}")


def expect_name(what: str, name: Any) -> None:
    """Raises RelvmTypeError: `name`, which messages call `what`, is no text, or no text that C and files can hold: it
    has a zero character or half of a surrogate pair."""
    expect_type(what, name, str, "a string")
    if "\0" in name:
        raise RelvmTypeError(f"{what}: {name!r} contains a NUL character")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise RelvmTypeError(f"{what}: {name!r} contains an unpaired surrogate") from None


def expect_path(what: str, path: Any) -> None:
    """Raises RelvmTypeError: `path`, which messages call `what`, is no str or PathLike that can name a file."""
    expect_type(what, path, (str, os.PathLike), "a str or PathLike")
    try:
        has_zero = b"\0" in os.fsencode(path)
    except UnicodeEncodeError:
        raise RelvmTypeError(f"{what}: {path!r} is not a valid file name") from None
    if has_zero:
        raise RelvmTypeError(f"{what}: {path!r} contains a NUL character")


def expect_choice(name: str, got: object, choices: tuple[str, ...]) -> None:
    """Raises RelvmArgumentError: what was got for the argument `name`, `got`, is none of the `choices`."""
    if not isinstance(got, str) or got not in choices:
        raise RelvmArgumentError(
            f"{name}={got!r}: expected one of {', '.join(choices)}{near_matches(str(got), choices)}"
        )
