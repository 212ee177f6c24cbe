"""Quoting: escape text from a model or an executable for the place where it is written.

Names, comments and strings in a file are untrusted.  Text from a file is therefore escaped by the function for its
destination: C, a Makefile, HTML, a picture, a file name, the text form, or a terminal.
"""

from __future__ import annotations

import json
import re
from typing import Any

# ---- C ----

# Words that C or C++ code cannot use as names, in any of the modes C99 to C23 and C++17 to C++23, with or without GNU
# extensions.  An exported header must compile in all of them, whatever the user's code includes before it.
_KEYWORDS_OF_C = """
alignas alignof asm auto bool break case char const constexpr continue default do double else enum extern false float
for goto if inline int long nullptr register restrict return short signed sizeof static static_assert struct switch
thread_local true typedef typeof typeof_unqual union unsigned void volatile while
"""
_KEYWORDS_OF_CPP = """
and and_eq bitand bitor catch char8_t char16_t char32_t class co_await co_return co_yield compl concept const_cast
consteval constinit decltype delete dynamic_cast explicit export friend import module mutable namespace new noexcept not
not_eq operator or or_eq private protected public reinterpret_cast requires static_cast template this throw try typeid
typename using virtual wchar_t xor xor_eq
"""
# Macros that compilers predefine for some processor or system, and macros of the headers of C and POSIX.
_LOWERCASE_MACROS = """
I arm complex errno far hpux huge i386 i486 i586 i686 imaginary interrupt linux m68k math_errhandling mips near noreturn
pascal pixel ppc s_addr sgi sparc st_atime st_ctime st_mtime stderr stdin stdout sun ultrix unix vax vector vms
"""
_MACRO_PATTERNS = r"""
[A-Z][A-Z0-9_]+ (RVM|RELVM)_\w+ (PRI|SCN)[a-zX]\w+ (L|P)_[a-z]+ M_\w+ (HUGE_VAL|SNAN)\w* (atomic|sa|si|sigev)_\w+
"""
# Types of the headers that exported code includes: C++ does not let a member of a struct change the meaning of a name.
_TYPE_PATTERNS = "u?int(_least|_fast)?(8|16|32|64)_t u?int(max|ptr)_t (size|ssize|ptrdiff|max_align|nullptr)_t"
_RESERVED_WORDS = frozenset((_KEYWORDS_OF_C + _KEYWORDS_OF_CPP + _LOWERCASE_MACROS).split())
_RESERVED_PATTERN = re.compile("|".join((_MACRO_PATTERNS + _TYPE_PATTERNS).split()))


def c_comment(text: str) -> str:
    """Escape text for a C comment, on a single line."""
    return terminal(text.replace("\n", " ")).replace("*/", "* /").replace("/*", "/ *")


def c_comment_lines(text: str) -> str:
    """Escape a text of several lines for a C comment.  Unlike in `c_comment`, newlines are kept."""
    return "\n".join(map(c_comment, text.split("\n")))


def c_identifier(name: str) -> str:
    """Return a readable C identifier for a name.  Different names can result in the same identifier.

    Each character that C does not allow is replaced by _.  A _ is appended to a keyword, a type of a standard header,
    and a name that could be a macro, which includes every name of two or more capitals.  An x is prepended to a name
    that is reserved for compilers.
    """
    made = re.sub("[^A-Za-z0-9_]", "_", name) or "_"
    if made[0].isdigit():
        made = f"_{made}"
    if re.match("_[A-Z_]", made):
        made = f"x{made}"
    return f"{made}_" if made in _RESERVED_WORDS or _RESERVED_PATTERN.fullmatch(made) else made


def c_identifier_part(name: str) -> str:
    """Escape a name for use as the end of a C identifier.

    Characters that C does not allow are replaced by _xHH_.  Different names result in different identifiers.
    """
    # _x is also escaped, so that no unescaped name equals an escaped name.
    return re.sub(r"_x|[^A-Za-z0-9_]", lambda found: "".join(f"_x{ord(ch):X}_" for ch in found.group()), name)


def c_string(text: str) -> str:
    """Return a C string literal with the UTF-8 bytes of a text."""

    def escaped(character: str) -> str:
        # A ? can begin a trigraph.  Octal escapes are used, because they end after three digits.
        is_plain = " " <= character <= "~" and character not in '"\\?'
        encoded = character.encode(errors="surrogateescape")
        return character if is_plain else "".join(f"\\{byte:03o}" for byte in encoded)

    return f'"{"".join(map(escaped, text))}"'


# ---- Makefiles and files ----


def makefile_word(text: str) -> str:
    """Escape a word for a target, prerequisite or recipe of a Makefile.

    Each character that has a special meaning in Make or the shell is replaced by _.  Quoting the character would not be
    enough, because the quoting rules of Make and the shell differ.
    """
    return re.sub("[^A-Za-z0-9_./+-]", "_", text)


def file_name(text: str) -> str:
    """Return a relative name for a file, or for a member of an archive.  It cannot refer to a place outside its folder.

    Slashes separate folders.  The following are percent-encoded: a folder named `..` or `.`, a slash that does not
    follow a name, a backslash, and every character that is not printable.
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
    """Escape text for an HTML element, or for a quoted attribute value."""
    import html  # imported here, because its table of entities takes memory that a deployed program does not need

    return html.escape(terminal_lines(text))


def html_data(data: Any) -> str:
    """Return data as JSON for an HTML script element.  Control characters in the texts are escaped."""
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
    """Escape text for a label of a picture that matplotlib draws.

    Control characters are escaped because XML does not allow them, and $ because it begins a formula.
    """
    return terminal_lines(text).replace("$", "\\$")  # matplotlib renders the text between two $ as a formula


def svg_id(text: str) -> str:
    """Escape text for the id of an element of a picture."""
    return terminal(text)


# ---- the text form ----


def text_string(text: str) -> str:
    """Return the string literal for `text` in the text form.  All characters of the literal are printable."""
    quoted = json.dumps(text, ensure_ascii=False)
    return quoted if quoted.isprintable() else "".join(ch if ch.isprintable() else _utf16_escapes(ch) for ch in quoted)


def _utf16_escapes(character: str) -> str:
    """Return a character as JSON escapes, one for each UTF-16 code unit."""
    digits = character.encode("utf-16-be", errors="surrogatepass").hex()
    return "".join(f"\\u{digits[start : start + 4]}" for start in range(0, len(digits), 4))


# ---- terminals ----


def terminal(text: str) -> str:
    """Escape text for a terminal, on a single line.

    Characters that are not printable (control characters, newlines, bidirectional overrides, unpaired surrogates)
    become escapes as in Python.
    """
    return text if text.isprintable() else "".join(ch if ch.isprintable() else _python_escape(ch) for ch in text)


def terminal_lines(text: str) -> str:
    """Escape a text of several lines for a terminal.  Unlike in `terminal`, newlines and tabs are kept."""
    if text.isprintable():
        return text
    return "\n".join("\t".join(map(terminal, line.split("\t"))) for line in text.split("\n"))


def terminal_message(text: str) -> str:
    """Escape the message of an error for a terminal.

    A newline is kept only if the next line is indented by at least two spaces, as in the source excerpt below a syntax
    error.  Any other newline is escaped.  Untrusted text in a message therefore cannot begin a new, unindented line.
    """
    return terminal_lines(re.sub("\n(?!  )", r"\\n", text))


def _python_escape(character: str) -> str:
    return character.encode("unicode_escape").decode()
