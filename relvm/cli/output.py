"""The terminal: all that the subcommands print goes through here, since names and texts of a file may be in it."""

from __future__ import annotations

import sys

from relvm.quoting import terminal, terminal_lines, terminal_message


def put(*values: object, end: str = "\n") -> None:
    """Print values on standard output."""
    print(terminal_lines(" ".join(map(str, values))), end=end)


def note(text: str) -> None:
    """Print a line on standard error."""
    print(f"relvm: {terminal(text)}", file=sys.stderr)


def complain(text: object) -> None:
    """Print an error on standard error."""
    print(f"relvm: error: {terminal_message(str(text))}", file=sys.stderr)


def update(text: str, *, is_last: bool) -> None:
    """Print a line of progress on standard error, which on a terminal takes the place of the one before."""
    start, end = ("\r\x1b[K", "\n" if is_last else "") if sys.stderr.isatty() else ("", "\n")
    print(f"{start}relvm: {terminal(text)}", end=end, file=sys.stderr, flush=True)
