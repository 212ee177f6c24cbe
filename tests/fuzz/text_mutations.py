"""Mutation of texts token by token."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\w+|\s+|[^\w\s]')

SPECIAL = (
    *(
        "9223372036854775808",
        "-9223372036854775808",
        "1e999",
        "0",
        "-1",
        "1.5",
        "9" * 5000,
        '"',
        '"\\u0000"',
        "\\",
        "\0",
    ),
    *("(", ")", "[", "]", "{", "}", ",", ":", ";", "=", "=>", "->", ".", "...", ".0", "//", "#", "@", "\n", "\r", "\t"),
    *("é", "\U0001f600", "\u2028", "\ud800", "_", "¦", "$", "nan", "inf", "null", "true"),
    *("def", "private", "module", "with", "fn", "if", "then", "else", "return", "fused", "kernel", "run", "kill"),
    *(
        "match_cast",
        "const",
        "packed",
        "shape",
        "dim",
        "dtype",
        "prim.add",
        "builtin.copy",
        "list",
        "optional",
        "object",
    ),
    *("f32", "i64", "bool", "f64", "i4", "str", "n", "x"),
    *("for", "in", "let", "and", "or", "not", "range", "grid", "simd", "parallel", "max", "floor", "+=", "%", "<="),
)


def tokens(text: str) -> list[str]:
    """Divide a text into tokens, whose concatenation is the text."""
    return _TOKEN.findall(text)


def mutated(texts: Sequence[str], random: Random) -> str:
    """Return one of the texts with one to four changes, which can insert tokens of another text."""
    made, other = tokens(random.choice(texts)), tokens(random.choice(texts))
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(made) + 1)
        end = min(len(made), at + random.choice((1, 1, 1, 2, 5, 30)))
        match random.randrange(9):
            case 0:
                del made[at:end]
            case 1:
                made[at:at] = made[at:end]
            case 2:
                made[at:end] = [random.choice(SPECIAL)]
            case 3:
                made.insert(at, random.choice(SPECIAL))
            case 4:
                made[at:end] = [random.choice(other)]
            case 5:
                start = random.randrange(len(other))
                made[at:at] = other[start : start + random.choice((3, 10, 40))]
            case 6:
                to = random.randrange(len(made) + 1)
                made[to:to] = made[at:end]
            case 7:
                made[at:at] = made[at:end] * random.choice((2, 10, 200))
            case _:
                piece = "".join(made[at:end])
                place = random.randrange(len(piece) + 1)
                made[at:end] = [
                    piece[:place],
                    chr(random.choice((0, 32, 34, 92, 127, 233, 0x1F600))),
                    piece[place + 1 :],
                ]
        made = made or [" "]
    return "".join(made)
