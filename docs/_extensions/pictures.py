"""Directives that run a few lines of Python and show what they make.

    {relvm-picture} CAPTION    the last line is a figure: it becomes an SVG image
    {relvm-page} NAME          the last line has `save(path)`: it becomes the file _pages/NAME.html, shown in a frame

The directives of one document share their variables.  Nothing is written outside of the site.
"""

from __future__ import annotations

import ast
import base64
import io
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from relvm.quoting import html_text

_ZOOM = 1.25  # the letters of relvm's figures are smaller than those of the site
_FOLDER = "_pages"


class _Running(SphinxDirective):
    """A directive whose content is Python and whose last line is a value."""

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
    """A figure as an image, with a caption."""

    def run(self) -> list[nodes.Node]:
        figure = self.value()
        width = round(96 * _ZOOM * float(figure.get_size_inches()[0]))
        caption = html_text(self.arguments[0])
        image = f'<img alt="{caption}" width="{width}" src="data:image/svg+xml;base64,{_svg(figure)}">'
        html = (
            f'<figure class="relvm-picture">{image}<figcaption>{caption}</figcaption></figure>'
        )
        return [nodes.raw("", html, format="html")]


def _svg(figure: Any) -> str:
    written = io.BytesIO()
    figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    return base64.b64encode(written.getvalue()).decode()


class PageDirective(_Running):
    """An interactive page in a frame, and a link that opens it alone."""

    def run(self) -> list[nodes.Node]:
        place = Path(_FOLDER) / f"{self.arguments[0]}.html"
        written = Path(self.env.app.outdir) / place
        written.parent.mkdir(exist_ok=True)
        self.value().save(written)
        link = "../" * self.env.docname.count("/") + place.as_posix()
        title = html_text(self.arguments[0])
        frame = (
            f'<iframe class="relvm-page" title="{title}" loading="lazy" src="{link}"></iframe>'
        )
        return [
            nodes.raw(
                "", f'{frame}<p><a href="{link}">Open the page alone</a></p>', format="html"
            )
        ]


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("relvm-picture", PictureDirective)
    app.add_directive("relvm-page", PageDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
