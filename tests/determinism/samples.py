"""Samples of the cases of tests/determinism/determinism_suite.py, and the digests that they are expected to have."""

from __future__ import annotations

from functools import cache

from determinism.cases import Calls, function_cases, model_cases, operator_cases
from determinism.ways import bytecode, differences, run

from relvm.runtime.executable import Executable

SAMPLES = ("functions", "operators00000", "digits", "oww_alexa")


@cache
def sample(name: str) -> Calls:
    if name.startswith("functions"):
        return function_cases(300, step=15 if name == "functions, a fifteenth" else 1)
    (calls,) = operator_cases(step=20) if name.startswith("operators") else model_cases([name])
    return calls


@cache
def built(name: str) -> Executable:
    return bytecode(sample(name))


@cache
def expected(name: str) -> tuple[str, ...]:
    return tuple(run(built(name), sample(name)))


def failures(name: str, ways) -> dict[str, list[str]]:
    found = {way: differences(sample(name), list(expected(name)), digests()) for way, digests in ways}
    return {way: names for way, names in found.items() if names}
