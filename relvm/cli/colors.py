"""Terminal colors, which mark what matters in tables and messages."""

from __future__ import annotations

import os
from typing import Literal, TextIO

Style = Literal["good", "bad", "hot"]

_CODES: dict[Style, str] = {"good": "32", "bad": "1;31", "hot": "1;33"}  # green, bold red, bold yellow


def has_color(stream: TextIO) -> bool:
    """Return whether to print colors on a stream.

    By default, a terminal has colors unless TERM is "dumb", and other streams have no colors.  A non-empty NO_COLOR
    disables colors on all streams.  Otherwise, a non-empty FORCE_COLOR enables them on all streams.
    Source: no-color.org and force-color.org.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return os.environ.get("TERM") != "dumb" and stream.isatty()


def colored(text: str, style: Style | None, stream: TextIO) -> str:
    """Return `text` in the color of `style` if `stream` has colors, otherwise unchanged.  `text` must be escaped."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if style and text and has_color(stream) else text
