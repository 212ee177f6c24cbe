"""The ONNX suite's cases of single operators.

The unchanged models run with NumPy kernels.  Models in which some inputs are initializers also run with C kernels, in
both modes.  onnx_backend.py runs the unchanged models with C kernels.

Unchanged cases that together have all numbers of inputs and all attributes of each operator belong to the fast stage.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from frontend.onnx_answers import Machines, answers, assert_answers, machines_of_models
from frontend.onnx_operators import FAMILIES, OPERATORS, ROUNDED
from frontend.onnx_suite import suite_cases

from relvm.errors import RelvmUnsupportedError
from relvm.frontend.onnx import from_onnx

CASES = suite_cases(OPERATORS)
REFUSED = {name: reason for operator in OPERATORS.values() for name, reason in operator.refused.items()}
KNOWN = " with known inputs"  # marks the second function of a case, in which some inputs are initializers
RUNNING = [
    (family, name + ending)
    for family, row in FAMILIES.items()
    for name, case in sorted(CASES.items())
    if case.operator in row.operators and name not in REFUSED
    for ending in ("", KNOWN)[: 1 + bool(row.operators[case.operator].known)]
]


def model_and_inputs(name: str):
    case = CASES[name.removesuffix(KNOWN)]
    operator = OPERATORS[case.operator]
    return case.with_known((*operator.fixed, *operator.known) if name.endswith(KNOWN) else operator.fixed)


def is_of_the_suite(name: str) -> bool:
    """Return whether the model of the case is unchanged: no input became an initializer."""
    return not name.endswith(KNOWN) and not OPERATORS[CASES[name].operator].fixed


def _features(name: str) -> set[tuple[Any, ...]]:
    """Return the number of inputs of a case, and its attributes, each with its value if it is a flag or a word."""
    (node,) = CASES[name].model.graph.node
    found: set[tuple[Any, ...]] = {(node.op_type, sum(map(bool, node.input)))}
    for attribute in node.attribute:
        is_choice = attribute.type == attribute.STRING or (attribute.type == attribute.INT and attribute.i in (0, 1))
        found.add(
            (node.op_type, attribute.name, attribute.s, attribute.i) if is_choice else (node.op_type, attribute.name)
        )
    return found


def _fast_cases() -> set[str]:
    features = {name: _features(name) for _, name in RUNNING if is_of_the_suite(name)}
    chosen, seen = set(), set()
    for name in sorted(features, key=lambda name: (-len(features[name]), name)):
        if not features[name] <= seen:
            chosen.add(name)
            seen |= features[name]
    return chosen


FAST_CASES = _fast_cases()


def group_of(name: str) -> str:
    """Return which machines run a case: those of the fast, the unchanged or the changed models of its family."""
    if name in FAST_CASES:
        return "fast"
    return "unchanged" if is_of_the_suite(name) else "changed"


@cache
def machines(family: str, group: str) -> Machines:
    """Return machines for the models of a family in a group (`group_of`)."""
    names = [name for of, name in RUNNING if of == family and group_of(name) == group]
    ways = FAMILIES[family].ways if group == "changed" else [("bytecode", "numpy")]
    return machines_of_models({name: model_and_inputs(name)[0] for name in names}, ways)


def check_case(family: str, name: str) -> None:
    made = machines(family, group_of(name))
    for got in answers(made, name, model_and_inputs(name)[1]).values():
        base = name.removesuffix(KNOWN)
        assert_answers(got, CASES[base].outputs, rtol=1e-3 if base in ROUNDED else 1e-4)


@pytest.mark.parametrize(("family", "name"), [each for each in RUNNING if each[1] in FAST_CASES])
def test_case_of_each_operator(family: str, name: str) -> None:
    check_case(family, name)


@pytest.mark.parametrize(("family", "name"), [each for each in RUNNING if each[1] not in FAST_CASES])
def test_case(family: str, name: str) -> None:
    check_case(family, name)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_left_out_is_refused(name: str) -> None:
    with pytest.raises(RelvmUnsupportedError, match=REFUSED[name]):
        from_onnx(model_and_inputs(name)[0])


def test_every_operator_has_a_case() -> None:
    assert {case.operator for case in CASES.values()} == OPERATORS.keys()
