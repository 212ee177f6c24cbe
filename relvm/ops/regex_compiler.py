"""Compiler from regular expressions to programs for the operator string_match.

It supports a subset of the syntax of RE2, and raises an error for any other syntax.

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
from relvm.ops.string_reference import ANCHOR, JUMP, MATCH, RANGE, SET, SPLIT
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
    """A pattern for one character: a code point in `ranges` or, if `negated` is set, a code point outside `ranges`."""

    ranges: Ranges
    negated: bool = False


@value_record
class Anchor:
    """A condition on a position, such as the start of a line.  An anchor consumes no character.

    condition: the number of the condition, which the row ANCHOR of csrc/tables/regex_opcodes.def defines.
    """

    condition: int


@value_record
class Concatenation:
    parts: tuple[Part, ...]


@value_record
class Alternation:
    alternatives: tuple[Part, ...]


@value_record
class Quantifier:
    """A repetition of `part`, at least `minimum` times and at most `maximum` times.

    If `maximum` is None, there is no limit.
    """

    part: Part
    minimum: int
    maximum: int | None


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


def compile_pattern(pattern: str) -> np.ndarray:
    """Compile `pattern`, a regular expression, to a program: an i64 array of shape (n, 3), with an instruction in each
    row.

    csrc/tables/regex_opcodes.def defines the instructions.

    Raises
    ------
    RelvmUnsupportedError
        The syntax is unsupported or invalid, or the program has more than 20,000 instructions.
    """
    reader = _Parser(pattern)
    part = reader.alternation()
    if reader.remaining:
        raise reader.fail("an unmatched )")
    rows: list[list[int]] = []
    _emit(part, rows, pattern)
    rows.append([MATCH, 0, 0])
    _check_length(rows, pattern)
    return np.array(rows, np.int64)


class _Parser:
    """A recursive descent parser for regular expressions.

    flags: the flags that are in effect at the current position.
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = _QUOTED.sub(_escape_quoted, pattern)
        self.at = 0
        self.depth = 0
        self.flags: frozenset[str] = frozenset()

    @property
    def remaining(self) -> str:
        return self.pattern[self.at :]

    @property
    def next_character(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def fail(self, what: str) -> RelvmUnsupportedError:
        return RelvmUnsupportedError(f"pattern {shortened(self.pattern)!r}, at {self.at}: {what} is not supported")

    def take(self) -> str:
        if not self.next_character:
            raise self.fail("an incomplete pattern")
        self.at += 1
        return self.pattern[self.at - 1]

    def accept(self, text: str) -> bool:
        found = self.pattern.startswith(text, self.at)
        self.at += len(text) if found else 0
        return found

    def alternation(self) -> Part:
        ways = [self.sequence()]
        while self.accept("|"):
            ways.append(self.sequence())
        return ways[0] if len(ways) == 1 else Alternation(tuple(ways))

    def sequence(self) -> Part:
        parts: list[Part] = []
        while self.next_character and self.next_character not in "|)":
            part = self.atom()
            if part is not None:
                parts.append(self.with_quantifier(part))
        return Concatenation(tuple(parts))

    def with_quantifier(self, part: Part) -> Part:
        counts = self.quantifier()
        if counts is None:
            return part
        least, most = counts
        if max(least, most or 0) > _MAX_REPEATED or (most is not None and most < least):
            raise self.fail(f"a quantifier of {least} to {most} repetitions")
        self.accept("?")
        if self.quantifier() is not None:
            raise self.fail("a quantifier after a quantifier")
        return Quantifier(part, least, most)

    def quantifier(self) -> tuple[int, int | None] | None:
        """Parse a quantifier, such as `*` or `{2,5}`.  Return the minimum and maximum number of repetitions.

        The maximum is None if there is no limit.  Return None if no quantifier follows.
        """
        for sign, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.accept(sign):
                return counts
        inside, closing, _ = self.remaining[1:].partition("}")
        least, comma, most = inside.partition(",")
        if not (self.remaining[:1] == "{" and closing and _is_number(least) and (not most or _is_number(most))):
            return None
        self.at += len(inside) + 2
        return int(least), int(most) if most else (None if comma else int(least))

    def atom(self) -> Part | None:
        """Parse a part that can be repeated.  Return None for flags such as (?i), which apply until the end of the
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
        return self.character_class(((point, point),))

    def character_class(self, ranges: Ranges, negated: bool = False) -> CharacterClass:
        return CharacterClass(_in_any_case(ranges) if "i" in self.flags else ranges, negated)

    def group(self) -> Part | None:
        flags = self.flags
        if self.accept("?"):
            named = self.accept("P<") or self.accept("<")
            if named:
                name, closing, _ = self.remaining.partition(">")
                if not (closing and name.isidentifier()):
                    raise self.fail("the group name after (?<")
                self.at += len(name) + 1
            elif self.read_flags():
                return None
        self.depth += 1
        if self.depth > _MAX_NESTED:
            raise self.fail(f"nesting more than {_MAX_NESTED} groups")
        part = self.alternation()
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
        while self.next_character not in (")", ":"):
            flag = self.take()
            if flag == "-" and is_set:
                is_set = False
            elif flag in "imsU":
                self.flags = self.flags | {flag} if is_set else self.flags - {flag}
            else:
                raise self.fail(f"(?{flag}")
        return self.take() == ")"

    def escape(self) -> Part:
        letter = self.next_character
        if letter in _PLACES:
            self.take()
            return Anchor(_PLACES[letter])
        ranges, other = self.escaped_ranges()
        return self.character_class(ranges, other)

    def escaped_ranges(self) -> tuple[Ranges, bool]:
        """Parse an escape after its backslash, inside or outside a character class.

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
        found = _HEXADECIMAL.match(self.remaining)
        point = int(found[1] or found[2], 16) if found else _LAST + 1
        if found is None or point > _LAST:
            raise self.fail(f"\\x{self.remaining[:8]}")
        self.at += found.end()
        return point

    def class_(self) -> CharacterClass:
        other = self.accept("^")
        ranges: list[tuple[int, int]] = []
        first = True
        while first or not self.accept("]"):
            first = False
            ranges += self.class_item()
        return self.character_class(tuple(ranges), other)

    def class_item(self) -> Ranges:
        if self.accept("[:"):
            other = self.accept("^")
            name, closing, _ = self.remaining.partition(":]")
            if not closing or name not in _NAMED:
                raise self.fail("the POSIX class after [:")
            self.at += len(name) + 2
            return _complement(_NAMED[name]) if other else _NAMED[name]
        low = self.class_character()
        if len(low) != 1 or low[0][0] != low[0][1] or self.next_character != "-" or self.remaining[1:2] in ("]", ""):
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
        ranges, other = self.escaped_ranges()
        return _complement(ranges) if other else ranges


def _escape_quoted(match: re.Match) -> str:
    r"""Escape the text between \Q and \E, which `match` contains.  Return any other escape unchanged."""
    if match[1] is None:
        return match[0]
    return "".join(each if each.isalnum() else f"\\{each}" for each in match[1])


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _complement(ranges: Ranges) -> Ranges:
    """Return all code points outside `ranges`, as ranges."""
    found, after = [], 0
    for low, high in sorted(ranges):
        if low > after:
            found.append((after, low - 1))
        after = max(after, high + 1)
    return (*found, (after, _LAST)) if after <= _LAST else tuple(found)


@cache
def _case_pairs() -> tuple[tuple[int, int], ...]:
    """Return the pairs of letters that differ only by case, each pair in both orders: (a, A) and (A, a)."""
    pairs = set()
    for row in LETTERS:
        for point in range(row.first, row.last + 1, row.step):
            mapped = row.mapped + point - row.first
            pairs |= {(point, mapped), (mapped, point)}
    return tuple(sorted(pairs))


def _in_any_case(ranges: Ranges) -> Ranges:
    more = {there for point, there in _case_pairs() if any(low <= point <= high for low, high in ranges)}
    return (*ranges, *((point, point) for point in sorted(more)))


def _check_length(program: list[list[int]], pattern: str) -> None:
    if len(program) > MAX_INSTRUCTIONS:
        raise RelvmUnsupportedError(f"pattern {shortened(pattern)!r}: needs more than {MAX_INSTRUCTIONS} instructions")


def _emit(part: Part, program: list[list[int]], pattern: str) -> None:
    """Append the instructions for `part` to `program`.

    pattern: the whole pattern, for messages.
    """
    _check_length(program, pattern)
    match part:
        case CharacterClass(ranges, other):
            program.append([SET, len(ranges), int(other)])
            program += [[RANGE, low, high] for low, high in ranges]
        case Anchor(what):
            program.append([ANCHOR, what, 0])
        case Concatenation(parts):
            for each in parts:
                _emit(each, program, pattern)
        case Alternation(ways):
            jumps = []
            for way in ways[:-1]:
                split = _emit_split(program)
                _emit(way, program, pattern)
                jumps.append(len(program))
                program.append([JUMP, 0, 0])
                program[split][2] = len(program)
            _emit(ways[-1], program, pattern)
            for jump in jumps:
                program[jump][1] = len(program)
        case Quantifier(inner, least, most):
            for _ in range(least):
                start = len(program)
                _emit(inner, program, pattern)
                if len(program) == start:
                    break  # further repetitions are empty, too; nested repetitions would take exponential time
            if most is None:
                split = _emit_split(program)
                _emit(inner, program, pattern)
                program.append([JUMP, split, 0])
                program[split][2] = len(program)
                return
            splits = []
            for _ in range(most - least):
                splits.append(_emit_split(program))
                _emit(inner, program, pattern)
            for split in splits:
                program[split][2] = len(program)


def _emit_split(program: list[list[int]]) -> int:
    """Append a SPLIT instruction to `program`, and return its index.

    SPLIT continues both with the next instruction and with a second target, which the caller must set later.
    """
    program.append([SPLIT, len(program) + 1, 0])
    return len(program) - 1
