"""The self-contained HTML page of an exploration."""

from __future__ import annotations

from collections.abc import Iterable

from relvm.explore.draw.html_page import filled, framed
from relvm.explore.stages.view import View

_SCRIPTS = ("diff.js", "tokens.js", "settings.js", "view.js", "search.js", "graph_view.js", "navigation.js")


def page(title: str, views: Iterable[View], graph: str = "", graph_stage: str = "") -> str:
    """Return the HTML of the page.

    Parameters
    ----------
    title
        Title of the page.
    views
        The stages.
    graph
        The page of a graph, which opens over the stages, or "".
    graph_stage
        Name of the stage whose values the graph shows.
    """
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
    data = {"title": title, "stages": stages, "origins": list(origins), "graph": graph, "graphStage": graph_stage}
    return filled("view", _SCRIPTS, title, data)


def frame(title: str, views: Iterable[View], graph: str = "", graph_stage: str = "") -> str:
    """Return the page as an iframe, which isolates it from the surrounding page."""
    return framed(page(title, views, graph, graph_stage))
