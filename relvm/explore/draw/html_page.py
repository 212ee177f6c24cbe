"""Self-contained HTML pages: styles, scripts and data are in one file, which can be opened without a network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from relvm.quoting import html_data, html_text

_FRAME_HEIGHT = 640  # pixels; of a page in a notebook


def filled(name: str, scripts: Sequence[str], title: str, data: Any, *, editor: str = "") -> str:
    """Return an HTML page: the template page_files/page.html with `name`.html, `name`.css, the scripts and `data`.

    scripts: names of JavaScript files.  data: inserted into the page as JSON.  editor: the name of an HTML and a CSS
    file that are inserted as well, or "".
    """
    script = "\n".join(map(_read, scripts))
    given = {"TITLE": html_text(title), "CSS": _read(f"{name}.css"), "JS": script, "DATA": html_data(data)}
    body = _read(f"{name}.html").rstrip().replace("$EDITOR", _read(f"{editor}.html") if editor else "")
    if editor:
        given["CSS"] += _read(f"{editor}.css")
    template = _read("page.html").replace("$BODY", body)
    return re.sub(r"\$(TITLE|CSS|JS|DATA)\b", lambda match: given[match.group(1)], template)


def framed(page: str) -> str:
    """Return the page as an iframe, which isolates it from the styles and scripts of the surrounding page."""
    style = f"box-sizing: border-box; width: 100%; height: {_FRAME_HEIGHT}px; border: 1px solid #ccc"
    return f'<iframe srcdoc="{html_text(page)}" style="{style}"></iframe>'


def _read(name: str) -> str:
    return (files("relvm") / "explore" / "page_files" / name).read_text(encoding="utf-8")
