"""Self-contained HTML pages: styles, scripts and data are in one file, which can be opened without a network."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from relvm.quoting import html_data, html_text

_PART = re.compile(r"^\$(LIVE|TIMELINE)\n", re.MULTILINE)
_FRAME_HEIGHT = 640  # height of a page in a notebook, in pixels


def fill_template(name: str, scripts: Sequence[str], title: str, data: Any, *, parts: Sequence[str] = ()) -> str:
    """Return an HTML page, built from the template page.html and other files in the folder page_files.

    name: the page's body is `name`.html, and its style is `name`.css.
    scripts: the names of its JavaScript files.
    data: JSON data, which is inserted into the page.
    parts: names of optional parts.  For each of them, the line $NAME in the body is replaced by the file NAME.html, and
    NAME.css is added to the style.
    """
    body = _PART.sub(
        lambda match: _read(f"{match[1].lower()}.html") if match[1].lower() in parts else "", _read(f"{name}.html")
    )
    given = {
        "TITLE": html_text(title),
        "CSS": "".join(_read(f"{each}.css") for each in (name, *parts)),
        "JS": "\n".join(map(_read, scripts)),
        "DATA": html_data(data),
    }
    template = _read("page.html").replace("$BODY", body.rstrip())
    return re.sub(r"\$(TITLE|CSS|JS|DATA)\b", lambda match: given[match.group(1)], template)


def as_iframe(page: str, text: str, picture: bytes | None = None) -> str:
    """Return an HTML page in an iframe, which isolates it from the styles and scripts of the surrounding page.

    If a notebook is not trusted, Jupyter removes the iframe.  It then shows the text and the picture, which the iframe
    covers otherwise.

    text: a short description of the page.
    picture: a picture of its contents in the format PNG, or None.
    """
    size = f"box-sizing: border-box; width: 100%; height: {_FRAME_HEIGHT}px"
    frame = f"{size}; position: absolute; top: 0; left: 0; border: 1px solid #ccc; background: white"
    image = f'<img src="data:image/png;base64,{base64.b64encode(picture).decode()}">' if picture else ""
    below = f"<pre>{html_text(text)}</pre>{image}"
    return (
        f'<div style="{size}; position: relative; overflow: hidden">{below}'
        f'<iframe srcdoc="{html_text(page)}" style="{frame}"></iframe></div>'
    )


def _read(name: str) -> str:
    return (files("relvm") / "explore" / "page_files" / name).read_text(encoding="utf-8")
