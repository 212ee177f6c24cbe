"""If a check of the loader or the verifier is removed or inverted, a C test fails."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path
from subprocess import DEVNULL, PIPE

import pytest
from test_c import COMPILER, HERE, INCLUDES, LIBRARIES, SOURCES, WARNINGS, compile_c, compile_native_library
from verifier_mutants import Mutant, instrument

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")

# The tests that load executables.
TESTS = ("test_verify", "test_loader", "test_portable", "test_native", "test_limits", "test_kernels")
_LOADED = ("test_loader", "test_portable", "test_native", "test_limits", "test_verify", "test_kernels")
_KERNELS = ("test_kernels",)
MUTATED = {"verify": TESTS, "load": _LOADED, "executable": _LOADED, "constants": _LOADED, "kernel_verify": _KERNELS}
WALKS = frozenset({"check_form", "join", "arrive_at", "pass_operands", "walk"})
ORDERS = frozenset({"rvm_function_names_compare", "compare_code_starts"})  # compare functions: no truth values

# Mutants that no test can detect, each with the reason.
EQUIVALENT = {
    "arrive_at: never: status": "the jump back to the loop's head fails in the same way, or is never reached",
    "walk: never: status": "it is the status of arrive_at",
    "check_flow: never: status": "the next walk finds the same: registers are only lost",
    "read_sections: never: section.id == 0": "nothing reads a section of that id; a second one would be refused",
    "read_strings: never: *count > INT32_MAX": "the table would take 16 GB",
    "read_functions: never: code->size_bytes / sizeof(uint32_t) > MAX_CODE_WORDS": "a file of 2.8 GB",
    "read_functions: never: counts[0] > MAX_FUNCTIONS": "the table would take 64 GB",
    "read_tensor: never: !rvm_dims_size_bytes((int32_t)record->dtype, (int32_t)record->rank, dims, &computed_bytes)": (
        "the size stays -1, which no record may state; of strings the next check finds the same"
    ),
    "read_constant: never: record->rank > INT32_MAX": "the dimensions would take 16 GB",
    "rvm_constants_read: never: counts[0] > INT32_MAX": "the table would take 64 GB",
    "check_instruction: always: size": "each instruction with a buffer states the bytes of an element",
    "read_sections: always: !RVM_IS_SELECTIVE": "the tests use the whole runtime",
    "read_kernels: always: !RVM_IS_SELECTIVE": "the tests use the whole runtime",
    "read_tensor: always: !RVM_IS_SELECTIVE": "the tests use the whole runtime",
    "read_functions: without: index_names(executable, error)": "only a selective library returns there",
    "rvm_executable_load_own: without: load(bytes, size_bytes, NULL, executable, error)": (
        "only a selective library contains the function"
    ),
}

SHARE = 10  # one of this many mutants is run; another sample is drawn if the mutants change
RUN_ALL = "RELVM_ALL_MUTANTS"


@pytest.fixture(scope="session")
def mutants(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[Mutant, str], Path]:
    """Return all mutants, each with the source file that contains it, and a folder with the tests built with them."""
    folder = tmp_path_factory.mktemp("mutants")
    found: dict[Mutant, str] = {}
    sources = [source for source in SOURCES if source.stem not in MUTATED]
    for stem in MUTATED:
        (original,) = (source for source in SOURCES if source.stem == stem)
        text, more = instrument(original.read_text(), len(found) + 1, WALKS, ORDERS)
        found |= dict.fromkeys(more, stem)
        sources.append(folder / f"{stem}.c")
        sources[-1].write_text(text)
    objects = [folder / f"{source.stem}.o" for source in [*sources, HERE / "mutant.c", HERE / "allocation.c"]]
    for source, made in zip([*sources, HERE / "mutant.c", HERE / "allocation.c"], objects, strict=True):
        compile_c(*WARNINGS, "-O0", *INCLUDES, "-c", source, "-o", made)
    for program in (folder / stem for stem in TESTS):
        compile_c(*WARNINGS, "-O0", *INCLUDES, HERE / f"{program.name}.c", *objects, "-o", program, *LIBRARIES)
    compile_native_library(folder)
    return found, folder


def is_found(number: int, tests: tuple[str, ...], folder: Path) -> bool:
    """Return whether one of the tests fails, crashes or exceeds its CPU time if mutant `number` is active."""
    environment = {**os.environ, "RVM_MUTANT": str(number), "MALLOC_PERTURB_": "165"}  # memory is not 0
    for program in (folder / test for test in tests):
        with subprocess.Popen(
            [program, folder / "library.so"], stdout=PIPE, stderr=DEVNULL, env=environment
        ) as process:
            if process.stdout.read(1):  # the first failure is enough
                process.kill()
                return True
        if process.returncode != 0:
            return True
    return False


def drawn(mutants: list[Mutant]) -> list[Mutant]:
    if os.environ.get(RUN_ALL):
        return mutants
    draw = random.Random("".join(mutant.name for mutant in mutants))
    return draw.sample(mutants, len(mutants) // SHARE)


def test_every_mutant_is_found(mutants: tuple[dict[Mutant, str], Path]) -> None:
    files, folder = mutants
    assert not is_found(0, TESTS, folder)
    chosen = drawn(list(files))
    survivors = {mutant.name for mutant in chosen if not is_found(mutant.number, MUTATED[files[mutant]], folder)}
    assert survivors == EQUIVALENT.keys() & {mutant.name for mutant in chosen}


def test_what_is_excused_is_a_mutant(mutants: tuple[dict[Mutant, str], Path]) -> None:
    assert EQUIVALENT.keys() <= {mutant.name for mutant in mutants[0]}


EXAMPLE = """\
static int fits(int a) { return a > 0 && a < 9; }

static rvm_status check(int a, int b) {
  /* if (a) return BAD(e); */
  if (a < 0 || (b && a == 'x')) return BAD("a && b");
  *place = 1;
  return fits(a) ? RVM_OK : BAD("a");
}

static rvm_status both(int a) {
  if (!a) return RVM_OK;
  return check(a, 1);
}
"""


def test_what_is_mutated() -> None:
    text, found = instrument(EXAMPLE, 7, frozenset({"check"}), frozenset())
    assert [mutant.number for mutant in found] == list(range(7, 7 + len(found)))
    assert [mutant.name for mutant in found] == [
        "fits: always: a > 0 && a < 9",
        "fits: not: a > 0 && a < 9",
        "fits: always: a > 0",
        "fits: always: a < 9",
        "check: never: a < 0 || (b && a == 'x')",
        "check: not: a < 0 || (b && a == 'x')",
        "check: never: a < 0",
        "check: never: (b && a == 'x')",
        "check: always: b",
        "check: always: a == 'x'",
        "check: without: *place = 1",
        "both: always: !a",
        "both: not: !a",
        "both: without: check(a, 1)",
    ]
    assert "MUTATED(13, '0', MUTATED" not in text and "/* if (a) return BAD(e); */" in text
    assert "return KEPT(20, check(a, 1));" in text
