"""TextMate grammar of the text form, which colors programs in VS Code and other editors.

`python -m relvm.editors.textmate_grammar` prints it.
"""

from __future__ import annotations

import json
from typing import Any

from pygments.lexer import words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

from relvm.editors.pygments_lexer import DEFINITION, RelvmLexer

SCOPES = {
    Comment.Single: "comment.line.number-sign.relvm",
    String.Double: "string.quoted.double.relvm",
    Number.Float: "constant.numeric.float.relvm",
    Number.Integer: "constant.numeric.integer.relvm",
    Keyword: "keyword.control.relvm",
    Keyword.Constant: "constant.language.relvm",
    Keyword.Declaration: "storage.type.relvm",
    Keyword.Type: "support.type.relvm",
    Name.Function: "entity.name.function.relvm",
    Name.Builtin: "support.function.relvm",
    Name.Attribute: "variable.parameter.relvm",
    Name: "variable.other.relvm",
    Operator: "keyword.operator.relvm",
    Punctuation: "punctuation.relvm",
}


def textmate_grammar() -> dict[str, Any]:
    """Return the TextMate grammar of the text form, with the rules of the Pygments lexer in the same order."""
    return {
        "name": "relvm",
        "scopeName": "source.relvm",
        "fileTypes": ["relvm"],
        "patterns": [
            _convert_rule(regex, action) for regex, action in RelvmLexer.tokens["root"] if action is not Text.Whitespace
        ],
    }


def _convert_rule(regex: Any, action: Any) -> dict[str, Any]:
    """Convert a rule of the Pygments lexer to a rule of the TextMate grammar.

    regex: the regular expression of the rule.
    action: the token type of the whole match.  Only the rule for definitions, such as `def main`, has a callback
    instead.  The groups of its regular expression have the token types in DEFINITION.
    """
    match = regex.get() if isinstance(regex, words) else regex
    if action in SCOPES:
        return {"match": match, "name": SCOPES[action]}
    captures = {str(number): {"name": SCOPES[token]} for number, token in enumerate(DEFINITION, 1) if token in SCOPES}
    return {"match": match, "captures": captures}


if __name__ == "__main__":
    print(json.dumps(textmate_grammar(), indent=2))
