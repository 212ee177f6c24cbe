"""The examples of docs/reference/errors.md fail as shown, and there is an example for every error class."""

from __future__ import annotations

import re

import pytest
from support.error_examples import Example, examples, failure_of, prelude, shown
from support.error_examples import update as write_what_is_shown

from relvm import errors
from relvm.tables import STATUS

EXAMPLES = list(examples())
CLASSES = {
    name
    for name, value in vars(errors).items()
    if name.startswith("Relvm") and isinstance(value, type) and value is not errors.RelvmError
}


@pytest.fixture(scope="module")
def namespace(request: pytest.FixtureRequest) -> dict:
    made = prelude()
    if request.config.getoption("--update"):
        write_what_is_shown(made)
    return made


def test_every_class_has_an_example() -> None:
    assert {example.heading for example in EXAMPLES} == CLASSES
    assert {row.python_class for row in STATUS if row.python_class} <= CLASSES


def stable(text: str) -> str:
    """Replace the number of bytes in use, which depends on what the process has built before."""
    return re.sub(r"\d+ of (?=\d+ bytes)", "some of ", text)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.heading)
def test_an_example_fails_as_the_document_shows(example: Example, namespace: dict) -> None:
    error = failure_of(example, namespace)
    assert stable(shown(error)) == stable(example.shown)
    if isinstance(error, errors.RelvmError):
        assert type(error).__name__ == example.heading
