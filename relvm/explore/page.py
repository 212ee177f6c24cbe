"""The page of an exploration: one HTML file with all that is in it."""

from __future__ import annotations

import html
import json
import re
from importlib.resources import files

from relvm.explore.pipeline import Exploration

_FRAME_HEIGHT = 640  # of the page in a notebook, in pixels


def page(exploration: Exploration) -> str:
    """The HTML."""
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
        for view in exploration.views
    ]
    data = json.dumps({"title": exploration.title, "stages": stages, "origins": list(origins)}, separators=(",", ":"))
    # Inside a script element, what would end it is written so that JSON reads the same.
    data = data.replace("</", "<\\/").replace("<!--", "<\\u0021--")
    folder = files("relvm.explore") / "page_files"
    parts = {name: (folder / f"view.{name}").read_text(encoding="utf-8") for name in ("html", "css", "js")}
    given = {"TITLE": html.escape(exploration.title), "CSS": parts["css"], "JS": parts["js"], "DATA": data}
    return re.sub(r"\$(TITLE|CSS|JS|DATA)\b", lambda match: given[match.group(1)], parts["html"])


def frame(exploration: Exploration) -> str:
    """The page as an element of another, whose styles and scripts it keeps away from."""
    content = html.escape(page(exploration), quote=True)
    return (
        f'<iframe srcdoc="{content}" style="width: 100%; height: {_FRAME_HEIGHT}px; border: 1px solid #ccc"></iframe>'
    )
