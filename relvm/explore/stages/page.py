"""The self-contained HTML page of an exploration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from relvm.explore.draw.graph import all_items
from relvm.explore.draw.html_page import fill_template
from relvm.explore.stages.view import View
from relvm.explore.views.interactive_graph import GraphPage
from relvm.ir.expr import Binding
from relvm.runtime.timeline import Timeline

_SCRIPTS = (
    "diff.js",
    "tokens.js",
    "settings.js",
    "view.js",
    "search_bar.js",
    "search.js",
    "graph_view.js",
)
_LAST_SCRIPT = "navigation.js"  # shows what the address says, when all panes have their sizes
_MAX_CALLS = 100_000  # limit on the calls of a timeline, which then take about 5 MB


def page(title: str, views: Iterable[View], graph: GraphPage | None = None, timeline: Timeline | None = None) -> str:
    """Return the self-contained HTML page that shows the stages of a model.

    Parameters
    ----------
    title
        Title of the page.
    views
        The stages.
    graph
        The dataflow graph of the model, or None.  The page gets a button that shows the graph in front of the stages.
    timeline
        The timeline to show below the stages, or None.  Kernels then show their share of its time.
    """
    data = {"title": title, **stage_data(views)}
    if graph is not None:
        data |= {"graph": graph.embedded_page(), **graph_data(graph)}
    if timeline is None:
        return fill_template("view", (*_SCRIPTS, _LAST_SCRIPT), title, data)
    data["timeline"] = _timeline_data(timeline)
    data["times"] = kernel_times(timeline)
    return fill_template("view", (*_SCRIPTS, "timeline.js", _LAST_SCRIPT), title, data, parts=("timeline",))


def graph_data(graph: GraphPage) -> dict[str, Any]:
    """Return JSON data that links the stages to a graph: its stage, the kernels of values, and the names of sizes."""
    return {"graphStage": graph.stage, "sizes": graph.graph.sizes, "kernels": _kernels_by_value(graph)}


def _kernels_by_value(graph: GraphPage) -> dict[str, str]:
    """Return the kernel that computes each value, by the name of the value in the text of the graph's stage.

    A name that stands for values of several kernels, in different functions, is left out.
    """
    found: dict[str, set[str]] = {}
    for item in all_items(graph.graph.items):
        if isinstance(item.binding, Binding) and item.binding.var in graph.kernels:
            found.setdefault(item.name, set()).add(graph.kernels[item.binding.var])
    return {name: next(iter(kernels)) for name, kernels in found.items() if len(kernels) == 1}


def kernel_times(timeline: Timeline) -> dict[str, Any]:
    """Return the total time of a run in seconds, and the time and number of the calls of each kernel, as JSON data.

    Packed functions count as kernels, because they are the kernels of target "numpy".
    """
    kernels: dict[str, dict[str, float]] = {}
    for call in timeline.calls:
        if call.kind in ("kernel", "packed"):
            row = kernels.setdefault(call.name, {"seconds": 0.0, "count": 0})
            row["seconds"] += call.seconds
            row["count"] += 1
    return {"seconds": sum(call.seconds for call in timeline.calls if call.depth == 0), "kernels": kernels}


def live_page(title: str, views: Iterable[View], live: Any) -> str:
    """Return the HTML page of `relvm explore`, which has an editor.

    live: the data of the editor, for page_files/live.js.
    """
    data = {"title": title, **stage_data(views), "live": live}
    return fill_template(
        "view", (*_SCRIPTS, _LAST_SCRIPT, "program_link.js", "folding.js", "live.js"), title, data, parts=("live",)
    )


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
