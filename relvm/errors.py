"""The exceptions of relvm.  csrc/tables/status.def defines the exception class for each status code of the runtime."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
from typing import TYPE_CHECKING, Any

from relvm.quoting import terminal_message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class RelvmError(Exception):
    """Base class of all exceptions of relvm.  `str(error)` contains no control characters, so it is safe to print.

    Attributes
    ----------
    origin
        The source location with which the message begins: `file:line:column` in a source text, the file and line of the
        Python code that called a builder, or a node of an ONNX model.  Empty if the message has no location.
    reason, filename, lineno, offset
        For errors in the text form or in a script only: the message without its location, and the parts of the
        location.  Lines and columns are counted from 1.
    """

    origin: str = ""
    reason: str
    filename: str | None
    lineno: int | None
    offset: int | None

    def __str__(self) -> str:
        return terminal_message(super().__str__())


class RelvmTypeError(RelvmError, TypeError):
    """A value or an expression has the wrong kind, dtype or rank."""


class RelvmShapeError(RelvmTypeError, ValueError):
    """A shape does not match the shape that the program requires.

    Attributes
    ----------
    unproven
        The two dimensions that an operator requires to be equal, if this equality can be neither proven nor disproved.
        Otherwise None.
    """

    unproven: tuple | None = None


class RelvmArgumentError(RelvmError, TypeError):
    """The number of arguments is wrong, or an argument is unknown or has an invalid value."""


class RelvmIndexError(RelvmError, IndexError):
    """An index is out of range."""


class RelvmArithmeticError(RelvmError, ArithmeticError):
    """An arithmetic operation has no result, such as an integer division by zero or a shift by a negative number."""


class RelvmAssertionError(RelvmError, AssertionError):
    """An assertion of the program does not hold."""


class RelvmMemoryError(RelvmError, MemoryError):
    """An allocation failed or exceeds its limit."""


class RelvmRecursionError(RelvmError, RecursionError):
    """The value stack or call depth of a machine or the C stack of the thread is exhausted, or a program is nested too
    deeply to be built."""


class RelvmNameError(RelvmError, LookupError):
    """A function, operator, variable, input or similar of the given name does not exist.

    The message lists similar names.
    """


class RelvmFormatError(RelvmError, ValueError):
    """A file is damaged, truncated or malformed."""


class RelvmFileError(RelvmError, OSError):
    """A file or folder cannot be read or written.

    The attributes errno, strerror and filename are those of the OSError of the operating system.
    """


class RelvmUnsupportedError(RelvmError, NotImplementedError):
    """This version, build, target or machine does not support an operation.  The message describes the operation."""


class RelvmNotInstalledError(RelvmUnsupportedError, ModuleNotFoundError):
    """An operation needs a package that is not installed.  The message states what to install.

    For example, `relvm-runtime` runs compiled models, but does not contain the compiler.
    """


class RelvmBusyError(RelvmError, RuntimeError):
    """A virtual machine is used by two threads at once, or a name is already taken."""


class RelvmInterrupted(RelvmError):
    """The run was stopped from outside."""


class RelvmTimeoutError(RelvmError, TimeoutError):
    """A run exceeded its limit of steps or time, or a build its limit of time."""


class RelvmCallbackError(RelvmError, RuntimeError):
    """A packed function of the host returned an error without raising a Python exception."""


class RelvmSyntaxError(RelvmError, SyntaxError):
    """A program in the text form, or a script, has a syntax error.  The message contains the line and the column."""

    def __init__(self, message: str = "") -> None:
        super().__init__(terminal_message(message))  # a traceback shows `msg`

    def __str__(self) -> str:
        return terminal_message(str(self.msg))  # SyntaxError.__str__ would add the location again


class RelvmVerifyError(RelvmError):
    """A module violates a rule of its stage.  The message contains the function, the binding and the rule."""


class RelvmBatchError(RelvmError):
    """A batch of a run on a cluster failed.  `__cause__` is the original exception.

    Attributes
    ----------
    batch
        The name of the batch.
    """

    batch: str = ""


class RelvmToolchainError(RelvmError, RuntimeError):
    """There is no C compiler, or the compiler failed.

    If the compiler failed, the message contains its command and output.
    """


def message_with_notes(error: BaseException) -> str:
    """Return the message of an error, followed by its notes, such as the stack trace of a failed run."""
    return "\n".join((str(error), *getattr(error, "__notes__", ())))


def located(error: RelvmError, origin: str) -> RelvmError:
    """Return a copy of an error with the source location `origin` in front of the message.

    If `origin` is empty, or the error already has a location, return the error itself.
    """
    if error.origin or not origin:
        return error
    found = type(error)(f"{origin}: {error}")
    found.origin = origin
    return found


def shortened(text: str, max_length: int = 100) -> str:
    """Return a text for use in a message.  If it has more than `max_length` characters, it is truncated."""
    return text if len(text) <= max_length else f"{text[:max_length]}..."


@contextlib.contextmanager
def resources(what: str) -> Iterator[None]:
    """A context manager that converts a MemoryError or RecursionError to the corresponding relvm error.

    Parameters
    ----------
    what
        The beginning of the error message, such as the name of the model or of the compiler pass that runs.

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
            f"{what}: {reason}; move inner blocks into functions of their own, and declare the functions' result types"
        ) from None


@contextlib.contextmanager
def file_errors() -> Iterator[None]:
    """A context manager that converts an OSError to a RelvmFileError."""
    try:
        yield
    except RelvmError:
        raise
    except OSError as error:
        raise RelvmFileError(error.errno, error.strerror, error.filename) from None


_MAX_NAMES = 10  # maximum number of names in a message
_PLURALS = {"axis": "axes", "entry": "entries", "index": "indices"}  # those that do not just end in s
_MAX_NEAR = 3  # maximum number of suggestions in a message
_PART = 3  # minimum number of characters that are looked for inside other names
_MAX_FILES = 5000  # maximum number of files that are compared with the name of a missing file


def near_matches(name: str, known: Iterable[str]) -> str:
    """Return the suggestion `; did you mean a, b?` with the names in `known` that are similar to `name`.

    If none is similar in its spelling, suggest the names that contain `name`, or that `name` contains.  If there are
    none either, return an empty string.
    """
    return _suggestion(_similar(name, known))


def _suggestion(names: list[str]) -> str:
    return f"; did you mean {', '.join(names)}?" if names else ""


def _similar(name: str, known: Iterable[str], cutoff: float = 0.6) -> list[str]:
    import difflib

    folded = {each.casefold(): each for each in known}
    wanted = name.casefold()
    near = difflib.get_close_matches(wanted, list(folded), n=_MAX_NEAR, cutoff=cutoff)
    if not near and len(wanted) >= _PART:
        near = [each for each in folded if wanted in each or (len(each) > _PART and each in wanted)]
        near = sorted(near, key=lambda each: not each.startswith(wanted))[:_MAX_NEAR]
    return [folded[each] for each in near]


def missing_file(path: str | os.PathLike[str]) -> FileNotFoundError:
    """Return the error for the file `path`, which does not exist.

    It suggests files of the same folder with similar names.  It suggests files with another suffix only if no file with
    the same suffix has a similar name.
    """
    folder, name = os.path.split(os.fspath(path))
    stem, suffix = os.path.splitext(name)
    files: list[str] = []
    with contextlib.suppress(OSError), os.scandir(folder or ".") as entries:
        files = sorted(each.name for each in itertools.islice(entries, _MAX_FILES) if each.name != name)
    stems = [root for root, ending in map(os.path.splitext, files) if ending == suffix]
    near = [each + suffix for each in _similar(stem, stems)]
    if not near:
        others = [file for file in files if _similar(stem, [os.path.splitext(file)[0]])]
        near = _similar(name, others) or others[:_MAX_NEAR] or _similar(name, files, 0.8)
    return FileNotFoundError(errno.ENOENT, f"{os.strerror(errno.ENOENT)}{_suggestion(near)}", os.fspath(path))


def known_names(name: str, known: Iterable[str]) -> str:
    """Return the suggestion of `near_matches`, or `; expected one of a, b` if no name in `known` is similar."""
    names = list(known)
    shown = ", ".join([*names[:_MAX_NAMES], *(["..."] if len(names) > _MAX_NAMES else [])])
    return near_matches(name, names) or (f"; expected one of {shown}" if names else "")


def counted(number: int, noun: str) -> str:
    """Return a number with a noun, such as "1 item" or "2 items"."""
    return f"{number} {noun if number == 1 else _PLURALS.get(noun, f'{noun}s')}"


def expect_type(name: str, got: object, expected: Any, shown: str) -> None:
    """Raise RelvmTypeError if an argument does not have the expected type.

    name: the name of the argument, for the message.
    got: the argument.
    expected: a type or a tuple of types.
    shown: a description of the expected types, for the message.
    """
    if not isinstance(got, expected):
        raise RelvmTypeError(f"{name}: expected {shown}, got {type(got).__name__}")


def expect_name(what: str, name: Any) -> None:
    """Raise RelvmTypeError if `name` is not a str, or contains a NUL character or an unpaired surrogate.

    C code and files cannot represent these characters.   what: a description of the name, for the message.
    """
    expect_type(what, name, str, "a string")
    if "\0" in name:
        raise RelvmTypeError(f"{what}: {name!r} contains a NUL character")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise RelvmTypeError(f"{what}: {name!r} contains an unpaired surrogate") from None


def expect_path(what: str, path: Any) -> None:
    """Raise RelvmTypeError if `path` is not a str or PathLike that is a valid file name.

    what: a description of the path, for the message.
    """
    expect_type(what, path, (str, os.PathLike), "a str or PathLike")
    try:
        has_zero = b"\0" in os.fsencode(path)
    except UnicodeEncodeError:
        raise RelvmTypeError(f"{what}: {path!r} is not a valid file name") from None
    if has_zero:
        raise RelvmTypeError(f"{what}: {path!r} contains a NUL character")


def not_a_choice(got: object, choices: Iterable[str]) -> str:
    """Return the message that `got` is not one of `choices`.  It lists the choices, and suggests similar ones."""
    names = list(choices)
    return f"expected one of {', '.join(names)}, got {got!r}{near_matches(str(got), names)}"


def expect_choice(name: str, got: object, choices: tuple[str, ...]) -> None:
    """Raise RelvmArgumentError if `got`, the value of the argument `name`, is not one of `choices`."""
    if not isinstance(got, str) or got not in choices:
        raise RelvmArgumentError(
            f"{name}={got!r}: expected one of {', '.join(choices)}{near_matches(str(got), choices)}"
        )
