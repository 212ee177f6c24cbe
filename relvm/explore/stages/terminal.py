"""Table of stages for a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from relvm.errors import RelvmUnsupportedError
from relvm.explore.stages.view import View
from relvm.quoting import terminal


def print_stages(title: str, views: Iterable[View]) -> None:
    """Print a table of stages: name, time, number of lines, whether the stage changed anything, and a description.

    Raises
    ------
    RelvmUnsupportedError
        rich is not installed.
    """
    try:
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table
    except ImportError:
        raise RelvmUnsupportedError("printing the stages requires rich: pip install 'relvm[explore]'") from None
    table = Table("stage", "ms", "lines", "", "what it does", title=escape(terminal(title)), title_justify="left")
    for view in views:
        milliseconds = f"{view.seconds * 1000:.1f}"
        changed = "changed" if view.changed else ""
        table.add_row(
            view.name, milliseconds, str(len(view.lines)), changed, view.about, style="" if changed else "dim"
        )
    Console().print(table)
