"""The C tests take every branch of the loader, the verifier, the interpreter and the reader of ONNX files, except those
marked as unreachable.

A comment `never: ` with the reason marks a branch that is never taken, and the test checks that this is true.  Branches
are those that gcov reports for unoptimized code: both outcomes of each condition.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from test_c import HERE, INCLUDES, LIBRARIES, SOURCES, TESTS, WARNINGS, compile_c, compile_native_library

COVERED = (
    *("load", "executable", "constants", "verify", "register_types", "predecode", "interpreter", "call"),
    *("kernel_verify", "protobuf", "onnx"),
)
NAMES = [f"{stem}.c" for stem in COVERED]
NEVER = "never: "
GCC, GCOV = shutil.which("gcc"), shutil.which("gcov")
FLAGS = [*WARNINGS, *INCLUDES, "-g", "-O0", "-DRVM_ALLOCATION_FAILS=test_allocation_fails"]
# Unoptimized code has larger stack frames, so the tests of deep nesting need a larger stack.
STACK_KILOBYTES = 65536

pytestmark = pytest.mark.skipif(GCC is None or GCOV is None, reason="no gcc with gcov")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run all C tests, and return the folder with the data for gcov."""
    folder = tmp_path_factory.mktemp("coverage")
    objects = [folder / f"{source.stem}.o" for source in SOURCES]
    library = compile_native_library(folder)

    def compile_one(source: Path, made: Path) -> None:
        counted = ["--coverage", "-fprofile-update=atomic"] if source.stem in COVERED else []
        compile_c(*FLAGS, *counted, "-c", source, "-o", made)

    def run(test: Path) -> None:
        program = folder / test.stem
        compile_c(*FLAGS, test, HERE / "allocation.c", *objects, "-o", program, "--coverage", *LIBRARIES)
        command = f"ulimit -s {STACK_KILOBYTES} && exec {program} {library}"
        result = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120)
        assert (result.returncode, result.stdout + result.stderr) == (0, "")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(compile_one, SOURCES, objects))
        list(pool.map(run, TESTS))
    return folder


def branches_of(folder: Path) -> dict[tuple[str, int], dict[tuple[str, int], int]]:
    """Return how often each branch on each line was taken.

    The key of a line is the name of the file and the line number.  The key of a branch is its function and its number.
    """
    found: dict[tuple[str, int], dict[tuple[str, int], int]] = {}
    for stem in COVERED:
        command = [GCOV, "--json-format", "--stdout", "--branch-probabilities", f"{folder / stem}.o"]
        read = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
        for file in json.loads(read.stdout)["files"]:
            if Path(file["file"]).name not in NAMES:
                continue
            for line in file["lines"]:
                branches = found.setdefault((Path(file["file"]).name, line["line_number"]), {})
                for number, branch in enumerate(line["branches"]):
                    key = line.get("function_name", ""), number
                    branches[key] = branches.get(key, 0) + branch["count"]
    return found


def test_every_branch_is_taken(measured: Path) -> None:
    texts = {source.name: source.read_text().splitlines() for source in SOURCES if source.name in NAMES}
    missed, excused = [], set()
    for (name, number), branches in sorted(branches_of(measured).items()):
        text = texts[name][number - 1]
        if all(branches.values()):
            continue
        excused.add((name, number))
        if NEVER not in text:
            ways = ", ".join(f"{function} {way}" for (function, way), taken in branches.items() if not taken)
            missed.append(f"{name}:{number}: {text.strip()}    [{ways}]")
    assert not missed, "branches that no test takes:\n" + "\n".join(missed)
    for name, lines in texts.items():
        for number, text in enumerate(lines, 1):
            assert NEVER not in text or (name, number) in excused, f"{name}:{number} says never, and is taken: {text}"
