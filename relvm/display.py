"""Display of objects, as short text, and as HTML in a notebook.

Names in models are untrusted, so everything is escaped.  The HTML contains no scripts and loads no other files.  Its
only colors are translucent, so it is legible in light and dark themes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from relvm.quoting import html_text, terminal_lines

MAX_LINES = 10
MAX_COLUMNS = 120
MAX_HEIGHT = 480  # height of a box in a notebook, in pixels
_HTML_LINES = 1000  # maximum lines of a text, and rows of a table
_HTML_COLUMNS = 1000

_BOX = f"max-height: {MAX_HEIGHT}px; overflow: auto"
_EDGE = "1px solid rgba(128, 128, 128, 0.4)"
_MARKED = ' style="background: rgba(255, 0, 0, 0.2)"'


class Displayed:
    """Base class of objects that are displayed as text in a terminal and as HTML in a notebook.

    A subclass defines `__str__`, which returns the complete text.  `repr` returns a short form of this text.  The HTML
    is the text in a box, unless the subclass overrides `_repr_html_`.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return short_text(str(self))

    def _repr_html_(self) -> str:
        return html_lines(str(self))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        """Return the display forms of the object by MIME type, for Jupyter."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


def short_text(text: str, lines: int = MAX_LINES, columns: int = MAX_COLUMNS) -> str:
    """Return the beginning and the end of a text, escaped for a terminal.

    Parameters
    ----------
    text
        The text.  A newline at its end does not count as a line.
    lines
        The maximum number of lines.
    columns
        The maximum number of characters in a line.
    """
    given = text.removesuffix("\n").split("\n")
    if len(given) > lines:
        tail = (lines - 1) // 2
        head = lines - 1 - tail
        given = [*given[:head], f"... {len(given) - head - tail} lines more", *given[len(given) - tail :]]
    return "\n".join(_short_line(line, columns) for line in given)


def _short_line(line: str, columns: int) -> str:
    shown = terminal_lines(line[: columns + 1])
    return shown if len(shown) <= columns else f"{shown[: columns - 3]}..."


def text_table(rows: Iterable[Sequence[str]], left: Collection[int] = (0,)) -> list[str]:
    """Return the lines of a table whose columns are aligned.

    Parameters
    ----------
    rows
        The cells of each row.  The first row contains the column headings.
    left
        The indices of the left-aligned columns.  The others are right-aligned.
    """
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = zip(row, widths, strict=True)
        padded = (cell.ljust(width) if k in left else cell.rjust(width) for k, (cell, width) in enumerate(cells))
        lines.append("  ".join(padded).rstrip())
    return lines


def html_lines(text: str, title: str = "") -> str:
    """Return a text as HTML, in a scrollable box with a title above it.

    In a long text, lines in the middle are omitted.
    """
    shown = html_text(short_text(text, _HTML_LINES, _HTML_COLUMNS))
    return f'{_title(title)}<pre style="{_BOX}; line-height: 1.3; white-space: pre">{shown}</pre>'


def html_box(content: str, title: str = "") -> str:
    """Return HTML content in a scrollable box with a title above it.

    content: the HTML, in which texts must already be escaped.
    """
    return f'{_title(title)}<div style="{_BOX}">{content}</div>'


def html_table(
    rows: Iterable[Sequence[str]], title: str = "", left: Collection[int] = (0,), marked: Collection[int] = ()
) -> str:
    """Return a table as HTML, in a scrollable box with a title above it.  The end of a long table is omitted.

    Parameters
    ----------
    rows
        The cells of each row.  The first row contains the column headings.
    title
        The text above the table.
    left
        The indices of the left-aligned columns.  The others are right-aligned.
    marked
        The indices of the rows with a red background.  The row below the headings is row 0.
    """
    heads, *body = rows
    styles = [f"text-align: {'left' if k in left else 'right'}; white-space: pre" for k in range(len(heads))]

    def table_row(cells: Sequence[str], tag: str) -> str:
        pairs = zip(styles, cells, strict=True)
        return "".join(f'<{tag} style="{style}">{html_text(cell)}</{tag}>' for style, cell in pairs)

    shown = (
        f"<tr{_MARKED if k in marked else ''}>{table_row(row, 'td')}</tr>" for k, row in enumerate(body[:_HTML_LINES])
    )
    more = f"<p>... {len(body) - _HTML_LINES} rows more</p>" if len(body) > _HTML_LINES else ""
    head = f'<thead style="border-bottom: {_EDGE}"><tr>{table_row(heads, "th")}</tr></thead>'
    table = f'<table style="margin: 0; font-family: monospace">{head}<tbody>{"".join(shown)}</tbody></table>'
    return html_box(f"{table}{more}", title)


def _title(title: str) -> str:
    return f'<div style="margin: 8px 0 4px"><b>{html_text(short_text(title))}</b></div>' if title else ""
