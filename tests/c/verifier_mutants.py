"""Mutants of C: the same source with one check taken out, turned round or made too strict, chosen at run time.

`instrument` rewrites a file once, so that one compilation has all mutants of it.  What is mutated is found by rules on
the text:

- the condition of an `if` whose statement returns a failure: never so, and turned round; each operand of `||` in it:
  never so; each operand of `&&` in it: always so;
- the condition of an `if` that leaves out what follows (`continue`, `return RVM_OK`): always so, turned round,
  operands;
- what a predicate (a function of int) returns, and what `ok` and variables called `is_` or `has_` become: the same;
- the call of a function that returns a status: left out;
- in the functions that are named as walks: each statement that is an assignment or a call: left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

HELPERS = """\
int rvm_mutant(void);
#define MUTATED(number, change, value) rvm_mutated(rvm_mutant() == (number), change, (value) != 0)
static inline int rvm_mutated(int is_on, char change, int value) {
  if (!is_on) return value;
  return change == '!' ? !value : change == '1';
}
#define KEPT(number, status) (rvm_mutant() == (number) ? 0 : (status))
#define DONE(number, statement) (rvm_mutant() == (number) ? (void)0 : (void)(statement))
"""

CHANGES = {"0": "never", "1": "always", "!": "not", "-": "without"}


@dataclass(frozen=True)
class Mutant:
    """One change.  `name` says where and what: the function, the change, the text that it changes."""

    number: int
    name: str


@dataclass(frozen=True)
class _Change:
    start: int
    end: int
    before: str
    after: str
    what: str  # a key of CHANGES


def instrument(text: str, first: int, walks: frozenset[str], left_alone: frozenset[str]) -> tuple[str, list[Mutant]]:
    """The text with all mutants in it, of which the function `rvm_mutant` says which is on, and their list.

    Parameters
    ----------
    text
        C as clang-format leaves it: functions begin in the first column and end with a brace there.
    first
        The number of the first mutant.
    walks
        The functions in which statements are left out.
    left_alone
        The functions that have no mutants.
    """
    code = _blank(text)
    functions = [function for function in _functions(code) if function.name not in left_alone]
    changes = [change for function in functions for change in _changes(code, function, walks)]
    mutants, before, after = [], {}, {}
    names: dict[str, int] = {}
    for number, (function, change) in enumerate(changes, first):
        # inside parentheses that start or end at the same place, the later change is the inner one
        before.setdefault(change.start, []).append(change.before.replace("#", str(number)))
        after.setdefault(change.end, []).insert(0, change.after)
        excerpt = " ".join(text[change.start : change.end].split())
        name = f"{function}: {CHANGES[change.what]}: {excerpt}"
        names[name] = names.get(name, 0) + 1
        mutants.append(Mutant(number, name if names[name] == 1 else f"{name} ({names[name]})"))
    pieces, at = [], 0
    for place in sorted(before.keys() | after.keys()):
        pieces += [text[at:place], *after.get(place, []), *before.get(place, [])]
        at = place
    return HELPERS + "".join(pieces) + text[at:], mutants


# ---- finding things in C ----


def _blank(text: str) -> str:
    """The text with blanks for comments and the preprocessor's lines and x for strings, of the same length."""
    literals = r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\''
    others = r"/\*.*?\*/|^#(?:[^\n]*\\\n)*[^\n]*"

    def fill(found: re.Match) -> str:
        return re.sub(r"[^\n]", "x" if found[0][0] in "\"'" else " ", found[0])

    return re.sub(f"{literals}|{others}", fill, text, flags=re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class _Function:
    name: str
    kind: str  # what it returns
    start: int
    end: int


def _functions(code: str) -> Iterator[_Function]:
    for found in re.finditer(r"^(?:static )?(?:const )?(\w+) \**(\w+)\([^;{]*?\) \{", code, re.MULTILINE):
        line_end = code.index("\n", found.end())
        end = line_end if code[line_end - 1] == "}" else code.index("\n}", found.end())
        yield _Function(found[2], found[1], found.end(), end)


def _closing(code: str, start: int) -> int:
    """Return the index of the parenthesis that closes the one at `start`."""
    depth = 0
    for at in range(start, len(code)):
        depth += (code[at] in "([{") - (code[at] in ")]}")
        if depth == 0:
            return at
    raise AssertionError("parentheses do not close")


def _operands(code: str, start: int, end: int, operator: str) -> list[tuple[int, int]]:
    """The operands of `operator` in an expression; one, the whole, where it is not the outermost operator."""
    parts, depth, begin = [], 0, start
    for at in range(start, end):
        depth += (code[at] in "([{") - (code[at] in ")]}")
        if depth == 0 and code[at] == "?":
            return [(start, end)]
        if depth == 0 and code.startswith(operator, at):
            parts.append((begin, at))
            begin = at + len(operator)
    return [_trimmed(code, *part) for part in [*parts, (begin, end)]]


def _trimmed(code: str, start: int, end: int) -> tuple[int, int]:
    while code[start].isspace():
        start += 1
    while code[end - 1].isspace():
        end -= 1
    return start, end


# ---- the changes ----


def _changes(code: str, function: _Function, walks: frozenset[str]) -> Iterator[tuple[str, _Change]]:
    rules: list[Callable[[str, _Function], Iterator[_Change]]] = [_refusals, _values, _calls]
    if function.name in walks:
        rules.append(_statements)
    for rule in rules:
        for change in rule(code, function):
            yield function.name, change


def _value(start: int, end: int, what: str) -> _Change:
    return _Change(start, end, f"MUTATED(#, '{what}', ", ")", what)


def _condition(code: str, start: int, end: int, whole: str) -> Iterator[_Change]:
    """`whole`: what the condition as a whole becomes when it is switched off."""
    for what in (whole, "!"):
        yield _value(start, end, what)
    yield from _parts(code, start, end)


def _parts(code: str, start: int, end: int) -> Iterator[_Change]:
    if code[start] == "(" and _closing(code, start) == end - 1:
        yield from _parts(code, *_trimmed(code, start + 1, end - 1))
        return
    for operator, neutral in (("||", "0"), ("&&", "1")):
        operands = _operands(code, start, end, operator)
        if len(operands) == 1:
            continue
        for operand in operands:
            yield _value(*operand, neutral)
            yield from _parts(code, *operand)
        return


def _refusals(code: str, function: _Function) -> Iterator[_Change]:
    for found in re.compile(r"\bif \(").finditer(code, function.start, function.end):
        opening = found.end() - 1
        closing = _closing(code, opening)
        statement = code[closing + 1 : code.index(";", closing)].strip()
        if re.match(r"(return|status =) (BAD|bad|rvm_fail\w*)\(|return (0|NULL|status)\b", statement):
            yield from _condition(code, opening + 1, closing, "0")
        elif re.match(r"return (RVM_OK|1)\b|continue\b", statement):
            yield from _condition(code, opening + 1, closing, "1")
    for found in re.compile(r"return (\w+) \? RVM_OK :").finditer(code, function.start, function.end):
        yield _value(*found.span(1), "1")


def _values(code: str, function: _Function) -> Iterator[_Change]:
    pattern = r"\b(?:ok|int (?:is|has)_\w+) = ([^;]*);" if function.kind != "int" else r"\breturn ([^;]*);"
    for found in re.compile(pattern).finditer(code, function.start, function.end):
        if not found[1].isdigit():
            yield from _condition(code, *found.span(1), "1")


def _status_functions(code: str) -> set[str]:
    return {function.name for function in _functions(code) if function.kind == "rvm_status"}


def _calls(code: str, function: _Function) -> Iterator[_Change]:
    checks = sorted(_status_functions(code) | {"rvm_executable_verify", "rvm_native_check"})
    for found in re.compile(rf"\b({'|'.join(checks)})\(").finditer(code, function.start, function.end):
        if found[1] != "bad":
            yield _Change(found.start(), _closing(code, found.end() - 1) + 1, "KEPT(#, ", ")", "-")


def _statements(code: str, function: _Function) -> Iterator[_Change]:
    """Assignments to places and calls that stand alone; declarations have a type before the name."""
    pattern = r"(?<=[;{})])\s+(?!return|case|const|else)([*\w][\w.>\-\[\]*]*(?: [|&]?= [^;]*|\([^;]*\)));"
    for found in re.compile(pattern).finditer(code, function.start - 1, function.end):
        yield _Change(*found.span(1), "DONE(#, ", ")", "-")
