"""The self-contained HTML page of an exploration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from relvm.explore.draw.html_page import filled, framed
from relvm.explore.stages.view import View

_SCRIPTS = ("diff.js", "tokens.js", "settings.js", "view.js", "search.js", "navigation.js")


def page(title: str, views: Iterable[View]) -> str:
    """Return the HTML of the page."""
    return filled("view", _SCRIPTS, title, {"title": title, **stage_data(views)})


def live_page(title: str, views: Iterable[View], live: Any) -> str:
    """Return the HTML of the page with an editor.

    live: the data of the editor, for page_files/live.js.
    """
    data = {"title": title, **stage_data(views), "live": live}
    return filled("view", (*_SCRIPTS, "live.js"), title, data, editor="live")


def stage_data(views: Iterable[View]) -> dict[str, Any]:
    """Return the stages in the form of page_files/view.js: their lines, and the source locations of each line."""
    origins: dict[str, int] = {}
    stages = [
        {
            "name": view.name,
            "about": view.about,
            "ms": round(view.seconds * 1000, 2),
            "changed": view.changed,
            "ir": view.is_ir,
            "lines": [line.text for line in view.lines],
            "origins": [[origins.setdefault(o, len(origins)) for o in line.origins] for line in view.lines],
        }
        for view in views
    ]
    return {"stages": stages, "origins": list(origins)}


def frame(title: str, views: Iterable[View]) -> str:
    """Return the page as an iframe, which isolates it from the surrounding page."""
    return framed(page(title, views))
