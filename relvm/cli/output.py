"""The terminal: all that the subcommands print goes through here, since names and texts of a file may be in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import TextIO

from relvm.quoting import terminal, terminal_lines, terminal_message

_MAX_MESSAGE = 4000  # characters of an error


class NoReaderError(Exception):
    """Whoever read our standard output has gone, as `head` does."""


def prepare_streams() -> None:
    """Make the standard streams ready for any text.

    Those that were closed when the process began become the null device: the next files to be opened would have their
    numbers, and would receive what is printed.  What the encoding of a terminal does not have becomes an escape.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  (as long as the process)
        if isinstance(stream := getattr(sys, name), TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def put(*values: object, end: str = "\n") -> None:
    """Print values on standard output.

    Raises
    ------
    NoReaderError, OSError
        Standard output takes no more.
    """
    with _writing(sys.stdout):
        print(terminal_lines(" ".join(map(str, values))), end=end)


def flush() -> None:
    """Write what standard output still buffers.  Raises as `put` does."""
    with _writing(sys.stdout):
        sys.stdout.flush()


def note(text: str) -> None:
    """Print a line on standard error."""
    report(f"relvm: {terminal(text)}\n")


def complain(text: object) -> None:
    """Print an error on standard error."""
    report(f"relvm: error: {message_text(str(text))}\n")


def message_text(text: str) -> str:
    """Return the message of an error for a terminal, without the middle of a very long one."""
    shown = terminal_message(text)
    half = _MAX_MESSAGE // 2
    return shown if len(shown) <= _MAX_MESSAGE else f"{shown[:half]} ... {shown[-half:]}"


def update(text: str, *, is_last: bool) -> None:
    """Print a line of progress on standard error, which on a terminal takes the place of the one before."""
    start, end = ("\r\x1b[K", "\n" if is_last else "") if sys.stderr.isatty() else ("", "\n")
    report(f"{start}relvm: {terminal(text)}{end}")


def report(text: str) -> None:
    """Write to standard error.  Where that fails, there is nobody to tell."""
    with suppress(NoReaderError, OSError), _writing(sys.stderr):
        print(text, end="", file=sys.stderr, flush=True)


@contextmanager
def _writing(stream: TextIO) -> Iterator[None]:
    """A block that writes to a standard stream.

    If writing fails, the stream goes to the null device from then on: Python flushes it once more at its end.
    """
    try:
        yield
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if isinstance(error, BrokenPipeError):
            raise NoReaderError from None
        raise OSError(error.errno, error.strerror, "standard output") from None
