"""Quoting: text of a model or an executable as each destination takes it.

Names, comments and strings in a file are anybody's.  Whatever of them is written somewhere goes through the function
of that place: C, a Makefile, HTML, a picture, the name of a file, the text form, a terminal.
"""

from __future__ import annotations

import json
import re
from typing import Any

# ---- C ----

_KEYWORDS_OF_C = """
auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
"""
_MACROS_OF_C = r"""
NULL NAN INFINITY HUGE_VAL[FL]? EOF I U?INT\w*_(MIN|MAX|C) SIZE_MAX (FLT|DBL|LDBL|FP|M|MATH)_\w+ (RVM|RELVM)_\w+
"""
_KEYWORDS_OF_CPP = """
and asm bool catch class compl delete explicit export false friend mutable namespace new not operator or private
protected public template this throw true try typename using virtual xor
"""
_KEYWORDS = frozenset((_KEYWORDS_OF_C + _KEYWORDS_OF_CPP).split())  # C++ includes the header, too
_MACRO = re.compile("|".join(_MACROS_OF_C.split()))


def c_comment(text: str) -> str:
    """Return text to stand inside of a C comment, in one line."""
    return terminal(text.replace("\n", " ")).replace("*/", "* /").replace("/*", "/ *")


def c_identifier(name: str) -> str:
    """Return a readable C identifier for a name; different names may get the same one.

    Each character that C does not allow becomes _.  A keyword or macro gets a _ at its end, a name that is reserved for
    compilers an x at its start.
    """
    made = re.sub("[^A-Za-z0-9_]", "_", name) or "_"
    if made[0].isdigit():
        made = f"_{made}"
    if re.match("_[A-Z_]", made):
        made = f"x{made}"
    return f"{made}_" if made in _KEYWORDS or _MACRO.fullmatch(made) else made


def c_identifier_part(name: str) -> str:
    """Return a name as the end of a C identifier; different names stay different: other characters become _xHH_."""
    # An escaped name never equals another name's own text: _x is escaped too.
    return re.sub(r"_x|[^A-Za-z0-9_]", lambda found: "".join(f"_x{ord(ch):X}_" for ch in found.group()), name)


def c_string(text: str) -> str:
    """Return a C string literal of the text's UTF-8."""

    def escaped(character: str) -> str:
        # A ? may begin a trigraph.  Octal escapes end after three digits, hexadecimal ones do not.
        is_plain = " " <= character <= "~" and character not in '"\\?'
        encoded = character.encode(errors="surrogateescape")
        return character if is_plain else "".join(f"\\{byte:03o}" for byte in encoded)

    return f'"{"".join(map(escaped, text))}"'


# ---- Makefiles and files ----


def makefile_word(text: str) -> str:
    """Return a word for a target, a prerequisite and a recipe of a Makefile.  Make and the shell quote differently, so
    that every character that means something to either becomes _."""
    return re.sub("[^A-Za-z0-9_./+-]", "_", text)


def file_name(text: str) -> str:
    """Return a relative name for a file, or for a member of an archive, that stays inside of its folder.

    Slashes separate folders.  A folder named .. or ., a slash before which there is no name, a backslash and every
    character that is not printable are percent-encoded.
    """

    def part(name: str) -> str:
        if name in (".", ".."):
            return name.replace(".", "%2E")
        return "".join(ch if ch.isprintable() and ch != "\\" else _percent_encoded(ch) for ch in name)

    return "/".join(map(part, re.sub("(^|/)/+", lambda at: at[1] + "%2F" * (at.end() - at.end(1)), text).split("/")))


def _percent_encoded(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode(errors="surrogatepass"))


# ---- HTML and pictures ----


def html_text(text: str) -> str:
    """Return text as HTML, for an element or the value of an attribute in quotes."""
    import html  # with its table of entities, which a deployed program does not need

    return html.escape(terminal_lines(text))


def html_data(data: Any) -> str:
    """Return data as JSON for a script element, the texts in it printable."""
    return json.dumps(_printable(data), separators=(",", ":")).replace("<", "\\u003c")


def _printable(data: Any) -> Any:
    match data:
        case str():
            return terminal_lines(data)
        case dict():
            return {_printable(key): _printable(value) for key, value in data.items()}
        case list() | tuple():
            return [_printable(each) for each in data]
    return data


def svg_text(text: str) -> str:
    """Return text for a label of a picture: printable, as XML takes no control characters, and without formulas."""
    return terminal_lines(text).replace("$", "\\$")  # what stands between two dollars matplotlib sets as a formula


def svg_id(text: str) -> str:
    """Return text for the id of an element of a picture."""
    return terminal(text)


# ---- the text form ----


def text_string(text: str) -> str:
    """Return a string literal of the text form, all of it printable; it reads back as the same text."""
    quoted = json.dumps(text, ensure_ascii=False)
    return quoted if quoted.isprintable() else "".join(ch if ch.isprintable() else _units(ch) for ch in quoted)


def _units(character: str) -> str:
    """A character as JSON escapes it, in units of UTF-16."""
    digits = character.encode("utf-16-be", errors="surrogatepass").hex()
    return "".join(f"\\u{digits[start : start + 4]}" for start in range(0, len(digits), 4))


# ---- terminals ----


def terminal(text: str) -> str:
    """Return text in one line for a terminal: what is not printable (control characters, new lines, bidirectional
    overrides, halves of surrogate pairs) becomes an escape as Python writes it."""
    return text if text.isprintable() else "".join(ch if ch.isprintable() else _escaped(ch) for ch in text)


def terminal_lines(text: str) -> str:
    """Return text of several lines for a terminal: as `terminal`, but new lines and tabs stay."""
    return "\n".join("\t".join(map(terminal, line.split("\t"))) for line in text.split("\n"))


def terminal_message(text: str) -> str:
    """Return the message of an error for a terminal.

    A new line stays only before two spaces, as in the excerpt below a syntax error: no text in a message can begin a
    line of its own.
    """
    return terminal_lines(re.sub("\n(?!  )", r"\\n", text))


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()
