"""Random programs give the same in the reference, in bytecode and compiled."""

from __future__ import annotations

import re

import numpy as np
import pytest
from modes import assert_close, assert_same_bits, machines, plain
from random_programs import Generator, arguments

from relvm.frontend.text import parse_module
from relvm.ir.infer import infer_types
from relvm.ir.printer import print_module
from relvm.ir.reference import evaluate
from relvm.ir.structure import structural_equal
from relvm.vm import VirtualMachine, build

MODULES = 12
SIZES = ((2, 3), (1, 1), (0, 2))


@pytest.mark.parametrize("seed", range(MODULES))
def test_the_modes_and_the_reference_agree(seed: int) -> None:
    module = Generator(seed).module()
    ways = machines(module)
    typed = infer_types(module)
    for n, m in SIZES:
        args = arguments(seed, n, m)
        for function in (f for f in module.functions if not f.private):
            with np.errstate(all="ignore"):
                expected = evaluate(typed, function.name, *args)
            results = {way: plain(machine[function.name](*args)) for way, machine in ways.items()}
            for target in ("c", "numpy"):
                assert_same_bits(results["bytecode", target], results["compiled", target])
                assert_close(results["bytecode", target], expected, 1e-4)


@pytest.mark.parametrize("seed", range(MODULES))
def test_sizes_known_at_run_time_only(seed: int) -> None:
    """The same programs over parameters of which the functions forget the sizes."""
    module = Generator(seed).module()
    forgetful = ""
    for text in re.split(r"(?m)^(?=(?:private )?def )", print_module(module, show_types=False))[1:]:
        head, _, body = text.partition("{")
        head = re.sub(r"\) -> .*$", ")", head)
        body = re.sub(r"\bp([123])\b", r"q\1", body)
        forgetful += f"{head} {{ q1: f32[_, _] = p1; q2: f32[_] = p2; q3: i64[_, _] = p3\n{body}"
    machine = VirtualMachine(build(parse_module(forgetful), target="numpy", verified=True))
    typed = infer_types(module)
    for n, m in SIZES:
        args = arguments(seed, n, m)
        for name in machine.functions:
            with np.errstate(all="ignore"):
                expected = evaluate(typed, name, *args)
            assert_close(plain(machine[name](*args)), expected, 1e-4)


@pytest.mark.parametrize("seed", range(100))
def test_text_reads_back_as_the_same_program(seed: int) -> None:
    module = Generator(seed, functions=3).module()
    assert structural_equal(parse_module(print_module(module)), module)
