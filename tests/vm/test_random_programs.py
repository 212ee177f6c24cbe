"""Random programs have the same results in the reference interpreter and in all builds (see docs/testing.md)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from random_programs.constructs import CONSTRUCTS, NODES, ROWS, constructs
from random_programs.generator import Programs, programs
from random_programs.host import register
from random_programs.outcomes import Outcome, check, reference_outcome
from random_programs.replay import as_text, canonical_text, from_text
from support.modes import ALL_MODES, assert_same_bits

from relvm.ir.visitor import structural_equal

FIRST, LAST = map(int, os.environ.get("RELVM_PROGRAM_BLOCKS", "0:4").split(":"))
SAMPLE = range(FIRST, max(LAST, FIRST + 10))  # these blocks together must contain every construct and outcome
C_SHARE = 8  # one of this many modules is also built with C kernels
LEAST = 100  # minimum number of different programs in a block

# A block is ten modules, because from the eleventh on, hypothesis mostly copies parts of earlier examples.
BLOCK = settings(
    max_examples=10,
    print_blob=True,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.reuse, Phase.generate, Phase.shrink),
)
TARGETS = st.integers(0, C_SHARE - 1).map(lambda number: "c" if number == C_SHARE - 1 else "numpy")


@dataclass
class Seen:
    """Statistics of random programs: their constructs, and their outcomes in the reference interpreter."""

    constructs: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    programs: set[str] = field(default_factory=set)

    def add(self, made: Programs, outcomes: list[Outcome]) -> None:
        self.constructs.update(constructs(made.module))
        self.programs.update(canonical_text(made.module, name) for name in made.entries)
        for outcome in outcomes:
            self.outcomes.update(outcomes_of(outcome))


SEEN: dict[int, Seen] = {}  # statistics by block


@pytest.mark.parametrize("block", range(FIRST, LAST))
def test_every_way_gives_what_the_reference_gives(block: int) -> None:
    seen = Seen()

    @seed(block)
    @BLOCK
    @given(programs(), TARGETS)
    def run(made: Programs, target: str) -> None:
        seen.add(made, check(made.module, made.runs, [(mode, target) for mode in ALL_MODES]))
        text = as_text(made.module, made.runs)
        module, runs = from_text(text)
        assert structural_equal(module, made.module), text
        assert_same_bits(tuple(run.args for run in runs), tuple(run.args for run in made.runs))

    run()
    SEEN[block] = seen


def outcomes_of(outcome: Outcome) -> Iterator[str]:
    yield type(outcome.error).__name__ if outcome.error else "a value"
    if outcome.error and outcome.log:
        yield "an error after an effect"
    if any(isinstance(entry[0], str) and entry[0] == "called" for entry in outcome.log if entry):
        yield "a function that the host calls"
    if len(outcome.log) > 3:
        yield "several effects"


@pytest.fixture(scope="module")
def seen() -> Seen:
    """Return the combined statistics of the blocks in SAMPLE.

    Blocks that no other test of this process has run are only run in the reference interpreter.
    """
    together = Seen()
    for block in SAMPLE:
        found = SEEN.get(block) or drawn(block)
        together.constructs.update(found.constructs)
        together.outcomes.update(found.outcomes)
        together.programs.update(found.programs)
    return together


def drawn(block: int) -> Seen:
    register()
    seen = Seen()

    @seed(block)
    @BLOCK
    @given(programs(), TARGETS)
    def look(made: Programs, target: str) -> None:
        seen.add(made, [reference_outcome(made.module, run) for run in made.runs])

    look()
    return seen


def test_there_are_enough_programs_and_they_differ(seen: Seen) -> None:
    assert len(seen.programs) >= LEAST * len(SAMPLE)


@pytest.mark.parametrize("what", sorted(NODES | ROWS | CONSTRUCTS))
def test_the_programs_have(what: str, seen: Seen) -> None:
    assert seen.constructs[what] > 0


OUTCOMES = (
    "a value",
    "several effects",
    "an error after an effect",
    "a function that the host calls",
    "RelvmArithmeticError",
    "RelvmShapeError",
    "IndexError",
)


@pytest.mark.parametrize("what", OUTCOMES)
def test_the_programs_come_to(what: str, seen: Seen) -> None:
    assert seen.outcomes[what] > 0
