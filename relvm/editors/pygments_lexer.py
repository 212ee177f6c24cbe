"""Lexer of the text form for Pygments, which colors code in documentation, notebooks and terminals.

Pygments finds it under the name `relvm`, and by the file name `*.relvm`.
"""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups, words
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Text,
)

from relvm.ir.kernel_def_printer import KERNEL_KEYWORDS
from relvm.ir.printer import KEYWORDS
from relvm.tables import DTYPES

_CONSTANTS = {"true", "false", "null", "inf", "nan"}
_DECLARATIONS = {"module", "def", "fn", "kernel", "const", "let"}
_TYPES = {row.name for row in DTYPES} | {"tensor", "list", "optional", "object"}
DEFINITION = (Keyword.Declaration, Text.Whitespace, Name.Function)  # the tokens of `def main`, before a parenthesis


class RelvmLexer(RegexLexer):
    """The Pygments lexer of the text form."""

    name = "relvm"
    aliases: ClassVar = ["relvm"]
    filenames: ClassVar = ["*.relvm"]
    mimetypes: ClassVar = ["text/x-relvm"]

    tokens: ClassVar = {
        "root": [
            (r"\s+", Text.Whitespace),
            (r"#[^\n]*", Comment.Single),
            (r'"(?:[^"\\\n]|\\.)*"', String.Double),
            (r"\d+(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+)", Number.Float),
            (r"\.\d+\b", Number.Integer),
            (r"\d+", Number.Integer),
            (r"(def|kernel)(\s+)([^\W\d]\w*)(?=\s*\()", bygroups(*DEFINITION)),
            (r"@(?:packed\b|[^\W\d]\w*)", Name.Function),
            # Words that are keywords only in these places.
            (r"\bprivate\b(?=\s+def\b)", Keyword.Declaration),
            (r"\binout\b(?=\s+[^\W\d])", Keyword),
            (r"\bfused\b(?=\s*\{)", Keyword),
            (words(sorted(_CONSTANTS), prefix=r"\b", suffix=r"\b"), Keyword.Constant),
            (words(sorted(_DECLARATIONS), prefix=r"\b", suffix=r"\b"), Keyword.Declaration),
            (words(sorted(_TYPES), prefix=r"\b", suffix=r"\b(?=[\[(\])},;\n ]|$)"), Keyword.Type),
            (
                words(sorted((KEYWORDS | KERNEL_KEYWORDS) - _CONSTANTS - _DECLARATIONS), prefix=r"\b", suffix=r"\b"),
                Keyword,
            ),
            (r"[^\W\d]\w*(?=\s*\()", Name.Builtin),
            (r"[^\W\d]\w*(?==[^=])", Name.Attribute),
            (r"[^\W\d]\w*", Name),
            (r"->|=>|//|\.\.\.|==|!=|<=|>=|<<|>>|[=+\-*/%@<>&|^~]", Operator),
            (r"[()\[\]{},:;.]", Punctuation),
        ],
    }
