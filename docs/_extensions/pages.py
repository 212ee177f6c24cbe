"""Extensions of Markdown: colors for programs, and links for names of documents."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from relvm.editors.pygments_lexer import RelvmLexer


class LinkDocuments(SphinxTransform):
    """Convert the path of a document in backticks, such as `docs/machine.md`, to a link to its page."""

    default_priority = 400

    def apply(self) -> None:
        for literal in list(self.document.findall(nodes.literal)):
            found = re.fullmatch(r"docs/([\w/-]+)\.md", literal.astext())
            if found and not isinstance(literal.parent, nodes.reference):
                link = pending_xref(
                    "",
                    refdomain="std",
                    reftype="doc",
                    reftarget=f"/{found[1]}",
                    refexplicit=True,
                )
                link["refdoc"], link["refwarn"] = self.env.docname, True
                literal.replace_self(link)
                link += literal


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extensions.  Sphinx calls this function."""
    for alias in ("relvm", "relvm-planned"):
        app.add_lexer(alias, RelvmLexer)
    app.add_transform(LinkDocuments)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
