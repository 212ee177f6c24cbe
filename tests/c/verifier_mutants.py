"""Mutation testing of C sources: a mutant is the same source with one check removed, inverted or made too strict.

`instrument` inserts all mutants of a file at once, so that the file is compiled only once.  Which mutant is active is
chosen at run time.  Textual rules find the places to mutate:

- The condition of an `if` whose statement returns a failure becomes false, or is inverted.  Each operand of `||` in the
  condition becomes false, and each operand of `&&` becomes true.
- The condition of an `if` that skips the following code (`continue`, `return RVM_OK`) becomes true, or is inverted.
  Its operands are mutated as above.
- The result of a predicate (a function of type int), and the values of `ok` and of variables whose names begin with
  `is_` or `has_`, become true, or are inverted.  Their operands are mutated as above.
- The call of a function that returns a status is removed.
- In the functions named in `walks`, each assignment and each call statement is removed.
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
    """A mutant.  name: the function, the kind of change and the changed text."""

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
    """Return the text with all mutants inserted, and the list of the mutants.

    The C function `rvm_mutant` returns the number of the active mutant.

    Parameters
    ----------
    text
        C code formatted by clang-format: functions begin in the first column and end with a brace in the first column.
    first
        The number of the first mutant.
    walks
        The functions in which statements are removed.
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


# ---- scanning C code ----


def _blank(text: str) -> str:
    """Replace comments and preprocessor lines by spaces, and literals by x.  The length does not change."""
    literals = r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\''
    others = r"/\*.*?\*/|^#(?:[^\n]*\\\n)*[^\n]*"

    def fill(found: re.Match) -> str:
        return re.sub(r"[^\n]", "x" if found[0][0] in "\"'" else " ", found[0])

    return re.sub(f"{literals}|{others}", fill, text, flags=re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class _Function:
    name: str
    kind: str  # the return type
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
    """Return the operands of `operator` in the expression from `start` to `end`.

    If `operator` is not the outermost operator, return only the whole expression.
    """
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
    """Yield the changes of a condition.  whole: "0" or "1", the value that replaces the whole condition."""
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
    """Yield the removal of each assignment and each call statement.  Declarations are not removed."""
    pattern = r"(?<=[;{})])\s+(?!return|case|const|else)([*\w][\w.>\-\[\]*]*(?: [|&]?= [^;]*|\([^;]*\)));"
    for found in re.compile(pattern).finditer(code, function.start - 1, function.end):
        yield _Change(*found.span(1), "DONE(#, ", ")", "-")
