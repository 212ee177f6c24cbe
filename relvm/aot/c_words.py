"""Names in C."""

from __future__ import annotations

import re

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


def identifier(name: str) -> str:
    """A name as C has them: what it does not allow becomes _; one that means something in C ends with one, and one that
    is kept for compilers begins with an x."""
    made = re.sub("[^A-Za-z0-9_]", "_", name) or "_"
    if made[0].isdigit():
        made = f"_{made}"
    if re.match("_[A-Z_]", made):
        made = f"x{made}"
    return f"{made}_" if made in _KEYWORDS or _MACRO.fullmatch(made) else made
