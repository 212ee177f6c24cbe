"""What the site makes of the documents beyond Markdown: colours for programs, links for names of documents."""

from __future__ import annotations

import re
from typing import ClassVar

from docutils import nodes
from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, Operator, String, Text
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from relvm.ir.dtypes import ALL_DTYPES
from relvm.ir.printer import KEYWORDS


class RelvmLexer(RegexLexer):
    """The text form of programs (docs/language.md)."""

    name = "relvm"
    aliases: ClassVar = ["relvm", "relvm-planned"]
    tokens: ClassVar = {
        "root": [
            (r"#.*", Comment),
            (r'"(\\.|[^"\\])*"', String),
            (words(tuple(sorted(KEYWORDS)), prefix=r"\b", suffix=r"\b"), Keyword),
            (words(tuple(sorted(ALL_DTYPES)), prefix=r"\b", suffix=r"\b"), Keyword.Type),
            (r"\d[\w.]*(?:e[+-]?\d+)?", Number),
            (r"@?[^\W\d]\w*", Name),
            (r"[-+*/%&|^~<>=!]+", Operator),
            (r"\s+|.", Text),
        ]
    }


class LinkDocuments(SphinxTransform):
    """The name of a document in backticks, `docs/machine.md`, becomes a link to its page."""

    default_priority = 400

    def apply(self) -> None:
        for literal in list(self.document.findall(nodes.literal)):
            found = re.fullmatch(r"docs/([\w/-]+)\.md", literal.astext())
            if found and not isinstance(literal.parent, nodes.reference):
                link = pending_xref("", refdomain="std", reftype="doc", reftarget=f"/{found[1]}", refexplicit=True)
                link["refdoc"], link["refwarn"] = self.env.docname, True
                literal.replace_self(link)
                link += literal


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    for alias in RelvmLexer.aliases:
        app.add_lexer(alias, RelvmLexer)
    app.add_transform(LinkDocuments)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
