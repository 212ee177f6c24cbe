"""Compiler from regular expressions to programs for the operator string_match.  It supports a subset of the syntax of
RE2, and raises an error for any other syntax.

Supported: literals; `.`; classes with ranges, escapes and names such as [:alpha:]; groups, optionally with names or
flags (i, m, s, U); alternation; greedy and non-greedy repetition, which are equivalent in a full match; anchors;
escapes of letters, code points, words, digits and white space.
Source: https://github.com/google/re2/wiki/Syntax.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from relvm.data_classes import value_record
from relvm.errors import RelvmUnsupportedError, shortened
from relvm.ops.string_reference import JUMP, MATCH, PLACE, RANGE, SET, SPLIT
from relvm.tables import LETTERS

MAX_INSTRUCTIONS = 20_000
_MAX_REPEATED = 1000  # limit on counted repetitions, as in RE2
_MAX_NESTED = 100
_LAST = 0x10FFFF
_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|\Z)|\\.", re.DOTALL)
_HEXADECIMAL = re.compile(r"([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,8})\}")
_START, _END, _LINE_START, _LINE_END, _EDGE, _NO_EDGE = range(6)

Ranges = tuple[tuple[int, int], ...]


@value_record
class CharacterClass:
    """A pattern for one character: a code point in `ranges` or, if `other` is set, a code point outside `ranges`."""

    ranges: Ranges
    other: bool = False


@value_record
class Anchor:
    """A condition on a position, such as the start of a line.  An anchor consumes no character.

    what: the condition, a number that the row PLACE of csrc/tables/regex_opcodes.def defines.
    """

    what: int


@value_record
class Concatenation:
    parts: tuple[Part, ...]


@value_record
class Alternation:
    ways: tuple[Part, ...]


@value_record
class Quantifier:
    """A repetition of `part`, at least `least` times and at most `most` times.  If `most` is None, there is no
    limit."""

    part: Part
    least: int
    most: int | None


Part = CharacterClass | Anchor | Concatenation | Alternation | Quantifier

_DIGITS: Ranges = ((0x30, 0x39),)
_WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACE: Ranges = ((0x09, 0x0A), (0x0C, 0x0D), (0x20, 0x20))
_CLASSES = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_NAMED: dict[str, Ranges] = {
    "alnum": ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)),
    "alpha": ((0x41, 0x5A), (0x61, 0x7A)),
    "ascii": ((0, 0x7F),),
    "blank": ((0x09, 0x09), (0x20, 0x20)),
    "cntrl": ((0, 0x1F), (0x7F, 0x7F)),
    "digit": _DIGITS,
    "graph": ((0x21, 0x7E),),
    "lower": ((0x61, 0x7A),),
    "print": ((0x20, 0x7E),),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "space": ((0x09, 0x0D), (0x20, 0x20)),
    "upper": ((0x41, 0x5A),),
    "word": _WORD,
    "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
}
_ESCAPES = {"a": 0x07, "f": 0x0C, "n": 0x0A, "r": 0x0D, "t": 0x09, "v": 0x0B}
_PLACES = {"A": _START, "z": _END, "b": _EDGE, "B": _NO_EDGE}


def program_of(pattern: str) -> np.ndarray:
    """Compile a pattern to a program: an i64 array of shape (n, 3), in which each row is an instruction
    (csrc/tables/regex_opcodes.def).

    Raises
    ------
    RelvmUnsupportedError
        The syntax is unsupported or invalid, or the program has more than 20,000 instructions.
    """
    reader = _Reader(pattern)
    part = reader.either()
    if reader.rest:
        raise reader.fail("an unmatched )")
    rows: list[list[int]] = []
    _write(part, rows, pattern)
    rows.append([MATCH, 0, 0])
    return np.array(rows, np.int64)


class _Reader:
    """A recursive descent parser for a pattern.   flags: the flags that are in effect at the current position."""

    def __init__(self, pattern: str) -> None:
        self.pattern = _QUOTED.sub(_unquoted, pattern)
        self.at = 0
        self.depth = 0
        self.flags: frozenset[str] = frozenset()

    @property
    def rest(self) -> str:
        return self.pattern[self.at :]

    @property
    def ahead(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def fail(self, what: str) -> RelvmUnsupportedError:
        return RelvmUnsupportedError(f"pattern {shortened(self.pattern)!r}, at {self.at}: {what} is not supported")

    def take(self) -> str:
        if not self.ahead:
            raise self.fail("an incomplete pattern")
        self.at += 1
        return self.pattern[self.at - 1]

    def accept(self, text: str) -> bool:
        found = self.pattern.startswith(text, self.at)
        self.at += len(text) if found else 0
        return found

    def either(self) -> Part:
        ways = [self.sequence()]
        while self.accept("|"):
            ways.append(self.sequence())
        return ways[0] if len(ways) == 1 else Alternation(tuple(ways))

    def sequence(self) -> Part:
        parts: list[Part] = []
        while self.ahead and self.ahead not in "|)":
            part = self.atom()
            if part is not None:
                parts.append(self.repeated(part))
        return Concatenation(tuple(parts))

    def repeated(self, part: Part) -> Part:
        counts = self.counts()
        if counts is None:
            return part
        least, most = counts
        if max(least, most or 0) > _MAX_REPEATED or (most is not None and most < least):
            raise self.fail(f"a quantifier of {least} to {most} repetitions")
        self.accept("?")
        if self.counts() is not None:
            raise self.fail("a quantifier after a quantifier")
        return Quantifier(part, least, most)

    def counts(self) -> tuple[int, int | None] | None:
        """Parse a quantifier, such as `*` or `{2,5}`.  Return the minimum and maximum number of repetitions, or None if
        no quantifier follows."""
        for sign, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.accept(sign):
                return counts
        inside, closing, _ = self.rest[1:].partition("}")
        least, comma, most = inside.partition(",")
        if not (self.rest[:1] == "{" and closing and _is_number(least) and (not most or _is_number(most))):
            return None
        self.at += len(inside) + 2
        return int(least), int(most) if most else (None if comma else int(least))

    def atom(self) -> Part | None:
        """Parse one part that can be repeated.  Return None for flags such as (?i), which apply until the end of the
        group."""
        match self.take():
            case "(":
                return self.group()
            case "[":
                return self.class_()
            case ".":
                return CharacterClass(((0, _LAST),) if "s" in self.flags else ((0, 9), (11, _LAST)))
            case "^":
                return Anchor(_LINE_START if "m" in self.flags else _START)
            case "$":
                return Anchor(_LINE_END if "m" in self.flags else _END)
            case "\\":
                return self.escape()
            case "*" | "+" | "?":
                raise self.fail("a quantifier without an operand")
            case literal:
                return self.literal(ord(literal))

    def literal(self, point: int) -> CharacterClass:
        return self.set_of(((point, point),))

    def set_of(self, ranges: Ranges, other: bool = False) -> CharacterClass:
        return CharacterClass(_in_any_case(ranges) if "i" in self.flags else ranges, other)

    def group(self) -> Part | None:
        flags = self.flags
        if self.accept("?"):
            named = self.accept("P<") or self.accept("<")
            if named:
                name, closing, _ = self.rest.partition(">")
                if not (closing and name.isidentifier()):
                    raise self.fail("the group name after (?<")
                self.at += len(name) + 1
            elif self.read_flags():
                return None
        self.depth += 1
        if self.depth > _MAX_NESTED:
            raise self.fail(f"nesting more than {_MAX_NESTED} groups")
        part = self.either()
        self.depth -= 1
        if not self.accept(")"):
            raise self.fail("an unmatched (")
        self.flags = flags
        return part

    def read_flags(self) -> bool:
        """Parse flags after `(?`, up to a `)` or `:`.  Return whether they end with `)`.

        Flags that end with `)` apply to the rest of the enclosing group.  Flags that end with `:` apply to the group
        that they begin.
        """
        is_set = True
        while self.ahead not in (")", ":"):
            flag = self.take()
            if flag == "-" and is_set:
                is_set = False
            elif flag in "imsU":
                self.flags = self.flags | {flag} if is_set else self.flags - {flag}
            else:
                raise self.fail(f"(?{flag}")
        return self.take() == ")"

    def escape(self) -> Part:
        letter = self.ahead
        if letter in _PLACES:
            self.take()
            return Anchor(_PLACES[letter])
        ranges, other = self.escaped()
        return self.set_of(ranges, other)

    def escaped(self) -> tuple[Ranges, bool]:
        """Parse an escape after its backslash, inside or outside a class.

        Return ranges of code points, and whether the escape stands for all code points outside these ranges.
        """
        letter = self.take()
        if letter.lower() in _CLASSES:
            return _CLASSES[letter.lower()], letter.isupper()
        if letter in _ESCAPES:
            return ((_ESCAPES[letter], _ESCAPES[letter]),), False
        if letter == "x":
            point = self.hexadecimal()
            return ((point, point),), False
        if letter.isascii() and letter.isalnum():
            raise self.fail(f"\\{letter}")
        return ((ord(letter), ord(letter)),), False

    def hexadecimal(self) -> int:
        """Parse a hexadecimal code point after \\x: two digits such as `41`, or 1 to 8 digits in braces."""
        found = _HEXADECIMAL.match(self.rest)
        point = int(found[1] or found[2], 16) if found else _LAST + 1
        if found is None or point > _LAST:
            raise self.fail(f"\\x{self.rest[:8]}")
        self.at += found.end()
        return point

    def class_(self) -> CharacterClass:
        other = self.accept("^")
        ranges: list[tuple[int, int]] = []
        first = True
        while first or not self.accept("]"):
            first = False
            ranges += self.class_item()
        return self.set_of(tuple(ranges), other)

    def class_item(self) -> Ranges:
        if self.accept("[:"):
            other = self.accept("^")
            name, closing, _ = self.rest.partition(":]")
            if not closing or name not in _NAMED:
                raise self.fail("the POSIX class after [:")
            self.at += len(name) + 2
            return _others(_NAMED[name]) if other else _NAMED[name]
        low = self.class_character()
        if len(low) != 1 or low[0][0] != low[0][1] or self.ahead != "-" or self.rest[1:2] in ("]", ""):
            return low
        self.take()
        high = self.class_character()
        if len(high) != 1 or high[0][0] != high[0][1] or high[0][0] < low[0][0]:
            raise self.fail("the range in a character class")
        return ((low[0][0], high[0][0]),)

    def class_character(self) -> Ranges:
        if not self.accept("\\"):
            point = ord(self.take())
            return ((point, point),)
        ranges, other = self.escaped()
        return _others(ranges) if other else ranges


def _unquoted(found: re.Match) -> str:
    r"""Escape the text between \Q and \E.  Return any other escape unchanged."""
    if found[1] is None:
        return found[0]
    return "".join(each if each.isalnum() else f"\\{each}" for each in found[1])


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _others(ranges: Ranges) -> Ranges:
    """Return all code points outside the ranges."""
    found, after = [], 0
    for low, high in sorted(ranges):
        if low > after:
            found.append((after, low - 1))
        after = max(after, high + 1)
    return (*found, (after, _LAST)) if after <= _LAST else tuple(found)


@cache
def _other_cases() -> tuple[tuple[int, int], ...]:
    """Return the pairs of letters that differ only by case, each pair in both orders: (a, A) and (A, a)."""
    pairs = set()
    for row in LETTERS:
        for point in range(row.first, row.last + 1, row.step):
            there = row.there + point - row.first
            pairs |= {(point, there), (there, point)}
    return tuple(sorted(pairs))


def _in_any_case(ranges: Ranges) -> Ranges:
    more = {there for point, there in _other_cases() if any(low <= point <= high for low, high in ranges)}
    return (*ranges, *((point, point) for point in sorted(more)))


def _write(part: Part, rows: list[list[int]], pattern: str) -> None:
    """Append the instructions of `part` to `rows`, the program.   pattern: the whole pattern, for messages."""
    if len(rows) > MAX_INSTRUCTIONS:
        raise RelvmUnsupportedError(f"pattern {shortened(pattern)!r}: needs more than {MAX_INSTRUCTIONS} instructions")
    match part:
        case CharacterClass(ranges, other):
            rows.append([SET, len(ranges), int(other)])
            rows += [[RANGE, low, high] for low, high in ranges]
        case Anchor(what):
            rows.append([PLACE, what, 0])
        case Concatenation(parts):
            for each in parts:
                _write(each, rows, pattern)
        case Alternation(ways):
            jumps = []
            for way in ways[:-1]:
                split = _split(rows)
                _write(way, rows, pattern)
                jumps.append(len(rows))
                rows.append([JUMP, 0, 0])
                rows[split][2] = len(rows)
            _write(ways[-1], rows, pattern)
            for jump in jumps:
                rows[jump][1] = len(rows)
        case Quantifier(inner, least, most):
            for _ in range(least):
                _write(inner, rows, pattern)
            if most is None:
                split = _split(rows)
                _write(inner, rows, pattern)
                rows.append([JUMP, split, 0])
                rows[split][2] = len(rows)
                return
            splits = []
            for _ in range(most - least):
                splits.append(_split(rows))
                _write(inner, rows, pattern)
            for split in splits:
                rows[split][2] = len(rows)


def _split(rows: list[list[int]]) -> int:
    """Append a SPLIT instruction and return its index.  SPLIT continues with both the next instruction and a second
    target, which the caller must set later."""
    rows.append([SPLIT, len(rows) + 1, 0])
    return len(rows) - 1
