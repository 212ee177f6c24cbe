"""Directives for pictures, pages and diagrams.

    {relvm-picture} CAPTION    run Python code and show the value of its last line, a figure, as an SVG image or HTML
    {relvm-page} NAME#PLACE    run Python code, save the value of its last line as _pages/NAME.html, and show it in a
                               frame
    {relvm-diagram} CAPTION    draw boxes, given as `key: title | subtitle`, and arrows, given as `key -> key`

The Python code of all directives in a document shares its variables.  All files are written to the site.
"""

from __future__ import annotations

import ast
import base64
import io
from itertools import pairwise
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from relvm.explore.draw.graph import Arrow, Graph, Item
from relvm.explore.draw.graph_figure import draw_graph
from relvm.quoting import html_text

_ZOOM = 1.25  # enlarges figures, whose letters are smaller than those of the site
_FOLDER = "_pages"


class _Running(SphinxDirective):
    """Base class of directives that contain Python code, whose last line is an expression."""

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True

    def value(self) -> Any:
        """Run the content and return the value of its last line."""
        tree = ast.parse("\n".join(self.content))
        if not tree.body or not isinstance(tree.body[-1], ast.Expr):
            raise self.error(f"{self.name}: the last line must be an expression")
        variables = self.env.temp_data.setdefault(
            "relvm-variables", {"__name__": self.env.docname}
        )
        last = ast.Expression(tree.body.pop().value)
        try:
            exec(compile(tree, self.env.docname, "exec"), variables)
            return eval(compile(last, self.env.docname, "eval"), variables)
        except Exception as error:
            raise self.error(f"{self.name}: {type(error).__name__}: {error}") from error


class PictureDirective(_Running):
    """Directive that shows a figure as an image with a caption."""

    def run(self) -> list[nodes.Node]:
        value = self.value()
        if not hasattr(value, "savefig"):
            caption = html_text(self.arguments[0])
            html = f'<figure class="relvm-html">{value._repr_html_()}'
            return [
                nodes.raw(
                    "", f"{html}<figcaption>{caption}</figcaption></figure>", format="html"
                )
            ]
        return [_image(value, self.arguments[0])]


class DiagramDirective(SphinxDirective):
    """Directive that draws boxes and arrows as an image with a caption."""

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        items, arrows = [], []
        for line in filter(None, self.content):
            key, _, text = line.partition(": ")
            if "->" in line:
                keys = [key.strip() for key in line.split("->")]
                arrows += [Arrow(*ends) for ends in pairwise(keys)]
            else:
                items.append(
                    Item(key, text.replace(" | ", "\n"), "operator" if "|" in text else "end")
                )
        unknown = {key for arrow in arrows for key in (arrow.source, arrow.target)} - {
            item.key for item in items
        }
        if unknown:
            raise self.error(f"{self.name}: no box {', '.join(sorted(map(str, unknown)))}")
        return [_image(draw_graph(Graph(tuple(items), tuple(arrows)), ""), self.arguments[0])]


def _image(figure: Any, text: str) -> nodes.raw:
    width = round(96 * _ZOOM * float(figure.get_size_inches()[0]))
    caption = html_text(text)
    image = (
        f'<img alt="{caption}" width="{width}" src="data:image/svg+xml;base64,{_svg(figure)}">'
    )
    html = f'<figure class="relvm-picture">{image}<figcaption>{caption}</figcaption></figure>'
    return nodes.raw("", html, format="html")


def _svg(figure: Any) -> str:
    written = io.BytesIO()
    figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    return base64.b64encode(written.getvalue()).decode()


class PageDirective(_Running):
    """Directive that shows an interactive page in a frame, and a link to the page."""

    def run(self) -> list[nodes.Node]:
        name, _, fragment = self.arguments[0].partition("#")
        place = Path(_FOLDER) / f"{name}.html"
        written = Path(self.env.app.outdir) / place
        written.parent.mkdir(exist_ok=True)
        self.value().save(written)
        link = "../" * self.env.docname.count("/") + place.as_posix()
        frame = f'<iframe class="relvm-page" title="{name}" loading="lazy" src="{link}#{fragment}"></iframe>'
        return [
            nodes.raw(
                "", f'{frame}<p><a href="{link}">Open the page alone</a></p>', format="html"
            )
        ]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives.  Sphinx calls this function."""
    app.add_directive("relvm-picture", PictureDirective)
    app.add_directive("relvm-diagram", DiagramDirective)
    app.add_directive("relvm-page", PageDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
