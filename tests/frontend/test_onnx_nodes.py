"""The ONNX suite's cases of single operators.

The unchanged models run with NumPy kernels.  Models in which some inputs are initializers also run with C kernels, in
both modes.  onnx_backend.py runs the unchanged models with C kernels.
"""

from __future__ import annotations

from functools import cache

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


@cache
def machines(family: str, *, changed: bool) -> Machines:
    """Return machines for the unchanged models of a family or, if `changed`, for the models with initializers."""
    names = [name for of, name in RUNNING if of == family and is_of_the_suite(name) != changed]
    ways = FAMILIES[family].ways if changed else [("bytecode", "numpy")]
    return machines_of_models({name: model_and_inputs(name)[0] for name in names}, ways)


@pytest.mark.parametrize(("family", "name"), RUNNING)
def test_case(family: str, name: str) -> None:
    made = machines(family, changed=not is_of_the_suite(name))
    for got in answers(made, name, model_and_inputs(name)[1]).values():
        base = name.removesuffix(KNOWN)
        assert_answers(got, CASES[base].outputs, rtol=1e-3 if base in ROUNDED else 1e-4)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_left_out_is_refused(name: str) -> None:
    with pytest.raises(RelvmUnsupportedError, match=REFUSED[name]):
        from_onnx(model_and_inputs(name)[0])


def test_every_operator_has_a_case() -> None:
    assert {case.operator for case in CASES.values()} == OPERATORS.keys()
