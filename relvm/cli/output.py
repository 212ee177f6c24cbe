"""Output of the subcommands.  All text is printed through this module, which escapes control characters, because names
and texts from a file may contain them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from types import MappingProxyType
from typing import TextIO

from relvm.cli.colors import Style, colored
from relvm.quoting import terminal, terminal_lines, terminal_message

_is_quiet = _is_verbose = False
_MAX_MESSAGE = 4000  # limit on the characters of an error message


class NoReaderError(Exception):
    """Raised if the reader of standard output has closed the pipe, as `head` does."""


def prepare_streams() -> None:
    """Prepare the standard streams for printing any text.

    A stream that was closed when the process started is replaced by the null device.  Otherwise the next file that is
    opened would get its file descriptor, and printed text would be written to that file.  Characters that the encoding
    of the terminal does not support are escaped.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  (open until the process ends)
        if isinstance(stream := getattr(sys, name), TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def put(*values: object, end: str = "\n", styles: Mapping[int, Style] = MappingProxyType({})) -> None:
    """Print values on standard output.

    Parameters
    ----------
    values
        The values, which are separated by spaces.
    end
        The text after the last value.
    styles
        The style of each line that is not plain, by line number, counted from 0.

    Raises
    ------
    NoReaderError, OSError
        Standard output cannot be written.
    """
    with _writing_to(sys.stdout):
        lines = terminal_lines(" ".join(map(str, values))).split("\n")
        print("\n".join(colored(line, styles.get(k), sys.stdout) for k, line in enumerate(lines)), end=end)


def put_json(value: object) -> None:
    """Print a value as JSON on standard output.  Raise NoReaderError or OSError if standard output cannot be
    written.
    """
    put(json.dumps(value, indent=2))


def flush() -> None:
    """Write the buffered text of standard output.  Raise NoReaderError or OSError if standard output cannot be
    written.
    """
    if sys.stdout.closed:  # the language server closes it at its end
        return
    with _writing_to(sys.stdout):
        sys.stdout.flush()


def set_verbosity(verbose: bool, quiet: bool) -> None:
    """Set which messages are printed on standard error.

    verbose: also print messages that relvm logs at level INFO.   quiet: print only errors.
    """
    global _is_quiet, _is_verbose
    _is_quiet, _is_verbose = quiet, verbose
    if verbose:
        import logging  # imported here, because few commands need it

        logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")


def has_progress() -> bool:
    """Return whether to show progress: on a terminal, without --quiet, and without --verbose, which logs the steps."""
    return sys.stderr.isatty() and not _is_quiet and not _is_verbose


def note(text: str) -> None:
    """Print a line on standard error, unless --quiet is given."""
    if _is_quiet:
        return
    report(f"relvm: {terminal(text)}\n")


def complain(text: object) -> None:
    """Print an error on standard error."""
    report(f"relvm: {error_label()} {escaped_message(str(text))}\n")


def error_label() -> str:
    """Return the word that starts the message of an error."""
    return colored("error:", "bad", sys.stderr)


def escaped_message(text: str) -> str:
    """Return the message of an error, escaped for a terminal.  The middle of a very long message is left out."""
    shown = terminal_message(text)
    half = _MAX_MESSAGE // 2
    return shown if len(shown) <= _MAX_MESSAGE else f"{shown[:half]} ... {shown[-half:]}"


def show_progress(text: str | None) -> None:
    """Replace the last line of standard error, which must be a terminal, by a line of progress.

    text: the new line, or None to remove the line.
    """
    report("\r\x1b[K" if text is None else f"\r\x1b[Krelvm: {terminal(text)}")


def report(text: str) -> None:
    """Write to standard error.  Errors are ignored, because they could not be reported."""
    with suppress(NoReaderError, OSError), _writing_to(sys.stderr):
        print(text, end="", file=sys.stderr, flush=True)


@contextmanager
def _writing_to(stream: TextIO) -> Iterator[None]:
    """Context manager that handles an OSError of a block that writes to a standard stream.

    If the pipe is closed, raise NoReaderError.  For any other error, raise an OSError that names standard output.  The
    stream is redirected to the null device, because Python flushes it again at exit.
    """
    try:
        yield
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if isinstance(error, BrokenPipeError):
            raise NoReaderError from None
        raise OSError(error.errno, error.strerror, "standard output") from None
