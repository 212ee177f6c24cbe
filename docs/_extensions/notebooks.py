"""A directive that shows a notebook of notebooks/ with its stored outputs: `{relvm-notebook} first_steps`.

The directive is the whole document.  It is replaced by Markdown before the document is parsed, so that headings and
links work as on other pages.  Links to notebooks lead to their pages.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from relvm.quoting import html_text

_FOLDER = Path(__file__).resolve().parents[2] / "notebooks"


def _replace(app: Sphinx, docname: str, source: list[str]) -> None:
    found = re.fullmatch(r"```\{relvm-notebook\} (\w+)\n```\n", source[0])
    if found:
        path = _FOLDER / f"{found[1]}.ipynb"
        app.env.note_dependency(str(path), docname=docname)
        source[0] = markdown_of(json.loads(path.read_text(encoding="utf-8")))
    source[0] = re.sub(r"\]\(\.\./notebooks/(\w+)\.ipynb\)", r"](/notebooks/\1.md)", source[0])


def markdown_of(notebook: dict[str, Any]) -> str:
    """Return the cells and the outputs of a notebook as Markdown."""
    return "\n\n".join(_cell(cell) for cell in notebook["cells"]) + "\n"


def _cell(cell: dict[str, Any]) -> str:
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return text
    shown = "\n\n".join([_block(_language(text), text), *map(_output, cell["outputs"])])
    if "solution" in cell["metadata"].get("tags", ()):
        return (
            f'<details class="solution"><summary>Solution</summary>\n\n{shown}\n\n</details>'
        )
    return shown


def _language(text: str) -> str:
    return "text" if text.startswith("%") else "python"


def _output(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return _block("text", "".join(output["text"]))
    picture = "".join(output["data"].get("image/svg+xml", ""))
    if not picture:
        return _block("text", "".join(output["data"]["text/plain"]))
    data = base64.b64encode(picture.encode()).decode()
    alt = html_text("".join(output["data"]["text/plain"]))
    image = f'<img alt="{alt}" src="data:image/svg+xml;base64,{data}">'
    return f'<figure class="relvm-picture">{image}</figure>'


def _block(language: str, text: str) -> str:
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive.  Sphinx calls this function."""
    app.connect("source-read", _replace)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
