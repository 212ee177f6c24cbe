"""Mutation testing: change one token of relvm at a time, and report which tests notice.

    python tests/mutation_testing.py --count 20 --seed 1
    python tests/mutation_testing.py --count 10 --language c

A change replaces a comparison, `and` or `or`, plus or minus, a truth value or a small number, or removes `not`.
Changes are drawn at random, with the same probability for each token.  They are made in a copy of the last commit; the
checkout stays as it is.

A Python change is given to the fast tests that execute the changed line, then to the other fast tests in the same
files, which may use results that the first ones cached, and then to the tests in the folder of the changed file.  A run
of the fast tests with coverage, which needs pytest-cov, first finds out which tests execute which lines.  It does not
see processes that tests start.  If the line is executed at import, the change is given to all fast tests.  A C change
is given to the C tests.

Each change is printed with the tests that noticed it, and the shares at the end.  Read each change that nobody noticed:
either it changes nothing, or a test is missing.
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import random
import re
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support.source_copy import make_importable

ROOT = Path(__file__).resolve().parent.parent
_REPLACED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+"}
_WORDS = {"and": "or", "or": "and", "not": "", "True": "False", "False": "True"}
_C_WORDS = {"&&": "||", "||": "&&", "!": ""}
_LARGEST = 64  # numbers above are sizes and codes rather than counts
_SECONDS = 900  # a run of tests that takes longer has noticed the change
_C_TOKEN = re.compile(r"[A-Za-z_]\w*|0[xX][\da-fA-F]+|\d[\w.]*|&&|\|\||[<>=!+-]=|->|\+\+|--|<<|>>|\S")
_C_IGNORED = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|^#(?:\\\n|[^\n])*', re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Mutant:
    """A change of one token.  path: the file, relative to the checkout.  start, end: the token's place in its text."""

    path: Path
    line: int
    start: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.old} -> {self.new or 'nothing'}"


def _number(text: str) -> str | None:
    return str(int(text) + 1) if text.isdigit() and int(text) <= _LARGEST else None


def python_mutants(path: Path, text: str) -> Iterator[Mutant]:
    """Find all changes of a Python file."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    before = ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        old, is_operand = token.string, before.isidentifier() or before[-1:].isdigit() or before in (")", "]")
        new = None
        if token.type == tokenize.OP and (old not in "+-" or is_operand):
            new = _REPLACED.get(old)
        elif token.type == tokenize.NAME:
            new = None if before == "is" else _WORDS.get(old)
        elif token.type == tokenize.NUMBER:
            new = _number(old)
        if new is not None:
            start = starts[token.start[0] - 1] + token.start[1]
            yield Mutant(path, token.start[0], start, start + len(old), old, new)
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            before = old


def c_mutants(path: Path, text: str) -> Iterator[Mutant]:
    """Find all changes of a C file, outside comments, strings and preprocessor lines."""
    code = _C_IGNORED.sub(lambda found: re.sub(r"\S", " ", found[0]), text)
    before = ""
    for token in _C_TOKEN.finditer(code):
        old, is_operand = token[0], bool(re.fullmatch(r"[\w.]+|\)|\]", before)) and before != "return"
        new = _number(old)
        if new is None and (old not in ("+", "-", "<", ">") or is_operand):
            new = _REPLACED.get(old, _C_WORDS.get(old))
        if new is not None:
            yield Mutant(path, text.count("\n", 0, token.start()) + 1, *token.span(), old, new)
        before = old


def draw(language: str, count: int, seed: int) -> list[Mutant]:
    """Draw `count` changes of the committed files of a language."""
    pattern, find = {"python": ("relvm/*.py", python_mutants), "c": ("csrc/*.c", c_mutants)}[language]
    listed = subprocess.run(["git", "ls-files", pattern], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [Path(line) for line in listed.stdout.split()]
    committed = [path for path in paths if path.parts[:2] != ("csrc", "python")]
    mutants = [mutant for path in committed for mutant in find(path, (ROOT / path).read_text())]
    return random.Random(seed).sample(mutants, count)


class FastTests:
    """The fast tests in a copy of the checkout, and the lines that each of them executes."""

    def __init__(self, tree: Path) -> None:
        from coverage import CoverageData

        if fails(tree, "-m", "fast", "--cov=relvm", "--cov-context=test", "--cov-report="):
            sys.exit("the fast tests fail without any change")
        self._tree = tree
        self._data = CoverageData(str(tree / ".coverage"))
        self._data.read()

    def notice(self, mutant: Mutant, original: str) -> bool:
        """Return whether the tests fail.   original: the text of the changed file before the change."""
        by_line = self._data.contexts_by_lineno(str(self._tree / mutant.path))
        lines = {mutant.line, _statement_line(original, mutant.line)}
        contexts = {context.partition("|")[0] for line in lines for context in by_line.get(line, ())}
        if "" in contexts:  # executed at import
            return fails(self._tree, "-m", "fast")
        chosen = self._tree / "chosen_tests.txt"
        chosen.write_text("".join(f"{name}\n" for name in sorted(contexts)))
        files = sorted({name.partition("::")[0] for name in contexts})
        return bool(files) and (
            fails(self._tree, "-m", "fast", f"@{chosen}") or fails(self._tree, "-m", "fast", *files)
        )


def _statement_line(text: str, line: int) -> int:
    """Return the first line of the innermost statement that contains a line, as coverage counts it."""
    statements = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt))
    return max((node.lineno for node in statements if node.lineno <= line <= (node.end_lineno or 0)), default=line)


def fails(tree: Path, *arguments: str) -> bool:
    """Return whether tests fail, or take too long, in a copy of the checkout."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-n", "2", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(tree), "RELVM_CACHE_DIR": str(tree / "cache")}
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode not in (0, 5)  # 5: there are no tests


def noticed_by(tree: Path, mutant: Mutant, fast: FastTests | None) -> str:
    """Make a change in a copy of the checkout, and return which tests notice it.  The copy is as before afterwards.

    fast: the fast tests, for a change in a Python file.
    """
    path = tree / mutant.path
    original = path.read_text()
    path.write_text(original[: mutant.start] + mutant.new + original[mutant.end :])
    try:
        if fast is None:
            return "C tests" if fails(tree, "tests/c/test_c.py") else "nobody"
        if fast.notice(mutant, original):
            return "fast tests"
        folder = Path("tests", mutant.path.parts[1])
        return f"{folder}/" if (tree / folder).is_dir() and fails(tree, str(folder)) else "nobody"
    finally:
        path.write_text(original)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--language", choices=("python", "c"), default="python")
    options = parser.parse_args()
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "relvm")
        subprocess.run(["git", "clone", "-q", ROOT, tree], check=True)
        make_importable(tree)
        if options.language == "c" and fails(tree, "tests/c/test_c.py"):
            sys.exit("the C tests fail without any change")
        fast = FastTests(tree) if options.language == "python" else None
        for mutant in draw(options.language, options.count, options.seed):
            by = noticed_by(tree, mutant, fast)
            found[by if by.endswith("tests") or by == "nobody" else "tests of the folder"] += 1
            print(f"{mutant}: {by}", flush=True)
    print(", ".join(f"{by}: {number} of {options.count}" for by, number in found.most_common()))


if __name__ == "__main__":
    main()
