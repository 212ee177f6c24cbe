"""The self-contained HTML page of an exploration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from relvm.explore.draw.html_page import as_iframe, fill_template
from relvm.explore.stages.view import View
from relvm.runtime.timeline import Timeline

_SCRIPTS = (
    "diff.js",
    "tokens.js",
    "settings.js",
    "view.js",
    "search_bar.js",
    "search.js",
    "graph_view.js",
    "navigation.js",
)
_MAX_CALLS = 100_000  # limit on the calls of a timeline, which then take about 5 MB


def page(
    title: str, views: Iterable[View], graph: str = "", graph_stage: str = "", timeline: Timeline | None = None
) -> str:
    """Return the self-contained HTML page that shows the stages of a model.

    Parameters
    ----------
    title
        Title of the page.
    views
        The stages.
    graph
        The HTML page of a graph, or "" for no graph.  The page gets a button that shows the graph in front of the
        stages.
    graph_stage
        Name of the stage whose values the graph shows.
    timeline
        The timeline to show below the stages, or None.
    """
    data = {"title": title, **stage_data(views), "graph": graph, "graphStage": graph_stage}
    if timeline is None:
        return fill_template("view", _SCRIPTS, title, data)
    data["timeline"] = _timeline_data(timeline)
    return fill_template("view", (*_SCRIPTS, "timeline.js"), title, data, parts=("timeline",))


def live_page(title: str, views: Iterable[View], live: Any) -> str:
    """Return the HTML page of `relvm explore`, which has an editor.

    live: the data of the editor, for page_files/live.js.
    """
    data = {"title": title, **stage_data(views), "live": live}
    return fill_template("view", (*_SCRIPTS, "live.js"), title, data, parts=("live",))


def stage_data(views: Iterable[View]) -> dict[str, Any]:
    """Return the stages as JSON data for page_files/view.js: their lines, and the source locations of each line."""
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


def _timeline_data(timeline: Timeline) -> dict[str, Any]:
    """Return the longest calls of a timeline as JSON data for page_files/timeline.js.

    The calls are in the order of their starts.  Times are in microseconds.
    """
    longest = sorted(timeline.calls, key=lambda call: -call.seconds)[:_MAX_CALLS]
    names: dict[str, int] = {}
    calls = [
        [
            names.setdefault(call.name, len(names)),
            call.kind,
            1e6 * call.start,
            1e6 * call.seconds,
            call.bytes,
            call.depth,
        ]
        for call in sorted(longest, key=lambda call: (call.start, call.depth))
    ]
    omitted = len(timeline.calls) - len(longest) + timeline.dropped
    return {"function": timeline.function, "names": list(names), "calls": calls, "omitted": omitted}


def page_iframe(
    title: str, views: Iterable[View], graph: str = "", graph_stage: str = "", timeline: Timeline | None = None
) -> str:
    """Return the page of `page` in an iframe, isolated from the surrounding page.

    title: the title of the page.
    views: the stages.
    graph: the HTML page of a graph, or "" for no graph.
    graph_stage: the name of the stage whose values the graph shows.
    timeline: the timeline to show below the stages, or None.
    """
    return as_iframe(page(title, views, graph, graph_stage, timeline))
