"""Fuzz tests of the text parsers: a damaged text is parsed or raises an error with a location, within a time limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from frontend.programs import EVERY_NODE, KERNELS, STAGES
from limits import at_most, rounds
from seeds import TEXTS
from support.assembly_programs import EVERYTHING
from support.list_programs import function as list_function
from text_mutations import mutated

from relvm.bytecode.asm_parser import parse_text
from relvm.bytecode.asm_printer import HEADLINE
from relvm.errors import RelvmError, RelvmSyntaxError
from relvm.frontend.text import parse_module
from relvm.ir.expr import Module
from relvm.ir.printer import print_module
from relvm.ir.type_inference import infer_types
from relvm.ir.visitor import structural_equal
from relvm.runtime.executable import Executable

PROGRAMS = (EVERY_NODE, STAGES, KERNELS, KERNELS, *TEXTS.values(), *map(list_function, range(6)))


def is_same_again(module: Module) -> bool:
    """Return whether the printed module parses to an equal module.

    Printing adds parentheses, so the parser can reject the text of a deeply nested module as too deep.  Return True in
    this case.
    """
    try:
        return structural_equal(parse_module(print_module(module)), module)
    except RelvmSyntaxError as error:
        return "levels deep" in error.reason


def parse(text: str) -> str:
    """Parse a text and return the outcome.  A valid module is also printed and parsed again."""
    try:
        module = parse_module(text)
    except RelvmError as error:
        assert error.lineno >= 1 and error.offset >= 1 and error.reason, error
        return "refused"
    assert is_same_again(module)
    try:
        infer_types(module)
    except RelvmError as error:
        assert str(error)
        return "parsed"
    return "typed"


def assemble(text: str) -> str:
    """Assemble a text and return the outcome.  A valid program is also encoded and loaded."""
    try:
        program = parse_text(text)
    except RelvmError as error:
        assert str(error)
        return "refused"
    try:
        Executable.from_program(program)
    except RelvmError as error:
        assert str(error)
        return "parsed"
    return "loaded"


ASSEMBLIES = (f"{HEADLINE}\n{EVERYTHING}",)


@pytest.mark.parametrize(("take", "texts"), [(parse, PROGRAMS), (assemble, ASSEMBLIES)], ids=["language", "assembly"])
def test_changed_texts(take: Callable[[str], str], texts: tuple[str, ...]) -> None:
    came = Counter()
    for seed, random in rounds(1000):
        text = mutated(texts, random)
        try:
            with at_most(100):
                came[take(text)] += 1
        except BaseException as error:
            error.add_note(f"seed {seed}; the text is {text!r}")
            raise
    print(dict(came))
    assert len(came) == 3 and came.total() > 100, came
